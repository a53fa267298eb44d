//! What both dialects write alike. A frame has no line end: a pipe adds one, HTTP needs none.

use pintle_engine::Reservation;
use pintle_rpc::RequestId;
use pintle_tool::{LARGE, ProgressEvent};
use serde::Serialize;
use serde_json::{Value, json};

use crate::outlet::{LargeFrame, Outlet, OutletClosed};

/// Who receives a call's progress. Progress that finds no capacity is superseded by the next, or by the reply.
pub(crate) trait Listener: Send + Sync + 'static {
    /// Takes a frame, or drops it.
    fn notify(&self, frame: String);

    /// The caller's scopes cover the call.
    fn authorized(&self) {}
}

impl Listener for Outlet {
    fn notify(&self, frame: String) {
        self.offer(&[frame.as_bytes(), b"\n"]);
    }
}

/// The frame of a reply, with the memory that is reserved for it until it is written.
pub(crate) struct ReplyFrame {
    pub(crate) frame: String,
    pub(crate) reservation: Reservation,
    /// What is written instead if its client does not read; empty if it is not large.
    evicted: String,
}

impl ReplyFrame {
    /// A frame that is known to be short.
    pub(crate) fn short(frame: String) -> Self {
        Self { frame, reservation: Reservation::default(), evicted: String::new() }
    }

    /// A frame that may be large; only then is it worth to make what is written if it is evicted.
    pub(crate) fn large(frame: String, reservation: Reservation, evicted: impl FnOnce() -> String) -> Self {
        let evicted = if frame.len() > LARGE { evicted() } else { String::new() };
        Self { frame, reservation, evicted }
    }

    /// Writes it to a pipe, as a line. A short frame waits until the buffer has capacity.
    pub(crate) async fn write_to(self, outlet: &Outlet) -> Result<(), OutletClosed> {
        let Self { mut frame, mut reservation, mut evicted } = self;
        if evicted.is_empty() {
            return outlet.write(&[frame.as_bytes(), b"\n"]).await;
        }
        frame.push('\n');
        evicted.push('\n');
        reservation.shrink_to(frame.capacity());
        outlet.write_large(LargeFrame { frame, reservation, instead: evicted })
    }
}

/// The frame of a reply: `member` is `result` or `error`. The id goes back byte for byte.
pub(crate) fn reply(id: Option<&RequestId>, member: &str, json: &str) -> String {
    let id = id.map_or("null", RequestId::raw);
    [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":", json, "}"].concat()
}

/// The frame of a reply whose body is serialized straight into it. `capacity` is about how long that will be.
pub(crate) fn serialized_reply(
    id: Option<&RequestId>,
    member: &str,
    capacity: usize,
    body: &impl Serialize,
) -> serde_json::Result<String> {
    let id = id.map_or("null", RequestId::raw);
    let head = [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":"].concat();
    // One more for the line end of a pipe.
    let mut frame = Vec::with_capacity(head.len() + capacity + 2);
    frame.extend_from_slice(head.as_bytes());
    serde_json::to_writer(&mut frame, body)?;
    frame.push(b'}');
    String::from_utf8(frame).map_err(serde::ser::Error::custom)
}

/// The params of a progress notification that every dialect has.
pub(crate) fn progress_params(token: &Value, event: &ProgressEvent) -> Value {
    let mut params = json!({"progressToken": token, "progress": plain_number(event.progress)});
    if let Some(total) = event.total {
        params["total"] = plain_number(total);
    }
    params["message"] = json!(event.message);
    params
}

/// Whole numbers without a fraction.
fn plain_number(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT { json!(number as i64) } else { json!(number) }
}
