//! Long random histories: after each round our answer is git's.

#[path = "support/git.rs"]
mod git;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use git::Repository;

const ROUNDS: usize = 50;
const STEPS: u64 = 8;
const NAMES: &[&str] = &["a", "b", "a-b", "a.o", "B", "é", "x y", "-"];
const FOLDERS: &[&str] = &["", "", "a/", "d/", "d/e/", "d.x/", "d/e/f/", "out/"];
const PATTERNS: &[&str] =
    &["*.o", "out/", "/d/e", "!a.o", "a", "d/**/a", "**/b", "[!a-z]", "d*/", "x\\ y", "", "!*", "e/f", "?-b"];

fn one_of<'a>(random: &mut fastrand::Rng, all: &[&'a str]) -> &'a str {
    random.choice(all).expect("not empty")
}

struct History {
    repository: Repository,
    random: fastrand::Rng,
    clock: u64,
    log: Vec<String>,
}

impl History {
    fn new(seed: u64, arguments: &[&str], config: &[(&str, &str)]) -> Self {
        let repository = Repository::new(arguments);
        for (name, value) in config {
            repository.git(&["config", name, value]);
        }
        Self { repository, random: fastrand::Rng::with_seed(seed), clock: 1_000_000, log: Vec::new() }
    }

    fn any_path(&mut self) -> String {
        format!("{}{}", one_of(&mut self.random, FOLDERS), one_of(&mut self.random, NAMES))
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.repository.path().join(name)
    }

    /// Makes way for a file: what is there goes, and so does any file that has to be a folder.
    fn clear(&self, name: &str) {
        let mut path = self.repository.path().to_owned();
        for part in name.split('/') {
            path.push(part);
            let is_last = path == self.path_of(name);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() && is_last => fs::remove_dir_all(&path).expect("removed"),
                Ok(found) if !found.is_dir() => fs::remove_file(&path).expect("removed"),
                _ => {}
            }
        }
        fs::create_dir_all(self.path_of(name).parent().expect("a parent")).expect("made");
    }

    fn is_file(&self, name: &str) -> bool {
        // A path through a link is another file's.
        let parents = self.path_of(name);
        let is_direct =
            parents.ancestors().skip(1).take(name.split('/').count() - 1).all(|folder| !folder.is_symlink());
        is_direct && fs::symlink_metadata(self.path_of(name)).is_ok_and(|found| found.is_file())
    }

    fn step(&mut self) {
        let (kind, name) = (self.random.u64(..20), self.any_path());
        self.log.push(format!("{kind} {name}"));
        match kind {
            0..=4 => {
                let size = self.random.u64(..4);
                let content: String =
                    (0..size).map(|_| one_of(&mut self.random, &["x", "y", "\n", "\r\n"])).collect();
                if !self.is_file(&name) {
                    self.clear(&name);
                }
                fs::write(self.path_of(&name), content).expect("written");
            }
            5 | 6 => self.clear(&name),
            7 => {
                let target = self.any_path();
                if self.is_file(&name) {
                    self.clear(&target);
                    // Making way may have taken it along.
                    drop(fs::rename(self.path_of(&name), self.path_of(&target)));
                }
            }
            8 if self.is_file(&name) => {
                let mode = if self.random.u64(..2) == 0 { 0o755 } else { 0o644 };
                fs::set_permissions(self.path_of(&name), fs::Permissions::from_mode(mode)).expect("set");
            }
            9 => {
                // Never in a circle, where git does not know what to say.
                let target = one_of(&mut self.random, &["out", "d.x", "../out", "nowhere", "../d/e"]);
                self.clear(&name);
                symlink(target, self.path_of(&name)).expect("linked");
            }
            10 if self.is_file(&name) => {
                // Never the same time twice, as git would not look at such a file.
                self.clock += 1;
                self.repository.touch(&name, self.clock);
            }
            11 => {
                let folder = one_of(&mut self.random, FOLDERS);
                let lines: Vec<_> =
                    (0..self.random.u64(..4)).map(|_| one_of(&mut self.random, PATTERNS)).collect();
                let ignore = format!("{folder}.gitignore");
                self.clear(&ignore);
                self.repository.write(&ignore, &lines.join("\n"));
            }
            12 | 13 => drop(self.repository.try_git(&["add", "-A"])),
            14 => drop(self.repository.try_git(&["add", "-f", "--", &name])),
            15 => drop(self.repository.try_git(&["add", "-N", "--", &name])),
            16 => drop(self.repository.try_git(&["rm", "-q", "--cached", "--", &name])),
            17 => drop(self.repository.try_git(&["commit", "-qm", "x", "--allow-empty"])),
            18 => match self.random.u64(..6) {
                0 => drop(self.repository.try_git(&["gc", "-q", "--prune=now"])),
                1 => drop(self.repository.try_git(&["reset", "-q"])),
                2 => drop(self.repository.try_git(&["reset", "-q", "--hard"])),
                3 => drop(self.repository.try_git(&["repack", "-qd"])),
                4 => drop(self.repository.try_git(&["checkout", "-q", "--detach", "HEAD~1"])),
                _ => drop(self.repository.try_git(&["update-index", "-q", "--refresh"])),
            },
            19 => {
                let version = one_of(&mut self.random, &["2", "3", "4"]);
                self.repository.try_git(&["update-index", "--index-version", version]);
            }
            _ => {}
        }
    }

    fn run(mut self) {
        for round in 0..ROUNDS {
            for _ in 0..STEPS {
                self.step();
            }
            let last = self.log.len().saturating_sub(40);
            let context = format!("round {round}, after {:#?}", &self.log[last..]);
            self.repository.check(&context);
            let top = self.repository.path().canonicalize().expect("a path");
            for folder in ["d", "d/e", "out"].map(|folder| top.join(folder)) {
                // A link leads to another folder, and git looks for a repository from there on.
                if folder.canonicalize().is_ok_and(|real| real == folder && real.is_dir()) {
                    self.repository.check_in(&folder, &format!("{} in {context}", folder.display()));
                }
            }
        }
    }
}

#[test]
fn random_histories_are_reported_as_by_git() {
    for seed in [1, 2] {
        History::new(0x9e37_79b9_7f4a * seed, &[], &[]).run();
    }
}

#[test]
fn random_histories_with_long_names_of_objects_are_reported_as_by_git() {
    History::new(0x9e37_79b9_7f4a * 3, &["--object-format=sha256"], &[]).run();
}

#[test]
fn random_histories_with_other_settings_are_reported_as_by_git() {
    let config = [("core.fileMode", "false"), ("index.version", "4"), ("index.skipHash", "true")];
    History::new(0x9e37_79b9_7f4a * 5, &[], &config).run();
}
