//! Upgrades that go round in circles, and those that follow their values.

use engine::hook::WatchEvent;
use engine::{Drift, ReleaseAction};
use serde_json::json;

use crate::build::{PODS, config, drifted, files, sets};
use crate::world::World;

#[test]
fn values_that_go_back_and_forth_are_followed_and_no_loop() {
    let mut world = World::new(&files().module(10, "web").hook("pods.sh", PODS));
    world = world.hook("web/pods.sh", Ok(sets("/web/pods", &json!(2)))).settled();
    for number in 1..9 {
        world = world.hook("web/pods.sh", Ok(sets("/web/pods", &json!(2 + number % 2))));
        world = world.change(60_000, "Pod", WatchEvent::Modified, "a");
        let log = world.run();
        assert!(log.contains("Upgraded"), "{number}: {log}");
        assert_eq!(world.view().modules[0].phase, "running");
    }
}

#[test]
fn a_loop_that_begins_with_new_values_is_a_loop() {
    let mut world = World::new(&files().module(10, "web")).settled();
    world.after(60_000, config(101, &[("web", "x: 1")]));
    for _ in 0..3 {
        world = world.release("web", Ok(ReleaseAction::Upgraded));
        world.after(60_000, drifted("web", Drift::Absent("ns/ConfigMap/x".into())));
    }
    assert_eq!(world.view().modules[0].phase, "parked");
}

#[test]
fn a_parked_module_goes_on_when_the_global_values_change_that_its_chart_reads() {
    let mut world = World::new(&files().module(10, "web")).settled();
    for _ in 0..3 {
        world = world.release("web", Ok(ReleaseAction::Upgraded));
        world.after(60_000, drifted("web", Drift::Absent("ns/ConfigMap/x".into())));
    }
    assert_eq!(world.view().modules[0].phase, "parked");
    let log = world.after(60_000, config(101, &[("global", "x: 1")]));
    assert!(log.contains("Upgraded"), "{log}");
    assert_eq!(world.view().modules[0].phase, "running");
}
