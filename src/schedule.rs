//! The clock of schedules: crontab lines become events when they are due.
//!
//! What a line means is the engine's arithmetic; `tokio-cron-scheduler` runs
//! one job for the next moment of each line and exists only while there are
//! lines. A second look makes sure that a job that is due has fired.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::cron::Schedule;
use engine::{CronLine, Event};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use uuid::Uuid;

use crate::driver::Inbox;

/// How late a job may be before it is fired without the scheduler. The scheduler looks twice a second.
const LATEST: Duration = Duration::from_millis(1500);

/// How often the wall clock is compared with the steady one, at least.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);

/// How far both clocks may drift apart before all moments are computed anew.
const JUMP: Duration = Duration::from_secs(2);

/// Lets crontab lines fire.
#[derive(Debug, Default)]
pub struct Clock {
    lines: Option<watch::Sender<BTreeSet<CronLine>>>,
}

impl Clock {
    /// Lets exactly `lines` fire from now on, into `inbox`. Without lines nothing runs.
    pub fn set(&mut self, lines: BTreeSet<CronLine>, inbox: &Inbox) {
        if lines.is_empty() {
            // The running clock ends when its lines are gone.
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
    let (fired, mut firings) = mpsc::unbounded_channel();
    let mut jobs = match Jobs::new(fired).await {
        Ok(jobs) => jobs,
        Err(error) => {
            tracing::error!(%error, "the clock of schedules can't start");
            return;
        }
    };
    let lines = wanted.borrow_and_update().clone();
    jobs.keep(&lines).await;
    loop {
        let look = jobs.next_look();
        tokio::select! {
            changed = wanted.changed() => {
                if changed.is_err() {
                    break;
                }
                let lines = wanted.borrow_and_update().clone();
                jobs.keep(&lines).await;
            }
            Some((line, number)) = firings.recv() => {
                if jobs.is_current(&line, number) && !jobs.is_early(&line, number) && !fire(&mut jobs, line, &inbox).await {
                    break;
                }
            }
            () = tokio::time::sleep_until(look) => {
                for line in jobs.overdue().await {
                    if !fire(&mut jobs, line, &inbox).await {
                        break;
                    }
                }
            }
        }
    }
    jobs.end().await;
}

async fn fire(jobs: &mut Jobs, line: CronLine, inbox: &Inbox) -> bool {
    jobs.arm(&line).await;
    inbox.event(Event::CronFired { line }).await
}

/// The next job of each line.
struct Jobs {
    scheduler: JobScheduler,
    fired: mpsc::UnboundedSender<(CronLine, u64)>,
    armed: BTreeMap<CronLine, Armed>,
    zone: TimeZone,
    number: u64,
    /// The two clocks at the same moment.
    wall: Timestamp,
    steady: Instant,
}

struct Armed {
    schedule: Schedule,
    due: Option<Timestamp>,
    number: u64,
    job: Option<Uuid>,
}

impl Jobs {
    async fn new(fired: mpsc::UnboundedSender<(CronLine, u64)>) -> Result<Self, JobSchedulerError> {
        let scheduler = JobScheduler::new().await?;
        scheduler.start().await?;
        Ok(Self {
            scheduler,
            fired,
            armed: BTreeMap::new(),
            zone: TimeZone::system(),
            number: 0,
            wall: Timestamp::now(),
            steady: Instant::now(),
        })
    }

    async fn keep(&mut self, lines: &BTreeSet<CronLine>) {
        let gone: Vec<CronLine> = self.armed.keys().filter(|line| !lines.contains(*line)).cloned().collect();
        for line in gone {
            if let Some(Armed { job: Some(job), .. }) = self.armed.remove(&line) {
                // A job that has fired in between is gone already.
                let _ = self.scheduler.remove(&job).await;
            }
        }
        for line in lines {
            if self.armed.contains_key(line) {
                continue;
            }
            match Schedule::parse(line.as_str()) {
                Ok(schedule) => {
                    self.armed.insert(line.clone(), Armed { schedule, due: None, number: 0, job: None });
                    self.arm(line).await;
                }
                // The engine checks lines when it reads configurations.
                Err(error) => tracing::error!(%line, %error, "a crontab line is not understood"),
            }
        }
    }

    /// Sets the next moment of `line` and a job for it.
    async fn arm(&mut self, line: &CronLine) {
        let now = Timestamp::now();
        self.number += 1;
        let number = self.number;
        let Some(armed) = self.armed.get_mut(line) else { return };
        // Two firings are never for one moment, also when the wall clock went back a little.
        let after = armed
            .due
            .filter(|due| *due > now && due.duration_since(now) < jiff::SignedDuration::from_secs(2));
        armed.due = armed.schedule.next(after.unwrap_or(now), &self.zone);
        armed.number = number;
        let Some(due) = armed.due else { return };
        let wait = Duration::try_from(due.duration_since(now)).unwrap_or_default();
        let (fired, line) = (self.fired.clone(), line.clone());
        let job = Job::new_one_shot(wait, move |_, _| {
            let _ = fired.send((line.clone(), number));
        });
        armed.job = match job {
            Ok(job) => self.scheduler.add(job).await.ok(),
            // The second look fires it.
            Err(_) => None,
        };
    }

    fn is_current(&self, line: &CronLine, number: u64) -> bool {
        self.armed.get(line).is_some_and(|armed| armed.number == number)
    }

    /// Returns whether the moment of `line` is still to come; its firing is repeated then.
    ///
    /// The scheduler counts whole seconds, so its jobs come up to a second before their moment.
    fn is_early(&self, line: &CronLine, number: u64) -> bool {
        let due = self.armed.get(line).and_then(|armed| armed.due);
        let wait = due
            .map(|due| due.duration_since(Timestamp::now()))
            .and_then(|wait| Duration::try_from(wait).ok());
        let Some(wait) = wait.filter(|wait| !wait.is_zero()) else { return false };
        let (fired, line) = (self.fired.clone(), line.clone());
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let _ = fired.send((line, number));
        });
        true
    }

    /// Returns when to look whether every job fired.
    fn next_look(&self) -> Instant {
        let now = Timestamp::now();
        let dues = self.armed.values().filter_map(|armed| armed.due);
        let wait =
            dues.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default() + LATEST).min();
        Instant::now() + wait.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
    }

    /// Returns the lines that should have fired. After a jump of the wall clock all moments are computed anew.
    async fn overdue(&mut self) -> Vec<CronLine> {
        let now = Timestamp::now();
        let late = |due: Timestamp| {
            now.duration_since(due) >= jiff::SignedDuration::try_from(LATEST).unwrap_or_default()
        };
        let overdue: Vec<CronLine> = self
            .armed
            .iter()
            .filter(|(_, armed)| armed.due.is_some_and(late))
            .map(|(line, _)| line.clone())
            .collect();
        let passed = now.duration_since(self.wall);
        let steady = jiff::SignedDuration::try_from(self.steady.elapsed()).unwrap_or_default();
        (self.wall, self.steady) = (now, Instant::now());
        if (passed - steady).unsigned_abs() > JUMP {
            let rest: Vec<CronLine> =
                self.armed.keys().filter(|line| !overdue.contains(line)).cloned().collect();
            for line in rest {
                if let Some(job) = self.armed.get_mut(&line).and_then(|armed| armed.job.take()) {
                    let _ = self.scheduler.remove(&job).await;
                }
                self.arm(&line).await;
            }
        }
        overdue
    }

    async fn end(mut self) {
        let _ = self.scheduler.shutdown().await;
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
}
