//! What a running operator says, as tables and lines for people.

use std::fmt::Write as _;
use std::time::Duration;

use clap::ArgMatches;
use comfy_table::{Table, presets};
use engine::view::status::QUEUE_STATE;
use engine::view::{cut, one_line, span};
use serde_json::Value;

/// The most letters of a note.
const NOTE: usize = 70;

/// Returns the answer to a command as tables.
pub(super) fn of(command: (&str, &str), data: &Value) -> String {
    match command {
        ("config", _) => parameters(data),
        ("module", _) => modules(data) + "\n",
        _ => status(data),
    }
}

fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(head);
    table.add_rows(rows);
    table.trim_fmt()
}

fn list<'d>(data: &'d Value, key: &str) -> impl Iterator<Item = &'d Value> {
    data.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn text(data: &Value, key: &str) -> String {
    match data.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Returns what tells most about a module, on one line.
fn note(module: &Value) -> String {
    let keys = ["held", "waits", "parked", "brokenVersion", "lastError", "configProblem"];
    let note = keys.iter().map(|key| text(module, key)).find(|note| !note.is_empty()).unwrap_or_default();
    cut(&note, NOTE)
}

fn modules(data: &Value) -> String {
    let row = |module: &Value| {
        let since = module.get("sinceSeconds").and_then(Value::as_f64).unwrap_or_default();
        let since = Duration::try_from_secs_f64(since).unwrap_or_default();
        let release = match module.get("revision").and_then(Value::as_u64) {
            Some(revision) => format!("revision {revision}"),
            None => text(module, "release"),
        };
        let on = match module.get("enabled").and_then(Value::as_bool) {
            Some(true) => "on",
            Some(false) => "off",
            None => "?",
        };
        let cells = [text(module, "name"), text(module, "order"), on.to_owned(), text(module, "phase")];
        cells.into_iter().chain([span(since), release, note(module)]).collect()
    };
    let rows = list(data, "modules").map(row).collect();
    table(&["MODULE", "ORDER", "IS", "PHASE", "SINCE", "RELEASE", "NOTE"], rows)
}

fn status(data: &Value) -> String {
    let mut all = format!("Operator is {}.\n\n{}\n\n", text(data, "headline"), modules(data));
    let queues =
        list(data, "queues").filter(|queue| text(queue, "tasks") != "0" || text(queue, "name") == "main");
    let row = |queue: &Value| {
        let [name, tasks, state, head] = ["name", "tasks", "state", "head"].map(|key| text(queue, key));
        vec![name, tasks, cut(&state, QUEUE_STATE), head]
    };
    let rows = queues.map(row);
    let _ = writeln!(all, "{}\n", table(&["QUEUE", "TASKS", "STATE", "FIRST TASK"], rows.collect()));
    if let Some(watches) = data.get("watches") {
        let number = |key: &str| text(watches, key);
        let _ = writeln!(
            all,
            "Watches: {} with {} objects, {} wait for a kind, {} broken",
            number("total"),
            number("objects"),
            number("waitingForKind"),
            number("broken")
        );
    }
    let mut problems = list(data, "problems").peekable();
    all.push_str(if problems.peek().is_none() {
        "\nNothing needs attention.\n"
    } else {
        "\nNeeds attention:\n"
    });
    for problem in problems {
        let _ = writeln!(
            all,
            "  ! {} {}\n      do: {}",
            text(problem, "about"),
            text(problem, "what"),
            text(problem, "advice")
        );
    }
    all
}

fn parameters(data: &Value) -> String {
    let row = |parameter: &Value| {
        ["name", "value", "expireAt", "description"].map(|key| text(parameter, key)).to_vec()
    };
    let rows = data.as_array().into_iter().flatten().map(row).collect();
    table(&["NAME", "VALUE", "EXPIRE AT", "DESCRIPTION"], rows) + "\n"
}

/// Returns what is said when a parameter was set.
pub(super) fn parameter_is_set(leaf: &ArgMatches) -> String {
    let typed = |id: &str| leaf.get_one::<String>(id).cloned().unwrap_or_default();
    let (name, value, duration) = (typed("name"), typed("value"), typed("duration"));
    let end = if duration.is_empty() { String::new() } else { format!(" for {duration}") };
    format!("{name} is {value}{end}; `addon-operator config list` shows when it ends\n")
}

/// Returns the end of a task as a line.
pub(super) fn journal_line(end: &Value) -> String {
    let took = end.get("seconds").and_then(Value::as_f64).unwrap_or_default();
    let took = span(Duration::try_from_secs_f64(took).unwrap_or_default());
    let field = |key: &str| text(end, key);
    let mut line = format!(
        "{}  {}  {}  {}  {took}  {}",
        field("at"),
        field("task"),
        field("queue"),
        field("title"),
        field("outcome")
    );
    let error = field("error");
    if !error.is_empty() {
        let _ = write!(line, ": {}", one_line(&error));
    }
    let _ = write!(line, "  because: {}", field("cause"));
    line
}
