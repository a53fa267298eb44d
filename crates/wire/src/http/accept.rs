//! Content negotiation: what a client can read, by its `Accept` headers (RFC 9110, section 12.5.1).

use axum::http::{HeaderMap, header};
use mediatype::{
    MediaType, MediaTypeList, Name, ReadParams,
    names::{_STAR, APPLICATION, EVENT_STREAM, JSON, TEXT},
};

/// What a client can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepts {
    pub(crate) json: bool,
    /// Whether the client reads events, and expects them: one that takes anything at all gets JSON.
    pub(crate) events: bool,
}

impl Accepts {
    /// Reads the headers of a request whose reply may be JSON or events. Without an `Accept` header that is JSON
    /// and nothing else: such a client expects no events.
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let Some(json) = match_of(headers, APPLICATION, JSON) else { return Self::JSON };
        let Some(events) = match_of(headers, TEXT, EVENT_STREAM) else { return Self::JSON };
        let expects_events = events.precision > Precision::Anything || !json.is_acceptable;
        Self { json: json.is_acceptable, events: events.is_acceptable && expects_events }
    }

    const JSON: Self = Self { json: true, events: false };

    pub(crate) fn nothing(self) -> bool {
        !self.json && !self.events
    }
}

/// Whether a client can read a response that is always an event stream.
pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    match_of(headers, TEXT, EVENT_STREAM).is_none_or(|events| events.is_acceptable)
}

/// What the most precise of the ranges that match a type says of it.
struct Match {
    precision: Precision,
    is_acceptable: bool,
}

/// How precisely a range names a type. The most precise one counts, wherever it stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    /// Not at all: no range matches.
    Nothing,
    /// `*/*`
    Anything,
    /// `text/*`
    Type,
    /// `text/event-stream`
    Whole,
}

/// What the headers say of a type; none if they name no type at all. What cannot be read as a range is passed over.
fn match_of(headers: &HeaderMap, kind: Name<'_>, subtype: Name<'_>) -> Option<Match> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut names_any = false;
    let mut best = Match { precision: Precision::Nothing, is_acceptable: false };
    for value in values {
        names_any |= !value.trim().is_empty();
        for range in MediaTypeList::new(value).flatten() {
            let names_type = range.ty == kind;
            let precision = match () {
                () if range.suffix.is_some() => continue,
                () if range.ty == _STAR && range.subty == _STAR => Precision::Anything,
                () if names_type && range.subty == _STAR => Precision::Type,
                () if names_type && range.subty == subtype => Precision::Whole,
                () => continue,
            };
            let Some(is_acceptable) = has_weight(&range) else { continue };
            if precision > best.precision {
                best = Match { precision, is_acceptable };
            } else if precision == best.precision {
                best.is_acceptable |= is_acceptable;
            }
        }
    }
    names_any.then_some(best)
}

/// Whether a range has a weight above 0, which means "not acceptable"; none if the weight is not a number from 0
/// to 1.
fn has_weight(range: &MediaType<'_>) -> Option<bool> {
    let Some(weight) = range.get_param(Name::new_unchecked("q")) else { return Some(true) };
    let weight: f32 = weight.unquoted_str().parse().ok()?;
    (0.0..=1.0).contains(&weight).then_some(weight > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_precise_range_decides_and_a_weight_of_zero_refuses() {
        for (accept, json, events) in [
            (&[][..], true, false),
            (&[""], true, false),
            (&["application/json, text/event-stream"], true, true),
            (&["application/json", "text/event-stream"], true, true),
            (&["Application/JSON; charset=utf-8 , TEXT/Event-Stream"], true, true),
            (&["text/event-stream;q=0.9,application/json;q=0.1"], true, true),
            (&["application/json"], true, false),
            (&["*/*"], true, false),
            (&["application/*"], true, false),
            (&["text/*"], false, true),
            (&["text/event-stream"], false, true),
            (&["text/html"], false, false),
            (&["application/json;q=0"], false, false),
            (&["application/json;q=0.000"], false, false),
            (&["application/json; Q=0"], false, false),
            (&["application/json;q=0.001"], true, false),
            (&["application/json;q=0, text/event-stream"], false, true),
            (&["application/json;q=0, */*"], false, true),
            (&["*/*, application/json;q=0"], false, true),
            (&["*/*;q=0, application/json"], true, false),
            (&["*/*;q=0"], false, false),
            (&["*/*", "text/event-stream;q=0"], true, false),
            (&["text/*;q=0, text/event-stream, application/json"], true, true),
            (&["application/*;q=0, */*"], false, true),
            (&["application/json;profile=\"a,text/event-stream\""], true, false),
            (&["application/json;q=nan"], false, false),
            (&["application/json;q=2"], false, false),
            (&["application/json;q=-0.1, text/event-stream"], false, true),
            (&["application/json+x"], false, false),
            (&["nonsense, application/json"], true, false),
        ] {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, value.parse().expect("a header"));
            }
            assert_eq!(Accepts::read(&headers), Accepts { json, events }, "{accept:?}");
        }
    }

    #[test]
    fn events_alone_are_taken_by_whoever_does_not_refuse_them() {
        for (accept, expected) in [
            ("", true),
            ("text/event-stream", true),
            ("text/*", true),
            ("*/*", true),
            ("application/json", false),
            ("text/event-stream;q=0", false),
            ("text/event-stream;q=0, */*", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().expect("a header"))]);
            assert_eq!(accepts_events(&headers), expected, "{accept}");
        }
        assert!(accepts_events(&HeaderMap::new()));
    }
}
