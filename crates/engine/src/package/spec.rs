//! What the objects of chart repositories ask for. See docs/charts.md.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use objects::legal;
use serde::Deserialize;
use serde_json::Value;

use crate::duration;

/// How many charts a Repository may list, and how many Repositories a `RepoGroup`.
pub const MAX_CHARTS: usize = 500;

/// How many constraints a Chart may have.
pub const MAX_VERSIONS: usize = 50;

/// How often an index is looked at, if nothing else is written.
const INTERVAL: Duration = Duration::from_mins(5);

/// What a Repository asks for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ChartRepositorySpec {
    /// Its name, for people and in groups.
    #[serde(default)]
    pub name: String,
    /// Where it is.
    #[serde(default)]
    pub url: String,
    /// The charts that are kept of it.
    #[serde(default)]
    pub charts: Vec<ListedChart>,
    /// The Secret with its user and password.
    #[serde(default)]
    pub auth_secret: Option<String>,
    /// When it is looked at.
    #[serde(default)]
    pub sync: Sync,
}

/// A chart of a Repository that is kept.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct ListedChart {
    /// Its name in the index.
    #[serde(default)]
    pub name: String,
    /// The constraints on its versions.
    #[serde(default)]
    pub versions: Vec<String>,
}

/// When a Repository is looked at.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Sync {
    enabled: Option<bool>,
    interval: Option<Value>,
}

/// What a `RepoGroup` asks for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RepoGroupSpec {
    /// The name of the group in labels.
    #[serde(default)]
    pub label_selector: String,
    /// Its Repositories, as they are in the object.
    #[serde(default)]
    pub repos: Vec<Value>,
}

/// What a Chart asks for.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ChartSpec {
    /// The name of the chart in its Repository.
    #[serde(default)]
    pub name: Arc<str>,
    /// The name of the Repository.
    #[serde(default)]
    pub repository: Arc<str>,
    /// The constraints, each of which takes one version.
    #[serde(default)]
    pub versions: Vec<String>,
    /// Whether the charts that it needs are kept, too.
    #[serde(default)]
    pub create_deps: bool,
}

impl ChartRepositorySpec {
    /// Returns what the spec of an object asks for.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in one line. The API server lets no such spec in while the CRD is ours.
    pub fn read(spec: &Value) -> Result<Self, String> {
        let mut spec = Self::deserialize(spec).map_err(|error| format!("spec: {error}"))?;
        if spec.charts.len() > MAX_CHARTS {
            return Err(format!("spec.charts is longer than {MAX_CHARTS}"));
        }
        spec.charts = united(spec.charts);
        if let Some(chart) = spec.charts.iter().find(|chart| chart.versions.len() > MAX_VERSIONS) {
            return Err(format!(
                "the versions of {:?} in spec.charts are more than {MAX_VERSIONS}",
                chart.name
            ));
        }
        spec.sync.read_interval()?;
        Ok(spec)
    }

    /// Returns how often the index is looked at; `None` if only changes of the object count.
    pub fn interval(&self) -> Option<Duration> {
        let interval = self.sync.read_interval().unwrap_or(INTERVAL);
        self.sync.enabled.unwrap_or(true).then_some(interval)
    }
}

/// Returns the charts with one entry for each name: there is one Chart for it, and two entries would undo each other's constraints.
fn united(charts: Vec<ListedChart>) -> Vec<ListedChart> {
    let mut all: Vec<ListedChart> = Vec::with_capacity(charts.len());
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for chart in charts {
        let known = places.get(&chart.name).and_then(|place| all.get_mut(*place));
        let Some(known) = known else {
            places.insert(chart.name.clone(), all.len());
            all.push(chart);
            continue;
        };
        for version in chart.versions {
            if !known.versions.contains(&version) {
                known.versions.push(version);
            }
        }
    }
    all
}

impl Sync {
    fn read_interval(&self) -> Result<Duration, String> {
        let wrong =
            || "spec.sync.interval has to be a duration such as 5m, or whole seconds, and not 0".to_owned();
        let interval = match &self.interval {
            None | Some(Value::Null) => return Ok(INTERVAL),
            Some(Value::Number(seconds)) => seconds.as_u64().map(Duration::from_secs),
            Some(Value::String(text)) => duration::parse(text).ok(),
            Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => None,
        };
        interval.filter(|interval| !interval.is_zero()).ok_or_else(wrong)
    }
}

impl RepoGroupSpec {
    /// Returns what the spec of an object asks for.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in one line.
    pub fn read(spec: &Value) -> Result<Self, String> {
        let spec = Self::deserialize(spec).map_err(|error| format!("spec: {error}"))?;
        if spec.repos.len() > MAX_CHARTS {
            return Err(format!("spec.repos is longer than {MAX_CHARTS}"));
        }
        let mut names = BTreeMap::new();
        for (place, repository) in spec.repos.iter().enumerate() {
            let read = ChartRepositorySpec::read(repository)
                .map_err(|error| format!("spec.repos[{place}]: {error}"))?;
            if read.name.is_empty() {
                return Err(format!("spec.repos[{place}].name is empty: the Repository gets this name"));
            }
            if let Some((other, taken)) = names.insert(legal::object(&read.name), (place, read.name.clone()))
            {
                return Err(format!(
                    "spec.repos[{other}].name {taken:?} and spec.repos[{place}].name {:?} are the name of one Repository: rename one",
                    read.name
                ));
            }
        }
        Ok(spec)
    }
}

impl ChartSpec {
    /// Returns what the spec of an object asks for.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in one line.
    pub fn read(spec: &Value) -> Result<Self, String> {
        let spec = Self::deserialize(spec).map_err(|error| format!("spec: {error}"))?;
        if spec.versions.len() > MAX_VERSIONS {
            return Err(format!("spec.versions is longer than {MAX_VERSIONS}"));
        }
        for (field, text) in [("name", &spec.name), ("repository", &spec.repository)] {
            if text.is_empty() {
                return Err(format!("spec.{field} is empty"));
            }
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_interval_is_a_duration_or_whole_seconds() {
        for (sync, interval) in [
            (json!({}), Some(300)),
            (json!({"interval": "10m"}), Some(600)),
            (json!({"interval": 30}), Some(30)),
            (json!({"enabled": true}), Some(300)),
            (json!({"enabled": false, "interval": 30}), None),
        ] {
            let spec = ChartRepositorySpec::read(&json!({"url": "x", "sync": sync})).unwrap();
            assert_eq!(spec.interval(), interval.map(Duration::from_secs), "{sync}");
        }
        for interval in [json!("soon"), json!(0), json!(-1), json!([])] {
            let error =
                ChartRepositorySpec::read(&json!({"url": "x", "sync": {"interval": interval}})).unwrap_err();
            assert!(error.starts_with("spec.sync.interval has to be"), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_or_too_long_is_named() {
        let many = vec![json!("1"); MAX_VERSIONS + 1];
        let charts = vec![json!({"name": "a"}); MAX_CHARTS + 1];
        for (problem, says) in [
            (ChartSpec::read(&json!({"name": "a"})).map(drop), "spec.repository is empty"),
            (ChartSpec::read(&json!({"name": 1})).map(drop), "spec: "),
            (
                ChartSpec::read(&json!({"name": "a", "repository": "b", "versions": many})).map(drop),
                "spec.versions is longer than 50",
            ),
            (
                ChartRepositorySpec::read(&json!({"charts": charts})).map(drop),
                "spec.charts is longer than 500",
            ),
            (
                ChartRepositorySpec::read(&json!({"charts": [{"name": "a", "versions": many}]})).map(drop),
                "the versions of \"a\"",
            ),
            (RepoGroupSpec::read(&json!({"repos": [{"url": "x"}]})).map(drop), "spec.repos[0].name is empty"),
            (RepoGroupSpec::read(&json!({"repos": charts})).map(drop), "spec.repos is longer than 500"),
        ] {
            let error = problem.unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
