//! The beginning, and the first converge.

use engine::hook::WatchEvent;
use engine::{Command, CommandId, Event, Notice};
use insta::assert_snapshot;
use serde_json::json;

use crate::build::{PODS, TICK, config, cron, files, sets};
use crate::world::World;

#[test]
fn the_first_converge_runs_everything_in_order() {
    let files = files()
        .global_hook("start.sh", "onStartup: 1")
        .global_hook("before.sh", "beforeAll: 1")
        .global_hook("after.sh", "afterAll: 1")
        .module(10, "web")
        .hook("m-start.sh", "onStartup: 1")
        .hook("m-before.sh", "beforeHelm: 1")
        .hook("m-after.sh", "afterHelm: 1");
    assert_snapshot!(World::new(&files).run(), @r"
    0.000s > started
    0.000s     run hook global/start.sh #1 [onStartup]
    0.010s > hook #1 ok
    0.010s     run hook global/before.sh #2 [beforeAll]
    0.020s > hook #2 ok
    0.020s     run hook web/m-start.sh #3 [onStartup]
    0.030s > hook #3 ok
    0.030s     run hook web/m-before.sh #4 [beforeHelm]
    0.040s > hook #4 ok
    0.040s     upgrade web #5
    0.090s > release #5 Installed
    0.090s     watch release web
    0.090s     run hook web/m-after.sh #6 [afterHelm]
    0.100s > hook #6 ok
    0.100s     run hook global/after.sh #7 [afterAll]
    0.110s > hook #7 ok
    0.110s     list releases #8
    0.115s > releases #8 [web]
    ");
}

#[test]
fn an_empty_set_of_modules_is_valid() {
    let mut world = World::new(&files());
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     list releases #1
    0.005s > releases #1 []
    ");
    assert!(world.view().converge.first_done);
}

#[test]
fn a_failed_hook_runs_again_after_five_seconds_before_everything_behind_it() {
    let files = files().global_hook("a.sh", "onStartup: 1").global_hook("b.sh", "onStartup: 2");
    assert_snapshot!(World::new(&files).fails("global/a.sh", 2).run(), @r"
    0.000s > started
    0.000s     run hook global/a.sh #1 [onStartup]
    0.010s > hook #1 failed: exit status 1
    5.010s > timer
    5.010s     run hook global/a.sh #2 [onStartup]
    5.020s > hook #2 failed: exit status 1
    10.020s > timer
    10.020s     run hook global/a.sh #3 [onStartup]
    10.030s > hook #3 ok
    10.030s     run hook global/b.sh #4 [onStartup]
    10.040s > hook #4 ok
    10.040s     list releases #5
    10.045s > releases #5 []
    ");
}

#[test]
fn global_hooks_are_synchronised_before_the_first_module() {
    let files = files()
        .global_hook(
            "watch.sh",
            "{onStartup: 1, beforeAll: 1, kubernetes: [{name: pods, kind: Pod}, {name: nodes, kind: Node}]}",
        )
        .module(10, "web")
        .hook("start.sh", "onStartup: 1");
    assert_snapshot!(World::new(&files).object("Pod", "a").run(), @r"
    0.000s > started
    0.000s     run hook global/watch.sh #1 [onStartup]
    0.010s > hook #1 ok
    0.010s     start monitor m1 of Pod
    0.010s     start monitor m2 of Node
    0.020s > listed 1 for m1
    0.020s > listed 0 for m2
    0.020s     run hook global/watch.sh #2 [pods Synchronization]
    0.030s > hook #2 ok
    0.030s     run hook global/watch.sh #3 [nodes Synchronization]
    0.040s > hook #3 ok
    0.040s     run hook global/watch.sh #4 [beforeAll]
    0.050s > hook #4 ok
    0.050s     run hook web/start.sh #5 [onStartup]
    0.060s > hook #5 ok
    0.060s     upgrade web #6
    0.110s > release #6 Installed
    0.110s     watch release web
    0.110s     list releases #7
    0.115s > releases #7 [web]
    ");
}

#[test]
fn a_synchronization_in_a_queue_of_its_own_is_waited_for() {
    let files = files()
        .global_hook("watch.sh", "kubernetes: [{name: pods, kind: Pod, queue: side}]")
        .global_hook(
            "late.sh",
            "kubernetes: [{name: pods, kind: Pod, queue: slow, waitForSynchronization: false}]",
        )
        .module(10, "web");
    let mut world = World::new(&files).takes("global/watch.sh", 300).takes("global/late.sh", 900);
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     start monitor m1 of Pod
    0.010s > listed 0 for m1
    0.010s     run hook global/watch.sh #1 [pods Synchronization] in side
    0.010s     run hook global/late.sh #2 [pods Synchronization] in slow
    0.310s > hook #1 ok
    0.310s     upgrade web #3
    0.360s > release #3 Installed
    0.360s     watch release web
    0.360s     list releases #4
    0.365s > releases #4 [web]
    0.910s > hook #2 ok
    ");
}

#[test]
fn schedules_fire_only_after_the_first_converge() {
    let files = files().global_hook("tick.sh", TICK).module(10, "web");
    assert_snapshot!(World::new(&files).at(20, cron("* * * * *")).at(100, cron("* * * * *")).run(), @r"
    0.000s > started
    0.000s     upgrade web #1
    0.020s > cron * * * * *
    0.050s > release #1 Installed
    0.050s     watch release web
    0.050s     list releases #2
    0.050s     set schedules [* * * * *]
    0.055s > releases #2 [web]
    0.100s > cron * * * * *
    0.100s     run hook global/tick.sh #3 [tick Schedule]
    0.110s > hook #3 ok
    ");
}

#[test]
fn unknown_releases_of_ours_are_purged_and_those_of_disabled_modules_deleted_with_hooks() {
    let files = files()
        .module(10, "web")
        .module(20, "old")
        .off()
        .hook("bye.sh", "{beforeDeleteHelm: 1, afterDeleteHelm: 1}");
    assert_snapshot!(World::new(&files).deployed("old").deployed("stranger").run(), @r"
    0.000s > started
    0.000s     upgrade web #1
    0.050s > release #1 Installed
    0.050s     watch release web
    0.050s     list releases #2
    0.055s > releases #2 [old stranger web]
    0.055s     uninstall stranger #3
    0.105s > release #3 Uninstalled
    0.105s     run hook old/bye.sh #4 [beforeDeleteHelm]
    0.115s > hook #4 ok
    0.115s     uninstall old #5
    0.165s > release #5 Uninstalled
    0.165s     run hook old/bye.sh #6 [afterDeleteHelm]
    0.175s > hook #6 ok
    ");
}

#[test]
fn nothing_is_purged_when_a_modules_directory_could_not_be_read() {
    let files = files().module(10, "web");
    let mut catalog = files.catalog();
    catalog.complete = false;
    let mut world = World::new(&files).deployed("stranger").at(0, Event::CatalogChanged { catalog });
    let trace = world.run();
    assert!(!trace.contains("uninstall"), "{trace}");
    let warned = world
        .noticed(|n| matches!(n, Notice::Warned { message, .. } if message.contains("release stranger")))
        > 0;
    assert!(warned);
}

#[test]
fn the_ignored_release_is_never_purged() {
    let config = engine::Config { ignore_release: Some("self".into()), ..engine::Config::default() };
    let trace = World::with_config(&files().module(10, "web"), config).deployed("self").run();
    assert!(!trace.contains("uninstall"), "{trace}");
}

#[test]
fn a_release_that_cannot_be_purged_is_left_for_the_next_start() {
    let mut world = World::new(&files()).deployed("stranger").release("stranger", Err("forbidden"));
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     list releases #1
    0.005s > releases #1 [stranger]
    0.005s     uninstall stranger #2
    0.055s > release #2 failed: forbidden
    ");
    assert!(world.queue("main").is_empty());
}

#[test]
fn what_is_off_is_removed_before_the_operator_has_cleaned_up() {
    let files = files().module(10, "web").off().hook("bye.sh", "afterDeleteHelm: 1");
    let told = |world: &World, notice: &Notice| world.noticed(|told| told == notice);
    let mut world = World::new(&files).deployed("web").deployed("stranger").takes("web/bye.sh", 5_000);
    world.run_until(3_000);
    assert_eq!((told(&world, &Notice::Ready), told(&world, &Notice::CleanedUp)), (1, 0), "a hook still runs");
    world.run();
    assert!(world.deployed.is_empty());
    assert_eq!(told(&world, &Notice::CleanedUp), 1);
    world.after(10, config(2, &[("webEnabled", "true")]));
    world.after(10, config(3, &[("webEnabled", "false")]));
    assert_eq!(told(&world, &Notice::CleanedUp), 1, "it is told once");
}

#[test]
fn what_is_off_and_can_not_be_removed_is_told_to_who_waits_for_the_end() {
    let stuck = |world: &World, text: &str| {
        world.noticed(|notice| matches!(notice, Notice::Stuck { why } if why.contains(text)))
    };
    let files = files().module(10, "web").off().hook("bye.sh", "afterDeleteHelm: 1");
    let mut world = World::new(&files).deployed("web").fails("web/bye.sh", 1);
    world.run_until(3_000);
    assert_eq!(stuck(&world, "ModuleDelete of module web failed"), 1);
    assert_eq!(world.noticed(|notice| *notice == Notice::CleanedUp), 0);
    let mut world = World::new(&files).deployed("stranger").release("stranger", Err("forbidden"));
    world.run();
    assert_eq!(stuck(&world, "release stranger was not removed: forbidden"), 1);
}

#[test]
fn the_last_hook_of_what_is_off_is_run_until_it_succeeds() {
    let files = files().module(10, "web").off().hook("bye.sh", "afterDeleteHelm: 1");
    let mut world = World::new(&files).deployed("web").fails("web/bye.sh", 2);
    let trace = world.run();
    let times = |what: &str| trace.matches(what).count();
    assert_eq!((times("uninstall web"), times("run hook web/bye.sh")), (1, 3), "{trace}");
}

#[test]
fn global_values_set_by_early_hooks_are_seen_by_later_ones_without_another_converge() {
    let files = files()
        .global_hook("start.sh", "onStartup: 1")
        .global_hook("all.sh", "beforeAll: 1")
        .module(10, "web")
        .hook("before.sh", "beforeHelm: 1");
    let mut world = World::new(&files)
        .hook("global/start.sh", Ok(sets("/global/fromStart", &json!(1))))
        .hook("global/all.sh", Ok(sets("/global/fromAll", &json!(2))))
        .showing_values();
    assert_snapshot!(world.run(), @r#"
    0.000s > started
    0.000s     run hook global/start.sh #1 [onStartup] {}
    0.010s > hook #1 ok
    0.010s     run hook global/all.sh #2 [beforeAll] {"fromStart":1}
    0.020s > hook #2 ok
    0.020s     run hook web/before.sh #3 [beforeHelm] {"fromAll":2,"fromStart":1} {}
    0.030s > hook #3 ok
    0.030s     upgrade web #4 {"fromAll":2,"fromStart":1} {}
    0.080s > release #4 Installed
    0.080s     watch release web
    0.080s     list releases #5
    0.085s > releases #5 [web]
    "#);
}

#[test]
fn an_after_all_hook_that_changes_global_values_causes_one_more_converge() {
    let files = files()
        .global_hook("all.sh", "beforeAll: 1")
        .global_hook("last.sh", "afterAll: 1")
        .module(10, "web")
        .hook("start.sh", "onStartup: 1");
    let mut world = World::new(&files)
        .hook("global/last.sh", Ok(sets("/global/late", &json!(1))))
        .hook("global/last.sh", Ok(sets("/global/late", &json!(1))));
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     run hook global/all.sh #1 [beforeAll]
    0.010s > hook #1 ok
    0.010s     run hook web/start.sh #2 [onStartup]
    0.020s > hook #2 ok
    0.020s     upgrade web #3
    0.070s > release #3 Installed
    0.070s     watch release web
    0.070s     run hook global/last.sh #4 [afterAll]
    0.080s > hook #4 ok
    0.080s     run hook global/all.sh #5 [beforeAll]
    0.090s > hook #5 ok
    0.090s     upgrade web #6
    0.140s > release #6 Upgraded
    0.140s     run hook global/last.sh #7 [afterAll]
    0.150s > hook #7 ok
    0.150s     list releases #8
    0.155s > releases #8 [web]
    ");
}

#[test]
fn a_kubernetes_event_that_changes_global_values_runs_all_modules_again() {
    let files = files().global_hook("watch.sh", PODS).module(10, "a").module(20, "b");
    let mut world = World::new(&files)
        .hook("global/watch.sh", Ok(sets("/global/seen", &json!("sync"))))
        .hook("global/watch.sh", Ok(sets("/global/seen", &json!("event"))))
        .change(1000, "Pod", WatchEvent::Added, "x");
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     start monitor m1 of Pod
    0.010s > listed 0 for m1
    0.010s     run hook global/watch.sh #1 [pods Synchronization]
    0.020s > hook #1 ok
    0.020s     upgrade a #2
    0.070s > release #2 Installed
    0.070s     watch release a
    0.070s     upgrade b #3
    0.120s > release #3 Installed
    0.120s     watch release b
    0.120s     list releases #4
    0.125s > releases #4 [a b]
    1.000s > object ns/x changed for m1
    1.000s     run hook global/watch.sh #5 [pods Added ns/x]
    1.010s > hook #5 ok
    1.010s     upgrade a #6
    1.060s > release #6 Upgraded
    1.060s     upgrade b #7
    1.110s > release #7 Upgraded
    ");
}

#[test]
fn a_kind_that_a_module_brings_does_not_hold_up_the_start() {
    let files =
        files().global_hook("watch.sh", "kubernetes: [{name: things, kind: Thing}]").module(10, "crds");
    let mut world = World::new(&files).without_kind("Thing");
    let mut trace = world.run();
    world.kind_appears("Thing");
    trace += &world.run();
    assert_snapshot!(trace, @r"
    0.000s > started
    0.000s     start monitor m1 of Thing
    0.010s > kind Thing of m1 is missing
    0.010s     upgrade crds #1
    0.060s > release #1 Installed
    0.060s     watch release crds
    0.060s     list releases #2
    0.065s > releases #2 [crds]
    5.060s > timer
    5.060s > kind of m1 appeared
    5.070s > listed 0 for m1
    5.070s     run hook global/watch.sh #3 [things Synchronization]
    5.080s > hook #3 ok
    ");
}

#[test]
fn commands_are_refused_before_the_start() {
    let id = CommandId::new(1);
    let mut engine = engine::Engine::new(engine::Config::default(), files().catalog());
    let effects = engine.handle(engine::Time::START, Event::Commanded { id, command: Command::Converge });
    assert!(
        effects.iter().any(|effect| matches!(effect, engine::Effect::AnswerCommand { outcome: Err(_), .. })),
        "{effects:?}"
    );
}

#[test]
fn an_edit_before_the_first_converge_is_simply_part_of_it() {
    let files = files().global_hook("slow.sh", "onStartup: 1").module(10, "web");
    let mut world =
        World::new(&files).at(5, config(101, &[("web", "size: 2"), ("global", "x: 1")])).showing_values();
    assert_snapshot!(world.run(), @r#"
    0.000s > started
    0.000s     run hook global/slow.sh #1 [onStartup] {}
    0.005s > ConfigMap rv 101 [global web]
    0.010s > hook #1 ok
    0.010s     upgrade web #2 {"x":1} {"size":2}
    0.060s > release #2 Installed
    0.060s     watch release web
    0.060s     list releases #3
    0.065s > releases #3 [web]
    "#);
}
