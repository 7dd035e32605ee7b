//! What events about sources take of memory: as much with three thousand modules as with a hundred.

use crate::counting::taken_here;
use crate::source_world::{ADDONS, World};

/// How much more the largest event may take with thirty times as many modules, in bytes: the list of the parts of the registry is
/// as long as there are sources, divided by some dozens.
const MORE: u64 = 2 << 10;

/// Changes what the source of a number offers.
type Edit = fn(&mut World, usize);

/// What happens to a source: its name, the phase that follows, and the change.
const CHANGES: [(&str, &str, Edit); 5] = [
    ("nothing", "Ready", |_, _| {}),
    ("a bundle changes", "Ready", |world, source| {
        let _ = world.editions.insert(source, 1);
    }),
    ("an addon comes", "Ready", |world, source| {
        let _ = world.sizes.insert(source, ADDONS + 1);
    }),
    ("addons go", "Ready", |world, source| {
        let _ = world.sizes.insert(source, ADDONS - 1);
    }),
    ("it can't be reached", "Failed", |world, _| world.is_down = true),
];

fn gauge() -> u64 {
    u64::try_from(taken_here()).unwrap()
}

/// Returns how many bytes the largest event takes of each change, among so many sources.
fn largest(sources: usize) -> Vec<(&'static str, u64)> {
    let mut world = World::restored(gauge, sources);
    let source = 7;
    let of_change = |(what, phase, change): (&'static str, &str, fn(&mut World, usize))| {
        // Tables that grow do so now.
        world.apply(source);
        world.rest();
        world.costs.clear();
        change(&mut world, source);
        world.apply(source);
        world.rest();
        assert_eq!(world.phases().contains("Failed"), phase == "Failed", "{what}");
        (what, world.costs.iter().map(|cost| cost.amount).max().unwrap())
    };
    CHANGES.into_iter().map(of_change).collect()
}

#[test]
fn an_event_about_a_source_takes_as_much_memory_among_three_thousand_modules_as_among_a_hundred() {
    let (few, many) = (largest(10), largest(300));
    for ((what, few), (_, many)) in few.into_iter().zip(many) {
        assert!(many <= few + MORE, "{what}: {few} bytes among 100 modules, {many} among 3,000");
    }
}
