//! The interface that the status tools need of the search toolset.

use pintle_contract::Fault;
use pintle_tool::CallContext;
use schemars::JsonSchema;
use serde::Serialize;

use crate::health::Health;

/// Reports the state of search. Both methods may block: they are called on a blocking thread.
pub trait SearchReporter: Send + Sync + 'static {
    /// The state of the index, in the form in which `index_status` returns it.
    type IndexState: Serialize + JsonSchema + Send + 'static;

    /// The state of the index, for what the caller may read.
    fn index_state(&self, call: &CallContext) -> Result<Self::IndexState, Fault>;

    /// Whether each kind of search works.
    fn health(&self, call: &CallContext) -> Result<Health, Fault>;
}
