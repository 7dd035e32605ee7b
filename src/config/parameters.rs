//! Parameters that can be changed while the operator runs, for a time or until it ends.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use thiserror::Error;
use tracing::Level;

use super::parse_bool;
use super::settings::parse_level;

/// How long the level `debug` lasts when no duration is given.
const DEBUG_DURATION: Duration = Duration::from_mins(30);

/// The names of the parameters.
const LEVEL: &str = "log.level";
const EVENTS: &str = "log.configmap.events";

/// Returns which parameter may be meant, or which ones there are.
fn hint(name: &str) -> String {
    match engine::view::nearest(name, [LEVEL, EVENTS]) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are {LEVEL} and {EVENTS}"),
    }
}

/// Why a parameter was not set.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ParameterError {
    /// There is no parameter of this name.
    #[error("there is no parameter {name:?}; {}", hint(name))]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// The value does not fit.
    #[error("{name} can't be {value:?}: expected {expected}")]
    Value {
        /// The name of the parameter.
        name: &'static str,
        /// The text that was given.
        value: String,
        /// The texts that are accepted, in words.
        expected: &'static str,
    },
    /// The duration can't be read.
    #[error("the duration {given:?} can't be read: expected one like 30m or 1h30m, greater than zero")]
    Duration {
        /// The text that was given.
        given: String,
    },
}

/// A parameter as it is now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Parameter {
    /// The name for `config set`: `log.level`.
    pub name: &'static str,
    /// One line for people: what the parameter changes.
    pub description: &'static str,
    /// The value at the start, and after `expires`.
    pub default: String,
    /// The value in force.
    pub value: String,
    /// When the default comes back; `None` for not before the operator ends.
    pub expires: Option<Timestamp>,
}

/// All parameters. Clones share them.
#[derive(Clone)]
pub struct Parameters {
    level: Arc<Expiring<Level>>,
    events: Arc<Expiring<bool>>,
}

/// A parameter whose default comes back after a time.
struct Expiring<T> {
    default: T,
    current: Mutex<Current<T>>,
    /// Puts a value into force.
    apply: Box<dyn Fn(T) + Send + Sync>,
}

/// The value in force, with the time at which the default comes back.
#[derive(Clone, Copy, Debug)]
struct Current<T> {
    value: T,
    expires: Option<Timestamp>,
    /// Counts changes, so that an old deadline ends nothing new.
    change: u64,
}

impl<T: Copy + Send + Sync + 'static> Expiring<T> {
    fn new(default: T, apply: impl Fn(T) + Send + Sync + 'static) -> Arc<Self> {
        let current = Mutex::new(Current { value: default, expires: None, change: 0 });
        Arc::new(Self { default, current, apply: Box::new(apply) })
    }

    fn current(&self) -> Current<T> {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the value, for `duration` if there is one.
    fn set(self: &Arc<Self>, value: T, duration: Option<Duration>) {
        let expires = duration.and_then(|duration| Timestamp::now().checked_add(duration).ok());
        let change = {
            let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            *current = Current { value, expires, change: current.change + 1 };
            current.change
        };
        (self.apply)(value);
        let Some(duration) = duration else { return };
        let parameter = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(duration).await;
            let mut current = parameter.current.lock().unwrap_or_else(PoisonError::into_inner);
            if current.change == change {
                *current = Current { value: parameter.default, expires: None, change: change + 1 };
                (parameter.apply)(parameter.default);
            }
        });
    }
}

impl Parameters {
    /// Returns parameters with `level` as the default of the log; `set_level` changes it.
    pub fn new(level: Level, set_level: impl Fn(Level) + Send + Sync + 'static) -> Self {
        Self { level: Expiring::new(level, set_level), events: Expiring::new(false, |_| {}) }
    }

    /// Returns whether changes of the ConfigMap are logged.
    pub fn shows_events(&self) -> bool {
        self.events.current().value
    }

    /// Returns all parameters.
    pub fn list(&self) -> Vec<Parameter> {
        let (level, events) = (self.level.current(), self.events.current());
        vec![
            Parameter {
                name: EVENTS,
                description: "Log each change of the ConfigMap: which keys, how long their texts are; never the texts",
                default: false.to_string(),
                value: events.value.to_string(),
                expires: events.expires,
            },
            Parameter {
                name: LEVEL,
                description: "Least severe level of log lines: trace, debug, info, warn or error",
                default: word(self.level.default),
                value: word(level.value),
                expires: level.expires,
            },
        ]
    }

    /// Sets a parameter, for `duration` (in Go's notation) if that is not empty.
    ///
    /// Has to be called within a tokio runtime, since a task of it resets the value.
    pub fn set(&self, name: &str, value: &str, duration: &str) -> Result<(), ParameterError> {
        let duration = match duration {
            "" => None,
            given => Some(
                super::parse_duration(given)
                    .filter(|duration| !duration.is_zero())
                    .ok_or_else(|| ParameterError::Duration { given: given.to_owned() })?,
            ),
        };
        match name {
            LEVEL => self.set_level(value, duration),
            EVENTS => self.set_events(value, duration),
            _ => Err(ParameterError::Unknown { name: name.to_owned() }),
        }
    }

    fn set_level(&self, value: &str, duration: Option<Duration>) -> Result<(), ParameterError> {
        let expected = "trace, debug, info, warn or error";
        let wrong = || ParameterError::Value { name: LEVEL, value: value.to_owned(), expected };
        let level = parse_level(value).ok_or_else(wrong)?;
        let is_default = level == self.level.default;
        // A log that says everything is easily forgotten.
        let duration = duration.or_else(|| (level >= Level::DEBUG && !is_default).then_some(DEBUG_DURATION));
        self.level.set(level, duration);
        Ok(())
    }

    fn set_events(&self, value: &str, duration: Option<Duration>) -> Result<(), ParameterError> {
        let expected = "true or false";
        let wrong = || ParameterError::Value { name: EVENTS, value: value.to_owned(), expected };
        self.events.set(parse_bool(value).ok_or_else(wrong)?, duration);
        Ok(())
    }
}

fn word(level: Level) -> String {
    level.as_str().to_ascii_lowercase()
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parameters").field(&self.list()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> (Parameters, Arc<Mutex<Vec<Level>>>) {
        let levels = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&levels);
        (Parameters::new(Level::INFO, move |level| seen.lock().unwrap().push(level)), levels)
    }

    fn value(parameters: &Parameters, name: &str) -> (String, bool) {
        let all = parameters.list();
        let found = all.iter().find(|parameter| parameter.name == name).unwrap();
        (found.value.clone(), found.expires.is_some())
    }

    #[tokio::test(start_paused = true)]
    async fn debug_ends_after_half_an_hour() {
        let (parameters, levels) = parameters();
        parameters.set("log.level", "debug", "").unwrap();
        assert_eq!(value(&parameters, "log.level"), ("debug".to_owned(), true));
        tokio::time::sleep(Duration::from_mins(31)).await;
        assert_eq!(value(&parameters, "log.level"), ("info".to_owned(), false));
        assert_eq!(*levels.lock().unwrap(), [Level::DEBUG, Level::INFO]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_change_is_not_ended_by_an_earlier_deadline() {
        let (parameters, _) = parameters();
        parameters.set("log.level", "debug", "1m").unwrap();
        parameters.set("log.level", "warn", "").unwrap();
        tokio::time::sleep(Duration::from_mins(40)).await;
        assert_eq!(value(&parameters, "log.level"), ("warn".to_owned(), false));
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_the_config_map_are_shown_for_a_while() {
        let (parameters, _) = parameters();
        parameters.set("log.configmap.events", "true", "10s").unwrap();
        assert!(parameters.shows_events());
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert!(!parameters.shows_events());
    }

    #[tokio::test]
    async fn what_does_not_fit_is_refused_and_changes_nothing() {
        let (parameters, levels) = parameters();
        for (name, value, duration) in [
            ("log.size", "1", ""),
            ("log.level", "loud", ""),
            ("log.level", "", ""),
            ("log.level", "debug", "soon"),
            ("log.level", "debug", "0s"),
            ("log.level", "debug", "-5m"),
            ("log.configmap.events", "perhaps", ""),
        ] {
            assert!(parameters.set(name, value, duration).is_err(), "{name} {value} {duration}");
        }
        assert!(levels.lock().unwrap().is_empty());
        let error = |name| parameters.set(name, "info", "").unwrap_err().to_string();
        assert_eq!(error("log.lvel"), "there is no parameter \"log.lvel\"; did you mean log.level?");
        assert_eq!(
            error("size"),
            "there is no parameter \"size\"; there are log.level and log.configmap.events"
        );
    }
}
