//! Webhooks: what the API server is told, and which hook answers which review.

use std::sync::Arc;
use std::time::Duration;

use engine::hook::AdmissionKind;
use engine::hook::response::{AdmissionResponse, ConversionResponse};
use engine::hook::spec::FailurePolicy;
use engine::snapshot::{Item, Key};
use engine::{
    Command, CommandId, Config, ElectionConfig, ElectionMode, Event, Failure, FailureKind, HookOutput,
    Notice, RefusalReason, ReviewId, WebhookCertificate, WebhookClient, WebhookConfig,
};
use serde_json::{Value, json};

use crate::build::{Files, config, configures, files, reread};
use crate::world::World;

/// The configuration of a hook with a validating webhook.
pub(crate) const VALIDATES: &str = "kubernetesValidating: [{name: pods.web.example.com, timeoutSeconds: 5, rules: [{apiGroups: [''], \
    apiVersions: [v1], resources: [pods], operations: [CREATE]}]}]";
pub(crate) const GOOD: &str = "pods.web.example.com";
pub(crate) const PATH: &str = "/validate/pods.web.example.com";

/// The configuration of a hook that converts in both directions, in two steps.
pub(crate) const CONVERTS: &str = "kubernetesCustomResourceConversion: [{name: up, crdName: tabs.example.com, conversions: \
    [{fromVersion: v1alpha1, toVersion: v1beta1}, {fromVersion: v1beta1, toVersion: v1}]}]";

pub(crate) fn webhooks() -> Config {
    let webhooks = WebhookConfig {
        name: "ours".to_owned(),
        client: WebhookClient::Service("hooks".to_owned()),
        failure_policy: FailurePolicy::Fail,
        concurrency: 2,
        waiting: 3,
    };
    Config { namespace: "ops".to_owned(), webhooks: Some(webhooks), ..Config::default() }
}

fn world(files: &Files) -> World {
    World::with_config(files, webhooks())
}

fn web() -> Files {
    files().module(10, "web").hook("check.sh", VALIDATES)
}

pub(crate) fn review(id: u64, path: &str) -> Event {
    let request =
        json!({"uid": format!("u{id}"), "operation": "CREATE", "object": {"metadata": {"name": "x"}}});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    requested(id, path, review)
}

fn requested(id: u64, path: &str, review: Value) -> Event {
    let (id, review) = (ReviewId::new(id), Arc::new(review));
    Event::ReviewRequested { id, webhook: path.to_owned(), review, timeout: None }
}

pub(crate) fn conversion(id: u64, desired: &str, objects: &[Value]) -> Event {
    let request = json!({"uid": format!("u{id}"), "desiredAPIVersion": desired, "objects": objects});
    let review =
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request});
    requested(id, "/convert/tabs.example.com", review)
}

pub(crate) fn tab(name: &str, version: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "n", "uid": name});
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Tab", "metadata": metadata})
}

pub(crate) fn says(allowed: bool) -> HookOutput {
    let response =
        AdmissionResponse { allowed, message: "because".to_owned(), ..AdmissionResponse::default() };
    HookOutput { admission: Some(Box::new(response)), ..HookOutput::default() }
}

pub(crate) fn converted(objects: &[Value]) -> HookOutput {
    let response = ConversionResponse { objects: objects.to_vec(), ..ConversionResponse::default() };
    HookOutput { conversion: Some(Box::new(response)), ..HookOutput::default() }
}

impl World {
    /// Returns what was answered to a review, and forgets it.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, RefusalReason> {
        let place = self.answers_to_reviews.iter().position(|(known, _)| known.number() == id);
        let (_, outcome) = self.answers_to_reviews.remove(place.unwrap());
        outcome.map(|review| review["response"].clone()).map_err(|refusal| refusal.reason)
    }

    /// Runs until something is registered, and no further. Returns whether that comes.
    fn registers(&mut self) -> bool {
        let (told, begin) = (self.registrations.len(), self.later(0));
        (1..10_000).any(|passed| {
            self.run_until(begin + passed);
            self.registrations.len() > told
        })
    }

    /// Returns the names of the validating webhooks that the API server knows.
    pub(crate) fn known(&self) -> Vec<String> {
        let known = self.known_webhooks(AdmissionKind::Validating);
        known.iter().map(|webhook| webhook["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the failure policies of the validating webhooks that the API server knows.
    pub(crate) fn policies(&self) -> Vec<String> {
        let known = self.known_webhooks(AdmissionKind::Validating);
        known.iter().map(|webhook| webhook["failurePolicy"].as_str().unwrap().to_owned()).collect()
    }
}

/// Returns a certificate that is valid for so many days.
pub(crate) fn certificate(ca_bundle: &str, days: u64) -> WebhookCertificate {
    WebhookCertificate { ca_bundle: ca_bundle.into(), valid_for: Duration::from_hours(24 * days) }
}

pub(crate) fn tour() {
    let mut world = world(&web()).hook("web/check.sh", Ok(says(true))).settled();
    world.after(1, review(1, PATH));
    world.send_in(1, review(2, PATH));
    world.send_in(2, Event::ReviewAbandoned { id: ReviewId::new(2) });
    world.after(3, Event::WebhookCertificateRenewed { certificate: certificate("bmV3", 100) });
    world.after(1, Event::WebhookCertificateKept { outcome: Ok(()) });
}

#[test]
fn who_has_no_webhooks_pays_nothing() {
    let mut world = World::new(&web());
    let trace = world.run();
    assert!(!trace.contains("webhooks") && !trace.contains("register"), "{trace}");
    world.after(1, review(1, PATH));
    assert_eq!(world.answer(1), Err(RefusalReason::Unknown));
}

#[test]
fn f_f2_a_webhook_that_does_not_answer_holds_up_nobody_until_the_operator_is_ready() {
    let late = web().module(20, "late").hook("slow.sh", "beforeHelm: 1");
    let mut world = world(&late).takes("late/slow.sh", 1_000);
    world.run_until(120);
    assert_eq!(world.policies(), ["Ignore"]);
    assert!(world.registrations.last().unwrap().kept.is_empty(), "its module has run");
    world.run();
    assert_eq!(world.policies(), ["Fail"]);
    let registration = world.registrations.last().unwrap();
    let webhook = &registration.validating.as_ref().unwrap()["webhooks"][0];
    assert_eq!(webhook["name"], "pods.web.example.com");
    let service = json!({"namespace": "ops", "name": "hooks", "path": PATH, "port": 443});
    assert_eq!(webhook["clientConfig"], json!({"service": service, "caBundle": "Y2E="}));
    let excluded = json!([{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "ops"]}]);
    assert_eq!(webhook["namespaceSelector"]["matchExpressions"], excluded);
    assert_eq!(registration.mutating, None);
}

#[test]
fn the_api_server_is_told_all_that_a_binding_says_and_the_defaults_of_the_rest() {
    let says_all = "kubernetesValidating: [{name: all.web.example.com, timeoutSeconds: 7, failurePolicy: Ignore, sideEffects: NoneOnDryRun, \
        labelSelector: {matchLabels: {app: web}}, namespace: {labelSelector: {matchExpressions: [{key: team, operator: In, values: [shop]}]}}, \
        matchConditions: [{name: later, expression: 'false'}], \
        rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments/scale], operations: [UPDATE, DELETE], scope: Namespaced}]}]";
    let says_little = "kubernetesMutating: [{name: little.web.example.com, rules: [{apiGroups: [''], apiVersions: ['*'], \
        resources: [pods], operations: ['*']}]}]";
    let files = files().module(10, "web").hook("all.sh", says_all).hook("little.sh", says_little);
    let world = world(&files).settled();
    let client = |path: &str| {
        let service = json!({"namespace": "ops", "name": "hooks", "path": path, "port": 443});
        json!({"service": service, "caBundle": "Y2E="})
    };
    let outside =
        json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "ops"]});
    let told = world.registrations.last().unwrap();
    let labels = json!({"app.kubernetes.io/managed-by": "addon-operator"});
    assert_eq!(
        told.validating,
        Some(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "ours", "labels": labels},
            "webhooks": [{
                "name": "all.web.example.com", "clientConfig": client("/validate/all.web.example.com"),
                "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE", "DELETE"],
                    "resources": ["deployments/scale"], "scope": "Namespaced"}],
                "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "sideEffects": "NoneOnDryRun", "timeoutSeconds": 7,
                "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["shop"]}, outside]},
                "objectSelector": {"matchLabels": {"app": "web"}},
                "matchConditions": [{"name": "later", "expression": "false"}],
                "admissionReviewVersions": ["v1", "v1beta1"],
            }],
        }))
    );
    assert_eq!(
        told.mutating.as_ref().unwrap()["webhooks"],
        json!([{
            "name": "little.web.example.com", "clientConfig": client("/mutate/little.web.example.com"),
            "rules": [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["pods"], "scope": "*"}],
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "sideEffects": "None", "timeoutSeconds": 10,
            "namespaceSelector": {"matchExpressions": [outside]}, "objectSelector": {},
            "reinvocationPolicy": "Never", "admissionReviewVersions": ["v1", "v1beta1"],
        }])
    );
}

#[test]
fn f_f1_at_an_orderly_end_failures_are_ignored_before_anything_else_ends() {
    let mut world = world(&web()).settled();
    assert_eq!(world.policies(), ["Fail"]);
    let trace = world.after(1, Event::ShutdownRequested);
    let (registered, exit) = (trace.find("register").unwrap(), trace.find("exit").unwrap());
    assert!(registered < exit && world.policies() == ["Ignore"], "{trace}");
}

#[test]
fn f_f5_what_the_api_server_refuses_is_told_again_and_the_start_goes_on() {
    let mut world = world(&web());
    let refused = || Err(Failure::new(FailureKind::Cluster, "the API server is tired"));
    world.registering.extend([refused(), refused()]);
    world.run_until(1_000);
    assert!(world.view().converge.first_done);
    world.run();
    assert_eq!(world.policies(), ["Fail"]);
    let sweeps: Vec<bool> = world.registrations.iter().map(|told| told.sweep.is_some()).collect();
    // The first two are refused. What is left over is looked for once.
    assert_eq!(sweeps, [true, true, true]);
}

#[test]
fn webhooks_follow_modules_and_go_when_nobody_wants_them() {
    let mut world = world(&web()).settled();
    let calm = world.registrations.len();
    world.after(1, Event::Commanded { id: CommandId::new(1), command: Command::Converge });
    assert_eq!(world.registrations.len(), calm, "nothing changed");
    world.after(1, config(200, &[("webEnabled", "false")]));
    assert_eq!(world.registrations.last().unwrap().validating, None);
    world.after(1, review(1, PATH));
    assert_eq!(world.answer(1), Err(RefusalReason::Unknown));
    world.after(1, config(201, &[("webEnabled", "true")]));
    assert_eq!(world.policies(), ["Fail"]);
    let other = files().module(10, "web").hook("check.sh", &VALIDATES.replace("pods.web", "others.web"));
    world.after(1, reread(&other));
    let told = world.registrations.last().unwrap().validating.clone().unwrap();
    assert_eq!(told["webhooks"][0]["name"], "others.web.example.com");
}

#[test]
fn another_certificate_is_told_at_once() {
    let mut world = world(&web()).settled();
    world.after(1, Event::WebhookCertificateRenewed { certificate: certificate("bmV3", 100) });
    let told = world.registrations.last().unwrap().validating.clone().unwrap();
    assert_eq!(told["webhooks"][0]["clientConfig"]["caBundle"], "bmV3");
}

#[test]
fn names_are_completed_and_of_two_equal_ones_the_first_is_served() {
    let short = "kubernetesMutating: [{name: addLabels, failurePolicy: Ignore, reinvocationPolicy: IfNeeded, \
                 includeSystemNamespaces: true}]";
    let files = web()
        .hook("twin.sh", VALIDATES)
        .hook("short.sh", short)
        .module(20, "late")
        .hook("other.sh", "kubernetesMutating: [{name: other.late.example.com}]")
        .global_hook("g.sh", &format!("{{{short}}}"));
    let world = world(&files).settled();
    let told = world.registrations.last().unwrap();
    let names = |object: &Option<Value>| -> Vec<String> {
        let list = object.as_ref().unwrap()["webhooks"].as_array().unwrap().clone();
        list.iter().map(|webhook| webhook["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&told.validating), ["pods.web.example.com"]);
    assert_eq!(
        names(&told.mutating),
        ["add-labels.global.addon-operator.io", "add-labels.web.addon-operator.io", "other.late.example.com"]
    );
    let webhook = &told.mutating.as_ref().unwrap()["webhooks"][0];
    assert_eq!(webhook["reinvocationPolicy"], "IfNeeded");
    assert_eq!(webhook["namespaceSelector"], json!({}));
    let twice = |notice: &engine::Notice| matches!(notice, engine::Notice::Warned { message, .. } if message.contains("of hook web/twin.sh is not served"));
    assert_eq!(world.noticed(twice), 1, "other hooks that come are no reason to say it again");
}

#[test]
fn a_review_is_answered_by_its_hook_beside_the_queues() {
    let mut world = world(&web().hook("slow.sh", "{beforeHelm: 1}"))
        .hook("web/check.sh", Ok(says(true)))
        .hook("web/check.sh", Ok(says(false)))
        .settled();
    world.after(1, review(1, PATH));
    assert_eq!(world.answer(1), Ok(json!({"uid": "u1", "allowed": true})));
    // The queue is busy.
    let mut world = world.takes("web/slow.sh", 60_000);
    world.send_in(1, Event::Commanded { id: CommandId::new(1), command: Command::Converge });
    world.send_in(100, review(2, PATH));
    world.run_for(1_000);
    let denied = json!({"uid": "u2", "allowed": false, "status": {"code": 403, "message": "because"}});
    assert_eq!(world.answer(2), Ok(denied));
}

#[test]
fn a_hook_that_fails_or_says_nothing_refuses_and_quotes_nothing() {
    let mut world = world(&web())
        .hook("web/check.sh", Err(crate::world::failure("the password is hunter2")))
        .hook("web/check.sh", Ok(HookOutput::default()))
        .settled();
    world.after(1, review(1, PATH));
    let failed = world.answer(1).unwrap();
    assert_eq!((&failed["allowed"], &failed["status"]["code"]), (&json!(false), &json!(403)));
    let message = failed["status"]["message"].as_str().unwrap();
    assert!(message.starts_with("Hook failed") && !message.contains("hunter2"), "{message}");
    world.after(1, review(2, PATH));
    assert_eq!(world.answer(2).unwrap()["status"]["code"], 500);
}

/// An operator that waits for another one, which holds the Lease and dies.
fn standby(files: &Files) -> World {
    let (key, lease) = held_lease();
    World::with_config(files, standing_by(webhooks())).holds("Lease", key, lease)
}

/// Returns the configuration of an operator that waits for another one.
pub(crate) fn standing_by(config: Config) -> Config {
    let seconds = Duration::from_secs;
    let election = ElectionConfig {
        mode: ElectionMode::Standby,
        lease: "leader".to_owned(),
        identity: "b".to_owned(),
        lease_duration: seconds(35),
        renew_deadline: seconds(30),
        retry_period: seconds(10),
    };
    Config { election: Some(election), ..config }
}

/// Returns the Lease of that other one.
pub(crate) fn held_lease() -> (Key, Item) {
    let spec =
        json!({"holderIdentity": "a", "leaseDurationSeconds": 35, "acquireTime": "t", "renewTime": "t"});
    let lease = json!({"metadata": {"resourceVersion": "1"}, "spec": spec}).to_string().into_bytes();
    (Key::new("ops", "leader"), Item::filtered(None, lease.into()))
}

#[test]
fn f_h1_a_standby_answers_reviews_and_nothing_but_the_answer_takes_effect_until_it_leads() {
    let output = || HookOutput { admission: says(true).admission, ..configures("/web/x", &json!(2)) };
    let files = web().hook("convert.sh", CONVERTS);
    let mut world = standby(&files)
        .hook("web/check.sh", Ok(output()))
        .hook("web/check.sh", Ok(output()))
        .hook("web/convert.sh", Ok(converted(&[tab("a", "v1")])));
    world.run_until(3_000);
    world.send_in(1, review(1, PATH));
    world.send_in(2, conversion(2, "example.com/v1", &[tab("a", "v1beta1")]));
    let trace = world.run_for(1_000);
    assert_eq!(world.answer(1), Ok(json!({"uid": "u1", "allowed": true})));
    assert_eq!(world.answer(2).unwrap()["convertedObjects"], json!([tab("a", "v1")]));
    assert!(trace.contains("run hook web/check.sh") && !trace.contains("save"), "{trace}");
    assert!(world.registrations.is_empty(), "only the leader tells the API server of webhooks");
    world.run_for(60_000);
    assert_eq!(world.policies(), ["Fail"]);
    world.send_in(1, review(3, PATH));
    let trace = world.run_for(1_000);
    assert!(trace.contains("save web"), "{trace}");
}

#[test]
fn a_standby_refuses_reviews_whose_hook_would_see_snapshots_that_it_does_not_have() {
    let sees = VALIDATES.replace("timeoutSeconds", "includeSnapshotsFrom: [pods], timeoutSeconds");
    let files = files()
        .module(10, "web")
        .hook("check.sh", &format!("{{kubernetes: [{{name: pods, kind: Pod}}], {sees}}}"));
    let mut world = standby(&files).hook("web/check.sh", Ok(says(true))).hook("web/check.sh", Ok(says(true)));
    world.run_until(3_000);
    world.send_in(1, review(1, PATH));
    let trace = world.run_for(1_000);
    assert_eq!(world.answer(1), Err(RefusalReason::Busy), "{trace}");
    world.run_for(60_000);
    world.send_in(1, review(2, PATH));
    world.run_for(1_000);
    assert_eq!(world.answer(2), Ok(json!({"uid": "u2", "allowed": true})));
}

#[test]
fn a_review_waits_for_snapshots_of_a_hook_whose_bindings_have_changed() {
    let sees = VALIDATES.replace("timeoutSeconds", "includeSnapshotsFrom: [pods], timeoutSeconds");
    let seeing = |kind: &str| {
        let slow = files().module(5, "slow").hook("wait.sh", "beforeHelm: 1");
        let check = format!("{{kubernetes: [{{name: pods, kind: {kind}}}], {sees}}}");
        slow.module(10, "web").hook("check.sh", &check)
    };
    let mut world = world(&seeing("Pod")).settled().takes("slow/wait.sh", 2_000);
    world = world.hook("web/check.sh", Ok(says(true))).hook("web/check.sh", Ok(says(true)));
    // The run of its module has to wait.
    world.send_in(1, Event::Commanded { id: CommandId::new(1), command: Command::Converge });
    world.send_in(100, reread(&seeing("Node")));
    world.send_in(200, review(1, PATH));
    let trace = world.run_for(1_000);
    assert!(world.answers_to_reviews.is_empty(), "it would see that there are no objects: {trace}");
    world.run_for(3_000);
    assert_eq!(world.answer(1), Ok(json!({"uid": "u1", "allowed": true})));
}

#[test]
fn what_is_no_review_is_refused() {
    let mut world = world(&web()).settled();
    world.after(1, requested(1, PATH, json!({"kind": "AdmissionReview"})));
    assert_eq!(world.answer(1), Err(RefusalReason::Malformed));
    world.after(1, review(2, "/validate/nobody.example.com"));
    assert_eq!(world.answer(2), Err(RefusalReason::Unknown));
}

#[test]
fn f_f4_reviews_end_in_the_order_of_their_deadlines_and_none_waits_beyond() {
    let mut world = world(&web()).takes("web/check.sh", 3_000).settled();
    let start = world.now;
    for id in 1..=6 {
        world.send_in(1, review(id, PATH));
    }
    world.run_for(2_000);
    // Two run, three wait, and nobody waits for a sixth.
    assert_eq!(world.answer(6), Err(RefusalReason::Busy));
    assert!(world.answers_to_reviews.is_empty());
    world.run_for(600_000);
    let late: Vec<u64> = world
        .answers_to_reviews
        .iter()
        .filter(|(_, outcome)| {
            outcome.as_ref().is_err_and(|refusal| refusal.reason == RefusalReason::Expired)
        })
        .map(|(id, _)| id.number())
        .collect();
    assert_eq!(late, [5, 3, 4], "those that wait first, then those that run");
    assert!(world.now.since(start) < Duration::from_secs(6));
}

#[test]
fn f_f4_two_hundred_reviews_at_once_end_in_the_order_of_their_deadlines_and_no_more_run_than_may() {
    const MOST: usize = 4;
    let mut config = webhooks();
    if let Some(webhooks) = &mut config.webhooks {
        (webhooks.concurrency, webhooks.waiting) = (MOST, 1_000);
    }
    let mut world = World::with_config(&web(), config);
    for _ in 0..200 {
        world = world.hook("web/check.sh", Ok(says(true)));
    }
    let mut world = world.takes("web/check.sh", 10).settled();
    // Each has a deadline of its own, and they come in no order.
    let patience = |id: u64| Duration::from_millis(2_000 + (id * 73 % 200) * 10);
    for id in 0..200 {
        let Event::ReviewRequested { id, webhook, review, .. } = review(id, PATH) else { unreachable!() };
        let timeout = Some(patience(id.number()));
        world.send_in(1, Event::ReviewRequested { id, webhook, review, timeout });
    }
    let trace = world.run();
    let (mut running, mut most) = (0_usize, 0);
    for line in trace.lines() {
        running += usize::from(line.contains("run hook web/check.sh"));
        running -= usize::from(line.contains("> hook #"));
        most = most.max(running);
    }
    assert_eq!((most, running), (MOST, 0), "{trace}");
    let ended = &world.answers_to_reviews;
    assert!(ended.iter().all(|(_, outcome)| outcome.is_ok()), "{ended:?}");
    // The first ones found nobody before them.
    let order: Vec<Duration> = ended.iter().skip(MOST).map(|(id, _)| patience(id.number())).collect();
    assert!(order.len() == 200 - MOST && order.is_sorted(), "{order:?}");
}

#[test]
fn a_review_that_nobody_waits_for_ends_its_process() {
    let mut world = world(&web()).takes("web/check.sh", 3_000).settled();
    world.send_in(1, review(1, PATH));
    world.send_in(100, Event::ReviewAbandoned { id: ReviewId::new(1) });
    let trace = world.run();
    assert!(trace.contains("cancel"), "{trace}");
    assert!(world.answers_to_reviews.is_empty());
}

#[test]
fn what_a_hook_writes_beside_takes_effect_but_not_for_a_dry_run() {
    let output = || HookOutput { admission: says(true).admission, ..configures("/web/x", &json!(2)) };
    let mut world =
        world(&web()).hook("web/check.sh", Ok(output())).hook("web/check.sh", Ok(output())).settled();
    let mut dry = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
    dry["request"] = json!({"uid": "u1", "dryRun": true});
    let trace = world.after(1, requested(1, PATH, dry));
    assert!(!trace.contains("save"), "{trace}");
    assert_eq!(world.answer(1), Ok(json!({"uid": "u1", "allowed": true})));
    let trace = world.after(1, review(2, PATH));
    assert!(trace.contains("save web") && trace.contains("run hook web/check.sh"), "{trace}");
    assert_eq!(world.answer(2), Ok(json!({"uid": "u2", "allowed": true})));
}

fn converting() -> World {
    let crd = Item::filtered(None, b"{\"said\":{\"strategy\":\"None\"}}"[..].into());
    let files = files().module(10, "web").hook("up.sh", CONVERTS);
    world(&files).holds("CustomResourceDefinition", Key::new("", "tabs.example.com"), crd)
}

#[test]
fn objects_are_led_through_all_versions_and_those_that_are_there_are_left_alone() {
    let mut world = converting()
        .hook("web/up.sh", Ok(converted(&[tab("a", "v1beta1")])))
        .hook("web/up.sh", Ok(converted(&[tab("a", "v1")])))
        .hook("web/up.sh", Ok(converted(&[tab("c", "v1")])))
        .settled();
    let objects = [tab("a", "v1alpha1"), tab("b", "v1"), tab("c", "v1beta1")];
    let trace = world.after(1, conversion(1, "example.com/v1", &objects));
    assert_eq!(trace.matches("run hook web/up.sh").count(), 3, "{trace}");
    let answer = world.answer(1).unwrap();
    assert_eq!(answer["result"], json!({"status": "Success"}));
    assert_eq!(answer["convertedObjects"], json!([tab("a", "v1"), tab("b", "v1"), tab("c", "v1")]));
}

/// A module with conversions behind one that takes its time, in a cluster that an operator before this one left.
fn restarted(is_on: bool) -> World {
    let service =
        json!({"namespace": "ops", "name": "hooks", "path": "/convert/tabs.example.com", "port": 443});
    let client = json!({"service": service, "caBundle": "Y2E="});
    let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1", "v1beta1"]});
    let said = json!({"said": {"strategy": "Webhook", "webhook": webhook}, "writers": []});
    let crd = Item::filtered(None, said.to_string().into_bytes().into());
    let files =
        files().module(5, "slow").hook("wait.sh", "onStartup: 1").module(10, "web").hook("up.sh", CONVERTS);
    let files = if is_on { files } else { files.off() };
    world(&files)
        .holds("CustomResourceDefinition", Key::new("", "tabs.example.com"), crd)
        .takes("slow/wait.sh", 60_000)
}

#[test]
fn conversions_go_on_over_a_restart_before_their_module_has_run() {
    let mut world = restarted(true).hook("web/up.sh", Ok(converted(&[tab("a", "v1")])));
    world.run_until(30_000);
    assert!(!world.view().converge.first_done);
    world.send_in(1, conversion(1, "example.com/v1", &[tab("a", "v1beta1")]));
    world.run_for(1_000);
    assert_eq!(world.answer(1).unwrap()["convertedObjects"], json!([tab("a", "v1")]));
    world.run();
    let given_back = |told: &Arc<engine::WebhookRegistration>| {
        let swept = told.sweep.as_ref().is_some_and(|wanted| !wanted.contains("tabs.example.com"));
        swept || told.conversions.values().any(Option::is_none)
    };
    assert!(!world.registrations.iter().any(given_back), "{:?}", world.registrations);
    // It was as it should be, and is ours all the same.
    world.after(1, config(200, &[("webEnabled", "false")]));
    let last = &world.registrations.last().unwrap().conversions;
    assert_eq!(last.get("tabs.example.com"), Some(&None), "{last:?}");
}

#[test]
fn webhooks_stay_registered_over_a_restart_and_who_can_answer_does() {
    let sees = VALIDATES
        .replace("pods.web", "seeing.web")
        .replace("timeoutSeconds", "includeSnapshotsFrom: [pods], timeoutSeconds");
    let files = files()
        .module(5, "slow")
        .hook("wait.sh", "onStartup: 1")
        .module(10, "web")
        .hook("check.sh", VALIDATES)
        .hook("see.sh", &format!("{{kubernetes: [{{name: pods, kind: Pod}}], {sees}}}"))
        .module(20, "other")
        .hook("off.sh", &VALIDATES.replace("pods.web", "pods.other"))
        .off();
    let output = || HookOutput { admission: says(false).admission, ..configures("/web/x", &json!(2)) };
    let known = |name: &str| json!({"name": name, "failurePolicy": "Fail"});
    let left = [known(GOOD), known("seeing.web.example.com"), known("pods.other.example.com")];
    let left = json!({"said": left, "writers": []}).to_string().into_bytes();
    let mut world = world(&files)
        .holds("ValidatingWebhookConfiguration", Key::new("", "ours"), Item::filtered(None, left.into()))
        .takes("slow/wait.sh", 60_000)
        .hook("web/check.sh", Ok(output()))
        .hook("web/check.sh", Err(crate::world::failure("what it reads is not there yet")))
        .hook("web/check.sh", Ok(HookOutput::default()));
    world.run_until(30_000);
    let told = world.registrations.last().unwrap().clone();
    let names: Vec<_> = told.validating.as_ref().unwrap()["webhooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].clone())
        .collect();
    assert_eq!(names, ["pods.web.example.com", "seeing.web.example.com"]);
    assert_eq!(world.policies(), ["Ignore", "Ignore"]);
    let kept: Vec<_> = told.kept.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(kept, ["pods.web.example.com", "seeing.web.example.com"], "if the API server knows them");
    world.send_in(1, review(1, PATH));
    let trace = world.run_for(1_000);
    assert_eq!(world.answer(1).unwrap()["allowed"], json!(false));
    assert!(!trace.contains("save"), "its module has not run: {trace}");
    // Whose hook can't know yet is passed over by the failure policy, and at once.
    for id in [2, 3] {
        world.send_in(1, review(id, PATH));
        world.run_for(1_000);
        assert_eq!(world.answer(id), Err(RefusalReason::Busy));
    }
    world.send_in(1, review(4, &PATH.replace("pods", "seeing")));
    world.run_for(1_000);
    assert_eq!(world.answer(4), Err(RefusalReason::Busy));
    world.run();
    assert_eq!(world.policies(), ["Fail", "Fail"]);
    assert!(world.registrations.last().unwrap().kept.is_empty());
}

#[test]
fn who_can_not_take_reviews_has_nobody_asked() {
    let mut world = world(&web());
    let failure = || Err(Failure::new(FailureKind::Files, "tls.crt is not there"));
    world.serving.extend([failure(), failure()]);
    world.run_until(2_000);
    let told = world.registrations.last().unwrap();
    assert_eq!((&told.validating, &told.mutating, &told.sweep), (&None, &None, &None));
    assert!(world.view().webhooks.failure.is_some());
    world.run();
    assert_eq!(world.policies(), ["Fail"]);
}

#[test]
fn what_is_left_of_an_operator_before_is_given_back_when_all_modules_are_known() {
    let mut world = restarted(false);
    world.run_until(30_000);
    let swept = |world: &World| -> Vec<Vec<String>> {
        let swept = world.registrations.iter().filter_map(|told| told.sweep.as_ref());
        swept.map(|spared| spared.iter().cloned().collect()).collect()
    };
    // Its module may be switched on by hooks.
    assert_eq!(swept(&world), [["tabs.example.com"]]);
    world.run();
    assert_eq!(swept(&world), [vec!["tabs.example.com".to_owned()], Vec::new()]);
    // Whose modules may be away says nothing about what is left.
    let files = Files { is_incomplete: true, ..files().module(10, "web").hook("up.sh", CONVERTS).off() };
    let mut world = self::world(&files);
    world.run();
    assert!(world.registrations.iter().all(|told| told.sweep.is_none()), "{:?}", world.registrations);
}

#[test]
fn what_no_hook_converts_any_more_is_given_back_before_the_modules_have_run() {
    // The module with the conversions is gone, or another one has some of its own.
    let slow = files().module(5, "slow").hook("wait.sh", "onStartup: 1");
    let other = CONVERTS.replace("tabs.example.com", "others.example.com");
    let cases = [
        (slow.clone(), vec![]),
        (slow.module(10, "web").hook("up.sh", &other), vec!["others.example.com".to_owned()]),
    ];
    for (files, spared) in cases {
        let mut world = world(&files);
        world.break_hook("slow/wait.sh", 1_000);
        world.run_until(3_000);
        assert!(!world.view().converge.first_done);
        let swept = |world: &World| -> Vec<Vec<String>> {
            let swept = world.registrations.iter().filter_map(|told| told.sweep.as_ref());
            swept.map(|spared| spared.iter().cloned().collect()).collect()
        };
        assert_eq!(swept(&world), [spared], "{:?}", world.registrations);
        world.mend_hook("slow/wait.sh");
        world.run();
        assert!(world.view().converge.first_done && swept(&world).len() == 1, "{:?}", world.registrations);
    }
}

#[test]
fn a_version_that_no_hook_leads_to_is_told_and_nothing_to_do_is_done_at_once() {
    let mut world = converting().settled();
    world.after(1, conversion(1, "example.com/v9", &[tab("a", "v1")]));
    let answer = world.answer(1).unwrap();
    assert_eq!(answer["result"]["status"], "Failure");
    let trace = world.after(1, conversion(2, "example.com/v1", &[tab("a", "v1")]));
    assert!(!trace.contains("run hook"), "{trace}");
    assert_eq!(world.answer(2).unwrap()["convertedObjects"], json!([tab("a", "v1")]));
}

#[test]
fn f_f6_one_object_of_a_thousand_that_is_not_converted_is_named_and_none_is_returned() {
    let before: Vec<Value> = (0..1_000).map(|n| tab(&format!("t{n}"), "v1beta1")).collect();
    let mut after: Vec<Value> = (0..1_000).map(|n| tab(&format!("t{n}"), "v1")).collect();
    after[500]["metadata"]["name"] = json!("other");
    let mut world = converting().hook("web/up.sh", Ok(converted(&after))).settled();
    world.after(1, conversion(1, "example.com/v1", &before));
    let answer = world.answer(1).unwrap();
    assert_eq!(answer["convertedObjects"], json!([]));
    assert_eq!(answer["result"]["status"], "Failure");
    let message = answer["result"]["message"].as_str().unwrap();
    assert!(message.contains("object 500, n/t500, has another /metadata/name"), "{message}");
    // Conversions have no failure policy.
    let told = problems(&world);
    assert!(
        told.len() == 1 && told[0].contains("objects that would be converted fail meanwhile"),
        "{told:?}"
    );
    assert!(!told[0].contains("policy"), "{told:?}");
}

#[test]
fn a_conversion_section_that_somebody_changes_is_mended_and_given_back_in_the_end() {
    let mut world = converting().settled();
    let told = |world: &World| {
        world.registrations.iter().flat_map(|told| told.conversions.clone()).collect::<Vec<_>>()
    };
    let first = told(&world);
    assert_eq!(first.len(), 1);
    let (name, conversion) = first[0].clone();
    let service =
        json!({"namespace": "ops", "name": "hooks", "path": "/convert/tabs.example.com", "port": 443});
    let client = json!({"service": service, "caBundle": "Y2E="});
    let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1", "v1beta1"]});
    assert_eq!(name, "tabs.example.com");
    assert_eq!(conversion, Some(json!({"strategy": "Webhook", "webhook": webhook})));
    // What the API server adds is no change, and what somebody else writes is.
    let monitor = *world.monitors.iter().find(|(_, kind)| *kind == "CustomResourceDefinition").unwrap().0;
    let event = |section: &Value, version| Event::ObjectChanged {
        key: Key::new("", "tabs.example.com"),
        is_gone: false,
        items: vec![(monitor, shown(section, "helm", version))],
    };
    let mut with_default = conversion.clone().unwrap();
    with_default["webhook"]["clientConfig"]["other"] = json!(1);
    let version = world.next_version();
    world.after(1, event(&with_default, version));
    assert_eq!(told(&world).len(), 1);
    let version = world.next_version();
    world.after(1, event(&json!({"strategy": "None"}), version));
    assert_eq!(told(&world).len(), 2);
    world.after(1, config(200, &[("webEnabled", "false")]));
    assert_eq!(told(&world).last().unwrap(), &("tabs.example.com".to_owned(), None));
}

/// Returns what a watch shows of an object that was written last by `writer`, with this version.
fn shown(said: &Value, writer: &str, version: u64) -> Arc<Item> {
    let writers = json!([
        {"manager": "addon-operator-webhooks", "operation": "Apply", "time": "2026-01-01T00:00:00Z"},
        {"manager": writer, "operation": "Update", "time": "2026-01-02T00:00:00Z"},
    ]);
    let bytes =
        json!({"said": said, "version": version.to_string(), "writers": writers}).to_string().into_bytes();
    Arc::new(Item::filtered(None, bytes.into()))
}

const KIND: &str = "ValidatingWebhookConfiguration";

impl World {
    /// Shows the operator's configuration as somebody else has left it: with these webhooks, or not at all.
    fn configuration(&mut self, webhooks: Option<&Value>) {
        let item = shown(webhooks.unwrap_or(&Value::Null), "kubectl-edit", self.next_version());
        self.watched(KIND, Key::new("", "ours"), webhooks.is_none(), &item);
        self.run_for(1_000);
    }

    /// Returns the webhooks that were told last.
    fn webhooks_told(&self) -> Value {
        self.registrations.last().unwrap().validating.clone().unwrap()["webhooks"].clone()
    }

    fn warnings(&self, text: &str) -> usize {
        self.noticed(
            |notice| matches!(notice, engine::Notice::Warned { message, .. } if message.contains(text)),
        )
    }
}

#[test]
fn a_configuration_that_somebody_edits_or_deletes_is_put_right_at_once_and_who_did_it_is_told() {
    let mut world = world(&web()).settled();
    let calm = world.registrations.len();
    // What the API server adds is no change, and webhooks of others are theirs.
    let mut more = world.webhooks_told();
    more[0]["other"] = json!(1);
    more.as_array_mut().unwrap().push(json!({"name": "theirs.example.com"}));
    world.configuration(Some(&more));
    assert_eq!(world.registrations.len(), calm);
    let mut edited = world.webhooks_told();
    edited[0]["failurePolicy"] = json!("Ignore");
    world.configuration(Some(&edited));
    assert_eq!(world.registrations.len(), calm + 1);
    assert_eq!(world.webhooks_told()[0]["failurePolicy"], "Fail");
    let told = "ValidatingWebhookConfiguration ours was changed by kubectl-edit (Update, 2026-01-02T00:00:00Z): it is put right";
    assert_eq!(world.warnings(told), 1);
    world.configuration(None);
    assert_eq!(world.registrations.len(), calm + 2);
    assert_eq!(world.warnings("ValidatingWebhookConfiguration ours was deleted: it is put right"), 1);
    // Nobody wants it any more: it may go.
    world.after(1, config(200, &[("webEnabled", "false")]));
    let calm = world.registrations.len();
    world.configuration(None);
    assert_eq!(world.registrations.len(), calm);
}

#[test]
fn what_somebody_does_between_a_write_and_its_answer_is_put_right() {
    // What is seen in that moment: an older edit, a later one, a deletion. How many writes it asks for.
    for (is_later, is_gone, writes) in [(false, false, 0), (true, false, 1), (true, true, 1)] {
        let mut world = world(&web()).settled();
        let mut edited = world.webhooks_told();
        edited[0]["failurePolicy"] = json!("Ignore");
        let (first, older) = (world.next_version(), world.next_version());
        let key = Key::new("", "ours");
        world.watched(KIND, key.clone(), false, &shown(&edited, "kubectl-edit", first));
        assert!(world.registers());
        let told = world.registrations.len();
        let version = if is_later { world.next_version() } else { older };
        let item = shown(&edited, "kubectl-edit", version);
        let event = world.shown_to_watches(KIND, key, is_gone, &item).unwrap();
        world.after(0, event);
        assert_eq!(world.registrations.len() - told, writes, "{is_later} {is_gone}");
    }
}

#[test]
fn two_operators_that_write_one_configuration_are_told_and_do_not_wear_the_api_server_out() {
    let mut world = world(&web()).settled();
    let calm = world.registrations.len();
    let mut edited = world.webhooks_told();
    edited[0]["failurePolicy"] = json!("Ignore");
    for _ in 0..600 {
        world.send_in(1_000, Event::TimerFired);
        world.run_for(1_001);
        world.configuration(Some(&edited));
    }
    let writes = world.registrations.len() - calm;
    assert!((6..=12).contains(&writes), "{writes} writes in ten minutes");
    let told =
        "ours is changed by kubectl-edit (Update, 2026-01-02T00:00:00Z) again and again: it is put right in";
    assert!((2..=5).contains(&world.warnings(told)), "{}", world.warnings(told));
    let failure = world.view().webhooks.failure.clone().unwrap();
    assert!(failure.to_string().contains("again and again"), "{failure}");
    // Who stops is forgotten, and the last word is ours.
    world.run_for(30 * 60_000);
    assert!(world.view().webhooks.failure.is_none());
    assert_eq!(world.webhooks_told()[0]["failurePolicy"], "Fail");
    let calm = world.registrations.len();
    world.configuration(Some(&edited));
    assert_eq!(world.registrations.len(), calm + 1);
}

#[test]
fn a_review_whose_hook_may_not_run_yet_waits_until_it_may() {
    let hook = format!("settings: {{executionMinInterval: 3s}}, {VALIDATES}");
    let files = files().module(10, "web").hook("check.sh", &format!("{{{hook}}}"));
    let mut world =
        world(&files).hook("web/check.sh", Ok(says(true))).hook("web/check.sh", Ok(says(true))).settled();
    world.after(1, review(1, PATH));
    let begun = world.now;
    world.after(1, review(2, PATH));
    assert_eq!(world.answer(1), Ok(json!({"uid": "u1", "allowed": true})));
    assert_eq!(world.answer(2), Ok(json!({"uid": "u2", "allowed": true})));
    let waited = world.now.since(begun);
    assert!(waited >= Duration::from_millis(2_900) && waited < Duration::from_secs(5), "{waited:?}");
}

#[test]
fn what_a_hook_writes_takes_no_effect_when_nobody_waits_for_its_answer() {
    let output = HookOutput { admission: says(true).admission, ..configures("/web/x", &json!(2)) };
    let mut world = world(&web()).hook("web/check.sh", Ok(output)).takes("web/check.sh", 1_000).settled();
    world.cancels_late = true;
    world.send_in(1, review(1, PATH));
    world.send_in(100, Event::ReviewAbandoned { id: ReviewId::new(1) });
    let trace = world.run();
    assert!(trace.contains("cancel") && !trace.contains("save"), "{trace}");
}

#[test]
fn reviews_under_way_are_seen_beside_the_queues() {
    let mut world = world(&web()).takes("web/check.sh", 3_000).settled();
    for id in 1..=3 {
        world.send_in(1, review(id, PATH));
    }
    world.run_for(500);
    let view = world.view();
    let queue = view.queues.iter().find(|queue| queue.name.as_str() == "webhooks").unwrap();
    let seen: Vec<_> =
        queue.tasks.iter().map(|task| (task.description.as_str(), task.running.is_some())).collect();
    let line = "ModuleHookRun:webhooks:web/check.sh:kubernetesValidating pods.web.example.com";
    assert_eq!(seen, [(line, true), (line, true), (line, false)]);
    assert!(queue.tasks.iter().all(|task| task.is_aside && task.cause == "the API server asks"));
    world.run();
    assert!(world.view().queues.iter().all(|queue| queue.name.as_str() != "webhooks"));
}

fn problems(world: &World) -> Vec<String> {
    let format = engine::view::Format { show: &str::to_owned, at: &|_| String::new() };
    let all = engine::view::problems(&world.view(), format).into_iter();
    let of_webhooks = all.filter(|problem| problem.about.contains("webhook"));
    of_webhooks.map(|problem| format!("{} {}: {}", problem.about, problem.what, problem.advice)).collect()
}

/// Returns the reasons of the Kubernetes Events since `from`.
fn events(world: &World, from: usize) -> Vec<&'static str> {
    world.announcements[from..].iter().map(|told| told.reason).collect()
}

#[test]
fn a_patch_that_can_not_be_applied_to_the_object_is_the_failure_of_its_hook() {
    let mutates = VALIDATES.replace("kubernetesValidating", "kubernetesMutating");
    let files = files().module(10, "web").hook("check.sh", &mutates);
    let patches = |operation: Value| {
        let operations = vec![operation.as_object().unwrap().clone()];
        let response =
            AdmissionResponse { allowed: true, patch: "W10=".to_owned(), operations, ..Default::default() };
        HookOutput { admission: Some(Box::new(response)), ..HookOutput::default() }
    };
    let add = |path: &str| patches(json!({"op": "add", "path": path, "value": "hunter2"}));
    let mut world = world(&files)
        .hook("web/check.sh", Ok(add("/metadata/labels/by")))
        .hook("web/check.sh", Ok(add("/metadata/generateName")))
        .settled();
    let path = PATH.replace("validate", "mutate");
    world.after(1, review(1, &path));
    let told = problems(&world);
    assert!(told.len() == 1 && told[0].contains("the patch of hook"), "{told:?}");
    assert!(told[0].contains("\"/metadata/labels/by\""), "{told:?}");
    assert!(!told[0].contains("hunter2"), "{told:?}");
    world.after(1, review(2, &path));
    assert!(problems(&world).is_empty(), "the next one can be applied");
}

#[test]
fn a_webhook_that_fails_or_denies_everything_is_told_until_requests_pass_again() {
    let mut world = world(&web())
        .hook("web/check.sh", Err(crate::world::failure("it is out of order")))
        .hook("web/check.sh", Err(crate::world::failure("it is out of order")))
        .hook("web/check.sh", Ok(HookOutput::default()))
        .hook("web/check.sh", Ok(says(true)));
    for _ in 0..12 {
        world = world.hook("web/check.sh", Ok(says(false)));
    }
    let mut world = world.hook("web/check.sh", Ok(says(true))).settled();
    let begun = world.announcements.len();
    world.after(1, review(1, PATH));
    world.after(1_000, review(2, PATH));
    assert_eq!(events(&world, begun), ["WebhookFailed"], "the same failure is told once");
    assert_eq!(world.announcements[begun].module.as_ref().unwrap().as_str(), "web");
    let told = problems(&world);
    assert!(
        told.len() == 1 && told[0].starts_with("webhook pods.web.example.com has no answer for"),
        "{told:?}"
    );
    assert!(told[0].contains("2 times in a row") && told[0].contains("it is out of order"), "{told:?}");
    assert!(told[0].contains("the failure policy says what becomes of requests"), "{told:?}");
    world.after(1, review(3, PATH));
    assert!(problems(&world)[0].contains("wrote no response"));
    world.after(1, review(4, PATH));
    assert!(problems(&world).is_empty());
    assert_eq!(events(&world, begun), ["WebhookFailed", "WebhookFailed", "WebhookRecovered"]);
    for id in 5..17 {
        world.after(1_000, review(id, PATH));
    }
    assert_eq!(events(&world, begun + 3), ["WebhookFailed"]);
    let told = problems(&world);
    assert!(
        told.len() == 1 && told[0].contains("denies everything for 11 s, 12 requests in a row"),
        "{told:?}"
    );
    world.after(1, review(17, PATH));
    assert!(problems(&world).is_empty());
    world.after(1, config(200, &[("webEnabled", "false")]));
    assert!(problems(&world).is_empty());
}

#[test]
fn a_certificate_whose_end_is_near_is_told_until_there_is_another_one() {
    let mut world = world(&web()).settled();
    assert!(problems(&world).is_empty());
    world.after(1, Event::WebhookCertificateRenewed { certificate: certificate("b2xk", 6) });
    let told = problems(&world);
    assert!(
        told.len() == 1 && told[0].starts_with("certificate of webhooks is valid for 5 d only"),
        "{told:?}"
    );
    let week = 7 * 24 * 3_600_000;
    world.send_in(week, config(150, &[("webEnabled", "true")]));
    world.run_for(week + 1_000);
    assert!(problems(&world)[0].contains("is not valid any more"), "{:?}", problems(&world));
    world.send_in(1, Event::WebhookCertificateRenewed { certificate: certificate("bmV3", 90) });
    world.run_for(1_000);
    assert!(problems(&world).is_empty());
}

#[test]
fn a_certificate_that_can_not_be_followed_in_its_secret_is_told_until_it_can() {
    let mut world = world(&web()).settled();
    let outcome = Err(Failure::new(FailureKind::Cluster, "Secret ops/hooks-tls: too many requests"));
    world.after(1, Event::WebhookCertificateKept { outcome });
    let told = problems(&world);
    let expected = "certificate of webhooks can't be followed in its Secret, and replicas may show different ones: \
        Secret ops/hooks-tls: too many requests";
    assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
    let is_told = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.contains("too many requests"));
    assert_eq!(world.noticed(is_told), 1);
    world.after(1, Event::WebhookCertificateKept { outcome: Ok(()) });
    assert!(problems(&world).is_empty());
}

#[test]
fn a_certificate_that_is_renewed_before_it_is_known_that_reviews_are_taken_is_what_is_told() {
    let mut world = world(&web());
    let asked = (1..10_000).find(|at| world.run_until(*at).contains("serve webhooks"));
    assert!(asked.is_some() && world.registrations.is_empty());
    world.after(0, Event::WebhookCertificateRenewed { certificate: certificate("bmV3", 100) });
    let registration = world.registrations.last().unwrap();
    let webhook = &registration.validating.as_ref().unwrap()["webhooks"][0];
    assert_eq!(webhook["clientConfig"]["caBundle"], "bmV3");
}

#[test]
fn at_an_end_that_takes_long_nothing_is_tried_again_and_nothing_is_due() {
    let hook = format!("settings: {{executionMinInterval: 1s}}, {VALIDATES}");
    let files = files().module(10, "web").hook("check.sh", &format!("{{{hook}}}"));
    let mut world = world(&files).takes("web/check.sh", 4_000).settled();
    world.registering.push_back(Err(Failure::new(FailureKind::Cluster, "the API server is tired")));
    world.send_in(1, review(1, PATH));
    world.send_in(2, review(2, PATH));
    world.send_in(3, Event::ShutdownRequested);
    let told = world.registrations.len();
    world.run_for(2_000);
    assert_eq!(world.answer(2), Err(RefusalReason::Busy));
    assert_eq!(world.registrations.len(), told + 1);
    let due = world.engine.next_wakeup();
    assert!(due.is_none_or(|due| due > world.now), "{due:?} at {}", world.now);
    world.run();
    assert_eq!(world.registrations.len(), told + 1);
}

/// A module whose webhook the API server refuses, beside one whose webhook it takes.
fn odd() -> Files {
    web().module(20, "odd").hook("odd.sh", &VALIDATES.replace("pods.web", "pods.odd"))
}

/// A world whose API server refuses a webhook, and all others with it.
fn refusing(files: &Files) -> World {
    let mut world = world(files);
    world.refused_webhooks.insert("pods.odd.example.com".to_owned());
    world
}

#[test]
fn a_webhook_that_the_api_server_refuses_is_left_out_and_told_and_all_others_are_registered() {
    let mut world = refusing(&odd()).settled();
    assert_eq!((world.known(), world.policies()), (vec![GOOD.to_owned()], vec!["Fail".to_owned()]));
    let warned = |notice: &Notice| matches!(notice, Notice::Warned { scope, message } if scope.module().is_some_and(|module| module.as_str() == "odd") && message == "webhook pods.odd.example.com of hook odd/odd.sh is not registered, and nobody asks it: the API server refuses it: Invalid value");
    // It comes with the module, is kept in mind when the operator is ready, and told once.
    assert_eq!(world.noticed(warned), 1);
    let announced: Vec<_> =
        world.announcements.iter().filter(|event| event.reason == "WebhookFailed").collect();
    assert_eq!(announced.len(), 1);
    assert_eq!(announced[0].module.as_ref().unwrap().as_str(), "odd");
    assert_eq!(world.view().webhooks.failure, None);
    let problems = world.told(engine::view::problems);
    let told = problems.iter().find(|problem| problem.about == "hook odd/odd.sh").unwrap();
    assert!(told.what.contains("is not registered"), "{told:?}");
    let why = world.told(|view, format| engine::view::why::module(view, "odd", format).unwrap().text());
    assert!(why.contains("the API server refuses it: Invalid value"), "{why}");
    // What was refused is not asked for again and again.
    let told = world.registrations.len();
    world.run_for(60_000);
    assert_eq!(world.registrations.len(), told);
    // Another binding is.
    let other = web().module(20, "odd").hook("odd.sh", &VALIDATES.replace("pods.web", "better.odd"));
    world.after(1, reread(&other));
    assert_eq!(world.known(), [GOOD, "better.odd.example.com"]);
    assert_eq!(world.view().webhooks.unserved, []);
}

#[test]
fn webhooks_that_nobody_serves_any_more_go_though_another_one_is_refused() {
    for silent in [false, true] {
        let mut world = world(&odd()).settled();
        assert_eq!(world.known(), [GOOD, "pods.odd.example.com"]);
        // The binding of one is renamed in the moment in which the other one is not taken any more.
        world.refused_webhooks.insert("odd.odd.example.com".to_owned());
        world.refuses_in_silence = silent;
        let renamed = files()
            .module(10, "web")
            .hook("check.sh", &VALIDATES.replace("pods.web", "new.web"))
            .module(20, "odd")
            .hook("odd.sh", &VALIDATES.replace("pods.web", "odd.odd"));
        world.send_in(1, reread(&renamed));
        world.run_for(3_000);
        let known = world.known();
        assert!(!known.iter().any(|name| name.starts_with("pods.")), "{silent}: {known:?}");
        assert!(silent || known == ["new.web.example.com"], "{known:?}");
        assert_eq!(world.view().webhooks.failure.is_some(), silent);
        // Its cause is out of the way.
        world.refused_webhooks.clear();
        if silent {
            world.run_for(60_000);
            assert_eq!(world.known(), ["new.web.example.com", "odd.odd.example.com"]);
        }
    }
}

#[test]
fn what_is_registered_holds_up_nobody_while_configurations_are_refused_for_no_known_reason() {
    let mut world = world(&web()).settled();
    world.refuses_in_silence = true;
    world.refused_webhooks.insert("pods.odd.example.com".to_owned());
    world.send_in(1, reread(&odd()));
    world.run_for(3_000);
    assert_eq!((world.known(), world.policies()), (vec![GOOD.to_owned()], vec!["Ignore".to_owned()]));
}

#[test]
fn at_the_end_failures_are_ignored_of_what_is_registered_and_not_of_what_is_wanted() {
    let mut world = world(&web()).settled();
    world.registering.push_back(Err(Failure::new(FailureKind::Cluster, "the API server is tired")));
    world.send_in(1, reread(&odd()));
    world.run_for(3_000);
    assert!(world.registering.is_empty() && world.view().webhooks.failure.is_some());
    world.refused_webhooks.insert("pods.odd.example.com".to_owned());
    assert_eq!((world.known(), world.policies()), (vec![GOOD.to_owned()], vec!["Fail".to_owned()]));
    world.after(1, Event::ShutdownRequested);
    assert_eq!((world.known(), world.policies()), (vec![GOOD.to_owned()], vec!["Ignore".to_owned()]));
}

#[test]
fn a_refusal_of_what_was_wanted_before_says_nothing_of_what_is_wanted_now() {
    let mut world = refusing(&web()).settled();
    let bad = odd();
    let good = web().module(20, "odd").hook("odd.sh", &VALIDATES.replace("pods.web", "better.odd"));
    world.send_in(1, reread(&bad));
    let asked = world.registers();
    assert!(asked);
    world.after(0, reread(&good));
    assert_eq!(world.warnings("is not registered"), 0);
    assert_eq!(world.known(), [GOOD, "better.odd.example.com"]);
    assert_eq!(world.view().webhooks.unserved, []);
}

#[test]
fn a_definition_that_is_told_of_while_its_conversion_is_written_for_the_first_time_was_changed_by_nobody() {
    let shown = |writer: &str| {
        let writers = json!([{"manager": writer, "operation": "Update", "time": "2026-01-02T00:00:00Z"}]);
        let shown = json!({"said": {"strategy": "None"}, "writers": writers});
        Arc::new(Item::filtered(None, shown.to_string().into_bytes().into()))
    };
    let key = || Key::new("", "tabs.example.com");
    let files = files().module(10, "web").hook("up.sh", CONVERTS);
    let mut world = world(&files).settled();
    let told = world.registrations.len();
    world.watched("CustomResourceDefinition", key(), false, &shown("helm"));
    assert!(world.registers());
    // The API server writes the status of the new definition, and this is seen before the answer.
    let event = world.shown_to_watches("CustomResourceDefinition", key(), false, &shown("kube-apiserver"));
    world.after(0, event.unwrap());
    assert_eq!(world.warnings("was changed by kube-apiserver"), 0);
    assert_eq!(world.registrations.len(), told + 1);
    // Who changes it after that is told of.
    world.watched("CustomResourceDefinition", key(), false, &shown("kubectl-edit"));
    world.run();
    assert_eq!(world.warnings("was changed by kubectl-edit"), 1);
    // So is who changes it before the answer to that.
    world.watched("CustomResourceDefinition", key(), false, &shown("kubectl-edit"));
    assert!(world.registers());
    let item = self::shown(&json!({"strategy": "None"}), "kubectl-patch", world.next_version());
    let event = world.shown_to_watches("CustomResourceDefinition", key(), false, &item).unwrap();
    world.after(0, event);
    assert_eq!(world.warnings("was changed by kubectl-patch"), 1);
    assert_eq!(world.registrations.len(), told + 4);
}
