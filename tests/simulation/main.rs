//! The adapters of production under simulation: whole runs of the operator on a clock that stands still, behind a
//! network with faults, all of it drawn from a seed.
//!
//! `SIMULATION_SEED=N` replays one seed and prints its trace; `SIMULATION_SEEDS=COUNT` runs so many.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that stumbles over a surprise has done its job; most effects and faults are of no concern here"
)]

mod entropy;
mod hooks;
mod logs;
mod network;
mod operator;
mod people;
mod port;
mod properties;
mod run;
mod scenario;
mod seed;
mod ticks;
mod trace;
mod windows;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use addon_operator::config::Environment;
use heap::Heap;
use run::Run;
use seed::Seed;

/// The heap of the program: the limits of filters are counted in it.
#[global_allocator]
static HEAP: Heap = Heap;

/// How many seeds run without being asked for more.
const SEEDS: u64 = 1_000;

/// Seeds beyond those that failed once. They run as well.
const FAILED_ONCE: [u64; 26] = [
    1633, 2373, 2404, 4016, 4333, 5004, 5463, 6174, 6794, 8071, 8407, 8424, 8862, 9315, 9492, 9592, 9678,
    9739, 9881, 9940, 10316, 10452, 11917, 12943, 13128, 15021,
];

fn number(name: &str) -> Option<u64> {
    Environment::of_process().text(name).map(|text| text.parse().unwrap())
}

/// Returns what is told of a run that failed.
fn report(run: &Run, faults: &[String]) -> String {
    let few: Vec<&str> = faults.iter().take(12).map(String::as_str).collect();
    format!(
        "seed {} (SIMULATION_SEED={} prints its trace)\n  {}\n  faults of the network:\n    {}\n",
        run.seed.0,
        run.seed.0,
        few.join("\n  "),
        run.windows.join("\n    ")
    )
}

#[test]
fn whatever_the_network_does_all_properties_hold() {
    let replayed = number("SIMULATION_SEED");
    let (from, count) = (number("SIMULATION_FROM"), number("SIMULATION_SEEDS").unwrap_or(SEEDS));
    let seeds: Vec<u64> = match (replayed, from) {
        (Some(seed), _) => vec![seed],
        (None, Some(first)) => (first..first + count).collect(),
        (None, None) => (0..count).chain(FAILED_ONCE.into_iter().filter(|seed| *seed >= count)).collect(),
    };
    let next = AtomicUsize::new(0);
    let failed: Mutex<Vec<(u64, Vec<String>, String)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)).copied() else { return };
                    let run = run::run(Seed(seed));
                    let faults = properties::faults(&run);
                    if replayed.is_some() {
                        println!("{}", run.trace.join("\n"));
                        println!("{}", run.logs.join("\n"));
                    }
                    if !faults.is_empty() {
                        let report = report(&run, &faults);
                        failed.lock().unwrap().push((seed, faults, report));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort();
    let count = seeds.len();
    let seeds: Vec<u64> = failed.iter().map(|(seed, ..)| *seed).collect();
    // Of each property the first seeds are told.
    let mut told: Vec<&str> = Vec::new();
    for (sentence, _) in properties::ALL {
        let broken =
            failed.iter().filter(|(_, faults, _)| faults.iter().any(|fault| fault.contains(sentence)));
        let broken: Vec<&(u64, Vec<String>, String)> = broken.collect();
        if !broken.is_empty() {
            println!(
                "{} seeds: not true that {sentence}: {:?}",
                broken.len(),
                broken.iter().map(|(seed, ..)| seed).collect::<Vec<_>>()
            );
        }
        told.extend(broken.iter().take(2).map(|(_, _, report)| report.as_str()));
    }
    told.dedup();
    assert!(failed.is_empty(), "{} of {count} seeds failed: {seeds:?}\n{}", failed.len(), told.join("\n"));
}

#[test]
fn the_same_seed_has_the_same_trace() {
    for seed in [1, 2, 3, 8] {
        let [first, second] = [(); 2].map(|()| run::run(Seed(seed)).trace);
        let differs = first.iter().zip(&second).position(|(first, second)| first != second);
        let at = differs.unwrap_or(first.len().min(second.len()));
        let lines = |trace: &[String]| trace[at.saturating_sub(3)..(at + 2).min(trace.len())].join("\n");
        assert!(first == second, "seed {seed}, line {at}\n{}\nand then\n{}", lines(&first), lines(&second));
    }
}
