//! Why a queue is stuck, or is not.

use super::answer::chain;
use super::{Answer, Unknown, advice, unknown};
use crate::notice::TaskType;
use crate::view::format::{Format, count, span, times};
use crate::view::{QueueView, TaskView, View};

/// How many tasks behind the first are told one by one.
const SHOWN: usize = 20;

/// Returns what is first in the queue `name`, what blocks it, and what waits behind it.
pub fn queue(view: &View, name: &str, format: Format<'_>) -> Result<Answer, Unknown> {
    let queue = view.queues.iter().find(|queue| queue.name.as_str() == name);
    let Some(queue) = queue else {
        return Err(unknown("queue", name, view.queues.iter().map(|queue| queue.name.as_str())));
    };
    let mut answer = Answer {
        about: "queue",
        name: name.to_owned(),
        state: "idle",
        verdict: format!("queue {name} is empty: nothing waits"),
        ..Answer::default()
    };
    if let Some(TaskType::AddonsReconcile) = queue.tasks.first().map(|task| task.kind) {
        answer.state = "sources";
        answer.verdict = format!(
            "queue {name} has {}, and none of them holds back another",
            count(queue.tasks.len(), "module source")
        );
        answer
            .advice
            .push("`addon-operator source list` shows all, `addon-operator why source NAME` one".to_owned());
        return Ok(answer);
    }
    let Some(head) = queue.tasks.first() else {
        if let Some(ago) = view.converge.finished_ago.filter(|_| queue.name.is_main()) {
            answer.facts.push(("last converge", format!("ended {} ago", span(ago))));
        }
        return Ok(answer);
    };
    judge(view, queue, head, format, &mut answer);
    answer.chain = chain(&head.chain);
    behind(queue, &mut answer);
    Ok(answer)
}

fn judge(view: &View, queue: &QueueView, head: &TaskView, format: Format<'_>, answer: &mut Answer) {
    let name = &queue.name;
    let since = head.blocked_for.map(|since| format!("{} ({} ago)", (format.at)(since), span(since)));
    answer.facts.push(("task", format!("{} {}", head.id, head.description)));
    if let Some(running) = head.running {
        answer.state = if head.failures > 0 { "failing" } else { "running" };
        answer.verdict = format!("queue {name} works: its first task runs for {}", span(running));
        if head.failures > 0 {
            answer.verdict = format!(
                "queue {name} is failing: its first task failed {} times and is being tried again",
                head.failures
            );
        }
        if let Some(reason) = &head.waits_for {
            answer.verdict = format!("{}; it waits for {}", answer.verdict, (format.show)(reason));
        }
        answer.facts.push(("running since", format!("{} ({} ago)", (format.at)(running), span(running))));
    } else if let Some(reason) = &head.waits_for {
        answer.state = "waiting";
        answer.verdict = format!("queue {name} waits: {}", (format.show)(reason));
        answer.advice.extend(head.wait_advice.clone());
    } else if head.failures > 0 {
        answer.state = "failing";
        answer.verdict = format!("queue {name} is blocked: its first task failed {}", times(head.failures));
    } else {
        answer.state = "ready";
        answer.verdict = format!("queue {name} is about to begin its first task");
    }
    if let Some(since) = since {
        answer.facts.push(("blocked since", since));
    }
    if let Some(failure) = &head.last_failure {
        answer.facts.push(("error", format.failure(failure)));
        answer.advice.insert(0, advice::about(failure, head));
    }
    if let Some(retry) = head.retry_in {
        answer.facts.push(("tried again in", span(retry)));
        if let Some(module) = head.module.as_ref().filter(|_| head.kind.is_module_run()) {
            answer.advice.push(format!("`addon-operator module run {module}` tries it at once"));
        }
    }
    watches(view, head, format, answer);
    if head.running.is_none() {
        return;
    }
    if head.waits_for.is_some() {
        answer.advice.extend(head.wait_advice.clone());
    } else if head.failures == 0 {
        answer.advice.push("nothing, unless it takes too long: settings.timeout of a hook or --hook-timeout ends one that hangs".to_owned());
    }
}

/// Names the watches that a waiting task may wait for and that are broken.
fn watches(view: &View, head: &TaskView, format: Format<'_>, answer: &mut Answer) {
    if head.waits_for.is_none() {
        return;
    }
    for watch in &view.watches {
        let concerns = watch.bindings.iter().any(|(hook, _)| {
            head.hook.as_ref() == Some(hook)
                || head.module.as_ref().is_some_and(|module| hook.scope.module() == Some(module))
        });
        if !concerns {
            continue;
        }
        if let Some(failure) = &watch.failure {
            answer.facts.push(("watch", format!("of {} is broken: {}", watch.kind, format.failure(failure))));
        } else if let Some(kind) = &watch.missing_kind {
            answer.facts.push(("watch", format!("waits for kind {kind}, which does not exist")));
        }
    }
}

fn behind(queue: &QueueView, answer: &mut Answer) {
    let aside = queue.tasks.iter().filter(|task| task.is_aside).count();
    if aside > 0 {
        answer.facts.push(("set aside", format!("{}; all others pass", count(aside, "task"))));
    }
    let waiting = queue.behind_head().count();
    if waiting == 0 {
        return;
    }
    answer.facts.push(("behind it", count(waiting, "task")));
    answer.behind = queue
        .behind_head()
        .take(SHOWN)
        .map(|task| format!("{} {} (because: {})", task.id, task.description, task.chain))
        .collect();
    if waiting > SHOWN {
        answer.behind.push(format!("… and {} more", waiting - SHOWN));
    }
}
