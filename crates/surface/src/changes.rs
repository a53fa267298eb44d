//! Where two versions of a schema differ, keyword by keyword.
//!
//! The structure says where something changed; it does not say what that breaks. Each change can be applied alone to the
//! old schema, so that the algebra can judge it by itself.

use std::collections::BTreeSet;

use pintle_contract::pointer_segment;
use serde_json::{Map, Value, json};

use crate::dialect::is_annotation;

/// How many changes of one schema are listed; further ones are one change of the whole schema.
const MOST_CHANGES: usize = 200;

/// What changed at one place of a schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChangeKind {
    /// A member is declared that was not.
    MemberAdded { required: bool },
    /// A member is no longer declared.
    MemberRemoved { required: bool },
    /// A member that was optional is required.
    MadeRequired,
    /// A member that was required is optional.
    MadeOptional,
    /// What a value may be.
    Values,
    /// The default of an argument.
    Default,
    /// The declared number of a meaning, `x-meaning`.
    Meaning,
    /// A text for people and models.
    Text,
}

/// One difference between two schemas.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    /// Where it is: in the new schema, or in the old one for what was removed.
    pub(crate) pointer: String,
    pub(crate) old: Value,
    pub(crate) new: Value,
    /// The pointer of the schema that the edit changes.
    node: String,
    edit: Edit,
}

/// How a change is made to the old schema.
#[derive(Clone, Debug)]
enum Edit {
    /// Nothing that decides about values.
    None,
    Replace(Value),
    /// Keywords, each with its old and its new value.
    Set(Vec<(String, Option<Value>, Option<Value>)>),
    AddMember {
        name: String,
        schema: Value,
        require: bool,
    },
    RemoveMember {
        name: String,
        release: bool,
    },
    Require(String),
    Release(String),
}

impl Change {
    /// The old schema with this change alone.
    pub(crate) fn apply(&self, old: &Value, new: &Value) -> Value {
        self.edit.made(&self.node, old, new)
    }

    /// The new schema without this change.
    pub(crate) fn revert(&self, old: &Value, new: &Value) -> Value {
        self.edit.inverse(&self.old).made(&self.node, new, old)
    }
}

impl Edit {
    /// `schema` with this edit at `node`; definitions that it lacks come from `other`.
    fn made(&self, node: &str, schema: &Value, other: &Value) -> Value {
        let mut changed = schema.clone();
        add_definitions(&mut changed, other);
        match (self, changed.pointer_mut(node)) {
            (Self::Replace(value), Some(node)) => *node = value.clone(),
            (edit, Some(Value::Object(node))) => edit.apply(node),
            _ => return other.clone(),
        }
        changed
    }

    /// The edit that undoes this one; `old` is what stood there.
    fn inverse(&self, old: &Value) -> Self {
        match self.clone() {
            Self::None => Self::None,
            Self::Replace(_) => Self::Replace(old.clone()),
            Self::Set(keywords) => {
                Self::Set(keywords.into_iter().map(|(keyword, old, new)| (keyword, new, old)).collect())
            }
            Self::AddMember { name, require, .. } => Self::RemoveMember { name, release: require },
            Self::RemoveMember { name, release } => {
                Self::AddMember { name, schema: old.clone(), require: release }
            }
            Self::Require(name) => Self::Release(name),
            Self::Release(name) => Self::Require(name),
        }
    }

    fn apply(&self, node: &mut Map<String, Value>) {
        match self {
            Self::None | Self::Replace(_) => {}
            Self::Set(keywords) => {
                for (keyword, _, value) in keywords {
                    match value {
                        Some(value) => node.insert(keyword.clone(), value.clone()),
                        None => node.shift_remove(keyword),
                    };
                }
            }
            Self::AddMember { name, schema, require } => {
                if let Value::Object(members) = node.entry("properties").or_insert_with(|| json!({})) {
                    members.insert(name.clone(), schema.clone());
                }
                if *require {
                    Self::Require(name.clone()).apply(node);
                }
            }
            Self::RemoveMember { name, release } => {
                if let Some(Value::Object(members)) = node.get_mut("properties") {
                    members.shift_remove(name);
                }
                if *release {
                    Self::Release(name.clone()).apply(node);
                }
            }
            Self::Require(name) => {
                if let Value::Array(names) = node.entry("required").or_insert_with(|| json!([])) {
                    names.push(json!(name));
                }
            }
            Self::Release(name) => {
                if let Some(Value::Array(names)) = node.get_mut("required") {
                    names.retain(|other| other.as_str() != Some(name));
                }
            }
        }
    }
}

/// A changed part may refer to definitions that only the new schema has.
fn add_definitions(changed: &mut Value, new: &Value) {
    let Value::Object(changed) = changed else { return };
    for keyword in ["$defs", "definitions"] {
        let Some(Value::Object(definitions)) = new.get(keyword) else { continue };
        if let Value::Object(known) = changed.entry(keyword).or_insert_with(|| json!({})) {
            for (name, definition) in definitions {
                known.entry(name.clone()).or_insert_with(|| definition.clone());
            }
        }
    }
}

/// The differences between two schemas, in the order of the new one.
pub(crate) fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(old, new, "", &mut found);
    if found.len() > MOST_CHANGES {
        let texts = found.iter().filter(|change| change.kind == ChangeKind::Text).take(MOST_CHANGES).cloned();
        let mut few: Vec<Change> = texts.collect();
        few.push(whole(old, new, ""));
        return few;
    }
    found
}

/// A keyword with its old and its new value.
type ChangedKeyword<'a> = (&'a str, Option<&'a Value>, Option<&'a Value>);

fn compare(old: &Value, new: &Value, at: &str, found: &mut Vec<Change>) {
    if old == new {
        return;
    }
    let (Value::Object(old_node), Value::Object(new_node)) = (old, new) else {
        found.push(whole(old, new, at));
        return;
    };
    compare_members(old_node, new_node, at, found);
    let mut changed: Vec<ChangedKeyword<'_>> = Vec::new();
    let keywords: BTreeSet<&String> = old_node.keys().chain(new_node.keys()).collect();
    for keyword in keywords {
        let (old, new) = (old_node.get(keyword), new_node.get(keyword));
        if old == new {
            continue;
        }
        let below = format!("{at}/{}", pointer_segment(keyword));
        match keyword.as_str() {
            "properties" | "required" => {}
            "default" => found.push(annotation(ChangeKind::Default, &below, old, new)),
            "x-meaning" => found.push(annotation(ChangeKind::Meaning, &below, old, new)),
            "$schema" | "$id" | "id" | "$comment" => {}
            keyword if is_annotation(keyword) => found.push(annotation(ChangeKind::Text, &below, old, new)),
            "$defs" | "definitions" => compare_maps(old, new, &below, found),
            _ => {
                if !compare_below(old, new, keyword, &below, found) {
                    changed.push((keyword, old, new));
                }
            }
        }
    }
    match changed.as_slice() {
        [] => {}
        [(keyword, old, new)] => found.push(Change {
            kind: ChangeKind::Values,
            pointer: format!("{at}/{}", pointer_segment(keyword)),
            old: old.cloned().unwrap_or_default(),
            new: new.cloned().unwrap_or_default(),
            node: at.to_owned(),
            edit: Edit::Set(vec![((*keyword).to_owned(), old.cloned(), new.cloned())]),
        }),
        several => {
            let of = |pick: fn(&ChangedKeyword<'_>) -> Option<Value>| -> Value {
                let values = several.iter().filter_map(|change| Some((change.0.to_owned(), pick(change)?)));
                Value::Object(values.collect())
            };
            found.push(Change {
                kind: ChangeKind::Values,
                pointer: at.to_owned(),
                old: of(|change| change.1.cloned()),
                new: of(|change| change.2.cloned()),
                node: at.to_owned(),
                edit: Edit::Set(
                    several
                        .iter()
                        .map(|(keyword, old, new)| ((*keyword).to_owned(), old.cloned(), new.cloned()))
                        .collect(),
                ),
            });
        }
    }
}

fn compare_members(old: &Map<String, Value>, new: &Map<String, Value>, at: &str, found: &mut Vec<Change>) {
    let empty = Map::new();
    let members = |node: &'_ Map<String, Value>| match node.get("properties") {
        Some(Value::Object(members)) => members.clone(),
        _ => empty.clone(),
    };
    let required = |node: &Map<String, Value>| -> BTreeSet<String> {
        let names = node.get("required").and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (old_members, new_members) = (members(old), members(new));
    let (old_required, new_required) = (required(old), required(new));
    let at_member = |name: &str| format!("{at}/properties/{}", pointer_segment(name));
    for (name, new) in &new_members {
        match old_members.get(name) {
            Some(old) => compare(old, new, &at_member(name), found),
            None => {
                let require = new_required.contains(name) && !old_required.contains(name);
                found.push(Change {
                    kind: ChangeKind::MemberAdded { required: new_required.contains(name) },
                    pointer: at_member(name),
                    old: Value::Null,
                    new: new.clone(),
                    node: at.to_owned(),
                    edit: Edit::AddMember { name: name.clone(), schema: new.clone(), require },
                });
            }
        }
    }
    for (name, old) in old_members.iter().filter(|(name, _)| !new_members.contains_key(*name)) {
        let release = old_required.contains(name) && !new_required.contains(name);
        found.push(Change {
            kind: ChangeKind::MemberRemoved { required: old_required.contains(name) },
            pointer: at_member(name),
            old: old.clone(),
            new: Value::Null,
            node: at.to_owned(),
            edit: Edit::RemoveMember { name: name.clone(), release },
        });
    }
    let in_both = |name: &String| old_members.contains_key(name) == new_members.contains_key(name);
    for name in new_required.difference(&old_required).filter(|name| in_both(name)) {
        found.push(Change {
            kind: ChangeKind::MadeRequired,
            pointer: format!("{at}/required"),
            old: Value::Null,
            new: json!(name),
            node: at.to_owned(),
            edit: Edit::Require(name.clone()),
        });
    }
    for name in old_required.difference(&new_required).filter(|name| in_both(name)) {
        found.push(Change {
            kind: ChangeKind::MadeOptional,
            pointer: format!("{at}/required"),
            old: json!(name),
            new: Value::Null,
            node: at.to_owned(),
            edit: Edit::Release(name.clone()),
        });
    }
}

/// Compares what both sides have under a keyword, if each part of one has its counterpart in the other.
fn compare_below(
    old: Option<&Value>,
    new: Option<&Value>,
    keyword: &str,
    below: &str,
    found: &mut Vec<Change>,
) -> bool {
    match (keyword, old, new) {
        (
            "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames",
            Some(old @ Value::Object(_)),
            Some(new @ Value::Object(_)),
        ) => {
            compare(old, new, below, found);
            true
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems", Some(Value::Array(old)), Some(Value::Array(new)))
            if old.len() == new.len() =>
        {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(old, new, &format!("{below}/{index}"), found);
            }
            true
        }
        ("patternProperties" | "dependentSchemas", Some(Value::Object(old)), Some(Value::Object(new)))
            if old.len() == new.len() && old.keys().all(|name| new.contains_key(name)) =>
        {
            for (name, old) in old {
                compare(old, &new[name], &format!("{below}/{}", pointer_segment(name)), found);
            }
            true
        }
        _ => false,
    }
}

/// Compares definitions that both sides have. One that is new or gone changes nothing until it is referred to.
fn compare_maps(old: Option<&Value>, new: Option<&Value>, below: &str, found: &mut Vec<Change>) {
    let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) else { return };
    for (name, old) in old {
        if let Some(new) = new.get(name) {
            compare(old, new, &format!("{below}/{}", pointer_segment(name)), found);
        }
    }
}

fn whole(old: &Value, new: &Value, at: &str) -> Change {
    Change {
        kind: ChangeKind::Values,
        pointer: at.to_owned(),
        old: old.clone(),
        new: new.clone(),
        node: at.to_owned(),
        edit: Edit::Replace(new.clone()),
    }
}

fn annotation(kind: ChangeKind, pointer: &str, old: Option<&Value>, new: Option<&Value>) -> Change {
    Change {
        kind,
        pointer: pointer.to_owned(),
        old: old.cloned().unwrap_or_default(),
        new: new.cloned().unwrap_or_default(),
        node: String::new(),
        edit: Edit::None,
    }
}
