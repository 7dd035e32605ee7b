//! Releases under faults: API errors and kills at every single request, outages, hooks that
//! never end, namespaces that go away.
#![expect(clippy::indexing_slicing, clippy::similar_names, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use addon_operator::helm::Helm;
use apiserver::FaultPlan;
use engine::{ApplyMode, Drift, Event, ModuleName, ReleaseAction, ReleaseName};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::support::DEADLINE;
use crate::support::pause::pause;
use crate::support::release::{
    CRD, EXTRA, MAP, NAMESPACE, ReleaseFixture, SERVICE, end_jobs, files, names, record_secret, says, watched,
};

const HOOK: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web-hook\n  annotations: {helm.sh/hook: 'pre-install,post-upgrade,pre-delete', helm.sh/hook-delete-policy: 'before-hook-creation,hook-succeeded'}\ndata: {a: b}\n";
const JOB: &str = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: cleanup, annotations: {helm.sh/hook: pre-delete}}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}\n";

/// What becomes of requests.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// One request is refused with this status.
    Refused(u16),
    /// One request is lost on its way.
    Lost,
    /// One answer is lost.
    Unanswered,
    /// The operator is killed before it sends a request.
    KilledBefore,
    /// The operator is killed before it has the answer to a request.
    KilledAfter,
}

impl Fault {
    /// Arms the fault for the request of this number, counted from 1.
    fn arm(self, world: &ReleaseFixture, request: u64) {
        let one = FaultPlan::any().nth(request);
        let all = FaultPlan::any().nth(request).times(u64::MAX);
        let faults = world.server.faults();
        match self {
            Self::Refused(status) => faults.add(one.fail(status)),
            Self::Lost => faults.add(one.cut()),
            Self::Unanswered => faults.add(one.cut_answer()),
            Self::KilledBefore => faults.add(all.cut()),
            Self::KilledAfter => {
                faults.add(one.cut_answer());
                // Nothing that would be sent after that arrives.
                faults.add(all.cut());
            }
        }
    }
}

/// What the operator is at when the fault comes.
#[derive(Clone, Copy, Debug)]
enum Work {
    Install,
    Upgrade,
    /// An upgrade of a module whose objects are written by server-side apply from then on.
    Move,
    Uninstall,
}

/// The chart before the upgrade, and after it: an object changes, one goes, one comes, and
/// hooks run.
fn charts() -> [Vec<(&'static str, &'static str)>; 2] {
    let with = |name: &'static str, text: &'static str| {
        vec![
            ("templates/map.yaml", MAP),
            ("templates/service.yaml", SERVICE),
            ("templates/hook.yaml", HOOK),
            (name, text),
        ]
    };
    let new = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-new}\ndata: {a: b}\n";
    [with("templates/extra.yaml", EXTRA), with("templates/new.yaml", new)]
}

async fn uid(world: &ReleaseFixture, path: &str) -> Option<Value> {
    world.get(path).await.map(|object| object["metadata"]["uid"].clone())
}

/// Returns the identities of the objects that no step of the work may make anew.
async fn identities(world: &ReleaseFixture) -> BTreeMap<&'static str, Option<Value>> {
    let mut found = BTreeMap::new();
    for name in ["configmaps/web-map", "services/web"] {
        found.insert(name, uid(world, &format!("/api/v1/namespaces/{NAMESPACE}/{name}")).await);
    }
    found
}

async fn carry_out(
    world: &ReleaseFixture,
    helm: &Helm,
    work: Work,
) -> Result<ReleaseAction, engine::Failure> {
    match work {
        Work::Install | Work::Upgrade | Work::Move => {
            world.upgrade(helm, json!({"k": "two"})).await.map(|outcome| outcome.action)
        }
        Work::Uninstall => helm.uninstall(&ReleaseName::from("web")).await.map(|outcome| outcome.action),
    }
}

/// Checks that a kill has left one of the states that the documents name: above all, no object without a record.
async fn check_left(world: &ReleaseFixture, work: Work, place: &str) {
    let states = world.states().await;
    let known: &[&[&str]] = match work {
        Work::Install => &[&[], &["1 pending-install"], &["1 deployed"]],
        Work::Upgrade | Work::Move => &[
            &["1 deployed"],
            &["1 deployed", "2 pending-upgrade"],
            &["1 superseded", "2 pending-upgrade"],
            &["1 superseded", "2 deployed"],
        ],
        Work::Uninstall => &[&["1 deployed"], &["1 uninstalling"], &[]],
    };
    assert!(known.iter().any(|known| *known == states), "{place}: {states:?}");
    let is_there = identities(world).await.values().any(Option::is_some);
    assert!(!states.is_empty() || !is_there, "{place}: objects without a record");
}

/// Does `work` with a fault at the request of this number, then again without; returns whether
/// there was such a request.
async fn struck(work: Work, fault: Fault, request: u64) -> bool {
    let place = format!("{work:?}, {fault:?} at request {request}");
    let [old, new] = charts();
    let mut world = ReleaseFixture::new(&old);
    if !matches!(work, Work::Install) {
        world.upgraded(&world.helm()).await;
    }
    if matches!(work, Work::Upgrade | Work::Move) {
        world.write(&new);
    }
    if matches!(work, Work::Move) {
        world.settings.apply = ApplyMode::Server;
    }
    let before = identities(&world).await;
    let hits = world.server.faults().hits();
    fault.arm(&world, request);
    let outcome = carry_out(&world, &world.helm(), work).await;
    let struck = world.server.faults().hits() > hits;
    world.server.faults().clear();
    if matches!(fault, Fault::KilledBefore | Fault::KilledAfter) {
        check_left(&world, work, &place).await;
    }
    match &outcome {
        Ok(_) if matches!(work, Work::Uninstall) => assert!(world.states().await.is_empty(), "{place}"),
        // What is told to be done is done.
        Ok(_) => assert!(world.states().await.last().unwrap().ends_with(" deployed"), "{place}"),
        Err(failure) => {
            let names = ["GET", "POST", "PUT", "PATCH", "DELETE"];
            assert!(names.iter().any(|name| failure.message.contains(name)), "{place}: {}", failure.message);
        }
    }
    // The next start ends what was begun.
    let again = carry_out(&world, &world.helm(), work).await;
    again.unwrap_or_else(|failure| panic!("{place}: {failure}"));
    let states = world.states().await;
    if matches!(work, Work::Uninstall) {
        assert!(states.is_empty(), "{place}: {states:?}");
        assert!(identities(&world).await.values().all(Option::is_none), "{place}");
        return struck;
    }
    assert_eq!(states.iter().filter(|state| state.ends_with(" deployed")).count(), 1, "{place}: {states:?}");
    assert!(!states.iter().any(|state| state.contains("pending")), "{place}: {states:?}");
    assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "two", "{place}");
    for (name, uid) in identities(&world).await {
        assert!(uid.is_some(), "{place}: {name} is gone");
        assert!(matches!(work, Work::Install) || uid == before[name], "{place}: {name} was made anew");
    }
    if matches!(work, Work::Move) {
        let fields = world.map("web-map").await.unwrap()["metadata"]["managedFields"].clone();
        let own = fields.as_array().unwrap().iter().filter(|entry| entry["manager"] == "helm");
        let own: Vec<&Value> = own.map(|entry| &entry["operation"]).collect();
        assert_eq!(own, ["Apply"], "{place}");
    }
    if matches!(work, Work::Upgrade | Work::Move) {
        assert!(world.map("web-new").await.is_some(), "{place}");
        assert!(world.map("web-extra").await.is_none(), "{place}: what the chart no longer has stays");
    }
    assert_eq!(carry_out(&world, &world.helm(), work).await.unwrap(), ReleaseAction::Unchanged, "{place}");
    struck
}

/// Strikes each request that the work takes, one after the other.
async fn struck_everywhere(work: Work, fault: Fault) {
    const AT_MOST: u64 = 60;
    let mut requests = 0;
    while struck(work, fault, requests + 1).await {
        requests += 1;
        assert!(requests < AT_MOST, "{work:?} takes more requests than expected");
    }
    assert!(requests > 8, "{work:?}, {fault:?}: only {requests} requests were hit");
}

#[tokio::test]
async fn f_a6_an_error_at_any_request_of_an_install_is_told_and_the_next_run_converges() {
    for fault in
        [Fault::Refused(500), Fault::Refused(403), Fault::Refused(409), Fault::Lost, Fault::Unanswered]
    {
        struck_everywhere(Work::Install, fault).await;
    }
}

#[tokio::test]
async fn f_a6_an_error_at_any_request_of_an_upgrade_is_told_and_the_next_run_converges() {
    for fault in
        [Fault::Refused(500), Fault::Refused(403), Fault::Refused(422), Fault::Lost, Fault::Unanswered]
    {
        struck_everywhere(Work::Upgrade, fault).await;
    }
}

#[tokio::test]
async fn f_a6_an_error_at_any_request_of_a_deletion_is_told_and_the_next_run_converges() {
    for fault in [Fault::Refused(500), Fault::Refused(403), Fault::Lost, Fault::Unanswered] {
        struck_everywhere(Work::Uninstall, fault).await;
    }
}

#[tokio::test]
async fn f_a1_an_upgrade_killed_before_or_after_any_request_is_finished_by_the_next_start() {
    struck_everywhere(Work::Upgrade, Fault::KilledBefore).await;
    struck_everywhere(Work::Upgrade, Fault::KilledAfter).await;
}

#[tokio::test]
async fn a_move_to_server_side_apply_is_finished_after_an_error_or_a_kill_at_any_request() {
    for fault in [Fault::Refused(500), Fault::Refused(403), Fault::Lost, Fault::Unanswered] {
        struck_everywhere(Work::Move, fault).await;
    }
    struck_everywhere(Work::Move, Fault::KilledBefore).await;
    struck_everywhere(Work::Move, Fault::KilledAfter).await;
}

#[tokio::test]
async fn f_a2_an_install_killed_before_or_after_any_request_is_finished_by_the_next_start() {
    struck_everywhere(Work::Install, Fault::KilledBefore).await;
    struck_everywhere(Work::Install, Fault::KilledAfter).await;
}

#[tokio::test]
async fn f_a3_a_deletion_killed_before_or_after_any_request_is_finished_by_the_next_start() {
    struck_everywhere(Work::Uninstall, Fault::KilledBefore).await;
    struck_everywhere(Work::Uninstall, Fault::KilledAfter).await;
}

/// Waits until so many requests were hit by faults.
async fn until_hit(world: &ReleaseFixture, hits: u64) {
    let wait = async {
        while world.server.faults().hits() < hits {
            pause().await;
        }
    };
    tokio::time::timeout(DEADLINE, wait).await.unwrap();
}

/// Waits until every kind of the release has an open watch.
async fn until_watched(world: &ReleaseFixture, kinds: usize) {
    let mut open = std::collections::BTreeSet::new();
    let wait = async {
        while open.len() < kinds {
            for request in world.requests() {
                let is_of_objects = !["customresourcedefinitions", "/secrets?"]
                    .iter()
                    .any(|collection| request.contains(collection));
                if request.contains("watch=") && is_of_objects {
                    open.insert(request.split('?').next().unwrap().to_owned());
                }
            }
            pause().await;
        }
    };
    tokio::time::timeout(DEADLINE, wait).await.unwrap();
}

fn absent(name: &str) -> Event {
    let drift = Drift::Absent(format!("{NAMESPACE}/ConfigMap/{name}"));
    Event::ReleaseDrifted { module: ModuleName::from("web"), drift }
}

#[tokio::test]
async fn f_a7_an_outage_makes_no_release_look_changed() {
    let world = ReleaseFixture::new(&files());
    let helm = world.helm();
    world.upgraded(&helm).await;
    world.requests();
    let mut events = watched(&helm);
    until_watched(&world, 2).await;
    world.server.faults().add(FaultPlan::any().times(u64::MAX).fail(503));
    world.server.faults().drop_watches();
    until_hit(&world, 5).await;
    // Nobody could look, so nobody tells that something is gone, and no module is run for it.
    assert!(events.try_recv().is_err());
    assert!(helm.list().await.is_err());
    world.server.faults().clear();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    assert_eq!(world.states().await, ["1 deployed"]);
    assert!(events.try_recv().is_err());
}

#[tokio::test]
async fn f_c1_what_happens_to_a_release_during_an_outage_of_its_watches_is_not_missed() {
    for expires in [false, true] {
        let world = ReleaseFixture::new(&files());
        let helm = world.helm();
        world.upgraded(&helm).await;
        world.requests();
        let mut events = watched(&helm);
        until_watched(&world, 2).await;
        // Lists and watches fail, single objects can be deleted.
        world.server.faults().add(FaultPlan::on(Method::GET, "*configmaps?*").times(u64::MAX).cut());
        world.server.faults().drop_watches();
        until_hit(&world, 1).await;
        world.delete(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-map")).await;
        if expires {
            world.server.faults().expire_revisions();
        }
        world.server.faults().clear();
        let event = tokio::time::timeout(DEADLINE, events.recv()).await.unwrap();
        assert_eq!(event, Some(absent("web-map")), "history lost: {expires}");
        assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
        assert!(world.map("web-map").await.is_some());
        // The watch lives on.
        world.delete(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-extra")).await;
        let event = tokio::time::timeout(DEADLINE, events.recv()).await.unwrap();
        assert_eq!(event, Some(absent("web-extra")), "history lost: {expires}");
    }
}

#[tokio::test]
async fn f_a10_fifty_starts_without_a_change_make_no_revision() {
    let [mut chart, _] = charts();
    chart.push(("crds/widgets.yaml", CRD));
    chart.push((
        "templates/w.yaml",
        "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n",
    ));
    let world = ReleaseFixture::new(&chart);
    let start = async |world: &ReleaseFixture| {
        let helm = world.helm();
        helm.ensure_crds(&world.module()).await.unwrap();
        world.upgraded(&helm).await
    };
    assert_eq!(start(&world).await, ReleaseAction::Installed);
    world.requests();
    for number in 1..=50 {
        assert_eq!(start(&world).await, ReleaseAction::Unchanged, "start {number}");
    }
    let writes: Vec<String> =
        world.requests().into_iter().filter(|request| !request.starts_with("GET")).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert_eq!(world.states().await, ["1 deployed"]);
}

#[tokio::test]
async fn f_a19_a_deletion_whose_hook_never_ends_is_bounded_and_can_be_tried_again_or_passed_by() {
    let mut world =
        ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/job.yaml", JOB)]);
    // There are no nodes: nothing ever runs.
    world.timeout = Duration::from_millis(200);
    let web = ReleaseName::from("web");
    world.upgraded(&world.helm()).await;
    for _ in 0..2 {
        let error = world.helm().uninstall(&web).await.unwrap_err();
        assert!(error.message.contains("pre-delete hook Job cleanup failed"), "{}", error.message);
        assert!(error.message.contains("is not done after"), "{}", error.message);
        // Nothing is deleted before the hook has done its work.
        assert!(world.map("web-map").await.is_some());
        assert_eq!(world.states().await, ["1 uninstalling"]);
    }
    // Tried again where Jobs end, it works; a person can also have it done without hooks.
    for by_label in [false, true] {
        world.timeout = if by_label { Duration::from_millis(200) } else { Duration::from_secs(10) };
        if by_label {
            world.upgraded(&world.helm()).await;
            let patch = json!({"metadata": {"labels": {"addon-operator.io/skip-hooks": "true"}}});
            let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/sh.helm.release.v1.web.v1");
            world.send(Method::PATCH, &path, &patch).await;
        }
        let nodes = async { end_jobs(Client::new(world.server.service(), NAMESPACE), None).await };
        let helm = world.helm();
        let mut done = pin!(helm.uninstall(&web));
        let outcome = if by_label {
            done.await
        } else {
            tokio::select! {
                outcome = &mut done => outcome,
                () = nodes => done.await,
            }
        };
        assert_eq!(outcome.unwrap().action, ReleaseAction::Uninstalled, "by label: {by_label}");
        assert!(world.states().await.is_empty() && world.map("web-map").await.is_none());
    }
}

#[tokio::test]
async fn f_a21_thousands_of_records_are_listed_by_label_in_pages_of_metadata() {
    const RECORDS: usize = 6_000;
    let world = ReleaseFixture::new(&files());
    let collection = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    for number in 0..RECORDS {
        let release = format!("other-{}", number / 10);
        let version = number % 10 + 1;
        let labels =
            json!({"name": release, "owner": "helm", "status": "superseded", "version": version.to_string()});
        let secret = record_secret(&format!("sh.helm.release.v1.{release}.v{version}"), &labels, "QQ==");
        world.post(&collection, &secret).await;
    }
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Installed);
    assert_eq!(world.upgrade(&helm, json!({"k": "two"})).await.unwrap().action, ReleaseAction::Upgraded);
    assert_eq!(names(&helm.list().await.unwrap()), ["web"]);
    let lists: Vec<String> = world
        .requests()
        .into_iter()
        .filter(|request| request.starts_with(&format!("GET {collection}?")))
        .collect();
    // One list of all for the first upgrade; later those of one release, and those that are ours. Of each only the labels.
    assert_eq!(lists.len(), RECORDS / 1_000 + 2, "{lists:#?}");
    for list in lists {
        assert!(list.contains("labelSelector=") && list.contains("limit=1000"), "{list}");
        assert!(list.ends_with(" (metadata)"), "{list}");
    }
}

#[tokio::test]
async fn f_a22_what_never_ends_or_fails_in_a_render_fails_one_release_and_no_other() {
    let world = ReleaseFixture::new(&[]);
    let helm = world.helm();
    let data = |text: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web-map}}\ndata: {{k: {text}}}\n")
    };
    for (text, expected) in [
        (
            "{{ define \"r\" }}{{ include \"r\" . }}{{ end }}{{ include \"r\" . }}",
            "web/templates/map.yaml:4:",
        ),
        ("{{ define \"t\" }}{{ template \"t\" . }}{{ end }}{{ template \"t\" . }}", "web/templates/map.yaml"),
        ("{{ range until 100000000 }}{{ repeat 1000 \"0123456789\" }}{{ end }}", "web/templates/map.yaml:4:"),
        (
            "{{ div 1 0 }}",
            "web/templates/map.yaml:4:13: executing \"web/templates/map.yaml\" at <div 1 0>: error calling div: runtime error: integer divide by zero",
        ),
        ("{{ fail \"no\" }}", "execution error at (web/templates/map.yaml:4:13): no"),
        ("\"unterminated", "\n>    4 | data: {k: \"unterminated}"),
        ("x}\nmetadata: {name: web-map", "web/templates/map.yaml"),
    ] {
        world.write(&[("templates/map.yaml", &data(text))]);
        match world.upgrade(&helm, json!({})).await {
            Ok(outcome) => assert_eq!(outcome.action, ReleaseAction::Installed, "{text}"),
            Err(error) => assert!(error.message.contains(expected), "{text}: {}", error.message),
        }
        assert!(text.contains("metadata") || world.states().await.is_empty(), "{text}");
    }
    // The process and its other renders live.
    world.write(&files());
    world.upgraded(&helm).await;
    assert!(world.states().await.last().unwrap().ends_with(" deployed"));
}

#[tokio::test]
async fn bad_input_is_told_with_template_object_and_request() {
    let secret = "{{ lookup \"v1\" \"Secret\" \"default\" \"s\" | toJson }}";
    let map = MAP.replace("k: '{{ .Values.web.k }}'", &format!("k: '{secret}'"));
    let world = ReleaseFixture::new(&[("templates/map.yaml", &map)]);
    world.server.faults().add(FaultPlan::on(Method::GET, "*/secrets/s").times(u64::MAX).fail(403));
    let error = world.upgrade(&world.helm(), json!({})).await.unwrap_err();
    says(&error, &["web/templates/map.yaml:4:", "lookup", "GET /api/v1/namespaces/default/secrets/s"]);
    assert!(world.states().await.is_empty());
    for (text, expected) in [
        ("apiVersion: v1\nmetadata: {name: a}", "web/templates/x.yaml: an object has no kind (name a)"),
        (
            "apiVersion: v1\nkind: ConfigMap",
            "web/templates/x.yaml: an object has no metadata.name (kind ConfigMap)",
        ),
        (
            "kind: ConfigMap\nmetadata: {name: a}",
            "web/templates/x.yaml: an object has no apiVersion (name a)",
        ),
        ("- a\n- b", "web/templates/x.yaml"),
        ("apiVersion: x.io/v1\nkind: Nope\nmetadata: {name: a}", "web/templates/x.yaml: Nope a: "),
    ] {
        world.write(&[("templates/x.yaml", text)]);
        let error = world.upgrade(&world.helm(), json!({})).await.unwrap_err();
        assert!(error.message.contains(expected), "{text}: {}", error.message);
        assert!(world.states().await.is_empty(), "{text}");
    }
}

#[tokio::test]
async fn immutable_fields_and_admission_are_told_with_object_and_request() {
    let map = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: frozen}}\nimmutable: true\ndata: {{k: {value}}}\n"
        )
    };
    let world = ReleaseFixture::new(&[("templates/frozen.yaml", &map("a"))]);
    world.upgraded(&world.helm()).await;
    world.write(&[("templates/frozen.yaml", &map("b"))]);
    let error = world.upgrade(&world.helm(), json!({})).await.unwrap_err();
    says(
        &error,
        &[
            "web/templates/frozen.yaml",
            "ConfigMap frozen",
            "PATCH",
            "configmaps/frozen",
            "immutable when `immutable` is set",
        ],
    );
    assert_eq!(world.states().await, ["1 deployed", "2 failed"]);
    world.write(&files());
    world.server.faults().add(FaultPlan::on(Method::POST, "*/configmaps").times(u64::MAX).fail(403));
    let error = world.upgrade(&world.helm(), json!({"k": "x"})).await.unwrap_err();
    says(&error, &["web/templates/map.yaml", "ConfigMap web-map", "POST", "ConfigMap web-extra"]);
    assert!(world.get(&format!("/api/v1/namespaces/{NAMESPACE}/services/web")).await.is_some());
    assert_eq!(world.states().await, ["1 deployed", "2 failed", "3 failed"]);
}

#[tokio::test]
async fn f_e6_maintenance_survives_a_restart_and_ends_both_ways() {
    const LABEL: &str = "maintenance.deckhouse.io/no-resource-reconciliation";
    let world = ReleaseFixture::new(&files());
    let value = |text: &str| json!({"k": text});
    world.upgraded(&world.helm()).await;
    let secret = async |version: u32| {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/sh.helm.release.v1.web.v{version}");
        world.get(&path).await.unwrap()["metadata"]["labels"][LABEL].clone()
    };
    assert_eq!(secret(1).await, "false");
    let helm = world.helm();
    // The last revision marks the objects.
    let outcome = world.upgrade_in(&helm, value("one"), true).await.unwrap();
    assert_eq!(outcome.action, ReleaseAction::Upgraded);
    assert_eq!(secret(2).await, "true");
    assert_eq!(world.map("web-map").await.unwrap()["metadata"]["labels"][LABEL], "");
    for helm in [&helm, &world.helm(), &world.helm()] {
        world.requests();
        let outcome = world.upgrade_in(helm, value("two"), true).await.unwrap();
        assert_eq!(outcome.action, ReleaseAction::Unmanaged);
        let requests = world.requests();
        assert!(requests.iter().all(|request| request.starts_with("GET")), "{requests:?}");
    }
    assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "one");
    // And back, after a restart.
    let outcome = world.upgrade_in(&world.helm(), value("two"), false).await.unwrap();
    assert_eq!(outcome.action, ReleaseAction::Upgraded);
    assert_eq!(secret(3).await, "false");
    let map = world.map("web-map").await.unwrap();
    assert_eq!((&map["data"]["k"], map["metadata"]["labels"].get(LABEL)), (&json!("two"), None));
    let outcome = world.upgrade_in(&world.helm(), value("two"), false).await.unwrap();
    assert_eq!(outcome.action, ReleaseAction::Unchanged);
}

#[tokio::test]
async fn f_g2_a_renamed_module_adopts_the_objects_and_the_old_release_leaves_them() {
    for is_upgraded_first in [true, false] {
        let mut world = ReleaseFixture::new(&files());
        let old = ReleaseName::from("web");
        world.upgraded(&world.helm()).await;
        let before = identities(&world).await;
        world.name = "site";
        if is_upgraded_first {
            assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Installed);
            let map = world.map("web-map").await.unwrap();
            assert_eq!(map["metadata"]["annotations"]["meta.helm.sh/release-name"], "site");
        }
        assert_eq!(world.helm().uninstall(&old).await.unwrap().action, ReleaseAction::Uninstalled);
        assert!(world.helm().history("web").await.unwrap().is_empty());
        if is_upgraded_first {
            assert_eq!(identities(&world).await, before, "the old release took the objects along");
        } else {
            assert!(world.map("web-map").await.is_none());
            assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Installed);
        }
        assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
        assert!(world.map("web-map").await.is_some() && world.map("web-extra").await.is_some());
        assert_eq!(names(&world.helm().list().await.unwrap()), ["site"]);
    }
}

#[tokio::test]
async fn f_g3_what_a_chart_no_longer_has_goes_in_all_namespaces_and_kinds_but_for_what_is_kept() {
    let world = ReleaseFixture::new(&[("crds/widgets.yaml", CRD)]);
    for name in ["far", "kept"] {
        world
            .post(
                "/api/v1/namespaces",
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            )
            .await;
    }
    let all = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: far}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: b}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: c}\nrules: []\n---\napiVersion: example.test/v1\nkind: Widget\nmetadata: {name: d, namespace: far}\nspec: {size: 1}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: e, namespace: kept, annotations: {helm.sh/resource-policy: keep}}\n";
    let paths = [
        "/api/v1/namespaces/far/configmaps/a",
        "/api/v1/namespaces/default/serviceaccounts/b",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/c",
        "/apis/example.test/v1/namespaces/far/widgets/d",
    ];
    world.write(&[("crds/widgets.yaml", CRD), ("templates/all.yaml", all), ("templates/map.yaml", MAP)]);
    let helm = world.helm();
    helm.ensure_crds(&world.module()).await.unwrap();
    world.upgraded(&helm).await;
    let own = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}});
    world.post("/api/v1/namespaces/far/configmaps", &own).await;
    for path in paths {
        assert!(world.get(path).await.is_some(), "{path}");
    }
    // Objects go from a file, then files from the chart.
    let (_, rest) = all.split_once("---\n").unwrap();
    world.write(&[("crds/widgets.yaml", CRD), ("templates/all.yaml", rest), ("templates/map.yaml", MAP)]);
    world.upgraded(&world.helm()).await;
    assert!(world.get(paths[0]).await.is_none() && world.get(paths[1]).await.is_some());
    world.write(&[("templates/map.yaml", MAP)]);
    world.upgraded(&world.helm()).await;
    for path in paths {
        assert!(world.get(path).await.is_none(), "{path} stays");
    }
    for path in ["/api/v1/namespaces/kept/configmaps/e", "/api/v1/namespaces/far/configmaps/own"] {
        assert!(world.get(path).await.is_some(), "{path} is gone");
    }
    assert!(world.map("web-map").await.is_some());
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.test";
    assert!(world.get(crd).await.is_some());
}

#[tokio::test]
async fn f_g4_an_upgrade_that_takes_too_long_deletes_nothing() {
    let job = JOB.replace("pre-delete", "pre-upgrade");
    let mut world = ReleaseFixture::without_nodes(&[
        ("templates/map.yaml", MAP),
        ("templates/service.yaml", SERVICE),
        ("templates/job.yaml", &job),
    ]);
    world.timeout = Duration::from_millis(200);
    world.upgraded(&world.helm()).await;
    let before = identities(&world).await;
    for _ in 0..3 {
        world.requests();
        let error = world.upgrade(&world.helm(), json!({"k": "two"})).await.unwrap_err();
        assert!(error.message.contains("is not done after"), "{}", error.message);
        assert_eq!(identities(&world).await, before);
        let deleted: Vec<String> =
            world.requests().into_iter().filter(|request| request.starts_with("DELETE")).collect();
        let is_own = |request: &String| {
            request.contains("/jobs/cleanup") || request.contains("/secrets/sh.helm.release.v1.web.v")
        };
        assert!(deleted.iter().all(is_own), "{deleted:?}");
    }
    let states = world.states().await;
    assert!(
        states.contains(&"1 deployed".to_owned()) && !states.iter().any(|state| state.contains("pending")),
        "{states:?}"
    );
    assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "one");
}

#[tokio::test]
async fn f_g5_a_namespace_that_goes_away_keeps_no_release_from_being_removed() {
    let hook = HOOK.replace("name: web-hook", "name: web-hook\n  namespace: far");
    let far = EXTRA.replace("name: web-extra", "name: web-extra, namespace: far");
    let world = ReleaseFixture::new(&[
        ("templates/map.yaml", MAP),
        ("templates/far.yaml", &far),
        ("templates/hook.yaml", &hook),
    ]);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}, "spec": {"finalizers": ["kubernetes"]}});
    world.post("/api/v1/namespaces", &namespace).await;
    world.upgraded(&world.helm()).await;
    // Something holds the namespace: an object whose controller is gone already.
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.test/held"]}});
    world.post("/api/v1/namespaces/far/configmaps", &held).await;
    world.delete("/api/v1/namespaces/far").await;
    let error = world.upgrade(&world.helm(), json!({"k": "two"})).await.unwrap_err();
    assert!(
        error.message.contains("being terminated") || error.message.contains("not found"),
        "{}",
        error.message
    );
    // The rest of the release is not kept waiting, and the release can go.
    assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "two");
    let outcome = world.helm().uninstall(&ReleaseName::from("web")).await.unwrap();
    assert_eq!(outcome.action, ReleaseAction::Uninstalled);
    assert!(world.states().await.is_empty() && world.map("web-map").await.is_none());
    // A role that went first is told, and is no reason to give up for ever.
    let world = ReleaseFixture::new(&files());
    world.upgraded(&world.helm()).await;
    world.server.faults().add(FaultPlan::on(Method::DELETE, "*/configmaps/*").times(u64::MAX).fail(403));
    let error = world.helm().uninstall(&ReleaseName::from("web")).await.unwrap_err();
    assert!(error.message.contains("DELETE"), "{}", error.message);
    assert_eq!(world.states().await, ["1 uninstalling"]);
    world.server.faults().clear();
    world.helm().uninstall(&ReleaseName::from("web")).await.unwrap();
    assert!(world.states().await.is_empty());
}

#[tokio::test]
async fn f_a9_what_an_upgrade_changes_is_told_by_object_and_path_and_never_by_value() {
    let random = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: r}\ndata: {p: '{{ randAlphaNum 30 }}'}\n";
    let world = ReleaseFixture::new(&[("templates/map.yaml", MAP), ("templates/random.yaml", random)]);
    let upgrade = async || world.upgrade(&world.helm(), json!({"k": "one"})).await.unwrap();
    assert_eq!(upgrade().await.changed, None);
    for _ in 0..3 {
        let outcome = upgrade().await;
        assert_eq!(outcome.action, ReleaseAction::Upgraded);
        assert_eq!(outcome.changed.as_deref(), Some("ConfigMap default/r differs at /data/p"));
    }
}

/// Returns a release of a custom resource whose definition was deleted while it was watched, and what is told of it.
async fn without_its_definition() -> (ReleaseFixture, Helm, UnboundedReceiver<Event>) {
    let widget = "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    let world = ReleaseFixture::new(&[("crds/widgets.yaml", CRD), ("templates/w.yaml", widget)]);
    let helm = world.helm();
    helm.ensure_crds(&world.module()).await.unwrap();
    world.upgraded(&helm).await;
    world.requests();
    let events = watched(&helm);
    until_watched(&world, 1).await;
    world.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.test").await;
    (world, helm, events)
}

async fn is_told_as_gone(mut events: UnboundedReceiver<Event>) {
    let event = tokio::time::timeout(DEADLINE, events.recv()).await.unwrap();
    let drift = Drift::Absent(format!("{NAMESPACE}/Widget/w"));
    assert_eq!(event, Some(Event::ReleaseDrifted { module: ModuleName::from("web"), drift }));
}

#[tokio::test]
async fn f_a13_a_definition_that_goes_and_stays_away_is_told_by_its_objects() {
    let (_world, _helm, events) = without_its_definition().await;
    is_told_as_gone(events).await;
}

#[tokio::test]
async fn f_a13_a_definition_that_goes_and_comes_back_brings_its_objects_back() {
    let (world, helm, events) = without_its_definition().await;
    helm.ensure_crds(&world.module()).await.unwrap();
    is_told_as_gone(events).await;
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
    let path = format!("/apis/example.test/v1/namespaces/{NAMESPACE}/widgets/w");
    assert_eq!(world.get(&path).await.unwrap()["spec"]["size"], 1);
}
