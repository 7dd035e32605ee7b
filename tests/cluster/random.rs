//! Random charts, upgraded again and again while others change the objects: ours beside those of the real `helm`.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fmt::Write as _;

use addon_operator::helm::Helm;
use serde_json::{Map, Value, json};

use super::Cluster;

/// How many releases are compared, and how often each is upgraded.
const RELEASES: u64 = 12;
const ROUNDS: u32 = 5;

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Returns a map with some of these keys.
    fn map(&mut self, keys: &[&str]) -> Map<String, Value> {
        let mut map = Map::new();
        for key in keys {
            if self.below(3) > 0 {
                map.insert((*key).to_owned(), format!("v{}", self.below(3)).into());
            }
        }
        map
    }

    /// Returns a change of a map as a person makes it: some keys set, some removed.
    fn change(&mut self, keys: &[&str]) -> Map<String, Value> {
        let mut change = Map::new();
        for key in keys {
            match self.below(4) {
                0 => change.insert((*key).to_owned(), format!("o{}", self.below(3)).into()),
                1 => change.insert((*key).to_owned(), Value::Null),
                _ => None,
            };
        }
        change
    }
}

/// Returns the templates of one round.
fn templates(random: &mut Random, round: u32) -> Vec<(&'static str, String)> {
    let mut data = random.map(&["a", "b", "c"]);
    data.insert("round".to_owned(), round.to_string().into());
    let labels = json!(random.map(&["x", "y"]));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-map", "labels": labels}, "data": data});
    let env: Vec<Value> = random
        .map(&["A", "B", "C"])
        .into_iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [
                {"name": "c", "image": format!("i{}", random.below(3)), "env": env, "args": ["x", format!("{}", random.below(3))]},
            ]},
        },
    });
    if random.below(2) == 0 {
        spec["replicas"] = random.below(4).into();
    }
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec});
    let widget = json!({
        "apiVersion": "slip.example.test/v1", "kind": "Widget", "metadata": {"name": "web"},
        "spec": {"flat": random.map(&["a", "b", "c"]), "list": [random.below(3), random.below(3)], "round": round},
    });
    // JSON is YAML.
    vec![
        ("templates/map.yaml", map.to_string()),
        ("templates/deployment.yaml", deployment.to_string()),
        ("templates/widget.yaml", widget.to_string()),
    ]
}

/// Returns what others change after a round: the collection, the name, and a merge patch.
fn edits(random: &mut Random) -> Vec<(&'static str, &'static str, Value)> {
    let scaled = random.below(9);
    vec![
        (
            "api/v1/configmaps",
            "web-map",
            json!({"data": random.change(&["a", "b", "d"]), "metadata": {"labels": random.change(&["x", "z"])}}),
        ),
        (
            "apis/apps/v1/deployments",
            "web",
            json!({"spec": {"replicas": scaled, "paused": random.below(2) == 0}}),
        ),
        (
            "apis/slip.example.test/v1/widgets",
            "web",
            json!({"spec": {"flat": random.change(&["a", "b", "d"]), "list": [scaled]}}),
        ),
    ]
}

/// Returns what counts of an object.
fn normal(object: Option<Value>) -> Value {
    let Some(object) = object else { return Value::Null };
    json!({"labels": object["metadata"]["labels"], "data": object["data"], "spec": object["spec"]})
}

impl Cluster {
    async fn edit(&self, collection: &str, name: &str, patch: &Value) {
        let (version, plural) = collection.rsplit_once('/').unwrap();
        let url = format!("/{version}/namespaces/{}/{plural}/{name}?fieldManager=somebody", self.namespace);
        let request = http::Request::patch(url).header("content-type", "application/merge-patch+json");
        let _: Value =
            self.client.request(request.body(patch.to_string().into_bytes()).unwrap()).await.unwrap();
    }

    async fn write_widgets(&self) {
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.slip.example.test"},
            "spec": {
                "group": "slip.example.test", "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        });
        let request = http::Request::post(CRD).header("content-type", "application/json");
        // It may be there from an earlier run.
        let _ = self.client.request::<Value>(request.body(crd.to_string().into_bytes()).unwrap()).await;
        loop {
            let request =
                http::Request::get(format!("{CRD}/widgets.slip.example.test")).body(Vec::new()).unwrap();
            let crd: Value = self.client.request(request).await.unwrap();
            let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
            if conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True") {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Replaces the templates of the chart.
    fn put(&self, templates: &[(&str, String)]) {
        for entry in std::fs::read_dir(self.chart.path().join("templates")).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (name, text) in templates {
            std::fs::write(self.chart.path().join(name), text).unwrap();
        }
    }
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn what_random_upgrades_make_of_random_changes_is_what_helm_makes_of_them() {
    let ours = Cluster::connect("random-ours").await;
    ours.write_widgets().await;
    let mut differences = String::new();
    for seed in 0..RELEASES {
        let (ours, theirs) = (Cluster::connect("random-ours").await, Cluster::connect("random-helm").await);
        let adapter: Helm = ours.adapter_with([].into());
        let mut random = Random(seed);
        let mut history = String::new();
        for round in 0..ROUNDS {
            let templates = templates(&mut random, round);
            for cluster in [&ours, &theirs] {
                cluster.put(&templates);
            }
            let _ = writeln!(history, "  round {round}: {templates:?}");
            ours.upgrade_files(&adapter, u64::from(round)).await;
            let upgrade = ["upgrade", "--install", "web", theirs.chart.path().to_str().unwrap()];
            theirs.helm(&[upgrade.as_slice(), theirs.by_client()].concat());
            let edits = edits(&mut random);
            for (collection, name, patch) in &edits {
                let own = normal(ours.object(collection, name).await);
                let expected = normal(theirs.object(collection, name).await);
                if own != expected {
                    let _ = writeln!(
                        differences,
                        "seed {seed} round {round} {collection}/{name}\n  ours {own}\n  helm {expected}\n{history}"
                    );
                }
                for cluster in [&ours, &theirs] {
                    cluster.edit(collection, name, patch).await;
                }
            }
            let _ = writeln!(history, "  edits: {edits:?}");
        }
        ours.forget().await;
        theirs.forget().await;
    }
    assert!(differences.is_empty(), "{differences}");
}
