//! How long the engine thinks about module sources: 1,000 configurations with 10 addons each.
//!
//! `cargo bench -p engine --bench sources` prints percentiles of single events. Of the events of 1,000 passes, 99 in 100 have to
//! take 200 µs at most. Catalogs of 10,000 modules that the loader hands over are told apart: each is a commit of what changed.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark measures and prints"
)]
#![expect(clippy::wildcard_enum_match_arm, reason = "effects without answer need none")]

mod world;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use world::World;

const SOURCES: usize = 1_000;

fn main() {
    let mut world = World::new(nanoseconds);
    shown(&mut world, "first pass of 1,000 sources", "Ready", |world| {
        for source in 0..SOURCES {
            world.apply(source);
        }
    });
    shown(&mut world, "1,000 sources are fetched again, and nothing changed", "Ready", |world| {
        for source in 0..SOURCES {
            world.apply(source);
        }
    });
    shown(&mut world, "one bundle of each of 100 sources changes", "Ready", |world| {
        for source in (0..SOURCES).step_by(10) {
            world.editions.insert(source, 1);
            world.apply(source);
        }
    });
    let what = "one bundle of each of 100 sources changes, one source after the other";
    shown(&mut world, what, "Ready", |world| {
        for source in (0..SOURCES).step_by(10) {
            world.editions.insert(source, 2);
            world.apply(source);
            world.rest();
        }
    });
    let what = "100 sources offer one addon more, one source after the other";
    shown(&mut world, what, "Ready", |world| {
        for source in (0..SOURCES).step_by(10) {
            world.sizes.insert(source, world::ADDONS + 1);
            world.apply(source);
            world.rest();
        }
    });
    let what = "no repository can be reached, and modules that are off are forgotten";
    shown(&mut world, what, "Failed", |world| {
        world.is_down = true;
        for source in 0..SOURCES {
            world.apply(source);
        }
    });
}

/// Returns how many nanoseconds ago this was called first.
fn nanoseconds() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(BEGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap()
}

/// Lets everything happen that `change` leads to, and prints how long single events took. All sources come to this phase.
fn shown(world: &mut World, what: &str, phase: &str, change: impl FnOnce(&mut World)) {
    world.costs.clear();
    change(world);
    world.rest();
    assert_eq!(world.phases(), [phase].into());
    let kinds = [(None, ""), (Some(false), ", without catalogs"), (Some(true), ", catalogs of modules")];
    for (kind, which) in kinds {
        let of_kind = world.costs.iter().filter(|cost| kind.is_none_or(|kind| kind == cost.is_catalog));
        let mut times: Vec<Duration> = of_kind.map(|cost| Duration::from_nanos(cost.amount)).collect();
        times.sort();
        let Some(last) = times.len().checked_sub(1) else { continue };
        let at = |percent: usize| times.get(last * percent / 100).unwrap();
        println!(
            "{what}{which}: {} events, p50 {:?}, p99 {:?}, max {:?}, sum {:?}",
            times.len(),
            at(50),
            at(99),
            at(100),
            times.iter().sum::<Duration>()
        );
    }
}
