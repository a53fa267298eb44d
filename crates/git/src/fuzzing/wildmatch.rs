//! A matcher of the patterns of a `.gitignore` that tries every way there is, as the manual of git says it.

/// More would take too long: there are exponentially many ways.
const LONGEST: usize = 24;

/// Whether a path matches a line; nothing if that would take too long, or if the line has a class, which has rules of its
/// own.
pub(super) fn matches(line: &[u8], path: &[u8], is_folder: bool) -> Option<bool> {
    if line.len() > LONGEST || path.len() > LONGEST || line.contains(&b'[') {
        return None;
    }
    let line = line.strip_prefix(b"!").unwrap_or(line);
    let (is_for_folders, line) = line.strip_suffix(b"/").map_or((false, line), |line| (true, line));
    if is_for_folders && !is_folder {
        return Some(false);
    }
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let text = if line.contains(&b'/') { path } else { name };
    let line = line.strip_prefix(b"/").unwrap_or(line);
    // Git compares the plain start by itself, and what follows it as a pattern of its own.
    let plain = line.iter().take_while(|byte| !b"*?\\".contains(byte)).count();
    let (start, pattern) = line.split_at(plain);
    // A backslash with nothing behind it makes the whole pattern match nothing.
    let is_cut = pattern.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    Some(!is_cut && text.strip_prefix(start).is_some_and(|text| goes_on(pattern, text, true)))
}

/// Whether a pattern matches a text as a whole.
fn goes_on(pattern: &[u8], text: &[u8], is_after_slash: bool) -> bool {
    let Some((first, after)) = pattern.split_first() else { return text.is_empty() };
    let next_byte = |expected: u8, after: &[u8]| {
        text.split_first()
            .is_some_and(|(byte, rest)| *byte == expected && goes_on(after, rest, expected == b'/'))
    };
    match first {
        b'\\' => after.split_first().is_some_and(|(escaped, after)| {
            // What is escaped is a byte like any other, also for stars behind it.
            text.split_first()
                .is_some_and(|(byte, rest)| byte == escaped && goes_on(after, rest, *escaped == b'/'))
        }),
        b'?' => text.split_first().is_some_and(|(byte, rest)| *byte != b'/' && goes_on(after, rest, false)),
        b'*' => {
            let stars = pattern.iter().take_while(|byte| **byte == b'*').count();
            let after = &pattern[stars..];
            let ends = (0..=text.len()).map(|end| text.split_at(end));
            if stars > 1 && is_after_slash {
                if let Some(behind) = after.strip_prefix(b"/") {
                    // Any number of whole folders, or none.
                    return goes_on(behind, text, true)
                        || ends
                            .filter(|(folders, _)| folders.ends_with(b"/"))
                            .any(|(_, rest)| goes_on(behind, rest, true));
                }
                if after.is_empty() || after.starts_with(b"\\/") {
                    return ends.into_iter().any(|(_, rest)| goes_on(after, rest, false));
                }
            }
            ends.take_while(|(skipped, _)| !skipped.contains(&b'/'))
                .any(|(_, rest)| goes_on(after, rest, false))
        }
        byte => next_byte(*byte, after),
    }
}
