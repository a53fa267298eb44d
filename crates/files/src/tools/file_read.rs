//! `file.read`.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use pintle_contract::{Annotations, ErrorCode, Fault, Permission, Verb};
use pintle_tool::{CallContext, LARGE, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    files::{self, Files},
    hash::Hash,
    store::Source,
};

pub(crate) struct FileRead(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// The bytes, in Base64.
    content: String,
    /// The hash of the file; the next edit takes it.
    hash: String,
    /// The size in bytes.
    size: u64,
}

impl ToolOutput for Output {
    fn is_large(&self) -> bool {
        self.content.len() > LARGE
    }
}

/// The size limit of a file: as Base64 it is a third larger and still fits into a reply.
const MAX_BYTES: u64 = 5 << 20;

fn too_large(size: u64) -> Fault {
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("the file has {size} bytes; file.read returns at most {MAX_BYTES}"),
    )
    .hint("use text.read for some lines of a text file")
    .details(json!({"size": size, "limit": MAX_BYTES}))
}

impl Tool for FileRead {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "file.read";
    const TITLE: &'static str = "Read a file";
    const DESCRIPTION: &'static str = "Use this for files that are not text: returns the bytes of a file as Base64, with its hash. For text use text.read.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Read, "/path")];

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let path = files::path(&input.path)?;
        let work = |source: &dyn Source, _: &dyn Fn() -> bool| {
            let size = source.size();
            if size > MAX_BYTES {
                return Err(too_large(size).into());
            }
            let mut content = vec![0; usize::try_from(size).unwrap_or_default()];
            let mut offset = 0;
            while offset < content.len() {
                let count = source.read_at(offset as u64, &mut content[offset..])?;
                if count == 0 {
                    break;
                }
                offset += count;
            }
            // The file may have been truncated in the meantime.
            content.truncate(offset);
            let hash = Hash::of(&content).to_string();
            Ok(Output { size: content.len() as u64, content: BASE64_STANDARD.encode(content), hash })
        };
        self.0.read(&call, path, work).await
    }
}
