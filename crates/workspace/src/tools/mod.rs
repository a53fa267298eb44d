//! The tools, one a file.

mod check_status;
mod show_file;
mod workspace_status;

use std::sync::Arc;

use pintle_tool::{DynTool, erase};

use crate::{config::WorkspaceConfig, line_reader::LineReader, search_reporter::SearchReporter};

/// The tools of a workspace.
pub fn tools<S: SearchReporter>(
    config: WorkspaceConfig,
    files: impl LineReader,
    search: S,
) -> Vec<Arc<dyn DynTool>> {
    let (config, search) = (Arc::new(config), Arc::new(search));
    vec![
        erase(check_status::CheckStatus { config: Arc::clone(&config), search: Arc::clone(&search) }),
        erase(show_file::ShowFile { files }),
        erase(workspace_status::WorkspaceStatus { config, search }),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pintle_contract::{ErrorCode, Fault, Permissions, Scopes};
    use pintle_tool::{CallContext, Caller};
    use schemars::JsonSchema;
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Binding, Capability, CapabilityState, Health, Lines, Warning};

    /// A file of three lines, whatever its path.
    struct OneFile;

    impl LineReader for OneFile {
        async fn read_lines(&self, _: &CallContext, path: &str, lines: [i64; 2]) -> Result<Lines, Fault> {
            if path == "gone" {
                return Err(Fault::new(ErrorCode::NotFound, "there is nothing at gone"));
            }
            let (content, first_line) = match lines {
                [2, 0] => ("fn two() {\n}\n", 2),
                _ => ("// one\nfn two() {\n}\n", 1),
            };
            Ok(Lines { content: content.into(), hash: "h".into(), total_lines: 3, first_line })
        }
    }

    /// A search toolset in which something may be broken.
    struct FakeSearch(CapabilityState);

    #[derive(Serialize, JsonSchema)]
    struct FakeIndex {
        exists: bool,
    }

    impl SearchReporter for FakeSearch {
        type IndexState = FakeIndex;

        fn index_state(&self, _: &CallContext) -> Result<FakeIndex, Fault> {
            Ok(FakeIndex { exists: true })
        }

        fn health(&self, _: &CallContext) -> Result<Health, Fault> {
            Ok(Health {
                capabilities: vec![Capability { name: "text search", state: self.0 }],
                warnings: vec![Warning { message: "slow".into(), remedy: "wait".into() }],
            })
        }
    }

    fn config(root: &Path) -> WorkspaceConfig {
        WorkspaceConfig {
            root: root.to_owned(),
            schemas: vec!["thing".into()],
            bindings: ["open/*.json", "closed/**"]
                .map(|path| Binding { path: path.into(), schema: "thing".into() })
                .into(),
            warnings: vec!["a schema is broken".into()],
            ..WorkspaceConfig::default()
        }
    }

    async fn call(
        root: &Path,
        search: CapabilityState,
        caller: Caller,
        name: &str,
        arguments: Value,
    ) -> Result<Value, Fault> {
        let tools = tools(config(root), OneFile, FakeSearch(search));
        let tool = tools.iter().find(|tool| tool.definition().name == name).expect("a tool");
        let running = (tool.prepare(arguments)?.run)(CallContext::detached(caller));
        Ok(running.await?.value)
    }

    #[tokio::test]
    async fn a_file_is_shown_with_the_numbers_of_its_lines_and_on_request_with_what_it_defines() {
        let root = tempfile::tempdir().expect("a folder");
        let show =
            |arguments| call(root.path(), CapabilityState::Works, Caller::local(), "show_file", arguments);
        assert_eq!(
            show(json!({"path": "a.zzz"})).await.expect("shown"),
            json!({"text": "1\t// one\n2\tfn two() {\n3\t}\n", "hash": "h", "total_lines": 3})
        );
        assert_eq!(
            show(json!({"path": "a.rs", "lines": [2, 0], "outline": true})).await.expect("shown"),
            json!({
                "text": "2\tfn two() {\n3\t}\n",
                "hash": "h",
                "total_lines": 3,
                "language": "rust",
                "outline": [{"kind": "function", "name": "two", "line": 2, "endLine": 3}],
            })
        );
        assert_eq!(show(json!({"path": "gone"})).await.expect_err("refused").code, ErrorCode::NotFound);
    }

    #[tokio::test]
    async fn health_is_that_of_all_parts_in_a_fixed_order() {
        let root = tempfile::tempdir().expect("a folder");
        let check = |search| call(root.path(), search, Caller::local(), "check_status", json!({}));
        assert_eq!(
            check(CapabilityState::Works).await.expect("checked"),
            json!({
                "ok": true,
                "capabilities": [
                    {"name": "files", "state": "works"},
                    {"name": "text search", "state": "works"},
                    {"name": "git", "state": "off"},
                    {"name": "schemas", "state": "works"},
                    {"name": "backend", "state": "off"},
                ],
                "warnings": [
                    {"message": "slow", "remedy": "wait"},
                    {"message": "a schema is broken", "remedy": "fix it and restart the server"},
                ],
            })
        );
        assert_eq!(check(CapabilityState::Off).await.expect("checked")["ok"], true);
        assert_eq!(check(CapabilityState::Broken).await.expect("checked")["ok"], false);
        let gone = root.path().join("gone");
        let checked = call(&gone, CapabilityState::Works, Caller::local(), "check_status", json!({})).await;
        let checked = checked.expect("checked");
        assert_eq!((&checked["ok"], &checked["capabilities"][0]["state"]), (&json!(false), &json!("broken")));
    }

    #[tokio::test]
    async fn the_state_of_the_workspace_leaves_out_bindings_that_the_caller_may_not_read() {
        let root = tempfile::tempdir().expect("a folder");
        let caller = Caller::local()
            .restricted_to(Permissions::new(Scopes::parse(["read:/open"]).expect("scopes"), Arc::default()));
        for (caller, paths) in
            [(Caller::local(), json!(["open/*.json", "closed/**"])), (caller, json!(["open/*.json"]))]
        {
            let status = call(root.path(), CapabilityState::Works, caller, "workspace_status", json!({}));
            let status = status.await.expect("a status");
            let bindings = status["bindings"].as_array().expect("bindings");
            assert_eq!(bindings.iter().map(|binding| binding["path"].clone()).collect::<Value>(), paths);
            assert_eq!(status["index"], json!({"exists": true}));
            assert_eq!(status["root"], json!(root.path()));
            assert!(status.get("git").is_none() && status.get("gitProblem").is_none());
        }
    }
}
