//! A registry that is another one than the objects tell of: somebody restored it, or the operator ended between the two.

use engine::{Notice, Registry};
use serde_json::json;

use crate::build::{config as config_map, files};
use crate::repositories::{addon, digest, sourced};
use crate::world::World;

const URL: &str = "https://repo/index.yaml";
const FLAGS: [(&str, &str); 2] = [("webEnabled", "true"), ("dbEnabled", "true")];

/// A world in which versions 1 of two addons were registered, and then version 2 of one of them alone. Returns what was registered
/// before.
fn world() -> (World, Registry) {
    let mut world = sourced(&files());
    for (number, name) in [(1, "web"), (2, "web"), (3, "db")] {
        world.bundle(number, name, &[]);
    }
    world.send_in(0, config_map(200, &FLAGS));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1), addon("db", "1.0.0", 3)]));
    world.applies("a", &[URL]);
    world.run_for(3_000);
    let before = world.repositories.registry.clone();
    world.offers(URL, Ok(vec![addon("web", "1.1.0", 2)]));
    world.edits("a", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(5_000);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
    (world, before)
}

fn warned(world: &World) -> usize {
    let told = "what is registered of ClusterAddonsConfiguration a is not what its status says";
    world.noticed(|notice| matches!(notice, Notice::Warned { message, .. } if message.starts_with(told)))
}

fn restart(world: &mut World) {
    world.restarts();
    world.send_in(0, config_map(300, &FLAGS));
    world.run_for(20_000);
}

#[test]
fn a_registry_that_is_older_than_the_status_is_not_believed() {
    let (mut world, before) = world();
    world.holds_registry(before);
    restart(&mut world);
    assert_eq!((world.phase("a").as_str(), world.states("a")), ("Ready", vec!["web Running".to_owned()]));
    assert_eq!(world.released("web"), Some(digest(2)));
    assert!(world.deployed.keys().eq(["web"]), "{:?}", world.deployed);
    assert_eq!(warned(&world), 1);
    // Then it is as it says.
    let fetches = world.repositories.fetches;
    restart(&mut world);
    assert_eq!((world.repositories.fetches, warned(&world)), (fetches, 1));
}

#[test]
fn a_registry_with_more_than_the_status_is_not_believed() {
    let (mut world, before) = world();
    let now = world.repositories.registry.clone();
    let gone = before.addons.iter().filter(|addon| addon.bundle.name.as_str() == "db");
    let addons = now.addons.iter().chain(gone).cloned().collect();
    world.holds_registry(Registry { addons, ..now });
    restart(&mut world);
    assert!(world.deployed.keys().eq(["web"]), "{:?}", world.deployed);
    assert_eq!((world.repositories.registry.addons.len(), warned(&world)), (1, 1));
}

#[test]
fn a_registry_with_another_word_on_auto_enable_is_not_believed() {
    let (mut world, _) = world();
    let before = world.repositories.registry.clone();
    world.edits("a", |spec| spec["autoEnable"] = json!(true));
    world.run_for(3_000);
    world.holds_registry(before);
    restart(&mut world);
    assert!(world.repositories.registry.addons.iter().all(|addon| addon.auto_enable));
    assert_eq!(warned(&world), 1);
}
