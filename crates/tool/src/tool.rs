//! The interface of a tool, typed for authors and type-erased for the engine.

use std::{future::Future, marker::PhantomData, pin::Pin, sync::Arc, time::Duration};

use pintle_contract::{
    Access, Annotations, ClientHints, ErrorCode, Fault, PathProblem, Permission, Stage, ToolDefinition,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    blocking::block_in_place_if,
    context::CallContext,
    resource::Boxed,
    schema_of::{SchemaUse, convert_whole_floats, schema_of},
};

/// One tool, in one file: its definition, its input, its output, and what it does.
///
/// ```
/// use pintle_contract::{Annotations, Fault, Permission};
/// use pintle_tool::{CallContext, Tool, ToolOutput, erase};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// /// Counts the words of a text.
/// struct CountWords;
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Input {
///     /// The text.
///     text: String,
/// }
///
/// #[derive(Serialize, JsonSchema)]
/// #[schemars(deny_unknown_fields)]
/// struct Output {
///     /// How many words it has.
///     words: usize,
/// }
///
/// impl ToolOutput for Output {}
///
/// impl Tool for CountWords {
///     type Input = Input;
///     type Output = Output;
///
///     const NAME: &'static str = "count_words";
///     const TITLE: &'static str = "Count words";
///     const DESCRIPTION: &'static str = "Counts the words of a text.";
///     const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
///     const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];
///
///     async fn run(&self, input: Input, _: CallContext) -> Result<Output, Fault> {
///         Ok(Output { words: input.text.split_whitespace().count() })
///     }
/// }
///
/// let tool = erase(CountWords);
/// assert_eq!(tool.definition().input_schema["required"], serde_json::json!(["text"]));
/// ```
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
    /// The permissions that a call needs. They are checked before the tool runs.
    const PERMISSIONS: &'static [Permission];
    /// How clients are asked to treat it.
    const CLIENT_HINTS: ClientHints = ClientHints { always_load: false, max_result_chars: None };
    /// Incremented with every change of meaning.
    const SCHEMA_VERSION: u32 = 1;
    /// Older names of the tool, which still work.
    const ALIASES: &'static [&'static str] = &[];
    /// Since which version the tool is deprecated, such as `since 3`.
    const DEPRECATED: Option<&'static str> = None;
    /// Whether a call may become an MCP task, whose result the client fetches later.
    const MAY_BE_TASK: bool = false;
    /// How long a call may run, if other than most tools and unless the server's settings set a timeout.
    const TIMEOUT: Option<Duration> = None;

    /// Repairs an argument that was sent as a text instead of its type, such as `"3-7"` for lines. Texts that are JSON are
    /// converted without this.
    fn reread(_argument: &str, _text: &str) -> Option<Value> {
        None
    }

    /// What is wrong with arguments that the schema cannot tell, such as two that exclude each other. It is reported together
    /// with what does not match the schema, so the arguments need not match it.
    fn check(_arguments: &Value) -> Vec<ArgumentProblem> {
        Vec::new()
    }

    /// Deserializes the arguments, which match the input schema. A tool with large JSON values overrides this and moves
    /// them out, because serde would build them a second time.
    fn read_input(arguments: Value) -> Result<Self::Input, serde_json::Error> {
        serde_json::from_value(arguments)
    }

    /// Runs the call.
    fn run(
        &self,
        input: Self::Input,
        call: CallContext,
    ) -> impl Future<Output = Result<Self::Output, Fault>> + Send;
}

/// A result, which may report a failure in an object of its own.
///
/// ```
/// use pintle_contract::ErrorCode;
/// use pintle_tool::{Failure, ToolOutput};
/// use schemars::JsonSchema;
/// use serde::Serialize;
///
/// #[derive(Serialize, JsonSchema)]
/// struct Published {
///     ok: bool,
/// }
///
/// impl ToolOutput for Published {
///     fn failure(&self) -> Option<Failure> {
///         let message = "the backend refused the asset; change it and publish it again".into();
///         (!self.ok).then(|| Failure { code: ErrorCode::UpstreamFailed, message, took_effect: false })
///     }
/// }
///
/// assert!(Published { ok: true }.failure().is_none());
/// ```
pub trait ToolOutput: Serialize + JsonSchema + Send {
    /// The failure that the result reports, if it does, for dialects with error codes.
    fn failure(&self) -> Option<Failure> {
        None
    }

    /// Whether serializing it takes long.
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
    /// The effect took place all the same, so the result is stored under its idempotency key and the call is not repeated.
    pub took_effect: bool,
}

/// The result of a tool as JSON.
pub struct Answer {
    /// The result object.
    pub value: Value,
    /// Set if the object reports a failure.
    pub failure: Option<Failure>,
    /// Whether validating and serializing it takes long.
    pub is_large: bool,
}

impl Answer {
    /// Whether it reports a failure after something was changed all the same.
    pub fn took_effect(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.took_effect)
    }
}

/// Something that is wrong with the arguments of a call, beyond its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// The JSON pointer of the argument.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// The input of a tool that takes no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// A type-erased tool, as the engine holds it. [`erase`] makes one of a [`Tool`]; a tool whose schemas are known only at
/// run time implements it directly.
///
/// ```
/// use std::sync::Arc;
///
/// use pintle_contract::{Annotations, ClientHints, Fault, Permission, ToolDefinition};
/// use pintle_tool::{Answer, DynTool, Prepared};
/// use serde_json::{Value, json};
///
/// struct Constant(ToolDefinition);
///
/// impl DynTool for Constant {
///     fn definition(&self) -> &ToolDefinition {
///         &self.0
///     }
///
///     fn permissions(&self) -> &[Permission] {
///         &[Permission::AnyCaller]
///     }
///
///     fn prepare<'a>(&'a self, _: Value) -> Result<Prepared<'a>, Fault> {
///         let answer = Answer { value: json!({"answer": 42}), failure: None, is_large: false };
///         Ok(Prepared { run: Box::new(|_| Box::pin(async { Ok(answer) })) })
///     }
/// }
///
/// let tool: Arc<dyn DynTool> = Arc::new(Constant(ToolDefinition {
///     name: "answer".into(),
///     title: "Answer".into(),
///     description: "Returns the answer.".into(),
///     input_schema: json!({"type": "object"}),
///     output_schema: json!({"type": "object"}),
///     annotations: Annotations::READ_ONLY,
///     client_hints: ClientHints { always_load: false, max_result_chars: None },
///     schema_version: 1,
///     aliases: Vec::new(),
///     deprecated: None,
/// }));
/// assert!(tool.prepare(json!({})).is_ok());
/// ```
pub trait DynTool: Send + Sync {
    /// The tool's definition.
    fn definition(&self) -> &ToolDefinition;

    /// The permissions that a call needs. A tool that declares none is not registered.
    fn permissions(&self) -> &[Permission];

    /// The accesses that a call with these arguments needs.
    fn accesses(&self, arguments: &Value) -> Result<Vec<Access>, Fault> {
        let mut accesses = Vec::new();
        for permission in self.permissions() {
            accesses.extend(permission.accesses(arguments).map_err(unusable_path)?);
        }
        Ok(accesses)
    }

    /// See [`Tool::reread`].
    fn reread(&self, _argument: &str, _text: &str) -> Option<Value> {
        None
    }

    /// See [`Tool::check`].
    fn check(&self, _arguments: &Value) -> Vec<ArgumentProblem> {
        Vec::new()
    }

    /// How long a call may run if the server's settings do not set it for this tool; none is as long as any other.
    fn timeout(&self) -> Option<ToolTimeout> {
        None
    }

    /// Whether a call runs a process of its own and waits for it. Such calls have slots of their own, so that other tools
    /// never wait behind them.
    fn runs_process(&self) -> bool {
        false
    }

    /// Waits until another call of this tool may run, if the tool limits its own concurrency. The returned guard is kept
    /// while the call runs. A waiting call holds no slot of the server.
    fn turn(&self) -> Option<Boxed<'_, Box<dyn Send + Sync>>> {
        None
    }

    /// See [`Tool::MAY_BE_TASK`].
    fn may_be_task(&self) -> bool {
        false
    }

    /// Prepares a call. `arguments` match the input schema.
    fn prepare<'a>(&'a self, arguments: Value) -> Result<Prepared<'a>, Fault>;
}

/// How long a tool lets its own calls run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolTimeout {
    /// The tool's own default. A timeout that is set for all tools beats it.
    Default(Duration),
    /// Whoever added the tool has set it. Only a timeout that is set for this very tool beats it.
    Set(Duration),
}

/// Tools that belong together.
pub struct Toolset {
    /// The tools.
    pub tools: Vec<Arc<dyn DynTool>>,
    /// Whether they are listed to clients. Tools that are not listed can still be called.
    pub is_listed: bool,
}

/// The fault for a path that cannot be used.
pub fn unusable_path(problem: PathProblem) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, format!("the path cannot be used: {problem}"))
        .hint("paths are relative to the root of the workspace, such as `src/main.rs`")
}

/// A prepared call.
pub struct Prepared<'a> {
    /// Runs it.
    pub run: Box<dyn FnOnce(CallContext) -> Running<'a> + Send + 'a>,
}

/// A running call.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send + 'a>>;

/// Erases a tool's types.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn DynTool> {
    let definition = ToolDefinition {
        name: T::NAME.to_owned(),
        title: T::TITLE.to_owned(),
        description: T::DESCRIPTION.to_owned(),
        input_schema: schema_of::<T::Input>(SchemaUse::Input),
        output_schema: schema_of::<T::Output>(SchemaUse::Output),
        annotations: T::ANNOTATIONS,
        client_hints: T::CLIENT_HINTS,
        schema_version: T::SCHEMA_VERSION,
        aliases: T::ALIASES.iter().map(|alias| (*alias).to_owned()).collect(),
        deprecated: T::DEPRECATED.map(str::to_owned),
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

    fn permissions(&self) -> &[Permission] {
        T::PERMISSIONS
    }

    fn reread(&self, argument: &str, text: &str) -> Option<Value> {
        T::reread(argument, text)
    }

    fn check(&self, arguments: &Value) -> Vec<ArgumentProblem> {
        T::check(arguments)
    }

    fn timeout(&self) -> Option<ToolTimeout> {
        T::TIMEOUT.map(ToolTimeout::Default)
    }

    fn may_be_task(&self) -> bool {
        T::MAY_BE_TASK
    }

    fn prepare<'a>(&'a self, mut arguments: Value) -> Result<Prepared<'a>, Fault> {
        convert_whole_floats(&mut arguments, &self.definition.input_schema);
        let input = T::read_input(arguments).map_err(|error| {
            Fault::invalid(Stage::Arguments, format!("the arguments do not fit: {error}"))
        })?;
        let run = move |call: CallContext| -> Running<'a> {
            Box::pin(async move {
                let output = self.tool.run(input, call).await?;
                let is_large = output.is_large();
                let value = block_in_place_if(is_large, || serde_json::to_value(&output))
                    .map_err(|_| Fault::internal("the result could not be written as JSON"))?;
                Ok(Answer { value, failure: output.failure(), is_large })
            })
        };
        Ok(Prepared { run: Box::new(run) })
    }
}
