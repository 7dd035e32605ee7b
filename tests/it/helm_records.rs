//! Releases step by step as the real `helm` brought them about on a real API server: its
//! records, states and objects are those that we write, and what it left we take over.
#![expect(clippy::indexing_slicing, clippy::similar_names, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::Duration;

use addon_operator::helm::{Cancellation, Helm, ReleaseRun};
use engine::{ReleaseAction, ReleaseName, SourceKey};
use futures::FutureExt as _;
use kube::Client;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::support::release::{
    NAMESPACE, ReleaseFixture, decoded, edit, encoded, end_jobs, names, record_secret, secrets,
};

/// What stands where the recorded namespace was.
const RECORDED: &str = "NS";

/// One scenario; its charts by name, each with its files.
#[derive(Deserialize)]
struct Scenario {
    name: String,
    charts: BTreeMap<String, BTreeMap<String, String>>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Step {
    /// The chart is installed or upgraded.
    Upgrade(Box<Upgrade>),
    /// The records are replaced by those that helm left.
    Inject { records: BTreeMap<String, Value>, labels: BTreeMap<String, Map<String, Value>> },
    /// Somebody changes an object.
    Edit { kind: String, object: String, patch: Value },
    /// The release is removed.
    Uninstall { name: String },
}

#[derive(Deserialize)]
struct Upgrade {
    name: String,
    chart: String,
    set: Map<String, Value>,
    /// The API server, or a hook, refuses it.
    fails: bool,
    /// There is nothing to do, and no revision is made where helm makes one.
    unchanged: bool,
    /// The revisions afterwards.
    #[serde(default)]
    states: Option<Vec<String>>,
    /// The records that this step writes or changes.
    #[serde(default)]
    records: BTreeMap<String, Value>,
    /// The `ConfigMap`s afterwards.
    #[serde(default)]
    objects: Vec<Value>,
}

fn scenarios() -> Vec<Scenario> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data/release/scenarios.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Puts the same text where a time stands, and cuts what the API server said.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let is_time = ["first_deployed", "last_deployed", "deleted", "started_at", "completed_at"];
                if is_time.contains(&key.as_str()) && value != "" {
                    *value = "<TIME>".into();
                }
                if let (true, Some((what, _))) =
                    (key == "description", value.as_str().and_then(|text| text.split_once(" failed:")))
                {
                    *value = what.into();
                }
                without_times(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the part of a record that does not depend on where and with which flags it was made:
/// a module has values of its own and another namespace.
fn comparable(mut record: Value) -> Value {
    without_times(&mut record);
    let entries = record.as_object_mut().unwrap();
    entries.retain(|key, _| key != "config" && key != "namespace");
    if let Some(chart) = entries.get_mut("chart").and_then(Value::as_object_mut) {
        chart.remove("values");
    }
    record
}

/// Returns a text with another for all that is `from`.
fn replaced(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) if text == from => to.into(),
        Value::Array(items) => items.iter().map(|item| replaced(item, from, to)).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), replaced(value, from, to)))
            .collect::<Map<_, _>>()
            .into(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other.clone(),
    }
}

impl Scenario {
    async fn play(&self) {
        let mut world = ReleaseFixture::without_nodes(&[]);
        world.labels.clear();
        world.history_max = if self.name.contains("history-max") { 2 } else { 10 };
        world.timeout = Duration::from_secs(10);
        world.name = "rel";
        let end = self.name.contains("07").then_some("post-job");
        let kubelet = tokio::spawn(end_jobs(Client::new(world.server.service(), NAMESPACE), end));
        for (number, step) in self.steps.iter().enumerate() {
            let place = format!("{}, step {}", self.name, number + 1);
            // Each step is another start of the operator, which knows only what is in the cluster.
            let helm = world.helm();
            match step {
                Step::Upgrade(upgrade) => {
                    world.name = if upgrade.name == "rel" { "rel" } else { leaked(&upgrade.name) };
                    self.upgrade(&world, &world.helm(), upgrade, &place).await;
                }
                Step::Inject { records, labels } => inject(&world, records, labels).await,
                Step::Edit { kind, object, patch } => edit(&world, kind, object, patch).await,
                Step::Uninstall { name } => {
                    let done = helm.uninstall(&ReleaseName::from(name.as_str())).await.unwrap();
                    assert_eq!(done.action, ReleaseAction::Uninstalled, "{place}");
                    assert!(world.states().await.is_empty(), "{place}");
                }
            }
        }
        kubelet.abort();
    }

    async fn upgrade(&self, world: &ReleaseFixture, helm: &Helm, upgrade: &Upgrade, place: &str) {
        let mut files = self.charts[&upgrade.chart].clone();
        if let Some(values) = files.get_mut("values.yaml") {
            for (key, value) in &upgrade.set {
                let is_set = |line: &&str| !line.starts_with(&format!("{key}:"));
                let mut kept: Vec<&str> = values.lines().filter(is_set).collect();
                let set = format!("{key}: {value}\n");
                kept.push(&set);
                *values = kept.join("\n");
            }
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        world.write(&files);
        helm.ensure_crds(&world.module()).await.unwrap();
        match world.upgrade(helm, json!({})).await {
            Ok(outcome) => {
                assert!(!upgrade.fails, "{place}: it should have failed");
                assert_eq!(outcome.action == ReleaseAction::Unchanged, upgrade.unchanged, "{place}");
            }
            Err(failure) => assert!(upgrade.fails, "{place}: {failure}"),
        }
        if let Some(states) = &upgrade.states {
            let got: Vec<String> = world.states().await.iter().map(|state| format!("v{state}")).collect();
            assert_eq!(&got, states, "{place}");
        }
        for (name, expected) in &upgrade.records {
            let secret = world.get(&format!("{}/{name}", secrets())).await.unwrap();
            assert_eq!(secret["type"], "helm.sh/release.v1");
            let record = serde_json::to_value(decoded(&secret)).unwrap();
            assert_eq!(comparable(record), comparable(expected.clone()), "{place}: {name}");
        }
        for expected in &upgrade.objects {
            let name = expected["name"].as_str().unwrap();
            let live = world.map(name).await.unwrap_or_else(|| panic!("{place}: no ConfigMap {name}"));
            for part in ["labels", "annotations"] {
                let expected = replaced(&expected[part], RECORDED, NAMESPACE);
                assert_eq!(live["metadata"][part], expected, "{place}: {part} of {name}");
            }
            assert_eq!(live["data"], expected["data"], "{place}: {name}");
        }
    }
}

/// Returns a name for as long as the tests run.
fn leaked(name: &str) -> &'static str {
    name.to_owned().leak()
}

/// Replaces all records by those that helm left.
async fn inject(
    world: &ReleaseFixture,
    records: &BTreeMap<String, Value>,
    labels: &BTreeMap<String, Map<String, Value>>,
) {
    let list = world.get(&secrets()).await.unwrap();
    for secret in list["items"].as_array().unwrap() {
        world.delete(&format!("{}/{}", secrets(), secret["metadata"]["name"].as_str().unwrap())).await;
    }
    for (name, record) in records {
        let record = replaced(&replaced(record, "<TIME>", "2026-01-02T03:04:05Z"), RECORDED, NAMESPACE);
        let record: chart::record::Record = serde_json::from_value(record).unwrap();
        let secret = record_secret(name, &json!(labels[name]), &encoded(&record));
        world.post(&secrets(), &secret).await;
    }
}

#[tokio::test]
async fn releases_go_the_way_that_helm_goes() {
    let scenarios = scenarios();
    assert_eq!(scenarios.len(), 18);
    let mut failed = Vec::new();
    for scenario in &scenarios {
        if AssertUnwindSafe(scenario.play()).catch_unwind().await.is_err() {
            failed.push(&scenario.name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[tokio::test]
async fn a_release_that_another_wrote_is_taken_over_without_a_revision_if_nothing_differs() {
    let files = [
        (
            "templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v, rev: '{{ .Release.Revision }}'}\n",
        ),
        (
            "templates/hook.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n",
        ),
    ];
    let world = ReleaseFixture::new(&files);
    world.upgraded(&world.helm()).await;
    let path = format!("{}/sh.helm.release.v1.web.v1", secrets());
    let before = world.get(&path).await.unwrap();
    // As the reference operator writes it: with its labels and without our owner.
    let patch = json!({"metadata": {"labels": {"addon-operator.io/owner": null, "moduleChecksum": "0123"}}});
    edit(&world, "secrets", "sh.helm.release.v1.web.v1", &patch).await;
    world.requests();
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    let writes: Vec<String> =
        world.requests().into_iter().filter(|request| !request.starts_with("GET")).collect();
    assert_eq!(writes.len(), 1, "{writes:?}");
    let after = world.get(&path).await.unwrap();
    assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
    assert_eq!(after["data"], before["data"]);
    assert_eq!(names(&helm.list().await.unwrap()), ["web"]);
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
    // Something differs: one revision, and no object is made anew.
    edit(&world, "secrets", "sh.helm.release.v1.web.v1", &patch).await;
    let uid = world.map("a").await.unwrap()["metadata"]["uid"].clone();
    world.write(&[("templates/map.yaml", &files[0].1.replace("k: v", "k: w")), files[1]]);
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Upgraded);
    assert_eq!(world.states().await, ["1 superseded", "2 deployed"]);
    let map = world.map("a").await.unwrap();
    assert_eq!((&map["metadata"]["uid"], &map["data"]), (&uid, &json!({"k": "w", "rev": "2"})));
}

#[tokio::test]
async fn a_release_has_the_mark_of_the_source_that_its_module_comes_from_and_of_no_other() {
    let files =
        [("templates/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n")];
    let world = ReleaseFixture::new(&files);
    let [platform, team] = ["platform", "team"].map(SourceKey::cluster);
    let values = world.values(json!({"k": "one"}));
    let module = world.module();
    let upgrade = async |helm: &Helm, source: Option<&SourceKey>| {
        let run =
            ReleaseRun { module: &module, values: &values, maintenance: false, source, is_recorded: true };
        helm.upgrade_until(run, &Cancellation::never()).await.unwrap().action
    };
    let marks = async || {
        let record = world.get(&format!("{}/sh.helm.release.v1.web.v1", secrets())).await.unwrap();
        let metadata = &record["metadata"];
        let of = |kind: &str| metadata[kind]["addon-operator.io/source"].as_str().map(str::to_owned);
        (of("labels"), of("annotations"))
    };
    let helm = world.helm();
    assert_eq!(upgrade(&helm, Some(&platform)).await, ReleaseAction::Installed);
    let first = marks().await;
    assert_eq!(first.1.as_deref(), Some("ClusterAddonsConfiguration platform"));
    assert!(helm.list().await.unwrap()[0].is_sourced);
    // It changes hands without a revision, in one life of the operator and at the start of another.
    world.requests();
    assert_eq!(upgrade(&helm, Some(&platform)).await, ReleaseAction::Unchanged);
    assert_eq!(world.requests(), Vec::<String>::new());
    assert_eq!(upgrade(&helm, Some(&team)).await, ReleaseAction::Unchanged);
    let second = marks().await;
    assert_eq!(second.1.as_deref(), Some("ClusterAddonsConfiguration team"));
    assert_ne!(first.0, second.0);
    world.requests();
    assert_eq!(upgrade(&helm, Some(&team)).await, ReleaseAction::Unchanged);
    assert_eq!(world.requests(), Vec::<String>::new(), "what we wrote ourselves is no change by others");
    assert_eq!(upgrade(&world.helm(), None).await, ReleaseAction::Unchanged);
    assert_eq!(marks().await, (None, None));
    assert!(!helm.list().await.unwrap()[0].is_sourced);
    assert_eq!(upgrade(&world.helm(), Some(&platform)).await, ReleaseAction::Unchanged);
    assert_eq!(marks().await, first);
    assert_eq!(world.states().await, ["1 deployed"]);
}

#[tokio::test]
async fn what_somebody_upgraded_with_helm_in_between_is_noticed() {
    let files =
        [("templates/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n")];
    let world = ReleaseFixture::new(&files);
    world.upgraded(&world.helm()).await;
    let first = world.get(&format!("{}/sh.helm.release.v1.web.v1", secrets())).await.unwrap();
    // Helm carries our labels on to its own revision, whatever that holds.
    let mut record = decoded(&first);
    record.version = 2;
    record.manifest = record.manifest.replace("k: v", "k: w");
    let mut labels = first["metadata"]["labels"].clone();
    labels["version"] = "2".into();
    let secret = record_secret("sh.helm.release.v1.web.v2", &labels, &encoded(&record));
    world.post(&secrets(), &secret).await;
    let superseded = json!({"metadata": {"labels": {"status": "superseded"}}});
    edit(&world, "secrets", "sh.helm.release.v1.web.v1", &superseded).await;
    edit(&world, "configmaps", "a", &json!({"data": {"k": "w"}})).await;
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Upgraded);
    assert_eq!(world.map("a").await.unwrap()["data"]["k"], "v");
    assert_eq!(world.states().await, ["1 superseded", "2 superseded", "3 deployed"]);
}
