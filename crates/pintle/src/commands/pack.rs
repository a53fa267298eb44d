//! `pintle pack`: packs of schemas and examples, installed in the state folder.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use pintle_contract::{ErrorCode, Fault};
use pintle_packs::{Added, Manifest, PackName, Packs, Request, Sha256Sum};
use pintle_positions::Located;
use serde_json::json;

use crate::{
    cli::{PackAction, PackArguments},
    download::{self, PackUrl},
    error::StartError,
    notices, output,
    settings::{Given, state_dir},
    state, terminal,
};

/// Installs, lists or removes. Exit code 0, or 2 if something cannot be done.
pub fn run(arguments: PackArguments) -> Result<ExitCode, StartError> {
    let given = Given::read(arguments.flags)?;
    let state_dir = state_dir(&given)?.ok_or(StartError::NoStateForPacks)?;
    state::protect(&state_dir).map_err(Located::nowhere)?;
    let packs = Packs::of_state(&state_dir);
    match arguments.action {
        PackAction::Add { source, sha256, name, replace } => {
            let source = Source::parse(source, sha256)?;
            let name = name.map_or_else(|| source.name(), Ok)?;
            add(&packs, &source, sha256, name, replace)?;
        }
        PackAction::List { json } => list(&packs, json)?,
        PackAction::Remove { name } => {
            packs.remove(&name)?;
            notices::plain(&format!("the pack {name} was removed"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Where an archive comes from.
enum Source {
    File(PathBuf),
    Url(PackUrl),
}

impl Source {
    fn parse(given: PathBuf, sha256: Option<Sha256Sum>) -> Result<Self, Fault> {
        let Some(url) = given.to_str().filter(|text| text.contains("://")) else {
            return Ok(Self::File(given));
        };
        let url = PackUrl::parse(url)?;
        match sha256 {
            Some(_) => Ok(Self::Url(url)),
            None => Err(Fault::new(
                ErrorCode::InvalidRequest,
                "a pack from an address needs its checksum: --sha256 HEX",
            )
            .hint("the publisher of the pack has it; `sha256sum FILE` prints that of a file you have")),
        }
    }

    /// The name of the pack, if none is given.
    fn name(&self) -> Result<PackName, Fault> {
        let file_name = match self {
            Self::File(file) => file.file_name().map(|name| name.to_string_lossy().into_owned()),
            Self::Url(url) => url.file_name(),
        };
        PackName::of_archive(&file_name.unwrap_or_default()).map_err(|error| {
            Fault::new(ErrorCode::InvalidRequest, error.to_string()).hint("choose one with --name NAME")
        })
    }

    /// What the list shows.
    fn shown(&self) -> String {
        match self {
            Self::File(file) => {
                std::path::absolute(file).unwrap_or_else(|_| file.clone()).display().to_string()
            }
            Self::Url(url) => url.shown(),
        }
    }
}

fn add(
    packs: &Packs,
    source: &Source,
    sha256: Option<Sha256Sum>,
    name: PackName,
    replace: bool,
) -> Result<(), StartError> {
    let request = Request { name, source: source.shown(), replace };
    if let Some(manifest) = packs.check_before(&request, sha256)? {
        report(&Added::Unchanged(manifest));
        return Ok(());
    }
    // A file that is not there is found out before anything is made.
    let file = match source {
        Source::File(path) => Some(open(path)?),
        Source::Url(_) => None,
    };
    let staging = packs.stage()?;
    let mut spool = staging.spool()?;
    match (file, source) {
        (Some(mut file), _) => {
            // A pipe says nothing about its size.
            spool.expect(file.metadata().map_or(0, |about| about.len()))?;
            spool.append_from(&mut file)?;
        }
        (None, Source::Url(url)) => download::download(url, &mut spool)?,
        (None, Source::File(_)) => {}
    }
    let archive = spool.finish(sha256)?;
    report(&packs.install(&staging, archive, request)?);
    Ok(())
}

fn open(path: &Path) -> Result<File, Fault> {
    let opened = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => Ok(file),
    });
    opened.map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => ErrorCode::NotFound,
            _ => ErrorCode::InvalidRequest,
        };
        Fault::new(code, format!("the archive {} cannot be read: {error}", path.display())).hint(
            "name a `.tar.gz` or a `.zip`; a folder of schemas needs no pack: name it with --schemas-dir",
        )
    })
}

fn report(added: &Added) {
    let (manifest, what) = match added {
        Added::Installed(manifest) => (manifest, "was installed"),
        Added::Replaced(manifest) => (manifest, "was replaced"),
        Added::Unchanged(manifest) => (manifest, "is installed already, from the same archive"),
    };
    let Manifest { name, schemas, examples, sha256, .. } = manifest;
    notices::plain(&format!(
        "the pack {name} {what}: {schemas} {} of schemas, {examples} of examples, SHA-256 {sha256}; \
         use it with --schemas-dir pack:{name}",
        if *schemas == 1 { "file" } else { "files" }
    ));
}

fn list(packs: &Packs, as_json: bool) -> Result<(), StartError> {
    let (packs, problems) = packs.list()?;
    for problem in problems {
        notices::warning(&problem);
    }
    if as_json {
        output::json(&json!({ "packs": packs }));
    } else if output::is_terminal() && !packs.is_empty() {
        output::line(&table(&packs));
    } else if output::is_terminal() {
        notices::plain("there are no packs; `pintle pack add FILE` installs one");
    } else {
        for pack in &packs {
            output::line(&row(pack).join("\t"));
        }
    }
    Ok(())
}

fn row(pack: &Manifest) -> [String; 6] {
    let Manifest { name, schemas, examples, added, sha256, source, .. } = pack;
    [name.clone(), schemas.to_string(), examples.to_string(), added.clone(), sha256.clone(), source.clone()]
}

fn table(packs: &[Manifest]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    table.set_width(terminal::width(&io::stdout()));
    table.set_header(["pack", "schemas", "examples", "added", "SHA-256", "source"]);
    table.add_rows(packs.iter().map(|pack| {
        let mut row = row(pack);
        // Enough to tell packs apart; `--json` has all of it.
        row[4].truncate(12);
        row
    }));
    table.to_string()
}
