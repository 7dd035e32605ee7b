//! The heap of this program. It counts what each thread holds, so that one that takes too much can be told from its neighbours.
//!
//! The size of the process can't tell them apart: it grows for a chart that is rendered while a small filter runs.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The heap of the system, with a count for each thread. A program makes it its heap with `#[global_allocator]`.
#[derive(Clone, Copy, Debug)]
pub struct Heap;

thread_local! {
    // Neither made nor dropped by code that would need the heap itself.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// Returns how many bytes this thread took from the heap, less those that it gave back.
///
/// It is negative on a thread that frees what others took. Only differences mean something, and only where [`Heap`] is the
/// heap of the program; it stays 0 elsewhere.
pub fn held_by_thread() -> i64 {
    i64::try_from(HELD.get()).unwrap_or(i64::MAX)
}

/// Adds to the count of this thread.
///
/// A program spends so much of its time here that each step counts, above all where no optimiser joins them.
fn count(taken: usize, given_back: usize) {
    HELD.with(|held| {
        // No block is larger than what this type holds.
        held.set(held.get().wrapping_add(taken.cast_signed()).wrapping_sub(given_back.cast_signed()));
    });
}

#[expect(unsafe_code, reason = "a heap promises what the compiler can't check")]
// SAFETY: each call is passed on to the heap of the system as it is, and what that returns is returned.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the promises of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller keeps the promises of `realloc`.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static HEAP: Heap = Heap;

    #[test]
    fn each_thread_counts_what_it_holds_itself() {
        let before = held_by_thread();
        let other = std::thread::spawn(|| {
            let before = held_by_thread();
            let block = vec![1_u8; 10_000_000];
            assert_eq!(held_by_thread() - before, 10_000_000);
            block
        });
        let block = other.join().unwrap();
        assert!(held_by_thread() - before < 1_000_000, "what another thread took was counted here");
        let mut grown = vec![0_u8; 1_000];
        let small = held_by_thread();
        grown.reserve_exact(1_000_000);
        assert_eq!(held_by_thread() - small, 1_000_000);
        drop(block);
        assert!(held_by_thread() < before, "what another thread took was given back here");
    }
}
