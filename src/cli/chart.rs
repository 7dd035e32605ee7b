//! `chart`: what is kept of charts from repositories, and what another version of one would change.

use std::path::{Path, PathBuf};

use ::source::digest::Digest;
use clap::{ArgMatches, Command};
use engine::view::escaped;
use serde_json::Value;

use super::client;
use super::output::{FAILED, complain, print};

/// Returns the commands about charts. `running` are those that ask a running operator.
pub(super) fn command(running: impl IntoIterator<Item = Command>) -> Command {
    Command::new("chart")
        .about("Show charts from repositories, what is kept of them, and what another version would change")
        .after_help(
            "NAME is a module that names a chart, a Chart, or REPOSITORY/CHART.\n\nExamples:\n  addon-operator chart list\n  \
             addon-operator chart versions cache\n  addon-operator chart outdated\n  addon-operator chart plan cache --version 1.3.0\n  \
             addon-operator chart pull corp/redis --version '~1.2' -d /tmp",
        )
        .subcommand_required(true)
        .subcommands(running)
}

/// Runs one of the commands and returns the exit code.
pub(super) fn run(root: &ArgMatches, matches: &ArgMatches) -> u8 {
    match matches.subcommand() {
        Some(("pull", leaf)) => {
            let directory = leaf.get_one::<PathBuf>("output-dir").cloned().unwrap_or_default();
            pull(root, matches, &directory)
        }
        Some(_) | None => client::run(root, "chart", matches),
    }
}

/// Writes an archive into a directory.
fn pull(root: &ArgMatches, matches: &ArgMatches, directory: &Path) -> u8 {
    let (status, described, archive) = match client::archive(root, matches) {
        Ok(answers) => answers,
        Err(error) => return complain(&error),
    };
    if status >= 400 {
        print(&escaped(&String::from_utf8_lossy(&described)));
        return FAILED;
    }
    let described: Value = serde_json::from_slice(&described).unwrap_or_default();
    let field = |name: &str| described.get(name).and_then(Value::as_str).unwrap_or_default();
    let digest = Digest::of(&archive).to_string();
    if digest != field("digest") {
        return complain(&anyhow::anyhow!(
            "the archive has another digest than the operator names: {digest} and {:?}; try again",
            field("digest")
        ));
    }
    // What a repository calls a version may be no name of a file.
    let Some(name) = Path::new(field("file")).file_name().filter(|name| *name == field("file")) else {
        return complain(&anyhow::anyhow!("this is no name of a file: {:?}", field("file")));
    };
    let path = directory.join(name);
    match std::fs::write(&path, &archive) {
        Ok(()) => print(&escaped(&format!("{} {digest}\n", path.display()))),
        Err(error) => complain(&anyhow::anyhow!("{}: {error}", path.display())),
    }
}
