//! `pintle audit`: checks an audit log.

use std::process::ExitCode;

use crate::{
    audit,
    cli::{AuditAction, AuditArguments},
    error::StartError,
    notices, output,
    secret::SecretFolder,
    settings::{Given, state_dir},
};

/// Checks a log. Exit code 0 if it is what was written, 1 if it is not, 2 if it cannot be read.
pub fn run(arguments: AuditArguments) -> Result<ExitCode, StartError> {
    let given = Given::read(arguments.flags)?;
    let key = SecretFolder::new(state_dir(&given)?.as_deref())?.audit_key()?;
    let AuditAction::Verify { log } = arguments.action;
    match audit::verify(&log, &key) {
        Ok(lines) => {
            output::line(&format!("{}: {lines} lines, none changed, removed or added", log.display()));
            Ok(ExitCode::SUCCESS)
        }
        Err(error @ audit::AuditLogError::Io { .. }) => Err(error.into()),
        Err(error) => {
            notices::error(&error.to_string());
            Ok(ExitCode::from(1))
        }
    }
}
