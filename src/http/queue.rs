//! The queues as text and as JSON. See docs/contract.md#queues-and-tasks.

use std::fmt::Write;

use engine::view::Problem;
use engine::view::status::standby;
use engine::view::{QueueView, TaskView, View};
use serde_json::{Value, json};

/// Returns the last failure of a task as text: as it is on the socket, masked on the TCP port.
pub(super) type ShowTaskFailure<'a> = &'a dyn Fn(&TaskView) -> String;

/// Returns the text of one queue, in the format of the reference operator.
pub(super) fn queue_text(view: &View, name: &str, show: ShowTaskFailure<'_>) -> String {
    match view.queues.iter().find(|queue| queue.name.as_str() == name) {
        Some(queue) => one_queue(queue, show, false),
        None => format!("Queue '{name}': length 0, status: 'Queue is not created'\n\n"),
    }
}

fn one_queue(queue: &QueueView, show: ShowTaskFailure<'_>, explained: bool) -> String {
    let mut text =
        format!("Queue '{}': length {}, status: '{}'\n\n", queue.name, queue.tasks.len(), queue.status);
    for (position, task) in queue.tasks.iter().enumerate() {
        let failure = show(task);
        let _ = writeln!(text, "{:2}. {}", position + 1, task.line(&failure));
        if explained {
            explain(&mut text, task, &failure);
        }
    }
    text
}

/// Adds lines that explain a task: what it waits for, its failures and its cause.
fn explain(text: &mut String, task: &TaskView, failure: &str) {
    let _ = write!(text, "      {}, {} old", task.id, span(task.age.as_secs_f64()));
    if let Some(running) = task.running {
        let _ = write!(text, ", runs for {}", span(running.as_secs_f64()));
    }
    if let Some(retry) = task.retry_in {
        let _ = write!(text, ", tried again in {}", span(retry.as_secs_f64()));
    }
    if let Some(reason) = &task.waits_for {
        let _ = write!(text, ", waits: {reason}");
    }
    text.push('\n');
    if !failure.is_empty() {
        let _ = writeln!(text, "      last error: {failure}");
    }
    let _ = writeln!(text, "      because: {}", task.cause);
}

/// Returns a duration for people, such as `5 min`.
pub(super) fn span(seconds: f64) -> String {
    match seconds {
        short if short < 10.0 => format!("{short:.1} s"),
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.0} h", seconds / 3600.0),
    }
}

/// Returns the text of all queues that have tasks, with a summary.
pub(super) fn list_text(view: &View, show_empty: bool, show: ShowTaskFailure<'_>) -> String {
    let (active, empty): (Vec<_>, Vec<_>) = view.queues.iter().partition(|queue| !queue.tasks.is_empty());
    let mut blocks: Vec<String> = active.iter().map(|queue| one_queue(queue, show, false)).collect();
    let only_main_is_empty = view.queues.len() == 1 && empty.len() == 1;
    if show_empty && !only_main_is_empty {
        let mut block = format!("Empty queues ({}):\n", empty.len());
        for queue in &empty {
            let _ = writeln!(block, "- {}", queue.name);
        }
        blocks.push(block);
    }
    blocks.push(summary_text(view));
    blocks.join("\n")
}

fn summary_text(view: &View) -> String {
    if view.queues.is_empty() {
        return "Summary:\n  No queues.\n".to_owned();
    }
    let summary = Summary::of(view);
    let main = match summary.main {
        0 => "empty".to_owned(),
        count => tasks(count),
    };
    let mut text = format!("Summary:\n- 'main' queue: {main}.\n");
    let others = summary.active + summary.empty;
    if others > 0 {
        let word = if others == 1 { "queue" } else { "queues" };
        let _ = writeln!(
            text,
            "- {others} other {word} ({} active, {} empty): {}.",
            summary.active,
            summary.empty,
            tasks(summary.others)
        );
    }
    match summary.main + summary.others {
        0 => text.push_str("- no tasks to handle.\n"),
        total => {
            let _ = writeln!(text, "- total {} to handle.", tasks(total));
        }
    }
    text
}

fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}

struct Summary {
    main: usize,
    active: usize,
    empty: usize,
    others: usize,
}

impl Summary {
    fn of(view: &View) -> Self {
        let mut summary = Self { main: 0, active: 0, empty: 0, others: 0 };
        for queue in &view.queues {
            match queue.tasks.len() {
                length if queue.name.is_main() => summary.main = length,
                0 => summary.empty += 1,
                length => {
                    summary.active += 1;
                    summary.others += length;
                }
            }
        }
        summary
    }
}

/// Returns one queue as JSON. Empty fields are left out.
pub(super) fn queue_json(view: &View, name: &str, show: ShowTaskFailure<'_>) -> Value {
    match view.queues.iter().find(|queue| queue.name.as_str() == name) {
        Some(queue) => one_json(queue, show),
        None => json!({"name": name, "tasksCount": 0, "status": "Queue is not created"}),
    }
}

fn one_json(queue: &QueueView, show: ShowTaskFailure<'_>) -> Value {
    let mut data = json!({"name": queue.name, "tasksCount": queue.tasks.len()});
    if !queue.status.is_empty() {
        put(&mut data, "status", queue.status.clone().into());
    }
    if !queue.tasks.is_empty() {
        let tasks = queue.tasks.iter().enumerate().map(|(position, task)| task_json(position, task, show));
        put(&mut data, "tasks", tasks.collect());
    }
    data
}

fn put(data: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = data {
        fields.insert(key.to_owned(), value);
    }
}

fn task_json(position: usize, task: &TaskView, show: ShowTaskFailure<'_>) -> Value {
    let failure = show(task);
    let mut data = json!({
        "index": position + 1,
        "description": task.line(&failure),
        "id": task.id.to_string(),
        "ageSeconds": task.age.as_secs_f64(),
        "failures": task.failures,
        "cause": task.cause,
    });
    if !failure.is_empty() {
        put(&mut data, "lastError", failure.into());
    }
    if let Some(retry) = task.retry_in {
        put(&mut data, "retryInSeconds", retry.as_secs_f64().into());
    }
    if let Some(reason) = &task.waits_for {
        put(&mut data, "waitsFor", reason.clone().into());
    }
    data
}

/// Returns all queues as JSON.
pub(super) fn list_json(view: &View, show_empty: bool, show: ShowTaskFailure<'_>) -> Value {
    let (active, empty): (Vec<_>, Vec<_>) = view.queues.iter().partition(|queue| !queue.tasks.is_empty());
    let summary = Summary::of(view);
    let mut data = json!({
        "active": active.iter().map(|queue| one_json(queue, show)).collect::<Vec<_>>(),
        "summary": {
            "mainQueueTasks": summary.main,
            "otherQueues": {"active": summary.active, "empty": summary.empty, "tasks": summary.others},
            "totalTasks": summary.main + summary.others,
        },
    });
    if show_empty && !empty.is_empty() {
        let empty: Vec<Value> =
            empty.iter().map(|queue| json!({"name": queue.name, "tasksCount": 0})).collect();
        put(&mut data, "empty", empty.into());
    }
    data
}

/// Returns the text of `/queue` on the port: the lines of the reference operator, then explanations.
pub(super) fn page_text(view: &View, show: ShowTaskFailure<'_>, problems: &[Problem]) -> String {
    let active: Vec<&QueueView> = view.queues.iter().filter(|queue| !queue.tasks.is_empty()).collect();
    let mut text: String = active.iter().map(|queue| one_queue(queue, show, true) + "\n").collect();
    if active.is_empty() {
        let _ = writeln!(text, "{}", idle(view));
    } else {
        text.push_str(&summary_text(view));
    }
    for problem in problems {
        let _ = writeln!(text, "! {} {}\n  do: {}", problem.about, problem.what, problem.advice);
    }
    text
}

fn idle(view: &View) -> String {
    let on = view.modules.iter().filter(|module| module.enabled == Some(true)).count();
    let off = view.modules.len() - on;
    let modules = if on == 1 { "1 module on".to_owned() } else { format!("{on} modules on") };
    if let Some(election) = view.election.as_ref().filter(|election| election.is_standby()) {
        return standby(election);
    }
    match view.converge.finished_ago {
        Some(ago) => {
            format!("last converge {} ago, {modules}, {off} off, nothing waits", whole(ago.as_secs()))
        }
        None => "nothing was converged yet, nothing waits".to_owned(),
    }
}

fn whole(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
