//! JSON values as the validator sees them: each look at one is told to the watch. This reaches every way
//! that a schema can make the validator go, and leaves schemas and verdicts as they are.

use std::borrow::Cow;

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, cmp, unique},
};
use serde_json::{Map, Number, Value, map};

use crate::{quoting::quotable, watch::Watch};

/// The representation that validators are compiled for.
pub(crate) struct Watched;

/// A value under a watch.
#[derive(Clone, Copy)]
pub(crate) struct WatchedNode<'a> {
    value: &'a Value,
    /// Where it is.
    place: WatchState<'a>,
}

/// Who watches over a value, and the length of the path to it.
#[derive(Clone, Copy)]
pub(crate) struct WatchState<'a> {
    /// None for a property's name, which is no value of the asset.
    watch: Option<&'a Watch<'a>>,
    path_bytes: usize,
}

pub(crate) struct WatchedObject<'a>(&'a Map<String, Value>, WatchState<'a>);
pub(crate) struct WatchedArray<'a>(&'a [Value], WatchState<'a>);
pub(crate) struct Members<'a>(map::Iter<'a>, WatchState<'a>);
pub(crate) struct Elements<'a>(std::slice::Iter<'a, Value>, WatchState<'a>);

/// What the number of an item adds to a path, about.
const ITEM_BYTES: usize = 6;

impl<'a> WatchedNode<'a> {
    /// An asset under a watch.
    pub(crate) fn new(asset: &'a Value, watch: &'a Watch<'a>) -> Self {
        Self { value: asset, place: WatchState { watch: Some(watch), path_bytes: 0 } }
    }

    /// The value, for one look.
    fn look(&self) -> &'a Value {
        self.place.step();
        self.value
    }
}

impl<'a> WatchState<'a> {
    fn step(&self) {
        if let Some(watch) = self.watch {
            watch.step();
        }
    }

    /// A value inside this one.
    fn child(self, value: &'a Value, path_bytes: usize) -> WatchedNode<'a> {
        self.step();
        WatchedNode { value, place: Self { path_bytes: self.path_bytes + path_bytes, ..self } }
    }
}

impl Json for Watched {
    type Node<'a> = WatchedNode<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(WatchedNode<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| {
            f(WatchedNode { value, place: WatchState { watch: None, path_bytes: 0 } })
        })
    }
}

impl<'a> Node<'a, Watched> for WatchedNode<'a> {
    type Object = WatchedObject<'a>;
    type Array = WatchedArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<WatchedObject<'a>> {
        match self.look() {
            Value::Object(members) => Some(WatchedObject(members, self.place)),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<WatchedArray<'a>> {
        match self.look() {
            Value::Array(items) => Some(WatchedArray(items, self.place)),
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.look().as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.look().as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.look().as_bool()
    }

    fn is_null(&self) -> bool {
        self.look().is_null()
    }

    fn json_type(&self) -> JsonType {
        Node::<SerdeJson>::json_type(&self.look())
    }

    fn equals_value(&self, expected: &Value) -> bool {
        cmp::equal(self.look(), expected)
    }

    /// Asked for by each error, and by nothing else that counts.
    fn to_value(&self) -> Cow<'a, Value> {
        if let Some(watch) = self.place.watch {
            watch.error(self.place.path_bytes);
        }
        Cow::Borrowed(quotable(self.value))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Node::<SerdeJson>::identity(&self.look())
    }
}

impl<'a> Object<'a, Watched> for WatchedObject<'a> {
    type Node = WatchedNode<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<WatchedNode<'a>> {
        self.0.get(key).map(|value| self.1.child(value, key.len() + 1))
    }

    fn members(&self) -> Members<'a> {
        Members(self.0.iter(), self.1)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, WatchedNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next()?;
        Some((key, self.1.child(value, key.len() + 1)))
    }
}

impl<'a> Array<'a, Watched> for WatchedArray<'a> {
    type Node = WatchedNode<'a>;
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
    type Item = WatchedNode<'a>;

    fn next(&mut self) -> Option<WatchedNode<'a>> {
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
        testing::any_json,
        watch::{Limits, watched},
    };

    /// Something of every way in which the validator looks at values.
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

    /// The verdict and the issues, as the validator gives them for plain values and for watched ones.
    fn both(asset: &Value) -> [(bool, Vec<Issue>); 2] {
        let plain = jsonschema::draft202012::new(&schema()).expect("compiles");
        let watching = jsonschema::options_for::<Watched>().build(&schema()).expect("compiles");
        let watching = watched(Limits::LISTING, &|| false, |watch| {
            let node = || WatchedNode::new(asset, watch);
            (watching.is_valid(node()), issue::collect(watching.iter_errors(node())))
        });
        [
            (plain.is_valid(asset), issue::collect(plain.iter_errors(asset))),
            watching.expect("not interrupted"),
        ]
    }

    proptest! {
        #[test]
        fn a_watch_changes_no_verdict_and_no_message(asset in any_json()) {
            let [plain, watching] = both(&asset);
            prop_assert_eq!(plain, watching);
        }
    }

    #[test]
    fn a_long_value_is_not_copied_into_errors_and_told_as_before() {
        let long = json!({"a": {"a": "x".repeat(10_000)}, "~": vec![0; 1_000]});
        let [plain, watching] = both(&long);
        assert!(!plain.0 && plain == watching, "{plain:?}\n{watching:?}");
        let error_count = |asset: &Value, error_bytes| {
            let validator =
                jsonschema::options_for::<Watched>().build(&json!({"items": false})).expect("compiles");
            let limits = Limits { error_bytes, ..Limits::NONE };
            watched(limits, &|| false, |watch| validator.iter_errors(WatchedNode::new(asset, watch)).count())
        };
        let asset = json!(vec![0; 1_000]);
        assert_eq!(error_count(&asset, 2 << 20), Ok(1_000));
        assert!(error_count(&asset, 1 << 19).is_err(), "each error is counted");
    }
}
