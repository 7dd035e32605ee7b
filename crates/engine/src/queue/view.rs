//! Queues in the words of the reference operator.

use std::time::Duration;

use super::journal::Journal;
use super::{Blocked, Queue, Queues};
use crate::name::{ModuleName, QueueName};
use crate::task::{HookRun, Task, TaskKind};
use crate::time::Time;
use crate::view::{Footprint, QueueView, TaskEnd, TaskView};

/// What to do about a hook of a chart that does not end.
const HOOK_ADVICE: &str = "look at that object and its Pods: what fails of it ends the run, and so does --helm-timeout; a module of an AddonsConfiguration \
     begins anew with another bundle or other values, and ends when it is switched off";

/// The same about a removal, which no values and no switch end.
const REMOVAL_ADVICE: &str = "look at that object and its Pods: what fails of it, or deletes it, ends this attempt, and so does --helm-timeout; the removal is \
     then tried again, without hooks if the Secret of the last revision has the label addon-operator.io/skip-hooks=true";

fn advice_on_hook(kind: &TaskKind) -> &'static str {
    if matches!(kind, TaskKind::ModuleDelete(_)) { REMOVAL_ADVICE } else { HOOK_ADVICE }
}

impl Queues {
    /// Returns a picture of all queues with their first tasks: `main` first, then by name.
    pub(crate) fn views(&self, most_tasks: usize, now: Time) -> Vec<QueueView> {
        let view = |(name, queue): (&QueueName, &Queue)| {
            let in_row = queue.len() - queue.aside.len();
            let tasks = queue.iter().enumerate().take(most_tasks).map(|(place, task)| {
                let in_flight = queue.running.as_ref().filter(|_| place == 0);
                let running = in_flight.map(|running| now.since(running.since));
                let waits = in_flight.and_then(|running| running.waits.as_ref());
                let aside = place.checked_sub(in_row).and_then(|place| queue.aside.get(place));
                let blocked = match aside {
                    Some(aside) => Some(&aside.why),
                    None => queue.blocked.as_ref().filter(|_| place == 0 && queue.running.is_none()),
                };
                let view = task_view(task, running, blocked, &self.journal, now);
                let view = TaskView { is_aside: aside.is_some(), ..view };
                match waits {
                    None => view,
                    Some((what, since)) => TaskView {
                        waits_for: Some(what.clone()),
                        blocked_for: Some(now.since(*since)),
                        wait_advice: Some(advice_on_hook(&task.kind).to_owned()),
                        ..view
                    },
                }
            });
            QueueView { name: name.clone(), status: status(queue, now), tasks: tasks.collect() }
        };
        let mut queues: Vec<QueueView> = self.iter().map(view).collect();
        queues.sort_by_key(|queue| !queue.name.is_main());
        queues
    }

    /// Returns how the last tasks ended, the newest first.
    pub(crate) fn ends(&self) -> Vec<TaskEnd> {
        self.journal.iter().rev().cloned().collect()
    }

    /// Adds what the queues hold to `footprint`.
    pub(crate) fn count_in(&self, footprint: &mut Footprint) {
        let tasks = || self.iter().flat_map(|(_, queue)| Queue::iter(queue));
        footprint.tasks = tasks().count();
        footprint.contexts = tasks().filter_map(Task::hook_run).map(|run| run.contexts.len()).sum();
        footprint.journal = self.journal.len();
        footprint.entries += self.iter().count();
    }
}

fn status(queue: &Queue, now: Time) -> String {
    if queue.running.is_some() {
        return "run first task".to_owned();
    }
    let aside = queue.aside.front().filter(|_| queue.tasks.is_empty()).map(|aside| &aside.why);
    match queue.blocked.as_ref().or(aside) {
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

/// Returns the picture of a task; `running` and `blocked` are known about the first of a queue only.
fn task_view(
    task: &Task,
    running: Option<Duration>,
    blocked: Option<&Blocked>,
    journal: &Journal,
    now: Time,
) -> TaskView {
    let head = &task.head;
    let waiting = match blocked {
        Some(Blocked::Waiting { reason, since }) => Some((reason, *since)),
        Some(Blocked::Backoff { .. }) | None => None,
    };
    let waits_since =
        waiting.map(|(reason, since)| journal.waits_since(head.id, reason).unwrap_or(since).min(since));
    let blocked_since = waits_since.or(head.failing_since);
    TaskView {
        id: head.id,
        description: description(task),
        module: task.module().cloned(),
        age: now.since(head.queued_at),
        running,
        failures: head.failures,
        last_failure: head.last_failure.clone(),
        retry_in: head.not_before.filter(|until| *until > now).map(|until| until.since(now)),
        waits_for: waiting.map(|(reason, _)| reason.to_string()),
        cause: head.cause.to_string(),
        chain: head.cause.clone(),
        kind: task.task_type(),
        hook: task.hook_run().map(|run| run.hook.clone()),
        blocked_for: blocked_since.map(|since| now.since(since)),
        wait_advice: waiting.map(|(reason, _)| reason.advice()),
        is_aside: false,
    }
}

impl TaskView {
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
fn description(task: &Task) -> String {
    let (kind, queue, trigger) = (task.task_type(), &task.head.queue, task.head.trigger);
    let about = match &task.kind {
        TaskKind::HookRun(run) => hook(run),
        TaskKind::GlobalHookEnableKubernetesBindings(hook) => format!(":{}", hook.name),
        TaskKind::ModuleRun(run) if run.does_startup => format!("{}:doStartup", run.module),
        TaskKind::ModuleRun(run) => run.module.to_string(),
        TaskKind::ModuleDelete(delete) => delete.module.to_string(),
        TaskKind::ModuleEnsureCrds(module) => module.to_string(),
        TaskKind::ModulePurge(purge) => purge.release.to_string(),
        TaskKind::ParallelModuleRun(run) => {
            let names: Vec<&str> = run.waiting_for.iter().map(ModuleName::as_str).collect();
            format!("Parallel run for {}", names.join(", "))
        }
        TaskKind::AddonsCommit
        | TaskKind::ConvergeModules(_)
        | TaskKind::DiscoverHelmReleases
        | TaskKind::GlobalHookWaitKubernetesSynchronization => ":".to_owned(),
    };
    format!("{kind}:{queue}:{about}:{trigger}")
}

fn hook(run: &HookRun) -> String {
    let names: Vec<&str> = run.binding_names().into_iter().collect();
    let bindings = if names.is_empty() { String::new() } else { format!(":{}", names.join(",")) };
    let count = run.contexts.len();
    let contexts = if count > 1 { format!(" in {count} contexts") } else { String::new() };
    format!("{}:{}{bindings}{contexts}", run.binding_type.as_str(), run.hook.name)
}
