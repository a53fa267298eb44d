//! Plans the replacement of every match in one file, as splices of bytes. The file is read in one pass, and matches are looked
//! for line by line.

use memchr::{memchr, memrchr};

use super::{
    pieces::{newlines, total_lines},
    plan::FileEdit,
    survey::{Line, LineWindow, Observer, survey_with},
    template::Template,
};
use crate::{
    hash::Hash,
    store::{Source, Splice, StoreError},
    teach,
    text_search::{Groups, LineMatcher, MatchError},
};

/// What replaces which matches.
pub(crate) struct Substitution<'a> {
    pub(crate) matcher: &'a dyn LineMatcher,
    pub(crate) template: &'a Template,
}

/// How much is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How many matches.
    pub(crate) matches: u64,
    /// How many lines have one.
    pub(crate) lines: u64,
    /// How many bytes replace them.
    pub(crate) inserted: u64,
}

/// What was planned for a file.
pub(crate) struct PlannedSubstitution {
    /// The version that was read.
    pub(crate) found: Hash,
    pub(crate) tally: Tally,
    /// The change; none if there are more matches than are wanted.
    pub(crate) edit: Option<FileEdit>,
}

/// Plans the replacement of all matches in a file. Splices are made as long as there are no more matches and new bytes than
/// `most`; what is beyond is only counted.
pub(crate) fn substitute(
    source: &dyn Source,
    substitution: &Substitution<'_>,
    most: Tally,
    has_ended: &dyn Fn() -> bool,
) -> Result<PlannedSubstitution, StoreError> {
    let mut replacer = Replacer::new(substitution, most);
    let survey = survey_with(source, LineWindow::NONE, has_ended, &mut replacer)?;
    replacer.finish();
    let Replacer { splices, lines, tally, error, is_within_character, .. } = replacer;
    match error {
        Some(MatchError::Ended) => return Err(StoreError::Ended),
        Some(MatchError::LongLine(bytes, most)) => return Err(teach::long_line(bytes, most).into()),
        None => {}
    }
    let found = survey.hash;
    // It had matches when it was found. A search decodes UTF-16, so no match here does not mean that there is none.
    if let Some(offset) = survey.not_text {
        return Err(teach::not_text(offset).into());
    }
    if is_within_character {
        return Err(teach::within_character().into());
    }
    if !tally.is_within(&most) {
        return Ok(PlannedSubstitution { found, tally, edit: None });
    }
    // No match has a newline, so none is removed.
    let total_lines = total_lines(source, &survey, 0, &splices)?;
    let edit = FileEdit { splices, lines, total_lines, changes: tally.matches };
    Ok(PlannedSubstitution { found, tally, edit: Some(edit) })
}

impl Tally {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            matches: self.matches + other.matches,
            lines: self.lines + other.lines,
            inserted: self.inserted + other.inserted,
        }
    }

    /// What is left without the other.
    pub(crate) fn less(self, other: Self) -> Self {
        Self {
            matches: self.matches.saturating_sub(other.matches),
            lines: self.lines.saturating_sub(other.lines),
            inserted: self.inserted.saturating_sub(other.inserted),
        }
    }

    /// Whether there are no more matches and new bytes than these.
    pub(crate) fn is_within(&self, most: &Self) -> bool {
        self.matches <= most.matches && self.inserted <= most.inserted
    }
}

/// Looks for matches while a file is read.
struct Replacer<'a> {
    substitution: &'a Substitution<'a>,
    most: Tally,
    /// The template with the terminator of the file, once its first line is known.
    template: Option<Template>,
    /// The bytes of lines that are not complete yet.
    held: Vec<u8>,
    /// The offset of the next line.
    offset: u64,
    /// The number of the next line.
    number: u64,
    splices: Vec<Splice>,
    /// The numbers of the lines in which the splices begin.
    lines: Vec<u64>,
    tally: Tally,
    /// The number of the line that had the last match; 0 before the first.
    last_line: u64,
    /// Whether a match, or a group of it, begins or ends within a character, so that the rest would not be text.
    is_within_character: bool,
    error: Option<MatchError>,
}

impl Observer for Replacer<'_> {
    fn line(&mut self, _: Line<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let Some(end) = memrchr(b'\n', bytes) else {
            self.held.extend_from_slice(bytes);
            return;
        };
        let (complete, rest) = bytes.split_at(end + 1);
        if self.held.is_empty() {
            self.take(complete);
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(complete);
            self.take(&held);
        }
        self.held.extend_from_slice(rest);
    }
}

impl<'a> Replacer<'a> {
    fn new(substitution: &'a Substitution<'a>, most: Tally) -> Self {
        Self {
            substitution,
            most,
            template: None,
            held: Vec::new(),
            offset: 0,
            number: 1,
            splices: Vec::new(),
            lines: Vec::new(),
            tally: Tally::default(),
            last_line: 0,
            is_within_character: false,
            error: None,
        }
    }

    /// Takes the last line, which has no terminator.
    fn finish(&mut self) {
        let last = std::mem::take(&mut self.held);
        if !last.is_empty() {
            self.take(&last);
        }
    }

    /// Takes whole lines.
    fn take(&mut self, text: &[u8]) {
        if self.error.is_some() {
            return;
        }
        let substitution = self.substitution;
        let template = self.template.take().unwrap_or_else(|| {
            let is_return = memchr(b'\n', text).is_some_and(|end| text[..end].ends_with(b"\r"));
            substitution.template.with_terminator(if is_return { b"\r\n" } else { b"\n" })
        });
        // Newlines are counted up to here.
        let mut counted = 0;
        let found = substitution.matcher.find(text, self.offset, &mut |groups| {
            let Some(Some(whole)) = groups.first() else { return };
            self.number += newlines(&text[counted..whole.start]);
            counted = whole.start;
            self.tally.lines += u64::from(self.last_line != self.number);
            self.last_line = self.number;
            self.replace(text, groups, &template);
        });
        self.number += newlines(&text[counted..]);
        self.offset += text.len() as u64;
        self.template = Some(template);
        self.error = found.err();
    }

    fn replace(&mut self, text: &[u8], groups: &Groups, template: &Template) {
        let Some(Some(whole)) = groups.first() else { return };
        self.tally.matches += 1;
        self.tally.inserted += template.length(groups) as u64;
        self.is_within_character |=
            groups.iter().flatten().any(|group| is_within(text, group.start) || is_within(text, group.end));
        if !self.tally.is_within(&self.most) {
            return;
        }
        self.splices.push(Splice {
            start: self.offset + whole.start as u64,
            removed: whole.len() as u64,
            inserted: template.expand(text, groups),
        });
        self.lines.push(self.number);
    }
}

/// Whether an offset is within a character of a text.
fn is_within(text: &[u8], offset: usize) -> bool {
    text.get(offset).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000)
}
