//! Ranking files by BM25.
//!
//! Number of files, their average length, and how many have a term are counted over the files that the
//! caller may read, in all parts together. The scores are what they would be if the rest did not exist, to
//! the last bit: nothing about the rest can be learned from them.

use super::postings::{LEVELS, Posting};
use super::query::{QueryTerm, SATURATION, terms_of};
use super::section::Words;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// How much longer files are held against (`b` of BM25).
const LENGTH_SHARE: f32 = 0.75;

/// One index among those that are ranked together.
#[derive(Clone, Copy)]
pub struct WordsPart<'a> {
    /// The index.
    pub words: Words<'a>,
    /// Which of its files count; all if there is no such question.
    pub allowed: Option<&'a dyn Fn(u32) -> bool>,
}

/// A file that has some of the words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The index of the part.
    pub part: usize,
    /// The file's number in the part.
    pub file: u32,
    /// How well it matches; only for comparing within one ranking.
    pub score: f32,
}

impl Eq for Ranked {}

impl Ord for Ranked {
    /// Greater is worse: the order of the results.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.part.cmp(&other.part)).then(self.file.cmp(&other.file))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best files for a query, best first, and how many files match at all.
///
/// A file matches if it has any term. Ties go to the earlier part, then the lower number. When
/// `has_ended` says so, the answer is empty.
pub fn rank(
    parts: &[WordsPart<'_>],
    query: &str,
    limit: usize,
    has_ended: &dyn Fn() -> bool,
) -> (Vec<Ranked>, u64) {
    let terms = terms_of(query);
    let scopes: Vec<Scope<'_>> = parts.iter().map(Scope::new).collect();
    let whole = Whole::of(&scopes);
    let mut scores: Vec<Vec<f32>> =
        scopes.iter().map(|scope| vec![0.0; scope.words.file_count() as usize]).collect();
    let mut posting_lists = vec![Vec::new(); scopes.len()];
    for term in &terms {
        if has_ended() {
            return (Vec::new(), 0);
        }
        let weight = read_term(&scopes, term, &whole, &mut posting_lists);
        for ((scope, postings), scores) in scopes.iter().zip(&posting_lists).zip(&mut scores) {
            add_scores(scope, postings, term, weight, &whole, scores);
        }
    }
    best(&scores, limit)
}

/// How much each distinct term of a query counts by how rare it is, in the order in which they first stand
/// in the query; zero for a term that no file has. This is for [`best_line`](crate::best_line).
pub fn term_weights(parts: &[WordsPart<'_>], query: &str) -> Vec<f32> {
    let scopes: Vec<Scope<'_>> = parts.iter().map(Scope::new).collect();
    let whole = Whole::of(&scopes);
    let mut posting_lists = vec![Vec::new(); scopes.len()];
    let weigh = |term: &QueryTerm| {
        let weight = read_term(&scopes, term, &whole, &mut posting_lists);
        if posting_lists.iter().all(Vec::is_empty) { 0.0 } else { weight }
    };
    terms_of(query).iter().map(weigh).collect()
}

/// A part with what was asked about its files once and for all.
struct Scope<'a> {
    words: Words<'a>,
    /// A bit for each file; none if all are allowed.
    allowed: Option<Vec<u64>>,
    file_count: u64,
    length_sum: u64,
}

impl<'a> Scope<'a> {
    fn new(part: &WordsPart<'a>) -> Self {
        let words = part.words;
        let mut bits = part.allowed.map(|_| vec![0u64; (words.file_count() as usize).div_ceil(64)]);
        let (mut file_count, mut length_sum) = (0, 0);
        for file in 0..words.file_count() {
            if let (Some(allowed), Some(bits)) = (part.allowed, &mut bits) {
                if !allowed(file) {
                    continue;
                }
                bits[file as usize / 64] |= 1 << (file % 64);
            }
            // A file without terms is as good as none.
            let length = words.length_of(file);
            file_count += u64::from(length > 0);
            length_sum += u64::from(length);
        }
        Self { words, allowed: bits, file_count, length_sum }
    }
}

/// All scopes together.
struct Whole {
    file_count: u64,
    /// What a file's length is multiplied by for the denominator.
    per_length: f32,
}

impl Whole {
    fn of(scopes: &[Scope<'_>]) -> Self {
        let file_count = scopes.iter().map(|scope| scope.file_count).sum::<u64>();
        let length_sum = scopes.iter().map(|scope| scope.length_sum).sum::<u64>().max(1);
        let per_length =
            f64::from(SATURATION) * f64::from(LENGTH_SHARE) * file_count as f64 / length_sum as f64;
        Self { file_count, per_length: per_length as f32 }
    }
}

/// Reads the postings of a term in all scopes, and returns its weight.
fn read_term(
    scopes: &[Scope<'_>],
    term: &QueryTerm,
    whole: &Whole,
    posting_lists: &mut [Vec<Posting>],
) -> f32 {
    for (scope, postings) in scopes.iter().zip(posting_lists.iter_mut()) {
        scope.words.postings(term.term, postings);
        if let Some(bits) = &scope.allowed {
            postings.retain(|posting| {
                bits.get(posting.file as usize / 64).is_some_and(|word| word >> (posting.file % 64) & 1 == 1)
            });
        }
    }
    let having = posting_lists.iter().map(Vec::len).sum::<usize>() as f64;
    let rarity = ((whole.file_count as f64 - having).max(0.0) + 0.5) / (having + 0.5);
    term.weight * (1.0 + rarity).ln() as f32
}

fn add_scores(
    scope: &Scope<'_>,
    postings: &[Posting],
    term: &QueryTerm,
    weight: f32,
    whole: &Whole,
    scores: &mut [f32],
) {
    for posting in postings {
        let Some(score) = scores.get_mut(posting.file as usize) else { continue };
        let count = f32::from(LEVELS[posting.level as usize & 15]);
        // An identifier as a whole is not worth less in a long file: it is what was asked for.
        let length = scope.words.length_of(posting.file) as f32;
        let damping = if term.is_whole {
            SATURATION
        } else {
            SATURATION * (1.0 - LENGTH_SHARE) + whole.per_length * length
        };
        *score += weight * count * (SATURATION + 1.0) / (count + damping);
    }
}

fn best(scores: &[Vec<f32>], limit: usize) -> (Vec<Ranked>, u64) {
    let mut heap: BinaryHeap<Ranked> = BinaryHeap::new();
    let mut total = 0;
    for (part, scores) in scores.iter().enumerate() {
        for (file, &score) in scores.iter().enumerate() {
            if score <= 0.0 {
                continue;
            }
            total += 1;
            let ranked = Ranked { part, file: file as u32, score };
            if heap.len() < limit {
                heap.push(ranked);
            } else if let Some(mut worst) = heap.peek_mut()
                && ranked < *worst
            {
                *worst = ranked;
            }
        }
    }
    (heap.into_sorted_vec(), total)
}
