//! What must hold of both indexes whatever bytes come: the properties that the fuzz targets assert.
//!
//! An input is a list of damages and then texts, with a byte `ff` between them. An index of the texts is built and
//! asked; then the damages are done to its bytes, and it is asked again. The first byte of the input says how many
//! damages there are (up to seven); each is three bytes: where, and which bits are flipped.

use crate::{
    Case, Definition, Finding, Malformed, NameQuery, Names, NamesBuilder, NamesPart, Ranked, Words,
    WordsBuilder, WordsPart, best_line, find, rank, term_weights,
};

const LIMIT: usize = 10;

struct Input<'a> {
    damages: Vec<&'a [u8; 3]>,
    query: String,
    texts: Vec<&'a [u8]>,
}

impl<'a> Input<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&count, rest) = bytes.split_first()?;
        let (damages, rest) = rest.split_at_checked(usize::from(count % 8) * 3)?;
        let mut texts = rest.split(|byte| *byte == 0xff);
        let query = String::from_utf8_lossy(texts.next()?).into_owned();
        let (damages, _) = damages.as_chunks();
        Some(Self { damages: damages.iter().collect(), query, texts: texts.take(64).collect() })
    }

    /// The bytes of an index once all damages are done.
    fn damage(&self, index: &[u8]) -> Vec<u8> {
        let mut index = index.to_vec();
        for &&[high, low, flip] in &self.damages {
            let position = usize::from(u16::from_be_bytes([high, low])) % index.len().max(1);
            if let Some(byte) = index.get_mut(position) {
                *byte ^= flip;
            }
        }
        index
    }
}

/// Every other file, for callers who may not read all.
fn is_even(file: u32) -> bool {
    file.is_multiple_of(2)
}

/// Ranks files by the words of a query. A file is found if and only if it would be found alone; what a caller may not
/// read changes nothing, to the last bit; damage, or bytes that never were an index, do no harm.
pub fn words_index(bytes: &[u8]) {
    let _ = ask_words(bytes, "some words");
    let Some(input) = Input::read(bytes) else { return };
    let query = input.query.as_str();
    let index = words_of(&input.texts, |_| true);
    let (ranked, total) = ask_words(&index, query).expect("what was built is an index");
    let alone = input.texts.iter().map(|text| words_of(&[text], |_| true));
    let expected = alone.filter(|index| ask_words(index, query).is_ok_and(|(_, total)| total > 0)).count();
    assert_eq!(total, expected as u64);
    assert_eq!(ranked.len(), expected.min(LIMIT));
    let readable = words_of(&input.texts, is_even);
    let part =
        WordsPart { words: Words::open(&index).expect("an index"), allowed: Some(&|file| is_even(file)) };
    let allowed = rank(&[part], query, LIMIT, &|| false);
    assert_eq!(Ok(allowed), ask_words(&readable, query));
    if let Some(best) = input.texts.iter().find_map(|text| Some((text, best_line(text, query, None)?))) {
        let (text, line) = best;
        let shown = &text[line.range.clone()];
        assert!(
            !shown.contains(&b'\n') && line.line > 0 && (1..=shown.len()).contains(&(line.column as usize))
        );
    }
    let _ = ask_words(&input.damage(&index), query);
}

/// An index of those texts whose numbers count; the others are empty files.
fn words_of(texts: &[&[u8]], counts: impl Fn(u32) -> bool) -> Vec<u8> {
    let mut builder = WordsBuilder::new(None, 1 << 16);
    for (file, text) in (0..).zip(texts).filter(|(file, _)| counts(*file)) {
        builder.add(file, text).expect("memory can be written");
    }
    let mut index = Vec::new();
    WordsBuilder::finish(vec![builder], texts.len() as u32, &mut index).expect("memory can be written");
    index
}

/// Asks bytes that may be an index.
fn ask_words(bytes: &[u8], query: &str) -> Result<(Vec<Ranked>, u64), Malformed> {
    let words = Words::open(bytes)?;
    // Four bytes of the index say how long a file is.
    assert!(words.file_count() as usize <= bytes.len() / 4);
    let part = WordsPart { words, allowed: None };
    let (ranked, total) = rank(&[part], query, LIMIT, &|| false);
    assert!(ranked.iter().all(|ranked| ranked.file < words.file_count() && ranked.part == 0));
    assert!(ranked.is_sorted() && ranked.len() as u64 == total.min(LIMIT as u64));
    assert!(term_weights(&[part], query).iter().all(|weight| weight.is_finite() && *weight >= 0.0));
    Ok((ranked, total))
}

/// Looks up names. A name that was added is found by itself before all others; what a caller may not read changes
/// nothing; damage, or bytes that never were an index, do no harm.
pub fn names_index(bytes: &[u8]) {
    ask_names(bytes, "some_name", Case::Insensitive);
    let Some(input) = Input::read(bytes) else { return };
    let query = input.query.as_str();
    let index = names_of(&input.texts, |_| true);
    let readable = names_of(&input.texts, is_even);
    for case in [Case::Sensitive, Case::Insensitive] {
        let finding = ask_names(&index, query, case).expect("what was built is an index");
        let has = |name: &[u8]| input.texts.contains(&name);
        if !query.is_empty() && query.len() < 256 && has(query.as_bytes()) {
            assert_eq!(finding.found.first().map(|found| found.name.as_str()), Some(query));
        }
        let part =
            NamesPart { names: Names::open(&index).expect("an index"), allowed: Some(&|file| is_even(file)) };
        let name_query = NameQuery { name: query, case, kinds: None };
        let allowed = find(&[part], &name_query, LIMIT, &|| false);
        assert_eq!(Some(allowed), ask_names(&readable, query, case));
        let _ = ask_names(&input.damage(&index), query, case);
    }
}

/// An index of those names whose numbers count, each defined in a file of its own.
fn names_of(names: &[&[u8]], counts: impl Fn(u32) -> bool) -> Vec<u8> {
    let mut builder = NamesBuilder::new(None, 0);
    for (file, name) in (0..).zip(names).filter(|(file, _)| counts(*file)) {
        let definition =
            Definition { line: file * 7 + 1, column: 1, end_line: file * 7 + 3, kind: file as u8 % 5 };
        builder.add(file, name, definition).expect("memory can be written");
    }
    let mut index = Vec::new();
    NamesBuilder::finish(vec![builder], names.len() as u32, &mut index).expect("memory can be written");
    index
}

/// Asks bytes that may be an index.
fn ask_names(bytes: &[u8], query: &str, case: Case) -> Option<Finding> {
    let names = Names::open(bytes).ok()?;
    // Four bytes of the index hold the letters of a name.
    assert!(names.name_count() <= bytes.len() as u64 / 4);
    let part = NamesPart { names, allowed: None };
    let finding = find(&[part], &NameQuery { name: query, case, kinds: None }, LIMIT, &|| false);
    assert!(finding.found.len() <= LIMIT && finding.found.len() as u64 <= finding.total);
    assert!(finding.found.iter().all(|found| (0.0..=1.0).contains(&found.score) && found.part == 0));
    assert!(finding.found.is_sorted_by(|one, other| one.score >= other.score));
    Some(finding)
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("words_index", words_index);
        seeds::each_seed("names_index", names_index);
    }
}
