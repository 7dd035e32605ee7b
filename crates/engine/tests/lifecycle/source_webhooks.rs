//! Webhooks of modules of sources: they stay while a bundle is replaced, and over a restart.

use std::sync::Arc;

use engine::snapshot::{Item, Key};
use engine::view::why;
use engine::{Config, Event, HookOutput, Notice, RefusalReason};
use serde_json::json;

use crate::build::{Files, config as config_map, files};
use crate::repositories::{addon, digest, sourced_with};
use crate::webhooks::{
    CONVERTS, GOOD, PATH, VALIDATES, conversion, converted, held_lease, review, says, standing_by, tab,
    webhooks,
};
use crate::world::World;

const URL: &str = "https://repo/index.yaml";

fn config() -> Config {
    Config { source_workers: 4, ..webhooks() }
}

/// Returns the configuration of a hook with two webhooks.
fn validates_more() -> String {
    VALIDATES.replace("[{name", "[{name: more.web.example.com}, {name")
}

/// A world in which version 1 of the addon `web` runs, whose hooks answer the API server.
fn ready(files: &Files) -> World {
    let crd = Item::filtered(None, b"{\"said\":{\"strategy\":\"None\"}}"[..].into());
    let mut world = sourced_with(files, config()).holds(
        "CustomResourceDefinition",
        Key::new("", "tabs.example.com"),
        crd,
    );
    world.asks_hooks();
    world.bundle(1, "web", &[("check.sh", VALIDATES), ("up.sh", CONVERTS)]);
    world.bundle(2, "web", &[("check2.sh", &validates_more()), ("up2.sh", CONVERTS)]);
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    switched_on(&mut world);
    world.run_for(3_000);
    world.applies("a", &[URL]);
    world.run_for(5_000);
    assert!(world.policies().iter().all(|policy| policy == "Fail"), "{:?}", world.registrations);
    assert!(world.known().contains(&GOOD.to_owned()));
    assert_eq!(converts(&world), [true]);
    world
}

fn switched_on(world: &mut World) {
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
}

/// Begins to replace version 1 by version 2, whose hooks take a while to say what they want.
fn replaces(world: &mut World) {
    world.take("config web", 20_000);
    world.offers(URL, Ok(vec![addon("web", "2.0.0", 2)]));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
}

/// Returns of each change of the conversion whether it leads to hooks.
fn converts(world: &World) -> Vec<bool> {
    let told = world.registrations.iter().flat_map(|told| told.conversions.values());
    told.map(Option::is_some).collect()
}

/// Asks for a review and a conversion. Returns the trace.
fn asks(world: &mut World, id: u64) -> String {
    world.send_in(1, review(id, PATH));
    world.send_in(2, conversion(id + 1, "example.com/v1", &[tab("a", "v1beta1")]));
    world.run_for(1_000)
}

fn converts_once() -> HookOutput {
    converted(&[tab("a", "v1")])
}

#[test]
fn a_bundle_is_replaced_and_the_hooks_before_answer_until_the_new_ones_have_said_what_they_want() {
    let mut world = ready(&files())
        .hook("web/check.sh", Ok(says(false)))
        .hook("web/up.sh", Ok(converts_once()))
        .hook("web/check2.sh", Ok(says(true)))
        .hook("web/up2.sh", Ok(converts_once()));
    let before = world.registrations.len();
    replaces(&mut world);
    let trace = world.run_for(10_000);
    assert!(trace.contains("load module web") && !trace.contains("> loaded #"), "{trace}");
    let trace = asks(&mut world, 1);
    assert_eq!(world.answer(1).unwrap()["allowed"], json!(false), "{trace}");
    assert_eq!(world.answer(2).unwrap()["convertedObjects"], json!([tab("a", "v1")]), "{trace}");
    assert!(trace.contains("run hook web/check.sh") && trace.contains("run hook web/up.sh"), "{trace}");
    assert_eq!(world.registrations.len(), before, "{:?}", world.registrations.last());
    assert!(world.repositories.stored.contains(&digest(1)), "its hooks run from there");
    world.run_for(30_000);
    assert_eq!(world.registrations.len(), before + 1, "from the old ones to the new ones in one write");
    assert_eq!(
        (world.known(), converts(&world)),
        (vec!["more.web.example.com".to_owned(), GOOD.to_owned()], vec![true])
    );
    let trace = asks(&mut world, 3);
    assert_eq!(world.answer(3).unwrap()["allowed"], json!(true), "{trace}");
    assert!(trace.contains("run hook web/check2.sh") && trace.contains("run hook web/up2.sh"), "{trace}");
    world.run_for(10_000);
    assert!(!world.repositories.stored.contains(&digest(1)), "nobody needs it any more");
}

#[test]
fn a_version_whose_hooks_do_not_say_what_they_want_leaves_those_before_in_force_and_makes_way() {
    let mut world =
        ready(&files()).hook("web/check.sh", Ok(says(false))).hook("web/up.sh", Ok(converts_once()));
    let before = world.registrations.len();
    world.broken_configurations.insert("web".to_owned());
    replaces(&mut world);
    world.take("config web", 100);
    world.run_for(3_000);
    let trace = asks(&mut world, 1);
    assert_eq!(world.answer(1).unwrap()["allowed"], json!(false), "{trace}");
    assert_eq!(world.answer(2).unwrap()["convertedObjects"], json!([tab("a", "v1")]), "{trace}");
    world.run_for(120_000);
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::ModuleRolledBack { .. })), 1);
    assert_eq!(world.registrations.len(), before, "{:?}", world.registrations.last());
    assert_eq!(world.states("a"), ["web Running", "web RolledBack"]);
    assert!(world.repositories.stored.contains(&digest(1)));
}

#[test]
fn a_hook_of_a_new_bundle_is_shown_all_objects_once_more() {
    let mut world = ready(&files());
    let watches = "kubernetes: [{name: pods, kind: Pod}]";
    world.bundle(3, "web", &[("check.sh", &format!("{{{watches}, {VALIDATES}}}"))]);
    world.bundle(4, "web", &[("check.sh", &format!("{{{watches}, {VALIDATES}}}"))]);
    for (number, synchronizes) in [(3, 1), (4, 1)] {
        world.offers(URL, Ok(vec![addon("web", &format!("{number}.0.0"), number)]));
        world.edits("a", |spec| spec["reprocessRequest"] = json!(number));
        let trace = world.run_for(10_000);
        let runs = trace.matches("run hook web/check.sh").count();
        assert_eq!(runs, synchronizes, "{trace}");
        assert!(number == 3 || !trace.contains("stop monitor"), "reviews that read snapshots go on: {trace}");
    }
}

/// The same world after a restart: a module before `web` takes its time.
fn restarted(files: &Files) -> World {
    let mut world = ready(files).takes("slow/wait.sh", 600_000).takes("config web", 2_000);
    world.is_killed(config());
    world.registrations.clear();
    switched_on(&mut world);
    world.send_in(1, Event::Started);
    world
}

#[test]
fn webhooks_of_sources_stay_over_a_restart_and_answer_before_their_module_has_run() {
    let slow = files().module(5, "slow").hook("wait.sh", "onStartup: 1");
    let local = slow.clone().hook("local.sh", &VALIDATES.replace("pods.web", "pods.slow"));
    for files in [slow, local] {
        let mut world =
            restarted(&files).hook("web/check.sh", Ok(says(false))).hook("web/up.sh", Ok(converts_once()));
        world.run_for(1_500);
        // Nobody knows yet what the hooks want.
        let policies = world.policies();
        assert!(world.known().contains(&GOOD.to_owned()), "{:?}", world.registrations);
        assert!(policies.iter().all(|policy| policy == "Ignore"), "{policies:?}");
        world.run_for(10_000);
        let trace = asks(&mut world, 1);
        assert_eq!(world.answer(1).unwrap()["allowed"], json!(false), "{trace}");
        assert_eq!(world.answer(2).unwrap()["convertedObjects"], json!([tab("a", "v1")]), "{trace}");
        assert!(world.known().contains(&GOOD.to_owned()) && !world.view().converge.first_done);
        let given_back = |told: &Arc<engine::WebhookRegistration>| {
            let swept = told.sweep.as_ref().is_some_and(|spared| !spared.contains("tabs.example.com"));
            swept || told.conversions.values().any(Option::is_none)
        };
        assert!(!world.registrations.iter().any(given_back), "{:?}", world.registrations);
        let trace = world.run_for(700_000);
        assert!(!trace.contains("load module web"), "they were asked once: {trace}");
        assert!(world.policies().iter().all(|policy| policy == "Fail"), "{:?}", world.registrations);
        assert!(world.known().contains(&GOOD.to_owned()) && !converts(&world).contains(&false));
    }
}

#[test]
fn hooks_of_a_module_that_is_off_are_asked_nothing_and_what_they_had_registered_goes() {
    let mut world = restarted(&files().module(5, "slow").hook("wait.sh", "onStartup: 1"));
    world.send_in(0, config_map(201, &[("webEnabled", "false")]));
    let trace = world.run_for(20_000);
    assert!(!trace.contains("load module web"), "{trace}");
    assert_eq!(world.known(), Vec::<String>::new());
    world.send_in(1, review(1, PATH));
    world.run_for(1_000);
    assert_eq!(world.answer(1), Err(RefusalReason::Unknown));
}

#[test]
fn hooks_that_do_not_say_what_they_want_are_asked_again_and_keep_what_is_registered() {
    let mut world = restarted(&files().module(5, "slow").hook("wait.sh", "onStartup: 1"))
        .hook("web/check.sh", Ok(says(false)))
        .hook("web/up.sh", Ok(converts_once()));
    world.broken_configurations.insert("web".to_owned());
    world.run_for(60_000);
    assert_eq!((world.known(), world.policies()), (vec![GOOD.to_owned()], vec!["Ignore".to_owned()]));
    let told = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.contains("they are asked again"));
    assert_eq!(world.noticed(told), 1);
    let tells = |world: &World| {
        let status = world.told(engine::view::status::text);
        let why = world.told(|view, format| why::module(view, "web", format).unwrap().text());
        let source = world.told(|view, format| why::source(view, "a", format).unwrap().text());
        let texts = [
            "has hooks that can't be asked",
            "can't be asked what they want",
            "web: its hooks can't be asked",
        ];
        [status, why, source].iter().zip(texts).map(|(told, text)| told.contains(text)).collect::<Vec<_>>()
    };
    assert_eq!(tells(&world), [true; 3], "{}", world.told(engine::view::status::text));
    world.broken_configurations.clear();
    world.run_for(60_000);
    assert_eq!(tells(&world), [false; 3]);
    let trace = asks(&mut world, 1);
    assert_eq!(world.answer(1).unwrap()["allowed"], json!(false), "{trace}");
    assert_eq!(world.answer(2).unwrap()["convertedObjects"], json!([tab("a", "v1")]), "{trace}");
}

#[test]
fn hooks_of_a_version_on_trial_are_asked_when_the_start_of_the_operator_counts() {
    let slow = files().module(5, "slow").hook("wait.sh", "onStartup: 1");
    let mut world = ready(&slow).fails("web/check2.sh", 1);
    world.bundle(2, "web", &[("check2.sh", &format!("{{onStartup: 1, {VALIDATES}}}"))]);
    world.offers(URL, Ok(vec![addon("web", "2.0.0", 2)]));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(1_000);
    let mut world = world.takes("slow/wait.sh", 600_000).takes("keep bundles", 3_000);
    world.is_killed(config());
    switched_on(&mut world);
    world.send_in(1, Event::Started);
    let trace = world.run_for(20_000);
    let place = |what: &str| trace.find(what).unwrap_or_else(|| panic!("no {what}: {trace}"));
    assert!(place("> bundles kept") < place("load module web"), "{trace}");
}

#[test]
fn a_standby_asks_hooks_of_modules_that_are_on_and_answers_for_them() {
    let (key, lease) = held_lease();
    let mut world = ready(&files()).holds("Lease", key, lease).hook("web/check.sh", Ok(says(false)));
    world.is_killed(standing_by(config()));
    let told = world.registrations.len();
    switched_on(&mut world);
    world.send_in(1, Event::Started);
    let trace = world.run_for(3_000);
    assert!(trace.contains("load module web") && !trace.contains("run hook"), "{trace}");
    world.send_in(1, review(1, PATH));
    world.run_for(1_000);
    assert_eq!(world.answer(1).unwrap()["allowed"], json!(false));
    assert_eq!(world.registrations.len(), told, "only the leader tells the API server of webhooks");
}
