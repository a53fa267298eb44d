//! The error table, and the one error type that crosses crates.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// Whether the same call may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The call has to change first.
    No,
    /// The caller has to do something else first (named in the table), then can try again.
    After(&'static str),
    /// The same call may succeed later.
    Yes,
}

/// How far a call got when it failed. Decides the JSON-RPC number of `INVALID_REQUEST`, and whether HTTP
/// shows the failure in its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The frame was too large.
    Size,
    /// The frame was not JSON.
    Parse,
    /// The outer object was wrong.
    Envelope,
    /// No such method.
    Method,
    /// No such tool.
    Tool,
    /// The arguments did not match.
    Arguments,
    /// The caller's scopes do not cover it.
    Authorize,
    /// All slots were taken and the queue was full.
    Admission,
    /// The tool was reached; it may have run.
    Run,
}

/// One row of the error table.
#[derive(Clone, Copy, Debug)]
pub struct ErrorRow {
    /// The code.
    pub code: ErrorCode,
    /// The code in the protocol.
    pub name: &'static str,
    /// HTTP status.
    pub http: u16,
    /// JSON-RPC number.
    pub json_rpc: i32,
    /// Whether to try again.
    pub retry: Retry,
    /// When it is used.
    pub when: &'static str,
}

macro_rules! error_table {
    ($($code:ident $name:literal $http:literal $json_rpc:literal $retry:expr, $when:literal;)*) => {
        /// The code of an error: what programs act on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $when] $code,)*
        }

        /// Every error code, its numbers and its meaning.
        pub const ERROR_TABLE: &[ErrorRow] = &[
            $(ErrorRow {
                code: ErrorCode::$code,
                name: $name,
                http: $http,
                json_rpc: $json_rpc,
                retry: $retry,
                when: $when,
            },)*
        ];
    };
}

error_table! {
    InvalidRequest "INVALID_REQUEST" 400 -32602 Retry::No, "The request is malformed, names something unknown, or does not match its schema.";
    Unauthorized "UNAUTHORIZED" 401 401 Retry::No, "No token, or a bad one.";
    Forbidden "FORBIDDEN" 403 403 Retry::No, "A scope is missing, or the path is read-only.";
    NotFound "NOT_FOUND" 404 404 Retry::No, "No such file, schema, example or resource.";
    Conflict "CONFLICT" 409 409 Retry::After("re-read"), "Something changed in between, exists already, or a key was used for something else.";
    NoIndex "NO_INDEX" 409 409 Retry::After("index_build"), "A search without an index.";
    ArchiveTooLarge "ARCHIVE_TOO_LARGE" 413 413 Retry::No, "A pack over the limits.";
    ArchiveUnsafe "ARCHIVE_UNSAFE" 422 422 Retry::No, "A pack that escapes, links or bombs.";
    Cancelled "CANCELLED" 499 499 Retry::Yes, "The client cancelled, or the server is stopping.";
    Internal "INTERNAL" 500 -32603 Retry::Yes, "A bug; the log has the trace.";
    CapabilityMissing "CAPABILITY_MISSING" 501 501 Retry::No, "A part that is not configured or not built in.";
    InvalidOutput "INVALID_OUTPUT" 502 502 Retry::No, "A tool broke its own output schema.";
    UpstreamFailed "UPSTREAM_FAILED" 502 502 Retry::Yes, "The backend, the key server, a command or the file system failed.";
    DownloadVerifyFailed "DOWNLOAD_VERIFY_FAILED" 502 502 Retry::Yes, "A pack's checksum is wrong.";
    QueueOverloaded "QUEUE_OVERLOADED" 503 503 Retry::Yes, "The queue is full.";
    ToolTimeout "TOOL_TIMEOUT" 504 504 Retry::Yes, "The call ran over its deadline.";
}

impl ErrorCode {
    /// This code's row of the table.
    pub fn row(self) -> &'static ErrorRow {
        // The macro declares the enum and the table in the same order.
        &ERROR_TABLE[self as usize]
    }

    /// The code in the protocol.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether the same call may succeed later, perhaps after something else was done.
    pub fn is_retryable(self) -> bool {
        self.row().retry != Retry::No
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// An error on its way to the caller.
#[derive(Clone, Debug)]
pub struct Fault(Box<FaultBody>);

/// The error object of the protocol, and the stage at which the call failed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultBody {
    /// What was found, what was expected, what to do next.
    pub message: String,
    /// What programs act on.
    pub code: ErrorCode,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Facts for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The tail of a command's error output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The tail of a command's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// The deadline that was missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How far the call got.
    #[serde(skip)]
    pub stage: Stage,
    /// Something was changed all the same, so the error is stored under its idempotency key and the call is not repeated.
    #[serde(skip)]
    pub took_effect: bool,
}

impl Fault {
    /// A fault of a tool that ran or was about to run.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(FaultBody {
            message: message.into(),
            code,
            hint: None,
            details: None,
            stderr: None,
            stdout: None,
            timeout_ms: None,
            stage: Stage::Run,
            took_effect: false,
        }))
    }

    /// An `INVALID_REQUEST` at a stage.
    pub fn invalid(stage: Stage, message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message).at(stage)
    }

    /// Sets the stage.
    #[must_use]
    pub fn at(mut self, stage: Stage) -> Self {
        self.0.stage = stage;
        self
    }

    /// The same fault with another message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Says that something was changed all the same.
    #[must_use]
    pub fn after_effect(mut self) -> Self {
        self.0.took_effect = true;
        self
    }

    /// A bug. The message must not quote what the caller sent.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds facts for programs.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Adds what a command printed last, to standard output and to standard error.
    #[must_use]
    pub fn printed(mut self, stdout: Option<String>, stderr: Option<String>) -> Self {
        (self.0.stdout, self.0.stderr) = (stdout, stderr);
        self
    }

    /// Adds the deadline that was missed.
    #[must_use]
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.0.timeout_ms = Some(timeout_ms);
        self
    }

    /// The number that JSON-RPC clients see.
    pub fn json_rpc_code(&self) -> i32 {
        match (self.code, self.stage) {
            (ErrorCode::InvalidRequest, Stage::Parse) => -32700,
            (ErrorCode::InvalidRequest, Stage::Envelope | Stage::Size) => -32600,
            (ErrorCode::InvalidRequest, Stage::Method) => -32601,
            (code, _) => code.row().json_rpc,
        }
    }

    /// The status that HTTP clients see.
    pub fn http_status(&self) -> u16 {
        match (self.code, self.stage) {
            (ErrorCode::InvalidRequest, Stage::Size) => 413,
            (code, _) => code.row().http,
        }
    }
}

impl std::ops::Deref for Fault {
    type Target = FaultBody;

    fn deref(&self) -> &FaultBody {
        &self.0
    }
}

impl Serialize for Fault {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_row_of_the_table_is_found_by_its_own_code() {
        for row in ERROR_TABLE {
            assert_eq!(row.code.row().name, row.name);
        }
    }

    #[test]
    fn application_numbers_stay_out_of_the_reserved_range() {
        for row in ERROR_TABLE {
            let standard = [-32700, -32600, -32601, -32602, -32603].contains(&row.json_rpc);
            assert!(standard || row.json_rpc == i32::from(row.http), "{}", row.name);
        }
    }

    #[test]
    fn an_invalid_request_has_the_number_of_its_stage() {
        for (stage, json_rpc, http) in [
            (Stage::Size, -32600, 413),
            (Stage::Parse, -32700, 400),
            (Stage::Envelope, -32600, 400),
            (Stage::Method, -32601, 400),
            (Stage::Tool, -32602, 400),
            (Stage::Arguments, -32602, 400),
            (Stage::Run, -32602, 400),
        ] {
            let fault = Fault::invalid(stage, "x");
            assert_eq!((fault.json_rpc_code(), fault.http_status()), (json_rpc, http));
        }
    }

    #[test]
    fn absent_parts_do_not_travel() {
        let fault = Fault::new(ErrorCode::ToolTimeout, "too slow").timeout_ms(5);
        assert_eq!(
            serde_json::to_value(&fault).expect("serializes"),
            json!({"message": "too slow", "code": "TOOL_TIMEOUT", "timeoutMs": 5})
        );
    }
}
