//! The chain of an audit log: each line is sealed with a key and the seal of the line before it.
//!
//! Whoever changes, removes, swaps or adds a line would have to compute seals, and has no key. Lines that are cut off at
//! the end leave a good chain; the **head**, kept beside the log, says which line is the last.

use base16ct::lower::encode_string;
use ring::hmac;
use serde_json::{Map, Value};
use thiserror::Error;

/// The member of a line that seals it.
const SEAL: &str = "seal";
/// The member of a line that counts it, from 1.
const NUMBER: &str = "n";

/// The end of a chain: how many lines there are, and the seal of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// How many lines there are.
    pub lines: u64,
    /// The seal of the last one; of none, the empty text.
    pub seal: String,
}

impl AuditHead {
    /// The head of an empty log.
    pub fn empty() -> Self {
        Self { lines: 0, seal: String::new() }
    }

    /// Reads a head, and checks that it was written with this key.
    pub fn parse(text: &str, key: &AuditKey) -> Option<Self> {
        let (lines, rest) = text.trim_end().split_once(' ')?;
        let (seal, proof) = rest.split_once(' ')?;
        let head = Self { lines: lines.parse().ok()?, seal: seal.trim_start_matches('-').to_owned() };
        (key.proof(&head) == proof).then_some(head)
    }

    /// The head as it is kept.
    pub fn to_text(&self, key: &AuditKey) -> String {
        let seal = if self.seal.is_empty() { "-" } else { &self.seal };
        format!("{} {seal} {}\n", self.lines, key.proof(self))
    }
}

/// The key of a chain.
pub struct AuditKey(hmac::Key);

impl AuditKey {
    /// A key from its bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    fn seal(&self, previous: &str, line: &str) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(previous.as_bytes());
        context.update(b"\n");
        context.update(line.as_bytes());
        encode_string(context.sign().as_ref())
    }

    fn proof(&self, head: &AuditHead) -> String {
        self.seal(&head.seal, &format!("head {}", head.lines))
    }

    /// Seals a record as the next line after a head. Returns the line, without a line feed, and the new head.
    pub fn append(&self, head: &AuditHead, mut record: Map<String, Value>) -> (String, AuditHead) {
        let lines = head.lines + 1;
        record.insert(NUMBER.into(), lines.into());
        record.remove(SEAL);
        let seal = self.seal(&head.seal, &Value::Object(record.clone()).to_string());
        record.insert(SEAL.into(), seal.clone().into());
        (Value::Object(record).to_string(), AuditHead { lines, seal })
    }

    /// Checks that a line is the next one after a head. Returns the new head.
    pub fn check(&self, head: &AuditHead, line: &str) -> Result<AuditHead, AuditError> {
        let number = head.lines + 1;
        let wrong = |problem| AuditError { line: number, problem };
        let Ok(Value::Object(mut record)) = serde_json::from_str(line) else {
            return Err(wrong(AuditProblem::NotARecord));
        };
        let found = record.remove(SEAL);
        let seal = found.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        if record.get(NUMBER).and_then(Value::as_u64) != Some(number) {
            return Err(wrong(AuditProblem::OutOfOrder));
        }
        // The text that was sealed is the record as it is written, without its seal.
        let is_as_written = {
            let mut whole = record.clone();
            whole.insert(SEAL.into(), seal.clone().into());
            let written = Value::Object(whole).to_string();
            written == line
        };
        if !is_as_written || self.seal(&head.seal, &Value::Object(record).to_string()) != seal {
            return Err(wrong(AuditProblem::Changed));
        }
        Ok(AuditHead { lines: number, seal })
    }
}

/// A line that is not as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct AuditError {
    /// The number of the line, from 1.
    pub line: u64,
    /// What is wrong with it.
    #[source]
    pub problem: AuditProblem,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AuditProblem {
    /// It is no JSON object.
    #[error("it is not a record")]
    NotARecord,
    /// It has another number than the lines before it say.
    #[error("it has another number; a line was removed, added or moved")]
    OutOfOrder,
    /// Its seal does not fit.
    #[error("it is not what was written; it was changed, or a line before it was")]
    Changed,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key() -> AuditKey {
        AuditKey::new(&[3; 32])
    }

    fn log(lines: usize) -> (Vec<String>, AuditHead) {
        let mut head = AuditHead::empty();
        let mut log = Vec::new();
        for number in 0..lines {
            let record = json!({"caller": format!("c{number}"), "tool": "text.read"});
            let (line, next) = key().append(&head, record.as_object().expect("an object").clone());
            log.push(line);
            head = next;
        }
        (log, head)
    }

    fn check(lines: &[String]) -> Result<AuditHead, AuditError> {
        lines.iter().try_fold(AuditHead::empty(), |head, line| key().check(&head, line))
    }

    #[test]
    fn a_line_that_is_changed_removed_swapped_or_added_is_found() {
        let (good, head) = log(5);
        assert_eq!(check(&good), Ok(head));
        for index in 0..good.len() {
            // Each byte of each line counts.
            for position in 0..good[index].len() {
                let mut bytes = good[index].clone().into_bytes();
                bytes[position] ^= 1;
                let Ok(line) = String::from_utf8(bytes) else { continue };
                let mut changed = good.clone();
                changed[index] = line;
                assert!(check(&changed).is_err(), "line {index}, byte {position}");
            }
            let mut removed = good.clone();
            removed.remove(index);
            assert!(index == good.len() - 1 || check(&removed).is_err(), "line {index} is removed");
            let mut twice = good.clone();
            twice.insert(index, good[index].clone());
            assert!(check(&twice).is_err(), "line {index} stands twice");
            if index > 0 {
                let mut swapped = good.clone();
                swapped.swap(index - 1, index);
                assert!(check(&swapped).is_err(), "line {index} is swapped");
            }
        }
        let other =
            AuditKey::new(&[4; 32]).append(&AuditHead::empty(), json!({}).as_object().expect("{}").clone());
        assert!(check(&[other.0]).is_err(), "a line with another key");
    }

    #[test]
    fn a_head_says_where_the_log_ends_and_cannot_be_made_up() {
        let (_, head) = log(3);
        assert_eq!(AuditHead::parse(&head.to_text(&key()), &key()), Some(head.clone()));
        let empty = AuditHead::empty();
        assert_eq!(AuditHead::parse(&empty.to_text(&key()), &key()), Some(empty));
        let earlier = AuditHead { lines: 2, ..head.clone() };
        for text in
            [earlier.to_text(&AuditKey::new(&[4; 32])), head.to_text(&key()).replace('3', "2"), String::new()]
        {
            assert_eq!(AuditHead::parse(&text, &key()), None, "{text}");
        }
    }
}
