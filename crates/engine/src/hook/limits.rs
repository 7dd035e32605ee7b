//! What a hook may use at most: `settings.limits` in its configuration, and the option for all hooks.

use std::str::FromStr as _;

use objects::quantity::Quantity;
use serde_json::{Map, Value};

/// All keys.
const KEYS: [&str; 5] = ["cpu", "memory", "output", "processes", "strict"];

/// The least and the most bytes of memory.
const MEMORY: [u64; 2] = [4 << 20, 1 << 40];

/// The least and the most thousandths of a CPU.
const CPU: [u64; 2] = [10, 1_000_000];

/// The most processes.
const PROCESSES: [u64; 2] = [1, 100_000];

/// The least and the most bytes of output.
const OUTPUT: [u64; 2] = [1 << 10, 1 << 30];

/// What a run of a hook may use at most. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HookLimits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Thousandths of a CPU.
    pub cpu: Option<u64>,
    /// Processes and threads at a time.
    pub processes: Option<u64>,
    /// Bytes that it prints and writes into its files.
    pub output: Option<u64>,
    /// Whether it does not run where one of them can't be set.
    pub is_strict: bool,
}

impl HookLimits {
    /// Reads the mapping `limits`.
    ///
    /// # Errors
    ///
    /// What is wrong, with its key below the mapping.
    pub fn read(fields: &Map<String, Value>) -> Result<Self, String> {
        if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let shown: String = unknown.chars().take(100).collect();
            return Err(format!("there is no key {shown:?}; the keys are {}", KEYS.join(", ")));
        }
        let amount = |key: &str, unit: i128, [least, most]: [u64; 2], form: &str| {
            let Some(value) = fields.get(key) else { return Ok(None) };
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
            };
            let nanos = Quantity::from_str(&text).ok().map(Quantity::nanos).filter(|nanos| nanos % unit == 0);
            let amount = nanos.and_then(|nanos| u64::try_from(nanos / unit).ok());
            match amount.filter(|amount| (least..=most).contains(amount)) {
                Some(amount) => Ok(Some(amount)),
                None => Err(format!("{key}: should be {form}")),
            }
        };
        let is_strict = match fields.get("strict") {
            None => false,
            Some(value) => value.as_bool().ok_or("strict: should be true or false")?,
        };
        Ok(Self {
            memory: amount("memory", NANO, MEMORY, "an amount of bytes from 4Mi to 1Ti, such as 256Mi")?,
            cpu: amount("cpu", NANO / 1000, CPU, "an amount of CPUs from 10m to 1000, such as 500m")?,
            processes: amount("processes", NANO, PROCESSES, "a number from 1 to 100000")?,
            output: amount("output", NANO, OUTPUT, "an amount of bytes from 1Ki to 1Gi, such as 10Mi")?,
            is_strict,
        })
    }

    /// Reads `memory=256Mi,cpu=500m,processes=64,output=10Mi,strict`, as the option has them; an empty text is no limit.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut fields = Map::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key.trim(), Value::from(value.trim())),
                None if part == "strict" => ("strict", Value::from(true)),
                None => return Err(format!("{part:?} has no amount: write memory=256Mi")),
            };
            if fields.insert(key.to_owned(), value).is_some() {
                return Err(format!("{key} stands there twice"));
            }
        }
        Self::read(&fields)
    }

    /// Returns these limits with `others` where they say nothing.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            memory: self.memory.or(others.memory),
            cpu: self.cpu.or(others.cpu),
            processes: self.processes.or(others.processes),
            output: self.output.or(others.output),
            is_strict: self.is_strict || others.is_strict,
        }
    }
}

/// Billionths, in which amounts are kept.
const NANO: i128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_read_as_kubernetes_writes_them_and_lie_in_their_bounds() {
        let read = |value: Value| HookLimits::read(value.as_object().unwrap());
        let limits = read(
            json!({"memory": "256Mi", "cpu": "500m", "processes": 64, "output": "10Mi", "strict": true}),
        );
        let expected = HookLimits {
            memory: Some(256 << 20),
            cpu: Some(500),
            processes: Some(64),
            output: Some(10 << 20),
            is_strict: true,
        };
        assert_eq!(limits, Ok(expected));
        assert_eq!(HookLimits::parse("memory=256Mi, cpu=0.5,processes=64,output=10Mi,strict"), Ok(expected));
        assert_eq!(HookLimits::parse(""), Ok(HookLimits::default()));
        let own = HookLimits { cpu: Some(100), ..HookLimits::default() };
        assert_eq!(own.or(expected), HookLimits { cpu: Some(100), ..expected });
        for (value, problem) in [
            (json!({"mem": "1Gi"}), "there is no key \"mem\""),
            (json!({"memory": "3Mi"}), "memory: should be an amount of bytes from 4Mi to 1Ti"),
            (json!({"memory": "2Ti"}), "memory: should be"),
            (json!({"memory": "much"}), "memory: should be"),
            (json!({"memory": []}), "memory: should be"),
            (json!({"cpu": "5m"}), "cpu: should be an amount of CPUs"),
            (json!({"cpu": "-1"}), "cpu: should be"),
            (json!({"processes": 0}), "processes: should be a number from 1"),
            (json!({"processes": 1.5}), "processes: should be a number from 1"),
            (json!({"output": "2Gi"}), "output: should be an amount of bytes from 1Ki to 1Gi"),
            (json!({"strict": "yes"}), "strict: should be true or false"),
        ] {
            let error = read(value.clone()).unwrap_err();
            assert!(error.contains(problem), "{value}: {error}");
        }
        assert!(HookLimits::parse("memory").unwrap_err().contains("has no amount"));
        assert!(HookLimits::parse("cpu=1,cpu=2").unwrap_err().contains("twice"));
    }
}
