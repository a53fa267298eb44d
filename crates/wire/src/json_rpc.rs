//! What both dialects write alike.

use pintle_contract::RequestId;
use pintle_engine::{LARGE, LargeFrame, Outlet, OutletClosed, ProgressEvent, Reservation};
use serde::Serialize;
use serde_json::{Value, json};

/// Who hears of a call's progress. Progress that finds no room is superseded by the next, or by the reply.
pub(crate) trait Listener: Send + Sync + 'static {
    /// Takes a frame, or passes it over.
    fn tell(&self, frame: String);

    /// The caller's scopes cover the call.
    fn authorized(&self) {}
}

impl Listener for Outlet {
    fn tell(&self, frame: String) {
        self.offer(&[frame.as_bytes()]);
    }
}

/// A frame for a pipe, with the memory that is reserved for it until it is written.
pub(crate) struct ReplyFrame {
    frame: String,
    reservation: Reservation,
    /// What is written instead if its client does not read.
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

    /// Queues it. A short frame waits until the buffer has capacity.
    pub(crate) async fn write_to(self, outlet: &Outlet) -> Result<(), OutletClosed> {
        let Self { frame, mut reservation, evicted } = self;
        if evicted.is_empty() {
            return outlet.write(&[frame.as_bytes()]).await;
        }
        reservation.shrink_to(frame.capacity());
        outlet.write_large(LargeFrame { frame, reservation, instead: evicted })
    }
}

/// The frame of a reply: `member` is `result` or `error`. The id goes back byte for byte.
pub(crate) fn reply(id: Option<&RequestId>, member: &str, json: &str) -> String {
    let id = id.map_or("null", RequestId::raw);
    [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":", json, "}\n"].concat()
}

/// The frame of a reply whose body is serialized in its place. `capacity` is about how long that will be.
pub(crate) fn serialized_reply(
    id: &RequestId,
    member: &str,
    capacity: usize,
    body: &impl Serialize,
) -> serde_json::Result<String> {
    let head = [r#"{"jsonrpc":"2.0","id":"#, id.raw(), ",\"", member, "\":"].concat();
    let mut frame = Vec::with_capacity(head.len() + capacity + 2);
    frame.extend_from_slice(head.as_bytes());
    serde_json::to_writer(&mut frame, body)?;
    frame.extend_from_slice(b"}\n");
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
