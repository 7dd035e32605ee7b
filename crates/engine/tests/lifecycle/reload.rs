//! Changed files, commands, the end.

use std::sync::Arc;

use engine::{BrokenPart, Command, CommandId, Event, Failure, FailureKind, HookOutput, Notice};
use insta::assert_snapshot;
use serde_json::json;

use crate::build::{Files, PODS, TICK_IN_SIDE, config, cron, drifted, files, reread};
use crate::world::World;

fn two() -> Files {
    files().module(10, "alpha").hook("a.sh", "beforeHelm: 1").module(20, "beta").hook("b.sh", "beforeHelm: 1")
}

fn changed(mut world: World, files: &Files) -> World {
    world.send_in(100, reread(files));
    world
}

fn command(mut world: World, command: Command) -> World {
    world.send_in(100, Event::Commanded { id: CommandId::new(1), command });
    world
}

#[test]
fn only_a_changed_module_runs_again() {
    let new = two().with(|module| {
        module.content = 2;
        module.static_values = Arc::new(json!({"new": 1}));
    });
    assert_snapshot!(changed(World::new(&two()).settled().showing_values(), &new).run(), @r#"
    0.225s > files changed
    0.225s     run hook beta/b.sh #6 [beforeHelm] {} {"new":1}
    0.235s > hook #6 ok
    0.235s     upgrade beta #7 {} {"new":1}
    0.285s > release #7 Upgraded
    "#);
}

#[test]
fn files_that_did_not_change_run_nothing() {
    let trace = changed(World::new(&two()).settled(), &two()).run();
    assert_eq!(trace.lines().count(), 1, "{trace}");
}

#[test]
fn a_new_module_is_started_and_a_vanished_one_keeps_its_release() {
    let new = files().module(15, "gamma").module(20, "beta").hook("b.sh", "beforeHelm: 1");
    let mut world = changed(World::new(&two()).settled(), &new);
    let mut trace = world.run();
    let phases: Vec<String> =
        world.view().modules.iter().map(|m| format!("{} {}", m.name, m.phase)).collect();
    assert_eq!(phases, ["gamma running", "beta running", "alpha orphaned"]);
    trace += &command(world, Command::PurgeModule("alpha".into())).run();
    assert_snapshot!(trace, @r#"
    0.225s > files changed
    0.225s     forget release alpha
    0.225s     upgrade gamma #6
    0.275s > release #6 Installed
    0.275s     watch release gamma
    0.275s     run hook beta/b.sh #7 [beforeHelm]
    0.285s > hook #7 ok
    0.285s     upgrade beta #8
    0.335s > release #8 Unchanged
    0.435s > command c1 PurgeModule(ModuleName("alpha"))
    0.435s     answer c1 the removal of release alpha is queued
    0.435s     uninstall alpha #9
    0.485s > release #9 Uninstalled
    "#);
}

#[test]
fn an_orphan_that_comes_back_is_started_again() {
    let new = files().module(20, "beta").hook("b.sh", "beforeHelm: 1");
    let world = changed(World::new(&two()).settled(), &new).settled();
    let mut world = changed(world, &two());
    let trace = world.run();
    assert!(trace.contains("run hook alpha/a.sh") && !trace.contains("uninstall"), "{trace}");
    assert_eq!(world.view().modules[0].phase, "running");
}

#[test]
fn a_broken_new_version_leaves_the_old_one_in_force_and_its_tasks_wait() {
    let old = two().hook("tick.sh", TICK_IN_SIDE);
    let broken = old.clone().with(|module| {
        module.content = 2;
        module.broken = Some(Failure::new(FailureKind::Files, "hook 'tick.sh' exits 1"));
    });
    let mut world = changed(World::new(&old).settled(), &broken);
    let mut trace = world.after(200, cron("* * * * *"));
    let waits = world.view().queues.iter().find(|queue| queue.name.as_str() == "side").unwrap().tasks[0]
        .waits_for
        .clone();
    assert_eq!(waits.as_deref(), Some("its new version is broken: hook 'tick.sh' exits 1"));
    let good = old.clone().with(|module| module.content = 3);
    trace += &changed(world, &good).run();
    assert_snapshot!(trace, @r"
    0.225s > files changed
    0.325s > cron * * * * *
    0.425s > files changed
    0.425s     run hook beta/b.sh #6 [beforeHelm]
    0.425s     run hook beta/tick.sh #7 [tick Schedule] in side
    0.435s > hook #6 ok
    0.435s     upgrade beta #8
    0.435s > hook #7 ok
    0.485s > release #8 Unchanged
    ");
}

#[test]
fn changed_bindings_are_synchronised_anew_and_a_new_startup_hook_runs() {
    let old = two().hook("w.sh", PODS);
    let new = two()
        .hook("w.sh", "kubernetes: [{name: nodes, kind: Node}]")
        .hook("new.sh", "onStartup: 1")
        .with(|m| m.content = 2);
    assert_snapshot!(changed(World::new(&old).settled(), &new).run(), @r"
    0.245s > files changed
    0.245s     stop monitor m1
    0.245s     run hook beta/new.sh #7 [onStartup]
    0.255s > hook #7 ok
    0.255s     start monitor m2 of Node
    0.265s > listed 0 for m2
    0.265s     run hook beta/w.sh #8 [nodes Synchronization]
    0.275s > hook #8 ok
    0.275s     run hook beta/b.sh #9 [beforeHelm]
    0.285s > hook #9 ok
    0.285s     upgrade beta #10
    0.335s > release #10 Unchanged
    ");
}

#[test]
fn a_dropped_global_hook_is_taken_into_service() {
    let old = two().global_hook("old.sh", PODS);
    let new = two().global_hook("new.sh", "{onStartup: 1, kubernetes: [{name: nodes, kind: Node}], schedule: [{name: t, crontab: '1 * * * *'}]}");
    assert_snapshot!(changed(World::new(&old).settled(), &new).run(), @r"
    0.245s > files changed
    0.245s     stop monitor m1
    0.245s     run hook global/new.sh #7 [onStartup]
    0.245s     set schedules [1 * * * *]
    0.255s > hook #7 ok
    0.255s     start monitor m2 of Node
    0.265s > listed 0 for m2
    0.265s     run hook global/new.sh #8 [nodes Synchronization]
    0.275s > hook #8 ok
    ");
}

#[test]
fn a_broken_new_version_of_a_global_hook_holds_up_that_hook_only_and_is_told_until_it_is_repaired() {
    let tick = |queue: &str| format!("schedule: [{{name: tick, crontab: '* * * * *', queue: {queue}}}]");
    let old = two().global_hook("bad.sh", &tick("one")).global_hook("good.sh", &tick("two"));
    let mut broken = two().with(|module| module.content = 2).global_hook("good.sh", &tick("two"));
    let failure = Failure::new(FailureKind::HookExit, "hook `bad.sh` --config invalid");
    broken.global.broken.push(BrokenPart { hook: Some("bad.sh".into()), failure: failure.clone() });
    let mut world = changed(World::new(&old).settled(), &broken);
    world.send_in(10, reread(&broken));
    let mut trace = world.after(200, cron("* * * * *"));
    let view = world.view();
    assert_eq!(view.file_problems, [failure]);
    let waits = &view.queues.iter().find(|queue| queue.name.as_str() == "one").unwrap().tasks[0].waits_for;
    assert_eq!(waits.as_deref(), Some("its new version is broken: hook `bad.sh` --config invalid"));
    let told = world.noticed(|notice| matches!(notice, Notice::Warned { .. }));
    assert_eq!(told, 1, "{:?}", world.notices);
    let mut world = changed(world, &old.clone().with(|module| module.content = 2));
    trace += &world.run();
    assert_eq!(world.view().file_problems, []);
    assert_snapshot!(trace, @r"
    0.135s > files changed
    0.135s     run hook beta/b.sh #6 [beforeHelm]
    0.145s > hook #6 ok
    0.145s     upgrade beta #7
    0.195s > release #7 Unchanged
    0.225s > files changed
    0.325s > cron * * * * *
    0.325s     run hook global/good.sh #8 [tick Schedule] in two
    0.335s > hook #8 ok
    0.435s > files changed
    0.435s     run hook global/bad.sh #9 [tick Schedule] in one
    0.445s > hook #9 ok
    ");
}

#[test]
fn files_that_cannot_be_loaded_at_all_are_told_until_they_can() {
    let mut world = World::new(&two()).settled();
    let failure = Failure::new(FailureKind::Files, "modules/values.yaml: line 1: garbage");
    for _ in 0..2 {
        world.after(10, Event::CatalogRejected { failure: failure.clone() });
    }
    assert_eq!(world.view().file_problems, [failure]);
    let told = world.noticed(|notice| matches!(notice, Notice::Warned { .. }));
    assert_eq!(told, 1, "{:?}", world.notices);
    let trace = changed(world.settled(), &two()).settled();
    assert_eq!(trace.view().file_problems, []);
}

#[test]
fn a_command_runs_one_module_or_all() {
    let world = World::new(&two()).settled();
    let mut world = command(world, Command::RunModule("beta".into()));
    let mut trace = world.run();
    let mut world = command(world, Command::Converge);
    trace += &world.run();
    assert_snapshot!(trace, @r#"
    0.225s > command c1 RunModule(ModuleName("beta"))
    0.225s     answer c1 a run of module beta is queued
    0.225s     run hook beta/b.sh #6 [beforeHelm]
    0.235s > hook #6 ok
    0.235s     upgrade beta #7
    0.285s > release #7 Unchanged
    0.385s > command c1 Converge
    0.385s     answer c1 converge 3 is queued
    0.385s     run hook alpha/a.sh #8 [beforeHelm]
    0.395s > hook #8 ok
    0.395s     upgrade alpha #9
    0.445s > release #9 Unchanged
    0.445s     run hook beta/b.sh #10 [beforeHelm]
    0.455s > hook #10 ok
    0.455s     upgrade beta #11
    0.505s > release #11 Unchanged
    "#);
}

#[test]
fn commands_that_make_no_sense_are_refused_with_the_reason() {
    let old = two().module(30, "off").off();
    let mut trace = String::new();
    let mut world = World::new(&old).settled();
    for asked in [
        Command::RunModule("off".into()),
        Command::RunModule("nobody".into()),
        Command::PurgeModule("alpha".into()),
        Command::ResumeModule("alpha".into()),
        Command::SetEnabled("nobody".into(), true),
    ] {
        world = command(world, asked);
        trace += &world.run();
    }
    assert_snapshot!(trace, @r#"
    0.225s > command c1 RunModule(ModuleName("off"))
    0.225s     refuse c1 module off is not enabled: nothing enables it
    0.325s > command c1 RunModule(ModuleName("nobody"))
    0.325s     refuse c1 there is no module nobody
    0.425s > command c1 PurgeModule(ModuleName("alpha"))
    0.425s     refuse c1 module alpha is enabled, its release is in use
    0.525s > command c1 ResumeModule(ModuleName("alpha"))
    0.525s     refuse c1 module alpha is not parked, it is running
    0.625s > command c1 SetEnabled(ModuleName("nobody"), true)
    0.625s     refuse c1 there is no module nobody
    "#);
}

#[test]
fn a_command_switches_a_module_on_in_the_config_map() {
    let mut world = command(
        World::new(&two().module(30, "off").off()).settled(),
        Command::SetEnabled("off".into(), true),
    );
    assert_snapshot!(world.run(), @r#"
    0.225s > command c1 SetEnabled(ModuleName("off"), true)
    0.225s     save offEnabled #6 "true"
    0.230s > saved #6 ok
    0.230s     answer c1 module off is enabled by key offEnabled of ConfigMap ops/addon-operator
    0.231s > ConfigMap rv 101 [offEnabled]
    0.231s     run hook alpha/a.sh #7 [beforeHelm]
    0.241s > hook #7 ok
    0.241s     upgrade alpha #8
    0.291s > release #8 Unchanged
    0.291s     run hook beta/b.sh #9 [beforeHelm]
    0.301s > hook #9 ok
    0.301s     upgrade beta #10
    0.351s > release #10 Unchanged
    0.351s     upgrade off #11
    0.401s > release #11 Installed
    0.401s     watch release off
    "#);
}

#[test]
fn a_parked_module_is_resumed_by_command() {
    let mut world = World::new(&two()).settled();
    for _ in 0..3 {
        world = world.release("beta", Ok(engine::ReleaseAction::Upgraded));
        let drift = engine::Drift::Status("failed".to_owned());
        world.after(1000, drifted("beta", drift));
    }
    assert_eq!(world.view().modules[1].phase, "parked");
    let mut world = command(world, Command::ResumeModule("beta".into()));
    assert_snapshot!(world.run(), @r#"
    3.405s > command c1 ResumeModule(ModuleName("beta"))
    3.405s     answer c1 module beta goes on; a run of it is queued
    3.405s     run hook beta/b.sh #12 [beforeHelm]
    3.415s > hook #12 ok
    3.415s     upgrade beta #13
    3.465s > release #13 Unchanged
    "#);
    assert_eq!(world.view().modules[1].phase, "running");
}

#[test]
fn shutdown_ends_hooks_and_begins_nothing_new() {
    let mut world = World::new(&two())
        .takes("alpha/a.sh", 60_000)
        .at(100, Event::ShutdownRequested)
        .at(101, config(101, &[("global", "x: 1")]));
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     run hook alpha/a.sh #1 [beforeHelm]
    0.100s > shutdown
    0.101s > ConfigMap rv 101 [global]
    4.100s > timer
    4.100s     cancel #1
    4.105s > hook #1 failed: ended by SIGTERM
    4.105s     exit
    ");
}

#[test]
fn a_hook_that_ends_soon_after_the_shutdown_is_waited_for_and_what_it_asked_for_is_done() {
    let text = r#"{"operation": "Delete", "kind": "ConfigMap", "name": "x"}"#;
    let object_patches = engine::object_patch::parse(text.as_bytes()).unwrap();
    let mut world = World::new(&two())
        .takes("alpha/a.sh", 2_000)
        .hook("alpha/a.sh", Ok(HookOutput { object_patches, ..HookOutput::default() }))
        .at(100, Event::ShutdownRequested);
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     run hook alpha/a.sh #1 [beforeHelm]
    0.100s > shutdown
    2.000s > hook #1 ok
    2.000s     patch 1 objects for alpha/a.sh #2
    2.005s > patched #2 ok
    2.005s     exit
    ");
}

#[test]
fn shutdown_waits_for_a_release_and_for_what_a_hook_asked_for() {
    assert_snapshot!(World::new(&two()).at(30, Event::ShutdownRequested).run(), @r"
    0.000s > started
    0.000s     run hook alpha/a.sh #1 [beforeHelm]
    0.010s > hook #1 ok
    0.010s     upgrade alpha #2
    0.030s > shutdown
    0.060s > release #2 Installed
    0.060s     watch release alpha
    0.060s     exit
    ");
}

#[test]
fn shutdown_at_rest_is_the_end() {
    let mut world = World::new(&two()).settled();
    world.send_in(10, Event::ShutdownRequested);
    assert_snapshot!(world.after(20, Event::ShutdownRequested), @r"
    0.135s > shutdown
    0.135s     exit
    0.145s > shutdown
    ");
}

#[test]
fn warnings_of_the_files_are_told() {
    let mut old = two();
    old.warnings.push("two modules are called alpha".to_owned());
    let mut world = World::new(&old).settled();
    old.warnings.push("hook x has no execute bit".to_owned());
    world = changed(world, &old).settled();
    let told: Vec<&str> = world
        .notices
        .iter()
        .filter_map(|n| match n {
            Notice::Warned { message, .. } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["two modules are called alpha", "hook x has no execute bit"]);
}

/// Checks that in `trace` module `web` starts up before it works.
#[track_caller]
fn starts_up(way: &str, trace: &str) {
    let place = |hook: &str, what: &str| {
        let found = trace.lines().position(|line| line.contains(hook) && line.contains(what));
        found.unwrap_or_else(|| panic!("{way}: no {what}: {trace}"))
    };
    let steps = [
        place("web/start.sh", "[onStartup]"),
        place("start monitor", "Pod"),
        place("web/work.sh", "[pods Synchronization] in side"),
        place("web/work.sh", "[beforeHelm]"),
    ];
    assert!(steps.is_sorted(), "{way}: {trace}");
}

#[test]
fn f_c8_a_module_starts_up_whatever_way_it_comes_to_its_run() {
    let with_web = |files: Files| {
        files
            .module(30, "web")
            .hook("start.sh", "onStartup: 1")
            .hook("work.sh", "{beforeHelm: 1, kubernetes: [{name: pods, kind: Pod, queue: side}]}")
    };
    let on = |version| config(version, &[("webEnabled", "true")]);
    let off = |version| config(version, &[("webEnabled", "false")]);

    starts_up("from the start", &World::new(&with_web(two())).run());

    let mut world = World::new(&with_web(two()).off()).settled();
    world.send_in(0, on(101));
    starts_up("by the ConfigMap", &world.run());

    let mut world = World::new(&with_web(two())).settled();
    world.send_in(0, off(101));
    world = world.settled();
    world.send_in(0, on(102));
    starts_up("switched off and on", &world.run());

    starts_up("dropped into the directory", &changed(World::new(&two()).settled(), &with_web(two())).run());

    let mut world = World::new(&with_web(two())).fails("web/start.sh", 1).lived(4_000);
    starts_up("after a failure", &world.run());

    let world = World::new(&with_web(two()).script()).script("web", Ok(false)).settled();
    let world = world.script("web", Ok(true));
    starts_up("by its script", &command(world, Command::Converge).run());
}

#[test]
fn a_module_that_goes_and_comes_back_waits_for_what_is_in_flight() {
    let with = files()
        .module(10, "web")
        .hook("slow.sh", "{beforeHelm: 1, kubernetes: [{name: pods, kind: Pod, queue: side}]}")
        .module(20, "api");
    let mut without = with.clone();
    without.modules.remove(0);
    let mut world = World::new(&with).settled().takes("web/slow.sh", 5_000);
    world = world.change(10, "Pod", engine::hook::WatchEvent::Added, "x");
    world.send_in(1_000, reread(&without));
    world.send_in(2_000, reread(&with));
    let trace = world.run_for(60_000);
    let [begun, ended, again] = ["[pods Added ns/x]", "> hook #", "run hook web/slow.sh"].map(|text| {
        let from = trace.find("[pods Added ns/x]").unwrap_or_default();
        from + trace.get(from..).and_then(|rest| rest.find(text)).unwrap_or_else(|| panic!("{text}: {trace}"))
    });
    assert!(begun < ended && ended < again, "{trace}");
    assert_eq!(world.view().modules[0].phase, "running");
}
