//! The ends of tasks as lines and as data.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::View;
use super::format::{Format, one_line, span};
use crate::name::Scope;
use crate::view::TaskEnd;

/// Returns the ends after the number `after`, the oldest first.
fn ends(view: &View, after: u64) -> impl Iterator<Item = &TaskEnd> {
    view.journal.iter().rev().filter(move |end| end.number > after)
}

/// Returns the ends after the number `after` as data, the oldest first, with the number of the last one.
pub fn data(view: &View, after: u64, format: Format<'_>) -> Value {
    let data = |end: &TaskEnd| {
        let mut data = json!({
            "number": end.number,
            "at": (format.at)(view.now.since(end.at)),
            "task": end.task.id.to_string(),
            "type": end.task.kind.as_str(),
            "title": title(end),
            "queue": end.task.queue.as_str(),
            "seconds": end.took.as_secs_f64(),
            "outcome": outcome(end),
            "cause": end.task.cause.to_string(),
        });
        if let Value::Object(fields) = &mut data {
            if let Scope::Module(module) = &end.task.scope {
                fields.insert("module".to_owned(), module.as_str().into());
            }
            if let Some(hook) = &end.task.hook {
                fields.insert("hook".to_owned(), hook.name.as_str().into());
            }
            if let Some(binding) = &end.task.binding {
                fields.insert("binding".to_owned(), binding.to_string().into());
            }
            if let Some(failure) = &end.failure {
                fields.insert("error".to_owned(), format.failure(failure).into());
            }
        }
        data
    };
    let last = view.journal.first().map_or(0, |end| end.number);
    json!({"last": last, "ends": ends(view, after).map(data).collect::<Vec<_>>()})
}

/// Returns the ends after the number `after`, a line each, the oldest first.
pub fn text(view: &View, after: u64, format: Format<'_>) -> String {
    let mut text = String::new();
    for end in ends(view, after) {
        let _ = writeln!(text, "{}", line(view, end, format));
    }
    text
}

fn line(view: &View, end: &TaskEnd, format: Format<'_>) -> String {
    let task = &end.task;
    let at = (format.at)(view.now.since(end.at));
    let mut line = format!("{at}  {}  {}  {}", task.id, task.queue, title(end));
    let _ = write!(line, "  {}  {}", span(end.took), outcome(end));
    if let Some(failure) = &end.failure {
        let shown = format.failure(failure);
        let _ = write!(line, ": {}", one_line(&shown));
    }
    let _ = write!(line, "  because: {}", task.cause);
    line
}

/// Returns what the task did: `ModuleRun web`, `ModuleHookRun web/hooks/a.sh (pods)`.
pub fn title(end: &TaskEnd) -> String {
    let task = &end.task;
    match (&task.hook, &task.binding, &task.scope) {
        (Some(hook), Some(binding), _) => format!("{} {hook} ({binding})", task.kind),
        (Some(hook), None, _) => format!("{} {hook}", task.kind),
        (None, _, Scope::Module(module)) => format!("{} {module}", task.kind),
        (None, _, Scope::Global) => task.kind.to_string(),
    }
}

/// Returns what the attempt came to: `done`, `failed`, or `allowed` to fail.
pub fn outcome(end: &TaskEnd) -> &'static str {
    match (&end.failure, end.allowed) {
        (None, _) => "done",
        (Some(_), true) => "allowed",
        (Some(_), false) => "failed",
    }
}
