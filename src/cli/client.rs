//! The client of a running operator: tables and colours on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;
use engine::view::escaped;
use serde_json::Value;

use super::output::{FAILED, OK, answered, complain, print};
use super::request::{DebugError, DebugRequest, debug_request};
use super::{color, tables};
use crate::config::{Environment, parse_duration, settings};

/// The time between two requests of `journal --follow`.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Sends the request of the command `name` to a running operator, prints the answer and returns the exit code.
pub(super) fn run(root: &ArgMatches, name: &str, matches: &ArgMatches) -> u8 {
    let leaf = matches.subcommand().map_or(matches, |(_, leaf)| leaf);
    let socket = socket_of(&[leaf, matches, root]);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error.into()),
    };
    let on = |id: &str| leaf.try_get_one::<bool>(id).ok().flatten().copied().unwrap_or(false);
    if name == "journal" {
        return runtime.block_on(journal(&socket, leaf, on("follow")));
    }
    let Some(request) = debug_request(name, matches) else { return FAILED };
    if on("watch") {
        return runtime.block_on(watch_answer(&request, &socket, leaf));
    }
    let command = matches.subcommand_name().unwrap_or_default();
    let question = Question { request, command: (name, command), leaf };
    match runtime.block_on(question.answer(&socket)) {
        Ok((status, text)) => {
            print(&text);
            if status >= 400 { FAILED } else { OK }
        }
        Err(error) => complain(&error.into()),
    }
}

/// Sends a request to the operator that a command line means. Returns the HTTP status and the answer.
pub(super) fn ask(
    root: &ArgMatches,
    matches: &ArgMatches,
    request: &DebugRequest,
) -> anyhow::Result<(u16, Vec<u8>)> {
    let leaf = matches.subcommand().map_or(matches, |(_, leaf)| leaf);
    let socket = socket_of(&[leaf, matches, root]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(request.send(&socket))?)
}

/// Asks a running operator for an archive. Returns the HTTP status, the description of the archive, and its bytes.
pub(super) fn archive(root: &ArgMatches, matches: &ArgMatches) -> anyhow::Result<(u16, Vec<u8>, Vec<u8>)> {
    let leaf = matches.subcommand().map_or(matches, |(_, leaf)| leaf);
    let socket = socket_of(&[leaf, matches, root]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let query = debug_request("chart", matches).map(|request| request.path).unwrap_or_default();
    let query = query.split_once('?').map(|(_, query)| query).unwrap_or_default();
    runtime.block_on(async {
        let (status, described) = plain(&format!("/chart/package?{query}")).send(&socket).await?;
        if status >= 400 {
            return Ok((status, described, Vec::new()));
        }
        let (status, archive) = plain(&format!("/chart/archive?{query}")).send(&socket).await?;
        Ok((status, described, archive))
    })
}

/// Asks a running operator what a configuration of module sources would bring about. Returns the HTTP status and the answer.
pub(super) fn source_plan(
    root: &ArgMatches,
    matches: &ArgMatches,
    object: String,
) -> anyhow::Result<(u16, Vec<u8>)> {
    let leaf = matches.subcommand().map_or(matches, |(_, leaf)| leaf);
    let socket = socket_of(&[leaf, matches, root]);
    let shows = leaf.try_get_one::<bool>("show-secrets").ok().flatten().copied().unwrap_or(false);
    let path = format!("/source/plan.json?text=true&showSecrets={shows}");
    let request = DebugRequest { method: "POST", path, form: object, verbatim: false };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(request.send(&socket))?)
}

/// Returns the socket of the command line, the innermost first, or the default one.
fn socket_of(levels: &[&ArgMatches]) -> PathBuf {
    let typed = levels.iter().find_map(|matches| {
        let is_typed = matches.try_contains_id("debug-unix-socket").unwrap_or(false)
            && matches.value_source("debug-unix-socket") == Some(ValueSource::CommandLine);
        is_typed.then(|| matches.get_one::<String>("debug-unix-socket").cloned()).flatten()
    });
    typed.map_or_else(default_socket, PathBuf::from)
}

/// Returns the socket of the operator in this directory, or of the one in the cluster.
fn default_socket() -> PathBuf {
    let environment = Environment::of_process();
    if let Some(path) = environment.text("DEBUG_UNIX_SOCKET") {
        return path.into();
    }
    let here = Path::new(".addon-operator/debug.socket");
    if here.exists() {
        return here.to_owned();
    }
    let setting = settings().find(|setting| setting.flag == "debug-unix-socket");
    setting.map_or("", |setting| setting.default).into()
}

fn format_of(leaf: &ArgMatches) -> String {
    leaf.try_get_one::<String>("output").ok().flatten().cloned().unwrap_or_default()
}

/// A request, and how its answer is shown.
struct Question<'a> {
    request: DebugRequest,
    command: (&'a str, &'a str),
    leaf: &'a ArgMatches,
}

impl Question<'_> {
    /// Returns the HTTP status and the text to print.
    async fn answer(&self, socket: &Path) -> Result<(u16, String), DebugError> {
        if self.wants_table() {
            let path = match self.command {
                ("config", _) => "/config/list.json",
                _ => "/status.json",
            };
            let (status, body) = plain(path).send(socket).await?;
            if let Ok(data) = serde_json::from_slice::<Value>(&body) {
                return Ok((status, color::highlight(&escaped(&tables::of(self.command, &data)))));
            }
        }
        let (status, body) = self.request.send(socket).await?;
        let text = answered(&body);
        let text = match self.command {
            ("config", "set") if status < 400 => tables::parameter_is_set(self.leaf),
            // These are ours; what the reference has too is followed by an empty line as there.
            ("status" | "why" | "journal" | "graph" | "converge" | "source", _)
            | ("chart", "list" | "outdated" | "values" | "versions")
            | ("module", "status") => text,
            _ => text + "\n",
        };
        let is_text = matches!(format_of(self.leaf).as_str(), "text" | "");
        Ok((status, if is_text && color::is_enabled() { color::highlight(&text) } else { text }))
    }

    /// Returns whether a table is printed: on a terminal, when no format was given.
    fn wants_table(&self) -> bool {
        let is_table = matches!(self.command, ("status", _) | ("module" | "config", "list"));
        let is_typed = is_table && self.leaf.value_source("output") == Some(ValueSource::CommandLine);
        is_table && !is_typed && std::io::stdout().is_terminal()
    }
}

fn plain(path: &str) -> DebugRequest {
    DebugRequest { method: "GET", path: path.to_owned(), form: String::new(), verbatim: false }
}

/// Prints the tasks that ended; with `follow` also those that end later, until interrupted.
async fn journal(socket: &Path, leaf: &ArgMatches, follow: bool) -> u8 {
    let lines = leaf.get_one::<usize>("lines").copied().unwrap_or(usize::MAX);
    let format = format_of(leaf);
    let mut after = 0;
    let mut skip = Some(lines);
    loop {
        let data = match plain(&format!("/journal.json?after={after}")).send(socket).await {
            Ok((status, body)) if status >= 400 => {
                print(&escaped(&String::from_utf8_lossy(&body)));
                return FAILED;
            }
            Ok((_, body)) => serde_json::from_slice::<Value>(&body).unwrap_or_default(),
            Err(error) => return complain(&error.into()),
        };
        let ends = data.get("ends").and_then(Value::as_array).cloned().unwrap_or_default();
        let past = skip.take().map_or(0, |lines| ends.len().saturating_sub(lines));
        let shown = ends.get(past..).unwrap_or_default();
        let text = journal_text(shown, &data, &format, follow);
        print(&if format == "text" && color::is_enabled() { color::highlight(&text) } else { text });
        if !follow {
            return OK;
        }
        let last = data.get("last").and_then(Value::as_u64).unwrap_or_default();
        // An operator that was started again counts from one.
        after = last;
        tokio::select! {
            () = tokio::time::sleep(FOLLOW_INTERVAL) => {}
            _ = tokio::signal::ctrl_c() => return OK,
        }
    }
}

/// Returns ended tasks in a format; with `follow` each is a line or a document of its own.
fn journal_text(ends: &[Value], data: &Value, format: &str, follow: bool) -> String {
    let whole = || {
        let mut data = data.clone();
        if let Some(all) = data.get_mut("ends") {
            *all = ends.into();
        }
        data
    };
    let one = |end: &Value| match format {
        "json" => format!("{end}\n"),
        "yaml" => format!("---\n{}", values::yaml::emit(end)),
        _ => escaped(&tables::journal_line(end)).into_owned() + "\n",
    };
    match format {
        "json" if !follow => format!("{}\n", whole()),
        "yaml" if !follow => values::yaml::emit(&whole()),
        _ => ends.iter().map(one).collect::<Vec<_>>().concat(),
    }
}

/// Prints the answer again and again on the alternate screen of the terminal, until the operator does not answer.
async fn watch_answer(request: &DebugRequest, socket: &Path, matches: &ArgMatches) -> u8 {
    let given = matches.get_one::<String>("watchInterval").map_or("1s", String::as_str);
    let pause = parse_duration(given).unwrap_or_else(|| {
        let _ = writeln!(std::io::stderr().lock(), "{given:?} is no duration like 2s; it is 1s");
        Duration::from_secs(1)
    });
    print("\u{1b}[?1049h");
    loop {
        match request.send(socket).await {
            Ok((_, body)) => {
                let now = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z");
                print(&format!("\u{1b}[H\u{1b}[2J{now}\n{}", escaped(&String::from_utf8_lossy(&body))));
            }
            Err(error) => {
                print("\u{1b}[?1049l");
                return complain(&error.into());
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = tokio::signal::ctrl_c() => {
                return print("\u{1b}[?1049l");
            }
        }
    }
}
