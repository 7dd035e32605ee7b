//! Modules that are withdrawn before they ran since the start of the operator: their removals are those of modules that ran.

use engine::view::why;
use serde_json::json;

use crate::build::{config as config_map, files};
use crate::repositories::{addon, digest, sourced};
use crate::world::World;

const ON: [(&str, &str); 2] = [("aEnabled", "true"), ("bEnabled", "true")];

/// How long a module of files keeps failing.
const LONG: usize = 1_000;

/// What is done for both modules, if all of it is done once.
const BOTH: [&str; 6] =
    ["hook b/bye.sh", "uninstall b", "hook b/end.sh", "hook a/bye.sh", "uninstall a", "hook a/end.sh"];

/// A configuration `x` with the modules `a` and `b`, which run.
fn running() -> World {
    let mut world = sourced(&files().module(10, "base").hook("start.sh", "onStartup: 1"));
    for (number, name) in (1..).zip(["a", "b", "c"]) {
        world.bundle(number, name, &[("bye.sh", "beforeDeleteHelm: 1"), ("end.sh", "afterDeleteHelm: 1")]);
    }
    let [a, b, c] = [addon("a", "1.0.0", 1), addon("b", "1.0.0", 2), addon("c", "1.0.0", 3)];
    world.offers("both", Ok(vec![a.clone(), b.clone()]));
    world.offers("one", Ok(vec![a.clone()]));
    world.offers("three", Ok(vec![a, b, c]));
    world.send_in(0, config_map(200, &ON));
    world.applies("x", &["both"]);
    world.run_for(5_000);
    assert_eq!(world.states("x"), ["a Running", "b Running"]);
    world
}

/// Returns what was done to remove modules, in its order.
fn removals(trace: &str) -> Vec<String> {
    let step = |line: &str| {
        let (_, effect) = line.split_once("     ")?;
        let effect = effect.strip_prefix("run ").unwrap_or(effect);
        let is_removal =
            effect.starts_with("uninstall ") || effect.contains("/bye.sh") || effect.contains("/end.sh");
        let words: Vec<&str> = effect.split(' ').take(2).collect();
        is_removal.then(|| words.join(" "))
    };
    trace.lines().filter_map(step).collect()
}

fn is_there(world: &World) -> bool {
    world.repositories.objects.contains_key("x")
}

#[test]
fn what_was_deleted_while_nobody_looked_is_removed_as_what_ran_is() {
    for is_held_up in [false, true] {
        let mut world = running();
        world.deletes("x");
        if is_held_up {
            world.break_hook("base/start.sh", LONG);
        }
        world.restarts_flagged(&ON);
        let trace = world.run_for(4_000);
        assert_eq!(removals(&trace), BOTH, "{is_held_up}: {trace}");
        let last = world.repositories.writes.last().unwrap();
        assert!(!is_there(&world) && last == "x x finalizers []", "{is_held_up}: {last} {trace}");
        assert!(world.deployed.keys().all(|name| name == "base"), "{is_held_up}");
        // Nothing of it is done once more behind the first converge.
        world.mend_hook("base/start.sh");
        assert_eq!(removals(&world.run_for(60_000)), Vec::<String>::new(), "{is_held_up}");
    }
}

#[test]
fn a_last_hook_that_fails_is_waited_for_and_tried_again() {
    // Deleted, or changed so that it does not bring b any more; switched off by then, too; behind what fails, and not.
    for (is_deleted, flags, is_held_up) in [
        (true, &ON[..], false),
        (true, &ON[..], true),
        (true, &ON[..1], false),
        (true, &ON[..1], true),
        (false, &ON[..], false),
        (false, &ON[..1], true),
    ] {
        let case = format!("{is_deleted} {flags:?} {is_held_up}");
        let mut world = running().fails("b/end.sh", 3);
        if is_deleted {
            world.deletes("x");
        } else {
            world.applies("x", &["one"]);
        }
        if is_held_up {
            world.break_hook("base/start.sh", LONG);
        }
        world.restarts_flagged(flags);
        let mut trace = world.run_for(14_000);
        assert_eq!(trace.matches("run hook b/end.sh").count(), 3, "{case}: {trace}");
        assert!(is_there(&world) && world.repositories.owed.contains("b"), "{case}: {trace}");
        if is_deleted {
            let why = world.told(|view, format| why::source(view, "x", format).unwrap().text());
            assert!(why.contains("b: its removal fails: "), "{case}: {why}");
        }
        trace += &world.run_for(8_000);
        assert_eq!(trace.matches("run hook b/end.sh").count(), 4, "{case}: {trace}");
        assert_eq!(trace.matches("uninstall b").count(), 1, "{case}: {trace}");
        assert_eq!(
            (is_there(&world), world.repositories.owed.contains("b")),
            (!is_deleted, false),
            "{case}: {trace}"
        );
        assert!(world.repositories.faults.is_empty(), "{case}: {:?}", world.repositories.faults);
    }
}

#[test]
fn what_was_never_on_is_deleted_without_running_any_of_its_hooks() {
    for is_held_up in [false, true] {
        let mut world = running();
        world.applies("x", &["three"]);
        world.run_for(3_000);
        world.deletes("x");
        if is_held_up {
            world.break_hook("base/start.sh", LONG);
        }
        world.restarts_flagged(&ON);
        let trace = world.run_for(4_000);
        assert!(!trace.contains("hook c/") && !trace.contains("uninstall c"), "{trace}");
        assert_eq!(removals(&trace), BOTH, "{trace}");
        assert!(!is_there(&world), "{is_held_up}: {trace}");
    }
}

#[test]
fn what_came_and_never_ran_is_deleted_behind_what_fails_without_running_any_of_its_hooks() {
    let mut world = running();
    world.offers("c", Ok(vec![addon("c", "1.0.0", 3)]));
    world.break_hook("base/start.sh", LONG);
    world.restarts_flagged(&[ON[0], ON[1], ("cEnabled", "true")]);
    world.run_for(1_000);
    world.applies("y", &["c"]);
    world.run_for(1_000);
    assert_eq!(world.phase("y"), "Ready");
    world.deletes("y");
    let trace = world.run_for(1_000);
    assert!(!trace.contains("hook c/") && !world.repositories.objects.contains_key("y"), "{trace}");
}

#[test]
fn what_was_never_on_runs_no_hook_when_the_operator_is_killed_while_it_is_withdrawn() {
    // It may have been there when the operator started before, or come since.
    for is_new in [false, true] {
        let mut killed = 0;
        for at in (0..400).step_by(20) {
            let mut world = running();
            world.offers("c", Ok(vec![addon("c", "1.0.0", 3)]));
            if !is_new {
                world.applies("y", &["c"]);
                world.run_for(3_000);
            }
            world.break_hook("base/start.sh", LONG);
            world.restarts_flagged(&ON);
            world.run_for(1_000);
            if is_new {
                world.applies("y", &["c"]);
                world.run_for(1_000);
            }
            world.deletes("y");
            let mut trace = world.run_for(at);
            let withdrawn = world.repositories.registry.addons.iter().any(|addon| addon.is_withdrawn);
            killed += usize::from(withdrawn);
            world.restarts_flagged(&ON);
            trace += &world.run_for(10_000);
            let case = format!("{is_new} {at} {withdrawn}");
            assert!(!trace.contains("hook c/"), "{case}: {trace}");
            assert!(!world.repositories.objects.contains_key("y"), "{case}: {trace}");
        }
        assert!(killed > 0, "{is_new}: none of them was killed between the two");
    }
}

#[test]
fn modules_without_a_chart_are_removed_with_their_hooks_too() {
    for has_restarted in [false, true] {
        let mut world = running();
        for number in 1..3 {
            world.repositories.bundles.get_mut(&digest(number)).unwrap().has_chart = false;
        }
        world.deployed.retain(|name, _| name == "base");
        world.break_hook("base/start.sh", LONG);
        if has_restarted {
            world.deletes("x");
        }
        world.restarts_flagged(&ON);
        let mut trace = world.run_for(500);
        if !has_restarted {
            world.deletes("x");
        }
        trace += &world.run_for(3_000);
        assert_eq!(removals(&trace), ["hook b/end.sh", "hook a/end.sh"], "{has_restarted}: {trace}");
        assert!(!is_there(&world), "{has_restarted}: {trace}");
    }
}

#[test]
fn a_kill_at_any_time_of_such_a_removal_leaves_nothing_out() {
    for is_held_up in [false, true] {
        for at in (0..400).step_by(20) {
            let mut world = running();
            world.deletes("x");
            if is_held_up {
                world.break_hook("base/start.sh", LONG);
            }
            world.restarts_flagged(&ON);
            world.run_for(at);
            let was_there = is_there(&world);
            world.restarts_flagged(&ON);
            world.run_for(10_000);
            let left = (is_there(&world), &world.repositories.owed, &world.repositories.faults);
            assert_eq!(json!(left), json!([false, [], []]), "{at} ms, {is_held_up}: {was_there}");
            assert!(world.deployed.keys().all(|name| name == "base"), "{at} ms, {is_held_up}");
        }
    }
}

#[test]
fn what_a_namespace_brought_does_not_wait_for_the_first_converge_either() {
    for is_on in [true, false] {
        let flags: &[(&str, &str)] = if is_on { &[("aWebEnabled", "true")] } else { &[] };
        let mut world = sourced(&files().module(10, "base").hook("start.sh", "onStartup: 1"));
        world.bundle(1, "web", &[]);
        world.offers("web", Ok(vec![addon("web", "1.0.0", 1)]));
        world.send_in(0, config_map(200, flags));
        world.applies("a/x", &["web"]);
        world.run_for(5_000);
        assert_eq!(world.phase("a/x"), "Ready");
        world.deletes("a/x");
        if !is_on {
            // Nothing was ever released: that is on record, and nobody has to look.
            world.powerless.insert("a".to_owned());
        }
        world.break_hook("base/start.sh", LONG);
        world.restarts_flagged(flags);
        let trace = world.run_for(3_000);
        assert_eq!(trace.matches("uninstall a/a-web").count(), usize::from(is_on), "{trace}");
        assert!(!world.repositories.objects.contains_key("a/x"), "{is_on}: {trace}");
        assert!(!trace.contains("list releases") && !world.deployed.contains_key("a/a-web"), "{trace}");
    }
}

#[test]
fn a_release_that_may_not_be_looked_for_may_be_there() {
    let mut world = sourced(&files().module(10, "base").hook("start.sh", "onStartup: 1"));
    world.bundle(1, "web", &[]);
    world.offers("web", Ok(vec![addon("web", "1.0.0", 1)]));
    world.send_in(0, config_map(200, &[("aWebEnabled", "true")]));
    world.applies("a/x", &["web"]);
    world.run_for(5_000);
    assert!(world.deployed.contains_key("a/a-web"));
    // It is switched off and deleted while nobody looks, and its account has no rights any more.
    world.deletes("a/x");
    world.powerless.insert("a".to_owned());
    world.break_hook("base/start.sh", LONG);
    world.restarts_flagged(&[]);
    let trace = world.run_for(30_000);
    assert!(trace.contains("list releases") && trace.contains("uninstall a/a-web"), "{trace}");
    assert!(world.repositories.objects.contains_key("a/x"), "{trace}");
    world.powerless.clear();
    let trace = world.run_for(60_000);
    assert!(!world.repositories.objects.contains_key("a/x"), "{trace}");
    assert!(!world.deployed.contains_key("a/a-web"), "{trace}");
}
