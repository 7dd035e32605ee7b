//! What of a source stays when it fails: its modules, its ids and what its status says about both.

use engine::{AddonReason, Config, Failure, FailureKind, RepositoryProblem, RepositoryReason, StoreError};
use serde_json::json;

use crate::build::{config as config_map, files};
use crate::repositories::{addon, broken, config, digest, sourced, sourced_with, unreachable_index, with_id};
use crate::world::World;

const URL: &str = "https://repo/index.yaml";

/// A world in which the module `web` of the source `a` runs.
fn ready() -> World {
    // A clock, so that times differ.
    let started_at = "2024-05-01T10:00:00Z".parse().unwrap();
    let mut world = sourced_with(&files().module(10, "base"), Config { started_at, ..config() });
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[]);
    world.send_in(0, config_map(200, &[("webEnabled", "true"), ("teamWebEnabled", "true")]));
    world.applies("a", &[URL]);
    world.run_for(5_000);
    assert_eq!(world.states("a"), ["web Running"]);
    world
}

/// Has a source processed again.
fn again(world: &mut World, name: &str, counter: i64) {
    world.edits(name, |spec| spec["reprocessRequest"] = json!(counter));
    world.run_for(5_000);
}

#[test]
fn a_spec_that_can_not_be_read_shows_what_goes_on_and_its_policies_count() {
    let mut world = ready();
    world.edits("a", |spec| spec["repositories"] = json!(1));
    let trace = world.run_for(5_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Failed", vec!["web Retained".to_owned()]));
    assert_eq!((&world.status("a")["modules"], trace.contains("uninstall")), (&json!("1/1"), false));
    assert_eq!(world.status("a")["repositories"][0]["url"], URL);
    let message = &world.status("a")["conditions"][0]["message"];
    assert_eq!(message, "spec.repositories must be a list; correct the spec");
    world.edits("a", |spec| spec["failurePolicy"] = json!("Remove"));
    let trace = world.run_for(5_000);
    assert!(trace.contains("uninstall web") && world.states("a").is_empty(), "{trace}");
    assert_eq!(world.status("a")["modules"], "0/0");
    // What it is deleted with counts, too.
    let mut world = ready();
    world.edits("a", |spec| *spec = json!({"repositories": 1, "deletionPolicy": "Retain"}));
    world.run_for(5_000);
    world.deletes("a");
    let trace = world.run_for(5_000);
    assert!(!trace.contains("uninstall") && world.repositories.objects.is_empty(), "{trace}");
}

#[test]
fn ids_are_kept_while_their_repository_can_not_be_fetched() {
    for unreachable in
        [unreachable_index(), Ok(vec![broken(addon("web", "1.0.0", 1), AddonReason::FetchingError)])]
    {
        let mut world = ready();
        world.offers("two", Ok(vec![with_id(addon("twin", "2.0.0", 4), "id-web")]));
        world.bundle(4, "twin", &[]);
        world.offers(URL, unreachable);
        again(&mut world, "a", 1);
        assert_eq!(
            (world.phase("a").as_str(), world.states("a")),
            ("Failed", vec!["web Retained".to_owned()])
        );
        world.applies("b", &["two"]);
        world.run_for(5_000);
        let taken = format!(
            "ConflictWithAlreadyRegisteredAddon: its id is registered by ClusterAddonsConfiguration a: web:1.0.0 in {URL}"
        );
        assert_eq!(world.problems("b"), std::slice::from_ref(&taken));
        // Also after a restart.
        world.restarts();
        world.send_in(0, config_map(200, &[("webEnabled", "true")]));
        world.run_for(5_000);
        again(&mut world, "b", 1);
        assert_eq!(world.problems("b"), [taken]);
        // It is there again, and something else is wrong with it: the other one is asked to try again.
        world.offers(URL, Ok(vec![broken(addon("web", "1.0.0", 1), AddonReason::LoadingError)]));
        again(&mut world, "a", 2);
        assert_eq!((world.phase("a").as_str(), world.phase("b").as_str()), ("Failed", "Ready"));
    }
}

#[test]
fn ids_are_free_at_once_when_the_spec_names_another_repository() {
    let mut world = ready();
    world.applies("a", &["gone"]);
    world.run_for(5_000);
    world.applies("b", &[URL]);
    let trace = world.run_for(5_000);
    assert_eq!((world.phase("a").as_str(), world.states("b")), ("Failed", vec!["web Running".to_owned()]));
    assert!(!trace.contains("uninstall") && !trace.contains("upgrade web"), "{trace}");
}

#[test]
fn an_addon_that_moves_to_another_source_while_its_repository_is_down_is_not_uninstalled() {
    for unreachable in
        [unreachable_index(), Ok(vec![broken(addon("web", "1.0.0", 1), AddonReason::FetchingError)])]
    {
        let moved = || {
            let mut world = ready();
            world.offers("two", Ok(vec![addon("db", "1.0.0", 5)]));
            world.bundle(5, "db", &[]);
            world.offers(URL, unreachable.clone());
            world.applies("b", &[URL]);
            world.run_for(5_000);
            world.applies("a", &["two"]);
            let trace = world.run_for(60_000);
            assert_eq!((world.phase("a").as_str(), world.phase("b").as_str()), ("Ready", "Failed"));
            assert!(!trace.contains("uninstall") && world.deployed.contains_key("web"), "{trace}");
            world
        };
        // It can be read again: the other one has the module now.
        let mut world = moved();
        world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
        let before = world.deployed["web"].0;
        again(&mut world, "b", 1);
        assert_eq!((world.states("b"), world.deployed["web"].0), (vec!["web Running".to_owned()], before));
        // It offers something else, or its configuration goes: nobody wants the module.
        for is_deleted in [false, true] {
            let mut world = moved();
            if is_deleted {
                world.deletes("b");
            } else {
                world.offers(URL, Ok(Vec::new()));
                world.edits("b", |spec| spec["reprocessRequest"] = json!(1));
            }
            let trace = world.run_for(10_000);
            assert!(trace.contains("uninstall web") && !world.deployed.contains_key("web"), "{trace}");
        }
    }
}

#[test]
fn a_source_that_vanished_keeps_no_ids() {
    let mut world = ready();
    world.offers(URL, unreachable_index());
    again(&mut world, "a", 1);
    let mut object = world.repositories.objects["a"].clone();
    object["metadata"]["finalizers"] = json!([]);
    world.repositories.objects.insert("a".to_owned(), object);
    world.deletes("a");
    world.run_for(5_000);
    assert!(world.repositories.registry.addons.iter().all(|addon| !addon.holds_id()));
    assert!(world.deployed.contains_key("web"));
}

#[test]
fn what_is_said_about_modules_that_go_on_is_true() {
    let mut world = ready();
    world.offers(URL, unreachable_index());
    again(&mut world, "a", 1);
    let expected = [
        "FetchingIndexError: the server answered 404",
        "UnregisteringError: its repository can't be fetched now; its module goes on",
    ];
    assert_eq!(world.problems("a"), expected);
    world.offers(URL, Ok(vec![broken(addon("db", "1.0.0", 3), AddonReason::LoadingError)]));
    again(&mut world, "a", 2);
    let expected = [
        "LoadingError: it can't be used",
        "UnregisteringError: it is not registered any more; its module goes on",
    ];
    assert_eq!(world.problems("a"), expected);
}

#[test]
fn a_module_that_goes_on_is_shown_with_its_own_version() {
    for (name, module) in [("a", "web"), ("team/a", "team-web")] {
        let mut world = ready();
        world.applies(name, &[URL]);
        world.run_for(5_000);
        let mut old = addon("web", "0.9.0", 3);
        old.is_chosen = false;
        world.offers(URL, Ok(vec![old, broken(addon("web", "1.0.0", 1), AddonReason::LoadingError)]));
        again(&mut world, name, 1);
        let status = world.status(name);
        let lines = status["repositories"][0]["addons"].as_array().unwrap();
        let shown: Vec<String> =
            lines.iter().map(|line| format!("{} {}", line["version"], line["module"]["state"])).collect();
        assert_eq!(shown, ["\"0.9.0\" null", "\"1.0.0\" \"Retained\""], "{name}");
        assert_eq!(lines[1]["module"]["name"], module);
    }
}

#[test]
fn a_source_that_failed_shows_no_module_that_it_does_not_have() {
    let mut world = sourced(&files().module(10, "base"));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.applies("a", &[URL, "gone"]);
    world.run_for(5_000);
    assert_eq!((world.states("a"), &world.status("a")["modules"]), (Vec::new(), &json!("0/0")));
    // What is there goes on, and says so on its line.
    let mut world = ready();
    world.applies("a", &[URL, "gone"]);
    world.run_for(5_000);
    assert_eq!(
        (world.states("a"), &world.status("a")["modules"]),
        (vec!["web Retained".to_owned()], &json!("1/1"))
    );
    assert_eq!(world.problems("a"), ["FetchingIndexError: the server answered 404"]);
}

#[test]
fn the_end_of_a_source_that_had_no_modules_is_announced_to_nobody() {
    let mut world = ready();
    world.applies("b", &["gone"]);
    world.run_for(5_000);
    world.announcements.clear();
    world.deletes("b");
    world.run_for(5_000);
    assert!(world.announcements.is_empty() && !world.repositories.objects.contains_key("b"));
    world.deletes("a");
    world.run_for(5_000);
    let told: Vec<&str> = world.announcements.iter().map(|told| told.reason).collect();
    assert!(told.contains(&"SourceRemoved"), "{told:?}");
}

#[test]
fn a_change_of_a_module_does_not_make_a_source_look_processed() {
    let mut world = ready();
    let processed = world.status("a")["lastProcessedTime"].clone();
    world.send_in(100_000, config_map(201, &[("webEnabled", "false")]));
    world.run_for(105_000);
    assert_eq!(
        (world.states("a"), &world.status("a")["lastProcessedTime"]),
        (vec!["web Registered".to_owned()], &processed)
    );
    again(&mut world, "a", 1);
    assert_ne!(world.status("a")["lastProcessedTime"], processed);
}

#[test]
fn nothing_is_removed_because_the_disk_is_full_and_it_is_tried_again_after_the_relist() {
    let mut world = ready();
    world.offers(URL, Ok(vec![broken(addon("web", "1.0.0", 1), AddonReason::RegisteringError)]));
    world.edits("a", |spec| spec["failurePolicy"] = json!("Remove"));
    let trace = world.run_for(5_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Failed", vec!["web Retained".to_owned()]));
    assert!(!trace.contains("uninstall") && world.deployed.contains_key("web"), "{trace}");
    let why = world.told(|view, format| engine::view::why::source(view, "a", format).unwrap().text());
    assert!(why.contains("the disk of --source-dir has room"), "{why}");
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.run_for(500_000);
    assert_eq!(world.phase("a"), "Failed");
    world.run_for(800_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
}

#[test]
fn a_disk_that_fills_before_a_bundle_is_registered_removes_nothing() {
    let mut world = ready();
    world.bundle(2, "web", &[]);
    world.offers(URL, Ok(vec![addon("web", "2.0.0", 2)]));
    let full = || StoreError::Bundles(vec![(digest(2), Failure::new(FailureKind::Storage, "it is full"))]);
    world.repositories.keeping.push_back(full());
    world.edits("a", |spec| spec["failurePolicy"] = json!("Remove"));
    let trace = world.run_for(5_000);
    assert_eq!(world.phase("a"), "Failed");
    assert_eq!(world.problems("a")[0], "RegisteringError: it is full");
    assert_eq!(world.states("a"), ["web Retained"]);
    assert!(!trace.contains("uninstall") && !trace.contains("load modules"), "{trace}");
    assert!(world.deployed.contains_key("web"));
    world.run_for(800_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
}

#[test]
fn a_problem_without_a_version_is_told_without_a_gap() {
    let mut world = ready();
    let mut absent = broken(addon("nosuch", "1.0.0", 3), AddonReason::FetchingError);
    absent.version.clear();
    world.offers(URL, Ok(vec![absent]));
    again(&mut world, "a", 1);
    let message = world.status("a")["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("nothing is registered; nosuch: FetchingError: "), "{message}");
    let why = world.told(|view, format| engine::view::why::source(view, "a", format).unwrap().text());
    assert!(why.contains("nosuch: FetchingError: "), "{why}");
}

fn denied() -> StoreError {
    StoreError::Registry(Failure::new(FailureKind::Forbidden, "update of secrets is forbidden"))
}

#[test]
fn a_registry_that_may_not_be_written_is_told_in_the_status_and_so_is_what_else_is_wrong() {
    let mut world = ready();
    world.bundle(2, "web", &[]);
    world.offers(URL, Ok(vec![addon("web", "2.0.0", 2)]));
    world.repositories.keeping.extend([denied(), denied()]);
    again(&mut world, "a", 1);
    assert_eq!(world.phase("a"), "Failed");
    let goes_on = "UnregisteringError: what is registered can't be changed now; its module goes on";
    assert_eq!(world.problems("a"), ["RegisteringError: update of secrets is forbidden", goes_on]);
    // The spec is wrong as well.
    world.applies("a", &[""]);
    world.offers(
        "",
        Err(RepositoryProblem { reason: RepositoryReason::EmptyURLError, message: "it is empty".to_owned() }),
    );
    let trace = world.run_for(3_000);
    let message = world.status("a")["conditions"][0]["message"].to_string();
    assert_eq!(
        (world.phase("a").as_str(), world.problems("a")[0].as_str()),
        ("Failed", "EmptyURLError: it is empty"),
        "{trace}"
    );
    assert!(
        message.contains("EmptyURLError") && message.contains("update of secrets is forbidden"),
        "{message}"
    );
    assert!(world.deployed.contains_key("web") && !world.trace.contains("uninstall"), "{}", world.trace);
    assert_eq!(world.status("a")["modules"], "1/1", "{}", world.status("a"));
    world.applies("a", &[URL]);
    world.run_for(3_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
}

#[test]
fn a_deletion_says_that_the_registry_may_not_be_written() {
    let mut world = ready();
    world.repositories.keeping.extend([denied(), denied()]);
    world.deletes("a");
    world.run_for(1_000);
    let condition = &world.status("a")["conditions"][0];
    let told = (condition["reason"].as_str().unwrap(), condition["message"].as_str().unwrap());
    assert_eq!(told.0, "Deleting");
    assert!(
        told.1.starts_with(
            "it is being deleted, and waits until the registry can be written: update of secrets is forbidden"
        ),
        "{told:?}"
    );
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Pending", vec!["web Running".to_owned()]));
    let trace = world.run_for(30_000);
    assert!(world.repositories.objects.is_empty() && !world.deployed.contains_key("web"), "{trace}");
}

#[test]
fn the_status_and_why_say_why_a_module_of_the_cluster_fails() {
    let mut world = ready();
    world.fails_releases("web", 100);
    world.bundle(2, "web", &[]);
    world.offers(URL, Ok(vec![addon("web", "2.0.0", 2)]));
    again(&mut world, "a", 1);
    let module = &world.status("a")["repositories"][0]["addons"][0]["module"];
    assert_eq!(module["state"], "Error");
    assert!(module["message"].as_str().is_some_and(|message| !message.is_empty()), "{module}");
    let why = world.told(|view, format| engine::view::why::source(view, "a", format).unwrap().text());
    assert!(why.contains("`addon-operator why module web` says why that fails"), "{why}");
    // A restart knows it, and what is over is told no more.
    world.restarts();
    world.fails_releases("web", 0);
    world.send_in(0, config_map(200, &[("teamWebEnabled", "true")]));
    world.run_for(60_000);
    let module = &world.status("a")["repositories"][0]["addons"][0]["module"];
    assert_eq!(module, &json!({"name": "web", "state": "Registered"}));
}

#[test]
fn versions_that_are_no_modules_are_registered() {
    let mut world = ready();
    let mut old = addon("web", "0.9.0", 7);
    old.is_chosen = false;
    world.bundle(7, "web", &[]);
    world.offers(URL, Ok(vec![old, addon("web", "1.0.0", 1)]));
    again(&mut world, "a", 1);
    assert_eq!(
        (world.states("a"), &world.status("a")["modules"]),
        (vec!["web Registered".to_owned(), "web Running".to_owned()], &json!("1/1"))
    );
    let lines = &world.status("a")["repositories"][0]["addons"];
    assert_eq!(lines[0]["module"]["message"], "version 1.0.0 is the module");
    let version = world.version("a");
    world.restarts();
    world.send_in(0, config_map(200, &[("webEnabled", "true"), ("teamWebEnabled", "true")]));
    world.run_for(20_000);
    assert_eq!(world.version("a"), version);
}

#[test]
fn a_module_whose_crds_can_not_be_written_is_in_error_and_says_why() {
    let module = |world: &World| world.status("a")["repositories"][0]["addons"][0]["module"].clone();
    for is_first in [true, false] {
        let mut world = if is_first { sourced(&files().module(10, "base")) } else { ready() };
        world.send_in(0, config_map(201, &[("webEnabled", "true")]));
        world.offers(URL, Ok(vec![addon("web", "1.1.0", 2)]));
        world.bundle(2, "web", &[]);
        world.bundle_defines(2, "crds/broken.yaml");
        world.edits("a", |spec| *spec = json!({"repositories": [{"url": URL}], "reprocessRequest": 1}));
        world.run_for(5_000);
        let told = json!({"name": "web", "state": "Error", "message": "crds/broken.yaml: no CRD"});
        assert_eq!(module(&world), told, "is_first: {is_first}");
        assert_eq!(world.status("a")["modules"], "0/1");
        world.offers(URL, Ok(vec![addon("web", "1.1.1", 3)]));
        world.bundle(3, "web", &[]);
        world.bundle_defines(3, "crds/a.yaml");
        again(&mut world, "a", 2);
        world.run_for(10_000);
        assert_eq!(module(&world), json!({"name": "web", "state": "Running"}), "is_first: {is_first}");
    }
}
