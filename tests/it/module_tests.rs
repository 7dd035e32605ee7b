//! Tests of charts: their order, what is deleted and when, what the record and the answer say, and the command.

use std::collections::BTreeMap;

use addon_operator::cluster::Discovery;
use addon_operator::helm::{Cancellation, Helm};
use chart::record::HookRun;
use engine::{Failure, ReleaseAction, TestReport, TestRequest};
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::sync::oneshot;
use tower::ServiceExt as _;

use crate::support::DEADLINE;
use crate::support::pause::pause;
use crate::support::program::Workspace;
use crate::support::release::{MAP, NAMESPACE, ReleaseFixture, decoded, says, secrets};

/// Returns a test that is a Pod. One whose image is `crash` fails.
fn pod(name: &str, weight: i32, image: &str, hook: &str, policies: &str) -> String {
    let policies = if policies.is_empty() { "before-hook-creation" } else { policies };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: {hook}, helm.sh/hook-weight: '{weight}', helm.sh/hook-delete-policy: '{policies}'}}\n\
         spec: {{restartPolicy: Never, containers: [{{name: main, image: {image}}}]}}\n"
    )
}

/// Returns a client whose Pods have logs.
fn with_logs(world: &ReleaseFixture, log: &'static str) -> Client {
    let server = world.server.clone();
    let network = tower::service_fn(move |request: Request<Body>| {
        let endpoint = server.service();
        async move {
            if request.uri().path().ends_with("/log") {
                let query = request.uri().query().unwrap_or_default();
                assert!(query.contains("container=main") && query.contains("limitBytes="), "{query}");
                return Ok(Response::new(axum::body::Body::from(log)));
            }
            endpoint.oneshot(request).await
        }
    });
    Client::new(network, NAMESPACE)
}

fn helm(world: &ReleaseFixture, log: &'static str) -> Helm {
    world.helm_through(with_logs(world, log), Discovery::new(world.client()))
}

async fn tested(helm: &Helm, request: &TestRequest) -> Result<TestReport, Failure> {
    helm.test("web", request, &Cancellation::never()).await
}

fn all() -> TestRequest {
    TestRequest { logs: true, ..TestRequest::default() }
}

/// Returns how the hooks of the first revision ran, by name.
async fn runs(world: &ReleaseFixture) -> BTreeMap<String, HookRun> {
    let secret = world.get(&format!("{}/sh.helm.release.v1.web.v1", secrets())).await.unwrap();
    assert_eq!(secret["metadata"]["labels"]["status"], "deployed");
    decoded(&secret).hooks.into_iter().map(|hook| (hook.name, hook.last_run)).collect()
}

async fn pod_is_there(world: &ReleaseFixture, name: &str) -> bool {
    world.get(&format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}")).await.is_some()
}

fn phases(report: &TestReport) -> Vec<(&str, &str)> {
    report.tests.iter().map(|test| (test.name.as_str(), test.phase.as_str())).collect()
}

#[tokio::test]
async fn tests_run_by_weight_and_their_logs_are_read_before_their_objects_are_deleted() {
    let (late, early) =
        (pod("late", 5, "i", "test", "hook-succeeded"), pod("early", -5, "i", "test-success", ""));
    let world = ReleaseFixture::new(&[
        ("templates/map.yaml", MAP),
        ("templates/tests/late.yaml", &late),
        ("templates/tests/early.yaml", &early),
    ]);
    let helm = helm(&world, "hello\n");
    world.upgraded(&helm).await;
    let report = tested(&helm, &all()).await.unwrap();
    assert_eq!(phases(&report), [("early", "Succeeded"), ("late", "Succeeded")]);
    assert_eq!((report.revision, report.known, report.failure), (1, 2, None));
    let logs: Vec<(&str, &str)> =
        report.logs.iter().map(|(name, log)| (name.as_str(), log.text.as_str())).collect();
    assert_eq!(logs, [("early/main", "hello\n"), ("late/main", "hello\n")]);
    assert!(pod_is_there(&world, "early").await && !pod_is_there(&world, "late").await);
    let ran = runs(&world).await;
    assert!(ran.values().all(|run| run.phase == "Succeeded" && run.completed_at.0.is_some()), "{ran:?}");
    // A run of the module finds its release as it was left, and so does the next operator.
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
    // What is left of the last suite is no hindrance.
    assert_eq!(tested(&helm, &TestRequest::default()).await.unwrap().logs, BTreeMap::new());
    assert_eq!(world.states().await, ["1 deployed"]);
}

#[tokio::test]
async fn a_test_that_fails_is_named_and_those_behind_it_do_not_run() {
    let files = [
        pod("a", 1, "i", "test", "hook-succeeded"),
        pod("b", 2, "crash", "test", "hook-failed"),
        pod("c", 3, "i", "test", ""),
    ];
    let world = ReleaseFixture::new(&[
        ("templates/map.yaml", MAP),
        ("templates/a.yaml", &files[0]),
        ("templates/b.yaml", &files[1]),
        ("templates/c.yaml", &files[2]),
    ]);
    let helm = helm(&world, "why\n");
    world.upgraded(&helm).await;
    let report = tested(&helm, &all()).await.unwrap();
    assert_eq!(phases(&report), [("a", "Succeeded"), ("b", "Failed"), ("c", "")]);
    assert_eq!(report.failure.as_deref(), Some("test hook Pod b failed: the Pod failed"));
    assert_eq!(report.logs.keys().collect::<Vec<_>>(), ["a/main", "b/main"]);
    for name in ["a", "b", "c"] {
        assert!(!pod_is_there(&world, name).await, "{name}");
    }
    let ran = runs(&world).await;
    assert_eq!(["a", "b", "c"].map(|name| ran[name].phase.as_str()), ["Succeeded", "Failed", ""]);
    // The others can be asked for.
    let chosen = TestRequest { without: vec!["b".to_owned()], ..all() };
    let report = tested(&helm, &chosen).await.unwrap();
    assert_eq!((phases(&report).len(), report.failure, report.known), (2, None, 3));
    assert_eq!(runs(&world).await["b"].phase, "Failed", "what was not run is as it was");
}

#[tokio::test]
async fn what_has_no_tests_is_no_failure_and_what_is_not_there_is_one() {
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP)]);
    let helm = world.helm();
    says(&tested(&helm, &all()).await.unwrap_err(), &["release web is not deployed in namespace default"]);
    world.upgraded(&helm).await;
    let report = tested(&helm, &all()).await.unwrap();
    assert_eq!((report.known, report.tests.len(), report.failure), (0, 0, None));
    let unknown = TestRequest { only: vec!["smoke".to_owned()], ..all() };
    says(&tested(&helm, &unknown).await.unwrap_err(), &["release web has no test smoke: it has none"]);
}

#[tokio::test]
async fn a_test_that_takes_too_long_fails_after_its_timeout() {
    let slow = pod("slow", 0, "i", "test", "");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/slow.yaml", &slow)]);
    let helm = helm(&world, "");
    world.upgraded(&helm).await;
    let request = TestRequest { timeout: Some(std::time::Duration::from_millis(10)), ..all() };
    let report = tested(&helm, &request).await.unwrap();
    assert_eq!(phases(&report), [("slow", "Failed")]);
    assert!(report.failure.unwrap().contains("Pod slow is not done after 0 s"));
}

#[tokio::test]
async fn a_test_whose_object_is_deleted_fails_at_once() {
    let slow = pod("slow", 0, "i", "test", "");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/slow.yaml", &slow)]);
    let helm = helm(&world, "");
    world.upgraded(&helm).await;
    let deleting = async {
        while !pod_is_there(&world, "slow").await {
            tokio::task::yield_now().await;
        }
        world.send(Method::DELETE, &format!("/api/v1/namespaces/{NAMESPACE}/pods/slow"), &json!(null)).await;
    };
    let request = all();
    let (report, ()) = tokio::join!(tested(&helm, &request), deleting);
    let report = report.unwrap();
    assert_eq!(report.failure.as_deref(), Some("test hook Pod slow failed: Pod slow was deleted"));
    assert_eq!(phases(&report), [("slow", "Failed")]);
}

#[test]
fn tests_are_shown_while_they_run_and_end_with_the_command_that_runs_them() {
    let world = Workspace::new();
    world.write("modules/010-web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n");
    world.write("modules/010-web/templates/test.yaml", &pod("never", 0, "fail", "test", ""));
    world.write("modules/values.yaml", "webEnabled: true\n");
    let (running, _) = world.ready();
    let mut command = world.command(&["module", "test", "web"]).spawn().unwrap();
    let begun = std::time::Instant::now();
    let until = |is_shown: bool| loop {
        let (_, text) = world.ask(&["queue", "list"]);
        if text.contains("ModuleTest:tests:web:all") == is_shown {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "{text}");
    };
    until(true);
    for question in [&["status"][..], &["why", "module", "web"]] {
        let (_, text) = world.ask(question);
        assert!(text.contains("ModuleTest"), "{text}");
    }
    let (exit, text) = world.ask(&["module", "test", "web"]);
    assert!(exit == 2 && text.contains("the tests of module web run already"), "{text}");
    command.kill().unwrap();
    command.wait().unwrap();
    until(false);
    assert_eq!(running.stop(), 0);
}

#[tokio::test]
async fn the_end_of_the_operator_ends_a_test_and_the_record_says_so() {
    let slow = pod("slow", 0, "i", "test", "hook-failed");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/slow.yaml", &slow)]);
    let helm = helm(&world, "");
    world.upgraded(&helm).await;
    let (end, ended) = oneshot::channel();
    let (cancellation, request) = (Cancellation::on(ended), all());
    let ending = async {
        while !pod_is_there(&world, "slow").await {
            pause().await;
        }
        end.send(()).unwrap();
    };
    let (outcome, ()) = tokio::join!(helm.test("web", &request, &cancellation), ending);
    let failure = outcome.unwrap_err();
    assert!(failure.is_cancelled(), "{failure}");
    assert_eq!(runs(&world).await["slow"].phase, "Failed");
    assert!(!pod_is_there(&world, "slow").await);
}

#[tokio::test]
async fn a_record_that_others_write_meanwhile_keeps_what_they_wrote() {
    let test = pod("slow", 0, "i", "test", "");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/slow.yaml", &test)]);
    let helm = helm(&world, "");
    world.upgraded(&helm).await;
    let other = async {
        while !pod_is_there(&world, "slow").await {
            pause().await;
        }
        assert_eq!(
            world.upgrade(&world.helm(), json!({"k": "two"})).await.unwrap().action,
            ReleaseAction::Upgraded
        );
        let done = json!({"status": {"phase": "Succeeded"}});
        world.send(Method::PATCH, &format!("/api/v1/namespaces/{NAMESPACE}/pods/slow/status"), &done).await;
    };
    let request = all();
    let (report, ()) = tokio::join!(tested(&helm, &request), other);
    assert_eq!(
        (report.unwrap().revision, world.states().await),
        (1, vec!["1 superseded".to_owned(), "2 deployed".to_owned()])
    );
    let secret = world.get(&format!("{}/sh.helm.release.v1.web.v1", secrets())).await.unwrap();
    assert_eq!(secret["metadata"]["labels"]["status"], "superseded");
    assert_eq!(decoded(&secret).hooks[0].last_run.phase, "Succeeded");
}

#[test]
fn the_command_ends_with_the_code_of_what_came_of_the_tests() {
    let world = Workspace::new();
    let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    for (name, image) in [("good", Some("i")), ("bad", Some("crash")), ("none", None)] {
        let module = format!("modules/010-{name}");
        world.write(&format!("{module}/Chart.yaml"), &chart(name));
        let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
        world.write(&format!("{module}/templates/map.yaml"), &map);
        if let Some(image) = image {
            let test = pod(&format!("{name}-test"), 0, image, "test", "");
            world.write(&format!("{module}/templates/tests/test.yaml"), &test);
        }
    }
    world.write(
        "modules/020-hooks/hooks/h.sh",
        "#!/bin/bash\n[[ $1 == --config ]] && echo '{configVersion: v1, onStartup: 1}'\nexit 0\n",
    );
    world.write(
        "modules/values.yaml",
        "goodEnabled: true\nbadEnabled: true\nnoneEnabled: true\nhooksEnabled: true\n",
    );
    let (running, _) = world.ready();
    for (arguments, code, said) in [
        (&["good"][..], 0, "TEST SUITE:     good-test\n"),
        (&["good"], 0, "Phase:          Succeeded\n"),
        (&["good", "--filter", "!name=good-test"], 0, "none of the 1 tests of module good was chosen"),
        (&["good", "--logs=false", "-o", "json"], 0, "\"phase\":\"Succeeded\""),
        (&["good", "-o", "yaml"], 0, "phase: Succeeded"),
        (&["bad"], 1, "Error: test hook Pod bad-test failed: the Pod failed"),
        (&["bad"], 1, "POD LOGS: bad-test/main"),
        (&["none"], 0, "the chart of module none has no tests"),
        (&["hooks"], 2, "Error: module hooks has no chart, so it has no tests"),
        (&["god"], 2, "did you mean good?"),
        (&["good", "--filter", "name=smoke"], 2, "release good has no test smoke: it has good-test"),
        (&["good", "--timeout", "soon"], 2, "timeout \"soon\" is no duration between 1ms and 24h"),
        (&["good", "--debug-unix-socket", "/nowhere"], 2, "is not exists"),
    ] {
        let (exit, text) = world.ask(&[&["module", "test"], arguments].concat());
        assert!(exit == code && text.contains(said), "{arguments:?}: exit {exit}: {text}");
    }
    assert_eq!(running.stop(), 0);
}
