//! Answers as data, and why there is none.

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::cause::Cause;

/// Why there is no answer.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("there is no {what} {name}{}", hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct Unknown {
    /// What was asked about: `module`, `queue`, `source` or `task`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// What may be meant, or where the names are.
    pub hint: Option<String>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What it is about: `module`, `queue`, `source` or `task`.
    pub about: &'static str,
    /// Its name.
    pub name: String,
    /// What it is in one word: `off`, `running`, `failing`, `waiting` …
    pub state: &'static str,
    /// The answer in one sentence.
    pub verdict: String,
    /// What led to it, in order.
    pub chain: Vec<Link>,
    /// What else is known, by name.
    pub facts: Vec<(&'static str, String)>,
    /// What waits behind, in order.
    pub behind: Vec<String>,
    /// What a person can do.
    pub advice: Vec<String>,
}

/// A link of what led to something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// What it is: a source, an event.
    pub what: String,
    /// What it says, if it is a source that says yes or no.
    pub says: Option<bool>,
    /// Why.
    pub reason: Option<String>,
    /// The time of day, and how many seconds ago.
    pub at: Option<(String, f64)>,
}

impl Answer {
    /// Returns the answer as data.
    pub fn data(&self) -> Value {
        let mut data = Map::from_iter([
            ("about".to_owned(), self.about.into()),
            ("name".to_owned(), self.name.clone().into()),
            ("state".to_owned(), self.state.into()),
            ("verdict".to_owned(), self.verdict.clone().into()),
            ("chain".to_owned(), self.chain.iter().map(Link::data).collect()),
        ]);
        let facts: Map<String, Value> =
            self.facts.iter().map(|(name, text)| ((*name).to_owned(), text.clone().into())).collect();
        data.insert("facts".to_owned(), facts.into());
        if !self.behind.is_empty() {
            data.insert("behind".to_owned(), self.behind.clone().into());
        }
        data.insert("advice".to_owned(), self.advice.clone().into());
        data.into()
    }
}

impl Link {
    fn data(&self) -> Value {
        let mut data = Map::from_iter([("what".to_owned(), Value::from(self.what.clone()))]);
        if let Some(says) = self.says {
            data.insert("says".to_owned(), says.into());
        }
        if let Some(reason) = &self.reason {
            data.insert("reason".to_owned(), reason.clone().into());
        }
        if let Some((at, seconds)) = &self.at {
            data.insert("at".to_owned(), at.clone().into());
            data.insert("secondsAgo".to_owned(), json!(seconds));
        }
        data.into()
    }
}

/// Returns the links of a chain of causes.
pub(super) fn chain(cause: &Cause) -> Vec<Link> {
    cause.links().into_iter().map(|link| Link { what: link.to_owned(), ..Link::default() }).collect()
}
