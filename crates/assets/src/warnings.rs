//! What was passed over while a folder was read, for the person who set it up.

/// At most this many warnings are told of one folder.
const MAX_TOLD: usize = 20;

/// The warnings about one folder.
pub(crate) struct Warnings {
    /// What its files are: `schema` or `example`.
    about: &'static str,
    told: Vec<String>,
    untold: usize,
}

impl Warnings {
    /// No warnings, about files of this kind.
    pub(crate) fn about(about: &'static str) -> Self {
        Self { about, told: Vec::new(), untold: 0 }
    }

    /// Says something about a file or folder, by its path.
    pub(crate) fn push(&mut self, path: &str, what: &str) {
        match self.told.len() < MAX_TOLD {
            true => self.told.push(format!("{} `{}` {what}", self.about, path.trim_end_matches('/'))),
            false => self.untold += 1,
        }
    }

    /// Says that a file or folder is not used, and why.
    pub(crate) fn skip(&mut self, path: &str, reason: &str) {
        self.push(path, &format!("is skipped: {reason}"));
    }

    /// All of them, one to a line; the last one says if there are more.
    pub(crate) fn into_lines(mut self) -> Vec<String> {
        if self.untold > 0 {
            self.told.push(format!("and {} more about {}s", self.untold, self.about));
        }
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_says_what_it_is_about() {
        let mut warnings = Warnings::about("schema");
        warnings.skip("a/", "it lies too deep");
        warnings.push("b.json", "is odd");
        assert_eq!(
            warnings.into_lines(),
            ["schema `a` is skipped: it lies too deep", "schema `b.json` is odd"]
        );
    }

    #[test]
    fn of_many_warnings_twenty_are_told_and_the_others_counted() {
        let mut warnings = Warnings::about("example");
        (0..25).for_each(|number| warnings.skip(&number.to_string(), "x"));
        let lines = warnings.into_lines();
        assert_eq!((lines.len(), lines[20].as_str()), (21, "and 5 more about examples"));
    }
}
