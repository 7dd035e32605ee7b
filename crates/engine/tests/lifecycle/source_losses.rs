//! Bundles that are lost, in the cluster and on the disk, and statuses that are older than what they tell of.

use engine::{Event, Failure, FailureKind, Notice, RegisteredAddon, Registry};
use serde_json::json;

use crate::build::{config as config_map, files};
use crate::repositories::{addon, digest, sourced, unreachable_index};
use crate::world::World;

const URL: &str = "https://repo/index.yaml";
const FLAGS: [(&str, &str); 2] = [("webEnabled", "true"), ("dbEnabled", "true")];

/// A world with a configuration `a` and its module `web`, and a repository `other` with `db`.
fn ready() -> World {
    let mut world = sourced(&files().module(10, "base"));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.offers("other", Ok(vec![addon("db", "1.0.0", 2)]));
    world.bundle(1, "web", &[("start.sh", "{onStartup: 1, afterDeleteHelm: 1}")]);
    world.bundle(2, "db", &[]);
    world.send_in(0, config_map(200, &FLAGS));
    world.applies("a", &[URL]);
    world.run_for(3_000);
    assert_eq!(world.states("a"), ["web Running"]);
    world
}

fn restarts(world: &mut World) {
    world.restarts();
    world.send_in(0, config_map(200, &FLAGS));
}

/// Returns a world after a start that found the bundle of `web` lost, and its repository away.
fn lost() -> World {
    let mut world = ready();
    world.loses(1);
    world.offers(URL, unreachable_index());
    restarts(&mut world);
    world.run_for(5_000);
    world
}

#[test]
fn a_lost_bundle_is_fetched_again_by_itself() {
    let mut world = ready();
    let fetches = world.repositories.fetches;
    world.loses(1);
    world.repositories.writes.clear();
    restarts(&mut world);
    let trace = world.run_for(5_000);
    assert_eq!(world.repositories.fetches, fetches + 1, "{trace}");
    assert_eq!(world.repositories.writes[..2], ["a a status Pending", "a a status Ready"]);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
    assert!(trace.contains("run hook web/start.sh") && !trace.contains("uninstall"), "{trace}");
    let told = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.contains("lost") && message.contains("web 1.0.0"));
    assert_eq!(world.noticed(told), 1);
    // Once it is there, the next start is as any other.
    let version = world.version("a");
    restarts(&mut world);
    world.run_for(5_000);
    assert_eq!((world.version("a"), world.repositories.fetches), (version, fetches + 1));
}

#[test]
fn a_lost_bundle_that_is_found_while_the_registry_is_written_is_written_as_well() {
    let mut world = ready();
    world.applies("b", &["other"]);
    world.run_for(3_000);
    world.loses(1);
    world.loses(2);
    restarts(&mut world);
    world.run_for(10_000);
    assert_eq!(
        (world.states("a"), world.states("b")),
        (vec!["web Running".to_owned()], vec!["db Running".to_owned()])
    );
    assert_eq!(world.repositories.in_secrets, [digest(1), digest(2)].into(), "{}", world.trace);
}

#[test]
fn a_status_that_tells_of_modules_which_are_not_registered_is_not_believed() {
    let mut world = ready();
    world.repositories.registry = Registry::default();
    let fetches = world.repositories.fetches;
    restarts(&mut world);
    let trace = world.run_for(10_000);
    assert_eq!(world.repositories.fetches, fetches + 1, "{trace}");
    let registered: Vec<&str> =
        world.repositories.registry.addons.iter().map(|addon| addon.bundle.name.as_str()).collect();
    assert_eq!((world.phase("a").as_str(), registered), ("Ready", vec!["web"]), "{trace}");
    assert_eq!(world.states("a"), ["web Running"], "{trace}");
    assert!(!trace.contains("uninstall"), "{trace}");
}

#[test]
fn nothing_is_removed_when_the_operator_ends_before_it_tells_that_a_fetch_failed() {
    // The fetch is that of the interval, so the object says `Ready` at its generation until its status is written.
    for delay in (6_800..7_500).step_by(5) {
        let mut world = ready();
        world.edits("a", |spec| spec["updateInterval"] = json!("10s"));
        world.run_for(3_000);
        world.offers(URL, unreachable_index());
        world.run_for(delay);
        restarts(&mut world);
        let trace = world.run_for(60_000);
        assert!(!trace.contains("uninstall") && world.deployed.contains_key("web"), "{delay}: {trace}");
        assert_eq!(world.phase("a"), "Failed", "{delay}: {trace}");
    }
}

#[test]
fn a_lost_bundle_whose_repository_is_down_holds_up_nobody() {
    let mut world = lost();
    assert_eq!(world.phase("a"), "Failed");
    world.applies("b", &["other"]);
    let trace = world.run_for(5_000);
    assert_eq!(
        (world.phase("b").as_str(), world.states("b")),
        ("Ready", vec!["db Running".to_owned()]),
        "{trace}"
    );
    assert!(world.deployed.contains_key("web") && !world.trace.contains("uninstall"), "{}", world.trace);
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.run_for(700_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
    assert!(!world.trace.contains("uninstall"), "{}", world.trace);
}

#[test]
fn nobody_says_that_the_module_of_a_lost_bundle_goes_on() {
    let mut world = lost();
    let lost = "its bundle is lost, so its module is not there; if it has a release, that stays as it is";
    let unfetched = "UnregisteringError: its repository can't be fetched now; ";
    assert_eq!(world.problems("a")[1..], [format!("{unfetched}{lost}")]);
    assert_eq!(
        (world.states("a"), &world.status("a")["modules"]),
        (vec!["web Error".to_owned()], &json!("0/1"))
    );
    // It is there again, and the repository is not.
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.run_for(700_000);
    world.offers(URL, unreachable_index());
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(5_000);
    assert_eq!(world.problems("a")[1..], [format!("{unfetched}its module goes on")]);
    assert_eq!(
        (world.states("a"), &world.status("a")["modules"]),
        (vec!["web Retained".to_owned()], &json!("1/1"))
    );
}

#[test]
fn the_release_of_a_lost_bundle_goes_with_its_configuration() {
    let mut world = lost();
    world.deletes("a");
    world.run_for(10_000);
    assert!(world.deployed.keys().eq(["base"]), "{}", world.trace);
    assert!(world.repositories.objects.is_empty() && world.repositories.registry.addons.is_empty());
}

#[test]
fn the_release_of_a_lost_bundle_goes_although_nothing_else_happens() {
    let mut world = lost();
    // That its modules are loaded late is the last that happens.
    world.repositories.loading.push_back(Failure::new(FailureKind::Files, "full"));
    world.deletes("a");
    world.run_for(10_000);
    assert!(world.deployed.keys().eq(["base"]), "{:?}", world.deployed);
    assert!(world.repositories.objects.is_empty() && world.repositories.registry.addons.is_empty());
}

#[test]
fn the_release_of_a_lost_bundle_that_another_one_takes_over_stays() {
    let mut world = lost();
    // It is to be removed when its modules are loaded. Until then somebody else wants it.
    world.repositories.loading.push_back(Failure::new(FailureKind::Files, "full"));
    world.deletes("a");
    world.run_for(1_000);
    assert!(
        world.repositories.registry.addons.iter().all(RegisteredAddon::is_displaced)
            && world.deployed.contains_key("web")
    );
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.applies("b", &[URL]);
    let trace = world.run_for(20_000);
    assert!(!trace.contains("uninstall"), "{trace}");
    assert_eq!((world.phase("b").as_str(), world.states("b")), ("Ready", vec!["web Running".to_owned()]));
    assert!(!world.repositories.objects.contains_key("a"), "{trace}");
    restarts(&mut world);
    let trace = world.run_for(20_000);
    assert!(!trace.contains("uninstall") && world.deployed.contains_key("web"), "{trace}");
}

#[test]
fn the_release_of_a_lost_bundle_is_not_forgotten_with_who_has_it_with_another_bundle() {
    for delay in (0..300).step_by(5) {
        let mut world = lost();
        // It is to be removed when its modules are loaded. Until then somebody else wants it, and goes without us.
        world.repositories.loading.extend([0; 2].map(|_| Failure::new(FailureKind::Files, "full")));
        world.deletes("a");
        world.run_for(1_000);
        world.offers("newer", Ok(vec![addon("web", "2.0.0", 3)]));
        world.bundle(3, "web", &[]);
        world.applies("b", &["newer"]);
        world.run_for(delay);
        world.unfinalizes("b");
        world.deletes("b");
        let trace = world.run_for(60_000);
        let is_known = !world.repositories.registry.addons.is_empty();
        assert_eq!(world.deployed.contains_key("web"), is_known, "{delay}: {trace}");
        world.send_in(0, config_map(201, &[]));
        let trace = world.run_for(60_000);
        assert!(world.deployed.keys().eq(["base"]), "{delay}: {trace}");
        assert!(world.repositories.registry.addons.is_empty(), "{delay}");
    }
}

#[test]
fn the_release_of_a_bundle_that_came_back_goes_with_its_addon_before_its_module_ran() {
    let mut world = ready();
    world.loses(1);
    restarts(&mut world);
    // It is fetched again, and comes after the releases were listed.
    world.repositories.loading.push_back(Failure::new(FailureKind::Files, "full"));
    world.run_for(1_000);
    assert!(world.deployed.contains_key("web") && world.view().modules.len() == 1);
    world.applies("a", &["other"]);
    let trace = world.run_for(20_000);
    assert!(trace.contains("uninstall web"), "{trace}");
    assert!(world.deployed.keys().eq(["base", "db"]), "{trace}");
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["db Running".to_owned()]));
}

#[test]
fn what_a_module_did_before_its_configuration_was_seen_is_in_the_status() {
    let world = ready();
    let version = world.version("a");
    let mut world = (0..200).fold(world, |world, _| world.release("web", Err("no")));
    restarts(&mut world);
    let listed = std::mem::take(&mut world.repositories.objects);
    world.run_for(3_000);
    assert!(world.view().modules.iter().any(|module| module.last_error.is_some()), "it failed");
    world.repositories.objects = listed;
    let item = |object: &serde_json::Value| {
        engine::snapshot::Item::unfiltered(object.to_string().into_bytes().into(), true)
    };
    let objects = vec![(
        engine::snapshot::Key::new("", "a"),
        std::sync::Arc::new(item(&world.repositories.objects["a"])),
    )];
    let monitor = *world.monitors.iter().find(|(_, kind)| *kind == crate::repositories::KIND).unwrap().0;
    assert_eq!(world.version("a"), version, "nothing was written meanwhile");
    world.send_in(0, Event::Listed { lists: vec![(monitor, objects)] });
    world.run_for(1_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Error".to_owned()]));
    assert_eq!(world.status("a")["modules"], json!("0/1"));
}

#[test]
fn a_restart_that_changes_nothing_writes_nothing_about_a_module_that_goes_on_failing() {
    let mut world = ready();
    world.powerless.insert("n".to_owned());
    world.applies("n/x", &[URL]);
    world.send_in(0, config_map(201, &[("webEnabled", "true"), ("nWebEnabled", "true")]));
    world.run_for(5_000);
    assert_eq!(world.states("n/x"), ["n-web Error"]);
    let (version, message) = (world.version("n/x"), world.status("n/x"));
    assert!(message.to_string().contains("secrets is forbidden"), "{message}");
    world.restarts();
    world.send_in(0, config_map(201, &[("webEnabled", "true"), ("nWebEnabled", "true")]));
    world.run_for(60_000);
    assert_eq!(world.version("n/x"), version, "{}", world.status("n/x"));
}

#[test]
fn a_release_is_not_upgraded_while_it_is_being_removed() {
    for delay in (0..150).step_by(5) {
        let mut world = lost();
        world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
        world.deletes("a");
        world.run_for(delay);
        world.applies("b", &[URL]);
        let trace = world.run_for(20_000);
        assert!(world.repositories.faults.is_empty(), "{delay}: {:?} {trace}", world.repositories.faults);
        let state = (world.phase("b"), world.states("b"), world.deployed.contains_key("web"));
        assert_eq!(state, ("Ready".to_owned(), vec!["web Running".to_owned()], true), "{delay}: {trace}");
        assert!(!world.repositories.objects.contains_key("a"), "{delay}: {trace}");
    }
}

#[test]
fn a_built_in_module_has_the_release_of_a_lost_bundle_of_its_name() {
    let mut world = lost().release("web", Err("no"));
    world.deletes("a");
    let trace = world.run_for(1_000);
    assert!(trace.contains("uninstall web") && world.deployed.contains_key("web"), "{trace}");
    world.rereads(&files().module(10, "base").module(20, "web"));
    let trace = world.run_for(20_000);
    assert!(!trace.contains("uninstall") && world.deployed.contains_key("web"), "{trace}");
    assert!(world.repositories.objects.is_empty() && world.repositories.registry.addons.is_empty());
}

#[test]
fn a_built_in_module_has_the_release_that_who_had_its_name_got_from_a_lost_bundle() {
    for delay in (0..300).step_by(25) {
        let mut world = lost();
        world.repositories.loading.push_back(Failure::new(FailureKind::Files, "full"));
        world.deletes("a");
        world.run_for(1_000);
        world.offers("newer", Ok(vec![addon("web", "2.0.0", 3)]));
        world.bundle(3, "web", &[]);
        world.applies("b", &["newer"]);
        world.run_for(200);
        world.rereads(&files().module(10, "base").module(20, "web"));
        world.run_for(delay);
        world.unfinalizes("b");
        world.deletes("b");
        let trace = world.run_for(60_000);
        assert!(world.deployed.keys().eq(["base", "web"]), "{delay}: {trace}");
        assert!(!trace.contains("uninstall"), "{delay}: {trace}");
        assert!(world.repositories.registry.addons.is_empty(), "{delay}: {trace}");
    }
}

#[test]
fn a_built_in_module_does_not_run_while_a_release_of_its_name_is_being_removed() {
    for delay in (0..150).step_by(5) {
        let mut world = lost();
        world.deletes("a");
        world.run_for(delay);
        world.rereads(&files().module(10, "base").module(20, "web"));
        let trace = world.run_for(20_000);
        assert!(world.repositories.faults.is_empty(), "{delay}: {:?} {trace}", world.repositories.faults);
        assert!(world.deployed.keys().eq(["base", "web"]), "{delay}: {trace}");
        assert!(world.repositories.registry.addons.is_empty(), "{delay}: {trace}");
    }
}

#[test]
fn the_event_about_a_lost_bundle_does_not_say_that_its_module_goes_on() {
    let world = lost();
    let told = world.announcements.iter().filter(|told| told.reason == "ModulesRetained");
    let told: Vec<&str> = told.map(|told| &*told.message).collect();
    assert_eq!(
        told,
        [
            "ClusterAddonsConfiguration a does not bring these modules any more; their bundles are lost, so they are not there, \
          and their releases stay as they are: web"
        ]
    );
}

#[test]
fn the_release_of_a_lost_bundle_is_removed_in_the_namespace_that_its_files_named() {
    let mut world = ready();
    let mut offered = addon("web", "1.0.0", 1);
    offered.outcome.as_mut().unwrap().namespace = Some("elsewhere".into());
    let module = world.repositories.bundles.get_mut(&digest(1)).unwrap();
    module.namespace = Some("elsewhere".into());
    world.offers("there", Ok(vec![offered]));
    world.deletes("a");
    world.run_for(5_000);
    world.applies("b", &["there"]);
    world.run_for(5_000);
    assert!(world.deployed.keys().eq(["base", "elsewhere/web"]), "{}", world.trace);
    world.loses(1);
    world.offers("there", unreachable_index());
    restarts(&mut world);
    world.run_for(5_000);
    world.deletes("b");
    let trace = world.run_for(10_000);
    assert!(world.deployed.keys().eq(["base"]), "{trace}");
    assert!(world.repositories.objects.is_empty() && world.repositories.registry.addons.is_empty());
}

/// Returns a world that began without its registry; its repository may be away.
fn without_registry(is_away: bool) -> World {
    let mut world = ready();
    world.loses_registry();
    if is_away {
        world.offers(URL, unreachable_index());
    }
    restarts(&mut world);
    world
}

#[test]
fn a_configuration_that_the_registry_does_not_know_is_taken_up_again() {
    let mut world = without_registry(false);
    let (fetches, revision) = (world.repositories.fetches, world.deployed["web"]);
    let trace = world.run_for(10_000);
    assert_eq!(world.repositories.fetches, fetches + 1, "{trace}");
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
    assert!(trace.contains("run hook web/start.sh") && !trace.contains("uninstall"), "{trace}");
    assert_eq!((world.deployed["web"], world.repositories.registry.addons.len()), (revision, 1));
    // The next start is as any other.
    restarts(&mut world);
    world.run_for(5_000);
    assert_eq!(
        (world.repositories.fetches, world.states("a")),
        (fetches + 1, vec!["web Running".to_owned()])
    );
}

#[test]
fn without_registry_and_repository_the_bundles_of_the_cluster_are_used_and_none_is_dropped() {
    let mut world = without_registry(true);
    let trace = world.run_for(10_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Failed", vec!["web Retained".to_owned()]));
    assert!(trace.contains("run hook web/start.sh") && !trace.contains("uninstall"), "{trace}");
    assert!(world.repositories.in_secrets.contains(&digest(1)), "{trace}");
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.run_for(700_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
    assert!(!world.trace.contains("uninstall web"), "{}", world.trace);
}

#[test]
fn a_configuration_that_the_registry_does_not_know_takes_its_release_along() {
    for is_away in [false, true] {
        let mut world = without_registry(is_away);
        world.run_for(10_000);
        world.deletes("a");
        let trace = world.run_for(10_000);
        assert!(world.deployed.keys().eq(["base"]), "{trace}");
        assert!(world.repositories.objects.is_empty() && world.repositories.registry.addons.is_empty());
        // It was deleted while nobody was there.
        let mut world = ready();
        world.loses_registry();
        world.deletes("a");
        restarts(&mut world);
        let trace = world.run_for(10_000);
        assert!(trace.contains("afterDeleteHelm"), "{trace}");
        assert!(world.deployed.keys().eq(["base"]) && world.repositories.objects.is_empty(), "{trace}");
    }
}

#[test]
fn a_configuration_that_is_deleted_right_behind_the_loss_of_the_registry_has_its_hooks_run() {
    for delay in (0..300).step_by(5) {
        let mut world = without_registry(delay % 2 == 0);
        world.run_for(delay);
        world.deletes("a");
        let trace = world.run_for(20_000);
        let hook = trace.find("afterDeleteHelm").unwrap_or_else(|| panic!("{delay}: {trace}"));
        assert!(trace.find("uninstall web").is_some_and(|removed| removed < hook), "{delay}: {trace}");
        assert!(world.deployed.keys().eq(["base"]), "{delay}: {trace}");
        assert!(world.repositories.objects.is_empty(), "{delay}: {trace}");
        assert!(world.repositories.registry.addons.is_empty(), "{delay}: {trace}");
    }
}

#[test]
fn a_suspended_configuration_that_the_registry_does_not_know_has_its_module() {
    let mut world = ready();
    world.edits("a", |spec| spec["suspend"] = json!(true));
    world.run_for(3_000);
    world.loses_registry();
    let fetches = world.repositories.fetches;
    restarts(&mut world);
    let trace = world.run_for(10_000);
    assert!(trace.contains("run hook web/start.sh") && !trace.contains("uninstall"), "{trace}");
    assert_eq!((world.repositories.fetches, world.states("a")), (fetches, vec!["web Running".to_owned()]));
}

#[test]
fn what_a_namespace_had_is_taken_up_as_well_and_its_bundle_is_fetched() {
    let mut world = ready();
    world.applies("n/x", &[URL]);
    let flags = || config_map(201, &[("webEnabled", "true"), ("nWebEnabled", "true")]);
    world.send_in(0, flags());
    world.run_for(5_000);
    assert_eq!(world.states("n/x"), ["n-web Running"]);
    world.loses_registry();
    world.offers(URL, unreachable_index());
    world.restarts();
    world.send_in(0, flags());
    world.run_for(10_000);
    assert_eq!(
        (world.phase("n/x").as_str(), world.states("n/x")),
        ("Failed", vec!["n-web Error".to_owned()])
    );
    world.deletes("n/x");
    let trace = world.run_for(10_000);
    assert!(world.deployed.keys().eq(["base", "web"]), "{trace}");
}

#[test]
fn nobody_gets_a_bundle_of_the_cluster_by_what_stands_in_the_status_of_a_namespace() {
    let mut world = ready();
    world.applies("n/x", &["other"]);
    let flags =
        || config_map(201, &[("webEnabled", "true"), ("nWebEnabled", "true"), ("nDbEnabled", "true")]);
    world.send_in(0, flags());
    world.run_for(5_000);
    assert_eq!(world.states("n/x"), ["n-db Running"]);
    world.loses_registry();
    world.offers("other", unreachable_index());
    let line = |world: &mut World, name: &str| {
        world.forges("n/x", |status| {
            let line = &mut status["repositories"][0]["addons"][0];
            line["digest"] = json!(digest(1).as_str());
            line["module"]["name"] = json!(name);
        });
    };
    line(&mut world, "n-db");
    world.restarts();
    world.send_in(0, flags());
    let trace = world.run_for(10_000);
    assert_eq!(
        (world.states("a"), world.states("n/x")),
        (vec!["web Running".to_owned()], vec!["n-db Error".to_owned()])
    );
    assert!(trace.contains("load modules [web] ") && !trace.contains("run hook n-db/"), "{trace}");
    // Nor does it have the release of another one.
    world.loses_registry();
    line(&mut world, "web");
    world.restarts();
    world.send_in(0, flags());
    world.deletes("n/x");
    let trace = world.run_for(10_000);
    assert!(world.deployed.contains_key("web") && !trace.contains("uninstall web"), "{trace}");
}

#[test]
fn a_ready_status_that_another_operator_wrote_is_not_believed() {
    let mut world = ready();
    let before = world.repositories.registry.clone();
    world.applies("b", &["other"]);
    world.run_for(3_000);
    // It names no module, and nobody here knows its addon.
    world.forges("b", |status| {
        status["repositories"][0]["addons"][0].as_object_mut().unwrap().remove("module").unwrap();
    });
    world.repositories.registry = before;
    restarts(&mut world);
    let trace = world.run_for(10_000);
    assert_eq!(world.states("b"), ["db Running"], "{trace}");
}

#[test]
fn a_ready_status_that_names_a_module_which_a_later_registry_does_not_know_is_not_believed() {
    let mut world = ready();
    let before = world.repositories.registry.clone();
    world.applies("b", &["other"]);
    world.run_for(3_000);
    assert_eq!(world.states("b"), ["db Running"]);
    // Somebody restored an older one.
    world.repositories.registry = before;
    restarts(&mut world);
    let trace = world.run_for(10_000);
    assert_eq!(
        (world.phase("b").as_str(), world.states("b")),
        ("Ready", vec!["db Running".to_owned()]),
        "{trace}"
    );
    assert!(world.view().modules.iter().any(|module| module.name.as_str() == "db"), "{trace}");
    assert!(!trace.contains("uninstall"), "{trace}");
}
