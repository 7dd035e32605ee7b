//! The clock of schedules: crontab lines become events when they are due.
//!
//! What a line means, and what happens when the clock jumps, is computed by the engine. Here is one timer for the next
//! moment of all lines, and no task without lines.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::cron::{Agenda, Moment};
use engine::{CronLine, Event};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::driver::Inbox;
use crate::lasting_task::lasting;

/// The longest time between two checks of the clock: the machine may have slept, or its clock been set.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// Fires crontab lines.
pub struct Clock {
    lines: Option<watch::Sender<BTreeSet<CronLine>>>,
    /// What tells the time of day.
    wall: Arc<Wall>,
}

type Wall = dyn Fn() -> Timestamp + Send + Sync;

impl Default for Clock {
    fn default() -> Self {
        Self::by(Timestamp::now)
    }
}

impl Clock {
    /// Returns a clock that goes by `wall`.
    pub fn by(wall: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { lines: None, wall: Arc::new(wall) }
    }

    /// Replaces the lines that fire. Their events go to `inbox`. Without lines no task runs.
    pub fn set(&mut self, lines: BTreeSet<CronLine>, inbox: &Inbox) {
        if lines.is_empty() {
            // The task of the clock ends when the sender is dropped.
            self.lines = None;
            return;
        }
        match &self.lines {
            Some(running) if !running.is_closed() => {
                running.send_replace(lines);
            }
            Some(_) | None => {
                let (sender, receiver) = watch::channel(lines);
                self.lines = Some(sender);
                let (inbox, wall) = (inbox.clone(), Arc::clone(&self.wall));
                tokio::spawn(async move {
                    let run = || run(receiver.clone(), inbox.clone(), Arc::clone(&wall));
                    lasting("the clock of schedules", run).await;
                });
            }
        }
    }
}

/// Fires lines when they are due, until there are none.
async fn run(mut wanted: watch::Receiver<BTreeSet<CronLine>>, inbox: Inbox, wall: Arc<Wall>) {
    let begun = Instant::now();
    let now = || Moment { wall: wall(), steady: begun.elapsed() };
    let mut agenda = Agenda::new(TimeZone::system());
    wanted.mark_changed();
    loop {
        tokio::select! {
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                let lines = wanted.borrow_and_update().clone();
                // The engine checks lines when it reads configurations.
                for (line, error) in agenda.keep(&lines, now()).err().unwrap_or_default() {
                    tracing::error!(%line, %error, "a crontab line is not understood");
                }
            }
            () = tokio::time::sleep(wait(&agenda, wall())) => {}
        }
        for line in agenda.advance(now()) {
            if !inbox.event(Event::CronFired { line }).await {
                return;
            }
        }
    }
}

/// Returns the time until the next moment of a line, or until the clock has to be looked at anyway.
fn wait(agenda: &Agenda, now: Timestamp) -> Duration {
    let next = agenda.moments().map(|(_, due)| due).min();
    let wait = next.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
    wait.map_or(CHECK_INTERVAL, |wait| wait.min(CHECK_INTERVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_fires_until_it_is_taken_away() {
        let (inbox, _questions, mut channels) = crate::driver::channels();
        let mut clock = Clock::default();
        clock.set(BTreeSet::from([CronLine::from("* * * * * *")]), &inbox);
        for _ in 0..2 {
            let event = channels.next_event().await.unwrap();
            assert_eq!(event, Event::CronFired { line: CronLine::from("* * * * * *") });
        }
        clock.set(BTreeSet::new(), &inbox);
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_fires_at_each_of_its_moments_by_the_clock_that_is_given() {
        use jiff::SignedDuration;
        let (inbox, _questions, mut channels) = crate::driver::channels();
        let begun = Instant::now();
        let mut clock = Clock::by(move || {
            let passed = SignedDuration::try_from(begun.elapsed()).unwrap();
            Timestamp::from_second(1_800_000_000).unwrap().saturating_add(passed).unwrap()
        });
        clock.set(BTreeSet::from([CronLine::from("*/30 * * * * *")]), &inbox);
        for due in [30, 60, 90] {
            channels.next_event().await.unwrap();
            assert_eq!(begun.elapsed().as_secs(), due);
        }
    }

    #[tokio::test]
    async fn a_line_stops_at_once_when_it_is_taken_away() {
        let (inbox, _questions, mut channels) = crate::driver::channels();
        let mut clock = Clock::default();
        let lines = BTreeSet::from([CronLine::from("* * * * * *"), CronLine::from("0 0 1 1 *")]);
        clock.set(lines, &inbox);
        channels.next_event().await.unwrap();
        clock.set(BTreeSet::from([CronLine::from("0 0 1 1 *")]), &inbox);
        let mut more = 0;
        let counting = async {
            while channels.next_event().await.is_some() {
                more += 1;
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(2500), counting).await;
        assert!(more <= 1, "{more} firings came, and only one can have been on its way");
    }
}
