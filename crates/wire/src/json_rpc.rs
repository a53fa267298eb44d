//! What both dialects write alike.

use pintle_contract::RequestId;
use pintle_engine::{Outlet, ProgressEvent};
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

/// The frame of a reply: `member` is `result` or `error`. The id goes back byte for byte.
pub(crate) fn reply(id: Option<&RequestId>, member: &str, json: &str) -> String {
    let id = id.map_or("null", RequestId::raw);
    [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":", json, "}\n"].concat()
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
