//! Which modules are on, and why.

use engine::hook::WatchEvent;
use engine::view::why;
use engine::{Command, CommandId, Config, Event, Extenders, Notice};
use insta::assert_snapshot;
use serde_json::json;

use crate::build::{PODS, TICK, config, cron, files, sets};
use crate::world::World;

fn phases(world: &World) -> Vec<String> {
    world
        .view()
        .modules
        .iter()
        .map(|module| format!("{} {}: {}", module.name, module.phase, module.why))
        .collect()
}

#[test]
fn the_last_source_wins_and_the_script_can_only_say_no() {
    let files = files()
        .module(10, "a")
        .off()
        .module(20, "b")
        .module(30, "c")
        .off()
        .module(40, "d")
        .script()
        .module(50, "e")
        .off()
        .script();
    let world = World::new(&files)
        .configured(&[("bEnabled", "false"), ("cEnabled", "true")])
        .script("d", Ok(false))
        .settled();
    assert_eq!(
        phases(&world),
        [
            "a disabled: nothing enables it",
            "b disabled: modules/values.yaml says true, then ConfigMap key bEnabled says false",
            "c running: ConfigMap key cEnabled says true",
            "d disabled: modules/values.yaml says true, then enabled script says false",
            "e disabled: nothing enables it",
        ]
    );
}

#[test]
fn only_the_extenders_that_are_applied_are_asked_in_their_order() {
    let files = files().module(10, "a").script().module(20, "b").off();
    for (extenders, expected) in [
        ("", ["a false", "b true"]),
        ("KubeConfig,Static", ["a true", "b true"]),
        ("Static,ScriptEnabled", ["a false", "b false"]),
        ("Static", ["a true", "b false"]),
        ("ScriptEnabled,Static,KubeConfig", ["a false", "b true"]),
        ("DynamicallyEnabled", ["a false", "b false"]),
    ] {
        let config = Config {
            namespace: "ops".to_owned(),
            extenders: Extenders::parse(extenders).unwrap(),
            ..Config::default()
        };
        let mut world = World::with_config(&files, config)
            .configured(&[
                ("aEnabled", if extenders.is_empty() { "true" } else { "false" }),
                ("bEnabled", "true"),
            ])
            .script("a", Ok(false));
        let trace = world.run();
        let modules = world.view().modules;
        let on = modules.iter().map(|module| format!("{} {}", module.name, module.enabled == Some(true)));
        assert_eq!(on.collect::<Vec<_>>(), expected, "{extenders}");
        if !extenders.is_empty() && !extenders.contains("Script") {
            assert!(!trace.contains("run enabled script"), "{extenders}: {trace}");
        }
        let enable = Command::SetEnabled("b".into(), true);
        let said = world.after(100, Event::Commanded { id: CommandId::new(1), command: enable });
        let disable = Command::SetEnabled("a".into(), false);
        let disabled = world.after(100, Event::Commanded { id: CommandId::new(2), command: disable });
        let is_outvoted = extenders == "KubeConfig,Static";
        assert_eq!(
            disabled.contains("counts more than the ConfigMap"),
            is_outvoted,
            "{extenders}: {disabled}"
        );
        let has_config = extenders.is_empty() || extenders.contains("KubeConfig");
        assert_eq!(said.contains("KubeConfig is not among"), !has_config, "{extenders}: {said}");
    }
}

#[test]
fn what_switches_a_module_on_is_advised_only_where_it_does() {
    let files = files().module(10, "a").off();
    for (extenders, flag, ways, others) in [
        ("", "false", &["module enable a"][..], &["not asked", "values.yaml of"][..]),
        (
            "Static",
            "true",
            &[
                "set aEnabled: true in values.yaml",
                "not asked, as --applied-module-extenders has it: ConfigMap ops/addon-operator key aEnabled",
            ],
            &["module enable"],
        ),
        (
            "DynamicallyEnabled",
            "true",
            &["have a global hook set /aEnabled", "not asked"],
            &["module enable", "values.yaml of"],
        ),
        (
            "ScriptEnabled",
            "true",
            &["names nobody who can switch a module on", "not asked"],
            &["module enable", "values.yaml of"],
        ),
    ] {
        let config = Config {
            namespace: "ops".to_owned(),
            extenders: Extenders::parse(extenders).unwrap(),
            ..Config::default()
        };
        let world = World::with_config(&files, config).configured(&[("aEnabled", flag)]).settled();
        let why = world.told(|view, format| why::module(view, "a", format).unwrap().text());
        for way in ways {
            assert!(why.contains(way), "{extenders}: {way} is not in: {why}");
        }
        for other in others {
            assert!(!why.contains(other), "{extenders}: {other} is in: {why}");
        }
    }
}

#[test]
fn scripts_see_the_modules_found_enabled_before_them() {
    let files = files().module(10, "a").script().module(20, "off").script().module(30, "b").script();
    assert_snapshot!(World::new(&files).script("off", Ok(false)).run(), @r"
    0.000s > started
    0.000s     run enabled script of a #1 after []
    0.010s > script #1 true
    0.010s     run enabled script of off #2 after [a]
    0.020s > script #2 false
    0.020s     run enabled script of b #3 after [a]
    0.030s > script #3 true
    0.030s     upgrade a #4
    0.080s > release #4 Installed
    0.080s     watch release a
    0.080s     upgrade b #5
    0.130s > release #5 Installed
    0.130s     watch release b
    0.130s     list releases #6
    0.135s > releases #6 [a b]
    ");
}

#[test]
fn a_failing_script_repeats_the_whole_discovery_and_holds_main_back_but_no_other_queue() {
    let files = files()
        .global_hook("main.sh", PODS)
        .global_hook("side.sh", "kubernetes: [{name: nodes, kind: Node, queue: side}]")
        .module(10, "a")
        .script()
        .module(20, "b")
        .script();
    let mut world = World::new(&files)
        .script("a", Ok(true))
        .script("b", Err("exit status 3"))
        .change(1000, "Pod", WatchEvent::Added, "x")
        .change(1000, "Node", WatchEvent::Added, "y");
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     start monitor m1 of Pod
    0.010s > listed 0 for m1
    0.010s     run hook global/main.sh #1 [pods Synchronization]
    0.020s > hook #1 ok
    0.020s     start monitor m2 of Node
    0.030s > listed 0 for m2
    0.030s     run hook global/side.sh #2 [nodes Synchronization] in side
    0.040s > hook #2 ok
    0.040s     run enabled script of a #3 after []
    0.050s > script #3 true
    0.050s     run enabled script of b #4 after [a]
    0.060s > script #4 failed: exit status 3
    1.000s > object ns/x changed for m1
    1.000s > object ns/y changed for m2
    1.000s     run hook global/side.sh #5 [nodes Added ns/y] in side
    1.010s > hook #5 ok
    5.060s > timer
    5.060s     run enabled script of a #6 after []
    5.070s > script #6 true
    5.070s     run enabled script of b #7 after [a]
    5.080s > script #7 true
    5.080s     upgrade a #8
    5.130s > release #8 Installed
    5.130s     watch release a
    5.130s     upgrade b #9
    5.180s > release #9 Installed
    5.180s     watch release b
    5.180s     run hook global/main.sh #10 [pods Added ns/x]
    5.190s > hook #10 ok
    5.190s     list releases #11
    5.195s > releases #11 [a b]
    ");
    let failed = world.noticed(
        |n| matches!(n, Notice::DiscoveryFailed { failure } if failure.message.contains("module b")),
    );
    assert_eq!(failed, 1);
}

#[test]
fn f_e2_a_script_runs_again_only_when_what_it_reads_differs_and_sees_the_same_edit() {
    let files = files().module(10, "a").script().module(20, "b").script();
    let mut world = World::new(&files).settled();
    let mut trace = world.after(100, config(101, &[("b", "x: 1")]));
    trace += &world.after(100, config(102, &[("b", "x: 1"), ("aEnabled", "true")]));
    assert_snapshot!(trace, @r"
    0.225s > ConfigMap rv 101 [b]
    0.225s     run enabled script of b #6 after [a]
    0.235s > script #6 true
    0.235s     upgrade b #7
    0.285s > release #7 Upgraded
    0.385s > ConfigMap rv 102 [aEnabled b]
    ");
}

#[test]
fn a_script_that_says_no_after_an_edit_removes_its_module() {
    let files = files().module(10, "web").script().hook("bye.sh", "afterDeleteHelm: 1");
    let mut world = World::new(&files).script("web", Ok(true)).script("web", Ok(false)).settled();
    assert_snapshot!(world.after(100, config(101, &[("web", "x: 1")])), @r"
    0.165s > ConfigMap rv 101 [web]
    0.165s     run enabled script of web #4 after []
    0.175s > script #4 false
    0.175s     forget release web
    0.175s     uninstall web #5
    0.225s > release #5 Uninstalled
    0.225s     run hook web/bye.sh #6 [afterDeleteHelm]
    0.235s > hook #6 ok
    ");
}

#[test]
fn a_global_schedule_that_changes_values_asks_the_scripts_again() {
    let files = files().global_hook("tick.sh", TICK).module(10, "web").script();
    let mut world = World::new(&files).settled().hook("global/tick.sh", Ok(sets("/global/x", &json!(1))));
    assert_snapshot!(world.after(100, cron("* * * * *")), @r"
    0.165s > cron * * * * *
    0.165s     run hook global/tick.sh #4 [tick Schedule]
    0.175s > hook #4 ok
    0.175s     run enabled script of web #5 after []
    0.185s > script #5 true
    0.185s     upgrade web #6
    0.235s > release #6 Upgraded
    ");
}

#[test]
fn enabled_modules_are_seen_by_hooks_but_not_by_charts() {
    let files = files().module(10, "a").module(20, "off").off().module(30, "b").hook("b.sh", "beforeHelm: 1");
    let mut engine = engine::Engine::new(engine::Config::default(), files.catalog());
    let mut seen = Vec::new();
    let mut events = vec![Event::Started];
    while let Some(event) = events.pop() {
        for effect in engine.handle(engine::Time::START, event) {
            match effect {
                engine::Effect::RunHook { run, values, .. } => {
                    seen.push(
                        values
                            .enabled_modules
                            .map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>()),
                    );
                    events.push(Event::HookFinished {
                        run,
                        outcome: Ok(engine::HookOutput::default()),
                        usage: None,
                    });
                }
                engine::Effect::UpgradeRelease { run, values, .. } => {
                    assert_eq!(values.enabled_modules, None);
                    let outcome = engine::ReleaseOutcome {
                        action: engine::ReleaseAction::Installed,
                        revision: 1,
                        checksum: 1,
                        changed: None,
                        taken_over: Vec::new(),
                    };
                    events.push(Event::ReleaseFinished { run, outcome: Ok(outcome) });
                }
                _ => {}
            }
        }
    }
    assert_eq!(seen, [Some(vec!["a".to_owned(), "b".to_owned()])]);
}
