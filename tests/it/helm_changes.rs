//! What others change of the objects of a release, and releases whose objects may not be watched.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::cluster::Discovery;
use apiserver::FaultPlan;
use engine::{
    ApplyMode, Drift, DriftMode, DriftSettings, Event, IgnoreRule, ModuleName, ReleaseAction, UnwatchedKind,
};
use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::support::DEADLINE;
use crate::support::held::HeldRequest;
use crate::support::release::{
    EXTRA, MAP, NAMESPACE, ReleaseFixture, SERVICE, edit, files, secrets, watched, watched_as,
};

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - {name: c, image: i, resources: {limits: {cpu: 1000m, memory: 1024Mi}}, ports: [{containerPort: 80}]}\n";

/// Returns the next thing that is told of the release.
async fn next(events: &mut UnboundedReceiver<Event>) -> Event {
    tokio::time::timeout(DEADLINE, events.recv()).await.unwrap().unwrap()
}

/// Changes the number of the first port of the Service `web`, as `kubectl edit` does.
async fn edit_port(world: &ReleaseFixture) {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/services/web");
    let mut ports = world.get(&path).await.unwrap()["spec"]["ports"].clone();
    ports[0]["port"] = json!(98);
    edit(world, "services", "web", &json!({"spec": {"ports": ports}})).await;
}

fn drifted(drift: Drift) -> Event {
    Event::ReleaseDrifted { module: ModuleName::from("web"), drift }
}

fn changed(object: &str, place: &str) -> Event {
    changed_by(object, place, Some("kubectl-patch"))
}

fn changed_by(object: &str, place: &str, writer: Option<&str>) -> Event {
    let writer = writer.map(str::to_owned);
    drifted(Drift::Changed { object: format!("{NAMESPACE}/{object}"), place: place.to_owned(), writer })
}

fn reads_of(requests: &[String], object: &str) -> usize {
    requests.iter().filter(|request| request.starts_with("GET") && request.ends_with(object)).count()
}

#[tokio::test]
async fn slip_07_only_a_change_of_what_was_rendered_is_told() {
    let world = ReleaseFixture::new(&files());
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    edit(&world, "configmaps", "web-map", &json!({"metadata": {"annotations": {"note": "x"}}})).await;
    edit(&world, "services", "web", &json!({"spec": {"selector": {"app": "other"}}})).await;
    assert_eq!(next(&mut events).await, changed("Service/web", "/spec/selector/app"));
    world.requests();
    // A writer that is known to write nothing of ours costs nothing, however often it writes.
    for number in 0..5 {
        let note = json!({"metadata": {"annotations": {"note": format!("{number}")}}});
        edit(&world, "configmaps", "web-map", &note).await;
    }
    // A field that is removed has no writer.
    edit(&world, "configmaps", "web-extra", &json!({"data": {"a": null}})).await;
    assert_eq!(next(&mut events).await, changed_by("ConfigMap/web-extra", "/data", None));
    assert_eq!(reads_of(&world.requests(), "web-map"), 0);
    // Nothing runs because of it, and the next upgrade brings all back.
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    assert_eq!(world.upgrade(&helm, json!({"k": "two"})).await.unwrap().action, ReleaseAction::Upgraded);
    assert_eq!(world.map("web-extra").await.unwrap()["data"], json!({"a": "b"}));
}

#[tokio::test]
async fn slip_07_a_change_that_is_undone_is_told_to_be_undone() {
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    edit(&world, "configmaps", "web-map", &json!({"data": {"k": "theirs"}})).await;
    assert_eq!(next(&mut events).await, changed("ConfigMap/web-map", "/data/k"));
    edit(&world, "configmaps", "web-map", &json!({"data": {"k": "one"}})).await;
    let restored = Drift::Restored(format!("{NAMESPACE}/ConfigMap/web-map"));
    assert_eq!(next(&mut events).await, drifted(restored));
}

#[tokio::test]
async fn slip_07_what_is_only_written_in_another_way_and_what_controllers_write_is_not_told() {
    let world =
        ReleaseFixture::without_nodes(&[("templates/web.yaml", DEPLOYMENT), ("templates/map.yaml", MAP)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    let deployment = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web");
    let scale = |manager: &str| format!("{deployment}/scale?fieldManager={manager}");
    // The limits are kept as 1 and 1Gi, which is what was rendered.
    let limits = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
    ]}}}});
    let url = format!("{deployment}?fieldManager=kubectl-edit");
    world
        .send(Method::PATCH, &url, &json!({"metadata": {"annotations": {"limits": limits.to_string()}}}))
        .await;
    world.send(Method::PATCH, &scale("kube-controller-manager"), &json!({"spec": {"replicas": 5}})).await;
    edit(&world, "configmaps", "web-map", &json!({"data": {"k": "theirs"}})).await;
    assert_eq!(next(&mut events).await, changed("ConfigMap/web-map", "/data/k"));
}

#[tokio::test]
async fn slip_07_replicas_that_a_person_scales_are_told() {
    let world = ReleaseFixture::without_nodes(&[("templates/web.yaml", DEPLOYMENT)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    let scale = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web/scale?fieldManager=kubectl");
    world.send(Method::PATCH, &scale, &json!({"spec": {"replicas": 7}})).await;
    assert_eq!(next(&mut events).await, changed_by("Deployment/web", "/spec/replicas", Some("kubectl")));
}

#[tokio::test]
async fn a_changed_object_is_put_right_without_a_revision_and_fields_of_others_stay() {
    let world =
        ReleaseFixture::without_nodes(&[("templates/web.yaml", DEPLOYMENT), ("templates/map.yaml", MAP)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let ignore = vec![IgnoreRule {
        kind: "Deployment".into(),
        name: Some("web".into()),
        paths: vec!["/spec/replicas".into()],
    }];
    let mut events = watched_as(&helm, DriftSettings { mode: DriftMode::Enforce, ignore });
    let deployment = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web");
    let scale = format!("{deployment}/scale?fieldManager=kubectl");
    world.send(Method::PATCH, &scale, &json!({"spec": {"replicas": 7}})).await;
    let edit_image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "c", "image": "theirs", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}, "ports": [{"containerPort": 80}]},
    ]}}}});
    edit(&world, "deployments", "web", &edit_image).await;
    let place = "/spec/template/spec/containers/0/image";
    assert_eq!(next(&mut events).await, changed("Deployment/web", place));
    let records = world.states().await;
    helm.mend(&ModuleName::from("web"), &format!("{NAMESPACE}/Deployment/web")).await.unwrap();
    let found = world.get(&deployment).await.unwrap();
    assert_eq!(found.pointer(place).unwrap(), "i");
    assert_eq!(found.pointer("/spec/replicas").unwrap(), 7, "it is left to others");
    assert_eq!(world.states().await, records, "no revision is added");
    // The same change is news again.
    edit(&world, "deployments", "web", &edit_image).await;
    assert_eq!(next(&mut events).await, changed("Deployment/web", place));
}

#[tokio::test]
async fn a_port_whose_number_others_edited_is_put_right_and_never_stops_an_upgrade() {
    for (mode, ports) in [
        (ApplyMode::Client, "[{name: http, port: 80}]"),
        (ApplyMode::Server, "[{name: http, port: 80}]"),
        (ApplyMode::Client, "[{port: 80}]"),
        (ApplyMode::Server, "[{port: 80}]"),
        (ApplyMode::Client, "[{name: http, port: 80}, {name: tls, port: 443}]"),
        (ApplyMode::Server, "[{name: http, port: 80}, {name: tls, port: 443}]"),
    ] {
        let chart = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: web, annotations: {{k: '{{{{ .Values.web.k }}}}'}}}}\nspec: {{selector: {{a: b}}, ports: {ports}}}\n"
        );
        let mut world = ReleaseFixture::without_nodes(&[("templates/web.yaml", &*chart)]);
        world.settings.apply = mode;
        let helm = world.helm();
        world.upgraded(&helm).await;
        let mut events = watched_as(&helm, DriftSettings { mode: DriftMode::Enforce, ignore: Vec::new() });
        let path = format!("/api/v1/namespaces/{NAMESPACE}/services/web");
        let wanted = world.get(&path).await.unwrap()["spec"].clone();
        edit_port(&world).await;
        assert_eq!(next(&mut events).await, changed("Service/web", "/spec/ports/0/port"), "{mode:?} {ports}");
        helm.mend(&ModuleName::from("web"), &format!("{NAMESPACE}/Service/web")).await.unwrap();
        assert_eq!(world.get(&path).await.unwrap()["spec"], wanted, "{mode:?} {ports}");
        // An upgrade does the same.
        edit_port(&world).await;
        world.upgrade(&helm, json!({"k": "two"})).await.unwrap();
        let found = world.get(&path).await.unwrap();
        assert_eq!((&found["spec"], found["metadata"]["annotations"]["k"].as_str()), (&wanted, Some("two")));
        // What the chart takes out goes, whatever its key is now.
        edit_port(&world).await;
        world.write(&[(
            "templates/web.yaml",
            &chart.replace("port: 80", "port: 81, name: new").replace("name: http, ", ""),
        )]);
        world.upgraded(&helm).await;
        let found = world.get(&path).await.unwrap();
        let ports: Vec<i64> = found["spec"]["ports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|port| port["port"].as_i64().unwrap())
            .collect();
        assert_eq!(ports, if ports.len() == 1 { vec![81] } else { vec![81, 443] }, "{mode:?}");
    }
}

#[tokio::test]
async fn the_number_of_a_port_may_be_left_to_others() {
    for mode in [ApplyMode::Client, ApplyMode::Server] {
        let chart = "apiVersion: v1\nkind: Service\nmetadata: {name: web, labels: {own: x}}\nspec: {selector: {a: b}, ports: [{name: http, port: 80}]}\n";
        let mut world = ReleaseFixture::without_nodes(&[("templates/web.yaml", chart)]);
        world.settings.apply = mode;
        let helm = world.helm();
        world.upgraded(&helm).await;
        let ignore =
            vec![IgnoreRule { kind: "Service".into(), name: None, paths: vec!["/spec/ports/0/port".into()] }];
        let mut events = watched_as(&helm, DriftSettings { mode: DriftMode::Enforce, ignore });
        let path = format!("/api/v1/namespaces/{NAMESPACE}/services/web");
        edit_port(&world).await;
        edit(&world, "services", "web", &json!({"metadata": {"labels": {"own": "y"}}})).await;
        assert_eq!(next(&mut events).await, changed("Service/web", "/metadata/labels/own"), "{mode:?}");
        helm.mend(&ModuleName::from("web"), &format!("{NAMESPACE}/Service/web")).await.unwrap();
        let found = world.get(&path).await.unwrap();
        assert_eq!(
            (&found["spec"]["ports"][0]["port"], &found["metadata"]["labels"]["own"]),
            (&json!(98), &json!("x"))
        );
    }
}

#[tokio::test]
async fn a_field_that_is_left_to_others_no_more_is_told_and_a_mend_over_a_newer_write_is_refused() {
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let ignore = vec![IgnoreRule { kind: "ConfigMap".into(), name: None, paths: vec!["/data".into()] }];
    let mut events = watched_as(&helm, DriftSettings { mode: DriftMode::Watch, ignore });
    edit(&world, "configmaps", "web-map", &json!({"data": {"k": "theirs"}})).await;
    edit(
        &world,
        "configmaps",
        "web-map",
        &json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "me"}}}),
    )
    .await;
    let label = "/metadata/labels/app.kubernetes.io~1managed-by";
    assert_eq!(next(&mut events).await, changed("ConfigMap/web-map", label));
    let mut events = watched_as(&helm, DriftSettings { mode: DriftMode::Enforce, ignore: Vec::new() });
    assert_eq!(next(&mut events).await, changed("ConfigMap/web-map", "/data/k"));
    let map = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-map");
    world.server.faults().add(FaultPlan::on(Method::PATCH, &map).fail(409).times(2));
    let object = format!("{NAMESPACE}/ConfigMap/web-map");
    let failure = helm.mend(&ModuleName::from("web"), &object).await.unwrap_err();
    assert!(failure.to_string().contains("the object can't be put right"), "{failure}");
    helm.mend(&ModuleName::from("web"), &object).await.unwrap();
    assert_eq!(world.map("web-map").await.unwrap()["data"], json!({"k": "one"}));
}

#[tokio::test]
async fn slip_07_what_changed_while_the_operator_was_away_is_told_after_a_start() {
    let world = ReleaseFixture::new(&files());
    world.upgraded(&world.helm()).await;
    edit(&world, "configmaps", "web-map", &json!({"data": {"k": "theirs"}})).await;
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    let mut events = watched(&helm);
    assert_eq!(next(&mut events).await, changed("ConfigMap/web-map", "/data/k"));
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_while_its_release_is_changed_is_told_when_that_is_done() {
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP), ("templates/extra.yaml", EXTRA)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    // The first list has come: what is deleted then is told by the watch.
    let extra = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-extra");
    world.delete(&extra).await;
    let gone = drifted(Drift::Absent(format!("{NAMESPACE}/ConfigMap/web-extra")));
    assert_eq!(next(&mut events).await, gone);
    // All objects are written, and the record is not yet.
    let record = format!("{}/sh.helm.release.v1.web.v3", secrets());
    world.upgraded(&helm).await;
    world.server.faults().add(FaultPlan::on(Method::PATCH, &record).delay(Duration::from_secs(20)));
    let disturb = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.delete(&extra).await;
    };
    let (outcome, ()) = tokio::join!(world.upgrade(&helm, json!({"k": "two"})), disturb);
    assert_eq!(outcome.unwrap().revision, 3);
    assert!(world.map("web-extra").await.is_none());
    assert_eq!(next(&mut events).await, gone);
    assert_eq!(world.upgrade(&helm, json!({"k": "two"})).await.unwrap().action, ReleaseAction::Upgraded);
    assert!(world.map("web-extra").await.is_some());
    // Objects whose watch is late only are looked for, and not told.
    world.requests();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(events.try_recv().is_err());
    assert_eq!(reads_of(&world.requests(), "web-extra"), 0);
}

/// Returns whether an event tells that objects of the release are not watched.
fn unwatched(event: &Event) -> bool {
    let Event::ReleaseUnwatched { kinds, .. } = event else { unreachable!("{event:?}") };
    !kinds.is_empty()
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_works_again_is_told_though_it_has_nothing_to_say() {
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let watches = FaultPlan::on(Method::GET, "/api/v1/configmaps?*watch=true*");
    world.server.faults().add(watches.times(3).delay(Duration::from_mins(10)));
    world.server.faults().drop_watches();
    let hour = Duration::from_hours(1);
    for expected in [true, false] {
        let event = tokio::time::timeout(hour, events.recv()).await.unwrap().unwrap();
        assert_eq!(unwatched(&event), expected);
    }
    assert!(tokio::time::timeout(hour, events.recv()).await.is_err(), "it is told once");
}

#[tokio::test(start_paused = true)]
async fn lists_that_work_do_not_hide_that_the_watch_behind_them_never_does() {
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP)]);
    let watches = FaultPlan::on(Method::GET, "*?*watch=true*");
    world.server.faults().add(watches.times(u64::MAX).fail(403));
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    assert!(unwatched(&next(&mut events).await));
    let hour = Duration::from_hours(1);
    assert!(tokio::time::timeout(hour, events.recv()).await.is_err(), "it is told once");
    world.server.faults().clear();
    assert!(!unwatched(&tokio::time::timeout(hour, events.recv()).await.unwrap().unwrap()));
}

/// Refuses what a role in one namespace does not allow.
fn forbid_whole_cluster(world: &ReleaseFixture) {
    for path in ["/api/v1/configmaps", "/api/v1/services"] {
        world.server.faults().add(FaultPlan::on(Method::GET, path).times(u64::MAX).fail(403));
    }
}

#[tokio::test]
async fn slip_08_with_rights_in_one_namespace_a_deleted_object_is_told_at_once() {
    let world = ReleaseFixture::new(&files());
    forbid_whole_cluster(&world);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    world.delete(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-map")).await;
    assert_eq!(next(&mut events).await, drifted(Drift::Absent(format!("{NAMESPACE}/ConfigMap/web-map"))));
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
    // A start lists the namespace once.
    world.delete(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-extra")).await;
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Upgraded);
    assert!(world.map("web-extra").await.is_some());
}

#[tokio::test]
async fn slip_08_where_nothing_may_be_watched_that_is_told_and_the_next_run_finds_what_is_gone() {
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP), ("templates/extra.yaml", EXTRA)]);
    let forbid = || {
        forbid_whole_cluster(&world);
        let lists = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?*");
        world.server.faults().add(FaultPlan::on(Method::GET, &lists).times(u64::MAX).fail(403));
    };
    forbid();
    let reports: Arc<Mutex<Vec<(String, bool)>>> = Arc::default();
    let (discovery, reported) = (Discovery::new(world.client()), Arc::clone(&reports));
    discovery.watch_reports().listen(move |watch, error| {
        reported.lock().unwrap().push((watch.to_owned(), error.is_some()));
    });
    let helm = world.helm_with(discovery);
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    let Event::ReleaseUnwatched { module, kinds } = next(&mut events).await else { unreachable!() };
    assert_eq!(module, ModuleName::from("web"));
    let [UnwatchedKind { kind, .. }] = kinds.as_slice() else { unreachable!("{kinds:?}") };
    assert_eq!(*kind, format!("ConfigMap in {NAMESPACE}"));
    let gone = async |name: &str| {
        world.delete(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")).await;
    };
    gone("web-map").await;
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
    assert!(world.map("web-map").await.is_some());
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    // When the right is there, that is told, too.
    world.server.faults().clear();
    let told = next(&mut events).await;
    assert_eq!(told, Event::ReleaseUnwatched { module: ModuleName::from("web"), kinds: Vec::new() });
    let name = format!("ConfigMap of releases (/api/v1/namespaces/{NAMESPACE}/configmaps)");
    let reports = reports.lock().unwrap().clone();
    assert_eq!(reports.first(), Some(&(name.clone(), true)), "the one of the whole cluster is split");
    assert_eq!(reports.last(), Some(&(name, false)));
    // The first run after a start looks as well.
    forbid();
    gone("web-extra").await;
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Upgraded);
    assert!(world.map("web-extra").await.is_some());
}

#[tokio::test]
async fn f_a16_a_field_that_left_the_chart_leaves_the_object_also_after_a_client_side_apply() {
    let chart = |data: &str| EXTRA.replace("{a: b}", data);
    let world = ReleaseFixture::new(&[("templates/extra.yaml", &chart("{a: b, gone: x}"))]);
    // As `kubectl apply` has made it.
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-extra"}, "data": {"a": "b", "gone": "x"}});
    let mut object = applied.clone();
    object["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": applied.to_string()});
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?fieldManager=kubectl-client-side-apply");
    world.post(&path, &object).await;
    let helm = world.helm();
    world.upgraded(&helm).await;
    world.write(&[("templates/extra.yaml", &chart("{a: b}"))]);
    world.upgraded(&helm).await;
    assert_eq!(world.map("web-extra").await.unwrap()["data"], json!({"a": "b"}));
}

#[tokio::test]
async fn f_a17_an_upgrade_reverts_what_another_manager_changed() {
    let world =
        ReleaseFixture::without_nodes(&[("templates/web.yaml", DEPLOYMENT), ("templates/map.yaml", MAP)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let edit = json!({"spec": {"replicas": 9, "template": {"spec": {"containers": [{"name": "c", "image": "other"}]}}}});
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web");
    let request = http::Request::builder()
        .method(Method::PATCH)
        .uri(format!("{path}?fieldManager=kubectl-set"))
        .header("content-type", "application/strategic-merge-patch+json")
        .body(kube::client::Body::from(edit.to_string().into_bytes()))
        .unwrap();
    assert!(tower::ServiceExt::oneshot(world.server.service(), request).await.unwrap().status().is_success());
    world.upgrade(&helm, json!({"k": "two"})).await.unwrap();
    let spec = world.get(&path).await.unwrap()["spec"].clone();
    assert_eq!(
        (&spec["replicas"], &spec["template"]["spec"]["containers"][0]["image"]),
        (&json!(2), &json!("i"))
    );
}

#[tokio::test]
async fn f_a18_an_upgrade_beside_a_busy_autoscaler_comes_through() {
    let world = ReleaseFixture::without_nodes(&[
        (
            "templates/web.yaml",
            &DEPLOYMENT.replace("  replicas: 2\n", "  paused: {{ eq .Values.web.k \"two\" }}\n"),
        ),
        ("templates/service.yaml", SERVICE),
    ]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web");
    world.server.faults().add(FaultPlan::on(Method::PATCH, &path).times(2).fail(409));
    let scaling = async {
        for number in 0_u32.. {
            let scale = json!({"spec": {"replicas": number % 7}});
            let url = format!("{path}/scale?fieldManager=kube-controller-manager");
            world.send(Method::PATCH, &url, &scale).await;
            tokio::task::yield_now().await;
        }
    };
    let outcome = tokio::select! {
        outcome = world.upgrade(&helm, json!({"k": "two"})) => outcome.unwrap(),
        () = scaling => unreachable!(),
    };
    assert_eq!(outcome.action, ReleaseAction::Upgraded);
    let deployment: Value = world.get(&path).await.unwrap();
    assert_eq!(deployment["spec"]["paused"], true);
    assert_eq!(world.states().await, ["1 superseded", "2 deployed"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_given_up_and_comes_late_does_not_undo_what_a_later_upgrade_wrote() {
    let world = ReleaseFixture::new(&files());
    world.upgraded(&world.helm()).await;
    let is_slow = |request: &Request<Body>| {
        request.method() == Method::PATCH && request.uri().path().ends_with("/configmaps/web-map")
    };
    let (late, client) = HeldRequest::new(&world.server, is_slow);
    let helm = world.helm_through(client.clone(), Discovery::new(client));
    let failure = world.upgrade(&helm, json!({"k": "two"})).await.unwrap_err();
    assert!(failure.to_string().contains("no answer within 60 s"), "{failure}");
    assert_eq!(world.upgrade(&helm, json!({"k": "three"})).await.unwrap().action, ReleaseAction::Upgraded);
    assert_eq!(late.carry_out(&world.server).await, 409);
    assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "three");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_was_given_up_and_comes_late_does_not_take_the_object_that_was_made_since() {
    let world = ReleaseFixture::new(&files());
    world.upgraded(&world.helm()).await;
    let is_slow = |request: &Request<Body>| {
        request.method() == Method::DELETE && request.uri().path().ends_with("/configmaps/web-extra")
    };
    let (late, client) = HeldRequest::new(&world.server, is_slow);
    let helm = world.helm_through(client.clone(), Discovery::new(client));
    world.write(&[("templates/map.yaml", MAP), ("templates/service.yaml", SERVICE)]);
    world.upgrade(&helm, json!({"k": "two"})).await.unwrap_err();
    assert_eq!(world.upgrade(&helm, json!({"k": "three"})).await.unwrap().action, ReleaseAction::Upgraded);
    assert_eq!(world.map("web-extra").await, None);
    world.write(&files());
    assert_eq!(world.upgrade(&helm, json!({"k": "four"})).await.unwrap().action, ReleaseAction::Upgraded);
    assert_eq!(late.carry_out(&world.server).await, 409);
    assert!(world.map("web-extra").await.is_some());
}
