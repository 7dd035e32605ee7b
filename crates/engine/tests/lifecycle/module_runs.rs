//! The run of a module, and its removal.

use engine::{Config, Drift, OnModuleFailure, ReleaseAction};
use insta::assert_snapshot;
use serde_json::json;

use crate::build::{Files, config, drifted, files, sets};
use crate::world::World;

fn full() -> Files {
    files()
        .module(10, "web")
        .hook("start.sh", "onStartup: 1")
        .hook("before.sh", "beforeHelm: 1")
        .hook("after.sh", "afterHelm: 1")
}

#[test]
fn a_failure_in_the_first_run_starts_over_from_on_startup() {
    assert_snapshot!(World::new(&full()).fails("web/after.sh", 1).run(), @r"
    0.000s > started
    0.000s     run hook web/start.sh #1 [onStartup]
    0.010s > hook #1 ok
    0.010s     run hook web/before.sh #2 [beforeHelm]
    0.020s > hook #2 ok
    0.020s     upgrade web #3
    0.070s > release #3 Installed
    0.070s     watch release web
    0.070s     run hook web/after.sh #4 [afterHelm]
    0.080s > hook #4 failed: exit status 1
    5.080s > timer
    5.080s     run hook web/start.sh #5 [onStartup]
    5.090s > hook #5 ok
    5.090s     run hook web/before.sh #6 [beforeHelm]
    5.100s > hook #6 ok
    5.100s     upgrade web #7
    5.150s > release #7 Unchanged
    5.150s     run hook web/after.sh #8 [afterHelm]
    5.160s > hook #8 ok
    5.160s     list releases #9
    5.165s > releases #9 [web]
    ");
}

#[test]
fn a_failure_in_a_later_run_starts_over_from_before_helm() {
    let mut world = World::new(&full()).settled().fails("web/after.sh", 1);
    assert_snapshot!(world.after(100, config(101, &[("web", "x: 1")])), @r"
    0.185s > ConfigMap rv 101 [web]
    0.185s     run hook web/before.sh #6 [beforeHelm]
    0.195s > hook #6 ok
    0.195s     upgrade web #7
    0.245s > release #7 Upgraded
    0.245s     run hook web/after.sh #8 [afterHelm]
    0.255s > hook #8 failed: exit status 1
    5.255s > timer
    5.255s     run hook web/before.sh #9 [beforeHelm]
    5.265s > hook #9 ok
    5.265s     upgrade web #10
    5.315s > release #10 Unchanged
    5.315s     run hook web/after.sh #11 [afterHelm]
    5.325s > hook #11 ok
    ");
}

#[test]
fn a_hook_that_fails_before_the_chart_keeps_it_from_being_installed() {
    let trace = World::new(&full()).fails("web/before.sh", 1).run_until(4000);
    assert!(!trace.contains("upgrade"), "{trace}");
}

#[test]
fn hooks_run_by_their_order_then_by_name() {
    let files = files()
        .module(10, "web")
        .hook("z.sh", "{beforeHelm: 1, afterHelm: 30}")
        .hook("b.sh", "{beforeHelm: 10, afterHelm: 20}")
        .hook("c.sh", "beforeHelm: 10")
        .hook("a.sh", "{beforeHelm: 20, afterHelm: 10}");
    let trace = World::new(&files).run();
    let runs: Vec<&str> =
        trace.lines().filter_map(|line| line.split("run hook web/").nth(1)?.split('.').next()).collect();
    assert_eq!(runs.join(" "), "z b c a a b z");
}

#[test]
fn after_helm_hooks_that_change_values_cause_exactly_one_more_run() {
    let mut world = World::new(&full())
        .hook("web/after.sh", Ok(sets("/web/late", &json!(1))))
        .hook("web/after.sh", Ok(sets("/web/late", &json!(1))));
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     run hook web/start.sh #1 [onStartup]
    0.010s > hook #1 ok
    0.010s     run hook web/before.sh #2 [beforeHelm]
    0.020s > hook #2 ok
    0.020s     upgrade web #3
    0.070s > release #3 Installed
    0.070s     watch release web
    0.070s     run hook web/after.sh #4 [afterHelm]
    0.080s > hook #4 ok
    0.080s     run hook web/before.sh #5 [beforeHelm]
    0.090s > hook #5 ok
    0.090s     upgrade web #6
    0.140s > release #6 Upgraded
    0.140s     run hook web/after.sh #7 [afterHelm]
    0.150s > hook #7 ok
    0.150s     list releases #8
    0.155s > releases #8 [web]
    ");
}

#[test]
fn a_failing_module_blocks_those_behind_it() {
    let files = files().module(10, "a").hook("a.sh", "beforeHelm: 1").module(20, "b");
    let mut world = World::new(&files).fails("a/a.sh", 1_000_000);
    let trace = world.run_until(60_000);
    assert!(!trace.contains("upgrade b"), "{trace}");
    assert!(!world.view().converge.first_done);
}

#[test]
fn f_d1_a_failing_module_that_passes_lets_the_one_behind_it_bring_the_fix() {
    let files = files().module(10, "a").hook("a.sh", "beforeHelm: 1").module(20, "b").module(30, "c");
    let config = Config { on_module_failure: OnModuleFailure::Pass, ..Config::default() };
    let mut world = World::with_config(&files, config).fails("a/a.sh", 2);
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     run hook a/a.sh #1 [beforeHelm]
    0.010s > hook #1 failed: exit status 1
    0.010s     upgrade b #2
    0.060s > release #2 Installed
    0.060s     watch release b
    0.060s     upgrade c #3
    0.110s > release #3 Installed
    0.110s     watch release c
    5.010s > timer
    5.010s     run hook a/a.sh #4 [beforeHelm]
    5.020s > hook #4 failed: exit status 1
    10.020s > timer
    10.020s     run hook a/a.sh #5 [beforeHelm]
    10.030s > hook #5 ok
    10.030s     upgrade a #6
    10.080s > release #6 Installed
    10.080s     watch release a
    10.080s     list releases #7
    10.085s > releases #7 [a b c]
    ");
    assert!(world.view().converge.first_done);
}

#[test]
fn a_module_whose_chart_has_an_unknown_kind_lets_the_one_go_first_that_brings_it() {
    let files = files().module(10, "needs").module(20, "brings").module(30, "last");
    let mut world = World::new(&files).release_of_missing_kind("needs", "Widget");
    let trace = world.run_until(1_000);
    for name in ["needs", "brings", "last"] {
        assert_eq!(trace.matches(&format!("upgrade {name} ")).count(), 1, "{trace}");
    }
    assert!(!world.view().converge.first_done);
    let view = world.view();
    let waits = view.queues.iter().flat_map(|queue| &queue.tasks).find_map(|task| task.last_failure.as_ref());
    assert_eq!(waits.unwrap().message, "Widget is unknown");
    let trace = world.run();
    assert_eq!(trace.matches("upgrade ").count(), 1, "{trace}");
    assert!(trace.contains("upgrade needs "), "{trace}");
    assert!(world.view().converge.first_done);
}

#[test]
fn modules_of_one_order_whose_charts_have_unknown_kinds_go_behind_the_others_together() {
    let files = files().module(10, "a").module(10, "b").module(10, "c").module(20, "brings");
    let mut world =
        World::new(&files).release_of_missing_kind("a", "Widget").release_of_missing_kind("b", "Widget");
    let trace = world.run_until(1_000);
    // The last of them that can go on goes first.
    let place = |what: &str| trace.find(what).unwrap_or_else(|| panic!("{what} is not in {trace}"));
    assert!(place("upgrade c ") < place("upgrade brings "), "{trace}");
    assert!(!world.view().converge.first_done);
    let trace = world.run();
    assert!(trace.contains("upgrade a ") && trace.contains("upgrade b "), "{trace}");
    assert!(world.view().converge.first_done);
}

#[test]
fn modules_of_one_order_run_at_a_time_and_orders_are_barriers() {
    let files = files().module(10, "a").module(10, "b").module(10, "c").module(20, "d");
    let config = Config { module_concurrency: 2, ..Config::default() };
    assert_snapshot!(World::with_config(&files, config).run(), @r"
    0.000s > started
    0.000s     upgrade a #1
    0.000s     upgrade b #2
    0.050s > release #1 Installed
    0.050s     watch release a
    0.050s     upgrade c #3
    0.050s > release #2 Installed
    0.050s     watch release b
    0.100s > release #3 Installed
    0.100s     watch release c
    0.100s     upgrade d #4
    0.150s > release #4 Installed
    0.150s     watch release d
    0.150s     list releases #5
    0.155s > releases #5 [a b c d]
    ");
}

#[test]
fn f_d4_a_wave_reports_each_failure_and_later_waves_wait() {
    let files = files().module(10, "a").module(10, "b").hook("b.sh", "beforeHelm: 1").module(20, "c");
    let config = Config { module_concurrency: 4, ..Config::default() };
    let mut world = World::with_config(&files, config).fails("b/b.sh", 1);
    let mut trace = world.run_until(3000);
    assert_eq!(
        world.queue("main"),
        [
            "ParallelModuleRun:main:Parallel run for b:OperatorStartup:failures 1:\n\tErrors:\n\t- b: exit status 1",
            "ModuleRun:main:c:doStartup:OperatorStartup",
            "ConvergeModules:main:::Operator-Startup",
        ]
    );
    trace += &world.run();
    assert_snapshot!(trace, @r"
    0.000s > started
    0.000s     upgrade a #1
    0.000s     run hook b/b.sh #2 [beforeHelm] in parallel_queue_1
    0.010s > hook #2 failed: exit status 1
    0.050s > release #1 Installed
    0.050s     watch release a
    5.010s > timer
    5.010s     run hook b/b.sh #3 [beforeHelm] in parallel_queue_1
    5.020s > hook #3 ok
    5.020s     upgrade b #4
    5.070s > release #4 Installed
    5.070s     watch release b
    5.070s     upgrade c #5
    5.120s > release #5 Installed
    5.120s     watch release c
    5.120s     list releases #6
    5.125s > releases #6 [a b c]
    ");
}

#[test]
fn disabling_runs_delete_hooks_around_the_removal_of_the_release() {
    let files = full().hook("bye.sh", "{beforeDeleteHelm: 1, afterDeleteHelm: 1}").module(20, "other");
    let mut world = World::new(&files).settled();
    assert_snapshot!(world.after(100, config(101, &[("webEnabled", "false")])), @r"
    0.235s > ConfigMap rv 101 [webEnabled]
    0.235s     forget release web
    0.235s     run hook web/bye.sh #7 [beforeDeleteHelm]
    0.245s > hook #7 ok
    0.245s     uninstall web #8
    0.295s > release #8 Uninstalled
    0.295s     run hook web/bye.sh #9 [afterDeleteHelm]
    0.305s > hook #9 ok
    0.305s     upgrade other #10
    0.355s > release #10 Unchanged
    ");
}

#[test]
fn a_failed_removal_is_tried_again_without_removing_twice() {
    let files = full().hook("bye.sh", "{beforeDeleteHelm: 1, afterDeleteHelm: 1}");
    let mut world = World::new(&files)
        .settled()
        .hook("web/bye.sh", Ok(engine::HookOutput::default()))
        .fails("web/bye.sh", 1);
    assert_snapshot!(world.after(100, config(101, &[("webEnabled", "false")])), @r"
    0.185s > ConfigMap rv 101 [webEnabled]
    0.185s     forget release web
    0.185s     run hook web/bye.sh #6 [beforeDeleteHelm]
    0.195s > hook #6 ok
    0.195s     uninstall web #7
    0.245s > release #7 Uninstalled
    0.245s     run hook web/bye.sh #8 [afterDeleteHelm]
    0.255s > hook #8 failed: exit status 1
    5.255s > timer
    5.255s     run hook web/bye.sh #9 [afterDeleteHelm]
    5.265s > hook #9 ok
    ");
}

#[test]
fn f_e3_off_and_on_again_starts_from_the_beginning_with_fresh_values() {
    let mut world = World::new(&full())
        .hook("web/start.sh", Ok(sets("/web/patched", &json!(1))))
        .settled()
        .showing_values();
    for (version, pairs) in
        [(101, [("webEnabled", "false"), ("web", "a: 1")]), (102, [("webEnabled", "true"), ("web", "a: 1")])]
    {
        world.after(100, config(version, &pairs));
    }
    let values = world.engine.inspect().modules["web"].values.clone();
    assert_eq!(*values, json!({"a": 1}));
    assert_snapshot!(world.after(100, config(103, &[("webEnabled", "false")])), @r"
    0.515s > ConfigMap rv 103 [webEnabled]
    0.515s     forget release web
    0.515s     uninstall web #11
    0.565s > release #11 Uninstalled
    ");
}

#[test]
fn off_and_on_again_before_the_removal_ran_cancels_out() {
    let files = full().hook("bye.sh", "afterDeleteHelm: 1").global_hook("slow.sh", "beforeAll: 1");
    let mut world = World::new(&files).takes("global/slow.sh", 400).settled();
    world.send_in(100, config(101, &[("webEnabled", "false")]));
    let trace = world.after(200, config(102, &[("webEnabled", "true")]));
    assert!(
        !trace.contains("bye.sh") && !trace.contains("start.sh") && !trace.contains("uninstall"),
        "{trace}"
    );
    assert_eq!(world.view().modules[0].phase, "running");
}

#[test]
fn crds_come_before_removals_and_runs() {
    let files =
        files().module(10, "web").with(|module| module.crds = vec!["crds/x.yaml".into()]).module(20, "other");
    assert_snapshot!(World::new(&files).run(), @r"
    0.000s > started
    0.000s     ensure CRDs of web #1
    0.005s > CRDs #1 ok
    0.005s     upgrade web #2
    0.055s > release #2 Installed
    0.055s     watch release web
    0.055s     upgrade other #3
    0.105s > release #3 Installed
    0.105s     watch release other
    0.105s     list releases #4
    0.110s > releases #4 [other web]
    ");
}

#[test]
fn a_module_without_chart_runs_its_hooks_only() {
    let trace = World::new(&full().hooks_only()).run();
    assert!(!trace.contains("upgrade") && trace.contains("after.sh"), "{trace}");
}

#[test]
fn drift_runs_the_module_unless_a_run_will_see_it_anyway() {
    let mut world = World::new(&full()).settled();
    let drift = || drifted("web", Drift::Absent("ns/ConfigMap/x".into()));
    world = world.at(100, drift()).at(105, drift()).at(130, drift());
    assert_snapshot!(world.run(), @r#"
    0.185s > release web drifted: Absent("ns/ConfigMap/x")
    0.185s     run hook web/before.sh #6 [beforeHelm]
    0.190s > release web drifted: Absent("ns/ConfigMap/x")
    0.195s > hook #6 ok
    0.195s     upgrade web #7
    0.215s > release web drifted: Absent("ns/ConfigMap/x")
    0.245s > release #7 Unchanged
    0.245s     run hook web/after.sh #8 [afterHelm]
    0.255s > hook #8 ok
    "#);
}

#[test]
fn slip_07_a_field_that_others_change_again_and_again_runs_no_hook_and_no_upgrade() {
    let mut world = World::new(&full()).settled();
    for number in 0..20 {
        let drift = Drift::Changed {
            object: "ns/ConfigMap/x".into(),
            place: format!("/data/{number}"),
            writer: None,
        };
        world.send_in(number * 2_000, drifted("web", drift));
    }
    let trace = world.run();
    assert!(!trace.contains("run hook") && !trace.contains("upgrade"), "{trace}");
}

#[test]
fn a_release_that_is_upgraded_in_circles_is_parked_until_something_changes() {
    let mut world = World::new(&full()).settled();
    for _ in 0..4 {
        world = world.release("web", Ok(ReleaseAction::Upgraded));
        let drift = Drift::Absent("ns/ConfigMap/x".into());
        world.after(60_000, drifted("web", drift));
    }
    assert_eq!(world.view().modules[0].phase, "parked");
    assert!(world.view().modules[0].parked.as_ref().unwrap().contains("ns/ConfigMap/x is gone"));
    assert_snapshot!(world.after(100, config(101, &[("web", "x: 1")])), @r"
    240.415s > ConfigMap rv 101 [web]
    240.415s     run hook web/before.sh #17 [beforeHelm]
    240.425s > hook #17 ok
    240.425s     upgrade web #18
    240.475s > release #18 Upgraded
    240.475s     run hook web/after.sh #19 [afterHelm]
    240.485s > hook #19 ok
    ");
    assert_eq!(world.view().modules[0].phase, "running");
}

#[test]
fn f_a9_a_chart_that_renders_something_new_each_time_is_parked_and_the_place_is_named() {
    let place = "Secret ns/web differs at /data/password";
    let mut world = World::new(&full()).settled();
    for number in 0..5 {
        world = world.release_that_changes("web", place);
        let drift = Drift::Absent("ns/Secret/web".into());
        world.send_in(60_000, drifted("web", drift));
        let log = world.run();
        // The third upgrade is the last.
        assert_eq!(log.contains("upgrade web"), number < 3, "{number}: {log}");
    }
    let module = &world.view().modules[0];
    assert_eq!(module.phase, "parked");
    assert!(module.parked.as_ref().unwrap().contains(&format!("what keeps changing: {place}")));
}

#[test]
fn upgrades_that_follow_new_values_are_no_loop() {
    let mut world = World::new(&full()).settled();
    for number in 0..5 {
        world = world.release_that_changes("web", "Deployment ns/web differs at /spec/replicas");
        world.after(60_000, config(200 + number, &[("web", &format!("replicas: {number}"))]));
    }
    assert_eq!(world.view().modules[0].phase, "running");
}

#[test]
fn f_b6_a_module_that_cannot_be_read_is_read_again_every_five_seconds() {
    let good = full();
    let mut broken = good.clone().module(5, "first");
    let failure =
        engine::Failure::new(engine::FailureKind::Files, "hook 'start.sh' answers --config with garbage");
    broken.modules[0].broken = Some(failure);
    broken.modules[0].hooks.clear();
    let mut world = World::new(&broken).loads(broken.modules[0].clone()).loads(good.modules[0].clone());
    assert_snapshot!(world.run(), @r"
    0.000s > started
    0.000s     upgrade first #1
    0.050s > release #1 Installed
    0.050s     watch release first
    5.050s > timer
    5.050s     load module web #2
    5.055s > loaded #2 ok
    10.055s > timer
    10.055s     load module web #3
    10.060s > loaded #3 ok
    10.060s     run hook web/start.sh #4 [onStartup]
    10.070s > hook #4 ok
    10.070s     run hook web/before.sh #5 [beforeHelm]
    10.080s > hook #5 ok
    10.080s     upgrade web #6
    10.130s > release #6 Installed
    10.130s     watch release web
    10.130s     run hook web/after.sh #7 [afterHelm]
    10.140s > hook #7 ok
    10.140s     list releases #8
    10.145s > releases #8 [first web]
    ");
}

#[test]
fn f_b7_hooks_of_a_module_that_was_read_in_the_second_attempt_are_taken_into_service_once() {
    let mut good = files().module(10, "web");
    for n in 0..5 {
        good = good.hook(&format!("h{n}.sh"), "{onStartup: 1, kubernetes: [{name: pods, kind: Pod}]}");
    }
    let mut broken = good.clone();
    broken.modules[0].broken = Some(engine::Failure::new(engine::FailureKind::Files, "hook 'h3.sh' exits 1"));
    broken.modules[0].hooks.truncate(2);
    let mut world = World::new(&broken).loads(broken.modules[0].clone()).loads(good.modules[0].clone());
    let trace = world.run();
    for n in 0..5 {
        assert_eq!(trace.matches(&format!("run hook web/h{n}.sh")).count(), 2, "{trace}");
    }
    assert_eq!(trace.matches("start monitor").count(), 1, "{trace}");
    assert_eq!(world.view().watches[0].bindings.len(), 5);
}

#[test]
fn maintenance_has_a_reason_and_ends_by_itself_at_its_time() {
    let text = "{mode: NoResourceReconciliation, reason: the database moves, until: '1970-01-01T00:02:00Z'}";
    let mut world = World::new(&files().module(10, "web")).settled();
    world.send_in(100, config(101, &[("webMaintenance", text)]));
    let trace = world.run_until(60_000);
    assert!(trace.contains("upgrade web #3 in maintenance"), "{trace}");
    let told = "in maintenance until 1970-01-01T00:02:00Z: the database moves";
    // What is wrong with the key hides nothing that is in force.
    let both = World::new(&full())
        .configured(&[("webMaintenance", "NoResourceReconciliation")])
        .settled()
        .at(0, config(201, &[("webMaintenance", "{mode: NoResourceReconciliation, foo: 1}")]))
        .lived(1_000);
    let status = both.told(engine::view::status::text);
    assert!(status.contains("in maintenance; its key of the ConfigMap is broken"), "{status}");
    let status = world.told(engine::view::status::text);
    assert!(status.contains(told.get(..50).unwrap()), "{status}");
    let why = world.told(|view, format| engine::view::why::module(view, "web", format).unwrap().text());
    assert!(why.contains(told), "{why}");
    let data = world.told(engine::view::status::data);
    assert_eq!(data["modules"][0]["maintenanceReason"], json!("the database moves"));
    // A run before that leaves it alone still, and the first one after it does not.
    let trace = world.run_until(119_000);
    assert!(!trace.contains("upgrade"), "{trace}");
    let trace = world.run();
    assert!(trace.starts_with("120.000s > timer\n120.000s     upgrade web #4\n"), "{trace}");
    assert_eq!(world.view().modules[0].maintenance, None);
    // A time that is over is none, and the key is good.
    let trace = world.after(100, config(102, &[("webMaintenance", text), ("web", "x: 1")]));
    assert!(trace.contains("upgrade web") && !trace.contains("in maintenance"), "{trace}");
    assert!(world.view().config_problems.is_empty());
}

#[test]
fn maintenance_is_handed_to_the_release() {
    let mut world = World::new(&full())
        .settled()
        .release("web", Ok(ReleaseAction::Unmanaged))
        .at(100, config(101, &[("webMaintenance", "NoResourceReconciliation")]));
    let mut trace = world.run();
    trace += &world.after(100, config(102, &[]));
    assert_snapshot!(trace, @r"
    0.185s > ConfigMap rv 101 [webMaintenance]
    0.185s     run hook web/before.sh #6 [beforeHelm]
    0.195s > hook #6 ok
    0.195s     upgrade web #7 in maintenance
    0.245s > release #7 Unmanaged
    0.245s     forget release web
    0.245s     run hook web/after.sh #8 [afterHelm]
    0.255s > hook #8 ok
    0.355s > ConfigMap rv 102 []
    0.355s     run hook web/before.sh #9 [beforeHelm]
    0.365s > hook #9 ok
    0.365s     upgrade web #10
    0.415s > release #10 Unchanged
    0.415s     watch release web
    0.415s     run hook web/after.sh #11 [afterHelm]
    0.425s > hook #11 ok
    ");
}

#[test]
fn values_are_checked_for_the_chart_before_it_is_upgraded() {
    let files = files().module(10, "web").schema(
        "type: object",
        Some("{type: object, x-required-for-helm: [size], properties: {size: {type: integer}}}"),
    );
    let mut world = World::new(&files);
    let trace = world.run_until(3000);
    assert!(!trace.contains("upgrade"), "{trace}");
    let error = world.view().modules[0].last_error.clone().unwrap();
    assert!(error.message.contains("web.size"), "{error}");
}
