//! What this process uses of the system, as its metrics say.

use std::fs;
use std::io;

use rustix::process::{Resource, getrlimit};

/// What this process uses at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Processor time of all its threads, in the kernel too, in seconds.
    pub cpu_seconds: f64,
    /// How many files, sockets and pipes it has open.
    pub open_files: u64,
    /// How many it may have open, if there is a limit.
    pub max_files: Option<u64>,
    /// Addresses that it has taken, in bytes.
    pub virtual_bytes: u64,
    /// Memory that it has, in bytes.
    pub resident_bytes: u64,
    /// How many threads it has.
    pub threads: u64,
}

/// A line of `/proc/self/stat`.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    started_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

/// Returns what this process uses now.
pub fn usage() -> io::Result<Usage> {
    let stat = stat()?;
    // The directory that is read is open, too.
    let open_files = fs::read_dir("/proc/self/fd")?.count().saturating_sub(1);
    Ok(Usage {
        cpu_seconds: seconds(stat.cpu_ticks),
        open_files: u64::try_from(open_files).unwrap_or(u64::MAX),
        max_files: getrlimit(Resource::Nofile).current,
        virtual_bytes: stat.virtual_bytes,
        resident_bytes: stat.resident_pages.saturating_mul(rustix::param::page_size() as u64),
        threads: stat.threads,
    })
}

/// Returns when this process was started, in seconds since 1970.
pub fn started_at() -> io::Result<f64> {
    let system = fs::read_to_string("/proc/stat")?;
    let booted = system.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u32>().ok());
    let booted = booted.ok_or_else(|| io::Error::other("/proc/stat has no line btime"))?;
    Ok(f64::from(booted) + seconds(stat()?.started_ticks))
}

fn stat() -> io::Result<Stat> {
    let line = fs::read_to_string("/proc/self/stat")?;
    parse(&line).ok_or_else(|| io::Error::other("/proc/self/stat is not as expected"))
}

/// Reads a line of `/proc/self/stat`. The name of the program stands in parentheses and may hold anything.
fn parse(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // What is behind the name begins with field 3.
    let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<u64>().ok();
    Some(Stat {
        cpu_ticks: field(14)?.saturating_add(field(15)?),
        threads: field(20)?,
        started_ticks: field(22)?,
        virtual_bytes: field(23)?,
        resident_pages: field(24)?,
    })
}

#[expect(clippy::cast_precision_loss, reason = "a process does not run for so long")]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_program_is_called() {
        let line = "7 (a) R (b) S 1 7 7 0 -1 4194304 99 0 0 0 120 30 5 6 20 0 8 0 4242 1048576 250 18446744073709551615 1";
        let expected = Stat {
            cpu_ticks: 150,
            threads: 8,
            started_ticks: 4242,
            virtual_bytes: 1_048_576,
            resident_pages: 250,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("7 (a) S 1"), None);
    }

    #[test]
    fn what_is_used_is_seen() {
        let before = usage().unwrap();
        let files: Vec<_> = (0..50).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let block = black_box(vec![1_u8; 64 << 20]);
        let begin = Instant::now();
        let after = loop {
            let now = usage().unwrap();
            if now.cpu_seconds > before.cpu_seconds || begin.elapsed() > Duration::from_mins(1) {
                break now;
            }
        };
        assert!(after.cpu_seconds > before.cpu_seconds);
        // Other tests of this process open and close files, too.
        assert!(after.open_files >= 50, "{after:?}");
        assert!(after.max_files.is_none_or(|most| most >= after.open_files));
        assert!(after.resident_bytes >= 64 << 20, "{after:?}");
        assert!(after.virtual_bytes >= after.resident_bytes);
        assert!(after.threads >= 1);
        let (_, _) = (files, block);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let started = started_at().unwrap();
        assert!(started <= now + 2.0 && started > now - 24.0 * 3600.0, "{started} {now}");
    }
}
