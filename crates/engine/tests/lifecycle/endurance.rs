//! A day in the life: nothing that the engine holds may grow with time.

use engine::hook::WatchEvent;
use engine::snapshot::Item;
use engine::{Config, Engine, Event, Footprint, MonitorId};
use serde_json::{Value, json};

use crate::build::{changed, cron, files, key};
use crate::counting::live_here;
use crate::random::{Random, number};
use crate::world::World;

/// How many events a day has, unless the variable `EVENTS` says otherwise. What adds up with a thousandth of them is seen.
const EVENTS: u64 = 200_000;

/// A day in milliseconds.
const DAY: u64 = 24 * 60 * 60 * 1000;

/// How often is looked at how much the engine holds: every so many events.
const LOOK: u64 = 10;

/// The most that was held for a while.
#[derive(Clone, Copy, Debug, Default)]
struct Most {
    pieces: Footprint,
    /// Bytes that this thread had taken, those of the pretended outside included.
    bytes: isize,
}

impl Most {
    fn take(&mut self, held: Footprint) {
        let most = self.pieces;
        self.pieces = Footprint {
            tasks: most.tasks.max(held.tasks),
            contexts: most.contexts.max(held.contexts),
            held_back: most.held_back.max(held.held_back),
            objects: most.objects.max(held.objects),
            journal: most.journal.max(held.journal),
            entries: most.entries.max(held.entries),
            // It counts on.
            looked_at: 0,
        };
        self.bytes = self.bytes.max(live_here());
    }
}

/// Lives a day. Returns the most that the engine held in its first tenth and in the rest.
fn lived(events: u64) -> (Most, Most) {
    let files = files()
        .global_hook("all.sh", "kubernetes: [{name: pods, kind: Pod, group: g}, {name: nodes, kind: Node}]")
        .module(10, "web")
        .hook(
            "w.sh",
            "{settings: {executionMinInterval: 3s}, kubernetes: [{name: pods, kind: Pod, queue: side}], schedule: [{name: tick, crontab: '* * * * *', queue: side}]}",
        )
        .module(20, "db");
    let mut world = World::new(&files).takes("web/w.sh", 700).fails("global/all.sh", 3).settled();
    world.is_quiet = true;
    let mut random = Random(24);
    let (mut early, mut most) = (Most::default(), Most::default());
    let begun = world.later(0);
    for n in 0..events {
        let at = begun + n * DAY / events;
        world.run_until(at);
        let event = match random.below(1_000) {
            0 => cron("* * * * *"),
            1 => Event::Listed { lists: vec![(MonitorId::new(2), Vec::new())] },
            other => {
                let change = if other < 300 { WatchEvent::Deleted } else { WatchEvent::Modified };
                let item = Item::unfiltered(other.to_string().into_bytes().into(), true);
                let monitor = MonitorId::new(1 + random.below(2));
                changed(monitor, change, key(&format!("object-{}", random.below(50))), item.into())
            }
        };
        world.send_in(0, event);
        world.notices.clear();
        if n.is_multiple_of(LOOK) {
            most.take(world.engine.footprint());
        }
        if n == events / 10 {
            early = std::mem::take(&mut most);
        }
    }
    (early, most)
}

fn bounded(early: Most, late: Most) {
    eprintln!("the first tenth {early:?}, the rest {late:?}");
    // What hooks find waiting at one moment is chance; nothing may add up.
    assert!(late.bytes <= early.bytes + early.bytes / 4, "{early:?} then {late:?}");
    let (early, late) = (early.pieces, late.pieces);
    let more = |before: usize| before + before / 4 + 20;
    let is_bounded = late.tasks <= more(early.tasks)
        && late.contexts <= more(early.contexts)
        && late.held_back <= more(early.held_back)
        && late.objects <= more(early.objects)
        && late.journal <= 2_000
        && late.entries <= early.entries;
    assert!(is_bounded, "{early:?} then {late:?}");
}

#[test]
fn a_day_of_events_leaves_the_engine_as_large_as_its_first_hours() {
    let (early, late) = lived(number("EVENTS").unwrap_or(EVENTS));
    bounded(early, late);
}

#[test]
fn values_that_nobody_changed_are_held_once() {
    let text = "x".repeat(1_000);
    let values: Vec<Value> = (0..100).map(|number| json!({"name": number, "text": text})).collect();
    let catalog = files().module(10, "web").values(json!({"all": values})).catalog();
    let before = live_here();
    let engine = Engine::new(Config::default(), catalog.clone());
    let grown = live_here() - before;
    assert!(grown < 50_000, "the engine took {grown} bytes for 100,000 that the catalog holds");
    assert_eq!(engine.footprint().tasks, 0);
}
