//! Chart repositories against what only a real API server has: its roles. What they do beside that are scenarios of `tests/it`.

use addon_operator::app;
use http::{Method, Request};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::charts::{World, alpha};
use crate::support::server::{ok, send, until_asked};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/ops/configmaps";

/// The account of the operator.
const ACCOUNT: &str = "system:serviceaccount:ops:addon-operator";

/// Returns a client that has the rights of the account and no others.
async fn as_account() -> Client {
    let config = Kubeconfig::read_from(std::env::var("KUBECONFIG").unwrap()).unwrap();
    let mut config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    config.auth_info.impersonate = Some(ACCOUNT.to_owned());
    "ops".clone_into(&mut config.default_namespace);
    Client::try_from(config).unwrap()
}

/// Says what the account may do with maps in its namespace.
async fn allow(world: &World, verbs: &[&str]) {
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
    ]);
    let role = json!({"metadata": {"name": "charts"}, "rules": rules});
    let collection = format!("{ROLES}/namespaces/ops/roles");
    let path = format!("{collection}/charts");
    let (status, _) = send(&world.cluster.server, Method::PUT, &path, &role).await;
    if status == 404 {
        ok(&world.cluster.server, Method::POST, &collection, &role).await;
    }
}

/// Binds the account to the roles: it may read everything, and write objects of charts and Events.
async fn bind(world: &World) {
    let account = json!([{"kind": "ServiceAccount", "name": "addon-operator", "namespace": "ops"}]);
    let rules = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["yaho.soer3n.dev"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]);
    let name = "addon-operator-scenario";
    for kind in ["clusterrolebindings", "clusterroles"] {
        send(&world.cluster.server, Method::DELETE, &format!("{ROLES}/{kind}/{name}"), &Value::Null).await;
    }
    let role = json!({"metadata": {"name": name}, "rules": rules});
    ok(&world.cluster.server, Method::POST, &format!("{ROLES}/clusterroles"), &role).await;
    let to =
        |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let binding =
        json!({"metadata": {"name": name}, "roleRef": to("ClusterRole", name), "subjects": account});
    ok(&world.cluster.server, Method::POST, &format!("{ROLES}/clusterrolebindings"), &binding).await;
    let binding =
        json!({"metadata": {"name": "charts"}, "roleRef": to("Role", "charts"), "subjects": account});
    ok(&world.cluster.server, Method::POST, &format!("{ROLES}/namespaces/ops/rolebindings"), &binding).await;
}

/// Waits until the server lets the account create maps, or does not any more: it notices that a little later.
async fn may_create(is_allowed: bool) {
    let client = as_account().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "asked"}}).to_string();
    let may = async || {
        let request = Request::post(format!("{MAPS}?dryRun=All")).header("content-type", "application/json");
        let request = request.body(Body::from(map.clone().into_bytes())).unwrap();
        client.send(request).await.unwrap().status().is_success() == is_allowed
    };
    until_asked("the right", may).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn b10_a_map_that_roles_forbid_is_a_condition_and_is_tried_again() {
    const ALL: [&str; 7] = ["create", "get", "list", "watch", "patch", "update", "delete"];
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    allow(&world, &ALL).await;
    bind(&world).await;
    may_create(true).await;
    let (shutdown, ended) = watch::channel(false);
    let options = world.options();
    let around = world.cluster.around(as_account().await, false, ended, &options);
    let running = tokio::spawn(app::run(around, drop));
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world.synced("Repository", "corp").await;
    allow(&world, &ALL[1..]).await;
    may_create(false).await;
    world.apply("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["*"]})).await;
    let said = world.failed("Chart", "mine", "createConfigmapsFailed").await;
    for part in ["cannot create resource \"configmaps\"", ACCOUNT, "(examples/install)"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(world.maps().await, ["helm-corp-alpha-index"]);
    allow(&world, &ALL).await;
    may_create(true).await;
    world.apply("Chart", "mine", json!({"versions": ["0.1.0"]})).await;
    world.synced("Chart", "mine").await;
    shutdown.send_replace(true);
    running.await.unwrap().unwrap();
    for kind in ["clusterrolebindings", "clusterroles"] {
        let path = format!("{ROLES}/{kind}/addon-operator-scenario");
        ok(&world.cluster.server, Method::DELETE, &path, &Value::Null).await;
    }
}
