//! The search patterns: they are cut from a tree's own text, altered and combined.

use crate::support::random::Random;

/// A case rule as an argument of ripgrep, of Pintle's command line and of the tool; none for the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub of_ripgrep: Option<&'static str>,
    pub of_pintle: Option<&'static str>,
    pub of_tool: Option<&'static str>,
}

pub const CASES: [Case; 4] = [
    Case { of_ripgrep: None, of_pintle: None, of_tool: None },
    Case { of_ripgrep: Some("-s"), of_pintle: Some("-s"), of_tool: Some("sensitive") },
    Case { of_ripgrep: Some("-i"), of_pintle: Some("-i"), of_tool: Some("insensitive") },
    Case { of_ripgrep: Some("-S"), of_pintle: Some("--case=smart"), of_tool: Some("smart") },
];

/// One search.
#[derive(Clone, Debug)]
pub struct Question {
    pub text: String,
    pub is_regex: bool,
    /// Whether only whole words match.
    pub is_word: bool,
    pub case: Case,
    pub globs: Vec<String>,
}

impl Question {
    pub fn literal(text: impl Into<String>, case: Case) -> Self {
        Self { text: text.into(), is_regex: false, is_word: false, case, globs: Vec::new() }
    }

    pub fn regex(text: impl Into<String>, case: Case) -> Self {
        Self { is_regex: true, ..Self::literal(text, case) }
    }
}

/// Literals that are difficult for pattern parsers or for case folding.
pub const LITERALS: &[&str] = &[
    "",
    " ",
    "  ",
    "\t",
    "\r",
    "e",
    "E",
    "th",
    "the",
    "{",
    "}",
    "()",
    "(",
    ".*",
    ".",
    "*",
    "+?",
    "[a-z]",
    "\\",
    "\\n",
    "\\b",
    "//",
    "$",
    "^",
    "a|b",
    "-",
    "--",
    "-e",
    "#",
    "&&",
    "~",
    "k",
    "K",
    "\u{212a}",
    "\u{212a}elvin",
    "kelvin",
    "KELVIN",
    "s",
    "ſ",
    "ſtraſſe",
    "strasse",
    "ß",
    "ẞ",
    "straße",
    "STRASSE",
    "İ",
    "i",
    "ı",
    "istanbul",
    "İstanbul",
    "Σ",
    "σ",
    "ς",
    "όσος",
    "ΌΣΟΣ",
    "å",
    "\u{212b}",
    "é",
    "e\u{301}",
    "\u{feff}",
    "\u{fffd}",
    "日本",
    "😀",
    "needle",
    "NEEDLE",
    "nEEdle",
    "needles",
];

/// Expressions that are difficult for pattern parsers, for case folding, or for finding the required parts of a match.
pub const EXPRESSIONS: &[&str] = &[
    "",
    "^",
    "$",
    "^$",
    "x*",
    ".*",
    ".+",
    ".",
    // The first match ends after another match within it.
    ".ll|l",
    r"\s",
    r"\S+$",
    r"\s+$",
    r"^\s*$",
    r"^\s+\S",
    r"\w{5}\s+\w",
    r"\w+\s\w+",
    r"\d{3,}",
    r"[0-9a-f]{8}",
    r"\b",
    r"\B",
    r"\bneedle\b",
    r"\Bneedle",
    r"needle\B",
    r"\b{start}needle\b{end}",
    r"\<needle\>",
    r"\b{start-half}needle",
    "(?i)needle",
    "(?i)NEEDLE",
    "(?i:n)EEDLE",
    "(?-i)needle",
    "NEEDLE(?-i:x)",
    "ne{2}dle",
    "ne{1,3}dle",
    "(?:ne|e)+dle",
    "(needle)?x",
    "(needle)*",
    "(needle|x*)",
    "needle|",
    "|needle",
    "(a|b|needle)$",
    "^(a|b|needle)",
    "n.e?dle",
    "n[^x]edle",
    "[n-n]eedle",
    "[Nn][Ee]{2}dle",
    "needle.*needle",
    "needle[^n]*needle",
    r"needle\r$",
    r"needle\r?$",
    r"\r",
    r"\r$",
    r"[\r]",
    "needle$",
    "^needle",
    "(?m)^needle",
    "(?-m)^needle",
    "(?-m)needle$",
    "(?-m:^)needle",
    r"\Aneedle",
    r"needle\z",
    r"\A",
    r"\z",
    "(?R)needle$",
    "(?Rm)needle$",
    "(?Rm)^needle",
    "(?Rm)^$",
    "(?s)needle.",
    "(?s).needle",
    "(?U)n.*e",
    "(?x) needle # and a remark",
    r"(?-u:\xff)",
    r"(?-u:[\x80-\xff])",
    r"(?-u:\xe9)",
    r"(?-u:\w)\xe9",
    r"(?-u:.)needle",
    "(?-u).",
    r"(?-u)\W+needle",
    r"(?-u:[^a])needle",
    "é",
    "caf.",
    "caf.$",
    r"\x{e9}",
    r"\u{e9}",
    r"\xe9",
    "[é]",
    "[^é]+$",
    r"\p{Greek}",
    r"\p{Greek}+",
    r"\P{ASCII}",
    r"\p{Lu}\p{Ll}+",
    r"\pL{30}",
    "[[:alpha:]]{12}",
    "[[:^ascii:]]",
    "[a-z&&[^aeiou]]{7}",
    r"[\w--\d]{9}",
    "[k]elvin",
    "[K]elvin",
    "(?i)k",
    "(?i)kelvin",
    "(?i:K)ELVIN",
    "\u{212a}elvin",
    r"\x{212a}",
    "(?i)stra(ss|ß)e",
    "(?i)straſſe",
    "s[ſs]",
    "ſ",
    "(?i)ß",
    "(?i)ẞ",
    "(?i)i",
    "İ",
    "(?i)İstanbul",
    "(?i)ı",
    "(?i)σ",
    "[σ]",
    "ΌΣΟΣ",
    r"(?i)\x{212b}",
    r"\x{feff}",
    "日.*",
    "[日-本]+",
    "😀",
    "😀|needle",
    "[😀-😂]",
    "(?:needle){2}",
    "(?:n(?:e(?:e(?:d(?:l(?:e))))))",
    "(?P<name>needle)",
    "(?<name>nee)dle",
    "[ab]c[de]f|needle",
    "(x|y|z|needle)(a|b|c|)",
    "(?:(?:needle|x)|(?:y|needles))",
    r"\Qneedle",
    r"\x6eeedle",
    r"\t",
    r"\x09",
    r"\x0d",
    r"[^\n]needle",
    r"[\s\S]needle",
    r"needle[\s\S]",
    r"needle\s",
    r"\sneedle",
    r"needle\W",
    "needle[^a]",
    "[^a]needle",
    "[^a]*needle[^b]*$",
    "a{0}needle",
    "a{0,0}",
    "(?:){5}needle",
    "needle{0}",
    r"(?i)\bNEEDLE\b",
    r"[\x00-\x7f]needle",
    r"(?-u:[\x00-\xff])needle",
    r"\w{1,30}\s*=\s*\w{1,30};",
    "(ab|cd|ef|gh|ij|kl|mn|op|qr|st|uv|wx|yz){4}",
];

/// Texts that are no expression, or an expression that no line can match.
pub const REFUSED: &[&str] = &[
    "(",
    ")",
    "[",
    "[z-a]",
    "*a",
    "a{2,1}",
    "a{99999999999}",
    r"\",
    r"\p{Nope}",
    r"\p{Greek",
    "(?<name",
    "(?<n>a)(?<n>b)",
    r"(a)\1",
    "(?=a)",
    "(?<!a)",
    r"\xZZ",
    r"\x{110000}",
    r"\u{d800}",
    "(?z)a",
    r"a\nb",
    r"\n",
    "a\nb",
    r"[a\n]\n",
    r"\x00",
    r"a\x00b",
    "[[:nope:]",
    r"\w{9000}",
];

/// Generates patterns from a tree's own text.
pub struct Generator<'a> {
    pub random: Random,
    pub texts: &'a [Vec<u8>],
}

impl Generator<'_> {
    /// A search for a literal or an expression.
    pub fn question(&mut self, case: Case) -> Question {
        if self.random.below(2) == 0 {
            Question::literal(self.literal(), case)
        } else {
            Question::regex(self.expression(), case)
        }
    }

    fn literal(&mut self) -> String {
        match self.random.below(12) {
            0..4 => self.fragment(40),
            4 => self.fragment(3),
            5 => self.word(),
            6 | 7 => {
                let fragment = self.fragment(30);
                self.altered(&fragment)
            }
            8 => self.fragment(20).to_uppercase(),
            9 => self.fragment(20).to_lowercase(),
            10 => self.random.pick(LITERALS).to_owned(),
            _ => self.fragment(10) + &self.fragment(10),
        }
    }

    fn expression(&mut self) -> String {
        let (one, other) = self.two_words();
        let far = self.word();
        let fragment = escaped(&self.fragment(20));
        let short = escaped(&self.fragment(4));
        let letter = self.random.pick(&["a", "e", "s", "_", "k", "é", r"\.", "0"]);
        let number = self.random.below(4) + 1;
        match self.random.below(40) {
            0 => format!("{one}|{far}"),
            1 => format!("({one}|{far}|{other})"),
            2 => format!("{one}.*{other}"),
            3 => format!(r"{one}\W+{other}"),
            4 => format!(r"^\s*{one}"),
            5 => format!("{one}$"),
            6 => format!(r"\b{one}\b"),
            7 => format!(r"\B{short}"),
            8 => format!(r"{short}\B"),
            9 => format!("[{letter}x-z]{short}"),
            10 => format!("{one}[a-z_]+"),
            11 => format!("(?:{short}){{{number}}}"),
            12 => format!("(?:{short}){{0,{number}}}{fragment}"),
            13 => format!("(?i){fragment}"),
            14 => format!("(?i:{one}).{{0,9}}{other}"),
            15 => format!("(?-i){fragment}"),
            16 => format!("{one}?{letter}"),
            17 => format!("({one})*{letter}"),
            18 => format!(".{{{number}}}{fragment}"),
            19 => format!("{one}.{{0,{number}}}{other}"),
            20 => format!("[^{letter}]{fragment}[^{letter}]"),
            21 => format!("{one}(?:{letter}|{short}|)"),
            22 => format!("(?s).{fragment}"),
            23 => format!("(?x){one} {other} # {far}"),
            24 => format!("(?m)^.{{0,{number}0}}{one}"),
            25 => format!("(?U){one}.*{letter}"),
            26 => format!(r"(?-u:\w){fragment}"),
            27 => format!("(?R)(?:{fragment})$"),
            28 => format!(r"\b{{start}}{one}"),
            29 => format!(r"{one}\>"),
            30 => format!("^(?:{fragment}|{far}).*{letter}"),
            31 => format!(r"\w{{{number}}}\s+{other}"),
            32 => {
                let altered = self.altered(&one);
                format!("{}|{far}", escaped(&altered))
            }
            33 => one.chars().map(|letter| format!("[{0}{1}]", letter, letter.to_uppercase())).collect(),
            34 => one.chars().map(|letter| format!("{letter}+")).collect(),
            35 => format!("{fragment}|{short}|{far}"),
            36 => format!("({one}|({other}|{far}(x|y)?)+)z*"),
            37 => self.random.pick(EXPRESSIONS).to_owned(),
            38 => self.random.pick(EXPRESSIONS).replace("needle", &one),
            // Any text: a valid expression or an invalid one.
            _ => self.fragment(12),
        }
    }

    /// At most this many bytes of some line.
    fn fragment(&mut self, most: usize) -> String {
        for _ in 0..100 {
            let text = &self.texts[self.random.below(self.texts.len())];
            if text.is_empty() {
                continue;
            }
            let mut start = self.random.below(text.len());
            if text.len() > 9000 && self.random.below(3) == 0 {
                // The text is around the border of a block.
                start = ((start / 8192).max(1) * 8192).saturating_sub(self.random.below(most + 2));
            }
            while text.get(start).is_some_and(|byte| byte & 0xc0 == 0x80) {
                start += 1;
            }
            let length = 1 + self.random.below(most);
            let piece = &text[start.min(text.len())..(start + length).min(text.len())];
            let piece = piece.split(|byte| *byte == b'\n' || *byte == 0).next().unwrap_or_default();
            let piece = String::from_utf8_lossy(piece);
            let piece = piece.trim_end_matches('\u{fffd}');
            if !piece.is_empty() {
                return piece.to_owned();
            }
        }
        "the".to_owned()
    }

    fn words(&mut self) -> Vec<String> {
        for _ in 0..100 {
            let fragment = self.fragment(60);
            let words = fragment.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let words: Vec<String> = words.filter(|word| word.len() > 1).map(str::to_owned).collect();
            if !words.is_empty() {
                return words;
            }
        }
        vec!["let".to_owned()]
    }

    fn word(&mut self) -> String {
        let words = self.words();
        words[self.random.below(words.len())].clone()
    }

    /// Two words of a line, in order.
    fn two_words(&mut self) -> (String, String) {
        let words = self.words();
        let one = self.random.below(words.len());
        (words[one].clone(), words[words.len() - 1].clone())
    }

    /// The text with one letter changed, added or removed.
    fn altered(&mut self, text: &str) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        let index = self.random.below(letters.len());
        let letter = self.random.pick(&['a', 'Z', '7', '_', ' ', '.', 'é', '\u{212a}', 'ſ']);
        match self.random.below(3) {
            0 => letters[index] = letter,
            1 => letters.insert(index, letter),
            _ => drop(letters.remove(index)),
        }
        letters.into_iter().collect()
    }
}

/// An expression that matches exactly this text.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
