//! Tests of charts, which people run beside everything else.

use std::time::Duration;

use engine::view::{status, why};
use engine::{Command, CommandId, Event, TestRequest};

use crate::build::{Files, config, files};
use crate::world::World;

fn web() -> Files {
    files().module(10, "web").hook("before.sh", "beforeHelm: 1")
}

fn asked(id: u64, module: &str) -> Event {
    let command = Command::TestModule(module.into(), TestRequest::default());
    Event::Commanded { id: CommandId::new(id), command }
}

/// Returns the first place of a text in a trace.
fn place(trace: &str, text: &str) -> usize {
    trace.find(text).unwrap_or_else(|| panic!("{text:?} is not in\n{trace}"))
}

pub(crate) fn tour() {
    World::new(&web()).settled().after(10, asked(1, "web"));
    World::new(&web()).settled().after(10, abandoned(1));
}

fn abandoned(id: u64) -> Event {
    Event::CommandAbandoned { id: CommandId::new(id) }
}

#[test]
fn tests_that_run_or_wait_are_shown_beside_the_queues() {
    let mut world = World::new(&web()).takes("web/before.sh", 1_000).takes("test web", 60_000).settled();
    world.send_in(10, config(101, &[("web", "x: 1")]));
    let request = TestRequest {
        without: vec!["a".to_owned()],
        timeout: Some(Duration::from_secs(5)),
        ..TestRequest::default()
    };
    let command = Command::TestModule("web".into(), request);
    world.send_in(100, Event::Commanded { id: CommandId::new(1), command });
    let shown = |world: &World| {
        let view = world.view();
        let queue = view.queues.into_iter().find(|queue| queue.name.as_str() == "tests");
        let tasks = queue.into_iter().flat_map(|queue| queue.tasks);
        tasks.map(|task| (task.description, task.running.is_some())).collect::<Vec<_>>()
    };
    let of_web = "ModuleTest:tests:web:all but a in 5.0 s each".to_owned();
    world.run_for(500);
    assert_eq!(shown(&world), [(of_web.clone(), false)]);
    world.run_for(20_000);
    assert_eq!(shown(&world), [(of_web, true)]);
    assert!(world.told(status::text).contains("ModuleTest:tests:web"), "{}", world.told(status::text));
    let why = world.told(|view, format| why::module(view, "web", format).unwrap().text());
    assert!(
        why.contains("ModuleTest runs in queue tests for") && why.contains("its last run succeeded"),
        "{why}"
    );
    world.run();
    assert!(shown(&world).is_empty());
}

#[test]
fn tests_end_when_nobody_waits_for_them_and_others_go_on() {
    let files = web().module(20, "other").module(30, "late").hook("before.sh", "beforeHelm: 1");
    let world = World::new(&files).takes("test web", 60_000).takes("test other", 60_000);
    let mut world = world.takes("late/before.sh", 3_000).settled();
    world.send_in(10, config(101, &[("late", "x: 1")]));
    for (id, name) in [(1, "web"), (2, "other"), (3, "late")] {
        world.send_in(100 + id, asked(id, name));
    }
    world.run_for(200);
    // Nobody asked for the last one.
    for id in [1, 3, 4] {
        world.send_in(id, abandoned(id));
    }
    let trace = world.run_for(10_000);
    assert_eq!(trace.matches("cancel #").count(), 1, "{trace}");
    assert!(trace.contains("refuse c1 ") && !trace.contains(" test late #"), "{trace}");
    let trace = world.run();
    assert!(trace.contains("answer c2 ") && !trace.contains("answer c3"), "{trace}");
    assert!(world.after(1, asked(5, "web")).contains("answer c5 "), "they have ended");
}

#[test]
fn the_tests_of_a_module_are_run_and_the_answer_is_what_came_of_them() {
    let trace = World::new(&web()).settled().after(10, asked(1, "web"));
    assert!(place(&trace, "test web #") < place(&trace, r#"answer c1 {"release":"web""#), "{trace}");
    assert!(!trace.contains("run hook") && !trace.contains("upgrade"), "{trace}");
}

#[test]
fn tests_that_can_not_be_run_are_refused_with_the_reason() {
    let files = web().module(20, "hooks").with(|module| module.has_chart = false);
    let mut world = World::new(&files).takes("test web", 60_000).settled();
    world.send_in(10, asked(1, "web"));
    world.run_for(20);
    for (id, module, why) in [
        (2, "nobody", "refuse c2 there is no module nobody"),
        (3, "hooks", "refuse c3 module hooks has no chart, so it has no tests"),
        (4, "web", "refuse c4 the tests of module web run already"),
    ] {
        world.send_in(1, asked(id, module));
        let trace = world.run_for(10);
        assert!(trace.contains(why), "{why} is not in\n{trace}");
    }
    let trace = world.run();
    assert!(trace.contains("answer c1 "), "{trace}");
    let trace = world.after(1, asked(5, "web"));
    assert!(trace.contains("answer c5 "), "they have ended: {trace}");
}

#[test]
fn no_more_tests_run_than_that() {
    let names: Vec<String> = (0..9).map(|number| format!("m{number}")).collect();
    let all = names.iter().fold(files(), |files, name| files.module(10, name));
    let world =
        names.iter().fold(World::new(&all), |world, name| world.takes(&format!("test {name}"), 1_000));
    let mut world = world.settled();
    for (id, name) in names.iter().enumerate() {
        world.send_in(1, asked(id as u64, name));
    }
    let trace = world.run();
    assert!(trace.contains("refuse c8 the tests of 8 modules run already"), "{trace}");
    assert_eq!(trace.matches("answer c").count(), 8, "{trace}");
}

#[test]
fn tests_wait_for_a_run_of_their_module_and_no_run_waits_for_tests() {
    let mut world = World::new(&web()).takes("web/before.sh", 1_000).takes("test web", 60_000).settled();
    world.send_in(10, config(101, &[("web", "x: 1")]));
    world.send_in(100, asked(1, "web"));
    let trace = world.run_for(5_000);
    assert!(place(&trace, "upgrade web") < place(&trace, " test web #"), "{trace}");
    world.send_in(10, config(102, &[("web", "x: 2")]));
    let trace = world.run_for(5_000);
    assert!(trace.contains("upgrade web") && !trace.contains("answer"), "{trace}");
    assert!(world.run().contains("answer c1 "));
}

#[test]
fn the_end_of_the_operator_ends_tests_at_once_also_those_that_wait() {
    let files = web().module(20, "other");
    let mut world = World::new(&files).takes("web/before.sh", 3_000).takes("test other", 600_000).settled();
    world.send_in(10, config(101, &[("web", "x: 1")]));
    world.send_in(100, asked(1, "web"));
    world.send_in(110, asked(2, "other"));
    world.send_in(200, Event::ShutdownRequested);
    let trace = world.run_for(10_000);
    assert!(trace.contains("refuse c1 the tests of module web did not run: the operator ends"), "{trace}");
    assert!(trace.contains("cancel #") && trace.contains("refuse c2 ended by SIGTERM"), "{trace}");
    assert!(place(&trace, "refuse c2") < place(&trace, "exit"), "{trace}");
    assert!(!trace.contains(" test web #"), "{trace}");
}
