//! Modules that give way: the removal of one that does not come to an end keeps `main` waiting for five minutes, and goes on in a queue of its own.

use engine::hook::WatchEvent;
use engine::{Command, CommandId, Event, Notice};

use crate::build::{Files, config, cron, files};
use crate::world::World;

const OFF: [(&str, &str); 2] = [("webEnabled", "false"), ("other", "x: 1")];

const HOUR: u64 = 3_600_000;

/// Two modules, of which `web` has a hook that runs before its release is removed.
fn pair() -> Files {
    files().module(10, "web").hook("bye.sh", "beforeDeleteHelm: 1").module(20, "other")
}

/// Lets this much time pass, whether anything happens or not. Returns what does.
pub(crate) fn wait(world: &mut World, millis: u64) -> String {
    world.send_in(millis, Event::TimerFired);
    world.run_for(millis)
}

/// Switches `web` off, and has `other` run behind that. Returns what happened in the first five minutes.
fn switched_off(world: &mut World) -> String {
    world.send_in(0, config(101, &OFF));
    let trace = wait(world, 299_000);
    assert!(!trace.contains("upgrade other"), "{trace}");
    trace
}

#[test]
fn a_hook_that_keeps_a_module_from_being_removed_keeps_main_waiting_for_five_minutes() {
    let worlds = vec![
        ("hangs", World::new(&pair()).settled().takes("web/bye.sh", 600_000)),
        ("fails", World::new(&pair()).settled().fails("web/bye.sh", 100)),
        ("fails slowly", World::new(&pair()).settled().takes("web/bye.sh", 2_000).fails("web/bye.sh", 60)),
        ("fails late", World::new(&pair()).settled().takes("web/bye.sh", 240_000).fails("web/bye.sh", 2)),
    ];
    for (case, mut world) in worlds {
        switched_off(&mut world);
        let trace = wait(&mut world, 10_000);
        assert!(trace.contains("upgrade other") && !trace.contains("uninstall web"), "{case}: {trace}");
        assert!(world.queue("main").is_empty(), "{case}");
        assert_eq!(world.queue("main_queue_web").len(), 1, "{case}");
        let told = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.contains("goes on in queue main_queue_web"));
        assert_eq!(world.noticed(told), 1, "{case}");
        // No converge adds another one, or waits.
        for id in 0..3 {
            world.send_in(0, Event::Commanded { id: CommandId::new(id), command: Command::Converge });
            wait(&mut world, 1_000);
        }
        assert!(world.queue("main").is_empty() && world.view().converge.began_ago.is_none(), "{case}");
        assert_eq!(world.queue("main_queue_web").len(), 1, "{case}");
        // Nothing of it is left out.
        let trace = wait(&mut world, 600_000);
        assert_eq!(trace.matches("uninstall web").count(), 1, "{case}: {trace}");
        assert!(!world.deployed.contains_key("web"), "{case}");
        assert!(world.view().queues.iter().all(|queue| queue.name.as_str() != "main_queue_web"), "{case}");
    }
}

#[test]
fn a_removal_that_waits_for_an_earlier_run_of_the_module_keeps_main_waiting_for_five_minutes() {
    let binding = "kubernetes: [{name: pods, kind: Pod, queue: q, executeHookOnSynchronization: false}]";
    let web = files().module(10, "web").hook("bye.sh", "beforeDeleteHelm: 1").hook("tick.sh", binding);
    let mut world = World::new(&web.module(20, "other")).settled().takes("web/tick.sh", HOUR);
    world = world.change(10, "Pod", WatchEvent::Added, "a").lived(2_000).fails("web/bye.sh", 1);
    switched_off(&mut world);
    let trace = wait(&mut world, 10_000);
    assert!(trace.contains("upgrade other") && !trace.contains("uninstall web"), "{trace}");
    let view = world.view();
    let queue = view.queues.iter().find(|queue| queue.name.as_str() == "main_queue_web").unwrap();
    assert_eq!(queue.tasks[0].waits_for.as_deref(), Some("an earlier run of the module has to end first"));
    wait(&mut world, HOUR);
    assert!(!world.deployed.contains_key("web"));
}

#[test]
fn a_module_that_is_on_again_ends_what_is_left_of_its_removal_and_runs() {
    for concurrency in [1, 4] {
        let settings = engine::Config { module_concurrency: concurrency, ..engine::Config::default() };
        let files = pair().module(10, "twin");
        let mut world = World::with_config(&files, settings).settled().takes("web/bye.sh", HOUR);
        switched_off(&mut world);
        wait(&mut world, 10_000);
        world.send_in(0, config(102, &[]));
        let trace = wait(&mut world, 5_000);
        assert!(trace.contains("cancel #") && trace.contains("upgrade web"), "{concurrency}: {trace}");
        assert!(!trace.contains("uninstall"), "{concurrency}: {trace}");
        assert!(world.view().queues.iter().all(|queue| queue.tasks.is_empty()), "{concurrency}: {trace}");
        assert_eq!(world.view().modules.iter().filter(|module| module.phase == "running").count(), 3);
        // It may be removed as before.
        world.take("web/bye.sh", 10);
        world.send_in(0, config(103, &OFF));
        assert!(wait(&mut world, 5_000).contains("uninstall web"), "{concurrency}");
    }
}

#[test]
fn a_removal_keeps_main_waiting_for_five_minutes_however_often_the_converge_begins_anew() {
    for (case, takes, fails) in [("hangs", 800_000, 0), ("fails", 100, 1_000)] {
        let mut world = World::new(&pair()).settled().takes("web/bye.sh", takes).fails("web/bye.sh", fails);
        world.send_in(0, config(101, &OFF));
        for version in 102..104 {
            let trace = wait(&mut world, 100_000);
            assert!(!trace.contains("upgrade other"), "{case}: {trace}");
            let text = format!("x: {version}");
            world.send_in(0, config(version, &[OFF[0], OFF[1], ("global", &text)]));
        }
        let trace = wait(&mut world, 95_000);
        assert!(!trace.contains("upgrade other"), "{case}: {trace}");
        let trace = wait(&mut world, 20_000);
        assert!(trace.contains("upgrade other") && !trace.contains("uninstall web"), "{case}: {trace}");
        assert!(world.queue("main").is_empty() && !world.queue("main_queue_web").is_empty(), "{case}");
        // What was begun first is not wanted any more, and the removal is not forgotten.
        wait(&mut world, 2 * HOUR);
        assert!(!world.deployed.contains_key("web"), "{case}");
    }
}

#[test]
fn a_removal_that_begins_after_its_module_was_on_again_keeps_main_waiting_for_five_minutes_again() {
    let mut world = World::new(&pair()).settled().takes("web/bye.sh", HOUR);
    switched_off(&mut world);
    world.send_in(0, config(102, &[]));
    world.take("web/bye.sh", 10);
    wait(&mut world, 2 * HOUR);
    world.take("web/bye.sh", HOUR);
    world.send_in(0, config(103, &[OFF[0], ("other", "x: 2")]));
    let trace = wait(&mut world, 299_000);
    assert!(!trace.contains("upgrade other"), "{trace}");
    assert!(wait(&mut world, 10_000).contains("upgrade other"));
}

#[test]
fn a_removal_that_gives_way_does_not_wait_for_hooks_whose_queue_is_named_like_its_own() {
    let binding = "schedule: [{name: tick, crontab: '* * * * *', queue: main_queue_web}]";
    let mut world = World::new(&pair().hook("tick.sh", binding))
        .settled()
        .takes("web/bye.sh", 400_000)
        .takes("other/tick.sh", 2 * HOUR);
    world.send_in(0, cron("* * * * *"));
    switched_off(&mut world);
    let trace = wait(&mut world, 200_000);
    assert!(trace.contains("upgrade other") && trace.contains("uninstall web"), "{trace}");
    assert_eq!(world.queue("main_queue_web").len(), 1, "the hook runs on");
}

#[test]
fn a_module_that_is_on_again_while_its_removal_hangs_runs_when_five_minutes_are_over() {
    let mut world = World::new(&pair()).settled().takes("web/bye.sh", HOUR);
    world.send_in(0, config(101, &OFF));
    wait(&mut world, 100_000);
    world.send_in(0, config(102, &[("other", "x: 2"), ("web", "x: 2")]));
    let trace = wait(&mut world, 195_000);
    assert!(!trace.contains("upgrade"), "{trace}");
    let trace = wait(&mut world, 20_000);
    assert!(trace.contains("cancel #") && !trace.contains("uninstall"), "{trace}");
    assert!(trace.contains("upgrade web") && trace.contains("upgrade other"), "{trace}");
    assert!(world.view().queues.iter().all(|queue| queue.tasks.is_empty()), "{trace}");
}
