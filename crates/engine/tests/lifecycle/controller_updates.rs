//! Children that are not as they should be: which are changed where they are, which are made again, and when.

use engine::snapshot::Key;
use serde_json::{Value, json};
use values::Checksum;

use crate::build::files;
use crate::control_plane::ControlPlane;
use crate::controllers::{site, sites};

/// A controller whose Services are changed in this way.
fn started(update: &str) -> ControlPlane {
    let config = format!(
        "reconcile: [{{name: site, apiVersion: example.com/v1, kind: Site, finalizer: example.com/site, \
         children: [{{apiVersion: v1, kind: ConfigMap}}, {{apiVersion: v1, kind: Service, update: {update}}}]}}]"
    );
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", &config), sites);
    plane.run_for(1);
    plane
}

/// Returns what became of children.
fn changes(told: &[String]) -> Vec<&str> {
    let is_change =
        |line: &&str| ["apply", "delete", "annotations"].iter().any(|word| line.starts_with(word));
    told.iter().map(String::as_str).filter(is_change).collect()
}

fn service(name: &str) -> (String, Key) {
    ("Service".to_owned(), Key::new("ns", name))
}

/// Takes an annotation from a Service.
fn strip(plane: &mut ControlPlane, name: &str, annotation: &str) {
    let mut object = plane.objects[&service(name)].clone();
    assert!(object["metadata"]["annotations"].as_object_mut().unwrap().remove(annotation).is_some());
    plane.put(&service(name), object);
}

const APPLIED: &str = "addon-operator.io/applied";
const ORDER: &str = "addon-operator.io/order";

#[test]
fn of_a_child_that_has_another_place_only_the_place_is_written_however_it_is_changed() {
    for update in ["Recreate", "OnDelete", "InPlace"] {
        let mut plane = started(update);
        site(&mut plane, "a", json!({"services": ["s"], "text": "1"}));
        plane.run_for(10);
        site(&mut plane, "a", json!({"maps": ["x", "y"], "services": ["s"], "text": "1"}));
        let told = plane.run_for(10);
        let moved = r#"annotations {"addon-operator.io/order":"2"} of ns/s"#;
        assert_eq!(changes(&told), ["apply ConfigMap ns/x", "apply ConfigMap ns/y", moved], "{update}");
        plane.restart();
        assert_eq!(changes(&plane.run_for(3_600)), [""; 0], "{update}");
        // It was made before the others, and goes before them.
        site(&mut plane, "a", json!({"text": "1"}));
        let gone = ["delete Service ns/s", "delete ConfigMap ns/y", "delete ConfigMap ns/x"];
        assert_eq!(changes(&plane.run_for(10)), gone, "{update}");
    }
}

#[test]
fn a_hook_that_names_its_children_in_another_order_each_time_is_slowed_down_and_told() {
    let says = |context: &Value| {
        let count = context["object"]["status"]["count"].as_u64().unwrap_or_default();
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}});
        let names = if count.is_multiple_of(2) { ["x", "y"] } else { ["y", "x"] };
        Ok(json!({"children": names.map(map), "status": {"count": count + 1}}))
    };
    let config = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, children: [{apiVersion: v1, kind: ConfigMap}]}]";
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", config), says);
    plane.run_for(1);
    site(&mut plane, "a", json!({}));
    let runs = plane.run_for(3_600).iter().filter(|line| line.starts_with("Reconcile")).count();
    assert!((20..60).contains(&runs), "{runs}");
    let message = &plane.announcements[0].message;
    assert!(message.contains("differs at its place in children"), "{message}");
}

#[test]
fn a_child_that_somebody_took_our_note_from_is_made_again_only_if_it_differs() {
    let mut plane = started("Recreate");
    site(&mut plane, "a", json!({"services": ["s"], "text": "1"}));
    plane.run_for(10);
    let noted = plane.objects[&service("s")]["metadata"]["annotations"][APPLIED].clone();
    strip(&mut plane, "s", APPLIED);
    assert_eq!(changes(&plane.run_for(10)), ["apply Service ns/s"]);
    assert_eq!(plane.objects[&service("s")]["metadata"]["annotations"][APPLIED], noted);
    strip(&mut plane, "s", APPLIED);
    site(&mut plane, "a", json!({"services": ["s"], "text": "2"}));
    plane.restart();
    assert_eq!(changes(&plane.run_for(10)), ["delete Service ns/s", "apply Service ns/s"]);
}

#[test]
fn a_child_that_an_earlier_version_made_is_as_declared_though_it_noted_another_checksum() {
    let mut plane = started("Recreate");
    site(&mut plane, "a", json!({"maps": ["x"], "services": ["s"], "text": "1"}));
    plane.run_for(10);
    let mut object = plane.objects[&service("s")].clone();
    let now = object["metadata"]["annotations"][APPLIED].clone();
    // The place was in it.
    let mut declared = object.clone();
    let metadata = declared["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "generation"] {
        assert!(metadata.remove(field).is_some());
    }
    metadata["ownerReferences"][0].as_object_mut().unwrap().remove("blockOwnerDeletion").unwrap();
    let annotations = metadata["annotations"].as_object_mut().unwrap();
    annotations.retain(|name, _| name == ORDER);
    object["metadata"]["annotations"][APPLIED] = Checksum::of(&declared).to_string().into();
    assert_ne!(object["metadata"]["annotations"][APPLIED], now);
    plane.put(&service("s"), object);
    plane.restart();
    assert_eq!(changes(&plane.run_for(10)), ["apply Service ns/s"]);
    assert_eq!(plane.objects[&service("s")]["metadata"]["annotations"][APPLIED], now);
}

#[test]
fn what_would_be_refused_takes_the_place_of_nothing() {
    let mut plane = started("Recreate");
    site(&mut plane, "a", json!({"services": ["s"], "text": "1"}));
    plane.run_for(10);
    site(&mut plane, "a", json!({"services": ["s"], "text": "invalid"}));
    let told = plane.run_for(600);
    assert!(told.contains(&"failed: ns/s: spec.text is invalid".to_owned()), "{told:#?}");
    assert_eq!(changes(&told), [""; 0]);
    assert_eq!(plane.get("Service", "s").unwrap()["spec"]["text"], "1");
    site(&mut plane, "a", json!({"services": ["s"], "text": "2"}));
    assert_eq!(changes(&plane.run_for(10)), ["delete Service ns/s", "apply Service ns/s"]);
}

#[test]
fn children_are_made_again_one_after_the_other_and_what_is_behind_one_that_does_not_come_back_stays() {
    let mut plane = started("Recreate");
    site(&mut plane, "a", json!({"services": ["s", "t", "u"], "text": "1"}));
    plane.run_for(10);
    let mut held = plane.objects[&service("t")].clone();
    held["metadata"]["finalizers"] = json!(["foreign/one"]);
    plane.put(&service("t"), held);
    site(&mut plane, "a", json!({"services": ["s", "t", "u"], "text": "2"}));
    let until_held = ["delete Service ns/s", "apply Service ns/s", "delete Service ns/t"];
    assert_eq!(changes(&plane.run_for(600)), until_held);
    let mut free = plane.objects[&service("t")].clone();
    free["metadata"]["finalizers"] = json!([]);
    plane.put(&service("t"), free);
    let others = ["apply Service ns/t", "delete Service ns/u", "apply Service ns/u"];
    assert_eq!(changes(&plane.run_for(10)), others);
    assert!(!plane.has_work());
}

#[test]
fn what_somebody_writes_into_a_secret_that_is_declared_with_texts_is_taken_back() {
    let says = |_: &Value| {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "ns"}, "stringData": {"k": "word"}});
        Ok(json!({"children": [secret]}))
    };
    let config = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, children: [{apiVersion: v1, kind: Secret, update: Recreate}]}]";
    let mut plane = ControlPlane::new(&files().global_hook("site.sh", config), says);
    plane.run_for(1);
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    let address = ("Secret".to_owned(), Key::new("ns", "x"));
    let word = json!({"k": "d29yZA=="});
    assert_eq!(
        (&plane.objects[&address]["data"], &plane.objects[&address]["stringData"]),
        (&word, &Value::Null)
    );
    for forged in [json!({"k": "aGFja2Vk"}), json!({})] {
        let mut secret = plane.objects[&address].clone();
        secret["data"] = forged;
        plane.put(&address, secret);
        assert_eq!(changes(&plane.run_for(10)), ["apply Secret ns/x"]);
        assert_eq!(plane.objects[&address]["data"], word);
    }
    plane.restart();
    assert_eq!(changes(&plane.run_for(10)), [""; 0]);
}

#[test]
fn what_somebody_adds_in_fields_that_are_the_hooks_alone_goes_and_what_is_beside_stays() {
    for update in ["InPlace, exact: [spec]", "Recreate, exact: [spec]"] {
        let mut plane = started(update);
        site(&mut plane, "a", json!({"services": ["s"], "text": "1"}));
        plane.run_for(10);
        let mut object = plane.objects[&service("s")].clone();
        let uid = object["metadata"]["uid"].clone();
        object["spec"]["other"] = json!({"x": 1});
        object["more"] = 1.into();
        plane.put(&service("s"), object.clone());
        let told = plane.run_for(10);
        assert!(!told.iter().any(|line| line.starts_with("apply")), "{told:#?}");
        let living = &plane.objects[&service("s")];
        assert_eq!((&living["spec"], &living["more"]), (&json!({"text": "1"}), &json!(1)), "{update}");
        assert_eq!(living["metadata"]["uid"], uid);
        // What is wrong and what is too much go together.
        object["spec"]["text"] = "hacked".into();
        plane.put(&service("s"), object);
        plane.run_for(10);
        assert_eq!(plane.objects[&service("s")]["spec"], json!({"text": "1"}), "{update}");
        assert_eq!(plane.run_for(3_600), [""; 0], "{update}");
    }
    let mut plane = started("InPlace");
    site(&mut plane, "a", json!({"services": ["s"], "text": "1"}));
    plane.run_for(10);
    let mut object = plane.objects[&service("s")].clone();
    object["spec"]["other"] = 1.into();
    plane.put(&service("s"), object.clone());
    plane.run_for(10);
    assert_eq!(plane.objects[&service("s")]["spec"]["other"], 1, "it may be of somebody else");
}
