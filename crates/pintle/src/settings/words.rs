//! The words of settings that have a few values. Most of these types are those of the crates that act on them.

use pintle_engine::{ArgumentReading, Level};
use pintle_rpc::EnvelopeMode;
use pintle_search::{Case, Indexing, Match};
use pintle_wire::{ResultsSetting, ToolNames};

use super::value::Words;

/// Who may call over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Whoever has a token of the local secret.
    Local,
    /// Whoever has a token of an authorization server.
    Jwks,
    /// Every program on this machine.
    None,
}

/// When progress is reported in the direct dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressWhen {
    /// When the request carries a progress token.
    Asked,
    /// For every call.
    Always,
}

impl Words for Auth {
    const WORDS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Local, "local", "Whoever has a token of `pintle token mint`"),
        (Self::Jwks, "jwks", "Whoever has a token of the authorization server that --issuer names"),
        (Self::None, "none", "Every program on this machine, without a token"),
    ];
}

impl Words for ProgressWhen {
    const WORDS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Asked, "asked", "When the request carries a progress token"),
        (Self::Always, "always", "For every call"),
    ];
}

impl Words for Indexing {
    const WORDS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Auto, "auto", "The first search begins to build it in the background"),
        (
            Self::Manual,
            "manual",
            "Only `index_build` and `pintle index` build it; searches are refused before",
        ),
    ];
}

impl Words for ToolNames {
    const WORDS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Underscore, "underscore", "`text_read`, which every client takes"),
        (Self::Dotted, "dotted", "`text.read`, as in logs and scopes"),
    ];
}

impl Words for ArgumentReading {
    const WORDS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Lenient, "lenient", "JSON texts in place of lists, numbers and booleans are converted"),
        (Self::Strict, "strict", "They are refused"),
    ];
}

impl Words for ResultsSetting {
    const WORDS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Json, "json", "As structured content, and again as text"),
        (Self::Text, "text", "As one block of text, without output schemas in the list"),
        (Self::Auto, "auto", "By the client: text for those that are known to need it, JSON for all others"),
    ];
}

impl Words for Level {
    const WORDS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Off, "off", "Nothing"),
        (Self::Error, "error", "Calls that failed by the server's fault"),
        (Self::Warn, "warn", "Also calls that failed by the caller's fault"),
        (Self::Info, "info", "Every call"),
        (Self::Debug, "debug", "Also what the server found when it started"),
    ];
}

impl Words for EnvelopeMode {
    const WORDS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Enforce, "enforce", "It is refused"),
        (Self::Shadow, "shadow", "It is logged and let through"),
    ];
}

impl Words for Match {
    const WORDS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Literal, "literal", "As it stands"),
        (Self::Regex, "regex", "As a regular expression"),
        (Self::Words, "words", "As words, ranked"),
        (Self::Symbol, "symbol", "As the name of a symbol"),
    ];
}

impl Words for Case {
    const WORDS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Smart, "smart", "If the query has a letter in upper case"),
        (Self::Sensitive, "sensitive", "Yes"),
        (Self::Insensitive, "insensitive", "No"),
    ];
}
