//! Why a task exists, and what became of it.

use super::answer::chain;
use super::{Answer, Unknown, advice};
use crate::view::TaskEnd;
use crate::view::format::{Format, span, times, why_queue};
use crate::view::{QueueView, TaskView, View};

/// Returns why the task `id` exists: `t12` or `12`, waiting, running or one of the last thousand that ended.
pub fn task(view: &View, id: &str, format: Format<'_>) -> Result<Answer, Unknown> {
    let missing = |hint: &str| Unknown { what: "task", name: id.to_owned(), hint: Some(hint.to_owned()) };
    let number: u64 = id.strip_prefix('t').unwrap_or(id).parse().map_err(|_| {
        missing(
            "a task has a number like t12, as `queue list -o json`, `journal` and the log (task.id) show it",
        )
    })?;
    let waiting = view.queues.iter().find_map(|queue| {
        let place = queue.tasks.iter().position(|task| task.id.number() == number)?;
        Some((queue, place, queue.tasks.get(place)?))
    });
    if let Some((queue, place, task)) = waiting {
        return Ok(of_waiting(queue, place, task, format));
    }
    let mut ends: Vec<&TaskEnd> = view.journal.iter().filter(|end| end.task.id.number() == number).collect();
    ends.reverse();
    match ends.last() {
        Some(last) => Ok(of_ended(view, &ends, last, format)),
        None => Err(missing(
            "it never was, was merged into another one or dropped by a new converge, or ended more than a thousand tasks ago; \
             `addon-operator journal` shows those that ended",
        )),
    }
}

fn of_waiting(queue: &QueueView, place: usize, task: &TaskView, format: Format<'_>) -> Answer {
    let (id, kind) = (task.id, task.kind);
    let first = task.chain.links().first().copied().unwrap_or_default().to_owned();
    let mut facts =
        vec![("line", task.description.clone()), ("queue", format!("{}, place {}", queue.name, place + 1))];
    let mut advice = Vec::new();
    let (state, doing) = if let Some(running) = task.running {
        let waits = task.waits_for.as_ref().map(|what| format!(", and waits for {}", (format.show)(what)));
        advice.extend(task.wait_advice.clone());
        ("running", format!("runs for {}{}", span(running), waits.unwrap_or_default()))
    } else if let Some(reason) = &task.waits_for {
        advice.extend(task.wait_advice.clone());
        ("waiting", format!("waits: {}", (format.show)(reason)))
    } else if (place == 0 || task.is_aside) && task.failures > 0 {
        ("failing", format!("failed {}", times(task.failures)))
    } else if place > 0 {
        advice.push(format!("{} shows what is before it", why_queue(&queue.name)));
        ("queued", format!("waits for {place} before it"))
    } else {
        ("queued", "is about to begin".to_owned())
    };
    if let Some(failure) = &task.last_failure {
        facts.push(("error", format.failure(failure)));
        advice.push(advice::about(failure, task));
    }
    if let Some(retry) = task.retry_in {
        facts.push(("tried again in", span(retry)));
    }
    Answer {
        about: "task",
        name: id.to_string(),
        state,
        verdict: format!("task {id} ({kind}) exists because of: {first}; it {doing}"),
        chain: chain(&task.chain),
        facts,
        advice,
        ..Answer::default()
    }
}

fn of_ended(view: &View, ends: &[&TaskEnd], last: &TaskEnd, format: Format<'_>) -> Answer {
    let info = &last.task;
    let first = info.cause.links().first().copied().unwrap_or_default().to_owned();
    let about = match (&info.hook, info.scope.module()) {
        (Some(hook), _) => format!(" of hook {hook}"),
        (None, Some(module)) => format!(" of module {module}"),
        (None, None) => String::new(),
    };
    let (state, outcome) = match (&last.failure, last.allowed) {
        (None, _) => ("done", "succeeded".to_owned()),
        (Some(_), true) => ("done", "failed, which its binding allows".to_owned()),
        (Some(_), false) => ("failed", "failed".to_owned()),
    };
    let ago = view.now.since(last.at);
    let mut facts = vec![
        ("queue", info.queue.to_string()),
        ("ended", format!("{} ({} ago), took {}", (format.at)(ago), span(ago), span(last.took))),
    ];
    if ends.len() > 1 {
        facts.push(("attempts", ends.len().to_string()));
    }
    if let Some(failure) = &last.failure {
        facts.push(("error", format.failure(failure)));
    }
    Answer {
        about: "task",
        name: info.id.to_string(),
        state,
        verdict: format!("task {} ({}{about}) existed because of: {first}; it {outcome}", info.id, info.kind),
        chain: chain(&info.cause),
        facts,
        advice: last.failure.as_ref().and_then(|failure| failure.advice.clone()).into_iter().collect(),
        ..Answer::default()
    }
}
