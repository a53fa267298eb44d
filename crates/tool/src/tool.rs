//! What a tool is, for those who write one.

use std::{future::Future, marker::PhantomData, pin::Pin, sync::Arc, time::Duration};

use pintle_contract::{Access, Annotations, ClientHints, ErrorCode, Fault, Need, Stage, ToolDefinition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    blocking::block_in_place_if,
    context::CallContext,
    resource::Boxed,
    schema_of::{SchemaUse, schema_of, settle_integers},
};

/// One tool, in one file: its definition, its input, its output, and what it does.
///
/// ```
/// use pintle_contract::{Annotations, Fault};
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
    /// How clients are asked to treat it.
    const CLIENT_HINTS: ClientHints = ClientHints { always_load: false, max_result_chars: None };
    /// Rises with every change of meaning.
    const SCHEMA_VERSION: u32 = 1;
    /// Whether a call may outlive the request that made it: its client then asks for the result later.
    const MAY_BE_TASK: bool = false;
    /// How long a call may run, if other than most tools and unless the server's settings set a timeout.
    const TIMEOUT: Option<Duration> = None;

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
    /// them out by hand: reading a JSON value from a JSON value would build all of it again.
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
    /// Set if the object reports a failure.
    pub failure: Option<Failure>,
    /// Whether it takes long to check and to write.
    pub is_large: bool,
}

impl Answer {
    /// Whether it reports a failure after something was changed all the same.
    pub fn took_effect(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.took_effect)
    }
}

/// The input of a tool that takes no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// A tool with its types erased, as those who serve tools hold it. [`erase`] makes one of a [`Tool`]; a tool whose schemas
/// are known only at run time implements it itself.
///
/// ```
/// use std::sync::Arc;
///
/// use pintle_contract::{Annotations, ClientHints, Fault, ToolDefinition};
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
///     fn prepare<'a>(&'a self, _: Value) -> Result<Prepared<'a>, Fault> {
///         let answer = Answer { value: json!({"answer": 42}), failure: None, is_large: false };
///         Ok(Prepared { access: Vec::new(), run: Box::new(|_| Box::pin(async { Ok(answer) })) })
///     }
/// }
///
/// let tool: Arc<dyn DynTool> = Arc::new(Constant(ToolDefinition {
///     name: "answer".into(),
///     title: "Answer".into(),
///     description: "Gives the answer.".into(),
///     input_schema: json!({"type": "object"}),
///     output_schema: json!({"type": "object"}),
///     annotations: Annotations::READ_ONLY,
///     client_hints: ClientHints { always_load: false, max_result_chars: None },
///     schema_version: 1,
/// }));
/// assert!(tool.prepare(json!({})).is_ok());
/// ```
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

    /// How long a call may run if the server's settings do not set it for this tool; none is as long as any other.
    fn timeout(&self) -> Option<ToolTimeout> {
        None
    }

    /// Whether a call runs a process of its own and waits for it. Such calls have slots of their own, so that other tools
    /// never wait behind them.
    fn runs_process(&self) -> bool {
        false
    }

    /// Waits until another call of this tool may run, if fewer may run at a time than the server allows. What comes out is
    /// kept while the call runs. A call that waits for its turn holds no slot.
    fn turn(&self) -> Option<Boxed<'_, Box<dyn Send + Sync>>> {
        None
    }

    /// See [`Tool::MAY_BE_TASK`].
    fn may_be_task(&self) -> bool {
        false
    }

    /// Gets ready to work. `arguments` have passed the input schema.
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
        input_schema: schema_of::<T::Input>(SchemaUse::Input),
        output_schema: schema_of::<T::Output>(SchemaUse::Output),
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

    fn timeout(&self) -> Option<ToolTimeout> {
        T::TIMEOUT.map(ToolTimeout::Default)
    }

    fn may_be_task(&self) -> bool {
        T::MAY_BE_TASK
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
                let value = block_in_place_if(is_large, || serde_json::to_value(&output))
                    .map_err(|_| Fault::internal("the result could not be written as JSON"))?;
                Ok(Answer { value, failure: output.failure(), is_large })
            })
        };
        Ok(Prepared { access, run: Box::new(run) })
    }
}
