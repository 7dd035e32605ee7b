//! When crontab lines are due, whatever the clock on the wall does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{CronError, Schedule};
use crate::name::CronLine;

/// How far the two clocks may drift apart between two looks before it counts as a jump.
const JUMP: SignedDuration = SignedDuration::from_secs(2);

/// By how much the clock may be set back before moments that have fired come again.
const REPEATED: SignedDuration = SignedDuration::from_mins(5);

/// Crontab lines and the next moment of each.
///
/// It is told the time, and says which lines are due. A line fires once however many of its moments were missed,
/// because the machine slept or the clock was set forward. After the clock was set back by more than five minutes
/// moments come again as the clock shows them; if it was less, none comes twice.
#[derive(Debug)]
pub struct Agenda {
    zone: TimeZone,
    entries: BTreeMap<CronLine, Entry>,
    seen: Option<Moment>,
}

/// Both clocks at the same moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Moment {
    /// What the clock on the wall shows.
    pub wall: Timestamp,
    /// What a clock shows that nobody sets. Only differences count; it may stand still while the machine sleeps.
    pub steady: Duration,
}

#[derive(Debug)]
struct Entry {
    schedule: Schedule,
    due: Option<Timestamp>,
    fired: Option<Timestamp>,
}

impl Agenda {
    /// Returns an agenda without lines. `zone` is where lines are read that name none.
    pub fn new(zone: TimeZone) -> Self {
        Self { zone, entries: BTreeMap::new(), seen: None }
    }

    /// Keeps exactly `lines`. Those that stay keep their moments, those that come count from `now` on.
    ///
    /// # Errors
    ///
    /// Lines that are not understood are left out and returned.
    pub fn keep(
        &mut self,
        lines: &BTreeSet<CronLine>,
        now: Moment,
    ) -> Result<(), Vec<(CronLine, CronError)>> {
        self.entries.retain(|line, _| lines.contains(line));
        let mut wrong = Vec::new();
        for line in lines {
            if self.entries.contains_key(line) {
                continue;
            }
            match Schedule::parse(line.as_str()) {
                Ok(schedule) => {
                    let due = schedule.next(now.wall, &self.zone);
                    self.entries.insert(line.clone(), Entry { schedule, due, fired: None });
                }
                Err(error) => wrong.push((line.clone(), error)),
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Returns the lines that are due, the earliest first. Each gets its next moment.
    pub fn advance(&mut self, now: Moment) -> Vec<CronLine> {
        let was_set_back = self.seen.is_some_and(|before| {
            let passed = SignedDuration::try_from(now.steady.saturating_sub(before.steady));
            now.wall.duration_since(before.wall) < passed.unwrap_or_default() - JUMP
        });
        self.seen = Some(now);
        let mut due = Vec::new();
        for (line, entry) in &mut self.entries {
            match entry.due.filter(|moment| *moment <= now.wall) {
                Some(moment) => {
                    due.push((moment, line.clone()));
                    entry.fired = Some(now.wall);
                    entry.due = entry.schedule.next(now.wall, &self.zone);
                }
                None if was_set_back => {
                    let is_near = |fired: &Timestamp| fired.duration_since(now.wall) <= REPEATED;
                    let after = entry.fired.filter(is_near).map_or(now.wall, |fired| fired.max(now.wall));
                    entry.due = entry.schedule.next(after, &self.zone);
                }
                None => {}
            }
        }
        due.sort();
        due.into_iter().map(|(_, line)| line).collect()
    }

    /// Returns the next moment of each line that has one.
    pub fn moments(&self) -> impl Iterator<Item = (&CronLine, Timestamp)> {
        self.entries.iter().filter_map(|(line, entry)| Some((line, entry.due?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agenda with clocks that a test moves.
    struct World {
        agenda: Agenda,
        now: Moment,
    }

    impl World {
        fn new(zone: &str, start: &str, lines: &[&str]) -> Self {
            let now = Moment { wall: start.parse().unwrap(), steady: Duration::ZERO };
            let mut world = Self { agenda: Agenda::new(TimeZone::get(zone).unwrap()), now };
            world.keep(lines);
            assert!(world.agenda.advance(now).is_empty());
            world
        }

        fn keep(&mut self, lines: &[&str]) {
            let lines = lines.iter().map(|line| CronLine::from(*line)).collect();
            self.agenda.keep(&lines, self.now).unwrap();
        }

        /// Lets `seconds` pass, second by second, and returns the lines that fired with what the clock showed.
        fn pass(&mut self, seconds: u32) -> Vec<String> {
            let mut fired = Vec::new();
            for _ in 0..seconds {
                self.now.wall += SignedDuration::from_secs(1);
                self.now.steady += Duration::from_secs(1);
                fired.extend(self.look());
            }
            fired
        }

        /// Sets the clock on the wall.
        fn set(&mut self, wall: &str) -> Vec<String> {
            self.now.wall = wall.parse().unwrap();
            self.look()
        }

        fn look(&mut self) -> Vec<String> {
            let shown = self.now.wall.strftime("%H:%M:%S").to_string();
            self.agenda.advance(self.now).iter().map(|line| format!("{shown} {line}")).collect()
        }
    }

    #[test]
    fn lines_fire_at_their_moments_and_not_in_between() {
        let mut world =
            World::new("UTC", "2024-01-01T00:00:30Z", &["* * * * *", "20,40 * * * * *", "@every 90s"]);
        assert_eq!(
            world.pass(95),
            [
                "00:00:40 20,40 * * * * *",
                "00:01:00 * * * * *",
                "00:01:20 20,40 * * * * *",
                "00:01:40 20,40 * * * * *",
                "00:02:00 * * * * *",
                "00:02:00 @every 90s",
            ]
        );
    }

    #[test]
    fn f_c12_what_a_sleep_or_a_clock_set_forward_left_out_fires_once() {
        let mut world = World::new("UTC", "2024-01-01T00:00:30Z", &["* * * * *", "0 * * * *", "0 0 1 6 *"]);
        assert_eq!(world.set("2024-01-01T05:30:10Z"), ["05:30:10 * * * * *", "05:30:10 0 * * * *"]);
        assert_eq!(world.pass(60), ["05:31:00 * * * * *"]);
        let mut asleep = World::new("UTC", "2024-01-01T00:00:30Z", &["0 * * * *"]);
        asleep.now.steady += Duration::from_secs(1);
        assert_eq!(
            asleep.set("2024-01-03T12:20:00Z"),
            ["12:20:00 0 * * * *"],
            "the steady clock stood still"
        );
        assert_eq!(asleep.pass(2400), ["13:00:00 0 * * * *"]);
    }

    #[test]
    fn f_c12_a_clock_set_back_a_little_repeats_nothing_and_misses_nothing() {
        let mut world = World::new("UTC", "2024-01-01T00:59:58Z", &["0 * * * *", "* * * * *"]);
        assert_eq!(world.pass(5), ["01:00:00 * * * * *", "01:00:00 0 * * * *"]);
        for back in ["2024-01-01T01:00:02Z", "2024-01-01T00:59:40Z", "2024-01-01T00:58:30Z"] {
            assert!(world.set(back).is_empty(), "{back}");
        }
        assert_eq!(world.pass(150), ["01:01:00 * * * * *"]);
    }

    #[test]
    fn f_c12_a_clock_set_back_by_hours_is_followed() {
        let mut world = World::new("UTC", "2024-01-01T05:59:59Z", &["0 * * * *", "* * * * *"]);
        assert_eq!(world.pass(2).len(), 2);
        assert!(world.set("2024-01-01T02:58:30Z").is_empty());
        assert_eq!(world.pass(90), ["02:59:00 * * * * *", "03:00:00 * * * * *", "03:00:00 0 * * * *"]);
    }

    #[test]
    fn f_c12_summer_time_skips_and_repeats_what_the_clock_on_the_wall_does() {
        // 31 March 2024, 02:00 is 03:00 in Berlin.
        let mut spring = World::new("Europe/Berlin", "2024-03-31T00:29:59Z", &["30 * * * *", "30 2 * * *"]);
        assert_eq!(
            spring.pass(2 * 3600),
            ["00:30:00 30 * * * *", "01:30:00 30 * * * *"],
            "03:30 follows 01:30"
        );
        assert_eq!(
            spring.set("2024-03-31T23:59:00Z"),
            ["23:59:00 30 * * * *"],
            "there is no 02:30 on that day"
        );
        assert_eq!(spring.set("2024-04-01T00:30:00Z"), ["00:30:00 30 * * * *", "00:30:00 30 2 * * *"]);
        // 27 October 2024, 03:00 is 02:00 again.
        let mut autumn = World::new("Europe/Berlin", "2024-10-26T23:59:59Z", &["0 * * * *", "30 2 * * *"]);
        assert_eq!(
            autumn.pass(3 * 3600),
            [
                "00:00:00 0 * * * *",
                "00:30:00 30 2 * * *",
                "01:00:00 0 * * * *",
                "01:30:00 30 2 * * *",
                "02:00:00 0 * * * *"
            ]
        );
    }

    #[test]
    fn f_c12_a_leap_day_comes_every_four_years() {
        let mut world = World::new("UTC", "2023-02-28T23:59:00Z", &["0 0 29 2 *", "0 0 30 2 *"]);
        assert_eq!(world.agenda.moments().count(), 1, "30 February never comes");
        assert!(world.set("2024-02-28T23:59:59Z").is_empty());
        assert_eq!(world.pass(2), ["00:00:00 0 0 29 2 *"]);
        assert_eq!(world.agenda.moments().next().unwrap().1.to_string(), "2028-02-29T00:00:00Z");
    }

    #[test]
    fn f_c12_lines_come_and_go_without_disturbing_the_others() {
        let mut world = World::new("UTC", "2024-01-01T00:00:30Z", &["@every 40s", "* * * * *"]);
        assert_eq!(world.pass(20).len(), 0);
        world.keep(&["@every 40s", "@every 30s"]);
        assert_eq!(world.pass(30), ["00:01:10 @every 40s", "00:01:20 @every 30s"]);
        world.keep(&[]);
        assert!(world.pass(100).is_empty());
        let bad = [CronLine::from(""), CronLine::from("x"), CronLine::from("* * * * * *")].into();
        let wrong = world.agenda.keep(&bad, world.now).unwrap_err();
        assert_eq!(wrong.iter().map(|(line, _)| line.as_str()).collect::<Vec<_>>(), ["", "x"]);
        assert_eq!(world.pass(1).len(), 1, "the good line fires all the same");
    }

    proptest::proptest! {
        #[test]
        fn whatever_the_clock_does_every_line_has_its_next_moment_ahead(
            jumps in proptest::collection::vec((-100_000_i64..100_000, 0_u64..1_000), 1..40),
        ) {
            let mut world = World::new("Europe/Berlin", "2024-03-30T12:00:00Z", &["*/5 * * * *", "@every 7s"]);
            for (wall, steady) in jumps {
                world.now.wall += SignedDuration::from_secs(wall);
                world.now.steady += Duration::from_secs(steady);
                world.look();
                let now = world.now.wall;
                let limit = SignedDuration::from_secs(3600) + REPEATED;
                for (line, due) in world.agenda.moments() {
                    proptest::prop_assert!(due > now && due.duration_since(now) <= limit, "{line}: {due} at {now}");
                }
                proptest::prop_assert_eq!(world.agenda.moments().count(), 2);
            }
        }
    }
}
