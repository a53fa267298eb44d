//! What the head is: a branch, a commit, or a branch without one.

use std::io::{BufRead, BufReader, Read};

use rustix::io::Errno;

use crate::{
    directory::GitDirectory,
    hash::ObjectId,
    problem::{HasEnded, Problem, go_on},
    repository::Repository,
};

/// How many symbolic refs may be followed, one after the other, as in git.
const MOST_STEPS: usize = 5;
const REF_LIMIT: u64 = 64 << 10;
const PACKED_LINE_LIMIT: u64 = 64 << 10;

/// What HEAD names.
#[derive(Debug, PartialEq)]
pub(crate) struct Head {
    /// None before the first commit.
    pub(crate) commit: Option<ObjectId>,
    /// None if no branch is checked out.
    pub(crate) branch: Option<String>,
}

/// Reads the head.
pub(crate) fn head(repository: &Repository, has_ended: HasEnded<'_>) -> Result<Head, Problem> {
    let mut name = String::from("HEAD");
    for step in 0..=MOST_STEPS {
        let is_head = step == 0;
        let branch = (!is_head).then(|| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned());
        let Some(content) = directory(repository, &name).read(name.as_bytes(), REF_LIMIT)? else {
            if is_head {
                return Err(Problem::damaged("HEAD", "it is not there"));
            }
            let commit = packed(repository, &name, has_ended)?;
            return Ok(Head { commit, branch });
        };
        let content = content.trim_ascii_end();
        let Some(next) = content.strip_prefix(b"ref:") else {
            // Git ignores what follows the id.
            let digits = content.split(u8::is_ascii_whitespace).next().unwrap_or_default();
            let commit = ObjectId::from_digits(digits, repository.config.hash);
            let commit = commit.ok_or_else(|| Problem::damaged(&name, "it names no commit and no ref"))?;
            return Ok(Head { commit: Some(commit), branch });
        };
        let next = std::str::from_utf8(next.trim_ascii_start()).ok().filter(|next| is_ref(next));
        name = next.ok_or_else(|| Problem::damaged(&name, "it leads to no ref"))?.to_owned();
    }
    Err(Problem::damaged("HEAD", "it leads from ref to ref"))
}

/// Where a ref is kept. Some belong to one work tree alone.
fn directory<'a>(repository: &'a Repository, name: &str) -> &'a GitDirectory {
    const OF_ONE_WORK_TREE: &[&str] = &["refs/bisect/", "refs/worktree/", "refs/rewritten/"];
    let is_own = name == "HEAD" || OF_ONE_WORK_TREE.iter().any(|start| name.starts_with(start));
    if is_own { repository.git_dir() } else { repository.common_dir() }
}

/// Whether this is the full name of a ref by the rules of `git check-ref-format`.
///
/// Such a name is also a relative path that stays beneath `refs`, because no component of it begins with a dot.
fn is_ref(name: &str) -> bool {
    name.starts_with("refs/") && gix_validate::reference::name(name.into()).is_ok()
}

/// Looks a ref up in `packed-refs`.
fn packed(repository: &Repository, name: &str, has_ended: HasEnded<'_>) -> Result<Option<ObjectId>, Problem> {
    let unreadable = |error: std::io::Error| Problem::unreadable("packed-refs", error);
    let file = match repository.common_dir().open_file(b"packed-refs") {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(unreadable(error.into())),
    };
    let (mut reader, mut line, mut count) = (BufReader::with_capacity(64 << 10, file), Vec::new(), 0_usize);
    loop {
        line.clear();
        (&mut reader).take(PACKED_LINE_LIMIT).read_until(b'\n', &mut line).map_err(unreadable)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() as u64 == PACKED_LINE_LIMIT {
            return Err(Problem::damaged("packed-refs", "a line has no end"));
        }
        if let Some((digits, own)) = split_once(line.trim_ascii_end())
            && own == name.as_bytes()
        {
            let commit = ObjectId::from_digits(digits, repository.config.hash);
            return commit
                .map(Some)
                .ok_or_else(|| Problem::damaged("packed-refs", format!("`{name}` names no commit")));
        }
        count += 1;
        if count.is_multiple_of(4096) {
            go_on(has_ended)?;
        }
    }
}

fn split_once(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    Some((&line[..space], &line[space + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ref_names_are_those_that_git_accepts() {
        let names = [
            "refs/heads/a/b-c",
            "refs/heads/\u{e9}",
            "refs/heads/@",
            "refs/heads/-a",
            "refs/../config",
            "refs/heads/",
            "refs//x",
            "refs/heads/.x",
            "refs/heads/x.",
            "refs/heads/x.lock",
            "refs/x.lock/y",
            "refs/a b",
            "refs/a..b",
            "refs/a~b",
            "refs/a^b",
            "refs/a:b",
            "refs/a?b",
            "refs/a*b",
            "refs/a[b",
            "refs/a\\b",
            "refs/a@{b",
            "refs/a\u{1}b",
            "refs/a\u{7f}b",
        ];
        for name in names {
            let status = std::process::Command::new("git").args(["check-ref-format", name]).status();
            assert_eq!(is_ref(name), status.expect("git runs").success(), "{name:?}");
        }
        for name in ["HEAD", "/refs/x", "heads/x", "refs/a\0b"] {
            assert!(!is_ref(name), "{name:?}");
        }
    }
}
