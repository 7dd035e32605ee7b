//! Lives of objects whose controller is a hook.

use engine::FailureKind;
use engine::snapshot::Key;
use serde_json::{Value, json};

use crate::build::{Files, config, files};
use crate::control_plane::ControlPlane;
use crate::world::World;

const CONFIG: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, finalizer: example.com/site, \
    children: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Service, update: Recreate}]}]";

pub(crate) fn controller() -> Files {
    files().global_hook("site.sh", CONFIG)
}

/// Makes a ConfigMap of each name in `spec.maps`, a Service of each in `spec.services`, and counts them.
pub(crate) fn sites(context: &Value) -> Result<Value, &'static str> {
    let (spec, children) = (&context["object"]["spec"], &context["children"]);
    let count =
        children.as_object().unwrap().values().map(|kind| kind.as_object().unwrap().len()).sum::<usize>();
    if spec["fails"] == true {
        return Err("exit status 1");
    }
    if context["type"] == "Finalize" {
        if spec["orderly"] == true && count > 0 {
            return Ok(json!({"children": []}));
        }
        return Ok(json!({"finalized": true}));
    }
    let namespace = &context["object"]["metadata"]["namespace"];
    let child = |kind: &str, name: &Value, text: &Value| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": {"text": text}});
    let list = |field: &str, kind: &str| -> Vec<Value> {
        let names = spec[field].as_array().into_iter().flatten();
        names.map(|name| child(kind, name, &spec["text"])).collect()
    };
    let mut all = list("maps", "ConfigMap");
    all.extend(list("services", "Service"));
    let mut result = json!({"status": {"children": count}});
    if spec["keeps"] != true {
        result["children"] = all.into();
    }
    if let Some(after) = spec["after"].as_str() {
        result["requeueAfter"] = after.into();
    }
    Ok(result)
}

fn address(name: &str) -> (String, Key) {
    ("Site".to_owned(), Key::new("ns", name))
}

pub(crate) fn site(plane: &mut ControlPlane, name: &str, spec: Value) {
    let address = address(name);
    let known = plane.objects.get(&address).cloned();
    let new = json!({"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": name, "namespace": "ns"}});
    let mut object = known.unwrap_or(new);
    object["spec"] = spec;
    plane.put(&address, object);
}

/// A controller that is shown the Teams of its object, which others change.
pub(crate) fn follower() -> Files {
    const FOLLOWS: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, finalizer: example.com/site, \
        children: [{apiVersion: v1, kind: ConfigMap}], related: [{name: all, apiVersion: v1, kind: Team, parentLabel: example.com/site}]}]";
    files().global_hook("site.sh", FOLLOWS)
}

/// Changes the Team of the object `a`.
pub(crate) fn team(plane: &mut ControlPlane, number: u64) {
    let team = json!({"metadata": {"name": "t", "namespace": "ns", "labels": {"example.com/site": "a"}}, "spec": number});
    plane.put(&("Team".to_owned(), Key::new("ns", "t")), team);
}

fn started() -> ControlPlane {
    let mut plane = ControlPlane::new(&controller(), sites);
    plane.run_for(1);
    plane
}

/// A life of a key.
pub(crate) fn tour() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x"]}));
    plane.run_for(10);
    drop(with_tenant());
}

/// A controller of a namespaced kind that has made a Namespace, of which its hook says that it is in a namespace.
fn with_tenant() -> ControlPlane {
    const TENANTS: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, children: [{apiVersion: v1, kind: Namespace}]}]";
    let says = |_: &Value| {
        let tenant =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t", "namespace": "ns"}});
        Ok(json!({"children": [tenant]}))
    };
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", TENANTS), says);
    plane.run_for(1);
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    plane
}

#[test]
fn a_child_of_a_cluster_wide_kind_has_no_owner_in_a_namespace_whatever_namespace_its_hook_writes() {
    let mut plane = with_tenant();
    let address = ("Namespace".to_owned(), Key::new("", "t"));
    let metadata = plane.objects.get(&address).expect("nobody removes it")["metadata"].clone();
    assert_eq!(metadata["annotations"]["addon-operator.io/owned-by"], "Site.example.com/ns/a");
    assert_eq!((&metadata["ownerReferences"], &metadata["namespace"]), (&Value::Null, &Value::Null));
    plane.delete("Namespace", &address.1);
    assert!(plane.run_for(10).contains(&"apply Namespace t".to_owned()));
    assert!(plane.objects.contains_key(&address));
    assert_eq!(plane.run_for(3_600), [""; 0]);
}

/// The first of two controllers of a kind makes `one`, and `two` if its object says so; the second one makes `two`.
fn of_two(context: &Value) -> Value {
    let is_first = context["binding"] == "site";
    let names: &[&str] = match (is_first, context["object"]["spec"]["greedy"] == true) {
        (true, true) => &["one", "two"],
        (true, false) => &["one"],
        (false, _) => &["two"],
    };
    let child = |name: &&str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}});
    let seen: Vec<&String> = context["children"]["ConfigMap"].as_object().unwrap().keys().collect();
    assert!(seen.iter().all(|name| names.contains(&name.as_str())), "{context}");
    json!({"children": names.iter().map(child).collect::<Vec<_>>()})
}

const FIRST: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, children: [{apiVersion: v1, kind: ConfigMap}]}]";
const SECOND: &str = "reconcile: [{name: other, apiVersion: example.com/v1, kind: Site, children: [{apiVersion: v1, kind: ConfigMap}]}]";

#[test]
fn two_controllers_of_a_kind_leave_each_other_their_children() {
    let both = files().global_hook("site.sh", FIRST).global_hook("two.sh", SECOND);
    let mut plane = ControlPlane::new(&both, |context| Ok(of_two(context)));
    plane.run_for(1);
    site(&mut plane, "a", json!({}));
    let told = plane.run_for(60);
    assert!(!told.iter().any(|line| line.starts_with("delete")), "{told:#?}");
    assert_eq!(plane.children("a"), ["one", "two"]);
    plane.restart();
    let told = plane.run_for(60);
    assert!(!told.iter().any(|line| !line.starts_with("Reconcile")), "{told:#?}");
    // One that the other makes is refused, and nothing becomes of it.
    site(&mut plane, "a", json!({"greedy": true}));
    let told = plane.run_for(1);
    let refusal = "ConfigMap ns/two is there already: binding global/two.sh/other of the same kind makes it";
    assert!(told.iter().any(|line| line.contains(refusal)), "{told:#?}");
    assert_eq!(plane.children("a"), ["one", "two"]);
}

#[test]
fn a_child_that_says_nothing_of_its_binding_is_of_the_only_one_and_of_who_names_it_once_there_are_two() {
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", FIRST), |context| Ok(of_two(context)));
    plane.run_for(1);
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    let address = ("ConfigMap".to_owned(), Key::new("ns", "one"));
    let mut before = plane.objects[&address].clone();
    before["metadata"]["annotations"].as_object_mut().unwrap().remove("addon-operator.io/made-by").unwrap();
    plane.put(&address, before);
    plane.run_for(10);
    plane.restart();
    let told = plane.run_for(10);
    assert!(!told.iter().any(|line| !line.starts_with("Reconcile")), "it is as it should be: {told:#?}");
    plane.replace(&files().global_hook("site.sh", FIRST).global_hook("two.sh", SECOND));
    let told = plane.run_for(10);
    assert!(
        told.contains(
            &r#"annotations {"addon-operator.io/made-by":"global/site.sh/site"} of ns/one"#.to_owned()
        ),
        "{told:#?}"
    );
    assert!(!told.iter().any(|line| line.starts_with("delete")), "{told:#?}");
    assert_eq!(plane.children("a"), ["one", "two"]);
}

#[test]
fn a_child_whose_name_would_lead_elsewhere_is_refused_before_any_request() {
    let mut plane = started();
    for name in ["../x", "..", "a%2fb"] {
        site(&mut plane, "a", json!({"maps": ["y", name]}));
        let told = plane.run_for(1);
        assert!(told.iter().any(|line| line.contains("children[1]: metadata.name")), "{told:#?}");
        assert!(!told.iter().any(|line| line.starts_with("apply")), "{told:#?}");
    }
}

#[test]
fn a_child_that_is_wanted_while_it_is_being_deleted_is_waited_for() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x"]}));
    plane.run_for(10);
    let address = ("ConfigMap".to_owned(), Key::new("ns", "x"));
    let mut held = plane.objects[&address].clone();
    held["metadata"]["finalizers"] = json!(["example.com/other"]);
    plane.put(&address, held);
    plane.delete("ConfigMap", &address.1);
    plane.run_for(600);
    let view = format!("{:?}", plane.engine.view().queues);
    assert!(view.contains("ConfigMap ns/x to be gone, which is made again then"), "{view}");
    let mut free = plane.objects[&address].clone();
    free["metadata"]["finalizers"] = json!([]);
    plane.put(&address, free);
    assert!(plane.run_for(10).contains(&"apply ConfigMap ns/x".to_owned()));
    assert!(!plane.has_work());
}

#[test]
fn a_child_that_was_made_and_is_never_seen_is_made_again_and_told() {
    let mut plane = started();
    plane.strips_labels = true;
    site(&mut plane, "a", json!({"maps": ["x"]}));
    plane.run_for(10);
    // Its hook runs once more.
    site(&mut plane, "a", json!({"maps": ["x"], "other": 1}));
    let told = plane.run_for(60);
    assert!(told.iter().filter(|line| *line == "apply ConfigMap ns/x").count() > 1, "{told:#?}");
    assert!(plane.announcements.iter().any(|one| one.reason == "ReconcileLoop"), "{:?}", plane.announcements);
}

#[test]
fn the_queue_of_a_controller_is_shown_also_when_nothing_is_in_it() {
    let mut plane = ControlPlane::new(&controller().global_hook("two.sh", SECOND), sites);
    plane.run_for(1);
    let queues = plane.engine.view().queues;
    let all: Vec<(&str, usize)> =
        queues.iter().map(|queue| (queue.name.as_str(), queue.tasks.len())).collect();
    assert_eq!(all, [("main", 0), ("global/site.sh/site", 0), ("global/two.sh/other", 0)]);
}

#[test]
fn a_key_gets_its_finalizer_then_its_children_then_its_status() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x", "y"], "text": "1"}));
    let told = plane.run_for(10);
    assert_eq!(
        told,
        [
            "finalizers [\"example.com/site\"] of ns/a",
            "Reconcile ns/a",
            "apply ConfigMap ns/x",
            "apply ConfigMap ns/y",
            "status {\"children\":0,\"observedGeneration\":1} of ns/a",
            "Reconcile ns/a",
            "status {\"children\":2,\"observedGeneration\":1} of ns/a",
        ]
    );
    assert_eq!(plane.run_for(3_600), [""; 0], "nothing happens by itself");
    let owner = &plane.get("ConfigMap", "x").unwrap()["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], plane.get("Site", "a").unwrap()["metadata"]["uid"]);
}

#[test]
fn only_what_differs_is_applied_and_what_is_not_named_goes_in_reverse_order() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x", "y", "z"], "text": "1"}));
    plane.run_for(10);
    // A change that a hook makes nothing of leads to no write but that of the generation.
    site(&mut plane, "a", json!({"maps": ["x", "y", "z"], "text": "1", "other": 1}));
    assert_eq!(
        plane.run_for(10),
        ["Reconcile ns/a", "status {\"children\":3,\"observedGeneration\":2} of ns/a"]
    );
    site(&mut plane, "a", json!({"maps": ["x"], "text": "1"}));
    let told = plane.run_for(10);
    let deleted: Vec<&String> = told.iter().filter(|line| line.starts_with("delete")).collect();
    assert_eq!(deleted, ["delete ConfigMap ns/z", "delete ConfigMap ns/y"]);
    assert!(!told.iter().any(|line| line.starts_with("apply")), "{told:#?}");
    assert_eq!(plane.children("a"), ["x"]);
}

#[test]
fn the_order_of_pruning_is_that_before_a_restart() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["z", "x", "y"], "text": "1"}));
    plane.run_for(10);
    plane.restart();
    plane.run_for(1);
    site(&mut plane, "a", json!({"maps": [], "text": "1"}));
    let told = plane.run_for(10);
    let deleted: Vec<&String> = told.iter().filter(|line| line.starts_with("delete")).collect();
    assert_eq!(deleted, ["delete ConfigMap ns/y", "delete ConfigMap ns/x", "delete ConfigMap ns/z"]);
}

#[test]
fn without_children_in_the_result_all_stay() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x"], "text": "1"}));
    plane.run_for(10);
    site(&mut plane, "a", json!({"maps": [], "keeps": true}));
    assert!(!plane.run_for(10).iter().any(|line| line.starts_with("delete")));
    assert_eq!(plane.children("a"), ["x"]);
}

#[test]
fn what_somebody_changes_or_deletes_is_made_again() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x"], "text": "1"}));
    plane.run_for(10);
    let mut map = plane.get("ConfigMap", "x").unwrap().clone();
    map["spec"]["text"] = "hacked".into();
    plane.put(&("ConfigMap".to_owned(), Key::new("ns", "x")), map);
    assert_eq!(plane.run_for(10), ["Reconcile ns/a", "apply ConfigMap ns/x", "Reconcile ns/a"]);
    plane.delete("ConfigMap", &Key::new("ns", "x"));
    plane.run_for(10);
    assert_eq!(plane.children("a"), ["x"]);
}

#[test]
fn of_a_child_that_goes_while_its_hook_runs_the_next_run_decides() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x"], "text": "1"}));
    plane.run_for(10);
    site(&mut plane, "a", json!({"maps": ["x"], "text": "2"}));
    plane.run_for_millis(5);
    plane.delete("ConfigMap", &Key::new("ns", "x"));
    let told = plane.run_for(10);
    let first = told.iter().position(|line| line == "Reconcile ns/a").unwrap();
    let made = told.iter().position(|line| line == "apply ConfigMap ns/x").unwrap();
    assert!(first < made && plane.children("a") == ["x"], "{told:#?}");
}

#[test]
fn a_deletion_in_the_foreground_waits_for_children_and_those_made_without_that_are_not_made_again() {
    let mut plane = started();
    site(&mut plane, "a", json!({"services": ["s"], "text": "1"}));
    plane.run_for(10);
    let address = ("Service".to_owned(), Key::new("ns", "s"));
    let mut before = plane.objects[&address].clone();
    let owner = before["metadata"]["ownerReferences"][0].as_object_mut().unwrap();
    assert_eq!(owner.remove("blockOwnerDeletion"), Some(json!(true)));
    plane.put(&address, before);
    let told = plane.run_for(10);
    let changes: Vec<&String> = told.iter().filter(|line| line.contains("Service")).collect();
    assert_eq!(changes, ["apply Service ns/s"]);
    assert_eq!(plane.objects[&address]["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
}

#[test]
fn a_child_that_is_recreated_goes_first() {
    let mut plane = started();
    site(&mut plane, "a", json!({"services": ["s"], "text": "1"}));
    plane.run_for(10);
    site(&mut plane, "a", json!({"services": ["s"], "text": "2"}));
    let told = plane.run_for(10);
    let changes: Vec<&String> = told.iter().filter(|line| line.contains("Service")).collect();
    assert_eq!(changes, ["delete Service ns/s", "apply Service ns/s"]);
    assert_eq!(plane.get("Service", "s").unwrap()["spec"]["text"], "2");
}

#[test]
fn an_object_is_let_go_when_all_its_children_are_gone() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x", "y"], "text": "1"}));
    plane.run_for(10);
    // Somebody else holds one of them.
    let mut held = plane.get("ConfigMap", "x").unwrap().clone();
    held["metadata"]["finalizers"] = json!(["foreign/one"]);
    plane.put(&("ConfigMap".to_owned(), Key::new("ns", "x")), held);
    plane.run_for(10);
    plane.delete("Site", &Key::new("ns", "a"));
    let told = plane.run_for(10);
    assert!(told[1].starts_with(r#"annotations {"addon-operator.io/finalized":"#), "{told:#?}");
    assert_eq!(
        (&*told[0], &told[2..]),
        ("Finalize ns/a", &["delete ConfigMap ns/y", "delete ConfigMap ns/x"].map(str::to_owned)[..])
    );
    assert!(plane.get("Site", "a").is_some());
    let queues = plane.engine.view().queues;
    let task = queues.iter().flat_map(|queue| &queue.tasks).next().unwrap();
    assert_eq!(task.waits_for.as_deref(), Some("ConfigMap ns/x to be gone"));
    let mut free = plane.get("ConfigMap", "x").unwrap().clone();
    free["metadata"]["finalizers"] = json!([]);
    plane.put(&("ConfigMap".to_owned(), Key::new("ns", "x")), free);
    let told = plane.run_for(10);
    assert_eq!(told.last().map(String::as_str), Some("finalizers [] of ns/a"));
    assert_eq!((plane.objects.len(), plane.has_work()), (0, false));
}

#[test]
fn a_key_that_fails_waits_longer_each_time_and_a_change_cuts_that_short() {
    let mut plane = started();
    site(&mut plane, "a", json!({"fails": true}));
    site(&mut plane, "b", json!({"maps": ["x"]}));
    plane.run_for(2);
    assert_eq!((plane.failures, plane.children("b")), (1, vec!["x"]), "no other key waits");
    let format = engine::view::Format { show: &|text| text.to_owned(), at: &|_| String::new() };
    let status = engine::view::status::text(&plane.engine.view(), format);
    assert!(status.contains("Site ns/a is not as its controller says for "), "{status}");
    let why = engine::view::why::queue(&plane.engine.view(), "global/site.sh/site", format).unwrap();
    let why = why.data().to_string();
    assert!(why.contains("ns/a") && why.contains("exit status 1"), "{why}");
    plane.run_for(3_600);
    let failures = plane.failures;
    // 5 s, 10 s … 5 min, and up to a quarter more.
    assert!((14..=18).contains(&failures), "{failures}");
    assert_eq!(plane.announcements.len(), 1, "the same failure is announced once");
    assert_eq!(
        plane.announcements[0].object.as_ref().map(|object| object.key.to_string()).as_deref(),
        Some("ns/a")
    );
    site(&mut plane, "a", json!({"maps": ["y"]}));
    plane.run_for(1);
    assert_eq!((plane.failures, plane.children("a")), (failures, vec!["y"]));
    assert_eq!(plane.announcements[1].reason, "ReconcileRecovered");
}

#[test]
fn a_key_comes_back_when_it_asks_for_that() {
    let mut plane = started();
    site(&mut plane, "a", json!({"after": "1m"}));
    let runs = |told: Vec<String>| told.iter().filter(|line| line.starts_with("Reconcile")).count();
    assert_eq!(runs(plane.run_for(30)), 1);
    assert_eq!(runs(plane.run_for(600)), 10);
}

#[test]
fn a_key_waits_for_kinds_that_do_not_exist_and_says_for_which() {
    let mut plane = ControlPlane::new(&controller(), sites);
    plane.missing_kinds.insert("Service".to_owned());
    plane.run_for(1);
    site(&mut plane, "a", json!({"maps": ["x"]}));
    assert_eq!(plane.run_for(3), [""; 0]);
    let queues = plane.engine.view().queues;
    let task = queues.iter().flat_map(|queue| &queue.tasks).next().unwrap();
    assert_eq!(task.waits_for.as_deref(), Some("kind Service does not exist yet"));
    plane.bring("Service");
    plane.run_for(10);
    assert_eq!(plane.children("a"), ["x"]);
}

#[test]
fn a_result_that_asks_for_what_it_may_not_have_changes_nothing() {
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(context: &Value) -> Result<Value, &'static str> {
        let name = &context["object"]["metadata"]["name"];
        let good =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good", "namespace": "ns"}});
        let bad = match name.as_str().unwrap() {
            "kind" => {
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "ns"}})
            }
            _ => good.clone(),
        };
        Ok(json!({"children": [good, bad]}))
    }
    let mut plane = ControlPlane::new(&controller(), hook);
    plane.run_for(1);
    site(&mut plane, "kind", json!({}));
    site(&mut plane, "twice", json!({}));
    let told = plane.run_for(1);
    assert!(!told.iter().any(|line| line.starts_with("apply")), "{told:#?}");
    let failed: Vec<&String> = told.iter().filter(|line| line.starts_with("failed")).collect();
    let expected = "failed: children[1]: kind v1 Secret is not in children of the binding, which has [v1 ConfigMap, v1 Service]";
    assert!(failed.iter().any(|line| *line == expected), "{failed:#?}");
    assert!(
        failed.iter().any(|line| *line == "failed: children[1]: ConfigMap ns/good is there twice"),
        "{failed:#?}"
    );
}

#[test]
fn a_child_that_may_only_be_replaced_by_others_stays_until_somebody_deletes_it() {
    let hooks = CONFIG.replace("update: Recreate", "update: OnDelete");
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", &hooks), sites);
    plane.run_for(1);
    site(&mut plane, "a", json!({"services": ["s"], "text": "1"}));
    plane.run_for(10);
    site(&mut plane, "a", json!({"services": ["s"], "text": "2"}));
    plane.run_for(10);
    assert_eq!(plane.get("Service", "s").unwrap()["spec"]["text"], "1");
    plane.delete("Service", &Key::new("ns", "s"));
    plane.run_for(10);
    assert_eq!(plane.get("Service", "s").unwrap()["spec"]["text"], "2");
}

#[test]
fn a_child_in_another_namespace_names_its_parent_and_goes_with_it() {
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(context: &Value) -> Result<Value, &'static str> {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "other"}});
        let shown = context["children"]["ConfigMap"].as_object().unwrap().keys().collect::<Vec<_>>();
        Ok(match context["type"].as_str() {
            Some("Finalize") => json!({"finalized": true}),
            _ => json!({"children": [map], "status": {"shown": shown}}),
        })
    }
    let mut plane = ControlPlane::new(&controller(), hook);
    plane.run_for(1);
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    let child = ("ConfigMap".to_owned(), Key::new("other", "x"));
    let metadata = plane.objects[&child]["metadata"].clone();
    assert_eq!(metadata["annotations"]["addon-operator.io/owned-by"], "Site.example.com/ns/a");
    assert_eq!(metadata["ownerReferences"], Value::Null);
    assert_eq!(plane.get("Site", "a").unwrap()["status"]["shown"], json!(["other/x"]));
    plane.restart();
    plane.run_for(10);
    plane.delete("Site", &Key::new("ns", "a"));
    plane.run_for(10);
    assert!(plane.objects.is_empty(), "{:#?}", plane.objects);
}

#[test]
fn related_objects_wake_whom_they_name_and_are_shown_to_it() {
    const RELATED: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, related: [\
        {name: noted, apiVersion: v1, kind: Secret, parentAnnotation: example.com/site}, \
        {name: labelled, apiVersion: v1, kind: Node, parentLabel: example.com/site}, \
        {name: owners, apiVersion: v1, kind: Team, ownerOf: true}]}]";
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(context: &Value) -> Result<Value, &'static str> {
        let names = |name: &str| {
            let shown = context["related"][name].as_object().unwrap();
            shown.iter().map(|(name, object)| format!("{name}={}", object["spec"])).collect::<Vec<_>>()
        };
        let all = ["noted", "labelled", "owners"].map(names);
        Ok(json!({"status": {"related": all.concat()}}))
    }
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", RELATED), hook);
    plane.run_for(1);
    let team = json!({"metadata": {"name": "t", "uid": "team"}, "spec": 1});
    plane.put(&("Team".to_owned(), Key::new("", "t")), team.clone());
    site(&mut plane, "a", json!({}));
    let mut owned = plane.get("Site", "a").unwrap().clone();
    owned["metadata"]["ownerReferences"] = json!([{"uid": "team"}]);
    plane.put(&address("a"), owned);
    site(&mut plane, "b", json!({}));
    plane.run_for(10);
    let related =
        |plane: &ControlPlane, name: &str| plane.get("Site", name).unwrap()["status"]["related"].clone();
    assert_eq!((related(&plane, "a"), related(&plane, "b")), (json!(["t=1"]), json!([])));
    let mut put = |kind: &str, (namespace, name): (&str, &str), field: &str, parent: &str, spec: u8| {
        let object = json!({
            "metadata": {"name": name, "namespace": namespace, field: {"example.com/site": parent}}, "spec": spec,
        });
        plane.put(&(kind.to_owned(), Key::new(namespace, name)), object);
        plane.run_for(10)
    };
    let runs = |told: &[String]| {
        told.iter().filter(|line| line.starts_with("Reconcile")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(runs(&put("Secret", ("ns", "s"), "annotations", "a", 2)), ["Reconcile ns/a"]);
    assert_eq!(runs(&put("Secret", ("other", "s"), "annotations", "ns/a", 3)), ["Reconcile ns/a"]);
    assert_eq!(runs(&put("Node", ("ns", "n"), "labels", "b", 4)), ["Reconcile ns/b"]);
    // One that changes its parent concerns both; one that names nobody concerns nobody.
    assert_eq!(
        runs(&put("Secret", ("ns", "s"), "annotations", "b", 2)),
        ["Reconcile ns/a", "Reconcile ns/b"]
    );
    assert_eq!(runs(&put("Secret", ("other", "s"), "annotations", "b", 3)), ["Reconcile ns/a"]);
    assert_eq!(runs(&put("Secret", ("ns", "z"), "annotations", "nobody", 3)), [""; 0]);
    assert_eq!((related(&plane, "a"), related(&plane, "b")), (json!(["t=1"]), json!(["s=2", "n=4"])));
    let mut team = team;
    team["spec"] = 5.into();
    plane.put(&("Team".to_owned(), Key::new("", "t")), team);
    assert_eq!(runs(&plane.run_for(10)), ["Reconcile ns/a"]);
    assert_eq!(related(&plane, "a"), json!(["t=5"]));
}

#[test]
fn as_many_keys_are_worked_on_as_the_binding_says_in_order_of_arrival() {
    let hooks = CONFIG.replace("kind: Site,", "kind: Site, concurrency: 2,");
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", &hooks), sites);
    plane.run_for(1);
    for name in ["c", "a", "b"] {
        site(&mut plane, name, json!({}));
    }
    // The hook runs for ten milliseconds, and the finalizer comes before it.
    let runs =
        |told: Vec<String>| told.into_iter().filter(|line| line.starts_with("Reconcile")).collect::<Vec<_>>();
    assert_eq!(runs(plane.run_for_millis(15)), ["Reconcile ns/c", "Reconcile ns/a"]);
    assert_eq!(runs(plane.run_for(10)), ["Reconcile ns/b"]);
}

#[test]
fn the_controller_of_a_module_that_is_off_does_nothing_until_it_is_on_again() {
    let files = files().module(10, "sites").hooks_only().hook("site.sh", CONFIG);
    let mut plane = ControlPlane::new(&files, sites);
    plane.send(config(1, &[]));
    plane.run_for(10);
    site(&mut plane, "a", json!({"maps": ["x"], "text": "1"}));
    plane.run_for(10);
    assert_eq!(plane.children("a"), ["x"]);
    plane.send(config(2, &[("sitesEnabled", "false")]));
    plane.run_for(10);
    site(&mut plane, "a", json!({"maps": ["y"], "text": "1"}));
    site(&mut plane, "b", json!({"maps": ["z"], "text": "1"}));
    plane.delete("Site", &Key::new("ns", "a"));
    assert_eq!(plane.run_for(600), [""; 0]);
    assert_eq!(plane.children("a"), ["x"]);
    plane.send(config(3, &[]));
    plane.run_for(10);
    assert!(plane.get("Site", "a").is_none());
    assert_eq!((plane.children("a"), plane.children("b")), (vec![], vec!["z"]));
}

#[test]
fn a_child_of_another_object_is_not_taken() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x"], "text": "1"}));
    plane.run_for(10);
    site(&mut plane, "b", json!({"maps": ["x"], "text": "2"}));
    let told = plane.run_for(1);
    assert!(
        told.iter().any(|line| line.contains("ConfigMap ns/x is there already, and is not a child of it")),
        "{told:#?}"
    );
    assert_eq!(plane.get("ConfigMap", "x").unwrap()["spec"]["text"], "1");
}

#[test]
fn what_is_there_without_being_a_child_is_not_taken_and_a_child_without_its_label_is() {
    let mut plane = started();
    let map = ("ConfigMap".to_owned(), Key::new("ns", "x"));
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "ns"}, "spec": {}});
    plane.put(&map, foreign);
    site(&mut plane, "a", json!({"maps": ["x"], "text": "1"}));
    let told = plane.run_for(1);
    assert!(
        told.iter().any(|line| line.contains("ns/x is there already, and is not a child of it")),
        "{told:#?}"
    );
    assert_eq!(plane.get("ConfigMap", "x").unwrap()["spec"], json!({}));
    plane.delete("ConfigMap", &map.1);
    plane.run_for(10);
    assert_eq!(plane.children("a"), ["x"]);
    // Somebody takes the label away: the owner reference says whose it is.
    let mut bare = plane.get("ConfigMap", "x").unwrap().clone();
    bare["metadata"]["labels"] = json!({});
    plane.put(&map, bare);
    plane.run_for(10);
    assert_eq!(plane.get("ConfigMap", "x").unwrap()["metadata"]["labels"]["addon-operator.io/child"], "true");
}

#[test]
fn children_come_in_order_and_those_behind_one_that_is_refused_wait_for_it() {
    let mut plane = started();
    let map = ("ConfigMap".to_owned(), Key::new("ns", "y"));
    let foreign =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y", "namespace": "ns"}});
    plane.put(&map, foreign);
    site(&mut plane, "a", json!({"maps": ["x", "y", "z"], "text": "1"}));
    plane.run_for(60);
    assert_eq!(plane.children("a"), ["x"]);
    plane.delete("ConfigMap", &map.1);
    let told = plane.run_for(600);
    let made: Vec<&String> = told.iter().filter(|line| line.starts_with("apply")).collect();
    assert_eq!(made, ["apply ConfigMap ns/y", "apply ConfigMap ns/z"]);
    // What changes is changed in order, too.
    plane.refusals.extend([Some("refused")]);
    site(&mut plane, "a", json!({"maps": ["x", "y", "z"], "text": "2"}));
    plane.run_for(2);
    let texts = |plane: &ControlPlane| {
        ["x", "y", "z"].map(|name| plane.get("ConfigMap", name).unwrap()["spec"]["text"].clone())
    };
    assert_eq!(texts(&plane), ["1", "1", "1"]);
    plane.run_for(60);
    assert_eq!(texts(&plane), ["2", "2", "2"]);
}

#[test]
fn many_changes_of_an_object_while_its_hook_runs_are_one_more_run() {
    let mut plane = started();
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    site(&mut plane, "a", json!({"text": "1"}));
    plane.run_for_millis(4);
    for number in 2..6 {
        site(&mut plane, "a", json!({"text": number.to_string()}));
        plane.run_for_millis(1);
    }
    let told = plane.run_for(10);
    // One ran already, so one more is to come, with what is so now.
    assert_eq!(told.iter().filter(|line| *line == "Reconcile ns/a").count(), 1, "{told:#?}");
    let status = &plane.get("Site", "a").unwrap()["status"];
    assert_eq!(status["observedGeneration"], plane.get("Site", "a").unwrap()["metadata"]["generation"]);
}

#[test]
fn an_empty_list_removes_all_children_of_a_living_object() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x", "y"], "services": ["s"], "text": "1"}));
    plane.run_for(10);
    site(&mut plane, "a", json!({"maps": [], "services": []}));
    let told = plane.run_for(10);
    let deleted: Vec<&String> = told.iter().filter(|line| line.starts_with("delete")).collect();
    assert_eq!(deleted, ["delete Service ns/s", "delete ConfigMap ns/y", "delete ConfigMap ns/x"]);
    assert_eq!(plane.children("a"), [""; 0]);
}

#[test]
fn what_the_api_server_refuses_is_tried_again() {
    let mut plane = started();
    plane.refusals.push_back(None);
    plane.refusals.push_back(Some("forbidden"));
    site(&mut plane, "a", json!({"maps": ["x"]}));
    let told = plane.run_for(1);
    assert_eq!(told.last().map(String::as_str), Some("failed: forbidden"));
    assert_eq!(
        plane.engine.view().journal[0].failure.as_ref().map(|failure| failure.kind),
        Some(FailureKind::Cluster)
    );
    plane.run_for(10);
    assert_eq!(plane.children("a"), ["x"]);
}

#[test]
fn that_somebody_else_was_faster_is_no_failure() {
    let mut plane = started();
    site(&mut plane, "a", json!({"maps": ["x"]}));
    // The finalizer is under way, and the object is changed before it arrives.
    plane.run_for_millis(3);
    site(&mut plane, "a", json!({"maps": ["y"]}));
    plane.run_for_millis(500);
    assert_eq!((plane.failures, plane.children("a")), (0, vec!["y"]));
    assert!(plane.announcements.is_empty());
}

#[test]
fn a_finalizer_that_is_not_seen_yet_is_not_written_again() {
    let mut plane = ControlPlane::new(&follower(), sites);
    plane.run_for(1);
    plane.watch_lag = 20;
    site(&mut plane, "a", json!({"maps": ["x"]}));
    // The write was answered, the watch does not show it yet, and something else wakes the key.
    for number in 0..10 {
        plane.run_for_millis(5);
        team(&mut plane, number);
    }
    plane.run_for_millis(200);
    assert_eq!((plane.children("a"), plane.conflicts), (vec!["x"], 0));
}

#[test]
fn a_write_that_somebody_else_was_faster_than_is_repeated_as_soon_as_that_is_seen() {
    let mut plane = started();
    plane.watch_lag = 20;
    site(&mut plane, "a", json!({"maps": ["x"]}));
    // Somebody else adds the same finalizer while ours is under way: the object looks as ours was to be.
    plane.run_for_millis(21);
    let mut object = plane.get("Site", "a").unwrap().clone();
    object["metadata"]["finalizers"] = json!(["example.com/site"]);
    plane.put(&("Site".to_owned(), Key::new("ns", "a")), object);
    plane.run_for_millis(200);
    assert_eq!((plane.children("a"), plane.conflicts, plane.failures), (vec!["x"], 1, 0));
}

#[test]
fn of_a_field_that_can_not_change_it_is_said_what_helps() {
    let mut plane = started();
    plane
        .refusals
        .extend([None, Some("ConfigMap \"x\" is invalid: data: field is immutable when `immutable` is set")]);
    site(&mut plane, "a", json!({"maps": ["x"]}));
    plane.run_for(1);
    let failure = plane.engine.view().journal[0].failure.clone().unwrap();
    assert!(failure.advice.as_ref().is_some_and(|advice| advice.contains("update: Recreate")), "{failure:?}");
}

#[test]
fn two_hooks_can_not_have_one_finalizer_on_one_kind() {
    let files = controller()
        .module(1, "first")
        .hook("a.sh", CONFIG)
        .module(2, "second")
        .hook("b.sh", "reconcile: [{apiVersion: example.com/v1, kind: Site}]");
    let catalog = files.catalog().with_one_hook_for_each_finalizer();
    let failure = catalog.modules[0].broken.as_ref().unwrap();
    assert_eq!(
        failure.message,
        "hook first/a.sh has the same finalizer for the same kind as hook global/site.sh"
    );
    assert_eq!(catalog.modules[1].broken, None);
    let files = crate::build::files()
        .module(1, "one")
        .hook("a.sh", CONFIG)
        .hook("b.sh", CONFIG)
        .module(2, "two")
        .hook("c.sh", CONFIG);
    let catalog = files.catalog().with_one_hook_for_each_finalizer();
    let failure = catalog.modules[0].broken.as_ref().unwrap();
    assert_eq!(failure.message, "hook one/b.sh has the same finalizer for the same kind as hook one/a.sh");
    assert_eq!(catalog.modules[1].broken, None, "nothing of the first one is used");
    let twice = controller().global_hook("twice.sh", CONFIG).catalog().with_one_hook_for_each_finalizer();
    let broken =
        twice.global.broken.iter().filter_map(|part| part.hook.as_ref()).map(engine::HookName::as_str);
    assert_eq!((broken.collect::<Vec<_>>(), twice.global.hooks.len()), (vec!["twice.sh"], 1));
}

#[test]
fn a_module_that_is_read_alone_has_no_finalizer_of_a_hook_of_another_one() {
    let module = |files: Files, order, name| files.module(order, name).hooks_only().hook("site.sh", CONFIG);
    let files = module(module(files(), 1, "first"), 2, "second");
    let mut refused = files.clone();
    let broken = files.catalog().with_one_hook_for_each_finalizer().modules[1].broken.clone();
    refused.modules[1].broken = broken;
    // Its files are read again with the next try.
    let alone = files.modules[1].clone();
    let world = World::new(&refused).loads(alone.clone()).loads(alone).lived(12_000);
    let module = &world.view().modules[1];
    let failure = module.last_error.as_ref().map(|failure| failure.message.clone());
    let why = "hook second/site.sh has the same finalizer for the same kind as hook first/site.sh";
    assert_eq!((module.phase, failure.as_deref()), ("failed", Some(why)));
}

#[test]
fn the_generation_that_was_observed_moves_also_if_a_hook_has_nothing_to_say_of_the_status() {
    let says = |context: &Value| {
        let says = context["object"]["spec"]["says"] == true;
        Ok(if says { json!({"status": {"ready": true}}) } else { json!({}) })
    };
    let mut plane = ControlPlane::new(&controller(), says);
    plane.run_for(1);
    site(&mut plane, "a", json!({"says": false}));
    assert!(!plane.run_for(10).iter().any(|line| line.starts_with("status")), "it may have none");
    site(&mut plane, "a", json!({"says": true}));
    plane.run_for(10);
    site(&mut plane, "a", json!({"says": false, "other": 1}));
    let told = plane.run_for(3_600);
    assert_eq!(told, ["Reconcile ns/a", r#"status {"observedGeneration":3,"ready":true} of ns/a"#]);
    plane.restart();
    let told = plane.run_for(3_600);
    assert_eq!(told, ["Reconcile ns/a"], "it is so already");
}
