//! Queues in the words of the reference operator.

use std::time::Duration;

use super::{QueueView, TaskView};
use crate::name::QueueName;
use crate::queue::fifo::{Blocked, Queue};
use crate::queue::journal::Journal;
use crate::task::{HookRun, Task, TaskKind};
use crate::time::Time;

impl QueueView {
    pub(super) fn of(name: &QueueName, queue: &Queue, journal: &Journal, now: Time) -> Self {
        let is_blocked = queue.running.is_none();
        let tasks = queue.iter().enumerate().map(|(place, task)| {
            let blocked = queue.blocked.as_ref().filter(|_| place == 0 && is_blocked);
            let running =
                queue.running.as_ref().filter(|_| place == 0).map(|running| now.since(running.since));
            TaskView::of(name, task, Head { running, blocked, journal }, now)
        });
        Self { name: name.clone(), status: status(queue, now), tasks: tasks.collect() }
    }
}

fn status(queue: &Queue, now: Time) -> String {
    if queue.running.is_some() {
        return "run first task".to_owned();
    }
    match &queue.blocked {
        None => String::new(),
        Some(Blocked::Waiting { .. }) => "repeat head task".to_owned(),
        Some(Blocked::Backoff { until, delay }) => {
            let left = until.since(now).as_secs();
            format!("sleep after fail for {} ({left}s left of {}s delay)", seconds(*delay), delay.as_secs())
        }
    }
}

/// Returns a duration as Go prints it: `5s`, `6.4s`, `1m5s`.
fn seconds(duration: Duration) -> String {
    let (minutes, rest) = (duration.as_secs() / 60, duration.as_secs() % 60);
    let tenths = duration.subsec_millis() / 100;
    let rest = if tenths == 0 { format!("{rest}s") } else { format!("{rest}.{tenths}s") };
    if minutes == 0 { rest } else { format!("{minutes}m{rest}") }
}

/// What is known about the first task of a queue only.
#[derive(Clone, Copy)]
struct Head<'a> {
    running: Option<Duration>,
    blocked: Option<&'a Blocked>,
    journal: &'a Journal,
}

impl TaskView {
    fn of(queue: &QueueName, task: &Task, head: Head<'_>, now: Time) -> Self {
        let Head { running, blocked, journal } = head;
        let waiting = match blocked {
            Some(Blocked::Waiting { reason, since }) => Some((reason, *since)),
            Some(Blocked::Backoff { .. }) | None => None,
        };
        let waits_since =
            waiting.map(|(reason, since)| journal.waits_since(task.id, reason).unwrap_or(since).min(since));
        let blocked_since = waits_since.or(task.failing_since);
        Self {
            id: task.id,
            description: description(queue, task),
            module: task.module().cloned(),
            age: now.since(task.queued_at),
            running,
            failures: task.failures,
            last_failure: task.last_failure.clone(),
            retry_in: task.not_before.filter(|until| *until > now).map(|until| until.since(now)),
            waits_for: waiting.map(|(reason, _)| reason.to_string()),
            cause: task.cause.to_string(),
            chain: task.cause.clone(),
            kind: task.type_name(),
            hook: task.hook_run().map(|run| run.hook.clone()),
            blocked_for: blocked_since.map(|since| now.since(since)),
            wait_advice: waiting.map(|(reason, _)| reason.advice()),
        }
    }

    /// Returns the task's line with `failure` as the text of its last failure.
    pub fn line(&self, failure: &str) -> String {
        match self.failures {
            0 => self.description.clone(),
            failures if failure.is_empty() => format!("{}:failures {failures}", self.description),
            failures => format!("{}:failures {failures}:{failure}", self.description),
        }
    }
}

/// Returns the task's line in queue listings, without its failures.
pub(crate) fn description(queue: &QueueName, task: &Task) -> String {
    let kind = task.type_name();
    let words = task.description;
    let about = match &task.kind {
        TaskKind::GlobalHookRun(run) | TaskKind::ModuleHookRun(run) => hook(run),
        TaskKind::GlobalHookEnableKubernetesBindings(hook) => format!(":{}", hook.name),
        TaskKind::ModuleRun(run) if run.does_startup => format!("{}:doStartup", run.module),
        TaskKind::ModuleRun(run) => run.module.to_string(),
        TaskKind::ModuleDelete(delete) => delete.module.to_string(),
        TaskKind::ModuleEnsureCrds(module) => module.to_string(),
        TaskKind::ModulePurge(release) => release.to_string(),
        TaskKind::ParallelModuleRun(wave) => {
            let names: Vec<&str> = wave.waiting_for.iter().map(crate::name::ModuleName::as_str).collect();
            format!("Parallel run for {}", names.join(", "))
        }
        TaskKind::ConvergeModules(_)
        | TaskKind::DiscoverHelmReleases
        | TaskKind::GlobalHookWaitKubernetesSynchronization => ":".to_owned(),
    };
    format!("{kind}:{queue}:{about}:{words}")
}

fn hook(run: &HookRun) -> String {
    let names: Vec<&str> = run.binding_names().into_iter().collect();
    let bindings = if names.is_empty() { String::new() } else { format!(":{}", names.join(",")) };
    let count = run.contexts.len();
    let contexts = if count > 1 { format!(" in {count} contexts") } else { String::new() };
    format!("{}:{}{bindings}{contexts}", run.binding_type, run.hook.name)
}
