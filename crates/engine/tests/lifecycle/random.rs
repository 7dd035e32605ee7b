//! Lives nobody thought of: random events and faults, checked for what must always hold.
//!
//! 1. At most one effect of a queue is in flight (`World::check`).
//! 2. No more processes run than allowed; `main`, the queues of parallel modules, and those with a Synchronization that is
//!    waited for may add one each.
//! 3. A failing head blocks its queue: a task is only overtaken by tasks that were put before it.
//! 4. A stale answer changes nothing (`World::take_in`, in every sixteenth life).
//! 5. No task is lost: when faults stop, all queues run empty and every module is as its flags say.
//! 6. A module that requires others waits for nothing but what is off.
//! 7. Values are what the last ConfigMap says.

use std::collections::BTreeMap;
use std::sync::Mutex;

use engine::hook::WatchEvent;
use engine::view::RequirementView;
use engine::{Command, CommandId, Config, Drift, Event, OnModuleFailure, ReleaseAction};
use serde_json::json;

use crate::build::{Files, config, configures, cron, drifted, files, patches, reread, sets};
use crate::world::World;

/// A small generator, so that a seed in a failure message is all one needs.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Returns the number in an environment variable, or nothing where it is not set.
#[expect(clippy::disallowed_methods, reason = "more is lived on demand")]
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Returns the seeds to live: as many as the variable `LIVES` says, or `lives`.
pub(crate) fn seeds(lives: u64) -> std::ops::Range<u64> {
    let from = number("LIVES_FROM").unwrap_or(0);
    from..from + number("LIVES").unwrap_or(lives)
}

/// Lives a life for each seed, on as many threads as there are processors. On one thread, the test that begins last would go on
/// alone for long after all others have ended.
pub(crate) fn live<S>(seeds: S, life: impl Fn(u64) + Sync)
where
    S: IntoIterator<Item = u64, IntoIter: Send>,
{
    let seeds = Mutex::new(seeds.into_iter());
    let next = || seeds.lock().unwrap().next();
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(seed) = next() {
                    life(seed);
                }
            });
        }
    });
}

const HOOKS: [&str; 8] = [
    "global/start.sh",
    "global/watch.sh",
    "global/all.sh",
    "alpha/life.sh",
    "alpha/watch.sh",
    "beta/tick.sh",
    "beta/life.sh",
    "gamma/side.sh",
];

fn catalog() -> Files {
    files()
        .global_hook("start.sh", "{onStartup: 1, schedule: [{name: tick, crontab: '1 * * * *', queue: side}]}")
        .global_hook("watch.sh", "kubernetes: [{name: pods, kind: Pod}, {name: nodes, kind: Node, queue: side}]")
        .global_hook("all.sh", "{beforeAll: 1, afterAll: 2}")
        .module(10, "alpha")
        .script()
        .hook("life.sh", "{onStartup: 1, beforeHelm: 1, afterHelm: 1, beforeDeleteHelm: 1, afterDeleteHelm: 1}")
        .hook("watch.sh", "kubernetes: [{name: pods, kind: Pod, group: g}, {name: things, kind: Thing, group: g, queue: side}]")
        .module(20, "beta")
        .script()
        .hook("tick.sh", "{settings: {executionMinInterval: 2s}, schedule: [{name: tick, crontab: '1 * * * *', allowFailure: true}]}")
        .hook("life.sh", "{beforeHelm: 2, afterDeleteHelm: 1}")
        .module(20, "gamma")
        .hooks_only()
        .script()
        .hook("side.sh", "{onStartup: 1, kubernetes: [{name: nodes, kind: Node, queue: own, waitForSynchronization: false}]}")
        .readiness(20)
        .module(15, "delta")
        .requires(&["beta", "gamma"])
}

fn faults(random: &mut Random, mut world: World) -> World {
    for hook in HOOKS {
        let key = hook.split('/').next().unwrap();
        for _ in 0..random.below(5) {
            let value = json!(random.below(3));
            let outcome = match random.below(7) {
                0 | 1 => Err(crate::world::failure("exit status 1")),
                2 => Ok(sets(&format!("/{key}/x"), &value)),
                3 => Ok(configures(&format!("/{key}/own"), &value)),
                4 => Ok(patches(&json!([{"op": "remove", "path": format!("/{key}/missing")}]))),
                5 => Ok(crate::hooks::creates(sets(&format!("/{key}/y"), &value))),
                _ => Ok(engine::HookOutput::default()),
            };
            world = world.hook(hook, outcome);
        }
        world = world.takes(hook, [1, 10, 300, 3_000][usize::try_from(random.below(4)).unwrap()]);
    }
    for module in ["alpha", "beta"] {
        for _ in 0..random.below(4) {
            let outcome = if random.below(2) == 0 { Err("timed out") } else { Ok(ReleaseAction::Upgraded) };
            world = world.release(module, outcome);
        }
    }
    for _ in 0..random.below(3) {
        world = world.patching(Err("forbidden")).saving(Err("conflict"));
        let module = ["alpha", "beta", "gamma"][usize::try_from(random.below(3)).unwrap()];
        world = world.script(module, if random.below(2) == 0 { Err("exit status 3") } else { Ok(true) });
    }
    world
}

fn events(random: &mut Random, mut world: World, last: &mut BTreeMap<&'static str, &'static str>) -> World {
    let mut version = 1_000;
    let mut at = 0;
    for _ in 0..random.below(30) {
        at += random.below(1_500);
        version += 1_000;
        let event = match random.below(12) {
            0..=3 => {
                let edits = [
                    ("alpha", "size: 1"),
                    ("alpha", "size: 2"),
                    ("alpha", "- : ["),
                    ("global", "zone: 1"),
                    ("global", "zone: 2"),
                    ("alphaEnabled", "false"),
                    ("alphaEnabled", "true"),
                    ("betaEnabled", "false"),
                    ("betaEnabled", "true"),
                    ("gammaEnabled", "false"),
                ];
                let (key, text) = edits[usize::try_from(random.below(10)).unwrap()];
                if random.below(5) == 0 {
                    last.remove(key);
                } else {
                    last.insert(key, text);
                }
                let pairs: Vec<(&str, &str)> = last.iter().map(|(key, text)| (*key, *text)).collect();
                config(version, &pairs)
            }
            4 | 5 => {
                let change = [WatchEvent::Added, WatchEvent::Modified, WatchEvent::Deleted]
                    [usize::try_from(random.below(3)).unwrap()];
                let kind = ["Pod", "Node", "Thing"][usize::try_from(random.below(3)).unwrap()];
                let name = ["a", "b"][usize::try_from(random.below(2)).unwrap()];
                world = world.change(at, kind, change, name);
                continue;
            }
            6 | 7 => cron("1 * * * *"),
            8 => drifted("alpha", Drift::Absent("x".into())),
            9 => Event::Commanded { id: CommandId::new(1), command: Command::Converge },
            10 => {
                let mut files = catalog();
                match random.below(3) {
                    0 => drop(files.modules.remove(1)),
                    1 => files.modules[0].content = 2 + random.below(3),
                    _ => {}
                }
                reread(&files)
            }
            _ => Event::KindAppeared { monitor: engine::MonitorId::new(random.below(6)) },
        };
        world = world.at(at, event);
    }
    world
        .at(at + 1, Event::CatalogChanged { catalog: catalog().catalog() })
        .at(at + 2, config(version + 1_000, &last.iter().map(|(k, t)| (*k, *t)).collect::<Vec<_>>()))
}

fn life(seed: u64) -> World {
    let mut random = Random(seed);
    let config = Config {
        namespace: "ops".to_owned(),
        on_module_failure: if random.below(2) == 0 { OnModuleFailure::Block } else { OnModuleFailure::Pass },
        module_concurrency: 1 + usize::try_from(random.below(3)).unwrap(),
        max_hooks: 1 + usize::try_from(random.below(4)).unwrap(),
        script_concurrency: 1 + usize::try_from(random.below(4)).unwrap(),
        retry_max_delay: std::time::Duration::from_secs(random.below(20)),
        ..Config::default()
    };
    // Modules do not wait for a place: `main`, the queues of parallel modules, and `side` have one process each.
    let most = config.max_hooks + 2 + config.module_concurrency;
    let mut world = World::with_config(&catalog(), config);
    world.repeats_answers = seed.is_multiple_of(16);
    world.is_quiet = true;
    world.readies_after = Some(random.below(40_000));
    if random.below(3) == 0 {
        world = world.without_kind("Thing");
    }
    world = faults(&mut random, world);
    let mut last = BTreeMap::new();
    world = events(&mut random, world, &mut last);
    let half = 5_000 + random.below(20_000);
    world.run_until(half);
    assert!(world.engine.view().processes <= most, "seed {seed}");
    world.kind_appears("Thing");
    world.run_until(3_600_000);
    world
}

fn check(seed: u64) {
    let world = life(seed);
    let view = world.view();
    for queue in &view.queues {
        assert!(queue.tasks.is_empty(), "seed {seed}: queue {} is stuck: {:?}", queue.name, queue.tasks);
    }
    assert!(view.converge.first_done && view.converge.tasks == 0, "seed {seed}: {:?}", view.converge);
    assert_eq!(view.processes, 0, "seed {seed}");
    for module in &view.modules {
        let expected =
            if module.enabled == Some(true) { ["running", "parked"] } else { ["disabled", "disabled"] };
        if module.phase == "waiting" {
            // Nothing but what is off keeps it from running.
            let lacks = |required: &RequirementView| {
                view.modules.iter().any(|other| other.name == required.module && other.enabled != Some(true))
            };
            assert!(module.requires.iter().any(lacks), "seed {seed}: {module:?}");
            continue;
        }
        assert!(expected.contains(&module.phase), "seed {seed}: {module:?}");
        let has_release = world.deployed.contains_key(module.name.as_str());
        let is_chart = module.name.as_str() != "gamma";
        assert_eq!(has_release, is_chart && module.enabled == Some(true), "seed {seed}: {module:?}");
    }
    assert!(world.steps < 5_000, "seed {seed}: {} events", world.steps);
}

#[test]
fn every_life_comes_to_rest_as_its_flags_say() {
    live(seeds(400), check);
}

#[test]
fn the_same_seed_gives_the_same_life() {
    let traced = |seed| {
        let world = life(seed).settled();
        format!("{:?}", world.notices)
    };
    assert_eq!(traced(7), traced(7));
}
