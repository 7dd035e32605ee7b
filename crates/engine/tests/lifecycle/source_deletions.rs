//! What is seen of a configuration that is being deleted, and of one whose finalizer somebody removed.

use engine::Notice;
use engine::view::{sources, status, why};
use serde_json::json;

use crate::build::{config as config_map, files};
use crate::repositories::{addon, sourced};
use crate::world::World;

const FLAGS: [(&str, &str); 2] = [("webEnabled", "true"), ("aWebEnabled", "true")];

fn ready(name: &str) -> World {
    let mut world = sourced(&files().module(10, "base"));
    world.offers("one", Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[]);
    world.send_in(0, config_map(200, &FLAGS));
    world.applies(name, &["one"]);
    world.run_for(3_000);
    assert_eq!(world.phase(name), "Ready");
    world
}

fn told(world: &World, reason: &str) -> usize {
    world.announcements.iter().filter(|told| told.reason == reason).count()
}

#[test]
fn a_configuration_that_is_being_deleted_says_what_it_waits_for() {
    let mut world = ready("a/x");
    world.applies("a/y", &["gone"]);
    world.run_for(3_000);
    assert_eq!(world.phase("a/y"), "Failed");
    world.powerless.insert("a".to_owned());
    world.deletes("a/x");
    world.run_for(40_000);
    let status = world.status("a/x");
    let condition = &status["conditions"][0];
    assert_eq!((&status["phase"], &status["modules"]), (&json!("Pending"), &json!("0/1")));
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("Deleting")));
    let message = condition["message"].as_str().unwrap();
    assert!(
        message.starts_with("it is being deleted, and waits for the removal of modules a-web; a-web: "),
        "{message}"
    );
    assert!(message.contains("secrets is forbidden"), "{message}");
    assert_eq!(world.states("a/x"), ["a-web Error"]);
    // Metrics count it as its object says.
    let views = world.view().sources;
    let counted: Vec<(&str, &str)> = views.iter().map(|source| (&*source.key.name, source.phase)).collect();
    assert_eq!(counted, [("x", "Pending"), ("y", "Failed")]);
    assert_eq!(told(&world, "RemovalFailed"), 1, "once, however often it is tried");
    // It says so without another write after a restart, and what waited for its end is asked to try again.
    let version = world.version("a/x");
    world.restarts();
    world.send_in(0, config_map(200, &FLAGS));
    world.run_for(40_000);
    assert_eq!((world.status("a/x"), told(&world, "RemovalFailed")), (status, 1), "{version}");
    world.powerless.clear();
    world.run_for(60_000);
    assert!(!world.repositories.objects.contains_key("a/x"));
    assert!(world.repositories.writes.contains(&"a/x a/y reprocessRequest 1".to_owned()));
}

#[test]
fn a_finalizer_that_somebody_removed_is_put_back() {
    let mut world = ready("x");
    let fetches = world.repositories.fetches;
    world.repositories.writes.clear();
    world.unfinalizes("x");
    world.run_for(1_000);
    let written = [r#"x x finalizers ["addons.kyma-project.io"]"#];
    assert_eq!(
        (world.repositories.writes.clone(), world.has_finalizer("x")),
        (written.map(str::to_owned).to_vec(), true)
    );
    // Who removes it again and again gets one answer a minute.
    for _ in 0..10 {
        world.unfinalizes("x");
        world.run_for(1_000);
    }
    assert_eq!(world.repositories.writes.len(), 1);
    world.run_for(60_000);
    assert!(world.has_finalizer("x"));
    assert_eq!((world.repositories.writes.len(), world.repositories.fetches), (2, fetches));
    // Also one that went while the operator was away.
    world.unfinalizes("x");
    world.restarts();
    world.send_in(0, config_map(200, &FLAGS));
    world.run_for(5_000);
    assert!(world.has_finalizer("x") && world.repositories.fetches == fetches);
    let version = world.version("x");
    world.run_for(1_500_000);
    assert_eq!(world.version("x"), version);
}

#[test]
fn each_change_of_a_phase_is_one_line_of_the_log() {
    let mut world = ready("x");
    let lines = |world: &World, ready| {
        world.noticed(|notice| matches!(notice, Notice::SourceChanged { is_ready, .. } if *is_ready == ready))
    };
    assert_eq!((lines(&world, true), lines(&world, false)), (1, 0));
    world.applies("x", &["gone"]);
    world.run_for(1_500_000);
    assert_eq!((lines(&world, true), lines(&world, false)), (1, 1));
    world.applies("x", &["one"]);
    world.run_for(5_000);
    world.restarts();
    world.run_for(5_000);
    assert_eq!((lines(&world, true), lines(&world, false)), (2, 1));
}

fn why_web(world: &World) -> String {
    world.told(|view, format| why::module(view, "web", format).unwrap().text())
}

#[test]
fn a_module_of_a_configuration_that_is_gone_tells_what_can_be_done_with_it() {
    let mut world = ready("x");
    world.unfinalizes("x");
    world.deletes("x");
    world.restarts();
    world.send_in(0, config_map(200, &FLAGS));
    world.run_for(5_000);
    assert!(!world.repositories.objects.contains_key("x"));
    let told = why_web(&world);
    assert!(told.contains("ClusterAddonsConfiguration x is gone, and nobody brings it"), "{told}");
    assert!(told.contains("`addon-operator module disable web` has it removed"), "{told}");
    assert!(!told.contains("why source"), "{told}");
    for told in [world.told(status::text), world.told(sources::text)] {
        let line = "goes on although ClusterAddonsConfiguration x is gone, and nobody brings it";
        assert!(told.contains(line) && told.contains("`addon-operator module disable web`"), "{told}");
    }
    let data = world.told(sources::data);
    assert_eq!(data["ownerless"], json!([{"name": "web", "source": "cac/x"}]));
    // Whoever takes it up ends that.
    world.applies("y", &["one"]);
    world.run_for(5_000);
    assert!(!world.told(status::text).contains("nobody brings it"), "{}", world.told(status::text));
}

#[test]
fn a_removal_that_fails_names_the_way_out_also_if_its_configuration_is_gone() {
    let mut world = sourced(&files().module(10, "base")).fails("web/after.sh", 100_000);
    world.offers("one", Ok(vec![addon("web", "1.0.0", 1)]));
    world.offers("two", Ok(vec![addon("web", "1.1.0", 2)]));
    world.bundle(1, "web", &[("after.sh", "afterDeleteHelm: 1")]);
    world.bundle(2, "web", &[]);
    world.send_in(0, config_map(200, &FLAGS));
    world.applies("x", &["one"]);
    world.run_for(3_000);
    world.deletes("x");
    world.run_for(20_000);
    let told = why_web(&world);
    let way_out = "any other configuration offer a bundle web with which it does: that takes the module over";
    assert!(told.contains("its removal is tried again by itself") && told.contains(way_out), "{told}");
    let why = world.told(|view, format| why::source(view, "x", format).unwrap().text());
    assert!(why.contains("web: its removal fails: ") && why.contains(way_out), "{why}");
    world.unfinalizes("x");
    world.run_for(20_000);
    assert!(!world.repositories.objects.contains_key("x"));
    assert!(why_web(&world).contains(way_out), "{}", why_web(&world));
    // It is one.
    world.applies("y", &["two"]);
    world.run_for(30_000);
    assert_eq!((world.phase("y").as_str(), world.states("y")), ("Ready", vec!["web Running".to_owned()]));
    world.deletes("y");
    world.run_for(10_000);
    assert!(world.repositories.objects.is_empty() && !world.deployed.contains_key("web"));
}
