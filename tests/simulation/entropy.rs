//! Random numbers of a run come from its seed: those of hash tables, of `select!`, of back-off.
//!
//! All of them ask `getrandom` of the C library, which this binary replaces. Threads that did not ask for it get the
//! numbers of the system.

use std::cell::Cell;
use std::ffi::{c_long, c_uint, c_void};

thread_local! {
    static STATE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Has the random numbers of this thread follow from `seed`, from now on.
pub(crate) fn seed_thread(seed: u64) {
    STATE.set(Some(seed));
}

/// Returns the next number of splitmix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Fills a buffer with random bytes, as the function of the C library.
///
/// # Safety
///
/// `buffer` has room for `length` bytes.
#[expect(unsafe_code, reason = "the function of the C library has no other form")]
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
    let Some(mut state) = STATE.try_with(Cell::get).ok().flatten() else {
        // SAFETY: these are the arguments that this function was called with.
        let filled: c_long = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
        return isize::try_from(filled).unwrap_or(-1);
    };
    // SAFETY: the caller owns these bytes; nobody reads them before they are written.
    let bytes = unsafe {
        std::ptr::write_bytes(buffer.cast::<u8>(), 0, length);
        std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length)
    };
    for chunk in bytes.chunks_mut(8) {
        let number = next(&mut state).to_le_bytes();
        chunk.copy_from_slice(&number[..chunk.len()]);
    }
    STATE.set(Some(state));
    isize::try_from(length).unwrap_or(-1)
}
