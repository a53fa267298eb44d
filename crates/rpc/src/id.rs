//! A request's id: echoed byte for byte, matched by its meaning.

use std::sync::Arc;

use pintle_contract::decimal;

/// The id of one request.
///
/// `raw` is what the client wrote and what it gets back. `key` is what ids are compared by: `1`,
/// `1.0` and `"1"` are the same id, and numbers too large for a float still differ.
///
/// ```
/// use pintle_rpc::RequestId;
///
/// let number = RequestId::from_json("1e3").unwrap();
/// assert_eq!(number.raw(), "1e3");
/// assert_eq!(number.key(), RequestId::from_json("\"1000\"").unwrap().key());
/// assert!(RequestId::from_json("null").is_none());
/// ```
#[derive(Clone, Debug)]
pub struct RequestId {
    raw: Arc<str>,
    key: Arc<str>,
}

impl RequestId {
    /// Reads an id from its JSON text; only strings and numbers are ids.
    pub fn from_json(raw: &str) -> Option<Self> {
        let key: Arc<str> = match raw.as_bytes().first()? {
            // A string that JSON allows but Rust cannot hold (a lone surrogate) stands for itself.
            b'"' => serde_json::from_str::<String>(raw).map_or_else(|_| raw.into(), Into::into),
            b'-' | b'0'..=b'9' => number_key(raw).into(),
            _ => return None,
        };
        Some(Self { raw: raw.into(), key })
    }

    /// The JSON text that the client sent.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// What duplicates and cancels are matched by.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether this is a number with a fractional part, which MCP does not allow.
    pub fn is_fractional(&self) -> bool {
        !self.raw.starts_with('"') && decimal(&self.raw).is_some_and(|(_, _, power)| power < 0)
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for RequestId {}

/// The exact decimal value, spelled as JavaScript spells numbers, without going through a float.
fn number_key(raw: &str) -> String {
    // JavaScript writes numbers from 1e-6 up to 1e21 without an exponent.
    const PLAIN: std::ops::RangeInclusive<i64> = -5..=21;
    let Some((negative, digits, power)) = decimal(raw) else {
        return raw.to_owned();
    };
    if digits.is_empty() {
        return "0".to_owned();
    }
    let sign = if negative { "-" } else { "" };
    // Where the point stands, counted from before the first digit.
    let point = digits.len() as i64 + power;
    if !PLAIN.contains(&point) {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{dot}{rest}e{:+}", point - 1);
    }
    if power >= 0 {
        return format!("{sign}{digits}{}", "0".repeat(power as usize));
    }
    if point > 0 {
        let (whole, fraction) = digits.split_at(point as usize);
        return format!("{sign}{whole}.{fraction}");
    }
    format!("{sign}0.{}{digits}", "0".repeat(-point as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(raw: &str) -> String {
        RequestId::from_json(raw).expect("an id").key().to_owned()
    }

    #[test]
    fn ids_of_one_meaning_have_one_key() {
        for (raw, expected) in [
            ("1", "1"),
            ("1.0", "1"),
            ("\"1\"", "1"),
            ("10e-1", "1"),
            ("0.1e1", "1"),
            ("-0", "0"),
            ("0.0", "0"),
            ("1e3", "1000"),
            ("1.5", "1.5"),
            ("15e-1", "1.5"),
            ("0.05", "0.05"),
            ("-2.50", "-2.5"),
            ("12345678901234567890", "12345678901234567890"),
            ("12345678901234567891", "12345678901234567891"),
            ("1e400", "1e+400"),
            ("10e399", "1e+400"),
            ("1e21", "1e+21"),
            ("1.5e21", "1.5e+21"),
            ("1e20", "100000000000000000000"),
            ("0.000001", "0.000001"),
            ("15e-8", "1.5e-7"),
            ("1e-9", "1e-9"),
            // What no exponent of 32 bits can say stands for itself, so that every key of a number is a number.
            ("10e2147483647", "10e2147483647"),
            ("12e2147483647", "12e2147483647"),
            ("0.01e-2147483647", "0.01e-2147483647"),
            ("\"\\u00e9\"", "é"),
            ("\"1e3\"", "1e3"),
        ] {
            assert_eq!(key(raw), expected, "{raw}");
        }
    }

    #[test]
    fn only_numbers_with_a_fraction_are_fractional() {
        for (raw, expected) in
            [("1.5", true), ("1.0", false), ("1e3", false), ("\"1.5\"", false), ("1e-9", true)]
        {
            assert_eq!(RequestId::from_json(raw).expect("an id").is_fractional(), expected, "{raw}");
        }
    }

    #[test]
    fn what_is_neither_string_nor_number_is_no_id() {
        for raw in ["null", "true", "[1]", "{}", ""] {
            assert!(RequestId::from_json(raw).is_none(), "{raw}");
        }
    }
}
