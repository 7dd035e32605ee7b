//! The memory of this process: one heap for all threads, and unused memory is returned to the system.
//!
//! The allocator of glibc keeps a heap for each thread, and keeps what was freed in all of them. Code that ran once
//! stays mapped. An operator needs much memory at its start and little later.

use std::io;

/// From how many bytes on an allocation is mapped on its own, and returned to the system when it is freed.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 128 * 1024;

/// Makes all threads share one heap. Call this once, before there are other threads.
///
/// It does nothing with another allocator.
pub fn share_heap() {
    // The threads here rarely allocate at the same time, and small pieces come from caches of their own.
    #[cfg(target_env = "gnu")]
    for (parameter, value) in
        [(libc::M_ARENA_MAX, 1), (libc::M_MMAP_THRESHOLD, LARGE), (libc::M_TRIM_THRESHOLD, LARGE)]
    {
        #[expect(unsafe_code, reason = "nothing else sets the parameters of the allocator")]
        // SAFETY: the call has two numbers as arguments and refuses unknown ones.
        unsafe {
            libc::mallopt(parameter, value);
        }
    }
}

/// Returns free parts of the heap to the system, and the pages of code, which are mapped again when they run.
///
/// It takes a few milliseconds, during which other threads can't allocate.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "nothing else makes the allocator give back what is free")]
        // SAFETY: the call has a number as argument and touches only free memory.
        unsafe {
            libc::malloc_trim(0);
        }
    }
    // A failure leaves the code mapped, which does no harm.
    let _ = unmap_code();
}

/// Unmaps the pages of this program's code. They stay in the page cache of the system.
fn unmap_code() -> io::Result<()> {
    let program = std::env::current_exe()?;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for line in maps.lines().filter(|line| program.to_str().is_some_and(|path| line.ends_with(path))) {
        let Some((start, end)) = code_range(line) else { continue };
        let place = std::ptr::without_provenance_mut::<libc::c_void>(start);
        #[expect(unsafe_code, reason = "only the system knows what is mapped")]
        // SAFETY: the range is code of this program, mapped from its file and never written to: each of its pages
        // is read from the file again, with the same bytes, when it is needed.
        unsafe {
            libc::madvise(place, end.saturating_sub(start), libc::MADV_DONTNEED);
        }
    }
    Ok(())
}

/// Returns the bounds of a mapping if it is read-only code.
fn code_range(line: &str) -> Option<(usize, usize)> {
    let mut parts = line.split_whitespace();
    let (range, rights) = (parts.next()?, parts.next()?);
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    (rights == "r-xp").then_some((address(start)?, address(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_unmapped_and_runs_all_the_same() {
        for _ in 0..100 {
            unmap_code().unwrap();
            assert_eq!("12 345".split(' ').filter_map(|text| text.parse::<u32>().ok()).sum::<u32>(), 357);
        }
    }

    #[test]
    fn only_code_that_nobody_writes_to_is_meant() {
        let line =
            |rights: &str| format!("5606993c0000-560699c1e000 {rights} 00000000 fd:00 123   /usr/bin/x");
        assert_eq!(code_range(&line("r-xp")), Some((0x5606_993c_0000, 0x5606_99c1_e000)));
        for rights in ["r--p", "rw-p", "rwxp", "r-xs"] {
            assert_eq!(code_range(&line(rights)), None);
        }
        assert_eq!(code_range("vsyscall"), None);
    }
}
