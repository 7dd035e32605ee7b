//! The memory of this process: a heap in one piece, and what only the start needed given back to the system.
//!
//! The allocator of glibc keeps a heap for each thread, and keeps what was freed in all of them. Code that ran once
//! stays mapped. An operator works hard at its start and rests then; what it needed meanwhile belongs to others.

use std::io;

/// From how many bytes on a piece of memory comes straight from the system, and goes back there when it is freed.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 128 * 1024;

/// Lets all threads share one heap. To be called once, before there are other threads.
///
/// A system with another allocator stays as it is.
pub fn share_heap() {
    // The threads here rarely allocate at the same time, and small pieces come from caches of their own.
    #[cfg(target_env = "gnu")]
    for (parameter, value) in
        [(libc::M_ARENA_MAX, 1), (libc::M_MMAP_THRESHOLD, LARGE), (libc::M_TRIM_THRESHOLD, LARGE)]
    {
        #[expect(unsafe_code, reason = "nothing else sets the parameters of the allocator")]
        // SAFETY: the call takes two numbers, and refuses those that it does not know.
        unsafe {
            libc::mallopt(parameter, value);
        }
    }
}

/// Gives back what is free of the heap, and the code that did not run lately: it is mapped again when it runs.
///
/// Takes a few milliseconds; others that allocate wait for it.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "nothing else makes the allocator give back what is free")]
        // SAFETY: the call takes a number and touches only what nobody holds.
        unsafe {
            libc::malloc_trim(0);
        }
    }
    // Code that stays mapped does no harm.
    let _ = unmap_code();
}

/// Takes the pages of this program's code out of the process. They stay in the cache of the system.
fn unmap_code() -> io::Result<()> {
    let program = std::env::current_exe()?;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for line in maps.lines().filter(|line| program.to_str().is_some_and(|path| line.ends_with(path))) {
        let Some((start, end)) = code_range(line) else { continue };
        let place = std::ptr::without_provenance_mut::<libc::c_void>(start);
        #[expect(unsafe_code, reason = "only the system knows what is mapped")]
        // SAFETY: the range is code of this program, mapped from its file and never written to: each of its pages
        // is read from the file again, with the same bytes, when somebody needs it.
        unsafe {
            libc::madvise(place, end.saturating_sub(start), libc::MADV_DONTNEED);
        }
    }
    Ok(())
}

/// Returns where a mapping begins and ends if it is code that nobody can write to.
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

    /// Returns how many bytes of a kind this process has.
    fn resident(kind: &str) -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
        line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn what_is_free_goes_back_to_the_system_though_something_lies_behind_it() {
        const PIECES: usize = 60_000;
        let pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; 1_000]).collect();
        let behind = vec![1_u8; 1_000];
        let before = resident("RssAnon:");
        drop(pieces);
        give_back();
        let after = resident("RssAnon:");
        // Other tests of this process take and give memory meanwhile.
        assert!(before.saturating_sub(after) > PIECES * 1_000 / 2, "{before} bytes, then {after}");
        drop(behind);
    }

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
