//! A tree of real sources that is already on the machine: crates that Cargo has unpacked for the build.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
};

use super::{
    groups::Group,
    tree::{self, Tree},
};

/// How many bytes of them are used.
const SIZE: u64 = 64 << 20;

pub fn make(_quick: bool) -> Result<Tree, String> {
    let crates = crates()?;
    let workspace = tree::workspace();
    let (mut size, mut count) = (0, 0);
    for folder in crates {
        let target = workspace.root().join(folder.file_name().expect("a name"));
        tree::copy(&folder, &target, &mut |file, target| {
            if size < SIZE {
                size += fs::copy(file, target).expect("enough disk space");
                count += 1;
                plant(target, count);
            }
        });
        if size >= SIZE {
            break;
        }
    }
    eprintln!("{count} files of unpacked crates, {} MiB", size >> 20);
    Ok(Tree {
        name: "crates",
        workspace,
        has_bar: false,
        suits_codesearch: true,
        groups: Group::of_planted(&["return"]),
        common: &["return", "pub fn", "impl", "self", "let mut"],
        renamed: None,
    })
}

/// The folders of the crates, by name.
fn crates() -> Result<Vec<PathBuf>, String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo"))).ok_or("there is no home of Cargo")?;
    let inside = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let registries = inside(&home.join("registry/src"));
    let mut crates: Vec<_> = registries.iter().flat_map(|registry| inside(registry)).collect();
    crates.sort_by_key(|folder| folder.file_name().map(ToOwned::to_owned));
    if crates.is_empty() { Err("Cargo has unpacked no crates".to_owned()) } else { Ok(crates) }
}

/// Adds a line with a planted literal to a few files, because the crates differ from machine to machine.
fn plant(file: &Path, count: usize) {
    if count % 400 != 200 || file.extension().is_none_or(|extension| extension != "rs") {
        return;
    }
    let mut file = fs::File::options().append(true).open(file).expect("a file of ours");
    writeln!(file, "\n// {}{}", super::groups::PLANTED, count / 400 % 4).expect("enough disk space");
}
