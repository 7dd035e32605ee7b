//! Releases that are changed as a `ServiceAccount` of their namespace, which may have less rights than they need.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use addon_operator::cluster::Discovery;
use addon_operator::helm::{Helm, ReleaseTargets, Settings};
use engine::{Failure, ModuleValues, ReleaseOutcome, ReleaseTarget, ValuesInput};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::support::release::ReleaseFixture;
use crate::support::server::{get, ok};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {k: {{ .Values.web.k }}}\n";
const RECORDS: &str = "/api/v1/namespaces/team/secrets";
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/team/roles";

/// A namespace `team`, whose `ServiceAccount` may handle some resources.
struct World {
    release: ReleaseFixture,
}

impl World {
    async fn new(resources: &[&str]) -> Self {
        let world = Self { release: ReleaseFixture::with_rights(&[("templates/map.yaml", MAP)]) };
        let server = &world.release.server;
        ok(server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "team"}})).await;
        ok(server, Method::POST, ROLE, &role(resources)).await;
        let binding = json!({
            "metadata": {"name": "modules"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "modules"},
            "subjects": [{"kind": "ServiceAccount", "name": "addon-operator", "namespace": "team"}],
        });
        ok(server, Method::POST, &ROLE.replace("roles", "rolebindings"), &binding).await;
        world
    }

    async fn grant(&self, resources: &[&str]) {
        ok(&self.release.server, Method::PUT, &format!("{ROLE}/modules"), &role(resources)).await;
    }

    /// Returns an operator that has just been started, as it acts in the namespace.
    fn helm(&self) -> Arc<Helm> {
        let client = Client::new(self.release.server.service(), "ops");
        let settings = Settings {
            namespace: "ops".to_owned(),
            config_map: "addon-operator".to_owned(),
            extra_labels: BTreeMap::new(),
            history_max: 3,
            timeout: Duration::from_secs(5),
        };
        let discovery = Discovery::new(client.clone());
        ReleaseTargets::new(client, discovery, settings).of(&ReleaseTarget::of_namespace("team"))
    }

    async fn upgrade(&self, helm: &Helm, k: &str) -> Result<ReleaseOutcome, Failure> {
        helm.upgrade(&self.release.module(), &values(k), false).await
    }

    /// Returns the state of each revision, and the version of its record.
    async fn records(&self) -> Vec<(String, String)> {
        let list = get(&self.release.server, RECORDS).await.unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let state = |item: &Value| {
            let labels = &item["metadata"]["labels"];
            let state = format!("{} {}", text(&labels["version"]), text(&labels["status"]));
            (state, text(&item["metadata"]["resourceVersion"]))
        };
        list["items"].as_array().unwrap().iter().map(state).collect()
    }

    async fn states(&self) -> Vec<String> {
        self.records().await.into_iter().map(|(state, _)| state).collect()
    }
}

fn values(k: &str) -> ValuesInput {
    ValuesInput {
        global: Arc::new(json!({})),
        global_config: Arc::new(Value::Null),
        module: Some(ModuleValues {
            key: "web".into(),
            values: Arc::new(json!({ "k": k })),
            config: Arc::new(Value::Null),
        }),
        secret: Arc::default(),
        enabled_modules: None,
    }
}

fn role(resources: &[&str]) -> Value {
    json!({"metadata": {"name": "modules"}, "rules": [{"apiGroups": [""], "resources": resources, "verbs": ["*"]}]})
}

#[tokio::test]
async fn a_chart_of_a_namespace_renders_to_no_more_than_the_operator_can_hold() {
    let world = World::new(&["secrets", "configmaps"]).await;
    // Eight times as much is allowed to those of the operator.
    let large = format!("{MAP}{{{{ range 100000 }}}}# {}\n{{{{ end }}}}", "x".repeat(60));
    world.release.write(&[("templates/map.yaml", &large)]);
    let failure = world.upgrade(&world.helm(), "one").await.unwrap_err().to_string();
    assert!(failure.contains("templates/map.yaml: the file renders to more than 4194304 bytes"), "{failure}");
    assert!(world.records().await.is_empty());
    let slow = format!("{MAP}{{{{ range 100000 }}}}{{{{ $_ := htpasswd \"a\" \"b\" }}}}{{{{ end }}}}");
    world.release.write(&[("templates/map.yaml", &slow)]);
    let failure = world.upgrade(&world.helm(), "one").await.unwrap_err().to_string();
    assert!(failure.contains("the render takes more than 50000000 steps"), "{failure}");
}

#[tokio::test]
async fn a_guest_that_fails_as_before_writes_nothing_until_something_changes() {
    let world = World::new(&["secrets"]).await;
    let helm = world.helm();
    // What it may not read is not begun: there is no record.
    let failure = world.upgrade(&helm, "one").await.unwrap_err();
    for helm in [&helm, &helm, &world.helm()] {
        assert_eq!(world.upgrade(helm, "one").await.unwrap_err(), failure);
        assert!(world.records().await.is_empty());
    }
    world.grant(&["secrets", "configmaps"]).await;
    assert_eq!(world.upgrade(&helm, "two").await.unwrap().revision, 1);
    let map = get(&world.release.server, "/api/v1/namespaces/team/configmaps/web").await.unwrap();
    assert_eq!(map["data"]["k"], "two");
    assert_eq!(world.upgrade(&helm, "two").await.unwrap().action, engine::ReleaseAction::Unchanged);
    // Deployed once, it fails again, and goes on from there.
    world.grant(&["secrets"]).await;
    for _ in 0..3 {
        world.upgrade(&helm, "three").await.unwrap_err();
        assert_eq!(world.states().await, ["1 deployed", "2 failed"]);
    }
    let records = world.records().await;
    for helm in [&helm, &world.helm()] {
        world.upgrade(helm, "three").await.unwrap_err();
        assert_eq!(world.records().await, records, "neither a revision nor a write");
    }
    world.grant(&["secrets", "configmaps"]).await;
    assert_eq!(world.upgrade(&world.helm(), "three").await.unwrap().revision, 2);
    assert_eq!(world.states().await, ["1 superseded", "2 deployed"]);
}

#[tokio::test]
async fn a_guest_applies_on_the_server_in_its_own_name() {
    let mut world = World::new(&["secrets"]).await;
    world.release.settings.apply = engine::ApplyMode::Server;
    let failure = world.upgrade(&world.helm(), "one").await.unwrap_err();
    assert!(failure.to_string().contains("system:serviceaccount:team:addon-operator"), "{failure}");
    world.grant(&["secrets", "configmaps"]).await;
    assert_eq!(world.upgrade(&world.helm(), "one").await.unwrap().revision, 1);
    let map = get(&world.release.server, "/api/v1/namespaces/team/configmaps/web").await.unwrap();
    let entries = map["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!((&entries[0]["manager"], &entries[0]["operation"]), (&json!("helm"), &json!("Apply")));
}

#[tokio::test]
async fn a_refusal_names_the_account_whose_right_is_missing() {
    let account = "needs a Role for ServiceAccount team/addon-operator";
    let world = World::new(&["secrets"]).await;
    let failure = world.upgrade(&world.helm(), "one").await.unwrap_err();
    assert!(failure.advice.as_deref().unwrap_or_default().contains(account), "{failure:?}");
    let world = World::new(&["secrets", "configmaps"]).await;
    let helm = world.helm();
    world.upgrade(&helm, "one").await.unwrap();
    // The template of the credentials names what the account may not read.
    let template = world
        .release
        .file("bind.yaml", "credential: [{name: A, valueFrom: {serviceRef: {name: a, jsonpath: .b}}}]");
    let module = world.release.module();
    let run = addon_operator::helm::CredentialsRun {
        module: &module,
        template: Some(&template),
        values: &values("one"),
        revision: 1,
    };
    let failure = helm.write_credentials(run).await.unwrap_err();
    assert!(failure.advice.as_deref().unwrap_or_default().contains(account), "{failure:?}");
    // What has nothing to do with rights says nothing of them, and nobody sees where the operator keeps bundles.
    for (text, says) in [
        ("{{ fail \"no\" }}", "does not render"),
        ("credential: [{name: A, valueFrom: {other: {}}}]", "bind.yaml: credential[0]"),
    ] {
        let template = world.release.file("bind.yaml", text);
        let run = addon_operator::helm::CredentialsRun { template: Some(&template), ..run };
        let failure = helm.write_credentials(run).await.unwrap_err();
        assert!(failure.to_string().contains(says) && failure.advice.is_none(), "{failure:?}");
        assert!(!failure.to_string().contains(&template), "{failure}");
    }
}
