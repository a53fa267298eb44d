//! Warnings about files that were skipped while a folder was read, for the operator who configured it.

/// The most warnings that are kept for one folder; the others are counted.
const MAX_KEPT: usize = 20;

/// The warnings about one folder.
pub(crate) struct Warnings {
    /// The kind of its files: `schema` or `example`.
    about: &'static str,
    kept: Vec<String>,
    dropped: usize,
}

impl Warnings {
    /// An empty list for files of this kind.
    pub(crate) fn about(about: &'static str) -> Self {
        Self { about, kept: Vec::new(), dropped: 0 }
    }

    /// Adds a warning about a file or folder, by its path.
    pub(crate) fn push(&mut self, path: &str, what: &str) {
        match self.kept.len() < MAX_KEPT {
            true => self.kept.push(format!("{} `{}` {what}", self.about, path.trim_end_matches('/'))),
            false => self.dropped += 1,
        }
    }

    /// Adds a warning that a file or folder is skipped, and why.
    pub(crate) fn skip(&mut self, path: &str, reason: &str) {
        self.push(path, &format!("is skipped: {reason}"));
    }

    /// The warnings, one a line; the last line counts those that were dropped.
    pub(crate) fn into_lines(mut self) -> Vec<String> {
        if self.dropped > 0 {
            self.kept.push(format!("and {} more about {}s", self.dropped, self.about));
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_says_what_it_is_about() {
        let mut warnings = Warnings::about("schema");
        warnings.skip("a/", "it is nested too deep");
        warnings.push("b.json", "is odd");
        assert_eq!(
            warnings.into_lines(),
            ["schema `a` is skipped: it is nested too deep", "schema `b.json` is odd"]
        );
    }

    #[test]
    fn of_many_warnings_twenty_are_kept_and_the_others_counted() {
        let mut warnings = Warnings::about("example");
        (0..25).for_each(|number| warnings.skip(&number.to_string(), "x"));
        let lines = warnings.into_lines();
        assert_eq!((lines.len(), lines[20].as_str()), (21, "and 5 more about examples"));
    }
}
