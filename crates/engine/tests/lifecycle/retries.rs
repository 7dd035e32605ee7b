//! How modules and hooks that fail are tried again: `retry` in their files.

use engine::hook::WatchEvent;
use engine::view::{status, why};
use engine::{Command, CommandId, Config, Event, LastResort, Notice, RetryPolicy};

use crate::build::{Files, config, files, reread};
use crate::world::World;

fn policy(attempts: u32, then: LastResort) -> RetryPolicy {
    RetryPolicy { delay: Some(std::time::Duration::from_secs(2)), max: None, attempts: Some(attempts), then }
}

/// `web` has a hook that may fail, and `api` comes behind it.
fn web(then: LastResort) -> Files {
    files()
        .module(10, "web")
        .hook("before.sh", "beforeHelm: 1")
        .with(move |module| module.settings.retry = policy(3, then))
        .module(20, "api")
}

fn phase(world: &World, name: &str) -> &'static str {
    let modules = world.view().modules;
    modules.iter().find(|module| module.name.as_str() == name).unwrap().phase
}

/// What is not true of a module that was parked or given up.
const AGAIN: &str = "tried again by itself";

/// Returns what `status` and `why` say about `web`.
fn advice(world: &World) -> [String; 2] {
    let why = world.told(|view, format| why::module(view, "web", format).unwrap().text());
    [world.told(status::text), why]
}

fn runs(trace: &str, hook: &str) -> usize {
    trace.matches(&format!("run hook {hook}")).count()
}

fn resume(name: &str) -> Event {
    Event::Commanded { id: CommandId::new(1), command: Command::ResumeModule(name.into()) }
}

#[test]
fn a_module_that_is_skipped_stays_failed_and_lets_the_others_run() {
    let mut world = World::new(&web(LastResort::Skip)).fails("web/before.sh", 3);
    let trace = world.run();
    assert_eq!(runs(&trace, "web/before.sh"), 3, "{trace}");
    assert!(
        trace.contains("2.010s > timer") && trace.contains("4.020s > timer"),
        "every two seconds: {trace}"
    );
    assert!(trace.contains("upgrade api") && !trace.contains("upgrade web"), "{trace}");
    assert_eq!((phase(&world, "web"), phase(&world, "api")), ("failed", "running"));
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::Ready)), 1);
    for told in advice(&world) {
        assert!(
            told.contains("it is given up until its values or files change") && !told.contains(AGAIN),
            "{told}"
        );
    }
    let trace = world.after(10, config(200, &[("web", "x: 1")]));
    assert_eq!((runs(&trace, "web/before.sh"), phase(&world, "web")), (1, "running"), "{trace}");
}

#[test]
fn a_module_that_is_parked_waits_for_other_values_or_files_or_a_person() {
    for (repair, name) in [
        (config(200, &[("web", "x: 1")]), "values"),
        (reread(&web(LastResort::Park).content("web", 2)), "files"),
        (resume("web"), "a person"),
    ] {
        let mut world = World::new(&web(LastResort::Park)).fails("web/before.sh", 3).settled();
        assert_eq!((phase(&world, "web"), phase(&world, "api")), ("parked", "running"), "{name}");
        let told = world.told(status::text);
        assert!(told.contains("its run failed 3 times, the last time because: exit status 1"), "{told}");
        for told in advice(&world) {
            assert!(told.contains("module resume web") && !told.contains(AGAIN), "{told}");
        }
        let quiet = world.after(10, Event::Commanded { id: CommandId::new(2), command: Command::Converge });
        assert_eq!((runs(&quiet, "web/before.sh"), phase(&world, "web")), (0, "parked"), "{name}: {quiet}");
        world.after(10, repair);
        assert_eq!(phase(&world, "web"), "running", "{name}");
    }
}

#[test]
fn a_module_whose_values_or_files_change_while_its_last_attempt_runs_is_not_parked_for_the_old_ones() {
    for (repair, name) in [
        (config(200, &[("web", "x: 1")]), "values"),
        (reread(&web(LastResort::Park).content("web", 2)), "files"),
    ] {
        let world = World::new(&web(LastResort::Park)).fails("web/before.sh", 3);
        let world = &mut world.takes("web/before.sh", 500).at(5_200, repair);
        let trace = world.run();
        assert_eq!((runs(&trace, "web/before.sh"), phase(world, "web")), (4, "running"), "{name}: {trace}");
    }
}

/// `slow` fails again and again, and each attempt takes three seconds; `fine` comes behind it.
fn failing() -> World {
    let files = files().module(10, "slow").hook("before.sh", "beforeHelm: 1").module(20, "fine");
    World::new(&files).fails("slow/before.sh", 1_000).takes("slow/before.sh", 3_000)
}

#[test]
fn what_somebody_changes_while_an_attempt_runs_does_not_wait_for_what_fails() {
    let off = || config(200, &[("slowEnabled", "false")]);
    for during in [1_000, 9_000] {
        let mut world = failing().at(during, off());
        let trace = world.run_until(during + 4_000);
        assert!(trace.contains("upgrade fine"), "in an attempt: {trace}");
        assert_eq!((phase(&world, "slow"), phase(&world, "fine")), ("disabled", "running"), "{trace}");
        assert!(world.view().queues.iter().all(|queue| queue.tasks.is_empty()), "{:?}", world.view().queues);
    }
    // The same behind the first converge.
    let mut world = failing().configured(&[("slowEnabled", "false")]).settled();
    world.after(10, config(300, &[]));
    let trace = world.after(500, config(301, &[("slowEnabled", "false"), ("global", "x: 1")]));
    let trace = trace + &world.run_for(5_000);
    assert_eq!(phase(&world, "slow"), "disabled", "{trace}");
    assert!(world.view().queues.iter().all(|queue| queue.tasks.is_empty()), "{:?}", world.view().queues);
}

#[test]
fn parallel_modules_do_not_wait_for_one_that_is_given_up() {
    let files = files()
        .module(10, "web")
        .hook("before.sh", "beforeHelm: 1")
        .with(|module| module.settings.retry = policy(2, LastResort::Skip))
        .module(10, "api")
        .module(20, "late");
    let config = Config { module_concurrency: 2, ..Config::default() };
    let mut world = World::with_config(&files, config).fails("web/before.sh", 2);
    let trace = world.run();
    assert!(trace.contains("upgrade late"), "{trace}");
    assert!(world.view().queues.iter().all(|queue| queue.tasks.is_empty()), "{:?}", world.view().queues);
}

/// `web` has a hook for events and another one behind it in the same queue.
fn watching(retry: &str) -> Files {
    let config = |name: &str, settings: &str| {
        format!(
            "{{{settings} kubernetes: [{{name: {name}, kind: Pod, executeHookOnSynchronization: false, queue: side}}]}}"
        )
    };
    files()
        .module(10, "web")
        .hook("a.sh", &config("a", &format!("settings: {{retry: {retry}}},")))
        .hook("b.sh", &config("b", ""))
}

#[test]
fn a_hook_that_is_skipped_loses_that_run_and_no_other() {
    let mut world =
        World::new(&watching("{delay: 1s, attempts: 2, then: skip}")).settled().fails("web/a.sh", 2);
    world =
        world.change(100, "Pod", WatchEvent::Added, "one").change(20_000, "Pod", WatchEvent::Added, "two");
    let trace = world.run();
    assert_eq!((runs(&trace, "web/a.sh"), runs(&trace, "web/b.sh")), (3, 2), "{trace}");
    assert!(world.view().queues.iter().all(|queue| queue.tasks.is_empty()));
}

#[test]
fn a_hook_is_not_parked_for_what_somebody_changed_while_its_last_attempt_ran() {
    let files = || watching("{delay: 1s, attempts: 2, then: park}");
    for (repair, name) in [
        (config(200, &[("web", "x: 1")]), "values of the ConfigMap"),
        (config(200, &[("zz", "x: 1")]), "a key of the ConfigMap that no module has"),
        (reread(&files().content("web", 2)), "files"),
    ] {
        let world = World::new(&files()).settled().fails("web/a.sh", 2).takes("web/a.sh", 500);
        let mut world = world.change(100, "Pod", WatchEvent::Added, "one");
        // The second attempt begins a second behind the end of the first.
        let begun = world.run_for(1_700);
        assert_eq!(runs(&begun, "web/a.sh"), 2, "{begun}");
        world.send_in(100, repair);
        let trace = world.run();
        assert_eq!(runs(&trace, "web/a.sh"), 1, "{name}: {trace}");
        assert!(world.view().queues.iter().all(|queue| queue.tasks.is_empty()), "{name}");
    }
}

#[test]
fn a_hook_that_fails_again_after_a_change_is_parked_after_as_many_attempts() {
    let world = World::new(&watching("{delay: 1s, attempts: 2, then: park}")).settled();
    let mut world = world.fails("web/a.sh", 10).takes("web/a.sh", 500);
    world = world.change(100, "Pod", WatchEvent::Added, "one");
    world.run_for(1_700);
    world.send_in(100, config(200, &[("web", "x: 1")]));
    let trace = world.run();
    assert_eq!(runs(&trace, "web/a.sh"), 2, "{trace}");
    assert!(world.told(status::text).contains("! hook web/a.sh is parked"), "{trace}");
}

#[test]
fn a_hook_that_is_parked_keeps_its_events_until_it_is_mended_and_holds_up_nobody() {
    for (repair, name) in [
        (config(200, &[("web", "x: 1")]), "the ConfigMap"),
        (config(200, &[("zz", "x: 1")]), "a key of the ConfigMap that no module has"),
        (reread(&watching("{delay: 1s, attempts: 2, then: park}").content("web", 2)), "files"),
        (resume("web"), "a person"),
    ] {
        let mut world =
            World::new(&watching("{delay: 1s, attempts: 2, then: park}")).settled().fails("web/a.sh", 2);
        world = world.change(100, "Pod", WatchEvent::Added, "one").change(
            20_000,
            "Pod",
            WatchEvent::Added,
            "two",
        );
        let trace = world.run();
        assert_eq!((runs(&trace, "web/a.sh"), runs(&trace, "web/b.sh")), (2, 2), "{name}: {trace}");
        let told = world.told(status::text);
        assert!(told.contains("! hook web/a.sh is parked"), "{told}");
        let is_told = |notice: &Notice| matches!(notice, Notice::TaskWaits { reason, .. } if reason.contains("it failed 2 times"));
        assert_eq!(world.noticed(is_told), 1, "an event that joins it says nothing new");
        let trace = world.after(10, repair);
        assert_eq!(runs(&trace, "web/a.sh"), 1, "both events in one run, {name}: {trace}");
        assert!(world.view().queues.iter().all(|queue| queue.tasks.is_empty()), "{name}");
    }
}
