//! Limits of a run: time, memory and stack. A filter that passes one of them ends with an error, not with the process.
//!
//! Filters can't be interrupted from outside. So whatever can be repeated without end asks here whether it
//! may go on: definitions that call themselves, generators, and all that walks through values. Once a limit is
//! passed, nothing goes on any more, and what the run gave is thrown away.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use jaq_core::Exn;
use jaq_core::Native;
use jaq_core::ValX;
use jaq_core::box_iter::box_once;
use jaq_core::native::{Fun, v};

use super::arithmetic::short;
use super::inputs::Kind;
use super::value::{Val, fail};

/// How long a filter may work on one object.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);

/// By how much the process may grow while one filter works, in bytes.
const MOST_MEMORY: u64 = 128 * 1024 * 1024;

/// How much stack a filter may use on a thread that says nothing else: half of what most threads have.
const USUAL_STACK: usize = 1024 * 1024;

/// How much work is done between two looks at the clock. A unit is about what one step of a filter needs.
const WORK: u32 = 64;

/// How much time passes between two looks at the memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(4);

/// How long a path may become.
const LONGEST_PATH: usize = 10_000;

/// What a run may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long it may take.
    pub(super) time: Option<Duration>,
    /// By how many bytes the process may grow meanwhile.
    pub(super) memory: Option<u64>,
}

impl Limits {
    /// What filters of the operator may use.
    pub(super) const OPERATOR: Self = Self { time: Some(DEADLINE), memory: Some(MOST_MEMORY) };

    /// What filters of a program of its own may use.
    pub(super) const NONE: Self = Self { time: None, memory: None };
}

/// The limit that a run has passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Passed {
    Time(Duration),
    Memory(u64),
    Stack,
    Path,
}

impl std::fmt::Display for Passed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time(time) => {
                write!(f, "the filter took longer than {} s for one object", time.as_secs_f64())
            }
            Self::Memory(bytes) => {
                write!(f, "the filter needs more than {} MiB of memory", bytes / 1024 / 1024)
            }
            Self::Stack => f.write_str("the filter calls itself too often"),
            Self::Path => write!(f, "the filter makes a path with more than {LONGEST_PATH} parts"),
        }
    }
}

thread_local! {
    static STACK: Cell<usize> = const { Cell::new(USUAL_STACK) };
    static BASE: Cell<usize> = const { Cell::new(0) };
    static RUN: Cell<Run> = const { Cell::new(Run::IDLE) };
    static LEFT: Cell<u32> = const { Cell::new(WORK) };
    static PASSED: Cell<Option<Passed>> = const { Cell::new(None) };
}

/// What is known of the run on this thread.
#[derive(Clone, Copy)]
struct Run {
    limits: Limits,
    begun: Option<Instant>,
    /// When the memory was looked at, and how much it was the first time.
    memory: Option<(Instant, u64)>,
}

impl Run {
    const IDLE: Self = Self { limits: Limits::NONE, begun: None, memory: None };
}

/// Says that filters on this thread may use this many bytes of its stack.
pub(super) fn use_stack(bytes: usize) {
    STACK.set(bytes);
}

/// Begins a run: time, memory and stack are measured from here.
pub(super) fn begin(limits: Limits) {
    BASE.set(here());
    RUN.set(Run { limits, begun: limits.time.map(|_| Instant::now()), memory: None });
    LEFT.set(WORK);
    PASSED.set(None);
}

/// Ends a run. Returns the limit that it has passed.
pub(super) fn end() -> Option<Passed> {
    RUN.set(Run::IDLE);
    PASSED.take()
}

/// Returns about where the stack ends now.
#[inline(never)]
fn here() -> usize {
    let marker = black_box(0_u8);
    std::ptr::from_ref(&marker).addr()
}

/// Takes in that so much work was done. Returns whether the run may go on.
pub(super) fn go_on(work: usize) -> bool {
    let work = u32::try_from(work).unwrap_or(u32::MAX).saturating_add(1);
    match LEFT.get().checked_sub(work) {
        Some(left) => LEFT.set(left),
        None => look(),
    }
    PASSED.get().is_none()
}

/// The same for work on so many bytes.
pub(super) fn go_on_bytes(bytes: usize) -> bool {
    go_on(bytes / 256)
}

/// The same before a function calls itself for what is inside a value.
pub(super) fn go_deeper() -> bool {
    if BASE.get().abs_diff(here()) > STACK.get() {
        pass(Passed::Stack);
    }
    go_on(0)
}

fn pass(limit: Passed) {
    if PASSED.get().is_none() {
        PASSED.set(Some(limit));
    }
}

/// Looks at the clock, and from time to time at the memory.
fn look() {
    LEFT.set(WORK);
    let mut run = RUN.get();
    let Some(begun) = run.begun else { return };
    let now = Instant::now();
    if let Some(time) = run.limits.time.filter(|time| now.duration_since(begun) >= *time) {
        pass(Passed::Time(time));
    }
    let Some(most) = run.limits.memory else { return };
    let last = run.memory.map_or(begun, |(last, _)| last);
    if now.duration_since(last) < MEMORY_INTERVAL {
        return;
    }
    let Some(used) = memory() else { return };
    let first = run.memory.map_or(used, |(_, first)| first);
    if used.saturating_sub(first) > most {
        pass(Passed::Memory(most));
    }
    run.memory = Some((now, first));
    RUN.set(run);
}

/// Returns how much memory the process uses, in bytes; `None` where the system does not tell.
fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns what no filter can catch; the run has passed a limit.
fn stop<'a, T>() -> ValX<'a, T, Val> {
    Err(Exn::halt(0))
}

/// Returns the functions that keep what repeats itself within the limits.
pub(super) fn funs() -> impl Iterator<Item = Fun<Kind>> {
    // Stands at the beginning of each definition that may call itself. It changes nothing.
    let guard = Native::new(|cv| box_once(if go_deeper() { Ok(cv.1) } else { stop() }))
        .with_paths(|cv| {
            if cv.1.1.skip(LONGEST_PATH).head().is_some() {
                pass(Passed::Path);
            }
            box_once(if go_deeper() { Ok(cv.1) } else { stop() })
        })
        .with_update(|cv, update| if go_deeper() { update(cv.1) } else { box_once(stop()) });
    let range = Native::new(|mut cv| {
        let (by, to, from) = (cv.0.pop_var(), cv.0.pop_var(), cv.0.pop_var());
        Box::new(range(from, to, by))
    });
    [("native_guard", v(0), guard), ("native_range", v(3), range)].into_iter()
}

/// Returns the values from one to another, without the latter.
fn range<'a>(from: Val, to: Val, by: Val) -> impl Iterator<Item = ValX<'a, Val>> {
    let zero = Val::Int(0);
    let direction = by.cmp(&zero);
    let wrong = [&from, &to, &by].into_iter().find(|value| value.as_float().is_none()).map(|other| {
        fail(format!("range expects numbers but got: {} ({})", other.type_name(), short(other)))
    });
    let mut next = Some(wrong.unwrap_or(Ok(from)));
    std::iter::from_fn(move || {
        let current = match next.take()? {
            Ok(current) => current,
            Err(error) => return Some(Err(Exn::from(error))),
        };
        let goes_on = match direction {
            std::cmp::Ordering::Greater => current < to,
            std::cmp::Ordering::Less => current > to,
            std::cmp::Ordering::Equal => current != to,
        };
        if !goes_on {
            return None;
        }
        if !go_on(0) {
            return Some(stop());
        }
        next = Some(current.clone() + by.clone());
        Some(Ok(current))
    })
}
