//! MCP on a pipe that is shared with the direct dialect.
//!
//! The pipe's reader has checked the envelope already. The SDK sees each request under a number of our
//! own, because it cannot hold every id that JSON-RPC allows; the client's id is put back on the way out.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use pintle_contract::RequestId;
use pintle_engine::{CancelReason, InFlight, Outlet, OutletClosed};
use rmcp::{
    RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, GetExtensions,
        JsonRpcMessage, NumberOrString, RequestMetaObject, ServerJsonRpcMessage, ServerResult,
    },
    transport::Transport,
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::Origin;
use crate::json_rpc;

/// How many messages may wait for the SDK before the reader does.
const WAITING: usize = 64;

/// The reader's end: takes messages to the SDK.
pub(crate) struct McpFeed {
    sender: Mutex<Option<mpsc::Sender<ClientJsonRpcMessage>>>,
    pending: Arc<Pending>,
}

/// The SDK's end, before it is started.
pub(crate) struct McpRoute {
    receiver: Arc<tokio::sync::Mutex<mpsc::Receiver<ClientJsonRpcMessage>>>,
    pending: Arc<Pending>,
    in_flight: Arc<InFlight>,
    outlet: Outlet,
}

/// The requests that the SDK has not answered, by our number.
#[derive(Default)]
struct Pending {
    ids: Mutex<HashMap<i64, RequestId>>,
    last: AtomicI64,
    empty: Notify,
}

impl Pending {
    fn enter(&self, id: RequestId) -> i64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, id);
        number
    }

    fn leave(&self, number: &NumberOrString) -> Option<RequestId> {
        let NumberOrString::Number(number) = number else { return None };
        let mut ids = self.lock();
        let id = ids.remove(number);
        if ids.is_empty() {
            self.empty.notify_waiters();
        }
        id
    }

    /// Our number for the request with this id.
    fn number_of(&self, id: &RequestId) -> Option<i64> {
        self.lock().iter().find(|(_, known)| *known == id).map(|(number, _)| *number)
    }

    async fn until_empty(&self) {
        loop {
            let emptied = self.empty.notified();
            if self.lock().is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i64, RequestId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Both ends of a pipe's MCP.
pub(crate) fn route(in_flight: Arc<InFlight>, outlet: Outlet) -> (McpFeed, McpRoute) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let pending = Arc::new(Pending::default());
    let feed = McpFeed { sender: Mutex::new(Some(sender)), pending: Arc::clone(&pending) };
    let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
    (feed, McpRoute { receiver, pending, in_flight, outlet })
}

impl McpFeed {
    /// Takes a request to the SDK; waits while it is busy. `Err` says what is wrong with the params.
    pub(crate) fn request(
        &self,
        method: &str,
        params: Value,
        id: RequestId,
        origin: Origin,
    ) -> Result<(), String> {
        let number = self.pending.enter(id);
        let request = match client_request(method, params, number) {
            Ok(request) => request,
            Err(problem) => {
                self.pending.leave(&NumberOrString::Number(number));
                return Err(problem);
            }
        };
        let mut request = request;
        request.extensions_mut().insert(origin);
        self.send(ClientJsonRpcMessage::request(request, NumberOrString::Number(number)));
        Ok(())
    }

    /// Takes a notification to the SDK. One that it cannot read is passed over.
    pub(crate) fn notification(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if let Ok(message @ JsonRpcMessage::Notification(_)) = serde_json::from_value(message) {
            self.send(message);
        }
    }

    /// Tells the SDK that a request is cancelled, and forgets it: the SDK answers nothing from here on.
    /// `false` if the SDK has no such request.
    pub(crate) fn cancelled(&self, method: &str, mut params: Value, id: &RequestId) -> bool {
        let Some(number) = self.pending.number_of(id) else { return false };
        self.pending.leave(&NumberOrString::Number(number));
        params["requestId"] = json!(number);
        self.notification(method, params);
        true
    }

    /// Takes a client's response to the SDK.
    pub(crate) fn response(&self, message: Value) {
        if let Ok(message) = serde_json::from_value(message) {
            self.send(message);
        }
    }

    /// Takes no more. What was taken is still answered.
    pub(crate) fn close(&self) {
        *self.sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn send(&self, message: ClientJsonRpcMessage) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(sender) = sender {
            // Fails only when the SDK's end is gone, and then nobody waits for the reply either.
            let _ = sender.blocking_send(message);
        }
    }
}

/// The SDK's form of a request. The most frequent one is built by hand: the SDK would copy its arguments
/// several times while it tries what kind of message it is.
fn client_request(method: &str, mut params: Value, number: i64) -> Result<ClientRequest, String> {
    let plain = params.as_object().is_some_and(|params| {
        params.keys().all(|key| matches!(key.as_str(), "name" | "arguments" | "_meta"))
    });
    if method == "tools/call" && plain {
        return call_request(&mut params);
    }
    let message = json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params});
    match serde_json::from_value::<ClientJsonRpcMessage>(message) {
        Ok(JsonRpcMessage::Request(request)) => Ok(request.request),
        Ok(_) => Err("this is not a request".into()),
        Err(_) => Err(format!("the params of `{method}` do not match the protocol")),
    }
}

fn call_request(params: &mut Value) -> Result<ClientRequest, String> {
    let Some(name) = params["name"].as_str() else {
        return Err("`name` must be the name of a tool".into());
    };
    let mut call = CallToolRequestParams::new(name.to_owned());
    call.arguments = match params["arguments"].take() {
        Value::Null => None,
        Value::Object(arguments) => Some(arguments),
        _ => return Err("`arguments` must be an object".into()),
    };
    let mut request = CallToolRequest::new(call);
    if let Some(meta) = params.get_mut("_meta") {
        let meta: RequestMetaObject =
            serde_json::from_value(meta.take()).map_err(|_| "`_meta` must be an object")?;
        request.extensions.insert(meta);
    }
    Ok(ClientRequest::CallToolRequest(request))
}

impl McpRoute {
    /// Serves until the reader has closed its end and everything is answered.
    pub(crate) async fn serve(self, handler: impl ServerHandler + Clone) {
        // A client whose handshake failed may try again.
        while !self.is_closed().await {
            let transport = PipeTransport {
                receiver: Arc::clone(&self.receiver),
                pending: Arc::clone(&self.pending),
                in_flight: Arc::clone(&self.in_flight),
                outlet: self.outlet.clone(),
                has_begun: false,
            };
            if let Ok(running) = handler.clone().serve(transport).await {
                let _ = running.waiting().await;
            }
        }
    }

    async fn is_closed(&self) -> bool {
        let receiver = self.receiver.lock().await;
        receiver.is_closed() && receiver.is_empty()
    }
}

struct PipeTransport {
    receiver: Arc<tokio::sync::Mutex<mpsc::Receiver<ClientJsonRpcMessage>>>,
    pending: Arc<Pending>,
    in_flight: Arc<InFlight>,
    outlet: Outlet,
    /// Whether a request has come: the SDK gives up on a client that begins with anything else.
    has_begun: bool,
}

/// Nobody reads the replies any more.
#[derive(Debug)]
struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads the replies any more")
    }
}

impl std::error::Error for Gone {}

impl Transport<RoleServer> for PipeTransport {
    type Error = Gone;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        let frame = self.frame(message);
        let outlet = self.outlet.clone();
        async move {
            let Some(frame) = frame else { return Ok(()) };
            let written = outlet.write(&[frame.as_bytes()]).await;
            outlet.flush();
            written.map_err(|OutletClosed| Gone)
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let Some(message) = self.receiver.lock().await.recv().await else {
                // The SDK would give up on what still runs after a few seconds.
                self.pending.until_empty().await;
                return None;
            };
            self.has_begun |= matches!(message, JsonRpcMessage::Request(_));
            if self.has_begun {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

impl PipeTransport {
    /// The frame of a message, unless nobody wants it.
    fn frame(&self, message: ServerJsonRpcMessage) -> Option<String> {
        match message {
            JsonRpcMessage::Response(response) => {
                let id = self.settle(&response.id)?;
                Some(json_rpc::reply(Some(&id), "result", &result_json(response.result)))
            }
            JsonRpcMessage::Error(error) => {
                let id = self.settle(error.id.as_ref()?)?;
                Some(json_rpc::reply(Some(&id), "error", &to_json(&error.error)))
            }
            other => Some(to_json(&other) + "\n"),
        }
    }

    /// The id that the client knows the request by; free again from here on. None if the client has
    /// cancelled the request and wants no reply.
    fn settle(&self, number: &NumberOrString) -> Option<RequestId> {
        let id = self.pending.leave(number)?;
        let cancel = self.in_flight.leave(&id);
        let silent = cancel.is_some_and(|cancel| cancel.reason() == Some(CancelReason::Silent));
        (!silent).then_some(id)
    }
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The JSON of a result; a list of tools gets back the members that the SDK has no place for.
fn result_json(result: ServerResult) -> String {
    let ServerResult::ListToolsResult(_) = &result else { return to_json(&result) };
    let mut value = serde_json::to_value(&result).unwrap_or_default();
    for tool in value["tools"].as_array_mut().into_iter().flatten() {
        for name in ["schemaVersion", "toolingVersion"] {
            tool[name] = tool["_meta"][format!("pintle/{name}")].clone();
        }
    }
    value.to_string()
}
