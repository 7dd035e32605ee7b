//! What commands print, and the exit codes with which they end.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

use ::source::bundle::Problem;
use engine::view::escaped;

use crate::cluster::ConnectError;
use crate::config::ConfigError;
use crate::helm::HelmCommandError;
use crate::load::LoadError;

/// Exit code of a command that did what it should.
pub(super) const OK: u8 = 0;
/// Exit code when neither the configuration nor the cluster is at fault.
pub(super) const FAILED: u8 = 1;
/// Exit code of a configuration that can't be used.
pub(super) const MISCONFIGURED: u8 = 2;
/// Exit code when the cluster does not answer.
pub(super) const CLUSTER_AWAY: u8 = 3;

/// Prints `text` and returns the exit code of success.
pub(super) fn print(text: &str) -> u8 {
    // A reader that has gone away needs nothing more.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    OK
}

/// Prints one line, and returns the exit code of success: what tools say in several lines is joined.
pub(super) fn say(text: &str) -> u8 {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    print(&format!("{}\n", escaped(&lines.join(" … "))))
}

/// Prints problems, one line each, and returns the exit code of a failure.
pub(super) fn say_all(problems: &[Problem]) -> u8 {
    for problem in problems {
        say(&problem.to_string());
    }
    FAILED
}

/// Returns an answer as it is printed: what a terminal would obey is shown as escapes. A file gets what a chart rendered
/// as it is.
pub(super) fn answered(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    if std::io::stdout().is_terminal() { escaped(&text).into_owned() } else { text.into_owned() }
}

/// Prints an error with all its causes and returns the exit code of its kind.
pub(super) fn complain(error: &anyhow::Error) -> u8 {
    let mut text = format!("Error: {error}");
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.ends_with(&cause) {
            let _ = write!(text, ": {cause}");
        }
    }
    let _ = writeln!(std::io::stderr().lock(), "{}", escaped(&text));
    let is_configuration = error.chain().any(|cause| {
        cause.is::<ConfigError>()
            || cause.is::<LoadError>()
            || cause.is::<ConnectError>()
            || cause.is::<HelmCommandError>()
    });
    if is_configuration { MISCONFIGURED } else { FAILED }
}
