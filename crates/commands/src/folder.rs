//! The folder of manifests.

use std::path::{Path, PathBuf};

use pintle_positions::Located;

use crate::{
    error::{FolderError, Here, ManifestError},
    inside::is_within,
    manifest::Manifest,
};

/// How the name of a manifest ends.
pub const MANIFEST_SUFFIX: &str = ".tool.toml";

/// What a folder of manifests holds.
#[derive(Default)]
pub struct Loaded {
    /// The manifests, by name of the file.
    pub manifests: Vec<Manifest>,
    /// What is wrong with others, with file, line and column.
    pub problems: Vec<Problem>,
}

/// A manifest that cannot be used.
#[derive(Debug)]
pub struct Problem {
    /// What is wrong with it, with file, line and column.
    pub error: Located<ManifestError>,
    /// Its file, which may still be being written.
    pub file: PathBuf,
}

/// Reads all manifests of a folder. `taken` are the names of tools that no manifest may have. `Err` says what is wrong
/// with the first that cannot be used, with file, line and column.
pub fn load(folder: &Path, root: &Path, taken: &[String]) -> Result<Vec<Manifest>, FolderError> {
    let loaded = reload(folder, root, taken, &[])?;
    match loaded.problems.into_iter().next() {
        Some(problem) => Err(problem.error.into()),
        None => Ok(loaded.manifests),
    }
}

/// Reads all manifests of a folder again. One that cannot be used stays as it was before, if it was there; all others are
/// as they are in the folder. `Err` if the folder cannot be read.
pub fn reload(
    folder: &Path,
    root: &Path,
    taken: &[String],
    before: &[Manifest],
) -> Result<Loaded, FolderError> {
    let mut loaded = Loaded::default();
    let mut changed = Vec::new();
    let old = |file: &Path| before.iter().find(|manifest| manifest.file == file);
    for file in files(folder)? {
        let read = refuse_file(&file, root).map_err(Located::nowhere).and_then(|()| Manifest::read(&file));
        match read.and_then(|manifest| check_name(&manifest, &[], taken).map(|()| manifest)) {
            Ok(manifest) if old(&file).is_some_and(|old| old.is_same(&manifest)) => {
                loaded.manifests.push(manifest)
            }
            Ok(manifest) => changed.push(manifest),
            // It was removed since the folder was read.
            Err(_) if file.symlink_metadata().is_err() => {}
            Err(error) => {
                loaded.manifests.extend(old(&file).cloned());
                loaded.problems.push(Problem { error, file });
            }
        }
    }
    // A name belongs to the manifest that had it before.
    for manifest in changed {
        let Err(error) = check_name(&manifest, &loaded.manifests, &[]) else {
            loaded.manifests.push(manifest);
            continue;
        };
        let kept = old(&manifest.file).filter(|old| check_name(old, &loaded.manifests, &[]).is_ok());
        loaded.manifests.extend(kept.cloned());
        loaded.problems.push(Problem { error, file: manifest.file });
    }
    loaded.manifests.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(loaded)
}

/// Refuses a name that another tool has, in either spelling.
pub fn check_name(
    manifest: &Manifest,
    others: &[Manifest],
    taken: &[String],
) -> Result<(), Located<ManifestError>> {
    let (name, own) = (manifest.name().to_owned(), spelling(manifest.name()));
    if taken.iter().any(|other| spelling(other) == own) {
        return Err(manifest.name_location().error(ManifestError::BuiltInName(name)));
    }
    match others.iter().find(|other| spelling(other.name()) == own) {
        Some(other) => {
            let other = Box::new(other.name_location().error(Here));
            Err(manifest.name_location().error(ManifestError::NameOfOther { name, other }))
        }
        None => Ok(()),
    }
}

/// Refuses a folder of manifests that the tools could write to: whoever writes a manifest runs programs.
pub fn refuse_folder(folder: &Path, root: &Path) -> Result<(), FolderError> {
    let real =
        folder.canonicalize().map_err(|error| FolderError::NotOpened { folder: folder.to_owned(), error })?;
    if !real.is_dir() {
        return Err(FolderError::NotAFolder(folder.to_owned()));
    }
    if is_within(&real, root) {
        return Err(FolderError::InsideRoot { folder: folder.to_owned(), root: root.to_owned() });
    }
    Ok(())
}

fn refuse_file(file: &Path, root: &Path) -> Result<(), ManifestError> {
    let real =
        file.canonicalize().map_err(|error| ManifestError::NotRead { file: file.to_owned(), error })?;
    if is_within(&real, root) {
        return Err(ManifestError::LinkIntoRoot { file: file.to_owned(), target: real });
    }
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let not_read = |error: std::io::Error| FolderError::NotRead { folder: folder.to_owned(), error };
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(not_read)? {
        let entry = entry.map_err(not_read)?;
        let name = entry.file_name();
        if name.to_string_lossy().ends_with(MANIFEST_SUFFIX) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn spelling(name: &str) -> String {
    pintle_contract::underscore_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str) -> String {
        format!("name = \"{name}\"\ndescription = \"x\"\ncommand = [\"/bin/true\"]\n")
    }

    #[test]
    fn a_folder_that_the_tools_could_write_to_is_refused() {
        let temporary = tempfile::tempdir().expect("a folder");
        let base = temporary.path().canonicalize().expect("a path");
        let (root, tools) = (base.join("root"), base.join("tools"));
        std::fs::create_dir_all(root.join("inside")).expect("folders");
        std::fs::create_dir(&tools).expect("a folder");
        refuse_folder(&tools, &root).expect("a folder outside the root");
        for folder in [root.clone(), root.join("inside"), root.join("none")] {
            assert!(refuse_folder(&folder, &root).is_err(), "{}", folder.display());
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join("inside"), base.join("link")).expect("a link");
            assert!(refuse_folder(&base.join("link"), &root).is_err());
            std::fs::write(root.join("x"), manifest("x")).expect("writes");
            std::os::unix::fs::symlink(root.join("x"), tools.join("x.tool.toml")).expect("a link");
            let problem = load(&tools, &root, &[]).expect_err("refused").to_string();
            assert!(problem.contains("lies inside the root"), "{problem}");
        }
    }

    #[test]
    fn manifests_are_read_in_order_and_names_are_theirs_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).expect("writes");
        write("b.tool.toml", &manifest("b"));
        write("a.tool.toml", &manifest("a.x"));
        write("other.toml", "nonsense");
        let names =
            |manifests: Vec<Manifest>| manifests.iter().map(|one| one.name().to_owned()).collect::<Vec<_>>();
        let loaded = load(folder.path(), Path::new("/root"), &[]).expect("manifests");
        assert_eq!(names(loaded), ["a.x", "b"]);
        write("c.tool.toml", &manifest("a_x"));
        let problem = load(folder.path(), Path::new("/root"), &[]).expect_err("refused").to_string();
        assert!(problem.contains("c.tool.toml: line 1, column 8: `a_x` is the name of another"), "{problem}");
        assert!(problem.contains("a.tool.toml: line 1, column 8"), "{problem}");
    }
    #[test]
    fn a_manifest_that_becomes_invalid_stays_as_it_was_and_all_others_are_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |file: &str| folder.path().join(format!("{file}.tool.toml"));
        let write = |file: &str, text: &str| std::fs::write(path(file), text).expect("writes");
        let again = |before: &[Manifest]| {
            let loaded =
                reload(folder.path(), Path::new("/root"), &["taken".into()], before).expect("a folder");
            let names: Vec<_> = loaded.manifests.iter().map(|one| one.name().to_owned()).collect();
            (loaded.manifests, names.join(" "), loaded.problems.len())
        };
        ["a", "b", "c"].into_iter().for_each(|name| write(name, &manifest(name)));
        let (before, names, problems) = again(&[]);
        assert_eq!((names.as_str(), problems), ("a b c", 0));
        write("a", "nonsense");
        std::fs::remove_file(path("b")).expect("removes");
        write("c", &manifest("c.x"));
        write("d", &manifest("d"));
        let (before, names, problems) = again(&before);
        assert_eq!((names.as_str(), problems), ("a c.x d", 1));
        // A name that is another's leaves its manifest as it was, too, and one that was not there is not.
        write("a", &manifest("d"));
        write("d", &manifest("taken"));
        write("e", &manifest("c_x"));
        let (_, names, problems) = again(&before);
        assert_eq!((names.as_str(), problems), ("a c.x d", 3));
    }

    #[test]
    fn what_is_no_file_of_a_reasonable_size_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.tool.toml");
        let problem = || load(folder.path(), Path::new("/root"), &[]).expect_err("refused").to_string();
        std::fs::create_dir(&path).expect("a folder");
        assert!(problem().contains("is not a file"), "{}", problem());
        std::fs::remove_dir(&path).expect("removes");
        std::fs::write(&path, format!("# {}\n{}", "x".repeat(2 << 20), manifest("x"))).expect("writes");
        assert!(problem().contains("more than 1048576 bytes"), "{}", problem());
        #[cfg(unix)]
        for special in ["/dev/zero", "/dev/tty"] {
            std::fs::remove_file(&path).expect("removes");
            std::os::unix::fs::symlink(special, &path).expect("a link");
            assert!(problem().contains("is not a file"), "{}", problem());
        }
    }
}
