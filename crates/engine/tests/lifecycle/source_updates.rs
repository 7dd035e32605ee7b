//! Configurations that are looked at again by themselves, that are suspended, and that wait for others.

use serde_json::json;

use crate::build::{config as config_map, cron, files};
use crate::repositories::{addon, digest, sourced, unreachable_index};
use crate::world::World;

const URL: &str = "https://repo/index.yaml";

/// A world with the addon `web`, which is switched on, and a configuration that is ready.
fn ready(edit: impl FnOnce(&mut serde_json::Value)) -> World {
    let mut world = sourced(&files());
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[]);
    world.bundle(2, "web", &[]);
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    world.run_for(3_000);
    world.edits("a", |spec| {
        spec["repositories"] = json!([{"url": URL}]);
        edit(spec);
    });
    world.run_for(3_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
    world
}

fn digest_of(world: &World, name: &str) -> String {
    world.status(name)["repositories"][0]["addons"][0]["digest"].as_str().unwrap().to_owned()
}

fn restarted(world: &mut World) {
    world.restarts();
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
}

#[test]
fn fifty_sources_at_rest_cost_one_fetch_a_minute_each_and_no_write() {
    let mut world = sourced(&files());
    for n in 0..50 {
        let (name, url) = (format!("s{n}"), format!("https://repo/{n}"));
        world.offers(&url, Ok(vec![addon(&format!("web{n}"), "1.0.0", n)]));
        world.bundle(n, &format!("web{n}"), &[]);
        world.edits(&name, |spec| {
            spec["repositories"] = json!([{"url": url}]);
            spec["updateInterval"] = json!("1m");
        });
    }
    world.run_for(30_000);
    for is_restarted in [false, true] {
        if is_restarted {
            world.restarts();
        }
        let (fetches, writes) = (world.repositories.fetches, world.repositories.writes.len());
        world.run_for(600_000);
        let asked = world.repositories.fetches - fetches;
        assert!((450..=500).contains(&asked), "{asked}");
        assert_eq!(world.repositories.writes.len(), writes);
    }
}

#[test]
fn a_new_version_comes_within_the_interval_and_not_without_one() {
    for (interval, expected) in [(json!(null), 1), (json!("1m"), 2)] {
        let mut world = ready(|spec| spec["updateInterval"] = interval);
        world.offers(URL, Ok(vec![addon("web", "1.1.0", 2)]));
        world.run_for(65_000);
        assert!(digest_of(&world, "a").ends_with(&expected.to_string()));
        assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
    }
}

#[test]
fn a_bundle_stays_until_what_runs_from_it_has_ended() {
    let mut world = sourced(&files()).takes("web/tick.sh", 5_000);
    for number in [1, 2] {
        world.bundle(number, "web", &[("tick.sh", "schedule: [{crontab: '1 * * * *', queue: side}]")]);
    }
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    world.applies("a", &[URL]);
    world.run_for(3_000);
    assert_eq!(world.states("a"), ["web Running"]);
    world.send_in(0, cron("1 * * * *"));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 2)]));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    let trace = world.run_for(3_000);
    // The other bundle is in force, and its module has run.
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
    assert_eq!(digest_of(&world, "a"), digest(2).to_string());
    assert!(trace.contains("run hook web/tick.sh") && !trace.contains("cancel"), "{trace}");
    assert!(!trace.contains("drop bundles") && world.repositories.stored.contains(&digest(1)), "{trace}");
    let trace = world.run_for(5_000);
    let (ended, dropped) = (trace.find("> hook"), trace.find("drop bundles but 1"));
    assert!(ended.is_some() && ended < dropped, "{trace}");
    assert!(!world.repositories.stored.contains(&digest(1)), "{trace}");
}

#[test]
fn a_failure_is_tried_again_within_the_interval_unless_nothing_can_be_fetched() {
    let mut world = ready(|spec| spec["updateInterval"] = json!("1m"));
    let odd = crate::repositories::broken(addon("web", "1.1.0", 2), engine::AddonReason::LoadingError);
    world.offers(URL, Ok(vec![odd]));
    world.run_for(65_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Failed", vec!["web Retained".to_owned()]));
    world.offers(URL, Ok(vec![addon("web", "1.1.0", 2)]));
    world.run_for(65_000);
    assert_eq!(world.phase("a"), "Ready");
    world.offers(URL, unreachable_index());
    world.run_for(65_000);
    let fetches = world.repositories.fetches;
    world.run_for(200_000);
    assert_eq!((world.phase("a").as_str(), world.repositories.fetches), ("Failed", fetches));
}

#[test]
fn a_suspended_source_is_left_as_it_is_until_it_is_deleted() {
    let mut world = ready(|spec| spec["updateInterval"] = json!("1m"));
    world.offers(URL, Ok(vec![addon("web", "1.1.0", 2)]));
    world.edits("a", |spec| spec["suspend"] = json!(true));
    world.run_for(3_000);
    let condition = |world: &World| {
        let status = world.status("a");
        let all = status["conditions"].as_array().unwrap().clone();
        all.iter().find(|one| one["type"] == "Suspended").map(|one| one["status"].clone())
    };
    assert_eq!((world.phase("a").as_str(), condition(&world)), ("Ready", Some(json!("True"))));
    let before = (world.version("a"), world.repositories.fetches);
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    let written = world.version("a");
    world.run_for(1_500_000);
    restarted(&mut world);
    world.run_for(1_500_000);
    assert_eq!((world.version("a"), world.repositories.fetches), (written, before.1));
    assert_eq!(world.states("a"), ["web Running"]);
    assert!(digest_of(&world, "a").ends_with('1'));
    world.edits("a", |spec| spec["suspend"] = json!(false));
    world.run_for(3_000);
    assert_eq!((world.phase("a").as_str(), condition(&world)), ("Ready", None));
    assert!(digest_of(&world, "a").ends_with('2'));
    world.edits("a", |spec| spec["suspend"] = json!(true));
    world.run_for(3_000);
    world.deletes("a");
    world.run_for(10_000);
    assert!(world.repositories.objects.is_empty() && world.deployed.is_empty());
}

#[test]
fn a_source_that_begins_suspended_says_so_and_is_not_fetched() {
    let mut world = sourced(&files());
    world.edits("a", |spec| spec["suspend"] = json!(true));
    world.run_for(30_000);
    assert_eq!((world.phase("a").as_str(), world.repositories.fetches), ("Pending", 0));
    assert_eq!(world.status("a")["conditions"][0]["message"], "it is suspended");
    world.deletes("a");
    world.run_for(3_000);
    assert!(world.repositories.objects.is_empty());
}

#[test]
fn a_source_waits_for_those_it_depends_on_and_names_them() {
    let mut world = sourced(&files());
    let message = |world: &World| world.status("b")["conditions"][0]["message"].as_str().unwrap().to_owned();
    world.offers(URL, unreachable_index());
    world.edits("b", |spec| spec["dependsOn"] = json!([{"kind": "ClusterAddonsConfiguration", "name": "a"}]));
    world.run_for(3_000);
    assert_eq!((world.phase("b").as_str(), world.repositories.fetches), ("Pending", 0));
    assert_eq!(message(&world), "it waits for ClusterAddonsConfiguration a, which is not there");
    world.applies("a", &[URL]);
    world.run_for(3_000);
    assert_eq!(message(&world), "it waits for ClusterAddonsConfiguration a, which is Failed");
    restarted(&mut world);
    world.run_for(3_000);
    assert_eq!(message(&world), "it waits for ClusterAddonsConfiguration a, which is Failed");
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[]);
    world.run_for(400_000);
    assert_eq!((world.phase("a"), world.phase("b")), ("Ready".to_owned(), "Ready".to_owned()));
    // What was processed as it is does not wait again.
    world.deletes("a");
    world.run_for(10_000);
    assert_eq!(world.phase("b"), "Ready");
    world.edits("b", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(3_000);
    assert_eq!(world.phase("b"), "Pending");
    world.edits("b", |spec| spec["dependsOn"] = json!([]));
    world.run_for(3_000);
    assert_eq!(world.phase("b"), "Ready");
}

#[test]
fn a_circle_of_dependencies_is_named_and_can_be_broken() {
    let mut world = sourced(&files());
    for (name, other) in [("a", "b"), ("b", "a")] {
        world.edits(name, |spec| spec["dependsOn"] = json!([{"name": other}]));
    }
    world.run_for(3_000);
    let message = world.status("b")["conditions"][0]["message"].as_str().unwrap().to_owned();
    let expected =
        "it waits for ClusterAddonsConfiguration a, which waits for it in a circle: remove one of these";
    assert!(message.starts_with(expected), "{message}");
    world.edits("a", |spec| spec["dependsOn"] = json!([]));
    world.run_for(3_000);
    assert_eq!((world.phase("a"), world.phase("b")), ("Ready".to_owned(), "Ready".to_owned()));
    world.edits("a", |spec| spec["dependsOn"] = json!([{"name": "a"}]));
    world.run_for(3_000);
    assert_eq!(world.phase("a"), "Pending");
    world.deletes("a");
    world.run_for(3_000);
    assert!(world.repositories.objects.keys().eq(["b"]));
}

#[test]
fn a_status_has_five_hundred_lines_whatever_there_is_to_say() {
    let mut world = sourced(&files());
    let offer = |from: u64, version: &str| {
        Ok((0..300).map(|n| addon(&format!("m{}", from % 1_000 + n), version, from + n)).collect::<Vec<_>>())
    };
    let lines = |world: &World| {
        let status = world.status("a");
        let lines = status["repositories"].as_array().unwrap().iter();
        lines.map(|line| line["addons"].as_array().unwrap().len()).sum::<usize>()
    };
    world.offers("one", offer(1_000, "1.0.0"));
    world.offers("two", offer(1_400, "1.0.0"));
    for number in (1_000..1_300).chain(1_400..1_700) {
        world.bundle(number, &format!("m{}", number % 1_000), &[]);
    }
    world.edits("a", |spec| {
        spec["repositories"] = json!([{"url": "one"}, {"url": "two"}]);
        spec["approval"] = json!("manual");
    });
    world.run_for(10_000);
    assert_eq!((world.phase("a").as_str(), lines(&world)), ("Ready", 501));
    // Another version of each waits, and the ones in force are offered no more.
    world.offers("one", offer(3_000, "1.1.0"));
    world.offers("two", offer(3_400, "1.1.0"));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(10_000);
    assert!(world.status("a").to_string().contains("600 more versions that are in force are not listed"));
    assert_eq!((world.phase("a").as_str(), lines(&world)), ("Ready", 502));
    // It is the same after a restart, and nothing is written because of that.
    let writes = world.repositories.writes.len();
    world.restarts();
    world.run_for(30_000);
    assert_eq!((lines(&world), world.repositories.writes.len()), (502, writes));
    // All of them go on without being offered.
    world.offers("one", unreachable_index());
    world.offers("two", Ok(Vec::new()));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(2));
    world.run_for(10_000);
    assert_eq!(world.phase("a"), "Failed");
    assert!(lines(&world) <= 501, "{}", lines(&world));
}
