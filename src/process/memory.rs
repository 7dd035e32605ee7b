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

/// Returns how many bytes of this process are in memory, with those of its files; 0 if the system does not say so.
pub fn resident() -> u64 {
    let pages = || -> Option<u64> {
        let counts = std::fs::read_to_string("/proc/self/statm").ok()?;
        counts.split_whitespace().nth(1)?.parse().ok()
    };
    pages().unwrap_or_default() * rustix::param::page_size() as u64
}

/// Returns free parts of the heap to the system, and the pages of the program, which are mapped again when they are needed.
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
    // A failure leaves the program mapped, which does no harm.
    let _ = unmap_program();
}

/// Unmaps the pages of this program's code and constants. They stay in the page cache of the system.
fn unmap_program() -> io::Result<()> {
    let program = std::env::current_exe()?;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for line in maps.lines().filter(|line| program.to_str().is_some_and(|path| line.ends_with(path))) {
        let Some((start, end)) = unwritten_range(line) else { continue };
        let place = std::ptr::without_provenance_mut::<libc::c_void>(start);
        #[expect(unsafe_code, reason = "only the system knows what is mapped")]
        // SAFETY: the range is code or constants of this program, mapped from its file and never written to: each of
        // its pages is read from the file again, with the same bytes, when it is needed.
        unsafe {
            libc::madvise(place, end.saturating_sub(start), libc::MADV_DONTNEED);
        }
    }
    Ok(())
}

/// Returns the bounds of a mapping if nobody ever wrote to it: read-only code, and the constants before it.
///
/// The file begins with constants. What can be read only behind the code was written to when the program was loaded.
fn unwritten_range(line: &str) -> Option<(usize, usize)> {
    let mut parts = line.split_whitespace();
    let (range, rights, offset) = (parts.next()?, parts.next()?, parts.next()?);
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let is_unwritten = rights == "r-xp" || (rights == "r--p" && number(offset)? == 0);
    is_unwritten.then_some((number(start)?, number(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_unmapped_and_runs_all_the_same() {
        for _ in 0..100 {
            unmap_program().unwrap();
            assert_eq!("12 345".split(' ').filter_map(|text| text.parse::<u32>().ok()).sum::<u32>(), 357);
        }
    }

    #[test]
    fn only_what_nobody_writes_to_is_meant() {
        let line = |rights: &str, offset: &str| {
            format!("5606993c0000-560699c1e000 {rights} {offset} fd:00 123   /usr/bin/x")
        };
        let whole = Some((0x5606_993c_0000, 0x5606_99c1_e000));
        for (rights, offset, found) in [
            ("r-xp", "00b0f000", whole),
            ("r-xp", "00000000", whole),
            ("r--p", "00000000", whole),
            ("r--p", "03054000", None),
            ("rw-p", "00000000", None),
            ("rwxp", "00b0f000", None),
            ("r-xs", "00b0f000", None),
        ] {
            assert_eq!(unwritten_range(&line(rights, offset)), found, "{rights} {offset}");
        }
        assert_eq!(unwritten_range("vsyscall"), None);
    }
}
