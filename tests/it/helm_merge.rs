//! What an upgrade writes over what others, or earlier revisions, left in the cluster.

use addon_operator::cluster::Discovery;
use apiserver::FaultPlan;
use engine::{ReleaseAction, TakenFrom, TakenObject};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::release::{CRD, MAP, NAMESPACE, ReleaseFixture, edit};

const WIDGET: &str = "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1, old: 1, color: '{{ .Values.web.k }}'}\n";

fn widget_path() -> String {
    format!("/apis/example.test/v1/namespaces/{NAMESPACE}/widgets/w")
}

/// Changes the custom resource as a person does.
async fn edit_widget(world: &ReleaseFixture, spec: Value) {
    let path = format!("{}?fieldManager=kubectl-edit", widget_path());
    world.send(Method::PATCH, &path, &json!({ "spec": spec })).await;
}

async fn spec(world: &ReleaseFixture) -> Value {
    world.get(&widget_path()).await.unwrap()["spec"].clone()
}

#[tokio::test]
async fn slip_21_an_upgrade_changes_of_a_custom_resource_what_the_chart_changes_and_nothing_else() {
    let world = ReleaseFixture::new(&[("templates/crd.yaml", CRD), ("templates/w.yaml", WIDGET)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    edit_widget(&world, json!({"size": 5, "own": true})).await;
    world.upgrade(&helm, json!({"k": "two"})).await.unwrap();
    assert_eq!(spec(&world).await, json!({"size": 5, "own": true, "old": 1, "color": "two"}));
    // A field that left the chart leaves the object, one that the chart changes is written.
    let changed = WIDGET.replace("size: 1, old: 1", "size: 2");
    world.write(&[("templates/crd.yaml", CRD), ("templates/w.yaml", &changed)]);
    world.upgrade(&helm, json!({"k": "two"})).await.unwrap();
    assert_eq!(spec(&world).await, json!({"size": 2, "own": true, "color": "two"}));
}

#[tokio::test]
async fn slip_21_a_custom_resource_that_was_there_before_becomes_as_the_chart_says() {
    let world = ReleaseFixture::new(&[("crds/widgets.yaml", CRD), ("templates/w.yaml", WIDGET)]);
    let helm = world.helm();
    helm.ensure_crds(&world.module()).await.unwrap();
    let theirs = json!({
        "apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": 9, "own": true},
    });
    world.post(&format!("/apis/example.test/v1/namespaces/{NAMESPACE}/widgets"), &theirs).await;
    world.upgraded(&helm).await;
    assert_eq!(spec(&world).await, json!({"size": 1, "own": true, "old": 1, "color": "one"}));
}

#[tokio::test]
async fn slip_21_what_a_failed_revision_did_not_write_is_written_by_the_next() {
    let map = MAP.replace("data: {", "data: {old: x, ");
    let world = ReleaseFixture::new(&[
        ("templates/crd.yaml", CRD),
        ("templates/w.yaml", WIDGET),
        ("templates/map.yaml", &map),
    ]);
    world.upgraded(&world.helm()).await;
    // The second revision drops fields, and is refused before it comes to write that.
    world.write(&[
        ("templates/crd.yaml", CRD),
        ("templates/w.yaml", &WIDGET.replace("old: 1, ", "")),
        ("templates/map.yaml", MAP),
    ]);
    world.server.faults().add(FaultPlan::on(Method::PATCH, "*/configmaps/*").fail(422));
    world.server.faults().add(FaultPlan::on(Method::PATCH, "*/widgets/*").fail(422));
    world.upgrade(&world.helm(), json!({"k": "two"})).await.unwrap_err();
    assert_eq!(spec(&world).await, json!({"size": 1, "old": 1, "color": "one"}));
    assert_eq!(world.upgrade(&world.helm(), json!({"k": "two"})).await.unwrap().revision, 3);
    assert_eq!(spec(&world).await, json!({"size": 1, "color": "two"}));
    assert_eq!(world.map("web-map").await.unwrap()["data"], json!({"k": "two"}));
}

#[tokio::test]
async fn f_a15_a_field_that_somebody_else_set_fails_no_upgrade_and_stays_if_the_chart_does_not_set_it() {
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    edit(&world, "configmaps", "web-map", &json!({"data": {"theirs": "x"}})).await;
    // As an autoscaler or `kubectl apply --server-side` owns a field.
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-map?fieldManager=other");
    world.send(Method::PATCH, &path, &json!({"data": {"k": "edited"}})).await;
    assert_eq!(world.upgrade(&helm, json!({"k": "two"})).await.unwrap().action, ReleaseAction::Upgraded);
    assert_eq!(world.map("web-map").await.unwrap()["data"], json!({"k": "two", "theirs": "x"}));
}

#[tokio::test]
async fn slip_23_an_object_of_another_release_is_taken_over_and_that_is_told() {
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP)]);
    let marked = |release: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "web-map",
                "labels": {"app.kubernetes.io/managed-by": "Helm"},
                "annotations": {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "other"},
            },
            "data": {"k": "theirs"},
        })
    };
    world.post(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &marked("db")).await;
    let helm = world.helm();
    // Also when the first run that writes it fails behind that.
    world.server.faults().add(FaultPlan::on(Method::PATCH, "*/secrets/*").fail(500));
    world.upgrade(&helm, json!({"k": "one"})).await.unwrap_err();
    let outcome = world.upgrade(&helm, json!({"k": "one"})).await.unwrap();
    let taken = TakenObject {
        object: format!("ConfigMap {NAMESPACE}/web-map"),
        from: TakenFrom::Release("other/db".to_owned()),
    };
    assert_eq!(outcome.taken_over, [taken]);
    let map = world.map("web-map").await.unwrap();
    assert_eq!(map["data"]["k"], "one");
    assert_eq!(map["metadata"]["annotations"]["meta.helm.sh/release-name"], "web");
    // It is told once.
    assert_eq!(world.upgrade(&helm, json!({"k": "two"})).await.unwrap().taken_over, []);
}

/// The operator's account in the manifests of the installation.
const ACCOUNT: &str = "system:serviceaccount:addon-operator:addon-operator";

/// Gives the operator's account a right to definitions of custom resources in the cluster.
async fn grant(world: &ReleaseFixture, name: &str, verb: &str) {
    let access = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": [verb]}]);
    let role = json!({"metadata": {"name": name}, "rules": rules});
    world.post(&format!("{access}/clusterroles"), &role).await;
    let subjects =
        json!([{"kind": "ServiceAccount", "name": "addon-operator", "namespace": "addon-operator"}]);
    let of = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let binding = json!({"metadata": {"name": name}, "roleRef": of, "subjects": subjects});
    world.post(&format!("{access}/clusterrolebindings"), &binding).await;
}

#[tokio::test]
async fn definitions_of_a_module_are_upgraded_with_the_rights_that_the_installation_names() {
    let world = ReleaseFixture::with_rights(&[("crds/widgets.yaml", CRD)]);
    world.post("/api/v1/namespaces", &json!({"metadata": {"name": "addon-operator"}})).await;
    for manifest in crate::support::rights::manifests() {
        let plural = match manifest["kind"].as_str().unwrap() {
            "ClusterRole" => "clusterroles",
            "ClusterRoleBinding" => "clusterrolebindings",
            _ => continue,
        };
        // Not everybody has webhooks, which need such rights, too.
        if manifest["metadata"]["name"] != "addon-operator-webhooks" {
            world.post(&format!("/apis/rbac.authorization.k8s.io/v1/{plural}"), &manifest).await;
        }
    }
    let service = world.server.service().map_request(|request: http::Request<kube::client::Body>| {
        let (mut head, body) = request.into_parts();
        head.headers.insert("impersonate-user", http::HeaderValue::from_static(ACCOUNT));
        http::Request::from_parts(head, body)
    });
    let helm = world.helm_through(Client::new(service, "addon-operator"), Discovery::new(world.client()));
    let advice = "the operator's ServiceAccount needs get, create and patch of customresourcedefinitions, in a ClusterRole";
    let refused = helm.ensure_crds(&world.module()).await.unwrap_err();
    assert_eq!(refused.advice.as_deref(), Some(advice), "{refused:?}");
    grant(&world, "makes", "create").await;
    helm.ensure_crds(&world.module()).await.unwrap();
    world.write(&[("crds/widgets.yaml", &CRD.replace("names: {", "names: {shortNames: [wg], "))]);
    let refused = helm.ensure_crds(&world.module()).await.unwrap_err();
    assert_eq!(refused.advice.as_deref(), Some(advice), "{refused:?}");
    grant(&world, "patches", "patch").await;
    helm.ensure_crds(&world.module()).await.unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.test";
    assert_eq!(world.get(path).await.unwrap()["spec"]["names"]["shortNames"], json!(["wg"]));
}
