//! `pintle contract`: locks the tool surface of a server and shows what a change of it breaks.

mod built_in;
mod judging;
mod lint;
mod report;
mod source;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use pintle_surface::{Comparison, Outcome, Surface, compare};
use rustix::fs::RenameFlags;

use crate::{
    cli::{ContractAction, ContractArguments, ContractFormat, ServerArguments},
    error::{ContractError, StartError},
    notices, output,
    replace_file::replace_file,
};

use self::{built_in::listed_surface, judging::judge_all, source::Sources};

pub use self::judging::run_worker;

/// Where the lock is if no other file is named.
const LOCK: &str = "contract.lock.json";

/// Exit code 0: nothing breaks without a bump; 1: something does, or a bump is missing; 2: unknown, or an error.
pub fn run(arguments: ContractArguments) -> Result<ExitCode, StartError> {
    if let ContractAction::Judge = arguments.action {
        return run_worker();
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::System)?;
    runtime.block_on(source::until_signal(|sources| act(arguments.action, sources)))
}

async fn act(action: ContractAction, sources: Sources) -> Result<ExitCode, StartError> {
    match action {
        ContractAction::Print { surface, server } => {
            output::line(&written(&sources.one(surface.as_deref(), &server).await?));
            Ok(ExitCode::SUCCESS)
        }
        ContractAction::Accept { lock, server } => {
            let lock = lock.unwrap_or_else(|| PathBuf::from(LOCK));
            accept(&lock, &sources.one(None, &server).await?)
        }
        ContractAction::Check { lock, server, format } => {
            let lock = lock.unwrap_or_else(|| PathBuf::from(LOCK));
            if !lock.exists() {
                return Err(ContractError::NoLock(lock).into());
            }
            let old = sources.file(&lock)?;
            let new = sources.one(None, &server).await?;
            let comparison = compared(&old, &new, &sources).await?;
            report::show(&comparison, format.chosen(), &lock);
            if server.is_none() && comparison.outcome() == Outcome::Passes && old != new {
                notices::plain(&format!(
                    "the lock is out of date: `pintle contract accept {}`",
                    lock.display()
                ));
            }
            Ok(exit_code(&comparison))
        }
        ContractAction::Diff { surfaces, server, format } => {
            let (old, new, at) = both(&surfaces, &server, &sources).await?;
            let comparison = compared(&old, &new, &sources).await?;
            report::show(&comparison, format.chosen(), &at);
            Ok(exit_code(&comparison))
        }
        ContractAction::Lint { surface, client, server, format } => {
            let linted = match surface.is_none() && server.is_none() {
                true => listed_surface()?,
                false => sources.one(surface.as_deref(), &server).await?,
            };
            lint::run(&linted, &client, format.chosen())
        }
        ContractAction::Judge => run_worker(),
    }
}

/// The two surfaces of `diff`: two files, or a file and a server.
async fn both(
    surfaces: &[PathBuf],
    server: &ServerArguments,
    sources: &Sources,
) -> Result<(Surface, Surface, PathBuf), StartError> {
    match (surfaces, server.is_none()) {
        ([old, new], true) => Ok((sources.file(old)?, sources.file(new)?, new.clone())),
        ([old], false) => Ok((sources.file(old)?, sources.one(None, server).await?, old.clone())),
        _ => Err(ContractError::TwoSurfaces.into()),
    }
}

async fn compared(old: &Surface, new: &Surface, sources: &Sources) -> Result<Comparison, StartError> {
    let mut judged = judge_all(old, new, sources.spawner()).await?.into_iter();
    Ok(compare(old, new, &mut |_| judged.next().unwrap_or_default()))
}

fn exit_code(comparison: &Comparison) -> ExitCode {
    ExitCode::from(match comparison.outcome() {
        Outcome::Passes => 0,
        Outcome::Fails => 1,
        Outcome::Unknown => 2,
    })
}

/// Writes the lock, completely or not at all.
fn accept(lock: &Path, surface: &Surface) -> Result<ExitCode, StartError> {
    let text = written(surface);
    if std::fs::read_to_string(lock).is_ok_and(|present| present.trim_end() == text) {
        notices::plain(&format!("{} is up to date", lock.display()));
        return Ok(ExitCode::SUCCESS);
    }
    // As for any other file of the project, the umask decides who may read it.
    replace_file(lock, text.as_bytes(), 0o666, RenameFlags::empty())
        .map_err(|error| StartError::NotWritten { file: lock.to_owned(), error })?;
    notices::plain(&format!("{} has {} tools", lock.display(), surface.tools.len()));
    Ok(ExitCode::SUCCESS)
}

fn written(surface: &Surface) -> String {
    format!("{:#}", surface.to_lock())
}

impl ServerArguments {
    fn is_none(&self) -> bool {
        self.server.is_none() && self.url.is_none()
    }
}

impl crate::cli::FormatArguments {
    fn chosen(&self) -> ContractFormat {
        match self.json {
            true => ContractFormat::Json,
            false => self.format,
        }
    }
}
