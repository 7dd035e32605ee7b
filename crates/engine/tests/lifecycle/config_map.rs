//! Edits of the ConfigMap.

use engine::{ConfigObject, Event, Failure, FailureKind, Notice};
use insta::assert_snapshot;
use serde_json::json;

use crate::build::{Files, TICK, config, configures, cron, files, patches, reread};
use crate::world::World;

fn two() -> Files {
    files().module(10, "alpha").hook("a.sh", "beforeHelm: 1").module(20, "beta").hook("b.sh", "beforeHelm: 1")
}

/// The problems that were told last.
fn problems(world: &World) -> Vec<String> {
    let told = world.notices.iter().rev().find_map(|notice| match notice {
        Notice::ConfigChecked { problems } => {
            Some(problems.iter().map(|(_, failure)| failure.to_string()).collect())
        }
        _ => None,
    });
    told.unwrap_or_default()
}

/// The ConfigMap is deleted.
fn gone(version: u64) -> Event {
    Event::ConfigChanged { object: ConfigObject::ConfigMap, version: version.to_string(), data: None }
}

fn edited(pairs: &[(&str, &str)]) -> (World, String) {
    let mut world = World::new(&two()).settled().showing_values();
    let trace = world.after(100, config(101, pairs));
    (world, trace)
}

#[test]
fn an_edit_of_one_section_runs_that_module_only() {
    assert_snapshot!(edited(&[("beta", "size: 2")]).1, @r#"
    0.225s > ConfigMap rv 101 [beta]
    0.225s     run hook beta/b.sh #6 [beforeHelm] {} {"size":2}
    0.235s > hook #6 ok
    0.235s     upgrade beta #7 {} {"size":2}
    0.285s > release #7 Upgraded
    "#);
}

#[test]
fn a_config_map_that_says_the_same_again_cancels_no_delay() {
    let said = [("alpha", "size: 1")];
    let mut world = World::new(&two()).configured(&said).fails("alpha/a.sh", 1).at(1000, config(100, &said));
    let trace = world.run();
    let tries: Vec<&str> = trace.lines().filter(|line| line.contains("run hook alpha/a.sh")).collect();
    assert_eq!(tries.len(), 2, "{trace}");
    assert!(tries[0].starts_with("0.0") && tries[1].starts_with("5.0"), "{trace}");
}

#[test]
fn an_edit_of_the_global_section_runs_all_modules() {
    assert_snapshot!(edited(&[("global", "color: red"), ("beta", "size: 2")]).1, @r#"
    0.225s > ConfigMap rv 101 [beta global]
    0.225s     run hook alpha/a.sh #6 [beforeHelm] {"color":"red"} {}
    0.235s > hook #6 ok
    0.235s     upgrade alpha #7 {"color":"red"} {}
    0.285s > release #7 Upgraded
    0.285s     run hook beta/b.sh #8 [beforeHelm] {"color":"red"} {"size":2}
    0.295s > hook #8 ok
    0.295s     upgrade beta #9 {"color":"red"} {"size":2}
    0.345s > release #9 Upgraded
    "#);
}

#[test]
fn an_edit_without_meaning_runs_nothing() {
    let (mut world, _) = edited(&[("alpha", "a: 1\nb: [1, 2]\n")]);
    let trace = world.after(100, config(102, &[("alpha", "# other\nb:\n- 1\n- 2\na:   1\n")]));
    assert_eq!(trace.lines().count(), 1, "{trace}");
}

#[test]
fn f_e4_a_bad_key_keeps_its_last_good_values_and_hurts_nobody_else() {
    let (mut world, _) = edited(&[("alpha", "size: 5")]);
    let bad = [
        ("alpha", "size: [1, 2\n:::"),
        ("beta", "size: 2"),
        ("strangerEnabled", "x"),
        ("betaEnabled", "maybe"),
    ];
    assert_snapshot!(world.after(100, config(102, &bad)), @r#"
    0.385s > ConfigMap rv 102 [alpha beta betaEnabled strangerEnabled]
    0.385s     run hook beta/b.sh #8 [beforeHelm] {} {"size":2}
    0.395s > hook #8 ok
    0.395s     upgrade beta #9 {} {"size":2}
    0.445s > release #9 Upgraded
    "#);
    let told = problems(&world);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("key alpha: bad yaml") && told[1].contains("key betaEnabled: must be true or false"),
        "{told:?}"
    );
    let trace = world.after(100, config(103, &[("alpha", "size: 6"), ("beta", "size: 2")]));
    assert!(trace.contains(r#"upgrade alpha #11 {} {"size":6}"#), "{trace}");
    assert_eq!(problems(&world), Vec::<String>::new());
}

#[test]
fn a_section_that_is_bad_from_the_start_holds_up_its_module_until_it_is_repaired() {
    let files = files()
        .module(5, "first")
        .module(10, "alpha")
        .schema("{type: object, properties: {mode: {type: string, enum: [fast]}}}", None);
    let mut world = World::new(&files).configured(&[("alpha", "mode: reckless")]);
    let mut trace = world.run_until(12_000);
    assert_eq!(world.view().modules[1].phase, "failed");
    trace += &world.after(500, config(101, &[("alpha", "mode: fast")]));
    assert_snapshot!(trace, @r"
    0.000s > ConfigMap rv 100 [alpha]
    0.000s > started
    0.000s     upgrade first #1
    0.050s > release #1 Installed
    0.050s     watch release first
    5.050s > timer
    10.050s > timer
    10.550s > ConfigMap rv 101 [alpha]
    10.550s     upgrade alpha #2
    10.600s > release #2 Installed
    10.600s     watch release alpha
    10.600s     list releases #3
    10.605s > releases #3 [alpha first]
    ");
}

#[test]
fn a_bad_global_section_at_the_start_fails_the_discovery_until_it_is_repaired() {
    let mut world = World::new(&two()).configured(&[("global", "- : ["), ("alpha", "x: 1")]);
    let trace = world.run_until(7_000);
    assert!(!trace.contains("run hook"), "{trace}");
    let trace = world.after(100, config(101, &[("global", "a: 1")]));
    assert!(trace.contains("run hook beta/b.sh"), "{trace}");
}

#[test]
fn a_removed_section_brings_back_the_values_of_the_files() {
    let (mut world, _) = edited(&[("beta", "size: 2")]);
    assert_snapshot!(world.after(100, gone(102)), @r"
    0.385s > ConfigMap rv 102 []
    0.385s     run hook beta/b.sh #8 [beforeHelm] {} {}
    0.395s > hook #8 ok
    0.395s     upgrade beta #9 {} {}
    0.445s > release #9 Upgraded
    ");
}

#[test]
fn only_the_flag_of_a_module_with_section_takes_effect_at_once() {
    let (mut world, _) = edited(&[("beta", "size: 2"), ("betaEnabled", "true")]);
    let mut trace = String::new();
    for (version, flag) in [(102, "false"), (103, "true")] {
        trace += &world.after(100, config(version, &[("beta", "size: 2"), ("betaEnabled", flag)]));
    }
    assert_snapshot!(trace, @r#"
    0.385s > ConfigMap rv 102 [beta betaEnabled]
    0.385s     forget release beta
    0.385s     uninstall beta #8
    0.435s > release #8 Uninstalled
    0.435s     run hook alpha/a.sh #9 [beforeHelm] {} {}
    0.445s > hook #9 ok
    0.445s     upgrade alpha #10 {} {}
    0.495s > release #10 Unchanged
    0.595s > ConfigMap rv 103 [beta betaEnabled]
    0.595s     run hook alpha/a.sh #11 [beforeHelm] {} {}
    0.605s > hook #11 ok
    0.605s     upgrade alpha #12 {} {}
    0.655s > release #12 Unchanged
    0.655s     run hook beta/b.sh #13 [beforeHelm] {} {"size":2}
    0.665s > hook #13 ok
    0.665s     upgrade beta #14 {} {"size":2}
    0.715s > release #14 Installed
    0.715s     watch release beta
    "#);
}

#[test]
fn a_plain_false_as_section_switches_the_module_off_with_a_warning() {
    let (world, trace) = edited(&[("beta", "\"false\"")]);
    assert!(trace.contains("uninstall beta"), "{trace}");
    assert!(
        world.noticed(
            |n| matches!(n, Notice::Warned { message, .. } if message.contains("write betaEnabled"))
        ) > 0
    );
}

#[test]
fn the_flag_of_a_module_switches_no_other_one_whoever_is_there() {
    let foo = |world: &World| {
        let on = world.view().modules.into_iter().filter(|module| module.enabled == Some(true));
        on.map(|module| module.name.to_string()).collect::<Vec<_>>()
    };
    for names in [&["foo", "foo-enabled"][..], &["foo-enabled", "foo"], &["foo-enabled"]] {
        let mut files = files();
        for (place, name) in (10..).zip(names) {
            files = files.module(place, name).off();
        }
        let mut world = World::new(&files).settled();
        world.after(100, config(101, &[("fooEnabled", "true")]));
        let expected: &[&str] = if names.len() > 1 { &["foo"] } else { &[] };
        assert_eq!(foo(&world), expected, "{names:?}");
        world.after(100, config(102, &[("fooEnabledEnabled", "true")]));
        assert_eq!(foo(&world), ["foo-enabled"], "{names:?}");
    }
}

#[test]
fn unknown_keys_are_told_once_and_ignored() {
    let (mut world, trace) = edited(&[("nobody", "a: 1")]);
    assert_eq!(trace.lines().count(), 1, "{trace}");
    world.after(100, config(102, &[("nobody", "a: 2")]));
    let told = world.noticed(
        |n| matches!(n, Notice::Warned { message, .. } if message.contains("unknown modules: nobody")),
    );
    assert_eq!(told, 1);
}

#[test]
fn a_config_map_that_cannot_be_read_changes_nothing() {
    let (mut world, _) = edited(&[("beta", "size: 2")]);
    let failure = Failure::new(FailureKind::Cluster, "data is not a map");
    let trace = world.after(100, Event::ConfigRejected { object: ConfigObject::ConfigMap, failure });
    assert_eq!(trace.lines().count(), 1, "{trace}");
    assert_eq!(problems(&world), ["data is not a map"]);
}

#[test]
fn what_a_hook_saves_does_not_come_back_as_an_edit() {
    let files = two().hook("tick.sh", TICK);
    let mut world =
        World::new(&files).settled().hook("beta/tick.sh", Ok(configures("/beta/password", &json!("x"))));
    assert_snapshot!(world.after(100, cron("* * * * *")), @r#"
    0.225s > cron * * * * *
    0.225s     run hook beta/tick.sh #6 [tick Schedule]
    0.235s > hook #6 ok
    0.235s     save beta #7 "password: x\n"
    0.240s > saved #7 ok
    0.240s     run hook beta/b.sh #8 [beforeHelm]
    0.241s > ConfigMap rv 101 [beta]
    0.250s > hook #8 ok
    0.250s     upgrade beta #9
    0.300s > release #9 Upgraded
    "#);
}

#[test]
fn an_older_version_that_arrives_late_does_not_undo_what_a_hook_saved() {
    let mut world =
        World::new(&two()).hook("alpha/a.sh", Ok(configures("/alpha/password", &json!("x")))).settled();
    world.after(100, config(100, &[("beta", "size: 2")]));
    let inspected = world.engine.inspect();
    assert_eq!(*inspected.modules["alpha"].config, json!({"password": "x"}));
    assert_eq!(*inspected.modules["beta"].config, json!({"size": 2}));
}

#[test]
fn an_edit_ends_the_wait_of_a_failed_module_at_once() {
    let mut world = World::new(&two()).fails("alpha/a.sh", 1).at(1000, config(101, &[("alpha", "size: 2")]));
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     run hook alpha/a.sh #1 [beforeHelm]
    0.010s > hook #1 failed: exit status 1
    1.000s > ConfigMap rv 101 [alpha]
    1.000s     run hook alpha/a.sh #2 [beforeHelm]
    1.010s > hook #2 ok
    1.010s     upgrade alpha #3
    1.060s > release #3 Installed
    1.060s     watch release alpha
    1.060s     run hook beta/b.sh #4 [beforeHelm]
    1.070s > hook #4 ok
    1.070s     upgrade beta #5
    1.120s > release #5 Installed
    1.120s     watch release beta
    1.120s     list releases #6
    1.125s > releases #6 [alpha beta]
    ");
}

#[test]
fn f_d6_a_hundred_edits_a_second_during_a_converge_end_on_the_last_one() {
    let mut world = World::new(&two()).takes("alpha/a.sh", 700);
    for n in 0..100 {
        let text = format!("size: {n}");
        world.send_in(100 + n * 10, config(200 + n, &[("global", &text), ("beta", &text)]));
    }
    let trace = world.run();
    assert!(trace.matches("run hook alpha/a.sh").count() <= 4, "{trace}");
    let inspected = world.engine.inspect();
    assert_eq!(
        (&*inspected.global.values, &*inspected.modules["beta"].values),
        (&json!({"size": 99}), &json!({"size": 99}))
    );
    assert!(world.view().converge.first_done && world.queue("main").is_empty());
}

#[test]
fn a_global_edit_in_the_middle_of_a_first_run_lets_the_module_finish_its_startup() {
    let files = files()
        .module(10, "alpha")
        .hook("s.sh", "onStartup: 1")
        .hook("a.sh", "beforeHelm: 1")
        .module(20, "beta");
    let mut world = World::new(&files).takes("alpha/a.sh", 500).at(100, config(101, &[("global", "x: 1")]));
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     run hook alpha/s.sh #1 [onStartup]
    0.010s > hook #1 ok
    0.010s     run hook alpha/a.sh #2 [beforeHelm]
    0.100s > ConfigMap rv 101 [global]
    0.510s > hook #2 ok
    0.510s     run hook alpha/a.sh #3 [beforeHelm]
    1.010s > hook #3 ok
    1.010s     upgrade alpha #4
    1.060s > release #4 Installed
    1.060s     watch release alpha
    1.060s     upgrade beta #5
    1.110s > release #5 Installed
    1.110s     watch release beta
    1.110s     list releases #6
    1.115s > releases #6 [alpha beta]
    ");
}

#[test]
fn two_quick_edits_are_one_pending_run() {
    let files = two().hook("slow.sh", TICK);
    let mut world = World::new(&files).takes("beta/slow.sh", 1000).settled();
    world.send_in(100, cron("* * * * *"));
    world.send_in(200, config(101, &[("alpha", "x: 1")]));
    let trace = world.after(300, config(102, &[("alpha", "x: 2")]));
    assert_eq!(trace.matches("run hook alpha/a.sh").count(), 1, "{trace}");
}

#[test]
fn tasks_know_the_edit_that_caused_them() {
    let (mut world, _) = edited(&[]);
    world = world.takes("beta/b.sh", 1000);
    world.send_in(100, config(123, &[("beta", "x: 1")]));
    world.run_for(101);
    let cause = world.view().queues[0].tasks[0].cause.clone();
    assert_eq!(cause, "ConfigMap ops/addon-operator key beta rv 123 → converge 2 → module beta");
}

/// Lets the module web go, removes what a ConfigMap says about it, and lets it come back.
fn came_back(configured: &[(&str, &str)], was_on: bool) -> World {
    let with = files().module(10, "web").module(20, "api");
    let mut without = with.clone();
    without.modules.remove(0);
    let start = if was_on { &[] } else { configured };
    let mut world = World::new(&with).configured(start);
    world.run_for(1_000);
    for event in [config(150, configured), reread(&without), config(151, &[]), reread(&with)] {
        world.send_in(1, event);
        world.run_for(10_000);
    }
    world
}

#[test]
fn slip_18c_what_the_config_map_said_about_a_module_is_forgotten_with_its_key() {
    for was_on in [true, false] {
        let world = came_back(&[("webEnabled", "false")], was_on);
        assert_eq!(world.view().modules[0].enabled, Some(true), "it was on: {was_on}");
        let world = came_back(&[("web", "false")], was_on);
        assert_eq!(world.view().modules[0].enabled, Some(true), "it was on: {was_on}");
        let world = came_back(&[("webMaintenance", "NoResourceReconciliation")], was_on);
        assert!(world.view().modules[0].maintenance.is_none(), "it was on: {was_on}");
        for (key, text) in [("web", "- : ["), ("webEnabled", "maybe"), ("webMaintenance", "x")] {
            let world = came_back(&[(key, text)], was_on);
            assert_eq!(world.view().config_problems, [], "{key}, it was on: {was_on}");
            assert_eq!(world.view().modules[0].phase, "running", "{key}, it was on: {was_on}");
        }
    }
}

#[test]
fn slip_18c_what_the_config_map_says_about_an_absent_module_counts_when_it_comes() {
    let with = files().module(10, "web").module(20, "api");
    let mut without = with.clone();
    without.modules.remove(0);
    let mut world = World::new(&with).settled();
    world.after(1, reread(&without));
    world.after(1, config(150, &[("webEnabled", "false")]));
    world.after(1, reread(&with));
    assert_eq!(world.view().modules[0].enabled, Some(false));
    world.after(1, config(151, &[]));
    assert_eq!(world.view().modules[0].enabled, Some(true));
}

#[test]
fn slip_18c_what_a_global_hook_says_about_an_absent_module_counts_as_the_hook_said_it_last() {
    let with = files().global_hook("flags.sh", TICK).module(10, "web").module(20, "api");
    let mut without = with.clone();
    without.modules.remove(0);
    let says = |flag: Option<bool>| {
        let operation = match flag {
            Some(on) => json!([{"op": "add", "path": "/webEnabled", "value": on}]),
            None => json!([{"op": "remove", "path": "/webEnabled"}]),
        };
        Ok(patches(&operation))
    };
    for (before, meanwhile, expected) in [
        (Some(false), None, true),
        (None, Some(false), false),
        (Some(false), Some(true), true),
        (Some(true), Some(false), false),
    ] {
        let mut world = World::new(&with)
            .hook("global/flags.sh", says(before))
            .hook("global/flags.sh", says(meanwhile))
            .settled();
        world.after(1, cron("* * * * *"));
        world.after(1, reread(&without));
        world.after(1, cron("* * * * *"));
        world.after(1, reread(&with));
        assert_eq!(world.view().modules[0].enabled, Some(expected), "{before:?}, then {meanwhile:?}");
    }
}
