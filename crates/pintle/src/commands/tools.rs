//! `pintle tools`: what there is to call.

use std::{io, process::ExitCode};

use pintle_engine::{CallLog, Options};
use serde_json::{Value, json};

use crate::{
    cli::ToolsArguments,
    compose,
    error::StartError,
    output,
    settings::{Given, PROGRAM_VERSION, Workspace},
    terminal,
    toolsets::Toolsets,
};

/// Lists the tools.
pub fn run(arguments: ToolsArguments) -> Result<ExitCode, StartError> {
    let workspace = Workspace::decide(&Given::read(arguments.flags)?)?;
    let options = Options { tooling_version: PROGRAM_VERSION.into(), ..Options::default() };
    let engine = compose::build_engine(&workspace, &Toolsets::Auto, options, CallLog::off())?.engine;
    let definitions = engine.catalogue().definitions();
    if arguments.json {
        output::json(&json!({ "tools": definitions }));
    } else if output::is_terminal() {
        output::line(&table(&definitions));
    } else {
        for tool in &definitions {
            output::line(&row(tool).join("\t"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(tool: &Value) -> [String; 3] {
    let text = |name: &str| tool[name].as_str().unwrap_or_default().to_owned();
    [text("name"), tool["schemaVersion"].to_string(), text("description")]
}

fn table(definitions: &[Value]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    table.set_width(terminal::width(&io::stdout()));
    table.set_header(["tool", "version", "what it does"]);
    table.add_rows(definitions.iter().map(row));
    table.to_string()
}
