//! What people are told about module sources, and what they may ask for.

use engine::view::{View, problems, sources, status, why};
use engine::{AddonReason, Command, CommandId, Event, SourceKey, UnwatchedKind};
use serde_json::json;

use crate::build::{config as config_map, files};
use crate::repositories::{addon, broken, config, digest, sourced, sourced_with, with_id};
use crate::world::World;

const URL: &str = "https://me:hunter2@repo/index.yaml?ref=v3";
const SHOWN: &str = "https://***@repo/index.yaml?ref=v3";

/// Returns a world with a configuration `platform`, whose addon `web` runs.
fn running() -> World {
    let mut world = sourced(&files().module(10, "base"));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[]);
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    world.applies("platform", &[URL]);
    world.run_for(5_000);
    world
}

/// Returns the world after `web` became unusable, and the index of a second repository unreachable.
fn failed() -> World {
    let mut world = running();
    world.offers(URL, Ok(vec![broken(addon("web", "1.0.0", 1), AddonReason::LoadingError)]));
    world.applies("platform", &[URL, "https://gone/index.yaml"]);
    world.run_for(5_000);
    world
}

#[test]
fn the_status_counts_modules_and_those_that_run() {
    let mut world = sourced(&files().module(10, "base"));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1), addon("db", "1.0.0", 2)]));
    world.bundle(1, "web", &[]);
    world.bundle(2, "db", &[]);
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    world.applies("platform", &[URL]);
    world.run_for(5_000);
    assert_eq!(world.status("platform")["modules"], "1/2");
    world.applies("platform", &["https://gone/index.yaml"]);
    world.run_for(5_000);
    assert_eq!(
        world.status("platform")["modules"],
        "1/1",
        "what was never on is gone, and what runs goes on"
    );
    assert_eq!(world.view().sources[0].modules, "1/1");
}

fn why_source(world: &World, name: &str) -> String {
    world.told(|view, format| match why::source(view, name, format) {
        Ok(answer) => answer.text(),
        Err(unknown) => unknown.to_string(),
    })
}

fn list(world: &World) -> String {
    world.told(sources::text)
}

#[test]
fn why_tells_what_failed_when_it_is_tried_again_and_what_to_do() {
    let world = failed();
    let told = why_source(&world, "platform");
    for part in [
        "ClusterAddonsConfiguration platform is failed: 1 repository and 1 addon failed, nothing is registered; web 1.0.0:",
        "phase:               Failed at generation 2\n",
        "processed again in:  4 min\n",
        &format!("repository:          {SHOWN}: Failed, 1 addon\n"),
        "repository:          https://gone/index.yaml: FetchingIndexError: the server answered 404\n",
        "addon:               web 1.0.0: LoadingError: it can't be used, module web is Retained\n",
        "AddonsReconcile begins in 4 min\n",
        "  - look whether the URL answers with an index and whether its host may be asked (--source-allow)",
        "  - correct the bundle; `addon-operator source lint`",
        "  - modules that are Retained go on as they are",
        "  - `addon-operator source sync cac/platform` has it processed at once",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let told = why_source(&running(), "platform");
    assert!(
        told.starts_with("ClusterAddonsConfiguration platform is ready: 1 addon is registered.\n"),
        "{told}"
    );
    assert!(told.contains("module web is Running") && !told.contains("again in"), "{told}");
}

#[test]
fn why_tells_what_a_first_pass_and_an_end_wait_for() {
    let mut world = sourced_with(&files().module(10, "base"), config());
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[]);
    world.repositories.takes.insert("platform".to_owned(), 60_000);
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    world.applies("platform", &[URL]);
    world.run_for(3_000);
    let told = why_source(&world, "platform");
    assert!(told.starts_with("ClusterAddonsConfiguration platform was not processed yet.\n"), "{told}");
    assert!(told.contains("AddonsReconcile runs for "), "{told}");
    let queue = world.told(|view, format| why::queue(view, "addons", format).unwrap().verdict);
    assert_eq!(queue, "queue addons has 1 module source, and none of them holds back another");
    assert!(world.told(status::text).contains("1 at work, 0 wait"));
}

#[test]
fn a_source_is_found_by_every_name_that_people_give_it() {
    let world = running();
    for name in [
        "platform",
        "cac/platform",
        "ClusterAddonsConfiguration/platform",
        "clusteraddonsconfigurations/platform",
    ] {
        assert!(why_source(&world, name).contains("is ready"), "{name}");
    }
    assert_eq!(why_source(&world, "platfrom"), "there is no source platfrom; did you mean platform?");
    assert!(why_source(&world, "ac/platform").starts_with("there is no source ac/platform"));
    let mut view: View = world.view();
    for namespace in ["a", "b"] {
        let mut other = view.sources[0].clone();
        other.key =
            SourceKey { kind: engine::SourceKind::Namespaced, namespace: namespace.into(), ..other.key };
        view.sources.push(other);
    }
    let found = |name: &str| sources::find(&view, name).map(engine::view::SourceView::address);
    assert_eq!(found("a/platform").unwrap(), "ac/a/platform");
    assert_eq!(found("AC/b/platform").unwrap(), "ac/b/platform");
    assert_eq!(found("cac/platform").unwrap(), "cac/platform");
    let several = found("platform").unwrap_err().to_string();
    assert_eq!(
        several,
        "there is no single source platform; which one: cac/platform or ac/a/platform or ac/b/platform?"
    );
}

#[test]
fn the_list_the_status_and_the_module_tell_of_a_source() {
    let world = failed();
    let lines: Vec<String> =
        list(&world).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[0], "KIND NAMESPACE NAME PHASE MODULES PROCESSED NEXT IN MESSAGE");
    assert!(lines[1].starts_with("ClusterAddonsConfiguration platform Failed 1/1 "), "{lines:?}");
    assert!(lines[1].contains(" 4 min 1 repository and 1 addon failed"), "{lines:?}");
    let data = world.told(sources::data);
    let first = &data["sources"][0];
    assert_eq!((&first["phase"], &first["generation"]), (&"Failed".into(), &2.into()));
    assert_eq!(first["modules"], "1/1");
    assert_eq!(first["repositories"][0]["url"], SHOWN);
    assert_eq!(first["repositories"][0]["addons"][0]["module"]["state"], "Retained");
    assert!(first["nextSeconds"].as_f64().unwrap() > 200.0);
    let told = world.told(status::text);
    assert!(told.contains("Module sources: 1 Failed (`addon-operator source list`)"), "{told}");
    let about: Vec<String> = world
        .told(problems)
        .into_iter()
        .map(|problem| format!("{}: {}", problem.about, problem.advice))
        .collect();
    let expected =
        "ClusterAddonsConfiguration platform: `addon-operator why source cac/platform` says what to do";
    assert_eq!(about, [expected]);
    let module = world.told(|view, format| why::module(view, "web", format).unwrap().text());
    let fact = format!(
        "version 1.0.0 of ClusterAddonsConfiguration platform, {SHOWN}, sha256:{:064x}, registered no more: it goes on as it is",
        1
    );
    assert!(module.contains(&fact), "{module}");
    assert!(module.contains("`addon-operator why source cac/platform` shows why"), "{module}");
    let data = world.told(status::data);
    assert_eq!(data["sources"][0]["name"], "platform");
    let web = data["modules"].as_array().unwrap().iter().find(|module| module["name"] == "web").unwrap();
    assert_eq!(web["origin"]["source"], "cac/platform");
}

#[test]
fn why_counts_the_addons_that_the_status_does_not_list() {
    let mut world = sourced(&files().module(10, "base"));
    let urls = ["one", "two", "three"];
    for (from, url) in (1_000..).step_by(1_000).zip(urls) {
        let failed = |n: u64| broken(addon(&format!("m{n}"), "1.0.0", n), AddonReason::LoadingError);
        world.offers(url, Ok((from..from + 490).map(failed).collect()));
    }
    world.applies("platform", &urls);
    world.run_for(10_000);
    assert!(
        world.status("platform").to_string().contains("970 more addons are not listed, 970 of them failed")
    );
    let text = why_source(&world, "platform");
    assert_eq!(text.matches("  addon:               m").count(), 20, "{text}");
    assert!(text.contains("… and 1450 more") && text.contains("two: Failed, 10 addons listed"), "{text}");
}

#[test]
fn without_sources_nothing_new_is_told() {
    let mut world = sourced(&files().module(10, "base"));
    world.send_in(0, config_map(200, &[]));
    world.run_for(5_000);
    assert_eq!(list(&world), "There is no module source: docs/sources.md says how to apply one.\n");
    assert!(!world.told(status::text).contains("ource"));
    let data = world.told(status::data);
    assert_eq!(data.get("sources"), None);
    assert_eq!(data["modules"][0].get("origin"), None);
    assert!(world.view().queues.iter().all(|queue| queue.name.as_str() != "addons"));
}

#[test]
fn what_is_secret_in_a_url_is_told_nowhere() {
    let mut world = failed();
    // Its id is taken, and the message says by whom, and where from.
    world.offers("other", Ok(vec![addon("web", "2.0.0", 2)]));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.applies("platform", &[URL]);
    world.applies("second", &["other", URL]);
    world.run_for(5_000);
    assert!(
        world.problems("second").iter().any(|problem| problem.contains(SHOWN)),
        "{:?}",
        world.problems("second")
    );
    let all = [
        list(&world),
        why_source(&world, "second"),
        why_source(&world, "platform"),
        world.told(sources::data).to_string(),
        world.told(status::data).to_string(),
        world.told(status::text),
        world.told(|view, format| why::module(view, "web", format).unwrap().text()),
        format!("{:?} {:?} {:?}", world.view().sources, world.view().modules, world.announcements),
        world.problems("second").join(" "),
    ];
    for told in all {
        assert!(!told.contains("hunter2"), "{told}");
    }
}

/// Asks for `platform` to be processed, and returns the trace of what follows.
fn sync(world: &mut World, name: &str) -> String {
    let command = Command::SyncSource(SourceKey::cluster(name));
    world.send_in(0, Event::Commanded { id: CommandId::new(7), command });
    world.run_for(5_000)
}

#[test]
fn a_person_has_a_source_processed_again() {
    let mut world = running();
    let (fetches, generation) =
        (world.repositories.fetches, world.status("platform")["observedGeneration"].clone());
    let trace = sync(&mut world, "platform");
    assert!(trace.contains("answer c7 ClusterAddonsConfiguration platform is processed again"), "{trace}");
    assert_eq!(world.repositories.objects["platform"]["spec"]["reprocessRequest"], 1);
    assert_eq!(world.repositories.fetches, fetches + 1, "{trace}");
    assert_ne!(world.status("platform")["observedGeneration"], generation);
    assert_eq!(world.states("platform"), ["web Running"]);
    let trace = sync(&mut world, "nobody");
    assert!(trace.contains("refuse c7 there is no ClusterAddonsConfiguration nobody"), "{trace}");
    // The API server says no.
    let failure = engine::Failure::new(engine::FailureKind::Forbidden, "you may not");
    world.patching.push_back(Err(failure));
    let trace = sync(&mut world, "platform");
    assert!(trace.contains("refuse c7 you may not"), "{trace}");
    assert_eq!(world.repositories.fetches, fetches + 1);
}

#[test]
fn of_a_suspended_source_nobody_is_sent_to_have_it_processed() {
    let mut world = running();
    assert!(why_source(&world, "platform").contains("source sync cac/platform"));
    world.edits("platform", |spec| spec["suspend"] = json!(true));
    world.run_for(3_000);
    let told = why_source(&world, "platform");
    assert!(told.contains("is suspended") && !told.contains("source sync"), "{told}");
    assert!(told.contains("`addon-operator source resume cac/platform` has it looked after again"), "{told}");
    // So it is of one that was never looked at.
    world.edits("second", |spec| {
        spec["repositories"] = json!([{"url": URL}]);
        spec["suspend"] = json!(true);
    });
    world.run_for(3_000);
    let told = why_source(&world, "second");
    assert!(told.contains("is suspended") && !told.contains("source sync"), "{told}");
    assert!(told.contains("source resume cac/second"), "{told}");
}

#[test]
fn what_waits_for_an_approval_is_said_with_what_lets_it_come() {
    let mut world = running();
    for (number, version, value) in
        [(2, "1.1.0", "web=1.1.0".to_owned()), (3, "1.0.0", digest(3).to_string())]
    {
        world.bundle(number, "web", &[]);
        world.offers(URL, Ok(vec![addon("web", version, number)]));
        world.edits("platform", |spec| {
            spec["approval"] = json!("manual");
            spec["reprocessRequest"] = json!(number);
        });
        world.run_for(5_000);
        let told = why_source(&world, "platform");
        let advice = format!(
            "`kubectl annotate cac platform addon-operator.io/approved-version={value} --overwrite` lets web {version} come"
        );
        assert!(told.contains(&advice), "{told}");
    }
}

#[test]
fn a_counter_that_can_not_be_raised_any_more_is_told() {
    let mut world = running();
    world.edits("platform", |spec| spec["reprocessRequest"] = json!(i64::MAX));
    world.run_for(5_000);
    let fetches = world.repositories.fetches;
    let trace = sync(&mut world, "platform");
    let refused =
        "refuse c7 spec.reprocessRequest of ClusterAddonsConfiguration platform is as high as it can be";
    assert!(trace.contains(refused) && world.repositories.fetches == fetches, "{trace}");
    // One that failed because of another one tries again all the same.
    world.offers("twin", Ok(vec![with_id(addon("twin", "1.0.0", 4), "id-web")]));
    world.edits("second", |spec| {
        spec["repositories"] = json!([{"url": "twin"}]);
        spec["reprocessRequest"] = json!(i64::MAX);
    });
    world.run_for(5_000);
    assert_eq!(world.phase("second"), "Failed");
    world.deletes("platform");
    world.run_for(10_000);
    assert_eq!(world.phase("second"), "Ready", "{}", world.trace);
}

#[test]
fn what_a_guest_may_not_watch_is_the_business_of_its_account() {
    let mut world = sourced(&files().module(10, "base"));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[]);
    world.send_in(0, config_map(200, &[("teamWebEnabled", "true")]));
    world.applies("team/x", &[URL]);
    world.run_for(5_000);
    let why = "configmaps is forbidden".to_owned();
    for module in ["base", "team-web"] {
        let kinds = vec![UnwatchedKind { kind: format!("ConfigMap of {module}"), why: why.clone() }];
        world.after(2, Event::ReleaseUnwatched { module: module.into(), kinds });
    }
    let advice: Vec<String> = world.told(problems).into_iter().map(|problem| problem.advice).collect();
    let own =
        "grant ServiceAccount team/addon-operator list and watch of that kind in its namespace; until then";
    assert_eq!(advice.len(), 2, "{advice:?}");
    assert!(advice[0].starts_with("grant the operator's ServiceAccount"), "{advice:?}");
    assert!(advice[1].starts_with(own), "{advice:?}");
    let told = world.told(|view, format| why::module(view, "team-web", format).unwrap().text());
    assert!(told.contains(own), "{told}");
}
