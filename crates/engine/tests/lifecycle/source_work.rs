//! How much work an event about a source is: as much as it changes, however many sources there are.

use serde_json::json;

use crate::build::files;
use crate::repositories::{addon, sourced, unreachable_index};
use crate::world::World;

/// A world with `count` sources that are ready, each with a module of its own.
fn many(count: u64) -> World {
    let mut world = sourced(&files().module(10, "base"));
    for number in 0..count {
        let name = name(number);
        world.offers(&name, Ok(vec![addon(&name, "1.0.0", number)]));
        world.bundle(number, &name, &[]);
        world.applies(&name, &[&name]);
    }
    world.run_for(60_000);
    assert!((0..count).all(|number| world.phase(&name(number)) == "Ready"));
    world
}

/// Returns a name that survives as a key of values.
fn name(number: u64) -> String {
    let digits = number.to_string().bytes().map(|digit| char::from(b'a' + digit - b'0')).collect::<String>();
    format!("module-{digits}")
}

/// Returns how many configurations and addons are looked at for what `change` leads to.
fn looked_at(world: &mut World, phase: &str, change: impl FnOnce(&mut World, &str)) -> usize {
    let before = world.engine.footprint().looked_at;
    let name = name(7);
    change(world, &name);
    world.run_for(60_000);
    assert_eq!(world.phase(&name), phase);
    world.engine.footprint().looked_at - before
}

/// Returns how much is looked at for each kind of change in a world of so many sources.
fn work(count: u64) -> Vec<usize> {
    let mut world = many(count);
    let again = |world: &mut World, name: &str| {
        world.edits(name, |spec| spec["reprocessRequest"] = json!(counter(spec) + 1));
    };
    let nothing = looked_at(&mut world, "Ready", again);
    let bundle = looked_at(&mut world, "Ready", |world, name| {
        world.bundle(1_000, name, &[]);
        world.offers(name, Ok(vec![addon(name, "1.0.1", 1_000)]));
        again(world, name);
    });
    let conflict = looked_at(&mut world, "Failed", |world, name| {
        world.offers(name, Ok(vec![addon("module-a", "1.0.0", 0)]));
        again(world, name);
    });
    let unreachable = looked_at(&mut world, "Failed", |world, name| {
        world.offers(name, unreachable_index());
        again(world, name);
    });
    let withdrawn = looked_at(&mut world, "Ready", |world, name| {
        world.offers(name, Ok(Vec::new()));
        again(world, name);
    });
    let deleted = looked_at(&mut world, "", World::deletes);
    vec![nothing, bundle, conflict, unreachable, withdrawn, deleted]
}

fn counter(spec: &serde_json::Value) -> i64 {
    spec["reprocessRequest"].as_i64().unwrap_or_default()
}

#[test]
fn an_event_about_a_source_looks_at_what_it_changes_not_at_all_sources() {
    let (few, many) = (work(10), work(200));
    assert!(few.iter().all(|looked_at| *looked_at > 0), "{few:?}");
    assert_eq!(few, many);
}
