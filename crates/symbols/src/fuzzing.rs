//! What must hold of outlines whatever a source file contains: the properties that the fuzz target asserts.

use std::cell::{Cell, RefCell};

use crate::{Language, Outline, Outliner, Symbol, symbol::is_a_name};

thread_local! {
    static OUTLINER: RefCell<Outliner> = RefCell::new(Outliner::new());
}

/// Outlines a text; the first byte says in which language. Symbols are in order, and each name and each range of lines
/// lies in the text. A parser that was interrupted finds the same afterwards.
pub fn outline(bytes: &[u8]) {
    let Some((&first, text)) = bytes.split_first() else { return };
    let languages: Vec<_> = Language::all().filter(|language| language.has_symbols()).collect();
    let language = languages[usize::from(first) % languages.len()];
    OUTLINER.with_borrow_mut(|outliner| {
        let found = outliner.outline(language, text, &|| false);
        let left = Cell::new(first % 8);
        let has_ended = || left.replace(left.get().saturating_sub(1)) == 0;
        let _ = outliner.outline(language, text, &has_ended);
        let again = outliner.outline(language, text, &|| false);
        assert_eq!(outliner.outline(language, text, &|| true), Outline::Interrupted);
        match (&found, &again) {
            (Outline::Complete(one), Outline::Complete(other)) => assert_eq!(one, other),
            // One that gives up may do so because of the time that it took.
            (Outline::Complete(_) | Outline::GaveUp(_), Outline::Complete(_) | Outline::GaveUp(_)) => {}
            other => panic!("nobody interrupted it, and the language has symbols: {other:?}"),
        }
        assert_symbols(&found.symbols().unwrap_or_default(), text);
    });
}

fn assert_symbols(symbols: &[Symbol], text: &[u8]) {
    for pair in symbols.windows(2) {
        assert!(pair[0].name.start < pair[1].name.start, "{pair:?}");
    }
    let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
    for symbol in symbols {
        let name = text.get(symbol.name.clone()).expect("a name in the text");
        assert!(is_a_name(name), "{symbol:?}");
        let before = &text[..symbol.name.start];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        assert_eq!((symbol.line as usize, symbol.column as usize), (line, column), "{symbol:?}");
        assert!((symbol.line..=lines as u32).contains(&symbol.end_line), "{symbol:?} of {lines} lines");
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("outline", outline);
    }
}
