//! The smallest value that still shows something.

use serde_json::{Map, Value, json};

/// How often the value is tried.
const TRIALS: u32 = 2_000;

/// Makes a value smaller as long as `shows` holds.
pub(crate) fn minimize(value: Value, shows: &dyn Fn(&Value) -> bool) -> Value {
    let mut smallest = value;
    let mut trials = TRIALS;
    loop {
        let better = smaller(&smallest).into_iter().find(|candidate| {
            trials = trials.saturating_sub(1);
            trials > 0 && weight(candidate) < weight(&smallest) && shows(candidate)
        });
        match better {
            Some(better) => smallest = better,
            None => return smallest,
        }
    }
}

/// What makes one value larger than another: its members and elements, then its characters, then its digits.
fn weight(value: &Value) -> u64 {
    match value {
        Value::Null => 1,
        Value::Bool(set) => 2 + u64::from(*set),
        Value::Number(number) => {
            4 + number.to_string().len() as u64 + u64::from(number.as_f64() != Some(0.0))
        }
        Value::String(text) => {
            let plain = text.chars().all(|c| c == 'a');
            4 + 2 * text.chars().count() as u64 + u64::from(!plain)
        }
        Value::Array(items) => 4 + items.iter().map(|item| 4 + weight(item)).sum::<u64>(),
        Value::Object(members) => {
            4 + members.iter().map(|(name, member)| 4 + name.len() as u64 + weight(member)).sum::<u64>()
        }
    }
}

/// Candidates that are smaller by one step, the largest step first.
fn smaller(value: &Value) -> Vec<Value> {
    match value {
        Value::Null | Value::Bool(false) => Vec::new(),
        Value::Bool(true) => vec![json!(false)],
        Value::Number(number) => {
            let mut candidates = vec![json!(0), json!(1), json!(-1)];
            if let Some(float) = number.as_f64()
                && float.fract() != 0.0
                && float.abs() < 1e15
            {
                candidates.push(json!(float.trunc() as i64));
            }
            candidates
        }
        Value::String(text) => {
            let count = text.chars().count();
            let mut candidates = vec![json!(""), json!("a")];
            for keep in [count / 2, count.saturating_sub(1)] {
                candidates.push(Value::String(text.chars().take(keep).collect()));
                candidates.push(Value::String(text.chars().skip(count - keep).collect()));
            }
            candidates.push(json!("a".repeat(count)));
            candidates
        }
        Value::Array(items) => {
            let mut candidates = vec![json!([])];
            candidates.extend((0..items.len()).map(|index| Value::Array(without(items, index))));
            for (index, item) in items.iter().enumerate() {
                for replacement in smaller(item).into_iter().chain(simplest(item)) {
                    let mut changed = items.clone();
                    changed[index] = replacement;
                    candidates.push(Value::Array(changed));
                }
            }
            candidates
        }
        Value::Object(members) => {
            let mut candidates = vec![json!({})];
            for name in members.keys() {
                let rest: Map<_, _> = members
                    .iter()
                    .filter(|(other, _)| *other != name)
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect();
                candidates.push(Value::Object(rest));
            }
            for (name, member) in members {
                for replacement in smaller(member).into_iter().chain(simplest(member)) {
                    let mut changed = members.clone();
                    changed.insert(name.clone(), replacement);
                    candidates.push(Value::Object(changed));
                }
            }
            candidates
        }
    }
}

fn simplest(value: &Value) -> Option<Value> {
    (!value.is_null()).then_some(Value::Null)
}

fn without(items: &[Value], index: usize) -> Vec<Value> {
    items.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, item)| item.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_shows_it_is_kept() {
        let value = json!({"a": {"x": [1, 2, 300]}, "b": "text", "c": true});
        let shows = |value: &Value| {
            let list = value["a"]["x"].as_array();
            list.is_some_and(|list| list.iter().any(|item| item.as_i64() > Some(100)))
        };
        assert_eq!(minimize(value, &shows), json!({"a": {"x": [300]}}));
    }

    #[test]
    fn a_text_keeps_only_the_length_that_is_needed() {
        let shows = |value: &Value| value.as_str().is_some_and(|text| text.len() > 3);
        assert_eq!(minimize(json!("some long text"), &shows), json!("aaaa"));
    }
}
