//! What a setting is: one value of this type holds all that is known of it, before anybody has set it.

use std::{
    fmt::{Debug, Display},
    time::Duration,
};

use clap::{Arg, ArgMatches};

use super::value::{Raw, Value, WrongValue, shown_duration};

/// A setting.
pub struct Setting<T: 'static> {
    /// The key in `pintle.toml`.
    pub key: &'static str,
    /// The environment variable.
    pub env: &'static str,
    /// What help calls the value.
    pub value_name: &'static str,
    /// The group in help; none is the first one, which everybody needs.
    pub heading: Option<&'static str>,
    /// What the flag means without a value, if it may have none.
    pub bare: Option<&'static str>,
    /// Whether `pintle.toml` takes it. Only what the file cannot say for itself is left out.
    pub is_in_file: bool,
    /// Which values are refused.
    pub bounds: Option<&'static dyn Bounds<T>>,
    /// What holds if nobody has set it.
    pub default: Fallback<T>,
    /// One sentence for `--help`.
    pub help: &'static str,
}

/// The default of a setting.
pub enum Fallback<T> {
    /// This value. Help shows it as it would be written.
    Value(fn() -> T),
    /// A value that depends on where the program runs. Help describes it with these words.
    Described(&'static str, fn() -> T),
}

/// Which values of a setting are taken.
pub trait Bounds<T>: Sync {
    /// Whether this one is.
    fn accept(&self, value: &T) -> bool;
    /// What a value must be, after "it must be".
    fn describe(&self) -> String;
}

/// From one number to another, both included.
pub struct Between<T>(pub T, pub T);

impl<T: PartialOrd + Display + Sync> Bounds<T> for Between<T> {
    fn accept(&self, value: &T) -> bool {
        (&self.0..=&self.1).contains(&value)
    }

    fn describe(&self) -> String {
        format!("from {} to {}", self.0, self.1)
    }
}

/// Longer than nothing.
pub struct LongerThanZero;

impl Bounds<Duration> for LongerThanZero {
    fn accept(&self, value: &Duration) -> bool {
        !value.is_zero()
    }

    fn describe(&self) -> String {
        format!("longer than {}", shown_duration(Duration::ZERO))
    }
}

impl<T: Value> Setting<T> {
    /// What holds if nobody has set it.
    pub fn default_value(&self) -> T {
        match self.default {
            Fallback::Value(value) | Fallback::Described(_, value) => value(),
        }
    }

    /// What was typed, or stands in the environment variable.
    pub fn typed(&self, matches: &ArgMatches) -> Option<T::Raw> {
        T::Raw::typed(matches, self.key)
    }
}

/// A setting of any type, for what treats all of them alike.
pub trait AnySetting: Sync {
    /// See [`Setting::key`].
    fn key(&self) -> &'static str;
    /// See [`Setting::env`].
    fn env(&self) -> &'static str;
    /// See [`Setting::is_in_file`].
    fn is_in_file(&self) -> bool;
    /// The flag, without its dashes: the key with dashes in the place of underscores.
    fn flag(&self) -> String {
        self.key().replace('_', "-")
    }
    /// The flag as the command line describes it.
    fn argument(&self) -> Arg;
    /// Whether it was typed, or stands in its environment variable.
    fn is_typed(&self, matches: &ArgMatches) -> bool;
    /// Whether the type of a value in the file is the right one, and a word one of those that there are.
    fn check_written(&self, value: &toml::Value) -> Result<(), WrongValue>;
    /// The default as help shows it; none where there is nothing to say.
    fn default_text(&self) -> Option<String>;
    /// The bounds as help and errors show them.
    fn bounds_text(&self) -> Option<String>;
}

impl<T: Value> AnySetting for Setting<T> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn env(&self) -> &'static str {
        self.env
    }

    fn is_in_file(&self) -> bool {
        self.is_in_file
    }

    fn argument(&self) -> Arg {
        let bounds = self.bounds_text().map(|bounds| format!(" [{bounds}]")).unwrap_or_default();
        let default = self.default_text().map(|default| format!(" [default: {default}]"));
        let help = format!("{}{bounds}{}", self.help, default.unwrap_or_default());
        let argument = Arg::new(self.key)
            .long(self.flag())
            .value_name(self.value_name)
            .env(self.env)
            // Some of what variables hold is secret.
            .hide_env_values(true)
            .help_heading(self.heading)
            .help(help);
        let argument = match self.bare {
            Some(bare) => argument.num_args(0..=1).default_missing_value(bare),
            None => argument,
        };
        T::Raw::describe(argument)
    }

    fn is_typed(&self, matches: &ArgMatches) -> bool {
        self.typed(matches).is_some()
    }

    fn check_written(&self, value: &toml::Value) -> Result<(), WrongValue> {
        T::Raw::written(value).map(drop)
    }

    fn default_text(&self) -> Option<String> {
        match self.default {
            Fallback::Value(value) => value().show(),
            Fallback::Described(words, _) => Some(words.to_owned()),
        }
    }

    fn bounds_text(&self) -> Option<String> {
        self.bounds.map(Bounds::describe)
    }
}

impl Debug for dyn AnySetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.key())
    }
}
