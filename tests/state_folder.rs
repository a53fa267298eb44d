//! The state folder: only its owner can read its files.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::support::{Setup, pintle, run};

/// A root with one file and a state folder next to it.
struct Workspace {
    folder: TempDir,
}

impl Workspace {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("root")).expect("a root");
        fs::write(folder.path().join("root/secret.rs"), "fn secret_name() {}\n").expect("a file");
        Self { folder }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = pintle();
        command.args(arguments).arg("--state-dir").arg(self.state());
        command.current_dir(self.folder.path().join("root"));
        command
    }

    fn build(&self) {
        let (code, _, stderr) = run(&mut self.command(&["index"]), b"");
        assert_eq!(code, Some(0), "{stderr}");
    }

    /// Sets the modes that an earlier version used.
    fn open_to_others(&self) {
        for path in below(&self.state()).into_iter().chain([self.state()]) {
            set_mode(&path, if path.is_dir() { 0o755 } else { 0o644 });
        }
    }

    fn assert_private(&self, what: &str) {
        for path in below(&self.state()).into_iter().chain([self.state()]) {
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path), expected, "{what}: {} has {:o}", path.display(), mode(&path));
        }
    }
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(below(&path));
        }
        found.push(path);
    }
    found
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn a_state_folder_that_others_can_read_is_corrected_by_every_command_that_uses_it() {
    let workspace = Workspace::new();
    workspace.build();
    assert!(below(&workspace.state()).len() > 4, "there is an index");
    let commands: [&[&str]; 4] =
        [&["search", "secret_name"], &["index"], &["call", "index_status"], &["serve"]];
    for command in commands {
        workspace.open_to_others();
        let mut command_line = workspace.command(command);
        command_line.env("MCP_READY_FILE", workspace.folder.path().join("ready"));
        let (code, _, stderr) = run(&mut command_line, b"");
        assert_eq!(code, Some(0), "{command:?}: {stderr}");
        // New files of a build are private, too, whichever command writes them.
        if command[0] != "index" {
            workspace.assert_private(command[0]);
        }
    }
}

#[test]
fn links_and_their_targets_stay_as_they_are() {
    let workspace = Workspace::new();
    workspace.build();
    let outside = workspace.folder.path().join("outside");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("file"), "not Pintle's").expect("a file");
    fs::hard_link(outside.join("file"), workspace.state().join("index/hard")).expect("a link");
    symlink(&outside, workspace.state().join("index/folder")).expect("a link");
    symlink(outside.join("file"), workspace.state().join("index/soft")).expect("a link");
    workspace.open_to_others();
    let (code, _, stderr) = run(&mut workspace.command(&["search", "secret_name"]), b"");
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!((mode(&outside), mode(&outside.join("file"))), (0o755, 0o644));
    assert_eq!(mode(&workspace.state().join("index")), 0o700);
}

#[test]
fn a_folder_that_holds_other_things_keeps_its_mode_and_the_index_in_it_is_private() {
    let workspace = Workspace::new();
    workspace.build();
    fs::write(workspace.state().join("letter.txt"), "the user's").expect("a file");
    workspace.open_to_others();
    let (code, _, stderr) = run(&mut workspace.command(&["search", "secret_name"]), b"");
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!((mode(&workspace.state()), mode(&workspace.state().join("letter.txt"))), (0o755, 0o644));
    assert_eq!(mode(&workspace.state().join("index")), 0o700);
}

#[test]
fn an_index_folder_that_is_a_link_is_refused_with_a_remedy() {
    let workspace = Workspace::new();
    let elsewhere = workspace.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    fs::create_dir(workspace.state()).expect("a folder");
    symlink(&elsewhere, workspace.state().join("index")).expect("a link");
    let (code, _, stderr) = run(&mut workspace.command(&["index"]), b"");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("is not a folder; name a folder of your own with --state-dir"), "{stderr}");
}

#[test]
fn a_state_folder_of_another_user_is_refused_with_a_remedy() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root can give a folder away");
        return;
    }
    let other = rustix::process::Uid::from_raw(65_534);
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.state().join("index")).expect("a folder");
    for path in [workspace.state().join("index"), workspace.state()] {
        rustix::fs::chown(&path, Some(other), None).expect("root may");
        let (code, _, stderr) = run(&mut workspace.command(&["search", "x"]), b"");
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("belongs to another user; name a folder of your own"), "{stderr}");
        assert_eq!(mode(&path) & 0o055, 0o055, "it was changed");
    }
}

#[test]
fn a_server_does_not_make_the_state_folder_before_it_is_needed() {
    let setup = Setup::new();
    let state = setup.path("state");
    setup.start().finish();
    assert!(!state.exists());
}
