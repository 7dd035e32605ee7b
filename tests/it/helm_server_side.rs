//! Releases of modules whose objects are written by server-side apply, and what becomes of objects that were written by patches before.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use apiserver::FaultPlan;
use engine::{
    ApplyMode, Drift, DriftMode, DriftSettings, Event, ModuleName, ReleaseAction, ReleaseName, TakenFrom,
    TakenObject,
};
use http::Method;
use serde_json::{Value, json};

use crate::support::DEADLINE;
use crate::support::release::{CRD, NAMESPACE, ReleaseFixture, SERVICE, decoded, edit, secrets, watched_as};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-map, labels: {own: x}}\ndata: {k: '{{ .Values.web.k }}', old: x}\n";

/// Returns a release whose module says that objects are written so.
fn written_by(mode: ApplyMode, files: &[(&str, &str)]) -> ReleaseFixture {
    let mut world = ReleaseFixture::without_nodes(files);
    world.settings.apply = mode;
    world
}

/// Returns how we are named among those who have written an object.
fn own_entries(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let own = entries.iter().filter(|entry| entry["manager"] == "helm");
    own.map(|entry| entry["operation"].as_str().unwrap()).collect()
}

/// Returns the requests that may change something.
fn writes(requests: Vec<String>) -> Vec<String> {
    requests.into_iter().filter(|request| !request.starts_with("GET")).collect()
}

#[tokio::test]
async fn what_leaves_the_chart_goes_and_what_others_have_stays() {
    let world =
        written_by(ApplyMode::Server, &[("templates/map.yaml", MAP), ("templates/service.yaml", SERVICE)]);
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Installed);
    let service = format!("/api/v1/namespaces/{NAMESPACE}/services/web");
    let before = world.get(&service).await.unwrap();
    assert_eq!(own_entries(&before), ["Apply"]);
    edit(
        &world,
        "configmaps",
        "web-map",
        &json!({"data": {"theirs": "x"}, "metadata": {"labels": {"a": "b"}}}),
    )
    .await;
    world.write(&[
        ("templates/map.yaml", &MAP.replace(", old: x", "").replace(", labels: {own: x}", "")),
        ("templates/service.yaml", SERVICE),
    ]);
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
    let map = world.map("web-map").await.unwrap();
    assert_eq!(map["data"], json!({"k": "one", "theirs": "x"}));
    assert_eq!(map["metadata"]["labels"]["a"], "b");
    assert_eq!(map["metadata"]["labels"]["own"], Value::Null);
    assert_eq!(own_entries(&map), ["Apply"]);
    let after = world.get(&service).await.unwrap();
    assert_eq!(before["metadata"], after["metadata"], "what did not change is not written");
    // Nothing to do is nothing done, also after a start.
    world.requests();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    assert_eq!(world.requests(), Vec::<String>::new());
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
    assert_eq!(writes(world.requests()), Vec::<String>::new());
    let record = world.get(&format!("{}/sh.helm.release.v1.web.v2", secrets())).await.unwrap();
    assert_eq!(decoded(&record).apply_method, "ssa");
    // Removed objects are deleted, and so is the release.
    world.write(&[("templates/service.yaml", SERVICE)]);
    world.upgraded(&helm).await;
    assert!(world.map("web-map").await.is_none());
    helm.uninstall(&ReleaseName::from("web")).await.unwrap();
    assert!(world.get(&service).await.is_none());
}

#[tokio::test]
async fn a_field_of_another_writer_is_taken_over_and_that_is_told_once() {
    let world = written_by(ApplyMode::Server, &[("templates/map.yaml", MAP)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    edit(&world, "configmaps", "web-map", &json!({"data": {"k": "theirs", "own": "theirs"}})).await;
    // Others may write in between; that is no reason to fail.
    world.server.faults().add(FaultPlan::on(Method::PATCH, "*/configmaps/*force=true*").fail(409).times(3));
    let outcome = world.upgrade(&helm, json!({"k": "two"})).await.unwrap();
    let from = TakenFrom::Writer { manager: "kubectl-patch".to_owned(), field: ".data.k".to_owned() };
    assert_eq!(outcome.taken_over, [TakenObject { object: format!("ConfigMap {NAMESPACE}/web-map"), from }]);
    let data = json!({"k": "two", "old": "x", "own": "theirs"});
    assert_eq!(world.map("web-map").await.unwrap()["data"], data);
    assert_eq!(world.upgrade(&helm, json!({"k": "three"})).await.unwrap().taken_over, []);
    // What others have as it is rendered is nobody's loss.
    edit(&world, "configmaps", "web-map", &json!({"data": {"k": "four"}})).await;
    assert_eq!(world.upgrade(&helm, json!({"k": "four"})).await.unwrap().taken_over, []);
}

#[tokio::test]
async fn an_object_of_another_release_is_taken_over_and_leaves_it() {
    let world = written_by(ApplyMode::Server, &[("templates/map.yaml", MAP)]);
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "web-map", "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "other"},
        },
    });
    world.post(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &theirs).await;
    let taken = world.upgrade(&world.helm(), json!({"k": "one"})).await.unwrap().taken_over;
    assert_eq!(taken.first().unwrap().from, TakenFrom::Release("other/db".to_owned()));
    let map = world.map("web-map").await.unwrap();
    assert_eq!(map["metadata"]["annotations"]["meta.helm.sh/release-name"], "web");
}

#[tokio::test]
async fn a_release_moves_to_server_side_apply_and_back() {
    let without = |fields: &[&str]| {
        let data = ["a", "b", "c", "d"].into_iter().filter(|field| !fields.contains(field));
        let data: Vec<String> = data.map(|field| format!("{field}: x")).collect();
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web-map}}\ndata: {{{}}}\n",
            data.join(", ")
        )
    };
    let mut world = written_by(ApplyMode::Client, &[("templates/map.yaml", &without(&[]))]);
    world.upgraded(&world.helm()).await;
    edit(&world, "configmaps", "web-map", &json!({"data": {"theirs": "x"}})).await;
    // The way alone is a reason for a revision, which writes the objects.
    world.settings.apply = ApplyMode::Server;
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Upgraded);
    let map = world.map("web-map").await.unwrap();
    assert_eq!(own_entries(&map), ["Apply"]);
    assert_eq!(map["data"], json!({"a": "x", "b": "x", "c": "x", "d": "x", "theirs": "x"}));
    for (mode, left, expected) in [
        (ApplyMode::Server, vec!["a"], json!({"b": "x", "c": "x", "d": "x", "theirs": "x"})),
        // A field may go with the change of the way itself.
        (ApplyMode::Client, vec!["a", "b"], json!({"c": "x", "d": "x", "theirs": "x"})),
        (ApplyMode::Client, vec!["a"], json!({"b": "x", "c": "x", "d": "x", "theirs": "x"})),
        (ApplyMode::Server, vec!["a", "b", "c"], json!({"d": "x", "theirs": "x"})),
        (ApplyMode::Server, vec!["a", "b", "c", "d"], json!({"theirs": "x"})),
    ] {
        world.settings.apply = mode;
        world.write(&[("templates/map.yaml", &without(&left))]);
        assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Upgraded, "{mode:?} {left:?}");
        assert_eq!(world.map("web-map").await.unwrap()["data"], expected, "{mode:?} {left:?}");
        assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged, "{mode:?} {left:?}");
    }
}

#[tokio::test]
async fn a_release_that_helm_wrote_is_taken_over_as_it_is_and_moves_with_its_next_revision() {
    let mut world = written_by(ApplyMode::Client, &[("templates/map.yaml", MAP)]);
    world.upgraded(&world.helm()).await;
    let foreign = json!({"metadata": {"labels": {"addon-operator.io/owner": null, "moduleChecksum": null}}});
    edit(&world, "secrets", "sh.helm.release.v1.web.v1", &foreign).await;
    world.settings.apply = ApplyMode::Server;
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
    assert_eq!(own_entries(&world.map("web-map").await.unwrap()), ["Update"]);
    world.write(&[("templates/map.yaml", &MAP.replace(", old: x", ""))]);
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Upgraded);
    let map = world.map("web-map").await.unwrap();
    assert_eq!((own_entries(&map), &map["data"]), (vec!["Apply"], &json!({"k": "one"})));
}

#[tokio::test]
async fn a_text_of_a_secret_that_leaves_the_chart_goes() {
    let secret =
        |texts: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: web}}\nstringData: {texts}\n");
    let mut world = written_by(ApplyMode::Client, &[("templates/secret.yaml", &secret("{a: x, b: w}"))]);
    world.upgraded(&world.helm()).await;
    let data = async || world.get(&format!("{}/web", secrets())).await.unwrap()["data"].clone();
    assert_eq!(data().await, json!({"a": "eA==", "b": "dw=="}));
    world.settings.apply = ApplyMode::Server;
    world.write(&[("templates/secret.yaml", &secret("{a: x, c: z}"))]);
    world.upgraded(&world.helm()).await;
    assert_eq!(
        world.get(&format!("{}/web", secrets())).await.unwrap()["data"],
        json!({"a": "eA==", "c": "eg=="})
    );
    world.write(&[("templates/secret.yaml", &secret("{c: z}"))]);
    world.upgraded(&world.helm()).await;
    assert_eq!(world.get(&format!("{}/web", secrets())).await.unwrap()["data"], json!({"c": "eg=="}));
}

#[tokio::test]
async fn drift_is_told_and_put_right_and_items_that_others_add_are_none() {
    // A list whose items have keys: each item has its own writer.
    let ports = "type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer}}}";
    let schema = format!(
        "type: object, properties: {{spec: {{type: object, properties: {{size: {{type: integer}}, ports: {{{ports}}}}}}}}}"
    );
    let crd = CRD.replace("type: object, x-kubernetes-preserve-unknown-fields: true", &schema);
    let widget = "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1, ports: [{name: a, port: 1}]}\n";
    let world = written_by(ApplyMode::Server, &[("templates/crd.yaml", &crd), ("templates/w.yaml", widget)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let settings = DriftSettings { mode: DriftMode::Enforce, ignore: Vec::new() };
    let mut events = watched_as(&helm, settings);
    let path = format!("/apis/example.test/v1/namespaces/{NAMESPACE}/widgets/w");
    let edited = format!("{path}?fieldManager=kubectl-edit");
    let with = json!({"spec": {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}});
    world.send(Method::PATCH, &edited, &with).await;
    world.send(Method::PATCH, &edited, &json!({"spec": {"size": 5}})).await;
    let told = tokio::time::timeout(DEADLINE, events.recv()).await.unwrap().unwrap();
    let object = format!("{NAMESPACE}/Widget/w");
    let (place, writer) = ("/spec/size".to_owned(), Some("kubectl-edit".to_owned()));
    let drift = Drift::Changed { object: object.clone(), place, writer };
    assert_eq!(told, Event::ReleaseDrifted { module: ModuleName::from("web"), drift });
    let records = world.states().await;
    // A write that came between is not undone.
    world.server.faults().add(FaultPlan::on(Method::PATCH, &format!("{path}?*force=true")).fail(409));
    helm.mend(&ModuleName::from("web"), &object).await.unwrap_err();
    helm.mend(&ModuleName::from("web"), &object).await.unwrap();
    let found = world.get(&path).await.unwrap();
    assert_eq!(
        found["spec"],
        json!({"size": 1, "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]})
    );
    assert_eq!(own_entries(&found), ["Apply"]);
    assert_eq!(world.states().await, records, "no revision is added");
    // What others added stays when something else changes, and what we had goes.
    world.write(&[
        ("templates/crd.yaml", &crd),
        ("templates/w.yaml", &widget.replace("[{name: a, port: 1}]", "[{name: c, port: 3}]")),
    ]);
    world.upgraded(&helm).await;
    let ports = world.get(&path).await.unwrap()["spec"]["ports"].clone();
    let mut names: Vec<&str> =
        ports.as_array().unwrap().iter().map(|port| port["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["b", "c"], "{ports}");
}

#[tokio::test]
async fn what_server_side_apply_refuses_is_told_with_template_and_object() {
    let wrong = SERVICE.replace("selector:", "selectors: {a: b}, selector:");
    let world = written_by(ApplyMode::Server, &[("templates/service.yaml", &wrong)]);
    let failure = world.upgrade(&world.helm(), json!({"k": "one"})).await.unwrap_err();
    for part in
        ["templates/service.yaml: Service web: PATCH", ".spec.selectors: field not declared in schema"]
    {
        assert!(failure.message.contains(part), "{part} is not in: {}", failure.message);
    }
    assert_eq!(world.states().await, ["1 failed"]);
}

#[tokio::test]
async fn the_difference_shows_what_would_go() {
    let world = written_by(ApplyMode::Server, &[("templates/map.yaml", MAP)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    world.write(&[("templates/map.yaml", &MAP.replace(", old: x", ""))]);
    let values = world.values(json!({"k": "two"}));
    let text = helm.diff(&world.module(), &values, false).await.unwrap();
    assert!(text.contains("-  k: one") && text.contains("+  k: two") && text.contains("-  old: x"), "{text}");
}
