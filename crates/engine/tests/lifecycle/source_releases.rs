//! What becomes of the release of a module when another bundle has no chart, or names another namespace.

use std::collections::BTreeSet;

use engine::{FetchedAddon, ReleaseAction};
use serde_json::json;

use crate::build::{config as config_map, files};
use crate::repositories::{addon, digest, sourced};
use crate::world::World;

const URL: &str = "https://repo/index.yaml";

/// A world with version 1 of the module `web`, which is on and has a release, and versions 2 and 3 that are not offered yet.
fn released(namespace: Option<&str>) -> World {
    let mut world = sourced(&files());
    for number in 1..4 {
        world.bundle(number, "web", &[]);
    }
    edit(&mut world, 1, namespace, true);
    world.send_in(0, config_map(200, &[("webEnabled", "true")]));
    world.offers(URL, Ok(vec![in_namespace(1, namespace)]));
    world.applies("a", &[URL]);
    world.run_for(3_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
    assert_eq!(places(&world), [namespace.map_or("web".to_owned(), |namespace| format!("{namespace}/web"))]);
    world
}

fn edit(world: &mut World, number: u64, namespace: Option<&str>, has_chart: bool) {
    let module = world.repositories.bundles.get_mut(&digest(number)).unwrap();
    (module.namespace, module.has_chart) = (namespace.map(Into::into), has_chart);
}

fn in_namespace(number: u64, namespace: Option<&str>) -> FetchedAddon {
    let mut addon = addon("web", &format!("1.{number}.0"), number);
    addon.outcome.as_mut().unwrap().namespace = namespace.map(Into::into);
    addon
}

/// Publishes a version, and has it fetched.
fn publish(world: &mut World, number: u64, namespace: Option<&str>, has_chart: bool) {
    edit(world, number, namespace, has_chart);
    world.offers(URL, Ok(vec![in_namespace(number, namespace)]));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(number));
}

fn places(world: &World) -> Vec<String> {
    world.deployed.keys().cloned().collect()
}

fn left(world: &World) -> Vec<String> {
    let addons = world.repositories.registry.addons.iter();
    addons.flat_map(|addon| addon.left_namespaces.iter().flatten().map(ToString::to_string)).collect()
}

fn restart(world: &mut World, is_on: bool) {
    world.restarts();
    world.send_in(0, config_map(300, &[("webEnabled", if is_on { "true" } else { "false" })]));
}

/// Deletes the configuration, which leaves nothing.
fn end(world: &mut World) {
    world.deletes("a");
    world.run_for(10_000);
    assert!(world.repositories.objects.is_empty(), "{:?}", world.status("a"));
    assert_eq!(places(world), [""; 0]);
    assert!(world.repositories.registry.addons.is_empty());
    assert_eq!(world.repositories.faults, [""; 0]);
}

#[test]
fn a_version_without_a_chart_has_the_release_of_the_one_before_removed() {
    let mut world = released(None);
    publish(&mut world, 2, None, false);
    world.run_for(3_000);
    assert_eq!(world.states("a"), ["web Running"]);
    assert_eq!(places(&world), [""; 0]);
    publish(&mut world, 3, None, true);
    world.run_for(3_000);
    assert_eq!((world.states("a"), places(&world)), (vec!["web Running".to_owned()], vec!["web".to_owned()]));
    end(&mut world);
}

#[test]
fn a_release_that_could_not_be_removed_with_its_chart_is_tried_again() {
    let mut world = released(None);
    world.fails_releases("web", 1);
    publish(&mut world, 2, None, false);
    world.run_for(1_000);
    assert_eq!((world.states("a"), places(&world)), (vec!["web Error".to_owned()], vec!["web".to_owned()]));
    world.run_for(30_000);
    assert_eq!((world.states("a"), places(&world)), (vec!["web Running".to_owned()], Vec::new()));
}

#[test]
fn a_kill_before_the_release_is_removed_of_a_version_without_a_chart_changes_nothing() {
    for is_on in [true, false] {
        for moment in (0..400).step_by(5) {
            let mut world = released(None);
            publish(&mut world, 2, None, false);
            world.run_for(moment);
            restart(&mut world, is_on);
            world.run_for(10_000);
            let expected = if is_on { "web Running" } else { "web Registered" };
            assert_eq!(
                (world.states("a"), places(&world)),
                (vec![expected.to_owned()], Vec::new()),
                "{moment}"
            );
            end(&mut world);
        }
    }
}

#[test]
fn a_module_that_is_off_without_a_chart_is_not_waited_for() {
    // What was released before is left alone in maintenance, and goes when the module is switched off.
    let mut world = released(None);
    let in_maintenance = [("webEnabled", "true"), ("webMaintenance", "NoResourceReconciliation")];
    world.send_in(0, config_map(300, &in_maintenance));
    world.run_for(3_000);
    publish(&mut world, 2, None, false);
    world.run_for(3_000);
    assert_eq!((world.states("a"), places(&world)), (vec!["web Running".to_owned()], vec!["web".to_owned()]));
    world.send_in(0, config_map(400, &[("webEnabled", "false")]));
    world.run_for(3_000);
    assert_eq!((world.states("a"), places(&world)), (vec!["web Registered".to_owned()], Vec::new()));
    end(&mut world);
}

#[test]
fn a_directory_that_lost_its_chart_keeps_its_release_while_it_is_on() {
    let mut world = sourced(&files().module(10, "base")).settled();
    assert_eq!(places(&world), ["base"]);
    world.rereads(&files().module(10, "base").hooks_only());
    world.run_for(3_000);
    assert_eq!(places(&world), ["base"]);
}

#[test]
fn a_kill_while_a_version_goes_to_another_namespace_leaves_no_release_behind() {
    for next in [Some("nsb"), None] {
        for moment in (0..400).step_by(5) {
            let mut world = released(Some("nsa"));
            publish(&mut world, 2, next, true);
            world.run_for(moment);
            restart(&mut world, true);
            world.run_for(10_000);
            let expected = next.map_or("web".to_owned(), |next| format!("{next}/web"));
            assert_eq!(places(&world), [expected], "{moment}");
            assert_eq!(
                (world.states("a"), left(&world)),
                (vec!["web Running".to_owned()], Vec::new()),
                "{moment}"
            );
            end(&mut world);
        }
    }
}

#[test]
fn a_namespace_that_is_to_be_left_is_on_record_until_it_is_empty() {
    let mut world = released(Some("nsa"));
    world = world.release("web", Ok(ReleaseAction::Installed)).release("web", Err("it hangs"));
    publish(&mut world, 2, Some("nsb"), true);
    world.run_for(3_000);
    // The module runs where it belongs, and what is left is no reason to hold anybody up.
    assert_eq!(
        (world.states("a"), places(&world)),
        (vec!["web Running".to_owned()], vec!["nsa/web".to_owned(), "nsb/web".to_owned()])
    );
    assert_eq!(left(&world), ["nsa"]);
    // Another version goes on to a third one before.
    world = world.release("web", Ok(ReleaseAction::Installed)).release("web", Err("it hangs"));
    publish(&mut world, 3, Some("nsc"), true);
    world.run_for(3_000);
    assert_eq!(left(&world), ["nsa", "nsb"]);
    restart(&mut world, true);
    world.run_for(10_000);
    assert_eq!((places(&world), left(&world)), (vec!["nsc/web".to_owned()], Vec::new()));
    end(&mut world);
}

#[test]
fn what_is_left_elsewhere_goes_with_a_module_that_is_switched_off_or_taken_back() {
    for is_deleted in [false, true] {
        let mut world = released(Some("nsa"));
        world = world.release("web", Ok(ReleaseAction::Installed)).release("web", Err("it hangs"));
        publish(&mut world, 2, Some("nsb"), true);
        world.run_for(3_000);
        assert_eq!(places(&world), ["nsa/web", "nsb/web"]);
        if is_deleted {
            world.deletes("a");
            world.run_for(30);
        }
        restart(&mut world, is_deleted);
        world.run_for(10_000);
        assert_eq!((places(&world), left(&world)), (Vec::new(), Vec::new()), "{is_deleted}");
        if !is_deleted {
            end(&mut world);
        }
        assert!(world.repositories.objects.is_empty());
    }
}

#[test]
fn a_version_that_is_given_up_leaves_nothing_in_its_namespace() {
    let mut world = released(Some("nsa"));
    world.bundle(2, "web", &[("after.sh", "afterHelm: 1")]);
    world = world.fails("web/after.sh", 3);
    publish(&mut world, 2, Some("nsb"), true);
    world.run_for(60_000);
    assert_eq!((places(&world), left(&world)), (vec!["nsa/web".to_owned()], Vec::new()));
    assert_eq!(world.repositories.registry.links(&BTreeSet::new())[0].digest, digest(1));
    end(&mut world);
}
