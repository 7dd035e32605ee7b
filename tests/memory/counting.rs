//! An allocator that counts what is held, for tests that say that nothing grows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The allocator of the system, counted.
pub(crate) struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: Cell<isize> = const { Cell::new(0) };
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

/// Returns how many bytes all threads hold.
pub(crate) fn live() -> usize {
    LIVE.load(Ordering::SeqCst)
}

/// Returns how many bytes this thread has taken and not given back. What it gave back for others counts, too.
pub(crate) fn live_here() -> isize {
    HERE.get()
}

/// Returns how many bytes this thread ever took, whether it gave them back or not.
pub(crate) fn taken_here() -> usize {
    TAKEN.get()
}

/// Forgets the peak. What is held now is the least that the next one can be.
pub(crate) fn begin_peak() {
    PEAK.store(live(), Ordering::SeqCst);
}

/// Returns the most that all threads together held since the last beginning.
pub(crate) fn peak() -> usize {
    PEAK.load(Ordering::SeqCst)
}

fn took(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::SeqCst) + bytes;
    PEAK.fetch_max(live, Ordering::SeqCst);
    // A thread that ends has no counter any more.
    let _ = HERE.try_with(|here| here.set(here.get().wrapping_add_unsigned(bytes)));
    let _ = TAKEN.try_with(|taken| taken.set(taken.get().wrapping_add(bytes)));
}

fn gave(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::SeqCst);
    let _ = HERE.try_with(|here| here.set(here.get().wrapping_sub_unsigned(bytes)));
}

#[expect(unsafe_code, reason = "an allocator is unsafe by nature; this one only counts")]
// SAFETY: every call goes to the allocator of the system unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller keeps the promises of the trait.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        gave(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both exist for a moment, unless the system knows better.
        took(size);
        gave(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}
