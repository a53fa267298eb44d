//! Plans the edits of one file, and keeps what the store does not pass on: the problems, the number of lines, the diff.

use std::cell::Cell;

use pintle_contract::{ErrorCode, Fault, WorkspacePath};

use crate::{
    diff::{self, FileDiff},
    hash::Tag,
    store::{Plan, Source, StoreError},
    text::{Change, FileEdit, Planned, Problem, Used, plan},
};

/// The edits of one file on their way through a store.
pub(crate) struct Planning<'a> {
    path: &'a WorkspacePath,
    changes: &'a [Change],
    expected: &'a Tag,
    /// What all edits of the call use of its limits, and what of that those of this file use.
    used_in_all: &'a Cell<Used>,
    used: Used,
    wants_diff: bool,
    /// What was wrong with them, when they were last planned.
    pub(crate) problems: Vec<Problem>,
    /// How many lines the file will have.
    pub(crate) total_lines: u64,
    /// How many places are changed.
    pub(crate) places: u64,
    /// What changes, if that was asked for.
    pub(crate) diff: Option<FileDiff>,
}

impl<'a> Planning<'a> {
    /// Plannings of one call share `used_in_all`. `path` is shown in the diff.
    pub(crate) fn new(
        path: &'a WorkspacePath,
        changes: &'a [Change],
        expected: &'a Tag,
        used_in_all: &'a Cell<Used>,
        wants_diff: bool,
    ) -> Self {
        Self {
            path,
            changes,
            expected,
            used_in_all,
            used: Used::default(),
            wants_diff,
            problems: Vec::new(),
            total_lines: 0,
            places: 0,
            diff: None,
        }
    }

    /// Plans the edits for the version that a store has opened. The same edits may be planned more than once.
    pub(crate) fn plan(
        &mut self,
        source: &dyn Source,
        has_ended: &dyn Fn() -> bool,
    ) -> Result<Plan, StoreError> {
        self.problems.clear();
        let elsewhere = self.used_in_all.get().less(self.used);
        let mut used = elsewhere;
        let planned = plan(source, self.changes, self.expected, &mut used, has_ended)?;
        self.used = used.less(elsewhere);
        self.used_in_all.set(used);
        let Planned { found, change } = planned;
        let FileEdit { splices, lines, total_lines, changes } = match change {
            Ok(edit) => edit,
            Err(problems) => {
                let first = problems.first().map(|problem| problem.fault.clone());
                self.problems = problems;
                let fault = first.unwrap_or_else(|| Fault::new(ErrorCode::Internal, "no problem was found"));
                return Ok(Plan { found, change: Err(fault) });
            }
        };
        (self.total_lines, self.places) = (total_lines, changes);
        if self.wants_diff {
            self.diff = Some(diff::of_edit(source, self.path, &splices, &lines, has_ended)?);
        }
        Ok(Plan { found, change: Ok(splices) })
    }
}
