//! Decides which values a message may quote. An error keeps a copy of its value, so a long value is replaced by a
//! placeholder before every error has a copy of it.

use std::{io, sync::LazyLock};

use serde_json::Value;

/// The longest value, as JSON text, that is quoted.
const MAX_QUOTED_BYTES: usize = 120;

/// What errors hold instead of a value that is too long.
static PLACEHOLDER: LazyLock<Value> = LazyLock::new(|| Value::from("(a value too long to quote)"));

/// The value, or the placeholder if it is too long.
pub(crate) fn quotable(value: &Value) -> &Value {
    if is_short(value) { value } else { &PLACEHOLDER }
}

/// Whether a message may quote the value.
pub(crate) fn may_quote(value: &Value) -> bool {
    is_short(value) && *value != *PLACEHOLDER
}

fn is_short(value: &Value) -> bool {
    struct Limit(usize);
    impl io::Write for Limit {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Limit(MAX_QUOTED_BYTES), value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_value_is_replaced_by_one_that_is_not_quoted() {
        let (short, long) = (json!([1, "é"]), json!("x".repeat(MAX_QUOTED_BYTES)));
        assert!(quotable(&short) == &short && may_quote(&short));
        assert!(quotable(&long) != &long && !may_quote(&long));
        assert!(!may_quote(quotable(&long)));
    }
}
