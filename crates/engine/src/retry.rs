//! How what fails is tried again: `retry` in the files of a module and in the configuration of a hook.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::duration;

/// All keys.
const KEYS: [&str; 4] = ["attempts", "delay", "max", "then"];

/// The shortest and the longest pause.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_hours(24)];

/// The most attempts that can be counted.
const MAX_ATTEMPTS: u64 = 10_000;

/// How what fails is tried again. What it does not say is as the options of the operator say.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RetryPolicy {
    /// The pause after the first failure.
    pub delay: Option<Duration>,
    /// The longest pause: they double until then.
    pub max: Option<Duration>,
    /// How many attempts are made in a row; `None` for no limit.
    pub attempts: Option<u32>,
    /// What comes after the last one.
    pub then: LastResort,
}

/// What comes when all attempts have failed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LastResort {
    /// It is tried again all the same.
    #[default]
    Retry,
    /// It is left alone until something changes or a person says so.
    Park,
    /// It is given up until something else asks for it.
    Skip,
}

impl RetryPolicy {
    /// Reads the mapping `retry`.
    ///
    /// # Errors
    ///
    /// What is wrong, with its key below the mapping.
    pub fn read(fields: &Map<String, Value>) -> Result<Self, String> {
        if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let shown: String = unknown.chars().take(100).collect();
            return Err(format!("there is no key {shown:?}; the keys are {}", KEYS.join(", ")));
        }
        let pause = |key: &str| {
            let Some(value) = fields.get(key) else { return Ok(None) };
            let time = value.as_str().and_then(|text| duration::parse(text).ok());
            let [shortest, longest] = PAUSES;
            match time.filter(|time| (shortest..=longest).contains(time)) {
                Some(time) => Ok(Some(time)),
                None => Err(format!("{key}: should be a duration from 1s to 24h, such as 30s")),
            }
        };
        let (delay, max) = (pause("delay")?, pause("max")?);
        if delay.zip(max).is_some_and(|(delay, max)| max < delay) {
            return Err("max: should not be less than delay".to_owned());
        }
        let attempts = match fields.get("attempts") {
            None => None,
            Some(value) => {
                let count = value.as_u64().filter(|count| (1..=MAX_ATTEMPTS).contains(count));
                let count = count.and_then(|count| u32::try_from(count).ok());
                Some(count.ok_or_else(|| format!("attempts: should be a number from 1 to {MAX_ATTEMPTS}"))?)
            }
        };
        let then = match fields.get("then").map(Value::as_str) {
            None | Some(Some("retry")) => LastResort::Retry,
            Some(Some("park")) => LastResort::Park,
            Some(Some("skip")) => LastResort::Skip,
            Some(_) => return Err("then: should be retry, park or skip".to_owned()),
        };
        if then != LastResort::Retry && attempts.is_none() {
            return Err("attempts: is missing; then says what comes after the last one".to_owned());
        }
        Ok(Self { delay, max, attempts, then })
    }

    /// Returns what comes after `failures` failed attempts, if none is made any more.
    pub(crate) fn ends_after(&self, failures: u32) -> Option<LastResort> {
        let is_last = self.attempts.is_some_and(|attempts| failures >= attempts);
        (is_last && self.then != LastResort::Retry).then_some(self.then)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<RetryPolicy, String> {
        RetryPolicy::read(value.as_object().unwrap())
    }

    #[test]
    fn what_can_not_be_meant_is_refused_with_its_key() {
        for (value, problem) in [
            (json!({"wait": "5s"}), "there is no key \"wait\""),
            (json!({"delay": "0s"}), "delay: should be a duration from 1s to 24h"),
            (json!({"delay": 5}), "delay: should be a duration"),
            (json!({"max": "25h"}), "max: should be a duration"),
            (json!({"delay": "2m", "max": "1m"}), "max: should not be less than delay"),
            (json!({"attempts": 0}), "attempts: should be a number from 1 to 10000"),
            (json!({"attempts": 10_001}), "attempts: should be a number"),
            (json!({"attempts": 2, "then": "stop"}), "then: should be retry, park or skip"),
            (json!({"then": "park"}), "attempts: is missing"),
        ] {
            let error = read(&value).unwrap_err();
            assert!(error.contains(problem), "{value}: {error}");
        }
        assert_eq!(read(&json!({})), Ok(RetryPolicy::default()));
    }

    #[test]
    fn an_end_comes_after_so_many_failures_and_never_without_one() {
        let policy = read(&json!({"attempts": 3, "then": "skip"})).unwrap();
        assert_eq!((policy.ends_after(2), policy.ends_after(3)), (None, Some(LastResort::Skip)));
        let counted = read(&json!({"attempts": 3})).unwrap();
        assert_eq!([counted, RetryPolicy::default()].map(|policy| policy.ends_after(u32::MAX)), [None, None]);
    }
}
