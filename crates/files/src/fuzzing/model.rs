//! The simplest possible editor of lines: a list of them. What the real one does in one walk over bytes must come out the
//! same.

/// The lines of a text, each with what ends it.
pub(super) struct Lines<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let lines = text.split_inclusive('\n').map(|line| {
            let ends_with_return = line.ends_with("\r\n");
            let content = line.strip_suffix(if ends_with_return { "\r\n" } else { "\n" }).unwrap_or(line);
            (content, &line[content.len()..])
        });
        Self(lines.collect())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The text of a range of lines. A file without lines gives none, whatever is asked for.
    pub(super) fn read(&self, lines: [i64; 2]) -> Option<String> {
        if self.0.is_empty() {
            return Some(String::new());
        }
        let range = self.range(lines)?;
        Some(self.0[range].iter().flat_map(|(content, end)| [*content, *end]).collect())
    }

    /// Puts new lines in the place of old ones, which have to stand exactly once in a range. None is a refusal.
    pub(super) fn replace(&self, lines: [i64; 2], old: &str, new: &str) -> Option<Vec<u8>> {
        let old = wanted_lines(old);
        let range = self.range(lines)?;
        let fits = |start: &usize| self.has(&old, *start);
        let last_start = (range.end + 1).saturating_sub(old.len());
        let starts: Vec<usize> = (range.start..last_start).filter(fits).collect();
        let [start] = starts[..] else { return None };
        Some(self.with_lines(start..start + old.len(), new)?.to_bytes())
    }

    /// Puts new lines in the place of a range.
    pub(super) fn replace_range(&self, lines: [i64; 2], new: &str) -> Option<Vec<u8>> {
        let range = self.range(lines)?;
        Some(self.with_lines(range, new)?.to_bytes())
    }

    /// Puts new lines in the place of old ones wherever they are in a range, from the first on.
    pub(super) fn replace_all(&self, lines: [i64; 2], old: &str, new: &str) -> Option<Vec<u8>> {
        let (old, range) = (wanted_lines(old), self.range(lines)?);
        let (mut starts, mut next) = (Vec::new(), range.start);
        while next + old.len() <= range.end {
            if self.has(&old, next) {
                starts.push(next);
                next += old.len();
            } else {
                next += 1;
            }
        }
        let mut result = Self(self.0.clone());
        for start in starts.iter().rev() {
            // The terminators are those of the file as it was.
            let new = self.instead_of(*start..start + old.len(), new)?;
            result.0.splice(*start..start + old.len(), new);
        }
        (!starts.is_empty()).then(|| result.to_bytes())
    }

    /// Replaces a text in a range of lines, in which a newline stands for a terminator.
    pub(super) fn replace_within(&self, lines: [i64; 2], old: &str, new: &str, all: bool) -> Option<Vec<u8>> {
        let plain = |text: &str| text.replace("\r\n", "\n");
        let (range, old, new) = (self.range(lines)?, plain(old), plain(new));
        // One character of the file for each that can be found: a terminator counts as one.
        let mut letters: Vec<(char, &str, usize)> = Vec::new();
        for (index, (content, end)) in self.0.iter().enumerate() {
            letters.extend(
                content
                    .char_indices()
                    .map(|(at, letter)| (letter, &content[at..at + letter.len_utf8()], index)),
            );
            if !end.is_empty() {
                letters.push(('\n', end, index));
            }
        }
        let wanted: Vec<char> = old.chars().collect();
        let fits = |start: &usize| {
            let found = letters.get(*start..start + wanted.len());
            found.is_some_and(|found| {
                let is_same = found.iter().zip(&wanted).all(|((letter, ..), wanted)| letter == wanted);
                is_same && found.iter().all(|(.., line)| range.contains(line))
            })
        };
        let mut starts: Vec<usize> = (0..letters.len()).filter(fits).collect();
        if all {
            let mut next = 0;
            starts.retain(|start| {
                let is_free = *start >= next;
                next = if is_free { start + wanted.len() } else { next };
                is_free
            });
        }
        if starts.is_empty() || !all && starts.len() > 1 {
            return None;
        }
        let (mut result, mut at) = (String::new(), 0);
        for start in starts {
            let kept = letters[at..start].iter().map(|(_, text, _)| *text);
            result.extend(kept);
            let end = self.end_of(&self.0[letters[start].2]);
            result.push_str(&new.replace('\n', end));
            at = start + wanted.len();
        }
        result.extend(letters[at..].iter().map(|(_, text, _)| *text));
        Some(result.into_bytes())
    }

    fn has(&self, wanted: &[&str], start: usize) -> bool {
        let Some((last, beginning)) = wanted.split_last() else { return false };
        let mut found = self.0[start..].iter();
        beginning.iter().all(|wanted| found.next().is_some_and(|(content, _)| content == wanted))
            && found.next().is_some_and(|line| is_wanted(line, last))
    }

    fn with_lines<'b>(&'b self, range: std::ops::Range<usize>, new: &'b str) -> Option<Lines<'b>> {
        let new = self.instead_of(range.clone(), new)?;
        let mut lines: Vec<(&'b str, &'b str)> = self.0.clone();
        lines.splice(range, new);
        Some(Lines(lines))
    }

    /// The lines that take the place of a range.
    fn instead_of<'b>(
        &'b self,
        range: std::ops::Range<usize>,
        new: &'b str,
    ) -> Option<Vec<(&'b str, &'b str)>> {
        let replaced = &self.0[range];
        let (first_end, last_end) = (self.end_of(replaced.first()?), replaced.last()?.1);
        let mut inserted = ended(new, first_end);
        if let Some((content, end)) = inserted.last_mut() {
            *end = match last_end {
                // At the end of a file without a last newline there is none either, but an empty line needs its own.
                "" if content.is_empty() => first_end,
                last_end => last_end,
            };
        }
        Some(inserted)
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|(content, end)| [*content, *end]).collect::<String>().into_bytes()
    }

    /// Puts new lines before a line, which has to be the anchor if there is one.
    pub(super) fn insert(&self, line: i64, anchor: Option<&str>, new: &str) -> Option<Vec<u8>> {
        let start = if line == 0 { None } else { self.range([line, 0]).map(|range| range.start) }?;
        let before = &self.0[start];
        anchor
            .is_none_or(|anchor| is_wanted(before, anchor))
            .then(|| self.spliced(start, 0, &ended(new, self.end_of(before))))
    }

    /// Puts new lines behind the last one.
    pub(super) fn append(&self, new: &str) -> Vec<u8> {
        let end = self.0.first().map_or("\n", |first| self.end_of(first));
        let mut inserted = ended(new, end);
        let mut lines = Self(self.0.clone());
        if let (Some(last), Some(new_last)) = (lines.0.last_mut(), inserted.last_mut())
            && last.1.is_empty()
        {
            // A file without a last newline stays one.
            last.1 = end;
            if !new_last.0.is_empty() {
                new_last.1 = "";
            }
        }
        lines.spliced(lines.0.len(), 0, &inserted)
    }

    /// The indexes that a range of lines means.
    fn range(&self, [start, end]: [i64; 2]) -> Option<std::ops::Range<usize>> {
        let count = self.0.len() as i64;
        let from_end = |line: i64| if line < 0 { count + line } else { line - 1 };
        let start = if start == 0 { 0 } else { from_end(start) };
        let end = if end == 0 { count } else { from_end(end).min(count) };
        (0 <= start && start < end).then_some(start as usize..end as usize)
    }

    /// What ends a line, or would if it were not the last.
    fn end_of(&self, line: &(&'a str, &'a str)) -> &'a str {
        let of_file = self.0.first().map_or("\n", |first| first.1);
        let of_file = if of_file.is_empty() { "\n" } else { of_file };
        if line.1.is_empty() { of_file } else { line.1 }
    }

    fn spliced(&self, start: usize, removed: usize, inserted: &[(&str, &str)]) -> Vec<u8> {
        let lines = self.0[..start].iter().chain(inserted).chain(&self.0[start + removed..]);
        lines.flat_map(|(content, end)| [*content, *end]).collect::<String>().into_bytes()
    }
}

/// The lines that a caller wants to find. The end of the last one is not given, but its `\r` may be.
fn wanted_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    let last = lines.len() - 1;
    for line in &mut lines[..last] {
        *line = line.strip_suffix('\r').unwrap_or(line);
    }
    lines
}

/// Whether the last wanted line is this one: a `\r` at its end may be a part of the line, or of what ends it.
fn is_wanted((content, end): &(&str, &str), wanted: &str) -> bool {
    *content == wanted || *end == "\r\n" && wanted.strip_suffix('\r') == Some(*content)
}

/// The lines that a caller wrote, each with an end. The empty text has none.
fn ended<'a>(text: &'a str, end: &'a str) -> Vec<(&'a str, &'a str)> {
    if text.is_empty() {
        return Vec::new();
    }
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    lines.map(|line| (line.strip_suffix('\r').unwrap_or(line), end)).collect()
}
