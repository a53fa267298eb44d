//! What was given: on the command line, in the environment, in the file. Flags beat the environment, which beats the
//! file, which beats the defaults.

use std::{ffi::OsStr, path::PathBuf};

use clap::{ArgMatches, Args, FromArgMatches, parser::ValueSource};
use pintle_positions::{Located, Location};

use super::{
    definition::{AnySetting, Setting},
    error::SettingError,
    table::{CONFIG, DEFAULT_HTTP, HTTP, SCOPE, SERVE, TOOLSETS, WORKSPACE},
    value::{Raw as _, Value},
};
use crate::{
    config::{ConfigError, ConfigFile},
    rig::RigArguments,
};

/// The flags that every command takes, with their environment variables.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    matches: ArgMatches,
    /// What a test rig adds.
    pub rig: RigArguments,
}

impl Args for Flags {
    fn augment_args(command: clap::Command) -> clap::Command {
        RigArguments::augment_args(command.args(WORKSPACE.iter().map(|setting| setting.argument())))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { matches: matches.clone(), rig: RigArguments::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds the flags of `pintle serve`. What was given of them is in [`Flags`], too.
#[derive(Clone, Debug)]
pub struct ServeFlags;

impl Args for ServeFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(SERVE.iter().map(|setting| setting.argument()))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServeFlags {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

/// Says which flag of `pintle serve` is empty that must not be. An empty flag is most often a shell variable that
/// somebody forgot to set, and what would hold instead, such as all scopes, is not what was meant. An empty environment
/// variable counts as not set, except for the scopes, where that would grant everything.
pub fn problem_of_empty(serve: &ArgMatches) -> Option<String> {
    let settings: [(&dyn AnySetting, String); 3] = [
        (&SCOPE, "write it as `read:/folder/`".into()),
        (&HTTP, format!("write it as `{DEFAULT_HTTP}`")),
        (&TOOLSETS, "write it as `files,search`, or `auto`".into()),
    ];
    settings.into_iter().find_map(|(setting, remedy)| {
        let has_empty = serve.get_raw(setting.key())?.any(OsStr::is_empty);
        let name = match serve.value_source(setting.key())? {
            ValueSource::CommandLine => format!("--{}", setting.flag()),
            ValueSource::EnvVariable if setting.key() == SCOPE.key => setting.env().to_owned(),
            _ => return None,
        };
        has_empty.then(|| format!("{name} is empty; {remedy}"))
    })
}

/// All that was given.
#[derive(Debug, Default)]
pub struct Given {
    pub flags: Flags,
    pub file: ConfigFile,
    /// Where the configuration is, or would be.
    pub config_file: PathBuf,
}

impl Given {
    /// Reads the configuration file that the flags name, or the one in the current folder.
    pub fn read(flags: Flags) -> Result<Self, Located<ConfigError>> {
        let named = CONFIG.typed(&flags.matches);
        let file = ConfigFile::load(named.as_deref())?;
        Ok(Self { config_file: ConfigFile::path(named.as_deref()).to_owned(), flags, file })
    }

    /// The value of a setting.
    pub fn get<T: Value>(&self, setting: &Setting<T>) -> Result<T, Located<SettingError>> {
        let key = setting.key;
        let raw = match setting.typed(&self.flags.matches) {
            Some(typed) => typed,
            None => {
                let Some(value) = self.written(setting) else { return Ok(setting.default_value()) };
                let wrong = |wrong| self.location(setting).error(SettingError::WrongValue { key, wrong });
                let raw = T::Raw::written(value).map_err(wrong)?;
                if raw.is_unset() {
                    return Ok(setting.default_value());
                }
                raw.relative_to(&self.file.folder)
            }
        };
        let name = self.name(setting);
        let value = T::mean(raw).map_err(|error| {
            let location = self.file_location(setting, error.index());
            location.error(match self.is_typed(setting) || error.index().is_none() {
                true => SettingError::Meaningless { name: name.clone(), error },
                // The position in the file says which setting it is about.
                false => SettingError::MeaninglessElement { error },
            })
        })?;
        match setting.bounds.filter(|bounds| !bounds.accept(&value)) {
            Some(bounds) => {
                let (found, bounds) = (value.show().unwrap_or_default(), bounds.describe());
                let error = SettingError::OutOfBounds { name, found, bounds };
                Err(self.file_location(setting, None).error(error))
            }
            None => Ok(value),
        }
    }

    /// What a setting was set by: its flag, its environment variable, or its key in the file.
    pub fn name(&self, setting: &dyn AnySetting) -> String {
        match self.source(setting) {
            Some(ValueSource::EnvVariable) => setting.env().to_owned(),
            Some(_) => format!("--{}", setting.flag()),
            None => setting.key().to_owned(),
        }
    }

    /// Where a setting was typed, if it was.
    fn source(&self, setting: &dyn AnySetting) -> Option<ValueSource> {
        // Not every command has every flag, and clap panics at the question for one that there is not.
        self.is_typed(setting).then(|| self.flags.matches.value_source(setting.key())).flatten()
    }

    /// Whether a setting was typed, or stands in its environment variable.
    pub fn is_typed(&self, setting: &dyn AnySetting) -> bool {
        setting.is_typed(&self.flags.matches)
    }

    /// A setting as it was typed, or stands in its environment variable: one text for each value.
    pub fn as_typed(&self, setting: &dyn AnySetting) -> Vec<String> {
        if !self.is_typed(setting) {
            return Vec::new();
        }
        let texts = self.flags.matches.try_get_raw(setting.key()).ok().flatten();
        let texts = texts.into_iter().flatten().map(|text| text.to_string_lossy().into_owned());
        texts.filter(|text| !text.is_empty()).collect()
    }

    /// Where a setting was written in the file, or its environment variable, unless it was typed, which beats both.
    pub fn location<T: Value>(&self, setting: &Setting<T>) -> Location {
        self.element_location(setting, None)
    }

    /// The same for an element of a list.
    pub fn element_location<T: Value>(&self, setting: &Setting<T>, index: Option<usize>) -> Location {
        match self.source(setting) {
            Some(ValueSource::EnvVariable) => Location::variable(setting.env),
            _ => self.file_location(setting, index),
        }
    }

    /// The same for what names its setting itself.
    fn file_location<T: Value>(&self, setting: &Setting<T>, index: Option<usize>) -> Location {
        match self.is_typed(setting) {
            true => Location::default(),
            false => self.file.location(setting.key, index),
        }
    }

    fn written<T: Value>(&self, setting: &Setting<T>) -> Option<&toml::Value> {
        self.file.value(setting.key).filter(|_| setting.is_in_file)
    }
}
