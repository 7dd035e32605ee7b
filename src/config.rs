//! The configuration: flags before environment before defaults, checked as a whole.

mod broker;
mod election;
mod options;
mod parameters;
mod settings;
mod webhooks;

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::time::Duration;

use thiserror::Error;

pub use broker::BrokerSettings;
pub use election::{ElectionMode, ElectionSettings};
pub use options::{DURATION, SECTIONS, Setting, settings};
pub use parameters::{Parameter, ParameterError, Parameters};
pub use settings::{ChartSettings, LogType, OnModuleFailure, Settings, SourceSettings, processors};
pub use webhooks::WebhookSettings;

/// Why the configuration can't be used. The program exits with 2.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// An option has a text that it can't have.
    #[error("configuration error: {option} ({source_of}) is {given:?}: expected {expected}")]
    Malformed {
        /// The name of the option, without dashes.
        option: &'static str,
        /// The flag or the environment variable that set it.
        source_of: String,
        /// The text that was given.
        given: String,
        /// The texts that are accepted, in words.
        expected: String,
    },
    /// An option is missing that has no default.
    #[error("configuration error: {option} is missing: {advice}")]
    Missing {
        /// The flag, with its dashes.
        option: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// An option of the reference operator that is not supported, where ignoring it could do harm.
    #[error("configuration error: {option} is not supported: {advice}")]
    Unsupported {
        /// The flag with its dashes, or the environment variable.
        option: String,
        /// What to do.
        advice: &'static str,
    },
}

/// A snapshot of the process environment.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Returns the environment of this process.
    #[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
    pub fn of_process() -> Self {
        Self(env::vars_os().collect())
    }

    /// Returns the variables of this process, and the one in which hooks find this program.
    pub fn of_hooks() -> Self {
        let environment = Self::of_process();
        match env::current_exe() {
            Ok(own) => environment.with("ADDON_OPERATOR_BINARY", own),
            Err(_) => environment,
        }
    }

    /// Returns the variable `name`, if it is set to readable text. Set but empty counts as set.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(&OsString::from(name)).and_then(|value| value.to_str())
    }

    /// Returns the environment with `name` set to `value`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Returns the environment without the variables whose name `matches`.
    #[must_use]
    pub fn without(mut self, matches: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|name, _| !name.to_str().is_some_and(&matches));
        self
    }

    /// Returns all variables.
    pub fn variables(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }
}

/// What was given for each option, and where.
#[derive(Clone, Debug, Default)]
pub struct OptionSources {
    flags: BTreeMap<String, String>,
    environment: Environment,
    defaults: BTreeMap<&'static str, String>,
}

impl OptionSources {
    /// Returns what the flags and the environment say.
    pub fn new(flags: BTreeMap<String, String>, environment: Environment) -> Self {
        Self { flags, environment, defaults: BTreeMap::new() }
    }

    /// Returns the same with another default for the option `flag`.
    #[must_use]
    pub fn default_to(mut self, flag: &'static str, text: impl Into<String>) -> Self {
        self.defaults.insert(flag, text.into());
        self
    }

    /// Returns the default of the option `flag`, which may be another than that of `start`.
    pub fn default_of(&self, setting: &Setting) -> String {
        self.defaults.get(setting.flag).cloned().unwrap_or_else(|| setting.default.to_owned())
    }

    /// Returns whether a flag or a variable sets the option `flag`.
    pub fn is_given(&self, flag: &'static str) -> bool {
        options::setting(flag).is_some_and(|setting| self.find(setting).is_some())
    }

    /// Returns the environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the text of an option and who set it; `None` where its default holds.
    fn find(&self, setting: &Setting) -> Option<(String, String)> {
        if let Some(text) = self.flags.get(setting.flag) {
            return Some((text.clone(), format!("flag --{}", setting.flag)));
        }
        let set = |name: &&'static str| {
            self.environment.text(name).map(|text| (text.to_owned(), (*name).to_owned()))
        };
        setting.variables.iter().find_map(set)
    }

    fn text(&self, flag: &'static str) -> (String, String) {
        let Some(setting) = options::setting(flag) else {
            return (String::new(), String::new());
        };
        self.find(setting).unwrap_or_else(|| (self.default_of(setting), "default".to_owned()))
    }

    fn parse<T>(
        &self,
        flag: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        self.read(flag, |text| parse(text).ok_or_else(|| expected.to_owned()))
    }

    /// Returns what the text of an option says; an error of `read` is what is expected in its place.
    fn read<T>(
        &self,
        flag: &'static str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        let (given, source_of) = self.text(flag);
        read(given.trim()).map_err(|expected| ConfigError::Malformed {
            option: flag,
            source_of,
            given,
            expected,
        })
    }

    fn number<T: std::str::FromStr>(&self, flag: &'static str) -> Result<T, ConfigError> {
        self.parse(flag, "a number that is not negative", |text| text.parse().ok())
    }

    fn duration(&self, flag: &'static str) -> Result<Duration, ConfigError> {
        self.parse(flag, "a duration like 5s, 500ms or 1m30s", parse_duration)
    }

    fn switch(&self, flag: &'static str) -> Result<bool, ConfigError> {
        self.parse(flag, "true or false", parse_bool)
    }
}

/// Returns the duration that `text` says in Go's notation: `1h30m`, `500ms`, `0`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let nanos = engine::duration::parse_nanos(text).ok()?;
    // A negative duration is a mistake, not zero.
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

/// Returns the boolean that `text` says: what Go accepts, and yes and no.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" | "yes" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" | "no" => Some(false),
        _ => None,
    }
}
