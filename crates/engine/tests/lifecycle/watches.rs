//! Bindings of hooks to objects.

use std::sync::Arc;

use engine::hook::WatchEvent::{Added, Deleted, Modified};
use engine::snapshot::Item;
use engine::view::{status, why};
use engine::{Announcement, Event, Failure, FailureKind, MonitorId, Notice, Tally};
use insta::assert_snapshot;
use serde_json::json;

use crate::build::{PODS, TICK_IN_SIDE, changed, config, cron, files, item, key, sets, watch_failed};
use crate::world::World;

#[test]
fn a_module_is_synchronised_between_on_startup_and_before_helm() {
    let files = files()
        .module(10, "web")
        .hook("start.sh", "onStartup: 1")
        .hook("watch.sh", "kubernetes: [{name: z, kind: Pod}, {name: a, kind: Node}]")
        .hook("before.sh", "beforeHelm: 1");
    assert_snapshot!(World::new(&files).object("Pod", "x").run(), @r"
    0.000s > started
    0.000s     run hook web/start.sh #1 [onStartup]
    0.010s > hook #1 ok
    0.010s     start monitor m1 of Pod
    0.010s     start monitor m2 of Node
    0.020s > listed 1 for m1
    0.020s > listed 0 for m2
    0.020s     run hook web/watch.sh #2 [z Synchronization]
    0.030s > hook #2 ok
    0.030s     run hook web/watch.sh #3 [a Synchronization]
    0.040s > hook #3 ok
    0.040s     run hook web/before.sh #4 [beforeHelm]
    0.050s > hook #4 ok
    0.050s     upgrade web #5
    0.100s > release #5 Installed
    0.100s     watch release web
    0.100s     list releases #6
    0.105s > releases #6 [web]
    ");
}

#[test]
fn events_are_held_back_until_the_synchronization_succeeded() {
    let files = files().module(10, "web").hook("watch.sh", PODS);
    let mut world = World::new(&files)
        .takes("web/watch.sh", 100)
        .fails("web/watch.sh", 1)
        .change(50, "Pod", Added, "seen-by-the-second-attempt")
        .change(5150, "Pod", Added, "held-back");
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     start monitor m1 of Pod
    0.010s > listed 0 for m1
    0.010s     run hook web/watch.sh #1 [pods Synchronization]
    0.050s > object ns/seen-by-the-second-attempt changed for m1
    0.110s > hook #1 failed: exit status 1
    5.110s > timer
    5.110s     run hook web/watch.sh #2 [pods Synchronization]
    5.150s > object ns/held-back changed for m1
    5.210s > hook #2 ok
    5.210s     upgrade web #3
    5.260s > release #3 Installed
    5.260s     watch release web
    5.260s     run hook web/watch.sh #4 [pods Added ns/held-back]
    5.360s > hook #4 ok
    5.360s     list releases #5
    5.365s > releases #5 [web]
    ");
}

#[test]
fn only_the_events_that_a_binding_asks_for_run_its_hook() {
    let files = files().module(10, "web").hook("watch.sh", "kubernetes: [{name: pods, kind: Pod, executeHookOnEvent: [Deleted], executeHookOnSynchronization: false}]");
    let mut world = World::new(&files)
        .change(500, "Pod", Added, "x")
        .change(600, "Pod", Modified, "x")
        .change(700, "Pod", Deleted, "x");
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     start monitor m1 of Pod
    0.010s > listed 0 for m1
    0.010s     upgrade web #1
    0.060s > release #1 Installed
    0.060s     watch release web
    0.060s     list releases #2
    0.065s > releases #2 [web]
    0.500s > object ns/x changed for m1
    0.600s > object ns/x changed for m1
    0.700s > object ns/x is gone for m1
    0.700s     run hook web/watch.sh #3 [pods Deleted ns/x]
    0.710s > hook #3 ok
    ");
}

#[test]
fn f_c4_a_new_list_tells_the_difference_and_nothing_twice() {
    let files = files().global_hook("watch.sh", PODS);
    let mut world = World::new(&files).object("Pod", "a").object("Pod", "b").settled();
    let objects = vec![(key("b"), item("new")), (key("c"), item("old")), (key("d"), item("old"))];
    assert_snapshot!(world.after(100, Event::Listed { lists: vec![(MonitorId::new(1), objects)] }), @r"
    0.125s > listed 3 for m1
    0.125s     run hook global/watch.sh #3 [pods Deleted ns/a, pods Modified ns/b, pods Added ns/c, pods Added ns/d]
    0.135s > hook #3 ok
    ");
}

#[test]
fn f_c5_a_watch_that_two_modules_share_lives_on_when_one_goes() {
    let files = files().module(10, "a").hook("a.sh", PODS).module(20, "b").hook("b.sh", PODS);
    let mut world = World::new(&files)
        .settled()
        .at(100, config(101, &[("aEnabled", "false")]))
        .change(500, "Pod", Added, "x");
    let mut trace = world.run();
    trace += &world.after(100, config(102, &[("aEnabled", "false"), ("bEnabled", "false")]));
    assert_snapshot!(trace, @r"
    0.235s > ConfigMap rv 101 [aEnabled]
    0.235s     forget release a
    0.235s     uninstall a #6
    0.285s > release #6 Uninstalled
    0.285s     upgrade b #7
    0.335s > release #7 Unchanged
    0.635s > object ns/x changed for m1
    0.635s     run hook b/b.sh #8 [pods Added ns/x]
    0.645s > hook #8 ok
    0.745s > ConfigMap rv 102 [aEnabled bEnabled]
    0.745s     forget release b
    0.745s     uninstall b #9
    0.795s > release #9 Uninstalled
    0.795s     stop monitor m1
    ");
}

#[test]
fn a_module_that_waits_for_a_kind_goes_behind_the_one_that_brings_it() {
    let files = files()
        .module(10, "user")
        .hook("u.sh", "{beforeHelm: 1, kubernetes: [{name: things, kind: Thing}]}")
        .module(20, "crds");
    let mut world = World::new(&files).without_kind("Thing");
    let mut trace = world.run();
    assert_eq!(world.view().queues[0].tasks[0].waits_for.as_deref(), Some("kind Thing does not exist yet"));
    assert!(!world.view().converge.first_done);
    world.kind_appears("Thing");
    trace += &world.run();
    assert_snapshot!(trace, @r"
    0.000s > started
    0.000s     start monitor m1 of Thing
    0.010s > kind Thing of m1 is missing
    0.010s     upgrade crds #1
    0.060s > release #1 Installed
    0.060s     watch release crds
    5.060s > timer
    5.060s > kind of m1 appeared
    5.070s > listed 0 for m1
    5.070s     run hook user/u.sh #2 [things Synchronization]
    5.080s > hook #2 ok
    5.080s     run hook user/u.sh #3 [beforeHelm]
    5.090s > hook #3 ok
    5.090s     upgrade user #4
    5.140s > release #4 Installed
    5.140s     watch release user
    5.140s     list releases #5
    5.145s > releases #5 [crds user]
    ");
    assert!(world.view().converge.first_done);
}

#[test]
fn of_two_modules_that_wait_for_kinds_the_one_whose_kind_comes_goes_on() {
    let files = files()
        .module(10, "a")
        .hook("a.sh", "kubernetes: [{name: cats, kind: Cat}]")
        .module(20, "b")
        .hook("b.sh", "kubernetes: [{name: dogs, kind: Dog}]");
    let mut world = World::new(&files).without_kind("Cat").without_kind("Dog").settled();
    world.kind_appears("Dog");
    let trace = world.run();
    assert!(trace.contains("upgrade b") && !trace.contains("upgrade a"), "{trace}");
    world.kind_appears("Cat");
    let trace = world.run();
    assert!(trace.contains("upgrade a"), "{trace}");
    assert!(world.view().converge.first_done);
}

#[test]
fn a_kind_that_goes_takes_its_objects_along_and_the_watch_sleeps() {
    let files = files().global_hook("watch.sh", "kubernetes: [{name: things, kind: Thing}]");
    let mut world = World::new(&files).object("Thing", "x").settled();
    let monitor = MonitorId::new(1);
    world.send_in(100, Event::KindVanished { monitor, kind: "v1/Thing".to_owned() });
    let mut trace = world.after(200, watch_failed(FailureKind::Cluster, "gone"));
    assert_eq!(world.view().watches[0].missing_kind.as_deref(), Some("v1/Thing"));
    world.kind_appears("Thing");
    trace += &world.run();
    assert_snapshot!(trace, @r"
    0.125s > kind v1/Thing of m1 is missing
    0.125s     run hook global/watch.sh #3 [things Deleted ns/x]
    0.135s > hook #3 ok
    0.225s > watch m1 failed: gone
    0.225s > kind of m1 appeared
    0.235s > listed 1 for m1
    0.235s     run hook global/watch.sh #4 [things Added ns/x]
    0.245s > hook #4 ok
    ");
    assert!(world.noticed(|n| matches!(n, Notice::WatchFailed { .. })) > 0);
    assert_eq!(world.view().watches[0].failure, None);
}

#[test]
fn a_hook_never_runs_on_a_snapshot_that_is_not_complete() {
    let files = files().module(10, "web").hook(
        "w.sh",
        "{beforeHelm: 1, kubernetes: [{name: pods, kind: Pod, queue: side, waitForSynchronization: false}]}",
    );
    // The binding is not waited for, but the beforeHelm hook shows its snapshot.
    assert_snapshot!(World::new(&files).run(), @r"
    0.000s > started
    0.000s     start monitor m1 of Pod
    0.010s > listed 0 for m1
    0.010s     run hook web/w.sh #1 [beforeHelm]
    0.010s     run hook web/w.sh #2 [pods Synchronization] in side
    0.020s > hook #1 ok
    0.020s     upgrade web #3
    0.020s > hook #2 ok
    0.070s > release #3 Installed
    0.070s     watch release web
    0.070s     list releases #4
    0.075s > releases #4 [web]
    ");
}

#[test]
fn an_event_that_changes_values_runs_the_module_once_more() {
    let files = files().module(10, "web").hook("w.sh", PODS);
    let mut world = World::new(&files)
        .hook("web/w.sh", Ok(sets("/web/seen", &json!("sync"))))
        .hook("web/w.sh", Ok(sets("/web/seen", &json!("event"))))
        .hook("web/w.sh", Ok(sets("/web/seen", &json!("event"))))
        .change(500, "Pod", Added, "x")
        .change(700, "Pod", Modified, "x");
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     start monitor m1 of Pod
    0.010s > listed 0 for m1
    0.010s     run hook web/w.sh #1 [pods Synchronization]
    0.020s > hook #1 ok
    0.020s     upgrade web #2
    0.070s > release #2 Installed
    0.070s     watch release web
    0.070s     list releases #3
    0.075s > releases #3 [web]
    0.500s > object ns/x changed for m1
    0.500s     run hook web/w.sh #4 [pods Added ns/x]
    0.510s > hook #4 ok
    0.510s     upgrade web #5
    0.560s > release #5 Upgraded
    0.700s > object ns/x changed for m1
    0.700s     run hook web/w.sh #6 [pods Modified ns/x]
    0.710s > hook #6 ok
    ");
}

#[test]
fn f_c7_events_of_a_named_queue_wait_while_its_synchronization_fails() {
    let files = files().global_hook(
        "w.sh",
        "kubernetes: [{name: pods, kind: Pod, queue: side, waitForSynchronization: false}]",
    );
    let mut world = World::new(&files)
        .fails("global/w.sh", 1)
        .change(1000, "Pod", Added, "x")
        .change(5025, "Pod", Added, "y");
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     start monitor m1 of Pod
    0.000s     list releases #1
    0.005s > releases #1 []
    0.010s > listed 0 for m1
    0.010s     run hook global/w.sh #2 [pods Synchronization] in side
    0.020s > hook #2 failed: exit status 1
    1.000s > object ns/x changed for m1
    5.020s > timer
    5.020s     run hook global/w.sh #3 [pods Synchronization] in side
    5.025s > object ns/y changed for m1
    5.030s > hook #3 ok
    5.030s     run hook global/w.sh #4 [pods Added ns/y] in side
    5.040s > hook #4 ok
    ");
}

#[test]
fn events_of_a_module_that_is_off_run_nothing_and_are_made_up_for_when_it_stays() {
    let files = files().module(10, "web").hook("w.sh", PODS).global_hook("slow.sh", "beforeAll: 1");
    let mut world = World::new(&files)
        .takes("global/slow.sh", 400)
        .settled()
        .at(100, config(101, &[("webEnabled", "false")]))
        .change(300, "Pod", Added, "x")
        .at(400, config(102, &[("webEnabled", "true")]));
    assert_snapshot!(world.run(), @r"
    0.575s > ConfigMap rv 101 [webEnabled]
    0.575s     run hook global/slow.sh #5 [beforeAll]
    0.775s > object ns/x changed for m1
    0.875s > ConfigMap rv 102 [webEnabled]
    0.975s > hook #5 ok
    0.975s     stop monitor m1
    0.975s     start monitor m2 of Pod
    0.985s > listed 1 for m2
    0.985s     run hook web/w.sh #6 [pods Synchronization]
    0.995s > hook #6 ok
    0.995s     upgrade web #7
    1.045s > release #7 Unchanged
    ");
}

#[test]
fn tasks_of_other_modules_in_a_shared_queue_survive_a_removal() {
    let files = files()
        .module(10, "a")
        .hook("a.sh", TICK_IN_SIDE)
        .module(20, "b")
        .hook("b.sh", TICK_IN_SIDE)
        .global_hook("g.sh", TICK_IN_SIDE);
    let mut world = World::new(&files).takes("global/g.sh", 1000).settled();
    world.send_in(100, cron("* * * * *"));
    assert_snapshot!(world.after(200, config(101, &[("aEnabled", "false")])), @r"
    0.205s > cron * * * * *
    0.205s     run hook global/g.sh #4 [tick Schedule] in side
    0.305s > ConfigMap rv 101 [aEnabled]
    0.305s     forget release a
    0.305s     uninstall a #5
    0.355s > release #5 Uninstalled
    0.355s     upgrade b #6
    0.405s > release #6 Unchanged
    1.205s > hook #4 ok
    1.205s     run hook b/b.sh #7 [tick Schedule] in side
    1.215s > hook #7 ok
    ");
}

#[test]
fn schedules_do_not_fire_before_the_first_run_of_their_module_is_through() {
    let files = files()
        .module(10, "a")
        .module(20, "b")
        .off()
        .hook("b.sh", "{beforeHelm: 1, schedule: [{name: tick, crontab: '* * * * *', queue: side}]}");
    let mut world = World::new(&files).takes("b/b.sh", 300).settled();
    world.send_in(100, config(101, &[("bEnabled", "true")]));
    world.send_in(200, cron("* * * * *"));
    world.send_in(600, cron("* * * * *"));
    assert_snapshot!(world.after(1000, config(102, &[])), @r"
    0.155s > ConfigMap rv 101 [bEnabled]
    0.155s     upgrade a #3
    0.205s > release #3 Unchanged
    0.205s     run hook b/b.sh #4 [beforeHelm]
    0.205s     set schedules [* * * * *]
    0.255s > cron * * * * *
    0.505s > hook #4 ok
    0.505s     upgrade b #5
    0.555s > release #5 Installed
    0.555s     watch release b
    0.655s > cron * * * * *
    0.655s     run hook b/b.sh #6 [tick Schedule] in side
    0.955s > hook #6 ok
    1.055s > ConfigMap rv 102 []
    1.055s     forget release b
    1.055s     uninstall b #7
    1.055s     set schedules []
    1.105s > release #7 Uninstalled
    1.105s     upgrade a #8
    1.155s > release #8 Unchanged
    ");
}

#[test]
fn f_c9_namespaces_that_join_and_leave_change_the_snapshot_and_run_nothing() {
    let files =
        files().global_hook("watch.sh", "kubernetes: [{name: pods, kind: Pod, executeHookOnEvent: [Added]}]");
    let mut world = World::new(&files).object("Pod", "a").settled();
    let monitor = MonitorId::new(1);
    let named = |namespace: &str, name: &str| (engine::snapshot::Key::new(namespace, name), item("1"));
    let objects = vec![named("other", "x"), named("other", "y")];
    world.send_in(100, Event::NamespaceListed { monitor, namespace: "other".into(), objects });
    world.send_in(200, Event::NamespaceListed { monitor, namespace: "ns".into(), objects: Vec::new() });
    let (key, item) = named("other", "z");
    assert_snapshot!(world.after(300, changed(monitor, Added, key, item)), @r"
    0.125s > namespace other with 2 for m1
    0.225s > namespace ns with 0 for m1
    0.325s > object other/z changed for m1
    0.325s     run hook global/watch.sh #3 [pods Added other/z]
    0.335s > hook #3 ok
    ");
    let snapshots = world.engine.inspect().global.snapshots;
    let objects = snapshots.values().flatten().flat_map(|(_, watched)| watched.snapshot.iter());
    let keys: Vec<String> = objects.map(|(key, _)| key.to_string()).collect();
    assert_eq!(keys, ["other/x", "other/y", "other/z"]);
    let (_, watched) = snapshots.values().flatten().next().unwrap();
    assert_eq!(watched.since_start, Tally { added: 4, deleted: 1, ..Tally::default() });
    assert_eq!(watched.since_run, Tally::default(), "the hook has seen all of it");
    let (key, item) = watched.snapshot.iter().next().map(|(key, item)| (key.clone(), item.clone())).unwrap();
    world.after(100, changed(monitor, Deleted, key, item));
    let snapshots = world.engine.inspect().global.snapshots;
    let (_, watched) = snapshots.values().flatten().next().unwrap();
    assert_eq!(watched.since_run, Tally { deleted: 1, ..Tally::default() }, "no event ran the hook");
}

#[test]
fn f_c9_what_was_held_back_of_a_namespace_that_leaves_is_forgotten() {
    let files = files().global_hook("watch.sh", PODS);
    let monitor = MonitorId::new(1);
    let left = Event::NamespaceListed { monitor, namespace: "ns".into(), objects: Vec::new() };
    let mut world =
        World::new(&files).takes("global/watch.sh", 1_000).change(100, "Pod", Added, "gone").at(200, left);
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     start monitor m1 of Pod
    0.010s > listed 0 for m1
    0.010s     run hook global/watch.sh #1 [pods Synchronization]
    0.100s > object ns/gone changed for m1
    0.200s > namespace ns with 0 for m1
    1.010s > hook #1 ok
    1.010s     list releases #2
    1.015s > releases #2 []
    ");
}

#[test]
fn a_filter_that_fails_is_told_with_its_hook_its_binding_and_the_object() {
    let files = files()
        .global_hook("one.sh", "kubernetes: [{name: pods, kind: Pod, jqFilter: .a}]")
        .module(10, "web")
        .hook("two.sh", "kubernetes: [{name: again, kind: Pod, jqFilter: .a}]");
    let mut world = World::new(&files).settled();
    world.after(1, watch_failed(FailureKind::HookOutput, "filter of object ns/x: the filter took longer"));
    let told = world.notices.iter().find_map(|notice| match notice {
        Notice::WatchFailed { failure, .. } => Some(failure.message.clone()),
        _ => None,
    });
    assert_snapshot!(told.unwrap(), @"hook global/one.sh, binding pods; hook web/two.sh, binding again: filter of object ns/x: the filter took longer");
}

#[test]
fn slip_02_a_watch_that_stays_broken_is_in_every_answer_and_announced_once_with_its_end() {
    let mut world = World::new(&files().module(10, "web").hook("w.sh", PODS)).settled();
    world.announcements.clear();
    let monitor = MonitorId::new(1);
    for _ in 0..10 {
        world.after(15_000, watch_failed(FailureKind::Cluster, "pods is forbidden"));
        // That the objects can be listed says nothing of the watch behind the list.
        world.after(1, Event::Listed { lists: vec![(monitor, Vec::new())] });
    }
    let broken = &world.view().watches[0];
    assert_eq!(broken.broken_for.map(|time| time.as_secs()), Some(135));
    let status = world.told(status::text);
    assert!(status.contains("1 broken") && status.contains("! watch of Pod is broken for 2 min"), "{status}");
    let why = world.told(|view, format| why::module(view, "web", format).unwrap().text());
    assert!(why.contains("watch:    of Pod is broken for 2 min: pods is forbidden"), "{why}");
    world.after(1_000, Event::WatchRestored { monitor });
    world.after(1_000, Event::WatchRestored { monitor });
    assert_eq!(world.view().watches[0].failure, None);
    assert!(world.told(status::text).contains("Nothing needs attention"));
    let told = |told: &Announcement| format!("{} {}: {}", told.warning, told.reason, told.message);
    assert_eq!(
        world.announcements.iter().map(told).collect::<Vec<_>>(),
        [
            "true WatchBroken: the watch of Pod is broken for 60 s, so that its hooks see no changes (hook web/w.sh, binding pods): pods is forbidden",
            "false WatchRestored: the watch of Pod works again; it was broken for 2 min",
        ]
    );
    // A break that ends by itself is no Event.
    world.after(1, watch_failed(FailureKind::Cluster, "no connection"));
    world.after(10_000, watch_failed(FailureKind::Cluster, "no connection"));
    world.after(1, Event::WatchRestored { monitor });
    assert_eq!(world.announcements.len(), 2);
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::WatchRestored { .. })), 2);
}

#[test]
fn slip_02_a_watch_of_the_operator_itself_is_told_of_as_those_of_hooks() {
    let mut world = World::new(&files().module(10, "web")).settled();
    world.announcements.clear();
    let changed = |failure: Option<&str>| Event::OwnWatchChanged {
        watch: "ConfigMap ops/addon-operator".to_owned(),
        failure: failure.map(|text| Failure::new(FailureKind::Cluster, text)),
    };
    world.after(1, changed(None));
    world.after(1, changed(Some("configmaps is forbidden")));
    world.after(90_000, changed(Some("configmaps is forbidden")));
    let status = world.told(status::text);
    assert!(status.contains("! watch of ConfigMap ops/addon-operator is broken for 90 s, its changes are not seen: configmaps is forbidden"), "{status}");
    world.after(1, changed(None));
    assert!(world.told(status::text).contains("Nothing needs attention"));
    assert_eq!(world.announcements.len(), 2, "{:?}", world.announcements);
}

#[test]
fn slip_02_many_watches_that_break_together_are_few_events() {
    let mut world = World::new(&files()).settled();
    world.announcements.clear();
    for _ in 0..2 {
        for watch in 0..1_000 {
            let failure = Some(Failure::new(FailureKind::Cluster, "no rights"));
            world.after(70, Event::OwnWatchChanged { watch: watch.to_string(), failure });
        }
    }
    assert_eq!(world.view().broken_own_watches.len(), 1_000);
    assert_eq!(world.announcements.len(), 10);
}

#[test]
fn slip_16_a_failed_filter_is_told_until_it_has_worked_on_every_object() {
    let mut world = World::new(&files().global_hook("watch.sh", PODS)).settled();
    let monitor = MonitorId::new(1);
    let failed = || Arc::new(Item::failed(None));
    for name in ["x", "y"] {
        world.after(1, watch_failed(FailureKind::HookOutput, "filter of object ns/x"));
        world.after(1, changed(monitor, Added, key(name), failed()));
    }
    world.after(1, changed(monitor, Added, key("good"), item("1")));
    world.after(1, changed(monitor, Modified, key("x"), item("1")));
    assert!(world.view().watches[0].failure.is_some(), "it does not work on y");
    let trace = world.after(1, changed(monitor, Modified, key("y"), item("1")));
    assert!(trace.contains("[pods Modified ns/y]"), "{trace}");
    assert_eq!(world.view().watches[0].failure, None);
}

#[test]
fn events_during_one_run_of_a_grouped_hook_cause_one_more_run() {
    let files = files().global_hook("watch.sh", "kubernetes: [{name: pods, kind: Pod, group: g}]");
    let mut world = World::new(&files).takes("global/watch.sh", 1_000).settled();
    let monitor = MonitorId::new(1);
    for n in 0..10_000 {
        let (key, item) = (key(&n.to_string()), item("1"));
        let after = u64::from(n != 0);
        world.send_in(100 + after, changed(monitor, Added, key, item));
    }
    let trace = world.run();
    let runs = trace.lines().filter(|line| line.contains("run hook")).count();
    assert!(runs <= 3, "{runs} runs");
}

#[test]
fn a_flood_of_events_waits_in_bounded_memory_and_loses_no_deletion() {
    let files = files().global_hook("watch.sh", PODS);
    let mut world = World::new(&files).takes("global/watch.sh", 100_000).settled();
    let monitor = MonitorId::new(1);
    world.is_quiet = true;
    let mut deletions = 0;
    for n in 0..100_000_u64 {
        let change = if n % 1_000 == 999 { Deleted } else { Modified };
        deletions += usize::from(change == Deleted);
        let event = changed(monitor, change, key(&(n % 10).to_string()), item(&n.to_string()));
        world.take_in(event);
    }
    let held = world.engine.footprint();
    assert!(held.tasks <= 2 && held.contexts < 3_000, "{held:?}");
    world.is_quiet = false;
    let trace = world.run();
    assert_eq!(trace.matches(" Deleted ").count(), deletions, "{trace}");
}

#[test]
fn f_c6_a_thousand_races_between_off_and_on_leave_no_binding_without_a_watch() {
    let files = files()
        .module(10, "web")
        .hook("w.sh", "{beforeHelm: 1, kubernetes: [{name: pods, kind: Pod}, {name: nodes, kind: Node}]}");
    let mut world = World::new(&files).settled();
    world.is_quiet = true;
    let mut random = crate::random::Random(6);
    for round in 0..1_000_u64 {
        let flag = if random.below(2) == 0 { "false" } else { "true" };
        world.send_in(random.below(40), config(200 + round, &[("webEnabled", flag)]));
        world.run_for(random.below(60));
        let started = world.monitors.len();
        assert!(started <= 2, "{started} watches after {round} rounds");
    }
    world.after(1, config(5_000, &[("webEnabled", "true")]));
    let view = world.view();
    assert_eq!(world.monitors.len(), 2);
    assert_eq!(view.watches.len(), 2, "{:?}", view.watches);
    world.is_quiet = false;
    world = world.change(10, "Pod", Added, "x");
    let trace = world.run();
    assert_eq!(trace.matches("run hook web/w.sh").count(), 1, "{trace}");
}

#[test]
fn f_b12_a_hook_that_changes_what_it_watches_gets_one_more_run() {
    let files = files().global_hook("watch.sh", "kubernetes: [{name: pods, kind: Pod, jqFilter: .is}]");
    let mut world = World::new(&files).settled();
    let monitor = MonitorId::new(1);
    let own = |text: &str| {
        let item = engine::snapshot::Item::filtered(None, text.as_bytes().into());
        changed(monitor, Modified, key("x"), std::sync::Arc::new(item))
    };
    world.send_in(1, own("1"));
    // While the hook runs, and again with the same result in its second run.
    world.send_in(5, own("2"));
    let trace = world.after(15, own("2"));
    assert_eq!(trace.matches("run hook").count(), 2, "{trace}");
}

#[test]
fn f_c11_a_large_object_that_changes_often_runs_nothing_while_the_filter_gives_the_same() {
    let files = files().global_hook(
        "watch.sh",
        "kubernetes: [{name: pods, kind: Pod, jqFilter: .a, keepFullObjectsInMemory: false}]",
    );
    let mut world = World::new(&files).settled();
    let monitor = MonitorId::new(1);
    for n in 0..50 {
        let item = std::sync::Arc::new(engine::snapshot::Item::filtered(None, b"1".as_slice().into()));
        world.send_in(n * 20, changed(monitor, Modified, key("x"), item));
    }
    assert_eq!(world.run().matches("run hook").count(), 1);
}

#[test]
fn all_snapshots_of_a_run_are_of_one_moment_when_bindings_share_a_watch() {
    let config = "kubernetes: [{name: names, kind: Pod, jqFilter: .metadata.name, includeSnapshotsFrom: [names, all]}, {name: all, kind: Pod, executeHookOnEvent: [], executeHookOnSynchronization: false}]";
    let files = files().global_hook("watch.sh", config);
    let mut world = World::new(&files).object("Pod", "a").keeping_contexts().settled();
    let items = |text: &str| vec![(MonitorId::new(1), item(text)), (MonitorId::new(2), item(text))];
    let mut sizes = |event: Event| {
        world.context_files = Some(String::new());
        world.after(100, event);
        let text = world.context_files.clone().unwrap();
        let file: serde_json::Value = serde_json::from_str(text.split_once(' ').unwrap().1).unwrap();
        let last = file.as_array().unwrap().last().unwrap()["snapshots"].clone();
        ["names", "all"].map(|name| last[name].as_array().unwrap().len())
    };
    assert_eq!(sizes(Event::ObjectChanged { key: key("b"), is_gone: false, items: items("new") }), [2, 2]);
    assert_eq!(sizes(Event::ObjectChanged { key: key("a"), is_gone: true, items: items("old") }), [1, 1]);
    let lists = [1, 2].map(|number| (MonitorId::new(number), Vec::new()));
    assert_eq!(sizes(Event::Listed { lists: lists.into() }), [0, 0]);
}
