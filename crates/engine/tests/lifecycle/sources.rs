//! Module sources: from an object to a module that runs, and back.

use std::collections::BTreeSet;

use engine::{AddonReason, Config, Digest, Event, Failure, FailureKind, Notice, RegisteredAddon, StoreError};
use serde_json::json;

use crate::build::{config as config_map, files};
use crate::random::{Random, live, seeds};
use crate::repositories::{addon, broken, config, digest, sourced, sourced_with, unreachable_index, with_id};
use crate::world::World;

const URL: &str = "https://{key}@repo/index.yaml";

/// A world with the addon `web`, which is switched on in the ConfigMap.
fn web() -> World {
    let mut world = sourced(&files().module(10, "base"));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[("start.sh", "onStartup: 1"), ("end.sh", "afterDeleteHelm: 1")]);
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    world.run_for(3_000);
    world
}

fn ready() -> World {
    let mut world = web();
    world.applies("a", &[URL]);
    world.run_for(3_000);
    assert_eq!((world.phase("a").as_str(), world.problems("a")), ("Ready", Vec::new()));
    world
}

/// One life with a module that comes, changes and goes.
pub(crate) fn tour() {
    let mut world = ready();
    world.bundle(2, "web", &[]);
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 2)]));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(3_000);
    world.deletes("a");
    world.run_for(5_000);
    assert!(world.repositories.objects.is_empty() && world.deployed.keys().eq(["base"]));
    let mut world = ready();
    world.loses_registry();
    world.restarts();
    world.run_for(3_000);
    let mut world = late();
    world.send_in(0, Event::SourceKindsServed);
    world.run_for(100);
}

/// A world whose kinds of module sources are not there yet.
fn late() -> World {
    sourced_with(&files(), Config { are_source_kinds_served: false, ..config() })
}

fn has(trace: &str, what: &str) -> bool {
    trace.contains(what)
}

#[test]
fn a01_a02_a03_a22_an_addon_is_registered_and_its_module_runs() {
    let mut world = web();
    world.applies("a", &[URL]);
    let trace = world.run_for(3_000);
    let writes = &world.repositories.writes;
    let expected = [r#"a a finalizers ["addons.kyma-project.io"]"#, "a a status Pending", "a a status Ready"];
    assert_eq!(writes[..3], expected);
    assert_eq!(world.states("a"), ["web Running"]);
    let status = world.status("a");
    assert_eq!((&status["observedGeneration"], &status["repositories"][0]["url"]), (&json!(1), &json!(URL)));
    assert_eq!(status["modules"], "1/1");
    assert!(status["lastProcessedTime"].is_string() && status["conditions"][0]["status"] == "True");
    assert!(has(&trace, "run hook web/start.sh") && world.repositories.marked.contains("web"), "{trace}");
    let told = world.announcements.iter().filter(|told| told.source.is_some());
    assert_eq!(told.map(|told| told.reason).collect::<Vec<_>>(), ["SourceReady"]);
}

/// Returns what was announced about configurations since the last call, and forgets all.
fn told(world: &mut World) -> Vec<String> {
    let all = std::mem::take(&mut world.announcements);
    let about = all.into_iter().filter_map(|told| Some((told.source?, told.warning, told.reason)));
    about.map(|(source, warning, reason)| format!("{} {warning} {reason}", source.uid)).collect()
}

#[test]
fn each_change_of_a_phase_is_announced_once() {
    let mut world = ready();
    assert_eq!(told(&mut world), ["uid-of-a false SourceReady"]);
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(3_000);
    assert_eq!(told(&mut world), Vec::<String>::new(), "it is ready as before");
    world.offers(URL, Ok(vec![broken(addon("web", "1.0.0", 1), AddonReason::LoadingError)]));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(2));
    world.run_for(3_000);
    assert_eq!(told(&mut world), ["uid-of-a true ModulesRetained", "uid-of-a true SourceFailed"]);
    world.run_for(1_500_000);
    world.restarts();
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    world.run_for(1_500_000);
    assert_eq!(told(&mut world), Vec::<String>::new(), "it fails as before");
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.run_for(1_500_000);
    assert_eq!(told(&mut world), ["uid-of-a false SourceReady"]);
    world.deletes("a");
    world.run_for(5_000);
    assert_eq!(told(&mut world), ["uid-of-a false SourceRemoved"]);
    world.applies("a", &[URL]);
    world.run_for(3_000);
    assert_eq!(told(&mut world), ["uid-of-a false SourceReady"], "another object");
}

#[test]
fn a_failure_says_first_what_failed_first() {
    let mut world = web();
    let odd = broken(addon("odd", "1.0.0", 3), AddonReason::LoadingError);
    world.offers("bad", Ok(vec![odd]));
    world.applies("a", &["bad", "gone", URL]);
    world.run_for(3_000);
    let told = world.announcements.iter().find(|told| told.reason == "SourceFailed").unwrap();
    let message = &told.message;
    let starts = "ClusterAddonsConfiguration a is failed: 1 repository and 1 addon failed, nothing is registered; \
                  odd 1.0.0: LoadingError: ";
    assert!(message.starts_with(starts), "{message}");
    assert!(message.ends_with(world.status("a")["conditions"][0]["message"].as_str().unwrap()));
}

#[test]
fn a09_ready_at_equal_generation_means_no_request_and_no_write() {
    let mut world = ready();
    let before = (world.version("a"), world.repositories.fetches);
    world.run_for(1_500_000);
    world.restarts();
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    let trace = world.run_for(1_500_000);
    assert_eq!((world.version("a"), world.repositories.fetches), before, "{trace}");
}

/// Leaves of the status of an object what the original's `CustomResourceDefinition` knows, and ends the operator.
fn restarts_with_pruned_status(world: &mut World, version: &str) {
    let mut object = world.repositories.objects["a"].clone();
    let own = ["phase", "observedGeneration", "lastProcessedTime", "repositories"];
    object["status"].as_object_mut().unwrap().retain(|field, _| own.contains(&field.as_str()));
    for addon in object["status"]["repositories"][0]["addons"].as_array_mut().unwrap() {
        let own = ["name", "version", "status", "reason", "message"];
        addon.as_object_mut().unwrap().retain(|field, _| own.contains(&field.as_str()));
        addon["version"] = json!(version);
    }
    world.stores("a", object);
    world.restarts();
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
}

#[test]
fn a09_a_status_without_digests_is_believed_as_far_as_it_goes() {
    let mut world = ready();
    let fetches = world.repositories.fetches;
    world.offers(URL, unreachable_index());
    restarts_with_pruned_status(&mut world, "1.0.0");
    let trace = world.run_for(60_000);
    assert_eq!((world.phase("a").as_str(), world.repositories.fetches), ("Ready", fetches), "{trace}");
    assert_eq!(world.states("a"), ["web Running"]);
    let doubts = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.contains("processed again"));
    assert_eq!(world.noticed(doubts), 0);
    // Another version than the registered one is seen all the same.
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    restarts_with_pruned_status(&mut world, "1.1.0");
    let trace = world.run_for(60_000);
    assert_eq!((world.noticed(doubts), world.repositories.fetches), (1, fetches + 1), "{trace}");
}

#[test]
fn that_a_module_has_left_is_told() {
    let mut world = ready();
    let left = |notice: &Notice| matches!(notice, Notice::ModuleLeft { module } if module.as_str() == "web");
    world.send_in(0, config_map(201, &[]));
    world.run_for(5_000);
    assert_eq!(world.noticed(left), 0);
    world.deletes("a");
    world.run_for(5_000);
    assert_eq!(world.noticed(left), 1);
}

#[test]
fn an_object_that_somebody_else_changed_meanwhile_is_looked_at_again_at_once() {
    let mut world = ready();
    let conflict =
        || Err(Failure::new(FailureKind::Conflict, "the test of /metadata/resourceVersion does not hold"));
    world.deletes("a");
    for _ in 0..3 {
        world.patching.push_back(conflict());
    }
    let trace = world.run_for(3_000);
    assert!(world.repositories.objects.is_empty(), "{trace}");
    let failed = |notice: &Notice| matches!(notice, Notice::TaskFinished { failure: Some(_), .. });
    assert_eq!(world.noticed(failed), 0);
}

#[test]
fn a23_a_restart_with_the_repository_down_leaves_the_module_as_it_is() {
    let mut world = ready();
    world.offers(URL, unreachable_index());
    world.restarts();
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    let trace = world.run_for(60_000);
    assert!(has(&trace, "Unchanged") && !has(&trace, "uninstall"), "{trace}");
    // Not even its bundle is there.
    world.repositories.bundles.clear();
    world.restarts();
    let trace = world.run_for(60_000);
    assert!(!has(&trace, "uninstall"), "{trace}");
    let told = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.contains("module purge"));
    assert_eq!(world.noticed(told), 1);
}

#[test]
fn a04_one_pass_shows_all_problems_and_registers_nothing() {
    let mut world = web();
    let missing = broken(addon("missing", "1.0.0", 2), AddonReason::FetchingError);
    let odd = broken(addon("odd", "1.0.0", 3), AddonReason::LoadingError);
    world.offers("bad", Ok(vec![missing, odd, with_id(addon("twin", "2.0.0", 4), "id-web")]));
    world.applies("a", &[URL, "gone", "bad"]);
    let trace = world.run_for(3_000);
    let problems = world.problems("a");
    let reasons: Vec<&str> = problems.iter().map(|problem| problem.split(':').next().unwrap()).collect();
    let conflict = "ConflictInSpecifiedRepositories";
    assert_eq!(reasons, [conflict, "FetchingIndexError", "FetchingError", "LoadingError", conflict]);
    assert_eq!((world.phase("a").as_str(), world.repositories.fetches), ("Failed", 1));
    assert!(world.repositories.registry.addons.is_empty() && !has(&trace, "load modules"), "{trace}");
}

#[test]
fn a05_both_of_two_with_one_id_name_the_other_each_time() {
    let told = || {
        let mut world = web();
        world.offers("two", Ok(vec![with_id(addon("twin", "2.0.0", 4), "id-web")]));
        world.applies("a", &[URL, "two"]);
        world.run_for(3_000);
        world.problems("a")
    };
    let first = told();
    assert!(
        first[0].contains("twin:2.0.0 in two") && first[1].contains(&format!("web:1.0.0 in {URL}")),
        "{first:?}"
    );
    assert_eq!(first, told());
}

#[test]
fn a06_an_id_that_another_has_registered_is_a_conflict_and_the_other_is_left_alone() {
    let mut world = ready();
    let before = world.version("a");
    world.offers("two", Ok(vec![with_id(addon("twin", "2.0.0", 4), "id-web")]));
    world.applies("b", &["two"]);
    world.run_for(3_000);
    assert_eq!(
        world.problems("b"),
        [format!(
            "ConflictWithAlreadyRegisteredAddon: its id is registered by ClusterAddonsConfiguration a: web:1.0.0 in {URL}"
        )]
    );
    assert_eq!(world.version("a"), before);
}

#[test]
fn a08_what_a_failed_one_lists_is_no_conflict() {
    let mut world = web();
    world.applies("a", &[URL, "gone"]);
    world.run_for(3_000);
    world.applies("b", &[URL]);
    world.run_for(3_000);
    assert_eq!((world.phase("a").as_str(), world.phase("b").as_str()), ("Failed", "Ready"));
}

#[test]
fn a10_a24_another_bundle_is_reloaded_with_its_startup_and_nothing_is_uninstalled() {
    let mut world = ready();
    world.bundle(2, "web", &[("start.sh", "onStartup: 1"), ("new.sh", "beforeHelm: 1")]);
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 2)]));
    assert!(world.run_for(1_000_000).is_empty());
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    let trace = world.run_for(3_000);
    assert!(has(&trace, "run hook web/start.sh") && has(&trace, "run hook web/new.sh"), "{trace}");
    assert!(!has(&trace, "uninstall") && !has(&trace, "upgrade base"), "{trace}");
    let reload = |notice: &Notice| matches!(notice, Notice::TaskQueued { task } if task.kind.as_str() == "ModuleReload");
    assert_eq!(world.noticed(reload), 1);
    let status = world.status("a");
    assert_eq!(status["repositories"][0]["addons"][0]["digest"], json!(digest(2)));
    assert!(has(&trace, "drop bundles but 1") && status["observedGeneration"] == 2, "{trace}");
}

#[test]
fn a11_an_update_removes_what_is_offered_no_more_and_leaves_the_rest_alone() {
    let mut world = ready();
    world.bundle(5, "db", &[("end.sh", "afterDeleteHelm: 1")]);
    world.offers("both", Ok(vec![addon("db", "1.0.0", 5), addon("web", "1.0.0", 1)]));
    world.applies("a", &["both"]);
    world.send_in(0, config_map(201, &[("webEnabled", "true"), ("dbEnabled", "true")]));
    world.run_for(5_000);
    assert_eq!(world.states("a"), ["db Running", "web Running"]);
    let revision = world.deployed["web"];
    world.applies("a", &[URL]);
    let trace = world.run_for(5_000);
    assert!(has(&trace, "uninstall db") && has(&trace, "run hook db/end.sh"), "{trace}");
    assert!(!has(&trace, "web/end.sh") && world.deployed["web"] == revision, "{trace}");
    let names: Vec<_> = world.view().modules.iter().map(|module| module.name.to_string()).collect();
    assert_eq!(names, ["base", "web"]);
    assert_eq!(world.phase("a"), "Ready");
}

#[test]
fn a12_a_failed_one_is_looked_at_again_after_a_while() {
    let mut world = web();
    world.offers(URL, Ok(vec![broken(addon("web", "1.0.0", 1), AddonReason::LoadingError)]));
    world.applies("a", &[URL]);
    world.run_for(3_000);
    let version = world.version("a");
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.run_for(590_000);
    assert_eq!((world.phase("a").as_str(), world.version("a")), ("Failed", version));
    world.run_for(605_000);
    assert_eq!(world.phase("a"), "Ready");
}

#[test]
fn a13_what_could_not_be_fetched_is_fetched_ever_more_seldom_without_a_write() {
    let mut world = web();
    world.offers(URL, unreachable_index());
    world.applies("a", &[URL]);
    world.run_for(3_000);
    let version = world.version("a");
    // After 5, 10, 20, 40 and 60 minutes.
    world.run_for(8_150_000);
    assert_eq!((world.repositories.fetches, world.version("a")), (6, version));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.run_for(3_700_000);
    assert_eq!(world.phase("a"), "Ready");
}

/// Returns what the log says of configurations that let addons go.
fn releases(world: &World) -> Vec<String> {
    let message = |notice: &Notice| {
        let Notice::SourceReleases { message } = notice else { return None };
        Some(message.clone())
    };
    world.notices.iter().filter_map(message).collect()
}

#[test]
fn a14_a18_a_deletion_removes_then_bumps_those_that_failed_then_goes() {
    let mut world = ready();
    world.applies("b", &[URL]);
    world.applies("d", &["gone"]);
    world.offers("other", Ok(vec![addon("other", "1.0.0", 9)]));
    world.bundle(9, "other", &[]);
    world.applies("e", &["other"]);
    world.run_for(5_000);
    assert_eq!(["b", "d", "e"].map(|name| world.phase(name)), ["Failed", "Failed", "Ready"]);
    world.repositories.writes.clear();
    world.deletes("a");
    let trace = world.run_for(10_000);
    let at = |what: &str| trace.find(what).unwrap_or_else(|| panic!("no {what} in {trace}"));
    assert!(at("uninstall web") < at("run hook web/end.sh"));
    // The first one says in its status what it waits for.
    let mut patches = trace.match_indices("patch 1 objects for ClusterAddonsConfiguration a");
    assert!(patches.next().unwrap().0 < at("uninstall web"));
    assert!(at("run hook web/end.sh") < patches.next().unwrap().0);
    let writes = world.repositories.writes.clone();
    let expected =
        ["a a status Pending", "a b reprocessRequest 1", "a d reprocessRequest 1", "a a finalizers []"];
    assert_eq!(writes[..4], expected);
    // The log tells of the same order.
    let removed = "ClusterAddonsConfiguration a is being deleted: what it brought is removed";
    let raised = |name: &str| {
        format!(
            "ClusterAddonsConfiguration {name} may try again, since ClusterAddonsConfiguration a lets addons go: its spec.reprocessRequest is raised"
        )
    };
    let gone = "ClusterAddonsConfiguration a is deleted: its finalizer is removed";
    assert_eq!(releases(&world), [removed, &raised("b"), &raised("d"), gone]);
    assert!(!world.repositories.objects.contains_key("a"));
    assert_eq!((world.phase("b").as_str(), world.states("b")), ("Ready", vec!["web Running".to_owned()]));
}

#[test]
fn a16_who_failed_and_holds_nothing_goes_without_a_trace() {
    let mut world = ready();
    world.applies("b", &[URL]);
    world.run_for(3_000);
    world.applies("d", &["gone"]);
    world.run_for(3_000);
    world.repositories.writes.clear();
    world.deletes("d");
    let trace = world.run_for(3_000);
    assert_eq!(world.repositories.writes, ["d d finalizers []"]);
    assert!(!has(&trace, "uninstall") && !has(&trace, "keep"), "{trace}");
}

#[test]
fn a17_what_was_deleted_while_the_operator_was_down_is_removed() {
    let mut world = ready();
    world.restarts();
    world.deletes("a");
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    let trace = world.run_for(60_000);
    assert!(has(&trace, "uninstall web") && !world.deployed.contains_key("web"), "{trace}");
    assert!(
        world.repositories.objects.is_empty() && world.repositories.registry.addons.is_empty(),
        "{trace}"
    );
}

#[test]
fn a27_one_that_hangs_delays_no_other() {
    let mut world = web();
    for n in 0..10 {
        let name = format!("slow-{n}");
        world.repositories.takes.insert(name.clone(), 50_000);
        world.applies(&name, &["gone"]);
    }
    world.run_for(100);
    world.applies("a", &[URL]);
    world.run_for(3_000);
    assert_eq!((world.phase("a").as_str(), world.phase("slow-0").as_str()), ("Ready", "Pending"));
    assert_eq!(world.queue("addons").len(), 10);
    assert!(world.queue("main").is_empty());
}

#[test]
fn a28_a_built_in_module_is_never_replaced() {
    let mut world = web();
    world.offers("own", Ok(vec![addon("base", "1.0.0", 7)]));
    world.applies("a", &["own"]);
    world.run_for(3_000);
    assert_eq!(
        world.problems("a"),
        [
            "ConflictWithAlreadyRegisteredAddon: its module is the built-in module /modules/010-base; give the addon another name"
        ]
    );
}

#[test]
fn a18_hooks_of_a_removal_run_also_after_a_restart() {
    // The object is deleted while nobody looks.
    let mut world = ready();
    world.deletes("a");
    world.restarts_unread();
    let trace = world.run_for(8_000);
    let place = |what: &str| trace.find(what).unwrap_or_else(|| panic!("no {what}: {trace}"));
    assert!(place("uninstall web") < place("run hook web/end.sh"), "{trace}");
    assert!(world.repositories.objects.is_empty(), "{trace}");
    // The release was removed, its last hook was not run.
    let mut world = ready().fails("web/end.sh", 1);
    world.deletes("a");
    let trace = world.run_for(3_000);
    assert!(has(&trace, "run hook web/end.sh") && !world.deployed.contains_key("web"), "{trace}");
    assert!(world.repositories.objects.contains_key("a"));
    world.restarts_unread();
    let trace = world.run_for(8_000);
    assert!(has(&trace, "run hook web/end.sh") && world.repositories.objects.is_empty(), "{trace}");
}

#[test]
fn a_removal_goes_on_without_hooks_that_can_not_be_read() {
    let mut world = ready();
    world.deletes("a");
    world.restarts_unread();
    world.loads.clear();
    let trace = world.run_for(8_000);
    assert!(has(&trace, "uninstall web") && world.repositories.objects.is_empty(), "{trace}");
    assert!(
        world.noticed(
            |notice| matches!(notice, Notice::Warned { message, .. } if message.contains("without its hooks"))
        ) > 0
    );
}

#[test]
fn a_built_in_module_that_took_the_name_stays_when_the_source_goes() {
    let mut world = ready();
    world.repositories.files = files().module(10, "base").module(20, "web");
    world.repositories.bundles.clear();
    world.restarts();
    world.run_for(3_000);
    assert!(world.deployed.contains_key("web"));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(3_000);
    world.deletes("a");
    let trace = world.run_for(8_000);
    assert!(world.repositories.objects.is_empty() && world.deployed.contains_key("web"), "{trace}");
    assert!(!has(&trace, "uninstall web"), "{trace}");
}

#[test]
fn a31_a_bad_edit_frees_the_ids_and_the_module_goes_on() {
    let mut world = ready();
    world.offers("bad", Ok(vec![broken(addon("web", "1.0.0", 1), AddonReason::LoadingError)]));
    world.applies("a", &["bad"]);
    let trace = world.run_for(3_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Failed", vec!["web Retained".to_owned()]));
    assert!(!has(&trace, "uninstall") && !has(&trace, "upgrade"), "{trace}");
    // Another one takes it over where it is.
    world.applies("b", &[URL]);
    let trace = world.run_for(3_000);
    assert_eq!((world.phase("b").as_str(), world.states("b")), ("Ready", vec!["web Running".to_owned()]));
    assert!(!has(&trace, "uninstall") && !has(&trace, "upgrade web"), "{trace}");
}

#[test]
fn a31_with_the_policy_remove_it_is_uninstalled_unless_it_could_not_be_fetched() {
    let mut world = ready();
    world.edits("a", |spec| {
        spec["failurePolicy"] = json!("Remove");
        spec["repositories"] = json!([{"url": "gone"}]);
    });
    assert!(!has(&world.run_for(5_000), "uninstall"));
    world.offers("bad", Ok(vec![broken(addon("web", "1.0.0", 1), AddonReason::LoadingError)]));
    world.edits("a", |spec| spec["repositories"] = json!([{"url": "bad"}]));
    let trace = world.run_for(5_000);
    assert!(has(&trace, "uninstall web") && world.repositories.registry.addons.is_empty(), "{trace}");
}

#[test]
fn a_failed_one_that_holds_modules_removes_them_and_bumps_nobody() {
    let mut world = ready();
    world.applies("a", &["gone"]);
    world.applies("d", &["gone"]);
    world.run_for(3_000);
    world.repositories.writes.clear();
    world.deletes("a");
    let trace = world.run_for(5_000);
    assert!(has(&trace, "uninstall web"), "{trace}");
    assert_eq!(world.repositories.writes, ["a a status Failed", "a a finalizers []"]);
}

#[test]
fn a_deletion_may_leave_the_modules() {
    let mut world = ready();
    world.edits("a", |spec| spec["deletionPolicy"] = json!("Retain"));
    world.run_for(3_000);
    world.deletes("a");
    let trace = world.run_for(5_000);
    assert!(!has(&trace, "uninstall") && world.repositories.objects.is_empty(), "{trace}");
    // Switched off by a person, it goes.
    world.send_in(0, config_map(300, &[]));
    let trace = world.run_for(5_000);
    assert!(has(&trace, "uninstall web") && world.repositories.registry.addons.is_empty(), "{trace}");
}

#[test]
fn a33_without_the_kind_nothing_happens_and_one_line_says_so() {
    let [cluster, namespaced] = [crate::repositories::KIND, crate::repositories::NAMESPACED];
    let mut world = sourced(&files()).without_kind(cluster).without_kind(namespaced);
    let trace = world.run_for(60_000);
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::SourcesAbsent { .. })), 1);
    assert_eq!(trace.matches("start monitor").count(), 2, "{trace}");
}

#[test]
fn kinds_that_come_later_are_looked_after_without_a_restart() {
    let mut world = late();
    let trace = world.run_for(60_000);
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::SourcesAbsent { .. })), 1);
    assert!(has(&trace, "await kinds of sources") && !has(&trace, "start monitor"), "{trace}");
    world.bundle(1, "web", &[]);
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.applies("a", &[URL]);
    world.send_in(0, Event::SourceKindsServed);
    // Told twice, they are watched once.
    world.send_in(10, Event::SourceKindsServed);
    let trace = world.run_for(6_000);
    assert_eq!(trace.matches("start monitor").count(), 2, "one for each kind: {trace}");
    assert!(has(&trace, "keep 1 bundles"), "{trace}");
}

#[test]
fn a34_a_better_bundle_comes_in_front_of_the_module_that_fails() {
    let mut world = web();
    world = world.fails("web/start.sh", 3);
    world.applies("a", &[URL]);
    world.run_for(6_000);
    assert!(world.queue("main")[0].starts_with("Module"), "{:?}", world.queue("main"));
    world.bundle(2, "web", &[]);
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 2)]));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    let trace = world.run_for(1_500);
    assert!(has(&trace, "Installed") && world.states("a") == ["web Running"], "{trace}");
}

#[test]
fn two_that_swap_an_addon_uninstall_nothing() {
    let mut world = ready();
    world.bundle(5, "db", &[]);
    world.offers("db", Ok(vec![addon("db", "1.0.0", 5)]));
    world.applies("b", &["db"]);
    world.send_in(0, config_map(201, &[("webEnabled", "true"), ("dbEnabled", "true")]));
    world.run_for(5_000);
    world.applies("a", &["db"]);
    world.applies("b", &[URL]);
    let trace = world.run_for(20_000);
    assert!(!has(&trace, "uninstall"), "{trace}");
    assert_eq!(
        (world.states("a"), world.states("b")),
        (vec!["db Running".to_owned()], vec!["web Running".to_owned()])
    );
}

#[test]
fn a_status_that_another_one_writes_is_written_over_once_and_then_left_alone() {
    let mut world = ready();
    world.meddles("a");
    world.run_for(1_000);
    assert_eq!(world.phase("a"), "Ready");
    world.meddles("a");
    world.run_for(1_000);
    assert_eq!(world.phase("a"), "Odd");
    let told = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.contains("somebody else"));
    assert_eq!((world.noticed(told), world.repositories.fetches), (1, 1));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(3_000);
    assert_eq!(world.phase("a"), "Ready");
}

#[test]
fn what_could_not_be_kept_is_not_registered() {
    let mut world = web();
    let full = Failure::new(FailureKind::Forbidden, "create of secrets is forbidden");
    world.repositories.keeping.push_back(StoreError::Bundles(vec![(digest(1), full)]));
    world.applies("a", &[URL]);
    let trace = world.run_for(3_000);
    assert_eq!(world.problems("a"), ["RegisteringError: create of secrets is forbidden"]);
    assert!(!has(&trace, "load modules"), "{trace}");
}

#[test]
fn a_failure_of_the_api_server_is_tried_again_and_blocks_nothing() {
    let mut world = web();
    world.repositories.keeping.push_back(StoreError::Registry(Failure::new(FailureKind::Cluster, "500")));
    world.repositories.loading.push_back(Failure::new(FailureKind::Files, "the disk is full"));
    world = world.patching(Err("500"));
    world.applies("a", &[URL]);
    world.run_for(4_000);
    assert!(world.queue("main").is_empty());
    world.run_for(30_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
}

#[test]
fn the_end_of_the_operator_waits_for_writes_and_cancels_what_is_fetched() {
    let mut world = web();
    world.repositories.takes.insert("a".to_owned(), 50_000);
    world.applies("a", &[URL]);
    world.run_for(1_000);
    let trace = world.after(0, Event::ShutdownRequested);
    assert!(has(&trace, "cancel #") && has(&trace, "exit"), "{trace}");
    assert!(world.now.since_start().as_secs() < 10);
}

#[test]
fn a_bundle_switches_itself_on_only_where_it_may() {
    for (may, phase) in [(false, "disabled"), (true, "running")] {
        let mut world = sourced(&files());
        world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
        world.bundle(1, "web", &[]);
        let module = world.repositories.bundles.get_mut(&digest(1)).unwrap();
        let flag = engine::EnabledFlag { value: true, source: "values.yaml".into() };
        module.origin = engine::Origin::Bundle { digest: digest(1), enabled: Some(flag) };
        world.edits("a", |spec| *spec = json!({"repositories": [{"url": URL}], "autoEnable": may}));
        world.run_for(5_000);
        assert_eq!(world.view().modules[0].phase, phase);
    }
}

#[test]
fn a_deletion_does_not_wait_for_a_module_that_another_one_took_over() {
    let mut world = ready();
    world.repositories.takes.insert("b".to_owned(), 30);
    world.applies("b", &[URL]);
    world.run_for(25);
    world.deletes("a");
    let trace = world.run_for(20_000);
    assert!(!world.repositories.objects.contains_key("a"), "{trace}");
    assert_eq!((world.phase("b").as_str(), world.states("b")), ("Ready", vec!["web Running".to_owned()]));
}

/// Random edits, deletions, restarts and faults, also edits and deletions while nobody looks. No id is owned twice in a scope, no
/// release is lost, nothing is removed because something could not be fetched, and no module is forgotten before its last hook has
/// come to its end.
#[test]
fn whatever_happens_every_module_is_as_its_configurations_say() {
    live(seeds(200), life);
}

fn life(seed: u64) {
    let mut random = Random(seed);
    let addons = ["web", "db", "log"];
    let mut world = sourced(&files().module(10, "base").hook("start.sh", "onStartup: 1"));
    for (n, name) in (1..).zip(addons) {
        world.bundle(n, name, &[("end.sh", "afterDeleteHelm: 1")]);
        world.offers(name, Ok(vec![addon(name, "1.0.0", n)]));
    }
    world.send_in(0, config_map(200, &FLAGS));
    world.run_for(1_000);
    let (mut released, mut lost) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..random.below(20) {
        let name = ["a", "b", "c"][usize::try_from(random.below(3)).unwrap()];
        let url = addons[usize::try_from(random.below(3)).unwrap()];
        act(&mut world, &mut random, (name, url), &mut lost);
        let trace = world.run_for([0, 15, 60, 2_000][usize::try_from(random.below(4)).unwrap()]);
        released.extend(world.deployed.keys().cloned());
        released.retain(|name| !has(&trace, &format!("uninstall {name} ")));
    }
    world.patching.clear();
    world.repositories.keeping.clear();
    world.repositories.loading.clear();
    // Long enough for every one that failed to be looked at again.
    world.run_until(2_000_000);
    assert!(world.repositories.faults.is_empty(), "seed {seed}: {:?}", world.repositories.faults);
    let (objects, registry) = (&world.repositories.objects, &world.repositories.registry);
    assert!(world.queue("main").is_empty(), "seed {seed}");
    let expected = expected_releases(&world, &lost, &released);
    let owed = world.repositories.owed.iter().filter(|name| !world.deployed.contains_key(*name));
    assert_eq!(owed.collect::<Vec<_>>(), Vec::<&String>::new(), "seed {seed}: {objects:?}");
    assert_eq!(world.deployed.keys().cloned().collect::<Vec<_>>(), expected, "seed {seed}: {objects:?}");
    for url in addons {
        let owners = || objects.values().filter(|object| object["spec"]["repositories"][0]["url"] == url);
        let ready = owners().filter(|object| object["status"]["phase"] == "Ready").count();
        assert_eq!(ready, usize::from(owners().next().is_some()), "seed {seed}: {url} {objects:?}");
    }
    // What is there although nobody is ready with it belongs to one that failed.
    for addon in registry.addons.iter().filter(|addon| !addon.is_registered()) {
        let phase = &objects[&*addon.source.name]["status"]["phase"];
        assert!(addon.is_retained && phase == "Failed", "seed {seed}: {addon:?} {objects:?}");
    }
}

const FLAGS: [(&str, &str); 3] = [("webEnabled", "true"), ("dbEnabled", "true"), ("logEnabled", "true")];

/// Does something to a configuration, or about the addon of a URL.
fn act(world: &mut World, random: &mut Random, (name, url): (&str, &str), lost: &mut BTreeSet<Digest>) {
    let is_there = world
        .repositories
        .objects
        .get(name)
        .is_some_and(|its| its["metadata"]["deletionTimestamp"].is_null());
    match random.below(14) {
        0 if is_there => world.deletes(name),
        10 if is_there => {
            world.deletes(name);
            world.restarts_flagged(&FLAGS);
        }
        11 if is_there => {
            world.applies(name, &[url]);
            world.restarts_flagged(&FLAGS);
        }
        12 => {
            let times = usize::try_from(random.below(3) + 1).unwrap();
            world.break_hook(&format!("{url}/end.sh"), times);
        }
        13 => world.break_hook("base/start.sh", 2),
        1 => {
            world.restarts();
            world.send_in(1, config_map(200, &FLAGS));
        }
        8 => {
            let number = random.below(3) + 1;
            world.loses(number);
            lost.insert(digest(number));
            world.restarts();
            world.send_in(1, config_map(200, &FLAGS));
        }
        2 => world.patching.push_back(Err(Failure::new(FailureKind::Cluster, "500"))),
        3 => {
            let failure = Failure::new(FailureKind::Cluster, "500");
            world.repositories.keeping.push_back(StoreError::Registry(failure));
        }
        4 => world.repositories.loading.push_back(Failure::new(FailureKind::Files, "full")),
        _ if is_there || !world.repositories.objects.contains_key(name) => world.applies(name, &[url]),
        _ => {}
    }
}

/// Returns the releases that there must be: those of all modules that are linked.
///
/// The module of a bundle that was `lost` before it ran has none, and what nobody lists any more is not fetched again. What was
/// `released` once is not lost with its bundle.
fn expected_releases(world: &World, lost: &BTreeSet<Digest>, released: &BTreeSet<String>) -> Vec<String> {
    let has_release = |addon: &&RegisteredAddon| {
        let name = addon.bundle.name.as_str();
        let may_have_none = !addon.is_registered() && lost.contains(&addon.bundle.digest);
        !may_have_none || released.contains(name) || world.deployed.contains_key(name)
    };
    let active = world.repositories.registry.addons.iter().filter(|addon| addon.is_active);
    let linked = active.filter(has_release).map(|addon| addon.bundle.name.to_string());
    let mut expected: Vec<String> = linked.chain(["base".to_owned()]).collect();
    expected.sort();
    expected
}
