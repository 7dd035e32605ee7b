//! What wakes objects whose controller is a hook, and when their hook runs then.

use engine::Event;
use engine::hook::reconcile::ObjectKind;
use engine::snapshot::Key;
use serde_json::{Value, json};

use crate::build::files;
use crate::control_plane::ControlPlane;
use crate::controllers::{follower, site, sites, team};

#[test]
fn what_an_object_names_wakes_it_and_is_shown_to_it() {
    const NAMED: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, related: [\
        {name: keys, apiVersion: v1, kind: Secret, namedBy: [spec.key.name, spec.others.name]}]}]";
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(context: &Value) -> Result<Value, &'static str> {
        let shown = context["related"]["keys"].as_object().unwrap();
        Ok(json!({"status": {"keys": shown.keys().collect::<Vec<_>>()}}))
    }
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", NAMED), hook);
    plane.run_for(1);
    let put = |plane: &mut ControlPlane, (namespace, name): (&str, &str), spec: u8| {
        let object = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
        plane.put(&("Secret".to_owned(), Key::new(namespace, name)), object);
        let told = plane.run_for(10);
        told.into_iter().filter(|line| line.starts_with("Reconcile")).collect::<Vec<_>>()
    };
    let keys = |plane: &ControlPlane, name: &str| plane.get("Site", name).unwrap()["status"]["keys"].clone();
    site(
        &mut plane,
        "a",
        json!({"key": {"name": "x"}, "others": [{"name": "y"}, {"name": 5}, {"name": ""}]}),
    );
    site(&mut plane, "b", json!({"key": {"name": "x"}}));
    site(&mut plane, "c", json!({"key": {"name": "other/x"}}));
    plane.run_for(10);
    assert_eq!(keys(&plane, "a"), json!([]));
    // One may be named by many, and is known when it comes; what is in another namespace is not shown.
    assert_eq!(put(&mut plane, ("ns", "x"), 1), ["Reconcile ns/a", "Reconcile ns/b"]);
    assert_eq!(put(&mut plane, ("ns", "y"), 1), ["Reconcile ns/a"]);
    assert_eq!(put(&mut plane, ("other", "x"), 1), [""; 0]);
    assert_eq!(put(&mut plane, ("ns", "z"), 1), [""; 0]);
    assert_eq!(["a", "b", "c"].map(|name| keys(&plane, name)), [json!(["x", "y"]), json!(["x"]), json!([])]);
    // Who names another one hears of that one only.
    site(&mut plane, "b", json!({"key": {"name": "z"}}));
    plane.run_for(10);
    assert_eq!(keys(&plane, "b"), json!(["z"]));
    assert_eq!(put(&mut plane, ("ns", "x"), 2), ["Reconcile ns/a"]);
    plane.delete("Secret", &Key::new("ns", "z"));
    plane.run_for(10);
    assert_eq!(keys(&plane, "b"), json!([]));
    // Nobody is woken for one that is gone.
    plane.delete("Site", &Key::new("ns", "a"));
    plane.run_for(10);
    assert_eq!(put(&mut plane, ("ns", "x"), 3), [""; 0]);
}

#[test]
fn an_object_that_is_asked_for_is_looked_at_whether_it_changed_or_not() {
    const SITE: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, children: [{apiVersion: v1, kind: ConfigMap}]}]";
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", SITE), sites);
    plane.run_for(1);
    site(&mut plane, "a", json!({"maps": ["x"]}));
    site(&mut plane, "b", json!({"maps": ["y"]}));
    plane.run_for(10);
    let ask = |plane: &mut ControlPlane, version: &str, name: &str| -> Vec<String> {
        let kind = ObjectKind { api_version: version.to_owned(), kind: "Site".to_owned() };
        plane.send(Event::KeyRequested { kind, key: Key::new("ns", name) });
        plane.run_for(10).into_iter().filter(|line| line.starts_with("Reconcile")).collect()
    };
    assert_eq!(ask(&mut plane, "example.com/v1", "a"), ["Reconcile ns/a"]);
    assert_eq!(ask(&mut plane, "example.com/v1", "c"), [""; 0]);
    assert_eq!(ask(&mut plane, "example.com/v2", "a"), [""; 0]);
    // Who is off looks after nothing.
    plane.reload(&files());
    assert_eq!(ask(&mut plane, "example.com/v1", "a"), [""; 0]);
    assert!(!plane.has_work() && plane.failures == 0);
}

#[test]
fn an_object_names_so_many_others_and_no_more() {
    const NAMED: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, related: [\
        {name: keys, apiVersion: v1, kind: Secret, namedBy: [spec.names]}]}]";
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(context: &Value) -> Result<Value, &'static str> {
        Ok(json!({"status": {"keys": context["related"]["keys"].as_object().unwrap().len()}}))
    }
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", NAMED), hook);
    for number in 0..250 {
        let name = format!("s{number:03}");
        let object = json!({"metadata": {"name": name, "namespace": "ns"}});
        plane.put(&("Secret".to_owned(), Key::new("ns", &name)), object);
    }
    let names: Vec<String> = (0..250).map(|number| format!("s{number:03}")).collect();
    site(&mut plane, "a", json!({"names": names}));
    plane.run_for(10);
    assert_eq!(plane.get("Site", "a").unwrap()["status"]["keys"], 200);
}

#[test]
fn after_a_run_a_key_rests_as_long_as_that_took_but_for_its_own_changes() {
    let mut plane = ControlPlane::new(&follower(), sites);
    plane.run_for(1);
    site(&mut plane, "a", json!({}));
    team(&mut plane, 0);
    plane.run_for(10);
    let runs = |told: Vec<String>| told.iter().filter(|line| line.starts_with("Reconcile")).count();
    // The first change is not waited with. The run takes 10 ms.
    team(&mut plane, 1);
    assert_eq!(runs(plane.run_for_millis(2)), 1);
    let mut more = 0;
    for number in 2..8 {
        team(&mut plane, number);
        more += runs(plane.run_for_millis(3));
    }
    assert_eq!(more, 0, "it rests");
    assert_eq!(runs(plane.run_for(10)), 1, "one run sees all changes");
    team(&mut plane, 9);
    plane.run_for_millis(12);
    team(&mut plane, 10);
    assert_eq!(runs(plane.run_for_millis(2)), 0, "it rests");
    site(&mut plane, "a", json!({"other": 1}));
    assert_eq!(runs(plane.run_for_millis(2)), 1, "its own change is not waited with");
    // What was waited with is seen by that run.
    assert_eq!(runs(plane.run_for(10)), 0);
}

#[test]
fn of_a_child_with_a_filter_only_what_that_sees_wakes_its_object() {
    const FILTERED: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, children: [\
        {apiVersion: v1, kind: ConfigMap, jqFilter: .spec}, {apiVersion: v1, kind: Service}]}]";
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", FILTERED), sites);
    plane.run_for(1);
    site(&mut plane, "a", json!({"maps": ["m"], "services": ["s"], "text": "x"}));
    plane.run_for(10);
    let change = |plane: &mut ControlPlane, kind: &str, name: &str, field: &str| {
        let address = (kind.to_owned(), Key::new("ns", name));
        let mut object = plane.objects.get(&address).unwrap().clone();
        object[field] = json!({"text": "by hand"});
        plane.put(&address, object);
        let told = plane.run_for(10);
        told.iter().filter(|line| line.starts_with("Reconcile")).count()
    };
    assert_eq!(change(&mut plane, "Service", "s", "status"), 1);
    assert_eq!(change(&mut plane, "ConfigMap", "m", "status"), 0);
    // What the filter sees is as it should be again.
    assert!(change(&mut plane, "ConfigMap", "m", "spec") >= 1);
    assert_eq!(plane.get("ConfigMap", "m").unwrap()["spec"], json!({"text": "x"}));
    // One that is gone is made again, whatever the filter sees.
    plane.delete("ConfigMap", &Key::new("ns", "m"));
    plane.run_for(10);
    assert_eq!(plane.get("ConfigMap", "m").unwrap()["metadata"]["deletionTimestamp"], Value::Null);
    // The hook is shown a child as it is, not as the filter saw it last.
    assert_eq!(change(&mut plane, "ConfigMap", "m", "status"), 0);
    site(&mut plane, "a", json!({"maps": ["m"], "services": [], "text": "y"}));
    plane.run_for(10);
    assert_eq!(plane.get("ConfigMap", "m").unwrap()["spec"], json!({"text": "y"}));
    assert_eq!(plane.children("a"), ["m"]);
}
