//! JSON documents that others wrote: how deep they may be nested.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// How many arrays and objects may be nested in a document. One level of a schema has two or three of them.
pub const MOST_LEVELS: usize = 512;

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is nested too deep.
    #[error(
        "arrays and objects are nested in more than {MOST_LEVELS} levels; put inner schemas into `$defs` and refer to them"
    )]
    TooDeep,
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(serde_json::Error),
}

/// Reads a document.
pub fn read_document(text: &[u8]) -> Result<Value, DocumentError> {
    if levels(text) > MOST_LEVELS {
        return Err(DocumentError::TooDeep);
    }
    // Some editors and shells of Windows begin a file with a byte order mark.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    read_deep(text).map_err(DocumentError::NotJson)
}

/// Reads JSON without the limit of serde, which is 128 levels. Each level takes stack, so the levels have to be known.
pub fn read_deep<T: DeserializeOwned>(text: &[u8]) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    deserializer.disable_recursion_limit();
    let value = T::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// How many brackets are open at once, outside of texts. In JSON these are the levels of nesting.
fn levels(text: &[u8]) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                open += 1;
                most = most.max(open);
            }
            b']' | b'}' if !in_text => open = open.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn a_document_may_have_as_many_levels_as_the_limit_and_no_more() {
        assert!(read_document(nested(MOST_LEVELS).as_bytes()).is_ok());
        let message = read_document(nested(MOST_LEVELS + 1).as_bytes()).expect_err("too deep").to_string();
        assert!(message.contains("512 levels") && message.contains("$defs"), "{message}");
    }

    #[test]
    fn brackets_in_texts_and_side_by_side_are_no_levels() {
        for text in [r#"["[[[","\"[[[","\\"]"#, "[[],[],{}]"] {
            assert_eq!(levels(text.as_bytes()), if text.contains('"') { 1 } else { 2 }, "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        assert_eq!(read_document("\u{feff}[1]".as_bytes()).expect("JSON"), serde_json::json!([1]));
    }

    #[test]
    fn what_is_not_json_or_goes_on_behind_its_end_is_refused() {
        for text in ["", "[", "[]]", "{} {}", "]]]["] {
            assert!(matches!(read_document(text.as_bytes()), Err(DocumentError::NotJson(_))), "{text}");
        }
    }
}
