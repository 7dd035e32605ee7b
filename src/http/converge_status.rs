//! The progress of the first and of later converges, in the format of the reference operator. See docs/operating.md#http.

use engine::view::ConvergeView;
use serde_json::{Value, json};

/// Returns the lines of `/status/converge`.
pub(super) fn text(converge: &ConvergeView) -> String {
    let tasks = converge.tasks;
    match (converge.first_done, converge.first_started, tasks) {
        (true, _, 0) => "STARTUP_CONVERGE_DONE\nCONVERGE_WAIT_TASK\n".to_owned(),
        (true, _, tasks) => format!("STARTUP_CONVERGE_DONE\nCONVERGE_IN_PROGRESS: {tasks} tasks\n"),
        (false, false, _) => "STARTUP_CONVERGE_NOT_STARTED\n".to_owned(),
        (false, true, 0) => "STARTUP_CONVERGE_DONE\n".to_owned(),
        (false, true, tasks) => format!("STARTUP_CONVERGE_IN_PROGRESS: {tasks} tasks\n"),
    }
}

/// Returns the same as JSON. All keys are always present.
pub(super) fn data(converge: &ConvergeView) -> Value {
    let tasks = converge.tasks;
    let (done, started) = (converge.first_done, converge.first_started);
    json!({
        "CONVERGE_IN_PROGRESS": if done { tasks } else { 0 },
        "CONVERGE_WAIT_TASK": done && tasks == 0,
        "STARTUP_CONVERGE_DONE": done || (started && tasks == 0),
        "STARTUP_CONVERGE_IN_PROGRESS": if done || !started { 0 } else { tasks },
        "STARTUP_CONVERGE_NOT_STARTED": !started && !done,
    })
}
