//! JSON values as the validator sees them: every access spends a step of the validation's budget. Counting here,
//! below the validator, covers every keyword that a schema can use and changes neither schemas nor verdicts.

use std::borrow::Cow;

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, cmp, unique},
};
use serde_json::{Map, Number, Value, map};

use crate::{quoting::quotable, step_budget::StepBudget};

/// The representation that validators are compiled for.
pub(crate) struct CountedJson;

/// A JSON value whose accesses are counted.
#[derive(Clone, Copy)]
pub(crate) struct CountedNode<'a> {
    value: &'a Value,
    context: NodeContext<'a>,
}

/// The budget that pays for a value's accesses, and the length of the path to the value.
#[derive(Clone, Copy)]
pub(crate) struct NodeContext<'a> {
    /// None for the name of a property, which is not a value of the asset and costs nothing.
    budget: Option<&'a StepBudget<'a>>,
    path_bytes: usize,
}

pub(crate) struct CountedObject<'a>(&'a Map<String, Value>, NodeContext<'a>);
pub(crate) struct CountedArray<'a>(&'a [Value], NodeContext<'a>);
pub(crate) struct Members<'a>(map::Iter<'a>, NodeContext<'a>);
pub(crate) struct Elements<'a>(std::slice::Iter<'a, Value>, NodeContext<'a>);

/// About how many bytes an array index adds to a path.
const ITEM_BYTES: usize = 6;

impl<'a> CountedNode<'a> {
    /// The root of an asset, paid for by `budget`.
    pub(crate) fn new(asset: &'a Value, budget: &'a StepBudget<'a>) -> Self {
        Self { value: asset, context: NodeContext { budget: Some(budget), path_bytes: 0 } }
    }

    /// Returns the value and spends one step.
    fn access(&self) -> &'a Value {
        self.context.step();
        self.value
    }
}

impl<'a> NodeContext<'a> {
    fn step(&self) {
        if let Some(budget) = self.budget {
            budget.step();
        }
    }

    /// An array item or object member of this value.
    fn child(self, value: &'a Value, path_bytes: usize) -> CountedNode<'a> {
        self.step();
        CountedNode { value, context: Self { path_bytes: self.path_bytes + path_bytes, ..self } }
    }
}

impl Json for CountedJson {
    type Node<'a> = CountedNode<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(CountedNode<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| {
            f(CountedNode { value, context: NodeContext { budget: None, path_bytes: 0 } })
        })
    }
}

impl<'a> Node<'a, CountedJson> for CountedNode<'a> {
    type Object = CountedObject<'a>;
    type Array = CountedArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<CountedObject<'a>> {
        match self.access() {
            Value::Object(members) => Some(CountedObject(members, self.context)),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<CountedArray<'a>> {
        match self.access() {
            Value::Array(items) => Some(CountedArray(items, self.context)),
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.access().as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.access().as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.access().as_bool()
    }

    fn is_null(&self) -> bool {
        self.access().is_null()
    }

    fn json_type(&self) -> JsonType {
        Node::<SerdeJson>::json_type(&self.access())
    }

    fn equals_value(&self, expected: &Value) -> bool {
        cmp::equal(self.access(), expected)
    }

    /// The validator calls this once for each error, so this is where an error's memory is counted.
    fn to_value(&self) -> Cow<'a, Value> {
        if let Some(budget) = self.context.budget {
            budget.error(self.context.path_bytes);
        }
        Cow::Borrowed(quotable(self.value))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Node::<SerdeJson>::identity(&self.access())
    }
}

impl<'a> Object<'a, CountedJson> for CountedObject<'a> {
    type Node = CountedNode<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<CountedNode<'a>> {
        self.0.get(key).map(|value| self.1.child(value, key.len() + 1))
    }

    fn members(&self) -> Members<'a> {
        Members(self.0.iter(), self.1)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, CountedNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next()?;
        Some((key, self.1.child(value, key.len() + 1)))
    }
}

impl<'a> Array<'a, CountedJson> for CountedArray<'a> {
    type Node = CountedNode<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements(self.0.iter(), self.1)
    }

    fn is_unique(&self) -> bool {
        unique::is_unique(self.0)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = CountedNode<'a>;

    fn next(&mut self) -> Option<CountedNode<'a>> {
        self.0.next().map(|value| self.1.child(value, ITEM_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{
        issue::{self, Issue},
        step_budget::{Limits, within_budget},
        testing::any_json,
    };

    /// Uses every kind of access that the validator makes to values.
    fn schema() -> Value {
        json!({
            "$ref": "#/$defs/node",
            "unevaluatedProperties": {"type": ["number", "string", "array", "object"]},
            "unevaluatedItems": {"not": {"const": 1}},
            "$defs": {"node": {
                "type": ["object", "array", "number", "string", "boolean"],
                "properties": {"a": {"$ref": "#/$defs/node"}, "": {"enum": [0, null, [], {}, "a"]}},
                "patternProperties": {"^[~/]": {"$ref": "#/$defs/node"}},
                "propertyNames": {"maxLength": 3},
                "dependentSchemas": {"0": {"required": ["-"]}},
                "maxProperties": 4,
                "prefixItems": [{"$ref": "#/$defs/node"}],
                "contains": {"type": "integer"},
                "maxContains": 2,
                "uniqueItems": true,
                "minimum": -1,
                "multipleOf": 0.5,
                "pattern": "^.{0,4}$",
                "anyOf": [{"minLength": 1}, {"required": ["a"]}, {"type": "array"}],
                "if": {"type": "object"},
                "then": {"oneOf": [{"minProperties": 2}, {"required": ["~"]}, {"additionalProperties": {"$ref": "#/$defs/node"}}]}
            }}
        })
    }

    /// The verdict and the issues, for plain values and for counted ones.
    fn both(asset: &Value) -> [(bool, Vec<Issue>); 2] {
        let plain = jsonschema::draft202012::new(&schema()).expect("compiles");
        let counted = jsonschema::options_for::<CountedJson>().build(&schema()).expect("compiles");
        let counted = within_budget(Limits::LISTING, &|| false, |budget| {
            let node = || CountedNode::new(asset, budget);
            (counted.is_valid(node()), issue::collect(counted.iter_errors(node())))
        });
        [(plain.is_valid(asset), issue::collect(plain.iter_errors(asset))), counted.expect("not interrupted")]
    }

    proptest! {
        #[test]
        fn counting_changes_no_verdict_and_no_message(asset in any_json()) {
            let [plain, counted] = both(&asset);
            prop_assert_eq!(plain, counted);
        }
    }

    #[test]
    fn a_long_value_is_not_copied_into_errors_and_messages_stay_the_same() {
        let long = json!({"a": {"a": "x".repeat(10_000)}, "~": vec![0; 1_000]});
        let [plain, counted] = both(&long);
        assert!(!plain.0 && plain == counted, "{plain:?}\n{counted:?}");
        let error_count = |asset: &Value, error_bytes| {
            let validator =
                jsonschema::options_for::<CountedJson>().build(&json!({"items": false})).expect("compiles");
            let limits = Limits { error_bytes, ..Limits::NONE };
            within_budget(limits, &|| false, |budget| {
                validator.iter_errors(CountedNode::new(asset, budget)).count()
            })
        };
        let asset = json!(vec![0; 1_000]);
        assert_eq!(error_count(&asset, 2 << 20), Ok(1_000));
        assert!(error_count(&asset, 1 << 19).is_err(), "each error is counted");
    }
}
