//! Replaces every match of a query in every file that has one: all of them or none.
//!
//! The files are those that a search finds when the call begins. Each of them is matched again once it is locked, and what
//! is found then counts: if it is not as many matches as the caller expects, nothing is changed.

use std::cell::Cell;

use pintle_contract::{Access, ErrorCode, Fault, Verb, WorkspacePath};
use pintle_tool::CallContext;
use serde_json::{Value, json};

use crate::{
    diff::{self, FileDiff},
    fault::fault,
    files::Files,
    hash::Tag,
    store::{ChangeKind, ChangeSetError, FileChange, Plan, Source, Store, StoreError, Terms},
    text::{self, FileEdit, MAX_INSERTED, PlannedSubstitution, Tally, Template},
    text_search::{MatchingFiles, TextQuery, TextSearch},
    together::{Done, EditedFile, FileProblem, all_problems, change_together, not_undone},
};

/// The most files that one call changes.
const MAX_FILES: usize = 500;
/// The most that one call replaces.
const MOST: Tally = Tally { matches: 10_000, lines: u64::MAX, inserted: MAX_INSERTED };

/// What is to be replaced, and by what.
pub(crate) struct Substitution {
    pub(crate) query: TextQuery,
    pub(crate) replacement: String,
    /// How many matches there have to be.
    pub(crate) expected: Option<u64>,
    pub(crate) dry_run: bool,
}

/// What was replaced, or would be.
pub(crate) struct Substituted {
    pub(crate) done: Done,
    pub(crate) matches: u64,
}

/// Files that have matches and may be written.
pub(crate) struct Found {
    paths: Vec<WorkspacePath>,
    files: MatchingFiles,
    template: Template,
}

/// Finds the files with matches. Refuses more of them than a call changes, and those that the caller may not write.
pub(crate) fn find(
    search: &dyn TextSearch,
    wanted: &Substitution,
    call: &CallContext,
) -> Result<Found, Fault> {
    let mut files = search.find(&wanted.query, MAX_FILES, call)?;
    let template = match wanted.query.is_regex {
        true => Template::parse(&wanted.replacement, files.matcher.as_ref())?,
        false => Template::literal(&wanted.replacement),
    };
    // Each line has at least one match.
    if files.files > MAX_FILES as u64 || files.lines > MOST.matches {
        let MatchingFiles { files, lines, .. } = files;
        let of = if files == 1 { "file" } else { "files" };
        let found = json!({"lines": lines, "files": files});
        return Err(too_much(&format!("there are matches in {lines} lines of {files} {of}"), found));
    }
    let paths = std::mem::take(&mut files.paths).into_iter().collect::<Result<Vec<_>, _>>();
    let paths = paths.map_err(|name| not_text_name(&name))?;
    may_write(&paths, &wanted.query.globs, call)?;
    Ok(Found { paths, files, template })
}

/// Refuses the call if its caller may not write all of the files.
fn may_write(paths: &[WorkspacePath], globs: &[String], call: &CallContext) -> Result<(), Fault> {
    let accesses: Vec<Access> = paths.iter().map(|path| Access::Path(Verb::Write, path.clone())).collect();
    call.authorize(&accesses).map_err(|fault| {
        // Otherwise the decision could not be recorded.
        if fault.code != ErrorCode::Forbidden {
            return fault;
        }
        let is_refused = |access: &&Access| call.caller().require(access).is_err();
        let with_paths = accesses.iter().zip(paths);
        let refused: Vec<&str> =
            with_paths.filter(|(access, _)| is_refused(access)).map(|(_, path)| path.as_str()).collect();
        not_writable(fault, &refused, globs)
    })
}

/// Replaces all matches, or none.
pub(crate) fn substitute(
    files: &Files,
    store: &dyn Store,
    terms: &Terms<'_>,
    wanted: &Substitution,
    found: &Found,
) -> Result<Substituted, Fault> {
    let Found { paths, files: MatchingFiles { matcher, .. }, template } = found;
    let substitution = text::Substitution { matcher: matcher.as_ref(), template };
    let (total, is_refused) = (Cell::new(Tally::default()), Cell::new(None));
    let mut plannings: Vec<Planning<'_>> =
        paths.iter().map(|path| Planning::new(path, &substitution, &total)).collect();
    let changes = changes(&mut plannings, terms.has_ended);
    let mut accept = || {
        let refusal = refusal(total.get(), wanted.expected);
        is_refused.set(refusal);
        match refusal {
            None => Ok(()),
            // What is said about it needs the tallies of all files, which are in use here.
            Some(_) => Err(Fault::internal("the matches are not as many as there may be")),
        }
    };
    let changed = change_together(store, terms, changes, &mut accept, wanted.dry_run);
    match is_refused.get() {
        Some(Refusal::TooMany) => {
            let Tally { matches, inserted, .. } = total.get();
            return Err(too_much(
                &format!("there are {matches} matches, and {inserted} bytes would replace them"),
                json!({"matches": matches, "bytes": inserted}),
            ));
        }
        Some(Refusal::Unexpected(expected)) => return Err(unexpected(expected, &plannings)),
        None => {}
    }
    let hashes = changed.map_err(|error| match error {
        ChangeSetError::Files(errors) => {
            let problem = |(number, error): (usize, StoreError)| {
                let path = paths.get(number)?;
                let fault = files.fault(error, path, store, terms);
                let fault = match fault.code {
                    ErrorCode::InvalidRequest => fault
                        .hint(format!("to leave it out, add `!/{}` to `path`", literal_glob(path.as_str()))),
                    _ => fault,
                };
                Some(FileProblem { entry: None, path: path.as_str().to_owned(), fault })
            };
            let problems: Vec<FileProblem> = errors.into_iter().filter_map(problem).collect();
            let is_forbidden = |problem: &&FileProblem| problem.fault.code == ErrorCode::Forbidden;
            let refused: Vec<&str> =
                problems.iter().filter(is_forbidden).map(|problem| problem.path.as_str()).collect();
            let fault = all_problems(&problems);
            if refused.is_empty() { fault } else { not_writable(fault, &refused, &wanted.query.globs) }
        }
        ChangeSetError::Whole(error) => fault(error, paths.first().unwrap_or(&WorkspacePath::root())),
        ChangeSetError::NotUndone { cause, undone, kept, is_tried_again } => {
            let (number, error) = *cause;
            let path = number.and_then(|number| paths.get(number)).or(paths.first());
            not_undone(path, error, &undone, (&kept, is_tried_again))
        }
    })?;
    let (mut edited, mut diffs) = (Vec::new(), Vec::new());
    for (planning, hash) in plannings.into_iter().zip(hashes) {
        let Planning { path, tally, total_lines, diff, .. } = planning;
        // The file has changed since it was found, and has no matches any more.
        if tally.matches == 0 {
            continue;
        }
        diffs.extend(diff);
        let (path, hash) = (path.as_str().to_owned(), hash.to_string());
        edited.push(EditedFile { path, hash, total_lines, changes: tally.matches });
    }
    let done = Done { files: edited, diff: diff::join(diffs) };
    Ok(Substituted { done, matches: total.get().matches })
}

fn changes<'a, 'b: 'a>(
    plannings: &'a mut [Planning<'b>],
    has_ended: &'a dyn Fn() -> bool,
) -> Vec<FileChange<'a>> {
    let change = |planning: &'a mut Planning<'b>| FileChange {
        path: planning.path.clone(),
        kind: ChangeKind::Edit {
            expected: Tag::any(),
            plan: Box::new(move |source| planning.plan(source, has_ended)),
        },
    };
    plannings.iter_mut().map(change).collect()
}

/// The replacement in one file on its way through a store.
struct Planning<'a> {
    path: &'a WorkspacePath,
    substitution: &'a text::Substitution<'a>,
    /// What is replaced in all files, this one included.
    total: &'a Cell<Tally>,
    tally: Tally,
    total_lines: u64,
    diff: Option<FileDiff>,
}

impl<'a> Planning<'a> {
    fn new(
        path: &'a WorkspacePath,
        substitution: &'a text::Substitution<'a>,
        total: &'a Cell<Tally>,
    ) -> Self {
        Self { path, substitution, total, tally: Tally::default(), total_lines: 0, diff: None }
    }

    /// Plans the replacement in the version that a store has opened. It may be planned more than once.
    fn plan(&mut self, source: &dyn Source, has_ended: &dyn Fn() -> bool) -> Result<Plan, StoreError> {
        let elsewhere = self.total.get().less(self.tally);
        let planned = text::substitute(source, self.substitution, MOST.less(elsewhere), has_ended)?;
        let PlannedSubstitution { found, tally, edit } = planned;
        self.tally = tally;
        self.total.set(elsewhere.and(tally));
        let Some(FileEdit { splices, lines, total_lines, .. }) = edit else {
            // There are too many matches, and the call is refused when all are counted.
            return Ok(Plan { found, change: Ok(Vec::new()) });
        };
        self.total_lines = total_lines;
        self.diff = Some(diff::of_edit(source, self.path, &splices, &lines, has_ended)?);
        Ok(Plan { found, change: Ok(splices) })
    }
}

/// Why matches are not replaced although each of them could be.
#[derive(Clone, Copy)]
enum Refusal {
    TooMany,
    /// This many were expected.
    Unexpected(u64),
}

fn refusal(total: Tally, expected: Option<u64>) -> Option<Refusal> {
    match expected {
        Some(expected) if expected != total.matches => Some(Refusal::Unexpected(expected)),
        _ if !total.is_within(&MOST) => Some(Refusal::TooMany),
        _ => None,
    }
}

fn too_much(there_is: &str, found: Value) -> Fault {
    let Tally { matches, inserted, .. } = MOST;
    let message = format!(
        "{there_is}; a call replaces at most {matches} matches in {MAX_FILES} files with {inserted} bytes; nothing was done"
    );
    Fault::new(ErrorCode::InvalidRequest, message)
        .hint("make several calls, each for a part of the files, with `path`, or of the matches, with a narrower query")
        .details(json!({
            "reason": "too_large",
            "found": found,
            "most": {"matches": matches, "files": MAX_FILES, "bytes": inserted},
        }))
}

/// The conflict that there are more matches, or fewer, than the caller expects.
fn unexpected(expected: u64, plannings: &[Planning<'_>]) -> Fault {
    let with_matches = || plannings.iter().filter(|planning| planning.tally.matches > 0);
    let total: u64 = with_matches().map(|planning| planning.tally.matches).sum();
    let files: Vec<_> = with_matches()
        .map(|Planning { path, tally: Tally { matches, lines, .. }, .. }| {
            json!({"path": path.as_str(), "matches": matches, "lines": lines})
        })
        .collect();
    let count = files.len();
    let there_are = match (total, count) {
        (0, _) => "there are none".to_owned(),
        (1, _) => "there is 1".to_owned(),
        (total, 1) => format!("there are {total}, all in one file"),
        (total, count) => format!("there are {total}, in {count} files"),
    };
    let matches = if expected == 1 { "match" } else { "matches" };
    let message = format!("`expect` is {expected} {matches}, but {there_are}; nothing was done");
    let hint = match total {
        0 => "call search with the same arguments; without hits it says what may be the reason".to_owned(),
        total => format!(
            "look at them with `dry_run`; if all are meant, set `expect` to {total}, otherwise narrow the query or `path`"
        ),
    };
    Fault::new(ErrorCode::Conflict, message)
        .hint(hint)
        .details(json!({"reason": "unexpected_matches", "total": total, "files": files}))
}

/// Adds to a refusal which files it is about, and how to leave them out.
fn not_writable(fault: Fault, refused: &[&str], globs: &[String]) -> Fault {
    const SHOWN: usize = 10;
    let without: Vec<String> =
        globs.iter().cloned().chain(refused.iter().map(|path| format!("!/{}", literal_glob(path)))).collect();
    let names = refused.iter().take(SHOWN).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    let more = match refused.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let why = fault.message.trim_start_matches("nothing was done: ");
    let message = format!("matches in {names}{more} may not be replaced; nothing was done: {why}");
    let hint = match refused.len() <= SHOWN {
        true => format!("to leave these files out, call again with `path`: {}", json!(without)),
        false => "to leave these files out, call again with `path` as in `details.path`".to_owned(),
    };
    let mut details = fault.details.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    details.insert("files".into(), json!(refused));
    details.insert("path".into(), json!(without));
    Fault::new(fault.code, message).at(fault.stage).hint(hint).details(Value::Object(details))
}

/// A glob that matches just this path.
fn literal_glob(path: &str) -> String {
    let mut glob = String::with_capacity(path.len());
    for letter in path.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | ' ') {
            glob.push('\\');
        }
        glob.push(letter);
    }
    glob
}

fn not_text_name(name: &str) -> Fault {
    // What the name really has is not known here.
    let any = |letter: char| if matches!(letter, '\\' | '\u{fffd}' | ':') { '?' } else { letter };
    let glob = literal_glob(name).replace("\\\\", "?").chars().map(any).collect::<String>();
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("the file `{name}` has matches, and a name that tools cannot take; nothing was done"),
    )
    .hint(format!("to leave it out, add `!/{glob}` to `path`; or rename it"))
}

#[cfg(test)]
mod tests {
    use super::literal_glob;

    #[test]
    fn a_path_as_a_glob_matches_only_itself() {
        for path in ["a.rs", "a[1].rs", "{a,b}", "what?", "back\\slash", "two words ", "#a", "!b", "**"] {
            let glob = globset::GlobBuilder::new(&literal_glob(path)).backslash_escape(true).build();
            let matcher = glob.expect("a glob").compile_matcher();
            assert!(matcher.is_match(path), "{path}");
            assert!(!matcher.is_match(format!("{path}x")) && !matcher.is_match("ab"), "{path}");
        }
    }
}
