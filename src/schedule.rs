//! The clock of schedules: crontab lines become events when they are due.
//!
//! What a line means, and what happens when the clock jumps, is computed by the engine.
//! `tokio-cron-scheduler` is the alarm: one job for the next moment of each line, and no scheduler without lines.
//! `docs/operating.md` says why it does not get the lines themselves. One timer finds what is due although no job fired.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::cron::{Agenda, Moment};
use engine::{CronLine, Event};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use uuid::Uuid;

use crate::driver::Inbox;

/// How late a job may be before its line fires without it. The scheduler checks its jobs twice a second.
const TOLERANCE: Duration = Duration::from_millis(1500);

/// The longest time between two checks of the clock: the machine may have slept, or its clock been set.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// Fires crontab lines.
#[derive(Debug, Default)]
pub struct Clock {
    lines: Option<watch::Sender<BTreeSet<CronLine>>>,
}

impl Clock {
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
                tokio::spawn(run(receiver, inbox.clone()));
            }
        }
    }
}

async fn run(mut wanted: watch::Receiver<BTreeSet<CronLine>>, inbox: Inbox) {
    let (alarm, mut alarms) = mpsc::unbounded_channel();
    let mut jobs = match Jobs::new(alarm, true).await {
        Ok(jobs) => jobs,
        Err(error) => {
            tracing::error!(%error, "the clock of schedules can't start");
            return;
        }
    };
    fire_due_lines(&mut jobs, &mut wanted, &mut alarms, &inbox).await;
    let _ = jobs.scheduler.shutdown().await;
}

/// Fires lines when they are due, until there are none.
async fn fire_due_lines(
    jobs: &mut Jobs,
    wanted: &mut watch::Receiver<BTreeSet<CronLine>>,
    alarms: &mut mpsc::UnboundedReceiver<()>,
    inbox: &Inbox,
) {
    let begun = Instant::now();
    let now = || Moment { wall: Timestamp::now(), steady: begun.elapsed() };
    let mut agenda = Agenda::new(TimeZone::system());
    let mut has_alarm = false;
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
            Some(()) = alarms.recv() => has_alarm = true,
            () = tokio::time::sleep_until(next_check(&agenda, has_alarm)) => has_alarm = false,
        }
        for line in agenda.advance(now()) {
            if !inbox.event(Event::CronFired { line }).await {
                return;
            }
        }
        jobs.update(&agenda).await;
    }
}

/// Returns when to check the clock although no job has fired.
///
/// The scheduler counts whole seconds, so its jobs can come up to a second before their moment; then the
/// moment itself is waited for.
fn next_check(agenda: &Agenda, has_alarm: bool) -> Instant {
    let now = Timestamp::now();
    let next = agenda.moments().map(|(_, due)| due).min();
    let wait = next.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
    let wait = match wait {
        Some(wait) if has_alarm && wait <= TOLERANCE => wait,
        Some(wait) => wait + TOLERANCE,
        None => CHECK_INTERVAL,
    };
    Instant::now() + wait.min(CHECK_INTERVAL)
}

/// The jobs for the next moment of each line.
struct Jobs {
    scheduler: JobScheduler,
    alarm: mpsc::UnboundedSender<()>,
    running: BTreeMap<CronLine, (Timestamp, Option<Uuid>)>,
}

impl Jobs {
    /// Returns no jobs yet. Those of a scheduler that is not started never fire.
    async fn new(alarm: mpsc::UnboundedSender<()>, starts: bool) -> Result<Self, JobSchedulerError> {
        let scheduler = JobScheduler::new().await?;
        if starts {
            scheduler.start().await?;
        }
        Ok(Self { scheduler, alarm, running: BTreeMap::new() })
    }

    /// Adds and removes jobs until they are those of the agenda.
    async fn update(&mut self, agenda: &Agenda) {
        let moments: BTreeMap<&CronLine, Timestamp> = agenda.moments().collect();
        let is_wrong = |(line, (due, _)): &(&CronLine, &(Timestamp, Option<Uuid>))| {
            moments.get(*line).is_none_or(|moment| moment != due)
        };
        let wrong: Vec<CronLine> =
            self.running.iter().filter(is_wrong).map(|(line, _)| line.clone()).collect();
        for line in wrong {
            if let Some((_, Some(job))) = self.running.remove(&line) {
                // A job that has fired is gone already.
                let _ = self.scheduler.remove(&job).await;
            }
        }
        for (line, due) in moments {
            if self.running.contains_key(line) {
                continue;
            }
            let wait = due.duration_since(Timestamp::now()).max(SignedDuration::ZERO);
            let alarm = self.alarm.clone();
            let job = Job::new_one_shot(Duration::try_from(wait).unwrap_or_default(), move |_, _| {
                let _ = alarm.send(());
            });
            let job = match job {
                Ok(job) => self.scheduler.add(job).await.ok(),
                // The timer fires the line.
                Err(_) => None,
            };
            self.running.insert(line.clone(), (due, job));
        }
    }
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

    #[tokio::test]
    async fn f_c12_a_due_job_that_did_not_fire_is_found_and_fired() {
        let (inbox, _questions, mut channels) = crate::driver::channels();
        let (_lines, mut wanted) = watch::channel(BTreeSet::from([CronLine::from("* * * * * *")]));
        let (alarm, mut alarms) = mpsc::unbounded_channel();
        let mut jobs = Jobs::new(alarm, false).await.unwrap();
        tokio::select! {
            () = fire_due_lines(&mut jobs, &mut wanted, &mut alarms, &inbox) => panic!("the clock stopped"),
            event = channels.next_event() => {
                assert_eq!(event, Some(Event::CronFired { line: CronLine::from("* * * * * *") }));
            }
        }
    }
}
