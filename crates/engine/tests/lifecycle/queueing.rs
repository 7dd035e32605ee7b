//! Runs that wait: what may be merged, what must stay apart, and what gets lost never.

use engine::hook::WatchEvent::{Added, Deleted, Modified};
use engine::{Config, Event, HookOutput, Notice};
use insta::assert_snapshot;
use serde_json::json;

use crate::build::{PODS, changed, config, cron, files, patches, sets};
use crate::giving_way::wait;
use crate::world::World;

/// The lines of a trace that say which hook runs, without times and numbers.
fn runs(trace: &str) -> Vec<String> {
    let runs = trace.lines().filter_map(|line| line.split_once("run hook ").map(|(_, run)| run));
    runs.map(|run| {
        run.split(' ')
            .enumerate()
            .filter(|(place, _)| *place != 1)
            .map(|(_, word)| word)
            .collect::<Vec<_>>()
            .join(" ")
    })
    .collect()
}

#[test]
fn events_never_become_part_of_a_lifecycle_run_that_can_be_dropped() {
    let files = files()
        .global_hook("all.sh", "{afterAll: 1, kubernetes: [{name: pods, kind: Pod}]}")
        .module(10, "web");
    let mut world = World::new(&files).settled().fails("global/all.sh", 2);
    // An afterAll run fails, an event comes, and the converge starts over.
    world = world
        .at(100, config(101, &[("global", "a: 1")]))
        .change(1_000, "Pod", Added, "kept")
        .at(2_000, config(102, &[("global", "a: 2")]));
    let trace = world.run();
    let seen = runs(&trace);
    assert_eq!(seen.iter().filter(|run| run.contains("Added ns/kept")).count(), 1, "{trace}");
    assert!(seen.iter().all(|run| !(run.contains("afterAll") && run.contains("Added"))), "{trace}");
}

#[test]
fn lifecycle_runs_stay_apart_when_many_runs_are_merged() {
    let files = files()
        .global_hook("all.sh", "{beforeAll: 1, afterAll: 1, kubernetes: [{name: pods, kind: Pod}]}")
        .global_hook("other.sh", PODS)
        .module(10, "web");
    let mut world = World::new(&files).settled().takes("global/all.sh", 2_000);
    world.send_in(10, config(101, &[("global", "a: 1")]));
    for n in 0..300 {
        world = world.change(100 + n, "Pod", Added, &format!("p{n:03}"));
    }
    let seen = runs(&world.run());
    assert_eq!(seen.iter().filter(|run| run.contains("beforeAll") || run.contains("afterAll")).count(), 2);
    assert!(seen.iter().all(|run| !(run.contains("All") && run.contains("Added"))), "{seen:#?}");
    for hook in ["global/all.sh", "global/other.sh"] {
        let events = seen.iter().filter(|run| run.starts_with(hook)).map(|run| run.matches("Added").count());
        assert_eq!(events.sum::<usize>(), 300, "{hook}");
    }
}

#[test]
fn f_d3_a_synchronization_is_never_merged_away_among_many_events() {
    let files = files()
        .global_hook(
            "a.sh",
            "kubernetes: [{name: pods, kind: Pod, queue: side}, {name: late, kind: Thing, queue: side}]",
        )
        .global_hook("b.sh", "kubernetes: [{name: pods, kind: Pod, queue: side}]");
    let mut world = World::new(&files).without_kind("Thing").settled().takes("global/a.sh", 3_000);
    for n in 0..150 {
        world = world.change(n, "Pod", Added, &format!("p{n:03}"));
    }
    let mut trace = world.run_for(500);
    world.kind_appears("Thing");
    for n in 0..150 {
        world = world.change(100 + n, "Pod", Modified, &format!("p{n:03}"));
    }
    trace += &world.run();
    let seen = runs(&trace);
    let alone = seen.iter().filter(|run| *run == "global/a.sh [late Synchronization] in side").count();
    assert_eq!(alone, 1, "{seen:#?}");
    for (hook, what) in [
        ("global/a.sh", "Added"),
        ("global/a.sh", "Modified"),
        ("global/b.sh", "Added"),
        ("global/b.sh", "Modified"),
    ] {
        let events = seen.iter().filter(|run| run.starts_with(hook)).map(|run| run.matches(what).count());
        assert_eq!(events.sum::<usize>(), 150, "{hook} {what}");
    }
}

#[test]
fn f_d3_ten_thousand_waiting_runs_of_two_hooks_keep_the_order_of_each() {
    let files = files()
        .global_hook("a.sh", PODS)
        .global_hook("b.sh", "kubernetes: [{name: pods, kind: Pod, group: g}]");
    let mut world = World::new(&files).settled().takes("global/a.sh", 60_000).fails("global/a.sh", 1);
    world.is_quiet = true;
    for n in 0..10_000 {
        world = world.change(n, "Pod", Added, &format!("p{n:05}"));
    }
    world.run_for(10_001);
    assert!(world.queue("main").len() <= 203, "{}", world.queue("main").len());
    world.is_quiet = false;
    let seen = runs(&world.run());
    let names: Vec<&str> = seen
        .iter()
        .filter(|run| run.starts_with("global/a.sh"))
        .flat_map(|run| run.split("Added ns/").skip(1).map(|rest| &rest[..6]))
        .collect();
    let expected: Vec<String> = (0..10_000).map(|n| format!("p{n:05}")).collect();
    assert_eq!(names, expected);
    let grouped: Vec<&String> = seen.iter().filter(|run| run.starts_with("global/b.sh")).collect();
    assert!(grouped.len() <= 2, "a group collapses: {} runs", grouped.len());
}

#[test]
fn runs_are_merged_by_how_many_wait_and_not_by_how_many_there_ever_were() {
    let files = files().global_hook("a.sh", PODS).global_hook("b.sh", PODS);
    let mut world = World::new(&files).settled();
    // Each event is handled before the next one comes: the queue never has more than two tasks.
    for n in 0..300 {
        world = world.change(n * 100, "Pod", Added, &format!("p{n:03}"));
    }
    let seen = runs(&world.run());
    let expected: Vec<String> = (0..300)
        .flat_map(|n| ["a.sh", "b.sh"].map(|hook| format!("global/{hook} [pods Added ns/p{n:03}]")))
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_grouped_synchronization_that_failed_lets_its_bindings_go_live_when_it_succeeds() {
    let files = files().global_hook(
        "w.sh",
        "{kubernetes: [{name: pods, kind: Pod, group: g}, {name: nodes, kind: Node, group: g}], schedule: [{name: tick, crontab: '* * * * *', group: g}]}",
    );
    let mut world = World::new(&files)
        .takes("global/w.sh", 100)
        .fails("global/w.sh", 1)
        .change(50, "Pod", Added, "during-the-first")
        .change(5_150, "Node", Added, "during-the-second");
    let mut trace = world.run();
    world = world.change(100, "Pod", Deleted, "later");
    world = world.change(100, "Pod", Added, "later").change(1_000, "Pod", Deleted, "later");
    trace += &world.run();
    assert_eq!(
        runs(&trace),
        [
            "global/w.sh [nodes Synchronization]",
            "global/w.sh [nodes Synchronization]",
            "global/w.sh [nodes Added ns/during-the-second]",
            "global/w.sh [pods Added ns/later]",
            "global/w.sh [pods Deleted ns/later]",
        ],
        "{trace}"
    );
}

#[test]
fn runs_whose_failure_is_allowed_are_not_put_into_one_whose_failure_is_not() {
    let files = files().global_hook(
        "w.sh",
        "schedule: [{name: strict, crontab: '1 * * * *'}, {name: loose, crontab: '2 * * * *', allowFailure: true}]",
    );
    let mut world = World::new(&files).settled().takes("global/w.sh", 1_000);
    world.send_in(0, cron("1 * * * *"));
    for n in 1..4 {
        world.send_in(n * 10, cron(if n == 2 { "1 * * * *" } else { "2 * * * *" }));
    }
    world.run_for(100);
    assert_eq!(
        world.queue("main").len(),
        4,
        "the running one, and three that can't be merged: {:?}",
        world.queue("main")
    );
}

#[test]
fn the_old_dialect_gets_one_context_for_each_run_and_no_synchronization() {
    let files = files().global_hook("old.sh", r#"{"onKubernetesEvent": [{"name": "pods", "kind": "pod"}]}"#);
    let mut world = World::new(&files).object("pod", "a").settled().takes("global/old.sh", 1_000);
    for n in 0..3 {
        world = world.change(n * 10, "pod", Added, &format!("p{n}"));
    }
    assert_eq!(
        runs(&world.run()),
        [
            "global/old.sh [pods Added ns/p0]",
            "global/old.sh [pods Added ns/p1]",
            "global/old.sh [pods Added ns/p2]"
        ]
    );
}

#[test]
fn schedules_with_one_line_fire_by_hook_and_then_in_the_order_of_the_configuration() {
    let files = files()
        .module(20, "later")
        .hook("x.sh", "schedule: [{name: z, crontab: '* * * * *', queue: z}, {name: a, crontab: '* * * * *', queue: a}]")
        .module(10, "sooner")
        .hook("b.sh", "schedule: [{name: x, crontab: '* * * * *'}]")
        .hook("a.sh", "schedule: [{name: x, crontab: '* * * * *'}]")
        .global_hook("g.sh", "schedule: [{name: q, crontab: '* * * * *'}]");
    let mut world = World::new(&files).settled();
    let trace = world.after(10, cron("* * * * *"));
    let queued: Vec<String> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::TaskQueued { task } if task.cause.to_string().contains("schedule") => {
                Some(format!("{} {}", task.hook.as_ref().unwrap(), task.binding.as_deref().unwrap()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        queued,
        ["global/g.sh q", "sooner/a.sh x", "sooner/b.sh x", "later/x.sh z", "later/x.sh a"],
        "{trace}"
    );
}

#[test]
fn f_c12_the_schedules_of_a_module_stop_at_once_when_it_is_switched_off() {
    let files = files()
        .module(10, "web")
        .hook("tick.sh", "schedule: [{name: tick, crontab: '1 * * * *', queue: side}, {name: both, crontab: '2 * * * *', queue: side}]")
        .module(20, "other")
        .hook("tick.sh", "schedule: [{name: both, crontab: '2 * * * *', queue: side}]");
    let mut world = World::new(&files).settled().takes("web/tick.sh", 10_000);
    // One run is in flight and one waits when the module is switched off, and the clock fires once more.
    world.send_in(10, cron("1 * * * *"));
    world.send_in(20, cron("1 * * * *"));
    world.send_in(100, config(101, &[("webEnabled", "false")]));
    world.send_in(400, cron("1 * * * *"));
    let trace = world.after(500, cron("2 * * * *"));
    let seen = runs(&trace);
    assert_eq!(seen.iter().filter(|run| run.starts_with("web/tick.sh")).count(), 1, "{trace}");
    assert_eq!(seen.iter().filter(|run| run.starts_with("other/tick.sh")).count(), 1, "{trace}");
    assert!(trace.contains("set schedules [2 * * * *]"), "the line of the other module stays: {trace}");
}

#[test]
fn f_c12_a_late_event_runs_no_hook_of_a_module_that_is_off() {
    let files = files().module(10, "web").hook("w.sh", "kubernetes: [{name: pods, kind: Pod, queue: side}]");
    let mut world = World::new(&files).settled();
    world.send_in(10, config(101, &[("webEnabled", "false")]));
    // The watch is stopped some time later; until then, and after it, events can be on their way.
    for n in 0..40 {
        world = world.change(11 + n * 5, "Pod", Added, &format!("p{n}"));
        world.send_in(
            12 + n * 5,
            changed(
                engine::MonitorId::new(1),
                Modified,
                crate::build::key("p0"),
                crate::build::item(&n.to_string()),
            ),
        );
    }
    let trace = world.run();
    assert_eq!(runs(&trace), Vec::<String>::new(), "{trace}");
    assert!(trace.contains("stop monitor m1"), "{trace}");
}

#[test]
fn a_failed_hook_still_writes_the_status_that_it_marked() {
    let text = r#"{"operation":"MergePatch","kind":"Pod","name":"x","subresource":"status","ignoreHookError":true,"mergePatch":{"status":{}}}"#;
    let failed = |output: HookOutput| HookOutput {
        failed: Some(crate::world::failure("exit status 1")),
        object_patches: engine::object_patch::parse(text.as_bytes()).unwrap(),
        ..output
    };
    let files = files().module(10, "web").hook("a.sh", "onStartup: 1");
    // Nothing else of what a failed hook wrote takes effect, whoever hands it over.
    let mut world = World::new(&files)
        .hook("web/a.sh", Ok(failed(sets("/web/x", &json!(1)))))
        .hook("web/a.sh", Ok(failed(patches(&json!([{"op": "remove", "path": "/web/nothing"}])))))
        .patching(Ok(()))
        .patching(Err("gone"))
        .showing_values();
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     run hook web/a.sh #1 [onStartup] {} {}
    0.010s > hook #1 ok
    0.010s     patch 1 objects for web/a.sh #2
    0.015s > patched #2 ok
    5.015s > timer
    5.015s     run hook web/a.sh #3 [onStartup] {} {}
    5.025s > hook #3 ok
    5.025s     patch 1 objects for web/a.sh #4
    5.030s > patched #4 failed: gone
    10.030s > timer
    10.030s     run hook web/a.sh #5 [onStartup] {} {}
    10.040s > hook #5 ok
    10.040s     upgrade web #6 {} {}
    10.090s > release #6 Installed
    10.090s     watch release web
    10.090s     list releases #7
    10.095s > releases #7 [web]
    ");
    let view = world.view();
    let failures: Vec<String> =
        view.journal.iter().filter_map(|end| end.failure.as_ref()).map(ToString::to_string).collect();
    assert_eq!(
        failures,
        ["exit status 1: and what it wrote all the same was not done: gone", "exit status 1"]
    );
}

#[test]
fn a_run_that_the_end_cuts_off_is_no_failure() {
    let files = files().global_hook("slow.sh", "onStartup: 1").module(10, "web").script();
    for (slow, end) in [("global/slow.sh", 100), ("global/none.sh", 15)] {
        let at_once = Config { shutdown_timeout: std::time::Duration::ZERO, ..Config::default() };
        let mut world =
            World::with_config(&files, at_once).takes(slow, 60_000).at(end, Event::ShutdownRequested);
        let trace = world.run();
        assert!(trace.contains("cancel #") && trace.ends_with("exit\n"), "{trace}");
        let stopped = world.noticed(|notice| matches!(notice, Notice::TaskStopped { .. }));
        let failed = world.noticed(|notice| matches!(notice, Notice::TaskFinished { failure: Some(_), .. }));
        let ended_badly =
            world.noticed(|notice| matches!(notice, Notice::HookRan { outcome: engine::HookEnd::Error, .. }));
        assert_eq!((stopped, failed, ended_badly), (1, 0, 0), "{slow}");
        assert!(world.view().queues.iter().all(|queue| queue.tasks.iter().all(|task| task.failures == 0)));
    }
}

#[test]
fn slip_17_a_release_that_is_changed_when_the_operator_ends_is_ended_after_the_grace_and_is_no_failure() {
    let mut world = World::new(&files().module(10, "web"))
        .takes("release web", 60_000)
        .at(1_000, Event::ShutdownRequested);
    let trace = world.run();
    assert!(trace.contains("5.000s     cancel #1") && trace.ends_with("5.005s     exit\n"), "{trace}");
    let stopped = world.noticed(|notice| matches!(notice, Notice::TaskStopped { .. }));
    let failed = world.noticed(|notice| matches!(notice, Notice::TaskFinished { failure: Some(_), .. }));
    let ran = world.noticed(|notice| matches!(notice, Notice::ReleaseRan { .. }));
    assert_eq!((stopped, failed, ran), (1, 0, 0));
}

#[test]
fn a_place_among_the_running_hooks_is_waited_for_in_sight() {
    let files = files()
        .global_hook("a.sh", "schedule: [{name: tick, crontab: '* * * * *', queue: a}]")
        .global_hook("b.sh", "schedule: [{name: tick, crontab: '* * * * *', queue: b}]");
    let config = Config { max_hooks: 1, ..Config::default() };
    let mut world = World::with_config(&files, config).settled().takes("global/a.sh", 5_000);
    world.send_in(0, cron("* * * * *"));
    world.run_for(1_000);
    let view = world.view();
    let waiting = view.queues.iter().find(|queue| queue.name.as_str() == "b").unwrap();
    assert!(waiting.tasks[0].waits_for.as_ref().unwrap().contains("--max-hooks"), "{:?}", waiting.tasks);
    world.run();
    let waited: Vec<f64> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::TaskStarted { task, waited } if task.queue.as_str() == "b" => Some(waited.as_secs_f64()),
            _ => None,
        })
        .collect();
    assert_eq!(waited, [5.0], "the metric counts the time in the queue");
}

#[test]
fn the_end_waits_for_no_delay_and_for_no_kind() {
    let failing = files().global_hook("a.sh", "onStartup: 1");
    let waiting =
        files().module(10, "web").hook("a.sh", "{beforeHelm: 1, kubernetes: [{name: things, kind: Thing}]}");
    let worlds = vec![
        World::new(&failing).fails("global/a.sh", 9).at(2_000, Event::ShutdownRequested),
        World::new(&waiting).without_kind("Thing").at(2_000, Event::ShutdownRequested),
    ];
    for mut world in worlds {
        let trace = world.run();
        assert!(trace.ends_with("2.000s > shutdown\n2.000s     exit\n"), "{trace}");
    }
}

#[test]
fn slip_11_hooks_that_sleep_in_queues_of_their_own_hold_back_no_module() {
    let mut files = files();
    for n in 0..8 {
        files = files.global_hook(
            &format!("h{n}.sh"),
            &format!("schedule: [{{name: tick, crontab: '* * * * *', queue: q{n}}}]"),
        );
    }
    let files = files.module(10, "web").script().hook("b.sh", "beforeHelm: 1");
    for (max_hooks, concurrency) in [(8, 1), (8, 2), (1, 1), (Config::default().max_hooks, 1)] {
        let settings = Config { max_hooks, module_concurrency: concurrency, ..Config::default() };
        let mut world = World::with_config(&files, settings).settled();
        for n in 0..8 {
            world = world.takes(&format!("global/h{n}.sh"), 3_600_000);
        }
        world.send_in(0, cron("* * * * *"));
        world.send_in(10, config(200, &[("web", "size: 2")]));
        let trace = world.run_for(5_000);
        assert!(trace.contains("run enabled script of web"), "{max_hooks}: {trace}");
        assert!(trace.contains("run hook web/b.sh") && trace.contains("upgrade web"), "{max_hooks}: {trace}");
    }
}

#[test]
fn slip_11_what_main_waits_for_in_another_queue_waits_for_no_place() {
    let mut files = files();
    // The last one stands before the Synchronization in its queue.
    for (hook, queue) in [("h0.sh", "q0"), ("h1.sh", "q1"), ("last.sh", "side")] {
        let binding = format!("{{name: pods, kind: Pod, queue: {queue}, waitForSynchronization: false}}");
        files = files.global_hook(hook, &format!("kubernetes: [{binding}]"));
    }
    let files = files
        .module(10, "web")
        .hook("w.sh", "kubernetes: [{name: nodes, kind: Node, queue: side}]")
        .module(20, "behind");
    for max_hooks in [1, 2] {
        let mut world = World::with_config(&files, Config { max_hooks, ..Config::default() })
            .without_kind("Node")
            .takes("global/h0.sh", 3_600_000)
            .takes("global/h1.sh", 3_600_000);
        world.run_until(5_000);
        assert_eq!(world.engine.view().processes, max_hooks);
        assert_eq!(world.queue("side").len(), 1, "it waits for a place");
        world.kind_appears("Node");
        let trace = world.run_for(60_000);
        assert!(trace.contains("run hook global/last.sh"), "{max_hooks}: {trace}");
        assert!(trace.contains("[nodes Synchronization] in side"), "{max_hooks}: {trace}");
        assert!(trace.contains("upgrade web"), "{max_hooks}: {trace}");
        assert!(world.queue("main").is_empty(), "{max_hooks}: {:?}", world.queue("main"));
        assert_eq!(world.engine.view().processes, max_hooks, "others wait for their turn");
    }
}

#[test]
fn f_d7_a_queue_that_is_busy_every_fifteen_seconds_is_not_stuck_and_one_that_hangs_is() {
    let files = files()
        .global_hook("often.sh", "schedule: [{name: tick, crontab: '*/15 * * * * *', queue: side}]")
        .global_hook("hangs.sh", "schedule: [{name: tick, crontab: '0 * * * *', queue: slow}]")
        .module(10, "web")
        .hook("w.sh", "kubernetes: [{name: things, kind: Thing}]");
    let mut world = World::new(&files).without_kind("Thing").settled();
    world.kind_appears("Thing");
    world.run();
    let mut world = world.takes("global/often.sh", 14_000).takes("global/hangs.sh", 36_000_000);
    let begun = world.later(0);
    world.send_in(0, cron("0 * * * *"));
    let mut longest = std::time::Duration::ZERO;
    for scrape in 0..240 {
        world.send_in(0, cron("*/15 * * * * *"));
        world.run_until(begun + scrape * 15_000 + 13_000);
        let view = world.engine.view_at(world.now);
        let queue = |name: &str| view.queues.iter().find(|queue| queue.name.as_str() == name).unwrap();
        assert_eq!(queue("side").tasks.len(), 1, "it is busy at every look");
        longest = longest.max(queue("side").head_for().unwrap());
        world.run_until(begun + (scrape + 1) * 15_000);
        world.now = engine::Time::from_start(std::time::Duration::from_millis(begun + (scrape + 1) * 15_000));
    }
    assert!(longest < std::time::Duration::from_secs(15), "{longest:?}");
    let view = world.engine.view_at(world.now);
    let slow = view.queues.iter().find(|queue| queue.name.as_str() == "slow").unwrap();
    assert!(slow.head_for().unwrap() >= std::time::Duration::from_secs(3_590), "{slow:?}");
}

#[test]
fn tasks_that_are_set_aside_make_no_queue_stuck() {
    let files = files().module(10, "web").hook("w.sh", "kubernetes: [{name: things, kind: Thing}]");
    let world = World::new(&files).without_kind("Thing").settled();
    let main = &world.view().queues[0];
    assert_eq!((main.tasks.len(), main.head_for()), (2, None));
}

#[test]
fn a_queue_that_a_hook_names_like_one_of_the_operator_is_a_queue_of_hooks() {
    for queue in ["main_queue_b", "namespace_queue_a", "namespace_queue_a/b", "parallel_queue_0"] {
        let hook = |cron: &str, queue: &str| {
            format!("schedule: [{{name: tick, crontab: '{cron}', queue: {queue}}}]")
        };
        let files = files()
            .module(10, "a")
            .hook("a.sh", &hook("* * * * *", queue))
            .module(20, "b")
            .hook("b.sh", &hook("* * * * *", queue))
            .global_hook("c.sh", &hook("5 * * * *", "side"));
        let settings = Config { max_hooks: 1, module_concurrency: 2, ..Config::default() };
        let mut world = World::with_config(&files, settings)
            .settled()
            .takes("a/a.sh", 600_000)
            .takes("b/b.sh", 1_000)
            .takes("global/c.sh", 30_000);
        world.send_in(0, cron("5 * * * *"));
        world.send_in(10, cron("* * * * *"));
        // It waits for a place, as other queues of hooks do.
        let trace = wait(&mut world, 20_000);
        assert!(
            trace.contains("run hook global/c.sh") && !trace.contains("run hook a/a.sh"),
            "{queue}: {trace}"
        );
        // Nobody gives way there.
        let trace = wait(&mut world, 500_000);
        assert!(trace.contains("run hook a/a.sh") && !trace.contains("run hook b/b.sh"), "{queue}: {trace}");
        assert_eq!(world.queue(queue).len(), 2, "{queue}");
        let trace = wait(&mut world, 200_000);
        assert!(trace.contains("run hook b/b.sh"), "{queue}: {trace}");
        // It is there as long as the hooks are.
        let is_it = |shown: &engine::view::QueueView| shown.name.as_str() == queue && shown.tasks.is_empty();
        assert!(world.view().queues.iter().any(is_it), "{queue}");
    }
}
