//! Where a surface comes from: this program, a file, a folder, or a running server.

use std::{
    future::Future,
    io::Read as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use pintle_client::{ask_command, ask_url};
use pintle_process::Spawner;
use pintle_surface::{Surface, read_document};
use serde_json::Value;

use crate::{
    cli::ServerArguments,
    commands::serve::{drain::end_commands, signals::Signals},
    error::{ContractError, StartError},
    notices,
};

use super::built_in::built_in_surface;

/// The largest file that is read.
const LARGEST: u64 = 64 << 20;
/// The most files of a folder that are read.
const MOST_FILES: usize = 10_000;

/// What surfaces are read with.
#[derive(Clone)]
pub struct Sources {
    spawner: Spawner,
}

/// Runs something that may start programs. All of them have ended when this returns, also after a signal.
pub async fn until_signal<F>(act: impl FnOnce(Sources) -> F) -> Result<ExitCode, StartError>
where
    F: Future<Output = Result<ExitCode, StartError>>,
{
    let spawner = Spawner::new(notices::error);
    let mut signals = Signals::listen().map_err(StartError::System)?;
    let ended = tokio::select! {
        ended = act(Sources { spawner: spawner.clone() }) => ended,
        () = signals.next() => Ok(ExitCode::from(130)),
    };
    end_commands(spawner).await;
    ended
}

impl Sources {
    pub fn spawner(&self) -> &Spawner {
        &self.spawner
    }

    /// The surface of a file, of a server, or of this program if neither is named.
    pub async fn one(&self, file: Option<&Path>, server: &ServerArguments) -> Result<Surface, StartError> {
        let unusable = |error| ContractError::Surface { from: "the server".to_owned(), error };
        let refused = |error| StartError::from(ContractError::Server(error));
        match (file, &server.server, &server.url) {
            (Some(file), None, None) => self.file(file),
            (None, Some(command), None) => {
                let document = ask_command(&self.spawner, command, server.timeout).await.map_err(refused)?;
                Ok(Surface::from_json(&document).map_err(unusable)?)
            }
            (None, None, Some(url)) => {
                let headers =
                    server.header.iter().map(|header| header.parse()).collect::<Result<Vec<_>, _>>();
                let asked = ask_url(url, &headers.map_err(refused)?, server.timeout).await;
                let document = asked.map_err(refused)?;
                Ok(Surface::from_json(&document).map_err(unusable)?)
            }
            (None, None, None) => built_in_surface(),
            _ => Err(ContractError::OneSource.into()),
        }
    }

    /// The surface of a file, or of a folder with a file for each tool.
    pub fn file(&self, path: &Path) -> Result<Surface, StartError> {
        let document = match path.is_dir() {
            true => Value::Array(self::folder(path)?),
            false => read(path)?,
        };
        let from = path.display().to_string();
        Ok(Surface::from_json(&document).map_err(|error| ContractError::Surface { from, error })?)
    }
}

fn folder(folder: &Path) -> Result<Vec<Value>, ContractError> {
    let not_read = |error| ContractError::NotRead { file: folder.to_owned(), error };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(not_read)? {
        let path = entry.map_err(not_read)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("json" | "snap")) && files.len() < MOST_FILES {
            files.push(path);
        }
    }
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(path: &Path) -> Result<Value, ContractError> {
    let not_read = |error| ContractError::NotRead { file: path.to_owned(), error };
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().take(LARGEST + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)),
    };
    let read = read.map_err(not_read)?;
    if read as u64 > LARGEST {
        return Err(ContractError::TooLarge { file: path.to_owned(), limit: LARGEST >> 20 });
    }
    read_document(&bytes).map_err(|error| ContractError::Document { file: path.to_owned(), error })
}
