//! When crontab lines were in force, and when they fired: once at each of their moments.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::run::Run;

/// What happened to the lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tick {
    /// The engine wants them.
    On,
    /// The engine does not want them any more.
    Off,
    /// One fired.
    Fired,
}

/// What happened to the lines in one run, in its order: when, and to which operator. Clones are the same.
#[derive(Clone)]
pub(crate) struct Ticks(Instant, Arc<Mutex<Vec<(Duration, usize, Tick)>>>);

impl Ticks {
    /// Returns that nothing has happened yet. Time begins now.
    pub(crate) fn new() -> Self {
        Self(Instant::now(), Arc::default())
    }

    pub(crate) fn note(&self, life: usize, tick: Tick) {
        self.1.lock().unwrap().push((self.0.elapsed(), life, tick));
    }

    /// Returns all that happened so far.
    pub(crate) fn all(&self) -> Vec<(Duration, usize, Tick)> {
        self.1.lock().unwrap().clone()
    }
}

/// How far apart the moments of the line are.
const PERIOD: Duration = Duration::from_secs(30);

/// How late a line may fire. Only a second of it is the clock's: the driver may be busy.
const LATE: Duration = Duration::from_secs(2);

/// Returns the moments at which a line did not fire once while it was in force, and firings that nobody heard.
pub(crate) fn fire_once(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    // An operator that ends begins nothing: from when it is asked to, its lines may fire or not.
    let ends = run.lives.iter().enumerate().map(|(life, end)| (end.asked_at, life, Tick::Off));
    let lives = run.ticks.iter().copied().filter(|(at, life, _)| *at < run.lives[*life].asked_at);
    let mut all: Vec<(Duration, usize, Tick)> = lives.chain(ends).collect();
    all.sort_by_key(|(at, ..)| *at);
    let (mut since, mut fired): (Option<Duration>, Vec<Duration>) = (None, Vec::new());
    for (at, _, tick) in all {
        match tick {
            Tick::On => since = since.or(Some(at)),
            Tick::Fired if since.is_none() => found.push(format!("{at:?}: fired, but is not in force")),
            Tick::Fired => fired.push(at),
            Tick::Off => {
                let of_life = std::mem::take(&mut fired);
                if let Some(since) = since.take() {
                    found.extend(missed(since, at, &of_life));
                    found.extend(unheard(run, at, &of_life));
                }
            }
        }
    }
    found
}

/// Returns the firings of a line after which no hook ran, though the line was in force for long enough until `to`: an
/// operator that ends begins no hooks.
fn unheard(run: &Run, to: Duration, fired: &[Duration]) -> Vec<String> {
    let runs = || run.hook_runs.iter().filter(|(_, hook)| hook.ends_with("tick.sh"));
    let is_heard = |at: Duration| runs().any(|(ran, _)| at <= *ran && *ran <= at + PERIOD * 2);
    let in_time = fired.iter().filter(|at| **at + PERIOD * 2 < to);
    in_time.filter(|at| !is_heard(**at)).map(|at| format!("{at:?}: fired, and no hook ran")).collect()
}

/// Returns the moments between two times at which a line did not fire, and firings at no moment.
fn missed(from: Duration, to: Duration, fired: &[Duration]) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = fired.to_vec();
    for moment in (1_u32..).map(|nth| PERIOD * nth).skip_while(|moment| *moment <= from) {
        if moment + LATE >= to {
            left.retain(|at| *at < moment);
            break;
        }
        let before = left.len();
        left.retain(|at| *at < moment || *at > moment + LATE);
        if before - left.len() != 1 {
            found.push(format!(
                "in force from {from:?} to {to:?}: fired {} times at {moment:?}",
                before - left.len()
            ));
        }
    }
    found.extend(left.iter().map(|at| format!("{at:?}: fired at no moment of its line")));
    found
}
