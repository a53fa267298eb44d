//! A request's id: echoed byte for byte, matched by its meaning.

use std::sync::Arc;

/// The id of one request.
///
/// `raw` is what the client wrote and what it gets back. `key` is what ids are compared by: `1`,
/// `1.0` and `"1"` are the same id, and numbers too large for a float still differ.
///
/// ```
/// use pintle_contract::RequestId;
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
        !self.raw.starts_with('"') && self.key.bytes().any(|b| b == b'.' || b == b'e')
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for RequestId {}

/// Whole numbers up to this many digits are written out; larger ones keep an exponent.
const PLAIN_DIGITS: i64 = 64;

/// The exact decimal value in one spelling, without going through a float.
fn number_key(raw: &str) -> String {
    let (sign, unsigned) = match raw.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", raw),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent),
        None => (unsigned, "0"),
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return raw.to_owned();
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = format!("{whole}{fraction}");
    let digits = all_digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let power = i64::from(exponent) - fraction.len() as i64 + (digits.len() - significant.len()) as i64;
    if power >= 0 && significant.len() as i64 + power <= PLAIN_DIGITS {
        return format!("{sign}{significant}{}", "0".repeat(power as usize));
    }
    let point = significant.len() as i64 + power;
    if power < 0 && point > 0 {
        let (whole, fraction) = significant.split_at(point as usize);
        return format!("{sign}{whole}.{fraction}");
    }
    if power < 0 && point > -6 {
        return format!("{sign}0.{}{significant}", "0".repeat(-point as usize));
    }
    format!("{sign}{significant}e{power}")
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
            ("1e400", "1e400"),
            ("10e399", "1e400"),
            ("1e-9", "1e-9"),
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
