//! Parameters that can be changed while the operator runs, for a time or until it ends.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
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
pub struct Parameters(Arc<Shared>);

struct Shared {
    default_level: Level,
    set_level: Box<dyn Fn(Level) + Send + Sync>,
    level: Mutex<Expiring<Level>>,
    shows_events: AtomicBool,
    events: Mutex<Expiring<bool>>,
}

/// A value with the time at which the default comes back.
#[derive(Clone, Copy, Debug)]
struct Expiring<T> {
    value: T,
    expires: Option<Timestamp>,
    /// Counts changes, so that an old deadline ends nothing new.
    change: u64,
}

impl<T> Expiring<T> {
    fn new(value: T) -> Self {
        Self { value, expires: None, change: 0 }
    }

    fn set(&mut self, value: T, expires: Option<Timestamp>) -> u64 {
        self.value = value;
        self.expires = expires;
        self.change += 1;
        self.change
    }
}

impl Parameters {
    /// Returns parameters with `level` as the default of the log; `set_level` changes it.
    pub fn new(level: Level, set_level: impl Fn(Level) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            default_level: level,
            set_level: Box::new(set_level),
            level: Mutex::new(Expiring::new(level)),
            shows_events: AtomicBool::new(false),
            events: Mutex::new(Expiring::new(false)),
        }))
    }

    /// Returns whether changes of the ConfigMap are logged.
    pub fn shows_events(&self) -> bool {
        self.0.shows_events.load(Ordering::Relaxed)
    }

    /// Returns all parameters.
    pub fn list(&self) -> Vec<Parameter> {
        let level = *self.0.level.lock().unwrap_or_else(PoisonError::into_inner);
        let events = *self.0.events.lock().unwrap_or_else(PoisonError::into_inner);
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
                default: word(self.0.default_level),
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
        let is_default = level == self.0.default_level;
        // A log that says everything is easily forgotten.
        let duration = duration.or_else(|| (level >= Level::DEBUG && !is_default).then_some(DEBUG_DURATION));
        let change = {
            let mut current = self.0.level.lock().unwrap_or_else(PoisonError::into_inner);
            current.set(level, expiry(duration))
        };
        (self.0.set_level)(level);
        self.expire_after(duration, move |shared| {
            let mut current = shared.level.lock().unwrap_or_else(PoisonError::into_inner);
            if current.change == change {
                current.set(shared.default_level, None);
                (shared.set_level)(shared.default_level);
            }
        });
        Ok(())
    }

    fn set_events(&self, value: &str, duration: Option<Duration>) -> Result<(), ParameterError> {
        let expected = "true or false";
        let wrong = || ParameterError::Value { name: EVENTS, value: value.to_owned(), expected };
        let on = parse_bool(value).ok_or_else(wrong)?;
        let change = {
            let mut current = self.0.events.lock().unwrap_or_else(PoisonError::into_inner);
            current.set(on, expiry(duration))
        };
        self.0.shows_events.store(on, Ordering::Relaxed);
        self.expire_after(duration, move |shared| {
            let mut current = shared.events.lock().unwrap_or_else(PoisonError::into_inner);
            if current.change == change {
                current.set(false, None);
                shared.shows_events.store(false, Ordering::Relaxed);
            }
        });
        Ok(())
    }

    /// Lets the default come back after `duration`.
    fn expire_after(&self, duration: Option<Duration>, reset: impl FnOnce(&Shared) + Send + 'static) {
        let Some(duration) = duration else { return };
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(duration).await;
            reset(&shared);
        });
    }
}

fn expiry(duration: Option<Duration>) -> Option<Timestamp> {
    duration.and_then(|duration| Timestamp::now().checked_add(duration).ok())
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
