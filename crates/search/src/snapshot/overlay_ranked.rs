//! The words and symbols of the files in an overlay, indexed in memory when a search first needs them.

use std::io::{self, Read};

use pintle_ranked::{NamesBuilder, WordsBuilder};
use pintle_root::Root;
use pintle_symbols::{Language, Outliner};

use crate::{
    build::{RANKED_LIMIT, definitions},
    segment::FileRecord,
};

/// Small indexes in memory. Files are numbered in the order of their paths.
pub(crate) struct OverlayRanked {
    pub(crate) words: Vec<u8>,
    pub(crate) names: Vec<u8>,
    pub(crate) paths: Vec<Vec<u8>>,
    pub(crate) languages: Vec<u8>,
}

impl OverlayRanked {
    pub(super) fn new<'a>(
        root: &Root,
        files: impl Iterator<Item = (&'a [u8], &'a FileRecord)>,
        has_ended: &dyn Fn() -> bool,
    ) -> io::Result<Self> {
        const BUDGET: usize = 256 << 20;
        let mut words = WordsBuilder::new(None, BUDGET);
        let mut names = NamesBuilder::new(None, BUDGET);
        let mut outliner = Outliner::new();
        let (mut paths, mut languages) = (Vec::new(), Vec::new());
        let mut text = Vec::new();
        for (path, known) in files.filter(|(_, known)| known.state.is_searched()) {
            if has_ended() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let number = paths.len() as u32;
            paths.push(path.to_owned());
            languages.push(known.language);
            text.clear();
            let Ok(version) = root.open_version(path) else { continue };
            if known.stamp.size > RANKED_LIMIT
                || version.file.take(RANKED_LIMIT).read_to_end(&mut text).is_err()
            {
                continue;
            }
            words.add(number, &text)?;
            let Some(language) = Language::from_id(known.language) else { continue };
            for (name, definition) in definitions(&mut outliner, language, &text, has_ended) {
                names.add(number, name, definition)?;
            }
        }
        let count = paths.len() as u32;
        let mut made = Self { words: Vec::new(), names: Vec::new(), paths, languages };
        WordsBuilder::finish(vec![words], count, &mut made.words)?;
        NamesBuilder::finish(vec![names], count, &mut made.names)?;
        Ok(made)
    }
}
