//! `pintle tool`: writes and checks the manifests of tools.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use pintle_commands::{MANIFEST_SUFFIX, Manifest, check_name, starter};
use pintle_positions::Located;
use serde_json::json;

use crate::{
    cli::{ToolAction, ToolArguments},
    error::StartError,
    notices, output,
    settings::PROGRAM_VERSION,
    toolsets::OWN_TOOLS,
};

/// Writes or checks. Exit code 0 for what is right, 1 for a manifest that is wrong, 2 if a file cannot be written.
pub fn run(arguments: ToolArguments) -> Result<ExitCode, StartError> {
    match arguments.action {
        ToolAction::New { name, dir } => write_new(&name, &dir),
        ToolAction::Check { files, json } => Ok(check(&files, json)),
    }
}

fn write_new(name: &str, folder: &Path) -> Result<ExitCode, StartError> {
    let text = starter(name).map_err(Located::nowhere)?;
    let path = folder.join(format!("{name}{MANIFEST_SUFFIX}"));
    check_name(&Manifest::parse(&text, &path, None)?, &[], &own_tools())?;
    std::fs::create_dir_all(folder)
        .map_err(|error| StartError::NotCreated { folder: folder.to_owned(), error })?;
    // What somebody has written already is left alone.
    let written = File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| StartError::NotWritten { file: path.clone(), error })?;
    output::line(&path.display().to_string());
    Ok(ExitCode::SUCCESS)
}

fn check(files: &[PathBuf], as_json: bool) -> ExitCode {
    let mut are_good = true;
    let mut manifests: Vec<Manifest> = Vec::new();
    for file in files {
        let read = Manifest::read(file);
        match read.and_then(|manifest| check_name(&manifest, &manifests, &own_tools()).map(|()| manifest)) {
            Ok(manifest) => manifests.push(manifest),
            Err(error) => {
                are_good = false;
                notices::error(&error.to_string());
            }
        }
    }
    let definitions: Vec<_> =
        manifests.iter().map(|manifest| manifest.definition.to_json(PROGRAM_VERSION)).collect();
    match as_json {
        true => output::json(&json!({ "tools": definitions })),
        false => definitions.iter().for_each(output::json),
    }
    if are_good { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn own_tools() -> Vec<String> {
    OWN_TOOLS.map(String::from).to_vec()
}
