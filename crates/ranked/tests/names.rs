//! The index of names against a plain model, under every way of building it.

use pintle_ranked::{Case, Definition, Found, NameQuery, Names, NamesBuilder, NamesPart, find};
use proptest::prelude::*;

type Entry = (u32, String, Definition);

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let name = prop_oneof![
        "[ab]{1,3}(_[abA]{1,3}){0,2}",
        "[ab]{0,2}([AB][ab]{0,2}){1,3}",
        "(open|file|read|Open|File|FILE|re|2|_){1,4}",
        "[a-zA-Z_ä]{0,12}",
    ];
    let definition = (0u8..4, 0u32..1000, 0u32..80, 0u32..50)
        .prop_map(|(kind, line, column, extent)| Definition { kind, line, column, end_line: line + extent });
    proptest::collection::vec((0u32..20, name, definition), 0..200)
}

fn build(entries: &[Entry], builder_count: usize, budget: usize) -> Vec<u8> {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = budget.is_multiple_of(2).then(|| scratch.path());
    let mut builders: Vec<_> = (0..builder_count).map(|_| NamesBuilder::new(folder, budget)).collect();
    for (index, (file, name, definition)) in entries.iter().enumerate() {
        builders[index * 7 % builder_count].add(*file, name.as_bytes(), *definition).expect("added");
    }
    let mut bytes = Vec::new();
    let length = NamesBuilder::finish(builders, 20, &mut bytes).expect("finished");
    assert_eq!(length, bytes.len() as u64);
    assert_eq!(scratch.path().read_dir().expect("listed").count(), 0, "scratch files are gone");
    bytes
}

/// The parts of a name: where they start and what they are.
fn parts_of(name: &str) -> Vec<(usize, String)> {
    let class = |character: char| match character {
        '0'..='9' => 'd',
        'A'..='Z' => 'u',
        'a'..='z' | '\u{80}'.. => 'l',
        _ => '_',
    };
    let characters: Vec<(usize, char)> = name.char_indices().collect();
    let mut parts: Vec<(usize, String)> = Vec::new();
    let mut before = '_';
    for (index, &(at, character)) in characters.iter().enumerate() {
        let after = characters.get(index + 1).map_or('_', |&(_, after)| class(after));
        let here = class(character);
        let starts = match (before, here) {
            (_, '_') => false,
            ('_', _) | ('l', 'u') | ('d', 'l' | 'u') | ('l' | 'u', 'd') => true,
            ('u', 'u') => after == 'l',
            _ => false,
        };
        if starts {
            parts.push((at, String::new()));
        }
        if here != '_'
            && let Some((_, part)) = parts.last_mut()
        {
            part.push(character);
        }
        before = here;
    }
    parts
}

/// Whether a text is made of beginnings of the parts, each of which gives something.
fn is_made_of(text: &str, parts: &[(usize, String)]) -> bool {
    let Some((_, part)) = parts.first() else { return false };
    (1..=part.len())
        .filter(|&length| part.is_char_boundary(length) && text.starts_with(&part[..length]))
        .any(|length| length == text.len() || is_made_of(&text[length..], &parts[1..]))
}

fn class_of(query: &str, name: &str, case: Case) -> Option<u8> {
    let is_same = query == name;
    let parts = parts_of(name);
    let (query, name, parts) = match case {
        Case::Sensitive => (query.to_owned(), name.to_owned(), parts),
        Case::Insensitive => {
            let parts = parts.iter().map(|(at, part)| (*at, part.to_ascii_lowercase())).collect();
            (query.to_ascii_lowercase(), name.to_ascii_lowercase(), parts)
        }
    };
    let letters: String = query.chars().filter(|c| c.is_ascii_alphanumeric() || !c.is_ascii()).collect();
    let typos = if query.len() >= 8 { 2 } else { usize::from(query.len() >= 4) };
    // Names are bytes, and so are errors in them.
    let as_characters = |text: &str| text.bytes().map(char::from).collect::<String>();
    let distance = strsim::osa_distance(&as_characters(&query), &as_characters(&name));
    match () {
        () if is_same => Some(0),
        () if query == name => Some(1),
        () if name.starts_with(&query) => Some(2),
        () if parts.iter().any(|(at, _)| name[*at..].starts_with(&query)) => Some(3),
        () if !letters.is_empty() && (0..parts.len()).any(|from| is_made_of(&letters, &parts[from..])) => {
            Some(4)
        }
        () if query.len() >= 3 && name.contains(&query) => Some(5),
        () if distance <= typos => Some(5 + distance as u8),
        () => None,
    }
}

type Key = (u8, usize, String, String, usize, u32, Definition);

fn model(parts: &[Vec<Entry>], query: &NameQuery<'_>, is_allowed: &dyn Fn(u32) -> bool) -> Vec<Key> {
    let mut found = Vec::new();
    for (part, entries) in parts.iter().enumerate() {
        for (file, name, definition) in entries {
            let is_wanted = query.kinds.is_none_or(|kinds| kinds.contains(&definition.kind));
            if name.is_empty() || !is_wanted || !is_allowed(*file) {
                continue;
            }
            if let Some(class) = class_of(query.name, name, query.case) {
                let folded = name.to_ascii_lowercase();
                found.push((class, name.len(), folded, name.clone(), part, *file, *definition));
            }
        }
    }
    found.sort();
    found
}

fn short(found: &Found) -> (String, usize, u32, Definition) {
    (found.name.clone(), found.part, found.file, found.definition)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_found_is_what_the_model_finds(
        parts in proptest::collection::vec(entries(), 1..4),
        name in prop_oneof!["[abAB_]{1,5}", "(open|file|read|Op|Fi|f|o|2|_|fiel|opne){1,3}", "[a-zä]{1,9}"],
        pick in any::<proptest::sample::Index>(),
        is_picked in any::<bool>(),
        is_sensitive in any::<bool>(),
        kinds in proptest::option::of(proptest::collection::vec(0u8..4, 0..3)),
        mask in any::<u32>(),
        builder_count in 1usize..4,
        budget in 0usize..3,
        limit in 1usize..100,
    ) {
        let names: Vec<_> = parts.iter().flatten().map(|(_, name, _)| name.clone()).collect();
        let name = if is_picked && !names.is_empty() { names[pick.index(names.len())].clone() } else { name };
        let case = if is_sensitive { Case::Sensitive } else { Case::Insensitive };
        let query = NameQuery { name: &name, case, kinds: kinds.as_deref() };
        let is_allowed = |file: u32| mask >> file & 1 == 1;
        let sections: Vec<_> = parts.iter().map(|entries| build(entries, builder_count, budget)).collect();
        let opened: Vec<_> = sections
            .iter()
            .map(|bytes| NamesPart { names: Names::open(bytes).expect("opened"), allowed: Some(&is_allowed) })
            .collect();
        let finding = find(&opened, &query, limit, &|| false);
        let expected = if name.is_empty() { Vec::new() } else { model(&parts, &query, &is_allowed) };
        let wanted: Vec<_> = expected
            .iter()
            .take(limit)
            .map(|(_, _, _, name, part, file, definition)| (name.clone(), *part, *file, *definition))
            .collect();
        prop_assert_eq!(finding.found.iter().map(short).collect::<Vec<_>>(), wanted);
        prop_assert!(finding.found.is_sorted_by(|one, other| one.score >= other.score));
        prop_assert!(finding.total <= expected.len() as u64);
        prop_assert!(!finding.is_total_exact || finding.total == expected.len() as u64);
        prop_assert!(finding.is_total_exact || finding.found.len() == limit);
    }

    #[test]
    fn what_is_not_allowed_might_as_well_not_exist(
        entries in entries(),
        name in "[abAB_]{1,5}",
        mask in any::<u32>(),
        limit in 1usize..20,
    ) {
        let query = NameQuery { name: &name, case: Case::Insensitive, kinds: None };
        let is_allowed = |file: u32| mask >> file & 1 == 1;
        let all = build(&entries, 1, 1);
        let part = NamesPart { names: Names::open(&all).expect("opened"), allowed: Some(&is_allowed) };
        let mut kept = entries;
        kept.retain(|(file, _, _)| is_allowed(*file));
        let some = build(&kept, 1, 1);
        let other = NamesPart { names: Names::open(&some).expect("opened"), allowed: None };
        prop_assert_eq!(find(&[part], &query, limit, &|| false), find(&[other], &query, limit, &|| false));
    }

    #[test]
    fn no_bytes_make_it_panic(
        entries in entries(),
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..20),
        cut in any::<proptest::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = build(&entries, 1, 1);
        for (index, byte) in &flips {
            let index = index.index(bytes.len());
            bytes[index] = *byte;
        }
        if is_cut {
            bytes.drain(..cut.index(bytes.len()));
        }
        if let Ok(names) = Names::open(&bytes) {
            for name in ["a", "ab", "open", "fileopen", "readfielopen"] {
                let query = NameQuery { name, case: Case::Insensitive, kinds: None };
                let finding = find(&[NamesPart { names, allowed: None }], &query, 1000, &|| false);
                prop_assert!(finding.found.iter().all(|found| found.part == 0));
            }
        }
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(Names::open(&bytes).is_err() || bytes.is_empty());
    }
}

#[test]
fn the_runs_of_many_definitions_are_merged_and_searched_by_two_threads() {
    let definition = Definition { kind: 1, line: 5, column: 2, end_line: 9 };
    let mut builders: Vec<_> = (0..3).map(|_| NamesBuilder::new(None, 1 << 16)).collect();
    for number in 0..100_000u32 {
        let name = format!("{}_{number}_register", ["alpha", "beta", "Gamma"][number as usize % 3]);
        builders[number as usize % 2].add(number % 50, name.as_bytes(), definition).expect("added");
    }
    let mut bytes = Vec::new();
    NamesBuilder::finish(builders, 50, &mut bytes).expect("finished");
    let part = NamesPart { names: Names::open(&bytes).expect("opened"), allowed: None };
    let names = |name: &str, limit| {
        let query = NameQuery { name, case: Case::Insensitive, kinds: None };
        let finding = find(&[part], &query, limit, &|| false);
        (finding.found.into_iter().map(|found| found.name).collect::<Vec<_>>(), finding.total)
    };
    assert_eq!(names("gamma_77_register", 1).0, ["Gamma_77_register"]);
    assert_eq!(
        names("alpha_9999", 5).0,
        [
            "alpha_9999_register",
            "alpha_99990_register",
            "alpha_99993_register",
            "alpha_99996_register",
            "alpha_99999_register"
        ]
    );
    assert_eq!(names("gamma_77_regsiter", 5).0[0], "Gamma_77_register");
    assert_eq!(names("50000_reg", 5), (vec!["Gamma_50000_register".to_owned()], 1));
    let ended = find(&[part], &NameQuery { name: "reg", case: Case::Insensitive, kinds: None }, 5, &|| true);
    assert!(!ended.is_total_exact);
}

#[test]
fn long_names_are_cut_and_long_queries_match_as_beginnings() {
    let definition = Definition { kind: 0, line: 0, column: 0, end_line: 0 };
    let long = "é".repeat(200);
    let mut builder = NamesBuilder::new(None, 0);
    builder.add(0, long.as_bytes(), definition).expect("added");
    builder.add(0, b"", definition).expect("added");
    builder.add(0, b"no\xffutf8", definition).expect("added");
    let mut bytes = Vec::new();
    NamesBuilder::finish(vec![builder], 1, &mut bytes).expect("finished");
    let names = Names::open(&bytes).expect("opened");
    assert_eq!(names.name_count(), 2);
    let query = |name: &str| {
        let query = NameQuery { name, case: Case::Insensitive, kinds: None };
        find(&[NamesPart { names, allowed: None }], &query, 5, &|| false).found
    };
    assert_eq!(query(&"é".repeat(100))[0].name, "é".repeat(127));
    assert_eq!(query("no")[0].name, "no\u{fffd}utf8");
    assert!(query("").is_empty());
}
