//! Releases against the embedded API server.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiserver::FaultPlan;
use engine::view::Secrets;
use engine::{ModuleName, ReleaseAction, ReleaseName, ValuesInput};
use http::Method;
use kube::Client;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::release::{
    CRD, EXTRA, MAP, NAMESPACE, ReleaseFixture, edit, files, names, noise, record_secret, says, secrets,
    watched,
};

#[tokio::test]
async fn a_release_of_three_objects_costs_few_requests_and_an_unchanged_one_none() {
    let world = ReleaseFixture::new(&files());
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Installed);
    let requests = world.requests();
    assert!(requests.len() <= 10, "{requests:#?}");
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    assert_eq!(world.requests(), [""; 0]);
    // A new operator looks once.
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    assert_eq!(world.states().await, ["1 deployed"]);
    let map = world.map("web-map").await.unwrap();
    assert_eq!(map["metadata"]["labels"]["heritage"], "addon-operator");
    assert_eq!(map["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
    assert_eq!(map["metadata"]["annotations"]["meta.helm.sh/release-name"], "web");
}

#[tokio::test]
async fn an_upgrade_changes_adds_and_deletes_and_the_history_is_cut() {
    let world = ReleaseFixture::new(&files());
    let helm = world.helm();
    world.upgraded(&helm).await;
    let uid = world.map("web-map").await.unwrap()["metadata"]["uid"].clone();
    for number in 0..4 {
        let outcome = world.upgrade(&helm, json!({"k": format!("v{number}")})).await.unwrap();
        assert_eq!(outcome.action, ReleaseAction::Upgraded);
    }
    assert_eq!(world.states().await, ["3 superseded", "4 superseded", "5 deployed"]);
    let map = world.map("web-map").await.unwrap();
    assert_eq!((&map["data"]["k"], &map["metadata"]["uid"]), (&json!("v3"), &uid));
    world.write(&[
        ("templates/map.yaml", MAP),
        ("templates/new.yaml", &EXTRA.replace("web-extra", "web-new")),
    ]);
    assert_eq!(world.upgrade(&helm, json!({"k": "v3"})).await.unwrap().action, ReleaseAction::Upgraded);
    assert!(world.map("web-extra").await.is_none());
    assert!(world.map("web-new").await.is_some());
}

#[tokio::test]
async fn an_object_with_the_keep_policy_stays() {
    let kept = EXTRA.replace("web-extra}", "web-extra, annotations: {helm.sh/resource-policy: keep}}");
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP), ("templates/kept.yaml", &kept)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    world.write(&[("templates/map.yaml", MAP)]);
    world.upgraded(&helm).await;
    assert!(world.map("web-extra").await.is_some());
    helm.uninstall(&ReleaseName::from("web")).await.unwrap();
    assert!(world.map("web-extra").await.is_some());
    assert!(world.map("web-map").await.is_none());
}

#[tokio::test]
async fn f_a14_an_object_that_is_there_already_is_adopted() {
    let world = ReleaseFixture::new(&files());
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-map"}, "data": {"k": "old", "own": "x"}});
    let before = world.post(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &body).await;
    world.upgraded(&world.helm()).await;
    let map = world.map("web-map").await.unwrap();
    assert_eq!(map["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(map["data"], json!({"k": "one", "own": "x"}));
    assert_eq!(map["metadata"]["annotations"]["meta.helm.sh/release-namespace"], NAMESPACE);
}

#[tokio::test]
async fn a_look_up_that_fails_is_no_absence() {
    let world = ReleaseFixture::new(&files());
    world.upgraded(&world.helm()).await;
    world.server.faults().add(FaultPlan::any().times(u64::MAX).fail(500));
    let helm = world.helm();
    assert!(helm.uninstall(&ReleaseName::from("web")).await.is_err());
    assert!(helm.list().await.is_err());
    world.server.faults().clear();
    assert_eq!(names(&helm.list().await.unwrap()), ["web"]);
    assert_eq!(helm.uninstall(&ReleaseName::from("web")).await.unwrap().action, ReleaseAction::Uninstalled);
    assert_eq!(helm.uninstall(&ReleaseName::from("web")).await.unwrap().action, ReleaseAction::Absent);
    assert!(helm.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn f_a13_a_custom_resource_may_come_with_its_definition() {
    let widget = "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    let world = ReleaseFixture::new(&[("templates/w.yaml", widget)]);
    let error = world.upgrade(&world.helm(), json!({})).await.unwrap_err();
    assert!(error.message.contains("Widget w") && error.message.contains("CRD"), "{}", error.message);
    assert!(world.states().await.is_empty());
    world.write(&[("templates/w.yaml", widget), ("templates/crd.yaml", CRD)]);
    world.upgraded(&world.helm()).await;
    let path = format!("/apis/example.test/v1/namespaces/{NAMESPACE}/widgets/w");
    assert_eq!(world.get(&path).await.unwrap()["spec"]["size"], 1);
}

#[tokio::test]
async fn f_a12_a_kind_that_the_cluster_no_longer_has_does_not_block_the_upgrade() {
    let widget = "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    let world = ReleaseFixture::new(&[("templates/w.yaml", widget), ("templates/crd.yaml", CRD)]);
    world.upgraded(&world.helm()).await;
    world.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.test").await;
    world.write(&[("templates/map.yaml", MAP)]);
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Upgraded);
    assert!(world.map("web-map").await.is_some());
    // Nor is a release kept from going by such a kind.
    assert_eq!(
        world.helm().uninstall(&ReleaseName::from("web")).await.unwrap().action,
        ReleaseAction::Uninstalled
    );
}

#[tokio::test]
async fn f_g6_definitions_of_a_module_are_in_force_and_stay() {
    let world = ReleaseFixture::new(&[("crds/widgets.yaml", &format!("---\n# first\n---\n{CRD}"))]);
    let helm = world.helm();
    helm.ensure_crds(&world.module()).await.unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.test";
    let crd = world.get(path).await.unwrap();
    assert_eq!(crd["metadata"]["labels"]["heritage"], "addon-operator");
    world.requests();
    helm.ensure_crds(&world.module()).await.unwrap();
    assert_eq!(world.requests().iter().filter(|request| !request.starts_with("GET")).count(), 0);
    world.write(&[("crds/widgets.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}")]);
    let error = helm.ensure_crds(&world.module()).await.unwrap_err();
    assert!(error.message.contains("crds/widgets.yaml: document 1: only CRDs"), "{}", error.message);
    assert!(world.get(path).await.is_some());
}

#[tokio::test]
async fn definitions_of_charts_in_charts_come_with_the_release_and_are_left_as_they_are() {
    let widget = "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    let files = |crd: &'static str| {
        [
            ("Chart.yaml", "{name: web, version: 0.1.0, apiVersion: v2}"),
            ("charts/db/Chart.yaml", "{name: db, version: 0.1.0, apiVersion: v2}"),
            ("charts/db/crds/widgets.yaml", crd),
            ("charts/db/templates/widget.yaml", widget),
        ]
    };
    let world = ReleaseFixture::new(&files(CRD));
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Installed);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.test";
    let crd = world.get(path).await.unwrap();
    world.requests();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    assert!(world.requests().iter().all(|request| !request.contains("customresourcedefinitions")));
    // Helm changes none that is there, whatever the chart says by then.
    let mut changed = files(CRD).to_vec();
    changed.push(("templates/map.yaml", MAP));
    let text = CRD.replace("size", "length");
    changed[2].1 = &text;
    world.write(&changed);
    world.upgrade(&helm, json!({"k": "two"})).await.unwrap();
    assert_eq!(
        world.get(path).await.unwrap()["metadata"]["resourceVersion"],
        crd["metadata"]["resourceVersion"]
    );
    // It stays when the release goes.
    helm.uninstall(&ReleaseName::from("web")).await.unwrap();
    assert!(world.get(path).await.is_some());
    // What is none is named, and nothing is begun.
    world.write(&files("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"));
    let error = world.upgrade(&helm, json!({})).await.unwrap_err();
    assert!(
        error.message.contains("web/charts/db/crds/widgets.yaml: document 1: only CRDs"),
        "{}",
        error.message
    );
    assert!(world.states().await.is_empty());
}

#[tokio::test]
async fn attempts_that_fail_again_and_again_do_not_fill_the_history() {
    let world = ReleaseFixture::new(&files());
    let helm = world.helm();
    world.upgraded(&helm).await;
    world.server.faults().add(FaultPlan::on(Method::PATCH, "*/configmaps/*").times(u64::MAX).fail(422));
    for _ in 0..6 {
        world.upgrade(&helm, json!({"k": "two"})).await.unwrap_err();
    }
    let states = world.states().await;
    assert_eq!(states, ["1 deployed", "5 failed", "6 failed", "7 failed"]);
    world.server.faults().clear();
    assert_eq!(world.upgrade(&helm, json!({"k": "two"})).await.unwrap().revision, 8);
}

#[tokio::test]
async fn a_record_without_labels_is_stepped_over() {
    let world = ReleaseFixture::new(&files());
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sh.helm.release.v1.web.v1"}});
    world.post(&secrets(), &secret).await;
    world.upgraded(&world.helm()).await;
    assert_eq!(world.states().await, ["2 deployed"]);
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
}

#[tokio::test]
async fn a_conflict_that_is_not_about_a_record_skips_no_revision() {
    let world = ReleaseFixture::new(&files());
    // As the API server says it when it can't count the Secret in a quota.
    world.server.faults().add(FaultPlan::on(Method::POST, &secrets()).fail(409));
    says(&world.upgrade(&world.helm(), json!({})).await.unwrap_err(), &["POST", "this fault was planned"]);
    assert_eq!(world.states().await, Vec::<String>::new());
    world.upgraded(&world.helm()).await;
    assert_eq!(world.states().await, ["1 deployed"]);
}

/// Returns the program's answer to `template`.
fn template(directory: &std::path::Path, args: &[&str]) -> (String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_addon-operator"));
    let output = command.arg("template").args(args).current_dir(directory).env("TZ", "UTC").output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn keys_and_certificates_of_templates_have_the_shape_of_helms() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/chart/tests/golden/render");
    let case = golden.join("048-crypto-shape");
    let args = ["rel", "chart", "--namespace", "ns", "--kube-version", "1.31.2"];
    let (stdout, stderr) = template(&case, &args);
    let expected = std::fs::read_to_string(case.join("expected.yaml")).unwrap();
    assert_eq!(stdout, expected, "{stderr}");
}

#[tokio::test]
async fn f_a20_what_is_refused_is_named_and_the_rest_is_written() {
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP), ("templates/frozen.yaml", EXTRA)]);
    let helm = world.helm();
    world.upgraded(&helm).await;
    world.write(&[("templates/map.yaml", MAP), ("templates/frozen.yaml", &EXTRA.replace("a: b", "a: c"))]);
    let path = "/api/v1/namespaces/default/configmaps/web-extra";
    world.server.faults().add(FaultPlan::on(Method::PATCH, path).fail(422));
    let error = world.upgrade(&helm, json!({"k": "two"})).await.unwrap_err();
    says(&error, &["web/templates/frozen.yaml", "ConfigMap web-extra", "PATCH", path]);
    assert_eq!(world.states().await, ["1 deployed", "2 failed"]);
    assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "two");
}

#[tokio::test]
async fn f_a23_an_object_that_is_rendered_twice_is_named_before_anything_is_touched() {
    let world = ReleaseFixture::new(&[("templates/a.yaml", MAP), ("templates/b.yaml", MAP)]);
    let error = world.upgrade(&world.helm(), json!({})).await.unwrap_err();
    let expected =
        "ConfigMap default/web-map is rendered twice, by web/templates/a.yaml and by web/templates/b.yaml";
    assert!(error.message.contains(expected), "{}", error.message);
    assert!(world.states().await.is_empty());
}

#[tokio::test]
async fn f_a11_a_record_that_fits_no_secret_is_told_before_anything_is_touched() {
    // 36 MB that can't be compressed. A record may have 32 parts of a million bytes.
    let noise = noise(4_800_000);
    let names: Vec<String> = (0..10).map(|number| format!("notes-{number}.txt")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &*noise)).collect();
    files.push(("templates/map.yaml", MAP));
    let world = ReleaseFixture::new(&files);
    let error = world.upgrade(&world.helm(), json!({})).await.unwrap_err();
    assert!(error.message.contains("at most 32000000 are kept"), "{}", error.message);
    assert!(world.states().await.is_empty() && world.map("web-map").await.is_none());
}

#[tokio::test]
async fn f_a8_hooks_run_once_and_leave_one_revision() {
    let hook = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: prepare\n  annotations: {helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-delete-policy: 'before-hook-creation,hook-succeeded'}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}\n";
    let widget = "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    // The nodes of the cluster run the Job.
    let world = ReleaseFixture::new(&[
        ("crds/widgets.yaml", CRD),
        ("templates/map.yaml", MAP),
        ("templates/widget.yaml", widget),
        ("templates/hook.yaml", hook),
    ]);
    let helm = world.helm();
    helm.ensure_crds(&world.module()).await.unwrap();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Installed);
    let mut events = watched(&helm);
    for _ in 0..3 {
        helm.ensure_crds(&world.module()).await.unwrap();
        assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
        assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
    }
    assert_eq!(world.states().await, ["1 deployed"]);
    let job = world.get(&format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs/prepare")).await;
    assert!(job.is_none());
    assert!(events.try_recv().is_err(), "nothing that happened is a reason to run");
}

#[tokio::test(start_paused = true)]
async fn f_a8_hooks_that_wait_run_once_however_long_the_release_idles() {
    let hook = |weight: u32| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: prepare-{weight}\n  annotations: {{helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-weight: '{weight}', helm.sh/hook-delete-policy: hook-succeeded}}\nspec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}}}\n"
        )
    };
    let (first, second) = (hook(1), hook(2));
    let mut world = ReleaseFixture::without_nodes(&[
        ("crds/widgets.yaml", CRD),
        ("templates/map.yaml", MAP),
        ("templates/first.yaml", &first),
        ("templates/second.yaml", &second),
    ]);
    world.timeout = Duration::from_hours(1);
    // Each Job takes ten minutes, and is seen to be made once.
    let made = Arc::new(Mutex::new(Vec::new()));
    let (client, noted) = (Client::new(world.server.service(), NAMESPACE), Arc::clone(&made));
    let kubelet = tokio::spawn(async move {
        let api: kube::Api<k8s_openapi::api::batch::v1::Job> = kube::Api::namespaced(client, NAMESPACE);
        let mut ended = BTreeSet::new();
        loop {
            tokio::time::sleep(Duration::from_mins(10)).await;
            for job in api.list(&ListParams::default()).await.unwrap() {
                if ended.insert(job.metadata.uid.unwrap()) {
                    let name = job.metadata.name.unwrap();
                    noted.lock().unwrap().push(name.clone());
                    let conditions = ["SuccessCriteriaMet", "Complete"]
                        .map(|kind| json!({"type": kind, "status": "True", "reason": "CompletionsReached"}));
                    let noon = "2026-01-01T12:00:00Z";
                    let done = json!({"status": {"conditions": conditions, "startTime": noon, "completionTime": noon}});
                    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(done)).await.unwrap();
                }
            }
        }
    });
    let helm = world.helm();
    helm.ensure_crds(&world.module()).await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Installed);
    assert!(begun.elapsed() >= Duration::from_mins(20), "{:?}", begun.elapsed());
    let mut events = watched(&helm);
    for hour in 0..24 {
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(events.try_recv().is_err(), "after {hour} hours something was a reason to run");
        helm.ensure_crds(&world.module()).await.unwrap();
        assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    }
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
    assert_eq!(world.states().await, ["1 deployed"]);
    assert_eq!(*made.lock().unwrap(), ["prepare-1", "prepare-2"]);
    for name in ["prepare-1", "prepare-2"] {
        let job = world.get(&format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}")).await;
        assert!(job.is_none(), "{name}");
    }
    kubelet.abort();
}

#[tokio::test]
async fn broken_and_strange_records_do_not_keep_a_release_from_converging() {
    let secret = |version: u32, data: &str, labels: Value| {
        record_secret(&format!("sh.helm.release.v1.web.v{version}"), &labels, data)
    };
    let labels = |status: &str| json!({"name": "web", "owner": "helm", "status": status, "version": "x"});
    for history in [
        vec![secret(1, "QQ==", labels("deployed"))],
        vec![secret(1, "QQ==", labels("deployed")), secret(2, "QQ==", labels("deployed"))],
        vec![secret(3, "", labels("uninstalling"))],
        vec![secret(1, "QQ==", labels("pending-rollback"))],
        vec![secret(7, "e30=", labels("nonsense"))],
    ] {
        let world = ReleaseFixture::new(&files());
        for secret in &history {
            world.post(&secrets(), secret).await;
        }
        world.upgraded(&world.helm()).await;
        let states = world.states().await;
        assert_eq!(states.iter().filter(|state| state.ends_with("deployed")).count(), 1, "{states:?}");
        assert!(world.map("web-map").await.is_some());
        assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_can_not_be_seen_is_asked_for_ever_more_seldom() {
    let world = ReleaseFixture::new(&[("templates/crd.yaml", CRD)]);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.test";
    world.server.faults().add(FaultPlan::on(Method::GET, path).times(u64::MAX).fail(503));
    world.upgrade(&world.helm(), json!({})).await.unwrap_err();
    let requests = world.requests();
    let looks = requests.iter().filter(|request| request.starts_with("GET") && request.ends_with(path));
    // Within half a minute; the first come at once, because most definitions are established then.
    let looks = looks.count();
    assert!((10..=30).contains(&looks), "{looks} looks");
}

#[tokio::test]
async fn a_deleted_object_is_told_and_comes_back() {
    let world = ReleaseFixture::new(&files());
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut receiver = watched(&helm);
    world.delete(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-map")).await;
    let event = tokio::time::timeout(Duration::from_secs(5), receiver.recv()).await.unwrap();
    let drift = engine::Drift::Absent("default/ConfigMap/web-map".to_owned());
    assert_eq!(event, Some(engine::Event::ReleaseDrifted { module: ModuleName::from("web"), drift }));
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
    assert!(world.map("web-map").await.is_some());
}

#[tokio::test]
async fn an_object_that_went_while_nobody_watched_comes_back_with_the_first_run() {
    let world = ReleaseFixture::new(&files());
    world.upgraded(&world.helm()).await;
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
    world.delete(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-map")).await;
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
    assert!(world.map("web-map").await.is_some());
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
}

#[tokio::test]
async fn a_difference_shows_neither_data_of_secrets_nor_secret_values_of_before() {
    const CHART: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: web, annotations: {url: 'postgres://u:{{ .Values.web.pw }}@h'}}\ndata: {pw: '{{ .Values.web.pw | b64enc }}'}\n";
    let world = ReleaseFixture::new(&[("templates/secret.yaml", CHART)]);
    let values = |pw: &str| {
        let secret = json!({"pw": pw});
        ValuesInput {
            secret: Arc::new(Secrets::all_of(&[&secret]).into_owned()),
            ..world.values(json!({"pw": pw}))
        }
    };
    let (first, second) = ("first-Passw0rd-A", "second-Passw0rd-B");
    world.helm().upgrade(&world.module(), &values(first), false).await.unwrap();
    edit(&world, "secrets", "web", &json!({"data": {"pw": "dGhlaXJz"}})).await;
    // After a restart nobody knows the first one but the record.
    let helm = world.helm();
    let differences = |shows| {
        let (helm, module, values) = (&helm, world.module(), values(second));
        async move { helm.diff(&module, &values, shows).await.unwrap() }
    };
    let text = differences(false).await;
    for part in ["-    url: postgres://u:******@h", "-  pw: '****** (before)'", "+  pw: '****** (after)'"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    let text = differences(true).await;
    for part in ["-    url: postgres://u:first-Passw0rd-A@h", "-  pw: dGhlaXJz", second] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}
