//! Finding definitions by name.

use super::Definition;
use super::block::NAMES;
use super::letters::{Letters, letters_of};
use super::matching::{Class, LONGEST_PATTERN, Pattern};
use super::order::{compare, compare_folded};
use super::scan::{Candidate, candidate, class_and_ordinal, scan};
use super::section::Names;
use super::typos::{Typos, most_typos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Once the limit is reached, the rest of the class is still counted up to this many.
const COUNTED: u64 = 1_000;
/// What a name of each class is worth, at least; a twentieth more if it is hardly longer than the query.
const WORTH: [f32; 8] = [0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3];

/// Whether capital and small letters (of ASCII) are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// They are different.
    Sensitive,
    /// They are the same.
    Insensitive,
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct NameQuery<'a> {
    /// The name, or what is known of it.
    pub name: &'a str,
    /// Whether case counts.
    pub case: Case,
    /// Only definitions of these kinds; all if there are none given.
    pub kinds: Option<&'a [u8]>,
}

/// One index among those that are searched together.
#[derive(Clone, Copy)]
pub struct NamesPart<'a> {
    /// The index.
    pub names: Names<'a>,
    /// Which of its files count; all if there is no such question.
    pub allowed: Option<&'a dyn Fn(u32) -> bool>,
}

/// A definition that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The index of the part.
    pub part: usize,
    /// The file's number in the part.
    pub file: u32,
    /// The name as it is defined; bytes that are no UTF-8 are replaced.
    pub name: String,
    /// Where and what it is.
    pub definition: Definition,
    /// How well the name matches, from 0 to 1.
    pub score: f32,
}

/// What came of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The best definitions, best first.
    pub found: Vec<Found>,
    /// How many match.
    pub total: u64,
    /// Whether that is all; if not, there may be more that were not counted.
    pub is_total_exact: bool,
}

/// The definitions whose names match best.
///
/// Names are ranked by how they match: exactly; exactly but for case; as a beginning; from the start of a
/// part on; by the beginnings of neighbouring parts; somewhere inside (three bytes or more); with one typing
/// error (four bytes or more); with two (eight or more). Then shorter names come first, then the order of
/// names, parts, files, lines. Worse matches are looked for only if the better ones do not fill the limit.
/// Queries longer than 63 bytes match exactly and as a beginning only; an empty one matches nothing.
///
/// When `has_ended` says so, what was found until then comes back.
pub fn find(
    parts: &[NamesPart<'_>],
    query: &NameQuery<'_>,
    limit: usize,
    has_ended: &dyn Fn() -> bool,
) -> Finding {
    let name = query.name.as_bytes();
    let mut search = Search {
        parts,
        query_length: name.len(),
        kinds: query.kinds.map(|kinds| std::array::from_fn(|kind| kinds.contains(&(kind as u8)))),
        limit,
        has_ended,
        finding: Finding { found: Vec::new(), total: 0, is_total_exact: true },
    };
    if name.is_empty() {
        return search.finding;
    }
    let is_sensitive = query.case == Case::Sensitive;
    let begin = |names: Names<'_>| beginnings(names, name, is_sensitive, has_ended);
    if !search.take(parts.iter().map(|part| begin(part.names)).collect()) || name.len() > LONGEST_PATTERN {
        return search.finding;
    }
    let pattern = Pattern::new(name, is_sensitive);
    let letters = letters_of(name);
    let by_parts = |name: &[u8]| pattern.class_of(name).filter(|class| *class > Class::Prefix);
    if !search.scan(Letters::All(letters), Some(&pattern), &by_parts) {
        return search.finding;
    }
    if let Some(typos) = Typos::new(name, is_sensitive) {
        let by_typos = |name: &[u8]| {
            let class = if typos.errors(name)? < 2 { Class::OneTypo } else { Class::TwoTypos };
            pattern.class_of(name).is_none().then_some(class)
        };
        search.scan(Letters::Nearly(letters, most_typos(name.len()) as u32), None, &by_typos);
    }
    search.finding
}

/// The names that begin with the query, or are it.
fn beginnings(
    names: Names<'_>,
    query: &[u8],
    is_sensitive: bool,
    has_ended: &dyn Fn() -> bool,
) -> Vec<Candidate> {
    let start_of = |name: &[u8]| compare_folded(&name[..name.len().min(query.len())], query);
    let first = names.first_not(|name| start_of(name).is_lt());
    let end = names.first_not(|name| start_of(name).is_le());
    let mut found = Vec::new();
    // Of the names no more is needed than what may be the query, and that seldom changes.
    let mut start = Vec::with_capacity(query.len());
    let mut ordinal = first / NAMES as u64 * NAMES as u64;
    while ordinal < end {
        if ordinal.is_multiple_of(1 << 14) && has_ended() {
            break;
        }
        let ordinals = ordinal..end;
        for (ordinal, (shared, more)) in ordinals.zip(names.block((ordinal / NAMES as u64) as usize).names())
        {
            if shared < query.len() {
                start.truncate(shared);
                start.extend_from_slice(&more[..more.len().min(query.len() - shared)]);
            }
            if ordinal < first {
                continue;
            }
            let length = shared + more.len();
            let class = match (start == query, length == query.len()) {
                (true, true) => Class::Exact,
                (false, _) if is_sensitive => continue,
                (false, true) => Class::OtherCase,
                (_, false) => Class::Prefix,
            };
            found.push(candidate(class, length, ordinal));
        }
        ordinal += NAMES as u64;
    }
    found
}

struct Search<'s> {
    parts: &'s [NamesPart<'s>],
    query_length: usize,
    kinds: Option<[bool; 256]>,
    limit: usize,
    has_ended: &'s dyn Fn() -> bool,
    finding: Finding,
}

impl Search<'_> {
    /// Looks through all names. Returns whether worse ones are wanted.
    fn scan(
        &mut self,
        letters: Letters,
        pattern: Option<&Pattern<'_>>,
        class_of: &(dyn Fn(&[u8]) -> Option<Class> + Sync),
    ) -> bool {
        let candidates = |part: &NamesPart<'_>| scan(part.names, letters, pattern, class_of, self.has_ended);
        self.take(self.parts.iter().map(candidates).collect())
    }

    /// Takes the definitions of candidates, those of each part apart, in the order of results. Returns whether
    /// worse ones are wanted.
    fn take(&mut self, candidates: Vec<Vec<Candidate>>) -> bool {
        // Only the best of possibly very many are needed, so they are not sorted.
        let mut heaps: Vec<BinaryHeap<Reverse<Candidate>>> = candidates
            .into_iter()
            .map(|candidates| candidates.into_iter().map(Reverse).collect::<Vec<_>>().into())
            .collect();
        let mut heads: Vec<Option<Head>> = vec![None; heaps.len()];
        let mut taken = 0u32;
        loop {
            for ((head, heap), part) in heads.iter_mut().zip(&mut heaps).zip(self.parts) {
                if head.is_none() {
                    *head = heap.pop().map(|Reverse(candidate)| Head::new(candidate, part.names));
                }
            }
            let best = heads.iter().enumerate().filter_map(|(part, head)| Some((head.as_ref()?, part)));
            let Some((_, part)) = best.min_by(|one, other| one.0.compare(other.0)) else { break };
            let Some(head) = heads[part].take() else { break };
            self.take_name(part, &head);
            taken = taken.wrapping_add(1);
            let is_enough = self.finding.found.len() >= self.limit && self.finding.total >= COUNTED;
            if is_enough || taken.is_multiple_of(256) && (self.has_ended)() {
                self.finding.is_total_exact = false;
                return false;
            }
        }
        // What it says depends on what was found alone, not on whether there is more that is not allowed.
        let wants_more = self.finding.found.len() < self.limit && !(self.has_ended)();
        self.finding.is_total_exact = wants_more;
        wants_more
    }

    fn take_name(&mut self, part: usize, head: &Head) {
        let NamesPart { names, allowed } = self.parts[part];
        let (class, ordinal) = class_and_ordinal(head.candidate);
        let closeness = self.query_length as f32 / head.name.len().max(self.query_length) as f32;
        let score = WORTH[(class & 7) as usize] + 0.05 * closeness;
        names.definitions(ordinal, &mut |file, definition| {
            let is_wanted = self.kinds.as_ref().is_none_or(|kinds| kinds[definition.kind as usize]);
            if !is_wanted || allowed.is_some_and(|allowed| !allowed(file)) {
                return;
            }
            self.finding.total += 1;
            if self.finding.found.len() < self.limit {
                let name = String::from_utf8_lossy(&head.name).into_owned();
                self.finding.found.push(Found { part, file, name, definition, score });
            }
        });
    }
}

/// The best candidate of a part.
#[derive(Clone)]
struct Head {
    candidate: Candidate,
    name: Vec<u8>,
}

impl Head {
    fn new(candidate: Candidate, names: Names<'_>) -> Self {
        let mut name = Vec::new();
        names.name(class_and_ordinal(candidate).1, &mut name);
        Self { candidate, name }
    }

    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let class_and_length = |head: &Self| head.candidate >> 48;
        let by_class = class_and_length(self).cmp(&class_and_length(other));
        by_class.then_with(|| compare(&self.name, &other.name))
    }
}
