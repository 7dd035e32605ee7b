//! A clock that a process can't outsleep: it goes on while the machine is suspended, and nobody sets it.

use std::time::Duration;

/// Returns the time since the machine was started, the time in which it was suspended too.
pub fn since_boot() -> Duration {
    read(libc::CLOCK_BOOTTIME)
}

/// Returns how long the machine has been suspended since it was started, as near as two clocks can be read.
pub fn suspended() -> Duration {
    read(libc::CLOCK_BOOTTIME).saturating_sub(read(libc::CLOCK_MONOTONIC))
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    #[expect(unsafe_code, reason = "there is no safe wrapper for this clock")]
    // SAFETY: the pointer is valid for writes during the call, which writes a `timespec`.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if answer != 0 {
        // No kernel that runs this program refuses it; a time in the past ends all, which is the safe side.
        return Duration::MAX;
    }
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_the_system_says_and_never_goes_back() {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = text.split(' ').next().unwrap().parse().unwrap();
        let first = since_boot();
        assert!((first.as_secs_f64() - uptime).abs() < 5.0, "{first:?} {uptime}");
        assert!(since_boot() >= first);
        assert!(suspended() <= since_boot());
    }
}
