//! What answers MCP, whoever implements it.

use std::sync::Arc;

use rmcp::{
    RoleServer, ServerHandler,
    model::JsonObject,
    service::{DynService, ServiceExt},
};

use super::{McpHandler, TaskStore};

/// Makes the services of the SDK that answer clients: one for each pipe, session or stateless request.
pub trait McpService: Send + Sync + 'static {
    /// A service for one client.
    fn service(&self) -> Box<dyn DynService<RoleServer>>;

    /// The input schema of a tool, for the headers that repeat its arguments.
    fn input_schema(&self, tool: &str) -> Option<Arc<JsonObject>>;

    /// The calls that outlive their requests, which a transport cancels and waits for when it ends.
    fn tasks(&self) -> &Arc<TaskStore>;
}

impl McpService for McpHandler {
    fn service(&self) -> Box<dyn DynService<RoleServer>> {
        self.clone().into_dyn()
    }

    fn input_schema(&self, tool: &str) -> Option<Arc<JsonObject>> {
        self.get_tool(tool).map(|tool| tool.input_schema)
    }

    fn tasks(&self) -> &Arc<TaskStore> {
        McpHandler::tasks(self)
    }
}
