//! From an event stream to a response: plain JSON for a reply that comes at once, and server-sent events (SSE) for
//! anything that takes longer.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;

use super::{
    accept::Accepts,
    stream::{Beginning, EventStream, OnDisconnect, ReadStyle, Reader, ReplyBody, ReplyStatus},
};

/// The type of a response of events.
const EVENTS: &str = "text/event-stream";

/// How long a reply may take to be sent as plain JSON.
const AT_ONCE: Duration = Duration::from_millis(250);

/// Answers with what the stream says. `gone` is called if the client disconnects before the reply,
/// with whether it can resume the stream.
pub(crate) async fn respond(
    stream: &Arc<EventStream>,
    accepts: Accepts,
    style: ReadStyle,
    gone: impl Fn(bool) + Clone + Send + 'static,
) -> Response {
    let (ids, priming) = (style.ids, style.priming);
    let leaves = gone.clone();
    let watch = OnDisconnect::new(move || leaves(false));
    if !accepts.events {
        let last = stream.last().await;
        watch.disarm();
        return match last {
            Some((status, json)) => reply_response(status, json, stream),
            None => StatusCode::NO_CONTENT.into_response(),
        };
    }
    // The status of a response cannot change once it has begun, however busy the server is.
    stream.until_authorized().await;
    let beginning = tokio::time::timeout(AT_ONCE, stream.beginning()).await;
    watch.disarm();
    match beginning {
        Ok(Beginning::Reply(status, json)) if accepts.json => reply_response(status, json, stream),
        _ => {
            let leaving = Arc::clone(stream);
            // Only a client that has the id of an event can resume from it.
            let watch = OnDisconnect::new(move || gone(ids && (priming || leaving.delivered() > 0)));
            event_response(stream.read(0, style).watched(watch))
        }
    }
}

/// A response that is the reply alone.
fn reply_response(status: ReplyStatus, json: Bytes, stream: &Arc<EventStream>) -> Response {
    let mut response = json_response(status.code, Body::new(ReplyBody::new(json, Arc::clone(stream))));
    if let Some(missing) = status.missing_scope {
        response.extensions_mut().insert(missing);
    }
    response
}

/// Whether a response is one of events.
pub(crate) fn is_events<B>(response: &axum::http::Response<B>) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == EVENTS)
}

/// A response of server-sent events (SSE).
pub(crate) fn event_response(reader: Reader) -> Response {
    let headers = [
        (header::CONTENT_TYPE, EVENTS),
        (header::CACHE_CONTROL, "no-cache"),
        // A proxy that gathers events would defeat their purpose.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, reader.into_body()).into_response()
}

/// A response that is JSON.
pub(crate) fn json_response(status: StatusCode, json: impl Into<Body>) -> Response {
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], json.into()).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        // In whole seconds; the error itself says it more exactly.
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_engine::Reservation;

    const EITHER: Accepts = Accepts { json: true, events: true };

    /// Answers a request on whose stream something happens after a minute, which passes at once.
    async fn response_to(stream: &Arc<EventStream>, after_a_minute: impl Fn(&Arc<EventStream>)) -> Response {
        let answered = respond(stream, EITHER, ReadStyle::default(), |_| {});
        let later = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            after_a_minute(stream);
        };
        tokio::join!(answered, later).0
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_does_not_begin_before_it_is_known_whether_a_scope_is_missing() {
        let refused = |stream: &Arc<EventStream>| {
            stream.reply("{}".into(), StatusCode::FORBIDDEN, Reservation::default())
        };
        let stream = EventStream::new(0, Arc::default());
        stream.await_authorization();
        let response = response_to(&stream, refused).await;
        assert_eq!((response.status(), is_events(&response)), (StatusCode::FORBIDDEN, false));
        // Once it is known, a reply that takes its time does not hold up the response.
        let stream = EventStream::new(0, Arc::default());
        stream.await_authorization();
        stream.authorized();
        let response = response_to(&stream, refused).await;
        assert_eq!((response.status(), is_events(&response)), (StatusCode::OK, true));
        // Nobody is kept waiting for what never comes.
        for end in [EventStream::end, |stream: &EventStream| stream.push("{}".into())] {
            let stream = EventStream::new(0, Arc::default());
            stream.await_authorization();
            assert!(is_events(&response_to(&stream, |stream| end(stream)).await));
        }
    }
}
