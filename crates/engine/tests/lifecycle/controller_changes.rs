//! Files of a controller that change while the work on its keys is under way.

use engine::snapshot::Key;
use serde_json::json;

use crate::build::{Files, files};
use crate::control_plane::ControlPlane;
use crate::controllers::{site, sites};

/// A controller in a file and a queue of these names.
fn controller(file: &str, queue: &str) -> Files {
    let config = format!(
        "reconcile: [{{name: site, apiVersion: example.com/v1, kind: Site, finalizer: example.com/site, queue: {queue}, \
         children: [{{apiVersion: v1, kind: ConfigMap}}]}}]"
    );
    files().global_hook(file, &config)
}

/// Changes the files at each moment of the work on a key. `ControlPlane` sees to it that no key runs twice at once.
fn change_at_all_moments(change: impl Fn(usize) -> Files) {
    let mut plane = ControlPlane::new(&change(0), sites);
    plane.run_for(1);
    site(&mut plane, "a", json!({"maps": ["x"], "text": "first"}));
    plane.run_for(10);
    for turn in 1..40 {
        let text = format!("at {turn}");
        site(&mut plane, "a", json!({"maps": ["x"], "text": text}));
        plane.run_for_millis(u64::try_from(turn).unwrap() % 31);
        plane.reload(&change(turn));
        plane.run_for(10);
        assert_eq!(plane.get("ConfigMap", "x").unwrap()["spec"]["text"], text.as_str());
        assert!(!plane.has_work(), "turn {turn}: {:#?}", plane.engine.view().queues);
    }
    site(&mut plane, "a", json!({"maps": ["x"], "text": "last"}));
    plane.delete("Site", &Key::new("ns", "a"));
    plane.run_for_millis(3);
    plane.reload(&change(40));
    plane.run_for(10);
    assert!(plane.objects.is_empty() && !plane.has_work(), "{:#?}", plane.objects);
    assert_eq!((plane.failures, plane.announcements.len()), (0, 0), "{:?}", plane.announcements);
}

#[test]
fn a_key_whose_queue_gets_another_name_is_one_task_in_one_queue_at_any_moment() {
    change_at_all_moments(|turn| controller("site.sh", ["one", "two", "three"][turn % 3]));
    // It comes back to a queue in which something of it may be under way.
    change_at_all_moments(|turn| controller("site.sh", ["one", "two"][turn % 2]));
}

#[test]
fn a_key_whose_queue_changes_twice_while_its_hook_runs_waits_for_the_end_of_the_run() {
    let mut plane = ControlPlane::new(&controller("site.sh", "one"), sites);
    plane.run_for(1);
    site(&mut plane, "a", json!({"maps": ["x"]}));
    plane.run_for(10);
    site(&mut plane, "a", json!({"maps": ["x"], "text": "new"}));
    assert_eq!(plane.run_for_millis(3), ["Reconcile ns/a"]);
    plane.reload(&controller("site.sh", "two"));
    plane.run_for_millis(2);
    let tasks = plane.engine.view().queues.into_iter().flat_map(|queue| queue.tasks);
    let waits: Vec<_> = tasks.filter_map(|task| task.waits_for).collect();
    assert_eq!(waits, ["the end of what hook global/site.sh, binding site began with it"]);
    plane.reload(&controller("site.sh", "one"));
    plane.run_for(10);
    assert_eq!(plane.get("ConfigMap", "x").unwrap()["spec"]["text"], "new");
    assert!(!plane.has_work() && plane.failures == 0);
}

#[test]
fn a_key_whose_hook_gets_another_file_waits_for_the_run_of_the_one_before() {
    change_at_all_moments(|turn| controller(["site.sh", "again.sh"][turn % 2], "one"));
    change_at_all_moments(|turn| controller(["site.sh", "again.sh"][turn % 2], ["one", "two"][turn % 2]));
}
