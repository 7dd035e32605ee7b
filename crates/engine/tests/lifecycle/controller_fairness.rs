//! Which key has the next turn while its hook may not run as often as keys ask for it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::build::{Files, files};
use crate::control_plane::ControlPlane;
use crate::controllers::{site, sites};

/// A controller whose hook runs once in three seconds, in one queue, or as two bindings in two.
fn slow(is_twice: bool) -> Files {
    let binding = |name: &str, kind: &str| {
        format!(
            "{{name: {name}, apiVersion: example.com/v1, kind: {kind}, finalizer: example.com/site, concurrency: 5}}"
        )
    };
    let other = if is_twice { format!(", {}", binding("other", "Team")) } else { String::new() };
    let settings = "{executionMinInterval: 3s, executionBurst: 1}";
    files().global_hook(
        "site.sh",
        &format!("{{settings: {settings}, reconcile: [{}{other}]}}", binding("site", "Site")),
    )
}

/// Returns how often each object was shown.
fn runs(told: &[String]) -> BTreeMap<&str, usize> {
    let mut all = BTreeMap::new();
    for name in told.iter().filter_map(|line| line.strip_prefix("Reconcile ns/")) {
        *all.entry(name).or_default() += 1;
    }
    all
}

#[test]
fn who_waited_longest_for_the_interval_of_its_hook_runs_next_whoever_else_changes_or_fails() {
    let mut plane = ControlPlane::new(&slow(false), sites);
    plane.run_for(1);
    for name in ["f1", "f2", "f3", "f4", "f5"] {
        site(&mut plane, name, json!({"fails": name == "f2"}));
    }
    let mut told = plane.run_for_millis(200);
    for number in 0..40 {
        // Somebody changes two of them again and again.
        for name in ["f1", "f2"] {
            site(&mut plane, name, json!({"fails": name == "f2", "other": number}));
        }
        told.extend(plane.run_for_millis(731));
    }
    let runs = runs(&told);
    // In half a minute there are ten runs.
    assert_eq!(runs.len(), 5, "{runs:?}");
    let late = ["f3", "f4", "f5"].map(|name| runs[name]);
    assert_eq!(late, [1; 3], "{runs:?}");
    let first: Vec<&String> = told.iter().filter(|line| line.starts_with("Reconcile")).take(5).collect();
    let expected = ["f1", "f2", "f3", "f4", "f5"].map(|name| format!("Reconcile ns/{name}"));
    assert_eq!(first, expected.iter().collect::<Vec<_>>());
}

#[test]
fn the_bindings_of_a_hook_share_its_turns() {
    let says = |_: &Value| Ok(json!({}));
    let mut plane = ControlPlane::new(&slow(true), says);
    plane.run_for(1);
    let mut told = Vec::new();
    for number in 0..40 {
        // Its queue is the first by name.
        let team = json!({"metadata": {"name": "t", "namespace": "ns", "finalizers": ["example.com/site"]}, "spec": number});
        let address = ("Team".to_owned(), engine::snapshot::Key::new("ns", "t"));
        let known = plane.objects.get(&address).cloned();
        let team = known.map_or(team, |mut known| {
            known["spec"] = number.into();
            known
        });
        plane.put(&address, team);
        site(&mut plane, "s", json!({"number": number}));
        told.extend(plane.run_for_millis(731));
    }
    let runs = runs(&told);
    assert!(runs["s"].abs_diff(runs["t"]) <= 1, "{runs:?}");
}
