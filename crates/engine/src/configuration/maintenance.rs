//! `<key>Maintenance`: a module whose objects are left alone, why, and until when. See docs/modules.md#maintenance.

use jiff::Timestamp;
use serde_json::{Map, Value};
use values::yaml;

/// The words that switch maintenance on.
const MODES: [&str; 2] = ["NoResourceReconciliation", "noresourcereconciliation"];

/// All keys of the mapping.
const KEYS: [&str; 3] = ["mode", "reason", "until"];

/// The longest reason, in bytes.
const MAX_REASON: usize = 1024;

/// That a module is in maintenance.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Maintenance {
    /// Why, if somebody said so.
    pub(super) reason: Option<String>,
    /// When it ends by itself, if it does.
    pub(super) until: Option<Timestamp>,
}

impl Maintenance {
    /// Reads the text of the key; `None` if it says that there is no maintenance.
    pub(super) fn read(text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if MODES.contains(&text) {
            return Ok(Some(Self::default()));
        }
        match yaml::parse(text) {
            Ok(Value::Object(fields)) => Self::of(&fields).map(Some),
            Ok(_) | Err(_) => {
                Err(format!("must be {}, a mapping {{mode, reason, until}} or empty", MODES[0]))
            }
        }
    }

    fn of(fields: &Map<String, Value>) -> Result<Self, String> {
        if fields.keys().any(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("has a key that nobody knows; the keys are {}", KEYS.join(", ")));
        }
        if !fields.get("mode").and_then(Value::as_str).is_some_and(|mode| MODES.contains(&mode)) {
            return Err(format!("mode: must be {}", MODES[0]));
        }
        let reason = match fields.get("reason") {
            None => None,
            Some(Value::String(reason)) if reason.len() <= MAX_REASON => Some(reason.clone()),
            Some(_) => return Err(format!("reason: must be a text of at most {MAX_REASON} bytes")),
        };
        let until = match fields.get("until") {
            None => None,
            Some(value) => {
                let time = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
                Some(time.ok_or("until: must be a time with its zone, such as 2026-03-01T18:00:00Z")?)
            }
        };
        Ok(Self { reason, until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_or_a_mapping_switches_it_on_and_nothing_else_does() {
        for (text, expected) in
            [("", None), ("  ", None), ("noresourcereconciliation\n", Some(Maintenance::default()))]
        {
            assert_eq!(Maintenance::read(text), Ok(expected), "{text:?}");
        }
        let text =
            "mode: NoResourceReconciliation\nreason: the database moves\nuntil: 2026-03-01T18:00:00+01:00";
        let until = "2026-03-01T17:00:00Z".parse().ok();
        let expected = Maintenance { reason: Some("the database moves".to_owned()), until };
        assert_eq!(Maintenance::read(text), Ok(Some(expected)));
        let long = format!("{{mode: NoResourceReconciliation, reason: {}}}", "x".repeat(MAX_REASON + 1));
        for (text, problem) in [
            ("on", "must be NoResourceReconciliation, a mapping {mode, reason, until} or empty"),
            ("- a", "must be NoResourceReconciliation"),
            ("{reason: x}", "mode: must be NoResourceReconciliation"),
            ("{mode: Off}", "mode: must be"),
            ("{mode: NoResourceReconciliation, untill: x}", "has a key that nobody knows"),
            ("{mode: NoResourceReconciliation, until: tomorrow}", "until: must be a time with its zone"),
            ("{mode: NoResourceReconciliation, until: '2026-03-01'}", "until: must be a time"),
            ("{mode: NoResourceReconciliation, reason: 7}", "reason: must be a text"),
            (&long, "reason: must be a text of at most 1024 bytes"),
        ] {
            let error = Maintenance::read(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
