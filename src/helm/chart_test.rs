//! Tests of a release: the hooks of its chart for `test`, as the deployed record has them. See docs/charts.md#tests-of-a-chart.

use std::collections::BTreeMap;

use chart::manifest::HookEvent;
use chart::record::{HookRecord, Record, Status};
use engine::{Failure, FailureKind, PodLog, TestReport, TestRequest, TestRun};
use serde_json::Value;

use super::Helm;
use super::cancellation::Cancellation;
use super::chart_hook::{ChartHooks, HookObjects, Made};
use super::error::ReleaseError;
use super::pod_log::{LONGEST_LOG, MOST_LINES, last_lines};
use crate::cluster::request::{RequestError, encode_query, encode_segment};

/// How many containers are asked for their logs.
const MOST_LOGS: usize = 20;

/// How often the record is read again because somebody else wrote it meanwhile.
const ATTEMPTS: usize = 5;

impl Helm {
    /// Runs the tests of the deployed revision of a release in their order, and writes down how they ran. The first that fails is
    /// the last that runs. Their objects are deleted when their logs were read.
    ///
    /// # Errors
    ///
    /// When there is no deployed revision, a test of that name is not there, the operator ends, or the API server can't be asked.
    /// That a test failed is in the report.
    pub async fn test(
        &self,
        release: &str,
        request: &TestRequest,
        cancellation: &Cancellation,
    ) -> Result<TestReport, Failure> {
        let outcome = self.run_tests(release, request, cancellation).await;
        outcome
            .map_err(|error| self.failure(&error, &format!("the tests of release {release} did not run")))?
    }

    async fn run_tests(
        &self,
        release: &str,
        request: &TestRequest,
        cancellation: &Cancellation,
    ) -> Result<Result<TestReport, Failure>, ReleaseError> {
        let Some(record) = self.deployed(release).await? else {
            let message =
                format!("release {release} is not deployed in namespace {}", self.settings.namespace);
            let advice = format!(
                "`addon-operator why module {release}` says why; its tests are those of a deployed release"
            );
            return Ok(Err(Failure::new(FailureKind::Release, message).advise(advice)));
        };
        let version = record.version;
        let known: Vec<HookRecord> =
            record.hooks.iter().filter(|hook| hook.events.contains(&HookEvent::Test)).cloned().collect();
        if let Some(failure) = unknown_name(release, &known, request) {
            return Ok(Err(failure));
        }
        let mut report = TestReport {
            release: release.to_owned(),
            namespace: self.settings.namespace.clone(),
            revision: version,
            last_deployed: record.info.last_deployed.0.map(|time| time.to_string()),
            known: known.len(),
            ..TestReport::default()
        };
        let mut hooks: Vec<HookRecord> = known.into_iter().filter(|hook| request.takes(&hook.name)).collect();
        hooks.sort_by(|a, b| (a.weight, &a.name).cmp(&(b.weight, &b.name)));
        if hooks.is_empty() {
            return Ok(Ok(report));
        }
        for hook in &mut hooks {
            // What an earlier suite wrote is no outcome of this one.
            hook.last_run = chart::record::HookRun::default();
        }
        let timeout = request.timeout.unwrap_or(self.settings.timeout);
        let runner = ChartHooks { timeout, ..self.hooks(cancellation) };
        let (kept, outcome) = runner.run_and_keep(HookEvent::Test, &mut hooks).await;
        if request.logs && !cancellation.is_requested() {
            report.logs = self.logs_of(&kept).await;
        }
        // Who can't delete them leaves them to the next suite.
        if let Err(error) = runner.clear_up(kept).await {
            tracing::warn!(release, "the object of a test was not deleted: {error}");
        }
        self.note_runs(release, version, &hooks).await;
        report.tests = hooks.iter().map(test_run).collect();
        match outcome {
            Err(ReleaseError::Cancelled) => {
                let message = format!(
                    "the tests of release {release} were ended: the operator ends, or who asked for them is gone"
                );
                let failure = Failure::new(FailureKind::Cancelled, message);
                return Ok(Err(failure.advise("run them again")));
            }
            outcome => report.failure = outcome.err().map(|error| error.to_string()),
        }
        Ok(Ok(report))
    }

    /// Returns the record of the newest revision that is deployed, if there is one.
    async fn deployed(&self, release: &str) -> Result<Option<Record>, ReleaseError> {
        let history = self.storage.history(release).await?;
        let deployed = history.iter().rev().find(|stored| stored.status == Status::Deployed);
        match deployed {
            Some(stored) => self.storage.read(release, stored.version).await,
            None => Ok(None),
        }
    }

    /// Writes into the record how its hooks ran, and nothing else. A record that is gone, or that can't be written, is no reason
    /// to call tests failed.
    async fn note_runs(&self, release: &str, version: u32, ran: &[HookRecord]) {
        let mut outcome = Ok(());
        for _ in 0..ATTEMPTS {
            outcome = self.try_to_note(release, version, ran).await;
            let is_stale =
                |error: &ReleaseError| matches!(error, ReleaseError::Request(error) if error.code() == 409);
            if !outcome.as_ref().is_err_and(is_stale) {
                break;
            }
        }
        if let Err(error) = outcome {
            tracing::warn!(release, "how the tests ran was not written down: {error}");
        }
    }

    async fn try_to_note(&self, release: &str, version: u32, ran: &[HookRecord]) -> Result<(), ReleaseError> {
        // What is read must not be older than what the write compares with.
        let history = self.storage.history(release).await?;
        let Some(stored) = history.iter().find(|stored| stored.version == version) else { return Ok(()) };
        let Some(mut record) = self.storage.read(release, version).await? else { return Ok(()) };
        for hook in &mut record.hooks {
            let is_this = |other: &&HookRecord| {
                (&other.name, &other.kind, &other.path) == (&hook.name, &hook.kind, &hook.path)
            };
            if let Some(other) = ran.iter().find(is_this).filter(|other| !other.last_run.phase.is_empty()) {
                hook.last_run = other.last_run.clone();
            }
        }
        let written = match self.storage.rewrite(&record, stored).await {
            Err(ReleaseError::Request(error)) if error.code() == 404 => return Ok(()),
            written => written?,
        };
        self.last_releases.wrote(release, version, written);
        Ok(())
    }

    /// Returns what the containers printed of Pods, and of the Pods of Jobs.
    async fn logs_of(&self, kept: &HookObjects) -> BTreeMap<String, PodLog> {
        let mut logs = BTreeMap::new();
        for made in kept.objects() {
            let pods = match self.pods_of(made).await {
                Ok(pods) => pods,
                Err(error) => {
                    let log = PodLog { problem: Some(error.to_string()), ..PodLog::default() };
                    logs.insert(made.name.clone(), log);
                    continue;
                }
            };
            for pod in &pods {
                let name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                for container in containers(pod) {
                    if logs.len() >= MOST_LOGS {
                        return logs;
                    }
                    let path = format!(
                        "{}/log?container={}&tailLines={MOST_LINES}&limitBytes={LONGEST_LOG}",
                        self.pod_path(pod, name),
                        encode_query(container)
                    );
                    logs.insert(format!("{name}/{container}"), self.log(&path).await);
                }
            }
        }
        logs
    }

    fn pod_path(&self, pod: &Value, name: &str) -> String {
        let namespace = pod.pointer("/metadata/namespace").and_then(Value::as_str);
        let namespace = encode_segment(namespace.unwrap_or(&self.settings.namespace));
        format!("/api/v1/namespaces/{namespace}/pods/{}", encode_segment(name))
    }

    /// Returns the Pods that ran for an object: itself, or those of a Job.
    async fn pods_of(&self, made: &Made) -> Result<Vec<Value>, RequestError> {
        match &*made.kind {
            "Pod" => Ok(self.requests.get(&made.path).await?.into_iter().collect()),
            "Job" => {
                let namespace = namespace_in(&made.path).unwrap_or(&self.settings.namespace);
                let selector = encode_query(&format!("job-name={}", made.name));
                let path =
                    format!("/api/v1/namespaces/{namespace}/pods?labelSelector={selector}&limit={MOST_LOGS}");
                let list = self.requests.get(&path).await?.unwrap_or_default();
                Ok(list.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
            }
            _ => Ok(Vec::new()),
        }
    }

    async fn log(&self, path: &str) -> PodLog {
        match self.requests.text(path, LONGEST_LOG).await {
            Ok(text) => {
                let (text, is_cut) = last_lines(&text);
                PodLog { text: text.to_owned(), is_cut, problem: None }
            }
            Err(error) => PodLog { problem: Some(error.to_string()), ..PodLog::default() },
        }
    }
}

/// Returns the namespace in the path of an object.
fn namespace_in(path: &str) -> Option<&str> {
    path.split_once("/namespaces/")?.1.split('/').next()
}

/// Returns the names of the containers of a Pod, in the order in which they run.
fn containers(pod: &Value) -> impl Iterator<Item = &str> {
    ["/spec/initContainers", "/spec/containers"]
        .into_iter()
        .filter_map(|place| pod.pointer(place)?.as_array())
        .flatten()
        .filter_map(|container| container.get("name")?.as_str())
}

/// Returns why a test can't be run that was asked for by name: it is not there.
fn unknown_name(release: &str, known: &[HookRecord], request: &TestRequest) -> Option<Failure> {
    let is_known = |name: &&String| known.iter().any(|hook| hook.name == **name);
    let name = request.only.iter().find(|name| !is_known(name))?;
    let names: Vec<&str> = known.iter().map(|hook| hook.name.as_str()).collect();
    let there =
        if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
    Some(Failure::new(FailureKind::Release, format!("release {release} has no test {name}: {there}")))
}

fn test_run(hook: &HookRecord) -> TestRun {
    let time = |time: chart::record::Time| time.0.map(|time| time.to_string());
    TestRun {
        name: hook.name.clone(),
        kind: hook.kind.clone(),
        phase: hook.last_run.phase.clone(),
        started: time(hook.last_run.started_at),
        completed: time(hook.last_run.completed_at),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_come_in_the_order_in_which_they_run() {
        let pod = json!({"spec": {"containers": [{"name": "b"}, {"name": "a"}], "initContainers": [{"name": "z"}]}});
        assert_eq!(containers(&pod).collect::<Vec<_>>(), ["z", "b", "a"]);
        assert_eq!(containers(&json!({})).count(), 0);
    }

    #[test]
    fn the_namespace_is_in_the_path_of_an_object() {
        assert_eq!(namespace_in("/apis/batch/v1/namespaces/ops/jobs/a"), Some("ops"));
        assert_eq!(namespace_in("/api/v1/nodes/a"), None);
    }
}
