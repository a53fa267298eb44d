//! Plans the edits of one file, and keeps what the store does not pass on: the problems, the number of lines, the diff.

use std::cell::Cell;

use pintle_contract::{ErrorCode, Fault, WorkspacePath};

use crate::{
    diff::{self, FileDiff},
    hash::Tag,
    store::{Plan, Source, StoreError},
    text::{Change, FileEdit, Planned, Problem, plan},
};

/// The edits of one file on their way through a store.
pub(crate) struct Planning<'a> {
    path: &'a WorkspacePath,
    changes: &'a [Change],
    expected: &'a Tag,
    /// How many bytes all edits of the call insert, and how many of them those of this file.
    inserted_in_all: &'a Cell<u64>,
    inserted: u64,
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
    /// Plannings of one call share `inserted_in_all`.
    pub(crate) fn new(
        path: &'a WorkspacePath,
        changes: &'a [Change],
        expected: &'a Tag,
        inserted_in_all: &'a Cell<u64>,
        wants_diff: bool,
    ) -> Self {
        Self {
            path,
            changes,
            expected,
            inserted_in_all,
            inserted: 0,
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
        let elsewhere = self.inserted_in_all.get() - self.inserted;
        let mut inserted = elsewhere;
        let planned = plan(source, self.changes, self.expected, &mut inserted, has_ended)?;
        self.inserted = inserted - elsewhere;
        self.inserted_in_all.set(inserted);
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
