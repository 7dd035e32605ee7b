//! Log lines of tasks and failures.

use engine::view::why::advice_in_log;
use engine::{Failure, Scope, TaskInfo};

/// Returns the kind of a task with its hook or module.
pub(super) fn title(task: &TaskInfo) -> String {
    match (&task.hook, &task.binding) {
        (Some(hook), Some(binding)) => format!("{} {hook} ({binding})", task.kind),
        (Some(hook), None) => format!("{} {hook}", task.kind),
        (None, _) => match &task.scope {
            Scope::Global => task.kind.to_string(),
            Scope::Module(module) => format!("{} {module}", task.kind),
        },
    }
}

/// Logs a step of a task at level debug.
pub(super) fn log_task(task: &TaskInfo, flow: &str, what: &str) {
    let module = task.scope.module().map_or("", |module| module.as_str());
    let hook = task.hook.as_ref().map_or("", |hook| hook.name.as_str());
    tracing::debug!(
        queue = task.queue.as_str(),
        "task.id" = %task.id,
        "task.flow" = flow,
        task_type = task.kind.as_str(),
        module,
        hook,
        cause = %task.cause,
        "{} {what}",
        title(task)
    );
}

/// Logs a failure that belongs to no task, of what is tried again.
pub(super) fn log_failure(failure: &Failure, what: &str) {
    tracing::error!(error = explained(failure, None, false), "{what}");
}

/// Logs a failure that belongs to no task, of what is not tried again.
pub(super) fn log_final_failure(failure: &Failure, what: &str) {
    tracing::error!(error = explained(failure, None, true), "{what}");
}

/// Returns a failure with its advice.
pub(super) fn explained(failure: &Failure, task: Option<&TaskInfo>, is_final: bool) -> String {
    format!("{failure} ({})", advice_in_log(failure, task, is_final))
}
