//! What hooks write, how often they run, and how their runs are merged.

use engine::hook::WatchEvent;
use engine::object_patch::ObjectPatch;
use engine::{Config, Event, Failure, FailureKind, HookId, HookOutput, Notice, Scope};
use insta::assert_snapshot;
use serde_json::json;

use crate::build::{PODS, TICK, TICK_IN_SIDE, configures, cron, files, patches, sets};
use crate::world::World;

pub(crate) fn creates(output: HookOutput) -> HookOutput {
    let text =
        r#"{"operation":"Create","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}}"#;
    let object_patches: Vec<ObjectPatch> = engine::object_patch::parse(text.as_bytes()).unwrap();
    HookOutput { object_patches, ..output }
}

#[test]
fn outputs_take_effect_in_order_objects_then_the_config_map_then_values() {
    let files = files().module(10, "web").hook("a.sh", "onStartup: 1").hook("b.sh", "onStartup: 2");
    let output = creates(configures("/web/password", &json!("s3cret")));
    assert_snapshot!(World::new(&files).hook("web/a.sh", Ok(output)).showing_values().run(), @r#"
    0.000s > started
    0.000s     run hook web/a.sh #1 [onStartup] {} {}
    0.010s > hook #1 ok
    0.010s     patch 1 objects for web/a.sh #2
    0.015s > patched #2 ok
    0.015s     save web #3 "password: s3cret\n"
    0.020s > saved #3 ok
    0.020s     run hook web/b.sh #4 [onStartup] {} {"password":"s3cret"}
    0.021s > ConfigMap rv 101 [web]
    0.030s > hook #4 ok
    0.030s     upgrade web #5 {} {"password":"s3cret"}
    0.080s > release #5 Installed
    0.080s     watch release web
    0.080s     list releases #6
    0.085s > releases #6 [web]
    "#);
}

#[test]
fn an_invalid_output_fails_the_run_and_nothing_takes_effect() {
    let files = files().module(10, "web").hook("a.sh", "onStartup: 1");
    let mut output = creates(configures("/web/half", &json!(1)));
    output.values_patch = patches(&json!([{"op": "remove", "path": "/web/nothing"}])).values_patch;
    assert_snapshot!(World::new(&files).hook("web/a.sh", Ok(output)).run(), @r"
    0.000s > started
    0.000s     run hook web/a.sh #1 [onStartup]
    0.010s > hook #1 ok
    5.010s > timer
    5.010s     run hook web/a.sh #2 [onStartup]
    5.020s > hook #2 ok
    5.020s     upgrade web #3
    5.070s > release #3 Installed
    5.070s     watch release web
    5.070s     list releases #4
    5.075s > releases #4 [web]
    ");
}

#[test]
fn f_b1_b2_b5_b9_whatever_becomes_of_a_process_its_queue_goes_on_after_a_retry() {
    let kinds = [
        (FailureKind::HookTimeout, "did not end within 10s and was killed"),
        (FailureKind::HookOutput, "metrics file is larger than 32 MiB"),
        (FailureKind::Files, "permission denied: no execute bit"),
        (FailureKind::Bug, "the temporary directory is full"),
    ];
    for (kind, message) in kinds {
        let files = files()
            .global_hook("a.sh", "{onStartup: 1, settings: {timeout: 10s}}")
            .global_hook("b.sh", "onStartup: 2")
            .global_hook("c.sh", TICK_IN_SIDE);
        let mut world = World::new(&files).hook("global/a.sh", Err(Failure::new(kind, message))).lived(1_000);
        let shown = world.queue("main")[0].clone();
        assert_eq!(
            shown,
            format!("GlobalHookRun:main:onStartup:a.sh:onStartup:Operator-Startup:failures 1:{message}")
        );
        let trace = world.run();
        assert!(
            trace.contains("5.010s     run hook global/a.sh #2") && trace.contains("run hook global/b.sh #3"),
            "{trace}"
        );
    }
}

#[test]
fn f_b1_a_hook_is_given_its_own_deadline_or_the_operators() {
    let files = files()
        .global_hook("a.sh", "{onStartup: 1, settings: {timeout: 10s}}")
        .global_hook("b.sh", "onStartup: 1");
    let config = Config { hook_timeout: Some(std::time::Duration::from_mins(1)), ..Config::default() };
    let mut engine = engine::Engine::new(config, files.catalog());
    let mut timeouts = Vec::new();
    let mut event = Some(Event::Started);
    while let Some(next) = event.take() {
        for effect in engine.handle(engine::Time::START, next) {
            if let engine::Effect::RunHook { run, timeout, .. } = effect {
                timeouts.push(timeout.unwrap().as_secs());
                event = Some(Event::HookFinished { run, outcome: Ok(HookOutput::default()), usage: None });
            }
        }
    }
    assert_eq!(timeouts, [10, 60]);
}

#[test]
fn a_broken_section_of_the_config_map_is_not_overwritten_by_a_hook() {
    let files = files().module(10, "web").hook("tick.sh", TICK);
    let mut world = World::new(&files)
        .settled()
        .hook("web/tick.sh", Ok(configures("/web/x", &json!(1))))
        .at(100, crate::build::config(101, &[("web", "- : [")]))
        .at(200, cron("* * * * *"));
    let trace = world.run_for(1000);
    assert!(!trace.contains("save web"), "{trace}");
    assert!(
        world.queue("main")[0].contains("changes the configuration, but what is there can't be used"),
        "{:?}",
        world.queue("main")
    );
}

#[test]
fn f_e5_a_patch_without_a_place_fails_the_hook_and_add_then_remove_leave_nothing() {
    let files = files().module(10, "web").hook("a.sh", "onStartup: 1").hook("b.sh", "onStartup: 2");
    let mut world = World::new(&files)
        .hook("web/a.sh", Ok(sets("/web/no/such/parent", &json!(1))))
        .hook("web/a.sh", Ok(sets("/web/x", &json!(1))))
        .hook("web/b.sh", Ok(patches(&json!([{"op": "remove", "path": "/web/x"}]))));
    let trace = world.run();
    assert_eq!(trace.matches("run hook web/a.sh").count(), 2, "{trace}");
    let inspected = world.engine.inspect();
    assert_eq!(*inspected.modules["web"].values, json!({}));
    let patches: Vec<String> =
        inspected.modules["web"].patches.iter().map(|patch| format!("{patch:?}")).collect();
    assert_eq!(patches, ["remove /web/x"]);
}

#[test]
fn objects_that_could_not_be_patched_fail_the_hook_before_its_values_are_taken() {
    let files = files().module(10, "web").hook("a.sh", "onStartup: 1");
    let mut world = World::new(&files)
        .hook("web/a.sh", Ok(creates(sets("/web/x", &json!(1)))))
        .patching(Err("operation 0: forbidden"))
        .showing_values();
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     run hook web/a.sh #1 [onStartup] {} {}
    0.010s > hook #1 ok
    0.010s     patch 1 objects for web/a.sh #2
    0.015s > patched #2 failed: operation 0: forbidden
    5.015s > timer
    5.015s     run hook web/a.sh #3 [onStartup] {} {}
    5.025s > hook #3 ok
    5.025s     upgrade web #4 {} {}
    5.075s > release #4 Installed
    5.075s     watch release web
    5.075s     list releases #5
    5.080s > releases #5 [web]
    ");
}

#[test]
fn a_config_map_that_could_not_be_written_fails_the_hook_and_says_what_was_done() {
    let files = files().module(10, "web").hook("a.sh", "onStartup: 1");
    let output = || creates(configures("/web/x", &json!(1)));
    let world = World::new(&files).hook("web/a.sh", Ok(output())).saving(Err("conflict")).lived(1000);
    let error = world.view().modules[0].last_error.clone().unwrap();
    assert_eq!(error.to_string(), "conflict: its changes of objects were carried out before");
}

#[test]
fn f_e1_values_that_changed_meanwhile_are_judged_again_before_they_are_committed() {
    let files = files()
        .module(10, "web")
        .hook("side.sh", TICK_IN_SIDE)
        .hook("main.sh", "schedule: [{name: tick, crontab: '0 * * * *'}]")
        .values(json!({"x": {}}));
    let mut world = World::new(&files).settled();
    // While the objects of one hook are patched, the other one removes what it wants to write below.
    world = world
        .hook("web/main.sh", Ok(creates(sets("/web/x/y", &json!(1)))))
        .hook("web/side.sh", Ok(patches(&json!([{"op": "remove", "path": "/web/x"}]))))
        .at(100, cron("0 * * * *"))
        .at(101, cron("* * * * *"));
    world.run_for(1000);
    let view = world.view();
    let failed: Vec<String> =
        view.journal.iter().filter_map(|end| end.failure.as_ref()).map(ToString::to_string).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(
        failed[0].contains("doc is missing path") && failed[0].contains("were carried out before"),
        "{failed:?}"
    );
    world.run();
    assert_eq!(*world.engine.inspect().modules["web"].values, json!({}));
}

#[test]
fn a_hook_may_fail_where_its_binding_allows_it() {
    let files = files()
        .global_hook("allowed.sh", "schedule: [{name: tick, crontab: '* * * * *', allowFailure: true}]")
        .global_hook("strict.sh", TICK);
    let mut world = World::new(&files).settled().fails("global/allowed.sh", 1).fails("global/strict.sh", 1);
    assert_snapshot!(world.after(100, cron("* * * * *")), @r"
    0.105s > cron * * * * *
    0.105s     run hook global/allowed.sh #2 [tick Schedule]
    0.115s > hook #2 failed: exit status 1
    0.115s     run hook global/strict.sh #3 [tick Schedule]
    0.125s > hook #3 failed: exit status 1
    5.125s > timer
    5.125s     run hook global/strict.sh #4 [tick Schedule]
    5.135s > hook #4 ok
    ");
}

#[test]
fn a_hook_runs_no_more_often_than_its_interval_and_sees_what_came_meanwhile() {
    let files = files().global_hook(
        "tick.sh",
        "{settings: {executionMinInterval: 3s}, schedule: [{name: tick, crontab: '* * * * *'}]}",
    );
    let mut world = World::new(&files).settled();
    for n in 0..4 {
        world.send_in(100 + n * 100, cron("* * * * *"));
    }
    assert_snapshot!(world.run(), @r"
    0.105s > cron * * * * *
    0.105s     run hook global/tick.sh #2 [tick Schedule]
    0.115s > hook #2 ok
    0.205s > cron * * * * *
    0.305s > cron * * * * *
    0.405s > cron * * * * *
    3.105s > timer
    3.105s     run hook global/tick.sh #3 [tick Schedule, tick Schedule, tick Schedule]
    3.115s > hook #3 ok
    ");
}

#[test]
fn f_h6_hooks_run_one_at_a_time_while_memory_is_short() {
    let mut files = files();
    for n in 0..20 {
        let tick = format!("schedule: [{{name: tick, crontab: '* * * * *', queue: q{n}}}]");
        files = files.global_hook(&format!("h{n}.sh"), &tick);
    }
    let most_at_once = |trace: &str| {
        let (mut running, mut most) = (0_i32, 0);
        for line in trace.lines() {
            running += i32::from(line.contains("run hook")) - i32::from(line.contains("> hook #"));
            most = most.max(running);
        }
        (most, trace.matches("run hook").count())
    };
    let mut world = World::new(&files).settled();
    let used = |mib: u64| Event::MemoryChanged { used: mib << 20, limit: 512 << 20 };
    world.send_in(100, used(500));
    world.send_in(101, cron("* * * * *"));
    // All of them run, one behind the other, and the picture says why.
    assert_eq!(most_at_once(&world.run()), (1, 20));
    let problems = world.told(engine::view::problems);
    let told: Vec<String> =
        problems.iter().map(|problem| format!("{} {}", problem.about, problem.what)).collect();
    assert_eq!(told, ["memory is short: 500 of 512 MiB are used, hooks run one at a time"]);
    world.send_in(100, used(300));
    world.send_in(101, cron("* * * * *"));
    let (most, runs) = most_at_once(&world.run());
    assert!(most > 1 && runs == 20, "{most} at once, {runs} in all");
    assert_eq!(world.view().short_memory, None);
}

#[test]
fn f_b10_no_more_hooks_run_than_allowed() {
    let mut files = files();
    for n in 0..300 {
        files = files.global_hook(
            &format!("h{n}.sh"),
            &format!("schedule: [{{name: tick, crontab: '* * * * *', queue: q{n}}}]"),
        );
    }
    let config = Config { max_hooks: 7, ..Config::default() };
    let mut world = World::with_config(&files, config).settled();
    world.send_in(100, cron("* * * * *"));
    let (mut running, mut most, mut runs) = (0_i32, 0, 0);
    for line in world.run().lines() {
        if line.contains("run hook") {
            running += 1;
            runs += 1;
        } else if line.contains("> hook #") {
            running -= 1;
        }
        most = most.max(running);
    }
    assert_eq!((most, runs), (7, 300));
    let waits =
        world.noticed(|n| matches!(n, Notice::TaskWaits { reason, .. } if reason.contains("--max-hooks")));
    assert_eq!(waits, 293);
}

#[test]
fn runs_of_one_hook_that_follow_each_other_are_one_run() {
    let files = files()
        .global_hook(
            "a.sh",
            "schedule: [{name: one, crontab: '1 * * * *'}, {name: two, crontab: '2 * * * *', group: g}]",
        )
        .global_hook("b.sh", "schedule: [{name: one, crontab: '1 * * * *'}]");
    let mut world = World::new(&files).settled().takes("global/a.sh", 1000);
    world.send_in(100, cron("1 * * * *"));
    for n in 0..3 {
        world.send_in(110 + n, cron("2 * * * *"));
    }
    world = world.at(120, cron("1 * * * *")).at(130, cron("2 * * * *"));
    assert_snapshot!(world.run(), @r"
    0.105s > cron 1 * * * *
    0.105s     run hook global/a.sh #2 [one Schedule]
    0.115s > cron 2 * * * *
    0.116s > cron 2 * * * *
    0.117s > cron 2 * * * *
    0.125s > cron 1 * * * *
    0.135s > cron 2 * * * *
    1.105s > hook #2 ok
    1.105s     run hook global/b.sh #3 [one Schedule]
    1.115s > hook #3 ok
    1.115s     run hook global/a.sh #4 [two Schedule, one Schedule]
    2.115s > hook #4 ok
    2.115s     run hook global/b.sh #5 [one Schedule]
    2.125s > hook #5 ok
    2.125s     run hook global/a.sh #6 [two Schedule]
    3.125s > hook #6 ok
    ");
}

#[test]
fn f_d3_many_waiting_runs_are_merged_and_nothing_is_lost() {
    for count in [99, 100, 101, 1_000] {
        let files = files().global_hook("a.sh", PODS).global_hook("b.sh", PODS);
        let mut world = World::new(&files).settled().takes("global/a.sh", 5_000).fails("global/a.sh", 1);
        for n in 0..count {
            world = world.change(100 + n, "Pod", WatchEvent::Added, &format!("p{n:04}"));
        }
        let trace = world.run_for(100 + count + 1);
        let waiting = world.queue("main").len();
        assert!(waiting <= 202, "{count} events, {waiting} tasks: {trace}");
        let trace = trace + &world.run();
        for hook in ["global/a.sh", "global/b.sh"] {
            let runs = trace.lines().filter(|line| line.contains(&format!("run hook {hook}")));
            let seen: Vec<&str> =
                runs.flat_map(|line| line.split("Added ns/").skip(1).map(|rest| &rest[..5])).collect();
            let mut expected: Vec<String> = (0..count).map(|n| format!("p{n:04}")).collect();
            if hook == "global/a.sh" {
                // The first run failed and was repeated with more.
                expected.insert(0, "p0000".to_owned());
            }
            assert_eq!(seen, expected, "{hook}, {count} events");
        }
    }
}

#[test]
fn a_global_hook_switches_modules_on_and_off() {
    let files = files()
        .global_hook("switch.sh", "{onStartup: 1, schedule: [{name: tick, crontab: '* * * * *'}]}")
        .module(10, "web")
        .off();
    let mut world = World::new(&files).hook("global/switch.sh", Ok(sets("/webEnabled", &json!(true)))).hook(
        "global/switch.sh",
        Ok(patches(
            &json!([{"op": "remove", "path": "/webEnabled"}, {"op": "add", "path": "/global/x", "value": 1}]),
        )),
    );
    let mut trace = world.run();
    assert_eq!(world.view().modules[0].why, "global hook switch.sh says true");
    trace += &world.after(100, cron("* * * * *"));
    assert_snapshot!(trace, @r"
    0.000s > started
    0.000s     run hook global/switch.sh #1 [onStartup]
    0.010s > hook #1 ok
    0.010s     upgrade web #2
    0.060s > release #2 Installed
    0.060s     watch release web
    0.060s     list releases #3
    0.060s     set schedules [* * * * *]
    0.065s > releases #3 [web]
    0.165s > cron * * * * *
    0.165s     run hook global/switch.sh #4 [tick Schedule]
    0.175s > hook #4 ok
    0.175s     forget release web
    0.175s     uninstall web #5
    0.225s > release #5 Uninstalled
    ");
    assert_eq!(world.view().modules[0].why, "nothing enables it");
}

#[test]
fn a_stale_answer_leads_to_nothing() {
    let files = files().module(10, "web").hook("a.sh", "beforeHelm: 1");
    let mut world = World::new(&files).settled();
    let run = engine::RunId::new(1);
    world.send_in(100, Event::HookFinished { run, outcome: Ok(sets("/web/x", &json!(1))), usage: None });
    let trace = world.after(101, Event::ReleaseFinished { run, outcome: Err(crate::world::failure("x")) });
    assert_eq!(trace.lines().count(), 2, "{trace}");
    assert_eq!(world.view().stale_answers, 2);
}

#[test]
fn when_many_runs_of_two_hooks_wait_in_turns_those_of_one_become_one() {
    let files = files()
        .global_hook("a.sh", "schedule: [{name: odd, crontab: '1 * * * *', queue: side}]")
        .global_hook("b.sh", "schedule: [{name: even, crontab: '2 * * * *', queue: side}]");
    let mut world = World::new(&files).takes("a.sh", 60_000).settled();
    for _ in 0..102 {
        world.take_in(cron("1 * * * *"));
        world.take_in(cron("2 * * * *"));
    }
    let compacted = world.notices.iter().find_map(|notice| {
        let Notice::QueueCompacted { hook, before, after, .. } = notice else { return None };
        Some((hook.name.to_string(), *before, *after))
    });
    assert_eq!(compacted, Some(("b.sh".to_owned(), 101, 1)));
    assert!(world.queue("side").len() < 110, "{:?}", world.queue("side").len());
}

#[test]
fn a_global_hook_whose_kind_is_missing_holds_nothing_back_but_the_operator_is_not_ready() {
    let files = files()
        .global_hook("things.sh", "kubernetes: [{name: things, kind: Thing}]")
        .module(10, "web")
        .hook("a.sh", "beforeHelm: 1");
    let mut world = World::new(&files).without_kind("Thing").settled();
    let is_ready = |world: &World| world.engine.converge_view(world.now).first_done;
    let told = |world: &World, wanted: &Notice| world.notices.iter().filter(|told| *told == wanted).count();
    assert_eq!(world.view().modules[0].phase, "running");
    assert!(!is_ready(&world));
    let waits = Notice::ReadinessWaits {
        hook: HookId { scope: Scope::Global, name: "things.sh".into() },
        reason: "kind Thing does not exist yet".to_owned(),
        advice: "install the CustomResourceDefinition of Thing, or switch the module on that brings it (for its own hooks in `crds/` of its chart, not in `templates/`); the task goes on by itself".to_owned(),
    };
    assert_eq!((told(&world, &waits), told(&world, &Notice::Ready)), (1, 0));
    world.kind_appears("Thing");
    world.run();
    assert!(is_ready(&world));
    assert_eq!((told(&world, &waits), told(&world, &Notice::Ready)), (1, 1));
}
