//! Building blocks of tool results. A result is an enum of structs, each with its own constant `ok` and `reason`, so
//! that the output schema describes every shape exactly.

use std::{borrow::Cow, sync::Arc};

use pintle_contract::ErrorCode;
use pintle_tool::Failure;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// `ok` of a successful result: always true.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Yes;

/// `ok` of a failed result: always false.
#[derive(Clone, Copy, Debug)]
pub(crate) struct No;

macro_rules! constant_boolean {
    ($type:ident $value:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bool($value)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "boolean", "const": $value })
            }
        }
    };
}

constant_boolean!(Yes true);
constant_boolean!(No false);

/// There is nothing of that name.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NotFound {
    ok: No,
    reason: NotFoundReason,
    /// Not part of the result itself; goes into the failure, where a dialect has a message.
    #[serde(skip)]
    message: String,
}

#[derive(Debug, Serialize, JsonSchema)]
enum NotFoundReason {
    #[serde(rename = "not_found")]
    NotFound,
}

impl NotFound {
    /// `message` names what was not found and the nearest known name.
    pub(crate) fn new(message: String) -> Self {
        Self { ok: No, reason: NotFoundReason::NotFound, message }
    }

    pub(crate) fn failure(&self) -> Failure {
        Failure { code: ErrorCode::NotFound, message: self.message.clone(), took_effect: false }
    }
}

/// Serializes a shared value without cloning it first.
pub(crate) fn shared<S: Serializer>(value: &Arc<Value>, serializer: S) -> Result<S::Ok, S::Error> {
    Value::serialize(value, serializer)
}

// Not a doc comment: that would go into the schema of every result.
// The constant `reason` of an invalid asset.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) enum ValidationFailed {
    #[serde(rename = "validation_failed")]
    ValidationFailed,
}
