//! What must hold for every crontab line.

use engine::cron::Schedule;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Reads a moment and a line from `bytes`; the next moment must be later, and the one before it must lead to it.
pub(crate) fn run(bytes: &[u8]) {
    let Some((moment, line)) = bytes.split_first_chunk::<4>() else { return };
    let Ok(line) = std::str::from_utf8(line) else { return };
    let after = Timestamp::from_second(i64::from(u32::from_le_bytes(*moment))).unwrap();
    let Ok(schedule) = Schedule::parse(line) else { return };
    let zone = TimeZone::get("America/New_York").unwrap();
    let Some(next) = schedule.next(after, &zone) else { return };
    assert!(next > after, "{line}");
    if !line.contains("@every") {
        let before = Timestamp::from_second(next.as_second() - 1).unwrap();
        assert_eq!(schedule.next(before, &zone), Some(next), "{line}");
    }
}
