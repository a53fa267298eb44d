//! Edits of several files in one call: which entries belong to one file, and everything that is wrong with them.

mod problems;

use std::cell::Cell;

use pintle_contract::{Fault, WorkspacePath};

use self::problems::Problems;
use crate::{
    diff::{self, FileDiff},
    files::{self, Files},
    hash::Tag,
    planning::Planning,
    store::{ChangeKind, ChangeSetError, FileChange, Store, StoreError, Terms},
    text::{Change, Problem},
    together::{Done, EditedFile, change_together, not_undone},
};

/// One edit of a batch.
pub(crate) struct BatchEntry {
    pub(crate) path: String,
    pub(crate) hash: Option<String>,
    pub(crate) change: Change,
    /// What the caller wrote for `lines`, if it was `"3-7"`.
    pub(crate) written: Option<String>,
}

/// A file of a batch, by its resolved path.
struct BatchFile<'a> {
    /// Its path, as the first of its entries has it.
    path: WorkspacePath,
    /// Where that leads.
    resolved: WorkspacePath,
    /// The numbers of its entries.
    entries: Vec<usize>,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Edit { expected: Tag, changes: Vec<Change> },
    Create(&'a str),
}

/// What became of one file.
struct Outcome {
    total_lines: u64,
    places: u64,
    diff: Option<FileDiff>,
}

/// Makes all edits, or none of them.
pub(crate) fn edit_files(
    files: &Files,
    store: &dyn Store,
    terms: &Terms<'_>,
    entries: &[BatchEntry],
    dry_run: bool,
) -> Result<Done, Fault> {
    let (mut problems, used) = (Problems::new(entries), Cell::default());
    let groups = group(files, store, terms, entries, &mut problems);
    let batch: Vec<BatchFile<'_>> =
        groups.into_iter().filter_map(|group| batch_file(group, entries, &mut problems)).collect();
    let mut plannings: Vec<Option<Planning<'_>>> = batch
        .iter()
        .map(|file| match &file.kind {
            Kind::Edit { expected, changes } => {
                Some(Planning::new(&file.resolved, changes, expected, &used, true))
            }
            Kind::Create(_) => None,
        })
        .collect();
    // With something wrong already, the other files are only checked, so that all of it is reported.
    let only_checks = dry_run || !problems.is_empty();
    let changes = changes(&batch, &mut plannings, terms.has_ended);
    let changed = change_together(store, terms, changes, &mut || Ok(()), only_checks);
    let hashes = match changed {
        Ok(hashes) if problems.is_empty() => hashes,
        Ok(_) => return Err(problems.into_fault()),
        Err(ChangeSetError::Files(errors)) => {
            for (number, error) in errors {
                let (Some(file), Some(planning)) = (batch.get(number), plannings.get_mut(number)) else {
                    continue;
                };
                let is_planned = matches!(error, StoreError::Stale(_) | StoreError::Refused(_));
                match planning.as_mut().map(|planning| std::mem::take(&mut planning.problems)) {
                    Some(found) if is_planned && !found.is_empty() => {
                        for Problem { entry, fault, other } in found {
                            let fault = problems::naming(fault, other.map(|other| file.entries[other]));
                            problems.push(file.entries[entry], fault);
                        }
                    }
                    // What all its edits make of a file is wrong, so only the first of them is named.
                    _ if matches!(error, StoreError::RuleBroken(_)) => {
                        problems.push(file.entries[0], problems::of_file(files, store, terms, file, error));
                    }
                    _ => {
                        let fault = problems::of_file(files, store, terms, file, error);
                        problems.set_for_all(&file.entries, &fault);
                    }
                }
            }
            return Err(problems.into_fault());
        }
        // What is known to be wrong stays wrong when a lock is free.
        Err(ChangeSetError::Whole(error)) if !problems.is_empty() && !matches!(error, StoreError::Ended) => {
            return Err(problems.into_fault());
        }
        Err(ChangeSetError::Whole(error)) => {
            let path = batch.first().map_or_else(WorkspacePath::root, |file| file.path.clone());
            return Err(crate::fault::fault(error, &path));
        }
        Err(ChangeSetError::NotUndone { cause, undone, kept, is_tried_again }) => {
            let (number, error) = *cause;
            let file = number.and_then(|number| batch.get(number)).or(batch.first());
            return Err(not_undone(file.map(|file| &file.path), error, &undone, (&kept, is_tried_again)));
        }
    };
    let (mut edited, mut diffs) = (Vec::new(), Vec::new());
    for ((file, planning), hash) in batch.iter().zip(plannings).zip(hashes) {
        let Outcome { total_lines, places, diff } = outcome(file, planning);
        diffs.extend(diff);
        let (path, hash) = (file.path.as_str().to_owned(), hash.to_string());
        edited.push(EditedFile { path, hash, total_lines, changes: places });
    }
    Ok(Done { files: edited, diff: diff::join(diffs) })
}

fn outcome(file: &BatchFile<'_>, planning: Option<Planning<'_>>) -> Outcome {
    match (&file.kind, planning) {
        (Kind::Create(content), _) => Outcome {
            total_lines: content.split_inclusive('\n').count() as u64,
            places: 1,
            diff: Some(diff::of_creation(&file.resolved, content.as_bytes())),
        },
        (Kind::Edit { .. }, Some(Planning { total_lines, places, diff, .. })) => {
            Outcome { total_lines, places, diff }
        }
        (Kind::Edit { .. }, None) => Outcome { total_lines: 0, places: 0, diff: None },
    }
}

/// The changes of the files of a batch.
fn changes<'a, 'b>(
    batch: &'a [BatchFile<'b>],
    plannings: &'a mut [Option<Planning<'b>>],
    has_ended: &'a dyn Fn() -> bool,
) -> Vec<FileChange<'a>>
where
    'b: 'a,
{
    let change = |(file, planning): (&'a BatchFile<'b>, &'a mut Option<Planning<'b>>)| {
        let kind = match &file.kind {
            Kind::Create(content) => ChangeKind::Create(content.as_bytes()),
            Kind::Edit { expected, .. } => ChangeKind::Edit {
                expected: expected.clone(),
                plan: Box::new(move |source| match planning.as_mut() {
                    Some(planning) => planning.plan(source, has_ended),
                    None => Err(StoreError::NotFound),
                }),
            },
        };
        FileChange { path: file.path.clone(), kind }
    };
    batch.iter().zip(plannings).map(change).collect()
}

/// The entries of one file.
struct Group {
    path: WorkspacePath,
    resolved: WorkspacePath,
    entries: Vec<usize>,
}

/// Groups entries by the file that their paths lead to, in the order of the first entry of each.
fn group(
    files: &Files,
    store: &dyn Store,
    terms: &Terms<'_>,
    entries: &[BatchEntry],
    problems: &mut Problems<'_>,
) -> Vec<Group> {
    // First by the path as it is written, then by where that leads.
    let mut by_path: Vec<(WorkspacePath, Vec<usize>)> = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let path = match files::path(&entry.path) {
            Ok(path) => path,
            Err(fault) => {
                problems.push(number, fault);
                continue;
            }
        };
        match by_path.iter_mut().find(|(known, _)| *known == path) {
            Some((_, numbers)) => numbers.push(number),
            None => match files.refuse_absolute(&path, store, terms) {
                Ok(()) => by_path.push((path, vec![number])),
                Err(fault) => problems.push(number, fault),
            },
        }
    }
    let mut by_file: Vec<Group> = Vec::new();
    for (path, numbers) in by_path {
        match store.resolve(&path, terms) {
            Ok(resolved) => match by_file.iter_mut().find(|known| known.resolved == resolved) {
                Some(known) => known.entries.extend(numbers),
                None => by_file.push(Group { path, resolved, entries: numbers }),
            },
            Err(error) => {
                let fault = files.fault(error, &path, store, terms);
                problems.set_for_all(&numbers, &fault);
            }
        }
    }
    by_file.iter_mut().for_each(|group| group.entries.sort_unstable());
    by_file
}

/// What is to be done with a file, if that can be known.
fn batch_file<'a>(
    group: Group,
    entries: &'a [BatchEntry],
    problems: &mut Problems<'_>,
) -> Option<BatchFile<'a>> {
    let Group { path, resolved, entries: numbers } = group;
    let has_hash = numbers.iter().any(|number| entries[*number].hash.is_some());
    if !has_hash {
        let adds = |number: &usize| match &entries[*number].change {
            Change::Append { content } => Some(content.as_str()),
            _ => None,
        };
        if let Some(number) = numbers.iter().find(|number| adds(number).is_none()) {
            problems.push(*number, problems::no_hash());
            return None;
        }
        // If the file exists, they are told so instead.
        numbers[1..].iter().for_each(|number| problems.push(*number, problems::created_twice(numbers[0])));
        let content = adds(&numbers[0])?;
        return Some(BatchFile { path, resolved, entries: numbers, kind: Kind::Create(content) });
    }
    let mut expected: Option<(Tag, usize)> = None;
    let mut fitting = Vec::new();
    for number in numbers {
        let entry = &entries[number];
        let tag = match entry.hash.as_deref().map(files::tag).transpose() {
            Ok(tag) => tag,
            Err(fault) => {
                problems.push(number, fault);
                continue;
            }
        };
        match (&expected, tag) {
            (Some((known, first)), Some(tag)) if !known.agrees_with(&tag) => {
                problems.push(number, problems::two_hashes(*first));
                continue;
            }
            // The longer of two that agree says more.
            (Some((known, first)), Some(tag)) if known.length() < tag.length() => {
                expected = Some((tag, *first));
            }
            (None, Some(tag)) => expected = Some((tag, number)),
            _ => {}
        }
        if let (Some(written), Change::Replace(replace)) = (&entry.written, &entry.change)
            && let Some(lines) = replace.lines
            && (replace.old.is_none() || replace.all)
        {
            problems.push(number, files::lines_not_confirmed(written, lines));
            continue;
        }
        fitting.push(number);
    }
    let (expected, _) = expected?;
    let changes = fitting.iter().map(|number| entries[*number].change.clone()).collect();
    (!fitting.is_empty()).then_some(BatchFile {
        path,
        resolved,
        entries: fitting,
        kind: Kind::Edit { expected, changes },
    })
}
