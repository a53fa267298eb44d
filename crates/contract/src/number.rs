//! Finds numbers that would lose precision when they are parsed.
//!
//! JSON does not limit numbers; here they are 64-bit integers and floats. A number that would be parsed as another one is
//! found first, so that it can be refused.

/// The offset of the first number that cannot be represented exactly, in `json`, which must be valid JSON.
///
/// ```
/// use pintle_contract::inexact_number;
///
/// assert_eq!(inexact_number(r#"{"a": 18446744073709551615, "b": 0.1}"#), None);
/// assert_eq!(inexact_number(r#"{"a": 123456789012345678901}"#), Some(6));
/// ```
pub fn inexact_number(json: &str) -> Option<usize> {
    let bytes = json.as_bytes();
    if !has_suspect(bytes) {
        return None;
    }
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let number = &json[at..at + length];
                if has_suspect(number.as_bytes()) && !is_exact(number) {
                    return Some(at);
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

/// A fast check: fifteen digits always survive a float, and an exponent of two digits is always in range, and most texts
/// have no longer run of digits.
fn has_suspect(bytes: &[u8]) -> bool {
    const SAFE_DIGITS: usize = 15;
    let mut digits = 0;
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                if digits > SAFE_DIGITS {
                    return true;
                }
            }
            b'.' | b'-' | b'+' => {}
            b'e' | b'E' if digits > 0 => {
                let rest = &bytes[index + 1..];
                let exponent = rest.iter().skip_while(|byte| matches!(byte, b'+' | b'-'));
                if exponent.take_while(|byte| byte.is_ascii_digit()).count() > 2 {
                    return true;
                }
            }
            _ => digits = 0,
        }
    }
    false
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn is_exact(number: &str) -> bool {
    let is_integer = number.parse::<u64>().is_ok() || number.parse::<i64>().is_ok();
    // Of several shortest spellings of one float, it is the one that `serde_json` writes that callers get back.
    let written = || serde_json::Number::from_f64(number.parse().ok()?);
    is_integer || written().is_some_and(|written| decimal(&written.to_string()) == decimal(number))
}

/// Sign, significant digits and exponent of a JSON number: equal for equal numbers. None if the exponent, as it is
/// written or as it counts from the last or the first digit, does not fit into 32 bits.
pub fn decimal(number: &str) -> Option<(bool, String, i64)> {
    let (negative, unsigned) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let exponent: i64 = exponent.parse::<i32>().ok()?.into();
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    let power = exponent - fraction.len() as i64 + (digits.len() - significant.len()) as i64;
    i32::try_from(power).ok()?;
    i32::try_from(power + significant.len() as i64).ok()?;
    Some((negative, significant.to_owned(), power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_held_is_exact() {
        for json in [
            "0",
            "-0.0",
            "1e3",
            "1E+2",
            "0.1",
            "1.7976931348623157e308",
            "5e-324",
            "9007199254740993",
            "18446744073709551615",
            "-9223372036854775808",
            "0.50000000000000000000",
            "1e22",
            r#"{"a": "123456789012345678901 \" 99999999999999999999"}"#,
            "[1.5, 2.25, 123456789012345]",
            "100000000000000000000000",
        ] {
            assert_eq!(inexact_number(json), None, "{json}");
        }
    }

    #[test]
    fn what_would_change_is_found_where_it_stands() {
        for (json, at) in [
            ("123456789012345678901", 0),
            ("-123456789012345678901", 0),
            ("[0.12345678901234567890]", 1),
            ("1234567345233452.3", 0),
            (r#"{"99999999999999999999": 1e400}"#, 25),
            ("[1, 1e-400]", 4),
            (r#"["\\", 18446744073709551617]"#, 7),
        ] {
            assert_eq!(inexact_number(json), Some(at), "{json}");
        }
    }
}
