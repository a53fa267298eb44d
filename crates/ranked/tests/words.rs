//! The index of words against a plain model, under every way of building it.

use pintle_ranked::{Ranked, Words, WordsBuilder, WordsPart, rank, term_weights};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

const LEVELS: [u32; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 255];

/// A file as a list of words of one part, so that the model needs no tokenizer.
type File = Vec<&'static str>;

const VOCABULARY: [&str; 12] =
    ["alpha", "beta", "gamma", "delta", "open", "file", "read", "größe", "x", "of", "the", "zeta"];

fn files() -> impl Strategy<Value = Vec<File>> {
    let word = prop_oneof![
        4 => proptest::sample::select(&VOCABULARY[..]),
        1 => Just("the"),
    ];
    let file = prop_oneof![
        9 => proptest::collection::vec(word.clone(), 0..20),
        1 => proptest::collection::vec(word, 200..600),
    ];
    proptest::collection::vec(file, 1..60)
}

fn build(files: &[(u32, &File)], file_count: u32, builder_count: usize, budget: usize) -> Vec<u8> {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = budget.is_multiple_of(2).then(|| scratch.path());
    let mut builders: Vec<_> = (0..builder_count).map(|_| WordsBuilder::new(folder, budget)).collect();
    for (index, (file, words)) in files.iter().enumerate() {
        builders[index * 7 % builder_count].add(*file, words.join(", ").as_bytes()).expect("added");
    }
    let mut bytes = Vec::new();
    let length = WordsBuilder::finish(builders, file_count, &mut bytes).expect("finished");
    assert_eq!(length, bytes.len() as u64);
    assert_eq!(scratch.path().read_dir().expect("listed").count(), 0, "scratch files are gone");
    bytes
}

fn numbered(files: &[File]) -> Vec<(u32, &File)> {
    (0..).zip(files).collect()
}

/// BM25 by the book, over a list of files.
fn model(files: &[((usize, u32), &File)], query: &[&str]) -> BTreeMap<(usize, u32), f64> {
    let files: Vec<_> = files.iter().filter(|(_, words)| !words.is_empty()).collect();
    let average = files.iter().map(|(_, words)| words.len()).sum::<usize>() as f64 / files.len() as f64;
    let mut terms = Vec::new();
    for term in query {
        if !terms.contains(term) {
            terms.push(*term);
        }
    }
    let mut scores = BTreeMap::new();
    for term in terms {
        let counts: HashMap<_, _> = files
            .iter()
            .map(|(key, words)| (*key, words.iter().filter(|word| **word == term).count() as u32))
            .filter(|(_, count)| *count > 0)
            .collect();
        let having = counts.len() as f64;
        let rarity = (1.0 + (files.len() as f64 - having + 0.5) / (having + 0.5)).ln();
        for (key, words) in &files {
            let Some(&count) = counts.get(key) else { continue };
            let count =
                LEVELS.iter().rev().find(|level| **level <= count).map_or(0.0, |level| f64::from(*level));
            let damping = 1.2 * (0.25 + 0.75 * words.len() as f64 / average);
            *scores.entry(*key).or_insert(0.0) += rarity * count * 2.2 / (count + damping);
        }
    }
    scores
}

fn assert_is_model(found: &[Ranked], total: u64, expected: &BTreeMap<(usize, u32), f64>, limit: usize) {
    assert_eq!(total, expected.len() as u64);
    assert_eq!(found.len(), expected.len().min(limit));
    for ranked in found {
        let expected = expected[&(ranked.part, ranked.file)];
        assert!((f64::from(ranked.score) - expected).abs() < 1e-4 * expected, "{ranked:?} {expected}");
    }
    assert!(found.is_sorted_by(|one, other| {
        one.score > other.score || one.score == other.score && (one.part, one.file) < (other.part, other.file)
    }));
    let worst = found.last().map_or(0.0, |worst| f64::from(worst.score));
    let is_found = |key: &(usize, u32)| found.iter().any(|ranked| (ranked.part, ranked.file) == *key);
    for (key, score) in expected {
        assert!(is_found(key) || *score <= worst * 1.0001, "{key:?} is missing");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn scores_are_those_of_the_model(
        parts in proptest::collection::vec(files(), 1..4),
        query in proptest::collection::vec(proptest::sample::select(&VOCABULARY[..]), 1..5),
        builder_count in 1usize..4,
        budget in 0usize..20_000,
        limit in 1usize..30,
    ) {
        let sections: Vec<_> =
            parts.iter().map(|files| build(&numbered(files), files.len() as u32, builder_count, budget)).collect();
        let opened: Vec<_> = sections
            .iter()
            .map(|bytes| WordsPart { words: Words::open(bytes).expect("opened"), allowed: None })
            .collect();
        let (found, total) = rank(&opened, &query.join(" "), limit, &|| false);
        let keyed: Vec<_> = parts
            .iter()
            .enumerate()
            .flat_map(|(part, files)| (0..).zip(files).map(move |(file, words)| ((part, file), words)))
            .collect();
        assert_is_model(&found, total, &model(&keyed, &query), limit);
    }

    #[test]
    fn what_is_not_allowed_might_as_well_not_exist(
        files in files(),
        query in proptest::collection::vec(proptest::sample::select(&VOCABULARY[..]), 1..5),
        mask in any::<u64>(),
    ) {
        let query = query.join(" ");
        let is_allowed = |file: u32| mask >> (file % 64) & 1 == 1;
        let all = build(&numbered(&files), files.len() as u32, 2, 4000);
        let part = WordsPart { words: Words::open(&all).expect("opened"), allowed: Some(&is_allowed) };
        let of_all = rank(&[part], &query, 1000, &|| false);
        let mut kept = numbered(&files);
        kept.retain(|(file, _)| is_allowed(*file));
        let some = build(&kept, files.len() as u32, 1, 5001);
        let other = WordsPart { words: Words::open(&some).expect("opened"), allowed: None };
        prop_assert_eq!(&of_all, &rank(&[other], &query, 1000, &|| false), "to the last bit");
        prop_assert_eq!(term_weights(&[part], &query), term_weights(&[other], &query));
    }

    #[test]
    fn no_bytes_make_it_panic(
        files in files(),
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..20),
        cut in any::<proptest::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = build(&numbered(&files), files.len() as u32, 1, 100_001);
        for (index, byte) in &flips {
            let index = index.index(bytes.len());
            bytes[index] = *byte;
        }
        if is_cut {
            bytes.drain(..cut.index(bytes.len()));
        }
        if let Ok(words) = Words::open(&bytes) {
            let part = WordsPart { words, allowed: None };
            let (_, total) = rank(&[part], &VOCABULARY.join(" "), 10, &|| false);
            prop_assert!(total <= u64::from(words.file_count()));
        }
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(Words::open(&bytes).is_err() || bytes.is_empty());
    }
}

#[test]
fn the_very_identifier_stands_first_however_long_its_file() {
    let long = format!("fileOpen {}", "word ".repeat(100_000));
    let texts = ["file open file open file open", "open file", &long, "nothing"];
    let mut builder = WordsBuilder::new(None, 1 << 20);
    for (file, text) in (0..).zip(texts) {
        builder.add(file, text.as_bytes()).expect("added");
    }
    let mut bytes = Vec::new();
    WordsBuilder::finish(vec![builder], 4, &mut bytes).expect("finished");
    let part = WordsPart { words: Words::open(&bytes).expect("opened"), allowed: None };
    let (found, total) = rank(&[part], "fileOpen", 10, &|| false);
    assert_eq!((found[0].file, total), (2, 3));
    assert_eq!(rank(&[part], "fileOpen", 10, &|| true), (Vec::new(), 0), "ended");
    assert_eq!(rank(&[part], " ", 10, &|| false), (Vec::new(), 0));
}

#[test]
fn a_file_of_very_many_terms_is_counted_right_within_a_small_budget() {
    let mut text: String = (0..20_000).map(|number| format!("word{} ", letters(number))).collect();
    text.push_str(&text.clone());
    let mut builder = WordsBuilder::new(None, 0);
    builder.add(3, text.as_bytes()).expect("added");
    builder.add(1, b"wordaa other").expect("added");
    let mut bytes = Vec::new();
    WordsBuilder::finish(vec![builder], 5, &mut bytes).expect("finished");
    let part = WordsPart { words: Words::open(&bytes).expect("opened"), allowed: None };
    for number in (0..20_000).step_by(997) {
        let (found, _) = rank(&[part], &format!("word{}", letters(number)), 10, &|| false);
        assert_eq!(found.last().map(|last| last.file), Some(3));
    }
}

#[test]
fn a_file_beyond_the_count_is_refused() {
    let mut builder = WordsBuilder::new(None, 0);
    builder.add(7, b"word").expect("added");
    assert!(WordsBuilder::finish(vec![builder], 7, &mut Vec::new()).is_err());
}

#[test]
fn an_index_of_nothing_finds_nothing() {
    let mut bytes = Vec::new();
    WordsBuilder::finish(Vec::new(), 0, &mut bytes).expect("finished");
    let part = WordsPart { words: Words::open(&bytes).expect("opened"), allowed: None };
    assert_eq!(rank(&[part], "word", 10, &|| false), (Vec::new(), 0));
    assert_eq!(rank(&[], "word", 10, &|| false), (Vec::new(), 0));
}

/// A number in letters, so that no part of a word is a number.
fn letters(number: u32) -> String {
    format!("{number:05}").bytes().map(|digit| (digit - b'0' + b'a') as char).collect()
}
