//! What the picture shows.

use engine::view::{status, why};
use engine::{Event, Notice};
use insta::assert_snapshot;

use crate::build::{Files, TICK, config, cron, files};
use crate::world::World;

fn two() -> Files {
    files()
        .global_hook("g.sh", "{beforeAll: 1, kubernetes: [{name: pods, kind: Pod}]}")
        .module(10, "alpha")
        .hook("hooks/a.sh", "{onStartup: 1, beforeHelm: 1}")
        .module(20, "beta")
}

fn lines(world: &World, queue: &str) -> String {
    world.queue(queue).join("\n")
}

#[test]
fn queues_read_as_those_of_the_reference_operator() {
    let mut world = World::new(&two()).lived(5);
    assert_snapshot!(lines(&world, "main"), @r"
    GlobalHookEnableKubernetesBindings:main::g.sh:Operator-Startup
    GlobalHookWaitKubernetesSynchronization:main:::Operator-Startup
    ConvergeModules:main:::Operator-Startup
    ");
    world.run_until(15);
    assert_snapshot!(lines(&world, "main"), @r"
    GlobalHookRun:main:kubernetes:g.sh:pods:Operator-Startup
    GlobalHookWaitKubernetesSynchronization:main:::Operator-Startup
    ConvergeModules:main:::Operator-Startup
    ");
    world.run_until(25);
    assert_snapshot!(lines(&world, "main"), @r"
    GlobalHookRun:main:beforeAll:g.sh:beforeAll:Operator-Startup
    ConvergeModules:main:::Operator-Startup
    ");
    world.run_until(35);
    assert_snapshot!(lines(&world, "main"), @r"
    ModuleRun:main:alpha:doStartup:OperatorStartup
    ModuleRun:main:beta:doStartup:OperatorStartup
    ConvergeModules:main:::Operator-Startup
    ");
}

#[test]
fn a_failed_task_says_so_with_its_retry_and_cause() {
    let world = World::new(&two()).fails("alpha/hooks/a.sh", 1).lived(2_000);
    assert_snapshot!(lines(&world, "main"), @r"
    ModuleRun:main:alpha:doStartup:OperatorStartup:failures 1:exit status 1
    ModuleRun:main:beta:doStartup:OperatorStartup
    ConvergeModules:main:::Operator-Startup
    ");
    let view = world.engine.view_at(engine::Time::from_start(std::time::Duration::from_millis(2_040)));
    let queue = &view.queues[0];
    assert_snapshot!(queue.status, @r"
    sleep after fail for 5s (3s left of 5s delay)
    ");
    let head = &queue.tasks[0];
    assert_eq!(head.cause, "start → converge 1 → module alpha");
    let millis = |duration: Option<std::time::Duration>| duration.unwrap().as_millis();
    assert_eq!((millis(head.retry_in), head.age.as_millis()), (3_000, 2_000));
    assert_eq!(view.modules[0].phase, "failed");
    assert_eq!(view.journal[0].failure.as_ref().unwrap().message, "exit status 1");
}

#[test]
fn the_converge_status_counts_tasks_of_converges() {
    let mut world = World::new(&two()).lived(5);
    let during = world.engine.converge_view(world.now);
    assert!(during.first_started && !during.first_done && during.tasks > 0, "{during:?}");
    world.run();
    let after = world.engine.converge_view(world.now);
    assert_eq!((after.first_done, after.tasks), (true, 0));
    let told = |notice: &Notice| match notice {
        Notice::ConvergeFinished { generation, first, .. } => Some((*generation, *first)),
        _ => None,
    };
    // The second end is that of the look for releases without a module: readiness waits for it, but it is no converge.
    let finished: Vec<_> = world.notices.iter().filter_map(told).collect();
    assert_eq!(finished, [(Some(1), true), (None, false)]);
}

#[test]
fn ends_of_hooks_say_whether_they_were_tasks_and_whether_the_start_led_to_them() {
    let files = files()
        .global_hook("watch.sh", "{onStartup: 1, kubernetes: [{name: pods, kind: Pod}]}")
        .module(10, "web")
        .hook("helm.sh", "beforeHelm: 1");
    let world = World::new(&files).change(1_000, "Pod", engine::hook::WatchEvent::Added, "x").settled();
    let told = world.notices.iter().filter_map(|notice| match notice {
        Notice::HookRan { binding, is_task, startup, .. } => Some((*binding, *is_task, *startup)),
        _ => None,
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("onStartup", true, true),
            ("kubernetes", true, true),
            ("beforeHelm", false, true),
            ("kubernetes", true, false),
        ]
    );
}

#[test]
fn f_d2_looking_changes_nothing() {
    let busy =
        || World::new(&two()).fails("alpha/hooks/a.sh", 3).at(7_000, config(101, &[("global", "x: 1")]));
    let mut seen = busy();
    let mut trace = String::new();
    for millis in (0..60_000).step_by(50) {
        trace += &seen.run_until(millis);
        let _ = (seen.engine.view(), seen.engine.inspect(), seen.engine.next_wakeup());
    }
    assert_eq!(trace, busy().run_until(60_000));
}

#[test]
fn f_e7_the_picture_shows_no_values() {
    let mut world = World::new(&two()).configured(&[("alpha", "password: hunter22-hunter22")]).settled();
    world.after(1, Event::TimerFired);
    let shown = format!("{:?} {:?} {:?}", world.view(), world.engine, world.notices);
    assert!(!shown.contains("hunter22"), "{shown}");
    assert!(format!("{:?}", world.engine.inspect()).contains("alpha"));
}

#[test]
fn the_journal_keeps_the_last_thousand_ends() {
    let files = files().global_hook("tick.sh", TICK);
    let mut world = World::new(&files).settled();
    for _ in 0..1_200 {
        world.after(20, cron("* * * * *"));
    }
    assert_eq!(world.view().journal.len(), 1_000);
}

#[test]
fn slip_19_a_module_without_chart_says_so() {
    let world = World::new(&files().module(10, "hooks").hooks_only()).settled();
    assert_eq!(world.view().modules[0].release, "no chart");
    let screen = world.told(status::text);
    assert!(screen.contains("no chart") && !screen.contains("unknown"), "{screen}");
    assert_eq!(world.told(status::data)["modules"][0]["release"], "no chart");
    let answer = world.told(|view, format| why::module(view, "hooks", format)).unwrap();
    assert!(answer.facts.contains(&("release", "no chart".to_owned())), "{answer:?}");
}
