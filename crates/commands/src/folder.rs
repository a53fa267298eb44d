//! The folder of manifests.

use std::path::{Path, PathBuf};

use crate::manifest::Manifest;

/// How the name of a manifest ends.
pub const MANIFEST_SUFFIX: &str = ".tool.toml";

/// Reads all manifests of a folder, by name of the file. `Err` says what is wrong, with file, line and column.
pub fn load(folder: &Path, root: &Path) -> Result<Vec<Manifest>, String> {
    let mut manifests: Vec<Manifest> = Vec::new();
    for file in files(folder)? {
        refuse_file(&file, root)?;
        let manifest = Manifest::read(&file)?;
        let is_same = |other: &&Manifest| spelling(other.name()) == spelling(manifest.name());
        if let Some(other) = manifests.iter().find(is_same) {
            let problem = format!(
                "`{}` is the name of another manifest's tool, too: {}",
                manifest.name(),
                other.name_problem("here")
            );
            return Err(manifest.name_problem(problem));
        }
        manifests.push(manifest);
    }
    Ok(manifests)
}

/// Refuses a folder of manifests that the tools could write to: whoever writes a manifest runs programs.
pub fn refuse_folder(folder: &Path, root: &Path) -> Result<(), String> {
    let real = folder
        .canonicalize()
        .map_err(|error| format!("the tools folder {} cannot be opened: {error}", folder.display()))?;
    if !real.is_dir() {
        return Err(format!("the tools folder {} is not a folder", folder.display()));
    }
    if real.starts_with(root) || real.ancestors().any(|above| is_same_folder(above, root)) {
        return Err(format!(
            "the tools folder {} lies inside the root {}, where the tools could write manifests and so run any \
             program; move it outside, or choose a smaller --root",
            folder.display(),
            root.display()
        ));
    }
    Ok(())
}

fn refuse_file(file: &Path, root: &Path) -> Result<(), String> {
    let real = file.canonicalize().map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    if real.starts_with(root) {
        return Err(format!(
            "the manifest {} is a link to {}, which lies inside the root, where the tools could change it and so run \
             any program; copy it here instead",
            file.display(),
            real.display()
        ));
    }
    Ok(())
}

/// Whether two paths are one folder, perhaps by a mount.
#[cfg(unix)]
fn is_same_folder(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| path.metadata().map(|there| (there.dev(), there.ino())).ok();
    identity(one).is_some_and(|known| identity(other) == Some(known))
}

#[cfg(not(unix))]
fn is_same_folder(one: &Path, other: &Path) -> bool {
    one == other
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let problem =
        |error: std::io::Error| format!("the tools folder {} cannot be read: {error}", folder.display());
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(problem)? {
        let entry = entry.map_err(problem)?;
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
        assert_eq!(refuse_folder(&tools, &root), Ok(()));
        for folder in [root.clone(), root.join("inside"), root.join("none")] {
            assert!(refuse_folder(&folder, &root).is_err(), "{}", folder.display());
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join("inside"), base.join("link")).expect("a link");
            assert!(refuse_folder(&base.join("link"), &root).is_err());
            std::fs::write(root.join("x"), manifest("x")).expect("writes");
            std::os::unix::fs::symlink(root.join("x"), tools.join("x.tool.toml")).expect("a link");
            let problem = load(&tools, &root).expect_err("refused");
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
        assert_eq!(load(folder.path(), Path::new("/root")).map(names), Ok(vec!["a.x".into(), "b".into()]));
        write("c.tool.toml", &manifest("a_x"));
        let problem = load(folder.path(), Path::new("/root")).expect_err("refused");
        assert!(problem.contains("c.tool.toml: line 1, column 8: `a_x` is the name of another"), "{problem}");
        assert!(problem.contains("a.tool.toml: line 1, column 8"), "{problem}");
    }
}
