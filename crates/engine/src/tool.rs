//! What a tool is, for those who write one.

use std::{future::Future, marker::PhantomData, pin::Pin, sync::Arc, time::Duration};

use pintle_auth::{Access, Need};
use pintle_contract::{Annotations, ClientHints, ErrorCode, Fault, Stage, ToolDefinition};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{aside::aside_if, context::CallContext};

/// One tool, in one file: what it says of itself, what it takes, what it gives, what it does.
pub trait Tool: Send + Sync + 'static {
    /// The arguments. Must refuse unknown fields (`#[serde(deny_unknown_fields)]`).
    type Input: DeserializeOwned + JsonSchema + Send + 'static;
    /// The result.
    type Output: ToolOutput;

    /// The stable identifier.
    const NAME: &'static str;
    /// A short name for people.
    const TITLE: &'static str;
    /// What the tool does, for the model that chooses it.
    const DESCRIPTION: &'static str;
    /// Hints for clients.
    const ANNOTATIONS: Annotations;
    /// How clients are asked to treat it.
    const CLIENT_HINTS: ClientHints = ClientHints { always_load: false, max_result_chars: None };
    /// Rises with every change of meaning.
    const SCHEMA_VERSION: u32 = 1;

    /// What every call needs, whatever its arguments. A caller who cannot have it is not shown the tool.
    fn need() -> Need {
        Need::Nothing
    }

    /// What is meant by a text in place of an argument of another type, such as `"3-7"` for lines. JSON texts are
    /// converted without asking.
    fn reread(_argument: &str, _text: &str) -> Option<Value> {
        None
    }

    /// Reads the arguments, which have passed the input schema. A tool that takes large values moves
    /// them out by hand: reading a JSON value from a JSON value would build all of it anew.
    fn read_input(arguments: Value) -> Result<Self::Input, serde_json::Error> {
        serde_json::from_value(arguments)
    }

    /// What the caller must be allowed to do, by what it asks for.
    fn access(_input: &Self::Input) -> Result<Vec<Access>, Fault> {
        Ok(Vec::new())
    }

    /// Does the work.
    fn run(
        &self,
        input: Self::Input,
        call: CallContext,
    ) -> impl Future<Output = Result<Self::Output, Fault>> + Send;
}

/// A result, which may be a failure in the toolset's own words.
pub trait ToolOutput: Serialize + JsonSchema + Send {
    /// How other dialects should name the failure, if this is one.
    fn failure(&self) -> Option<Failure> {
        None
    }

    /// Whether it takes long to write.
    fn is_large(&self) -> bool {
        false
    }
}

/// A failure that has a result object of its own.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The code from the error table.
    pub code: ErrorCode,
    /// What happened and what to do next.
    pub message: String,
    /// The effect took place all the same: an idempotency key must not let it happen again.
    pub took_effect: bool,
}

/// What came out of a tool, untyped.
pub struct Answer {
    /// The result object.
    pub value: Value,
    /// Set if the object tells of a failure.
    pub failure: Option<Failure>,
    /// Whether it takes long to check and to write.
    pub is_large: bool,
}

impl Answer {
    /// Whether it tells of a failure after something was changed all the same.
    pub(crate) fn took_effect(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.took_effect)
    }
}

/// The input of a tool that takes no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// A tool with its types erased, as the engine holds it.
pub trait DynTool: Send + Sync {
    /// What the tool says of itself.
    fn definition(&self) -> &ToolDefinition;

    /// See [`Tool::need`].
    fn need(&self) -> Need {
        Need::Nothing
    }

    /// See [`Tool::reread`].
    fn reread(&self, _argument: &str, _text: &str) -> Option<Value> {
        None
    }

    /// How long a call may run if the server's settings do not say it for this tool; none is as long as any other.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Gets ready to work. `arguments` have passed the input schema.
    fn prepare<'a>(&'a self, arguments: Value) -> Result<Prepared<'a>, Fault>;
}

/// Tools that belong together.
pub struct Toolset {
    /// The tools.
    pub tools: Vec<Arc<dyn DynTool>>,
    /// Whether clients are shown them. What is not shown can be called all the same.
    pub is_listed: bool,
}

/// Work that is ready to be done.
pub struct Prepared<'a> {
    /// What the caller must be allowed to do.
    pub access: Vec<Access>,
    /// Does it.
    pub run: Box<dyn FnOnce(CallContext) -> Running<'a> + Send + 'a>,
}

/// Work that is being done.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send + 'a>>;

/// Erases a tool's types.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn DynTool> {
    let definition = ToolDefinition {
        name: T::NAME.to_owned(),
        title: T::TITLE.to_owned(),
        description: T::DESCRIPTION.to_owned(),
        input_schema: schema_of::<T::Input>(|settings| settings, SchemaUse::Input),
        output_schema: schema_of::<T::Output>(SchemaSettings::for_serialize, SchemaUse::Output),
        annotations: T::ANNOTATIONS,
        client_hints: T::CLIENT_HINTS,
        schema_version: T::SCHEMA_VERSION,
    };
    Arc::new(Erased { tool, definition, types: PhantomData::<fn(T::Input) -> T::Output> })
}

struct Erased<T, Types> {
    tool: T,
    definition: ToolDefinition,
    types: PhantomData<Types>,
}

impl<T: Tool, Types: Send + Sync> DynTool for Erased<T, Types> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn need(&self) -> Need {
        T::need()
    }

    fn reread(&self, argument: &str, text: &str) -> Option<Value> {
        T::reread(argument, text)
    }

    fn prepare<'a>(&'a self, mut arguments: Value) -> Result<Prepared<'a>, Fault> {
        settle_integers(&mut arguments, &self.definition.input_schema);
        let input = T::read_input(arguments).map_err(|error| {
            Fault::invalid(Stage::Arguments, format!("the arguments do not fit: {error}"))
        })?;
        let access = T::access(&input).map_err(|fault| fault.at(Stage::Arguments))?;
        let run = move |call: CallContext| -> Running<'a> {
            Box::pin(async move {
                let output = self.tool.run(input, call).await?;
                let is_large = output.is_large();
                let value = aside_if(is_large, || serde_json::to_value(&output))
                    .map_err(|_| Fault::internal("the result could not be written as JSON"))?;
                Ok(Answer { value, failure: output.failure(), is_large })
            })
        };
        Ok(Prepared { access, run: Box::new(run) })
    }
}

/// A self-contained object schema: MCP wants `type: object` at the root, and clients differ in how
/// well they follow references.
fn schema_of<T: JsonSchema>(adjust: fn(SchemaSettings) -> SchemaSettings, schema_use: SchemaUse) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = SchemaGenerator::new(adjust(settings)).into_root_schema_for::<T>().to_value();
    drop_rust_formats(&mut schema, schema_use);
    if let Value::Object(map) = &mut schema {
        map.remove("title");
        map.remove("description");
        map.entry("type").or_insert(json!("object"));
        if !map.contains_key("anyOf") {
            map.entry("properties").or_insert(json!({}));
        }
        map.sort_keys();
    }
    schema
}

/// Who sends what a schema describes.
#[derive(Clone, Copy)]
enum SchemaUse {
    /// The caller: what is out of bounds is refused.
    Input,
    /// The tool: what it gives needs no bounds.
    Output,
}

/// `uint32` and its like are no formats of JSON Schema, and some clients refuse what they do not know:
/// their bounds say the same in words that all know.
///
/// No bound is beyond 2^53, up to which a JavaScript number is exact: clients would pass on a rounded one, and model
/// APIs refuse a whole request for a bound that is no 64-bit integer.
fn drop_rust_formats(schema: &mut Value, schema_use: SchemaUse) {
    const LARGEST: i64 = (1 << 53) - 1;
    match schema {
        Value::Object(map) => {
            let wide = |bound: Value| matches!(schema_use, SchemaUse::Input).then_some(bound);
            let limits = match map.get("format").and_then(Value::as_str) {
                Some("uint8") => Some((Some(json!(0)), Some(json!(u8::MAX)))),
                Some("uint16") => Some((Some(json!(0)), Some(json!(u16::MAX)))),
                Some("uint32") => Some((Some(json!(0)), Some(json!(u32::MAX)))),
                Some("uint64" | "uint") => Some((Some(json!(0)), wide(json!(LARGEST)))),
                Some("int32") => Some((Some(json!(i32::MIN)), Some(json!(i32::MAX)))),
                Some("int64" | "int") => Some((wide(json!(-LARGEST)), wide(json!(LARGEST)))),
                _ => None,
            };
            if let Some((minimum, maximum)) = limits {
                map.remove("format");
                for (name, limit) in [("minimum", minimum), ("maximum", maximum)] {
                    if let Some(limit) = limit {
                        map.entry(name).or_insert(limit);
                    }
                }
            }
            map.values_mut().for_each(|schema| drop_rust_formats(schema, schema_use));
        }
        Value::Array(items) => items.iter_mut().for_each(|schema| drop_rust_formats(schema, schema_use)),
        _ => {}
    }
}

/// JSON Schema calls 1.0 an integer; Rust does not. Writes such arguments as the integers that they are.
fn settle_integers(arguments: &mut Value, schema: &Value) {
    match arguments {
        Value::Object(members) => {
            for (name, value) in members {
                settle_integers(value, &schema["properties"][name.as_str()]);
            }
        }
        Value::Array(elements) if schema["items"]["type"] == "integer" => {
            elements.iter_mut().for_each(|element| settle_integers(element, &schema["items"]));
        }
        // The schema has seen that it is whole.
        number if number.is_f64() && schema["type"] == "integer" => {
            *number = match number.as_f64().unwrap_or_default() {
                float if float < 0.0 => json!(float as i64),
                float => json!(float as u64),
            };
        }
        _ => {}
    }
}
