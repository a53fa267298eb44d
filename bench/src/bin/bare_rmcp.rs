//! A minimal MCP server on the official SDK: one tool, no checks, no log.
//!
//! The baseline for the overhead of Pintle. `--http` serves the SDK's own Streamable HTTP on a free port; `--pipes` uses
//! the SDK's non-blocking pipes instead of its plain ones.

use std::sync::Arc;

use axum::serve::ListenerExt;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, io::stdio_pipes, stdio,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde_json::{Map, json};

/// The same as Pintle's, so that the allocator makes no difference.
#[cfg(not(feature = "system-allocator"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    match std::env::args().nth(1).as_deref() {
        Some("--http") => serve_http().await,
        Some("--pipes") => serve_stdio(stdio_pipes()).await,
        _ => serve_stdio(stdio()).await,
    }
}

async fn serve_stdio<R, W>((reader, writer): (R, W)) -> Result<(), Failure>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    Bare.serve((reader, writer)).await?.waiting().await?;
    Ok(())
}

async fn serve_http() -> Result<(), Failure> {
    let service = StreamableHttpService::new(
        || Ok(Bare),
        Arc::<LocalSessionManager>::default(),
        StreamableHttpServerConfig::default(),
    );
    let router = axum::Router::new().route_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("mcp:ready mode=http addr={}", listener.local_addr()?);
    // Without TCP_NODELAY the kernel would delay the ends of replies.
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    Ok(axum::serve(listener, router).await?)
}

#[derive(Clone)]
struct Bare;

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut schema = Map::new();
        schema.insert("type".into(), json!("object"));
        let tool = Tool::new("test_echo", "Returns the value that it is given.", schema);
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != "test_echo" {
            return Err(ErrorData::invalid_params("no such tool", None));
        }
        let mut arguments = request.arguments.unwrap_or_default();
        let output = json!({"value": arguments.remove("value")});
        let mut result = CallToolResult::success(vec![ContentBlock::text(output.to_string())]);
        result.structured_content = Some(output);
        result.is_error = None;
        Ok(result.into())
    }
}
