//! Limits of a run: time, memory and stack. A filter that passes one of them ends with an error. See docs/hooks.md#filters.
//!
//! Filters can't be interrupted from outside. So everything that can repeat without end checks here whether it
//! may continue: recursive definitions, generators, and functions that walk through values. Once a limit is
//! passed, all of them stop, and the results of the run are discarded.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use heap::held_by_thread;

/// How long a filter may work on one object.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);

/// How much one filter may hold while it works, in bytes.
const MOST_MEMORY: u32 = 128 * 1024 * 1024;

/// How much stack a filter may use on a thread without `use_stack`: half of what most threads have.
const USUAL_STACK: usize = 1024 * 1024;

/// How many units of work are done between two looks at the clock. One step of a filter is about one unit.
const WORK: u32 = 64;

/// How long a path may become.
pub(super) const LONGEST_PATH: usize = 10_000;

/// What a run may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long it may take.
    pub(super) time: Option<Duration>,
    /// How many bytes its thread may hold, besides those from before. Where the heap does not count, there is no limit.
    pub(super) memory: Option<u32>,
}

impl Limits {
    /// What filters of the operator may use.
    pub(super) const OPERATOR: Self = Self { time: Some(DEADLINE), memory: Some(MOST_MEMORY) };

    /// What filters of the `jq` command may use.
    pub(super) const NONE: Self = Self { time: None, memory: None };
}

/// A limit that a run has passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Exceeded {
    Time(Duration),
    Memory(u32),
    Stack,
    Path,
}

impl std::fmt::Display for Exceeded {
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
    static EXCEEDED: Cell<Option<Exceeded>> = const { Cell::new(None) };
}

/// The run on this thread.
#[derive(Clone, Copy)]
struct Run {
    limits: Limits,
    begun: Option<Instant>,
    /// How many bytes the thread held before.
    held: i64,
}

impl Run {
    const IDLE: Self = Self { limits: Limits::NONE, begun: None, held: 0 };
}

/// Sets how many bytes of stack filters may use on this thread.
pub(super) fn use_stack(bytes: usize) {
    STACK.set(bytes);
}

/// Begins a run: time, memory and stack are measured from here.
pub(super) fn begin(limits: Limits) {
    BASE.set(here());
    RUN.set(Run { limits, begun: limits.time.map(|_| Instant::now()), held: held_by_thread() });
    LEFT.set(WORK);
    EXCEEDED.set(None);
}

/// Ends a run. Returns the limit that it has passed.
pub(super) fn end() -> Option<Exceeded> {
    RUN.set(Run::IDLE);
    EXCEEDED.take()
}

/// Returns the approximate address of the stack's end.
#[inline(never)]
fn here() -> usize {
    let marker = black_box(0_u8);
    std::ptr::from_ref(&marker).addr()
}

/// Counts units of work. Returns whether the run may continue.
pub(super) fn go_on(work: usize) -> bool {
    let work = u32::try_from(work).unwrap_or(u32::MAX).saturating_add(1);
    match LEFT.get().checked_sub(work) {
        Some(left) => LEFT.set(left),
        None => look(),
    }
    EXCEEDED.get().is_none()
}

/// Counts work on this many bytes. Returns whether the run may continue.
pub(super) fn go_on_bytes(bytes: usize) -> bool {
    go_on(bytes / 256)
}

/// Checks the stack before a recursive call. Returns whether the run may continue.
pub(super) fn go_deeper() -> bool {
    if BASE.get().abs_diff(here()) > STACK.get() {
        pass(Exceeded::Stack);
    }
    go_on(0)
}

/// Records that the run has passed a limit; the first one counts.
pub(super) fn pass(limit: Exceeded) {
    if EXCEEDED.get().is_none() {
        EXCEEDED.set(Some(limit));
    }
}

/// Looks at the clock and at the memory.
fn look() {
    LEFT.set(WORK);
    let run = RUN.get();
    let Some(begun) = run.begun else { return };
    if let Some(time) = run.limits.time.filter(|time| begun.elapsed() >= *time) {
        pass(Exceeded::Time(time));
    }
    if let Some(most) = run.limits.memory.filter(|most| held_by_thread() - run.held > i64::from(*most)) {
        pass(Exceeded::Memory(most));
    }
}
