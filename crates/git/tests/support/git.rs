//! A repository that the real git works on, and git's own answer in our words.

// Not every test file uses everything.
#![allow(dead_code)]

use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions},
    io::{Seek, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, SystemTime},
};

use pintle_git::{Change, Dirty, GitStatus, status};
use tempfile::TempDir;

/// A repository in a folder of its own.
pub struct Repository {
    path: PathBuf,
    home: TempDir,
    _folder: Option<TempDir>,
}

impl Repository {
    /// A new one; the arguments are those of `git init`.
    pub fn new(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut repository = Self::at(folder.path(), arguments);
        repository._folder = Some(folder);
        repository
    }

    /// A new one in a folder that somebody else takes care of.
    pub fn at(path: &Path, arguments: &[&str]) -> Self {
        fs::create_dir_all(path).expect("made");
        let home = tempfile::tempdir().expect("a folder");
        let repository = Self { path: path.to_owned(), home, _folder: None };
        repository.git(&[&["init", "-q", "-b", "main"], arguments].concat());
        for (name, value) in
            [("user.name", "a"), ("user.email", "a@b"), ("gc.auto", "0"), ("maintenance.auto", "false")]
        {
            repository.git(&["config", name, value]);
        }
        repository
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs git, which has to succeed.
    pub fn git(&self, arguments: &[&str]) -> Vec<u8> {
        self.git_with_input(arguments, "")
    }

    /// Runs git, which has to succeed, and gives it something to read.
    pub fn git_with_input(&self, arguments: &[&str], input: &str) -> Vec<u8> {
        self.git_in(&self.path, arguments, input)
    }

    /// Runs git in another folder, such as a linked worktree, where it has to succeed.
    pub fn git_in(&self, folder: &Path, arguments: &[&str], input: &str) -> Vec<u8> {
        let output = self.run(folder, arguments, input);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {error}");
        output.stdout
    }

    /// Runs git, which may fail.
    pub fn try_git(&self, arguments: &[&str]) -> bool {
        self.run(&self.path, arguments, "").status.success()
    }

    fn run(&self, folder: &Path, arguments: &[&str], input: &str) -> Output {
        // A file, as what is read through a pipe would have to be written meanwhile.
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(input.as_bytes()).and_then(|()| file.rewind()).expect("written");
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(folder).stdin(Stdio::from(file));
        command.env("HOME", self.home.path()).env("XDG_CONFIG_HOME", self.home.path());
        command.env("GIT_CONFIG_NOSYSTEM", "1").output().expect("git runs")
    }

    pub fn write(&self, name: &str, content: &str) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, content).expect("written");
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path.join(name)).expect("removed");
    }

    pub fn set_executable(&self, name: &str, is_executable: bool) {
        let mode = if is_executable { 0o755 } else { 0o644 };
        fs::set_permissions(self.path.join(name), Permissions::from_mode(mode)).expect("set");
    }

    /// Sets the time of a file's last change, in seconds.
    pub fn touch(&self, name: &str, seconds: u64) {
        let file = File::options().write(true).open(self.path.join(name)).expect("opened");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).expect("set");
    }

    /// Commits everything.
    pub fn commit(&self) {
        self.git(&["add", "-A"]);
        self.commit_staged();
    }

    pub fn commit_staged(&self) {
        self.git(&["commit", "-qm", "a commit", "--allow-empty"]);
    }

    /// Compares our answer with git's. Ours comes first, as git writes down what it has found.
    pub fn check(&self, context: &str) {
        self.check_in(&self.path, context);
    }

    /// The same for another folder, such as a linked worktree or a subfolder.
    pub fn check_in(&self, folder: &Path, context: &str) {
        let own = ours(folder).expect("a repository");
        let theirs = self.theirs_in(folder);
        assert_eq!(own, theirs, "{context}");
        assert_eq!(ours(folder).expect("a repository"), theirs, "{context}, after git has looked");
    }

    /// The same, and nothing must have changed.
    pub fn check_clean(&self, context: &str) {
        self.check(context);
        assert_eq!(ours(&self.path).expect("a repository").dirty, [], "{context}");
    }

    /// What git says of a folder and what is in it, in our words.
    fn theirs_in(&self, folder: &Path) -> GitStatus {
        let format = [
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--branch",
            "--",
            ".",
        ];
        let output = self.git_in(folder, &format, "");
        let prefix = self.git_in(folder, &["rev-parse", "--show-prefix"], "");
        let prefix = prefix.strip_suffix(b"\n").expect("a line");
        let (mut head, mut branch, mut dirty) = (None, None, BTreeMap::new());
        for line in output.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let text = String::from_utf8_lossy(line).into_owned();
            let fields =
                |count: usize| line.splitn(count, |byte| *byte == b' ').last().expect("a path").to_vec();
            match line[0] {
                b'#' => {
                    head = text.strip_prefix("# branch.oid ").map(str::to_owned).or(head);
                    branch = text.strip_prefix("# branch.head ").map(str::to_owned).or(branch);
                }
                b'1' => {
                    let change = match (line[2], line[3]) {
                        (b'D', b'A') => Change::Modified,
                        (_, b'D') | (b'D', _) => Change::Deleted,
                        (b'A', _) | (_, b'A') => Change::Added,
                        _ => Change::Modified,
                    };
                    dirty.insert(fields(9), change);
                }
                b'u' => drop(dirty.insert(fields(11), Change::Conflicted)),
                b'?' => {
                    let path = fields(2);
                    let change = if dirty.contains_key(&path) { Change::Modified } else { Change::Untracked };
                    dirty.insert(path, change);
                }
                _ => panic!("{text}"),
            }
        }
        GitStatus {
            head: head.filter(|head| head != "(initial)"),
            branch: branch.filter(|branch| branch != "(detached)"),
            dirty: dirty
                .into_iter()
                .map(|(path, change)| Dirty {
                    path: path.strip_prefix(prefix).expect("below the folder").to_vec(),
                    change,
                })
                .collect(),
            truncated: false,
        }
    }
}

/// What we say.
pub fn ours(path: &Path) -> Option<GitStatus> {
    status(path, &|| false).expect("no problem")
}

/// A change as it is reported.
pub fn dirty(path: &str, change: Change) -> Dirty {
    Dirty { path: path.as_bytes().to_vec(), change }
}
