//! `source`: what is said about module sources, and what authors of bundles do without a cluster.

use std::path::PathBuf;

use ::source::bundle::{Bundle, Kind, Problem};
use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::Value;

use super::arguments::{argument, option};
use super::client;
use super::output::{OK, answered, complain, print, say, say_all};
use super::registry::{self, with_registry_options};
use crate::source;

/// Returns the commands about sources. `running` are those that ask a running operator.
///
/// `plan` are the arguments of the one that asks it with a file.
pub(super) fn command(
    running: impl IntoIterator<Item = Command>,
    plan: impl IntoIterator<Item = Arg>,
) -> Command {
    let paths = |value: &'static str, help: &'static str| {
        argument("paths", value, help).required(true).num_args(1..).value_parser(value_parser!(PathBuf))
    };
    Command::new("source")
        .about("Show module sources and have them processed; check, pack and list bundles for one")
        .after_help(
            "Look at sources:\n  addon-operator source list\n  addon-operator why source platform\n  addon-operator source sync platform\n  \
             addon-operator source plan platform.yaml\n  addon-operator source pause platform\n\n\
             Publish a bundle:\n  addon-operator source lint my-module\n  addon-operator source pack my-module -d repository\n  \
             addon-operator source index repository\n  addon-operator source push my-module oci://registry.corp/addons\n\n\
             Exit code of lint, pack, index, push and mirror: 0 all is well, 1 something is wrong, \
             2 a wrong option. Exit code of plan: 0 nothing would change, 1 something would, 2 something is wrong",
        )
        .subcommand_required(true)
        .subcommands([
            Command::new("lint")
                .about("Check bundles as a source would, and show all that is wrong; runs nothing of them")
                .arg(paths("DIR|FILE", "Directories of bundles, and packed ones")),
            Command::new("pack")
                .about("Check bundles and pack each as NAME-VERSION.tgz; the same files give the same bytes")
                .arg(paths("DIR", "Directories of bundles"))
                .arg(
                    option("output-dir", "DIR", "Where the archives go")
                        .short('d')
                        .default_value(".")
                        .value_parser(value_parser!(PathBuf)),
                ),
            Command::new("index")
                .about("Check all bundles of a directory and write its index.yaml anew")
                .arg(
                    argument("directory", "DIR", "The directory with NAME-VERSION.tgz")
                        .required(true)
                        .value_parser(value_parser!(PathBuf)),
                ),
            with_registry_options(Command::new("push"))
                .about("Check bundles and push each to a registry, with its version as the tag")
                .arg(paths("DIR|FILE", "Directories of bundles, and packed ones"))
                .arg(argument("to", "oci://HOST/PATH", "Where to; NAME is added, unless the path ends with it").required(true)),
            with_registry_options(Command::new("mirror"))
                .about("Copy a source with all it names, to serve it where it can't be reached (start --source-mirror)")
                .arg(argument("from", "URL", "The URL of an index file, or of a registry (oci://HOST/PATH)").required(true))
                .arg(argument("to", "DIR|oci://HOST/PATH", "Where to: a directory, or a registry for what is in one").required(true))
                .arg(
                    option("include", "NAME[@VERSION]", "Copy this bundle only; can be given several times")
                        .action(clap::ArgAction::Append),
                ),
        ])
        .subcommand(
            Command::new("plan")
                .about("Show what a configuration in a file would bring, change and take away; writes nothing")
                .args([
                    argument("file", "FILE", "The object as it would be applied; - reads the standard input")
                        .required(true)
                        .value_parser(value_parser!(PathBuf)),
                ])
                .args(plan),
        )
        .subcommands(running)
}

/// Runs one of the commands and returns the exit code.
pub(super) fn run(root: &ArgMatches, matches: &ArgMatches) -> u8 {
    let paths = |leaf: &ArgMatches| -> Vec<PathBuf> {
        leaf.get_many("paths").into_iter().flatten().cloned().collect()
    };
    let directory = |leaf: &ArgMatches, id: &str| leaf.get_one::<PathBuf>(id).cloned().unwrap_or_default();
    match matches.subcommand() {
        Some(("lint", leaf)) => all(paths(leaf).iter().map(|path| lint(path))),
        Some(("pack", leaf)) => {
            let into = directory(leaf, "output-dir");
            all(source::pack_all(&paths(leaf), &into).into_iter().map(|outcome| match outcome {
                Ok(packed) => say(&format!("{} {}", packed.path.display(), packed.digest)),
                Err(problems) => say_all(&problems),
            }))
        }
        Some(("index", leaf)) => {
            let directory = directory(leaf, "directory");
            match source::index(&directory) {
                Ok(count) => {
                    say(&format!("{}: {}", directory.join("index.yaml").display(), counted(count, "bundle")))
                }
                Err(problems) => say_all(&problems),
            }
        }
        Some(("plan", leaf)) => plan(root, matches, leaf),
        Some(("mirror", leaf)) => registry::mirror(leaf),
        Some(("push", leaf)) => registry::push(leaf, &paths(leaf)),
        Some(_) | None => client::run(root, "source", matches),
    }
}

/// Exit codes of `plan`.
const CHANGES: u8 = 1;
const ERRORS: u8 = 2;

/// Shows what a configuration in a file would bring about.
fn plan(root: &ArgMatches, matches: &ArgMatches, leaf: &ArgMatches) -> u8 {
    let path = leaf.get_one::<PathBuf>("file").cloned().unwrap_or_default();
    let read = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(&path)
    };
    let answer = read
        .with_context(|| format!("{} can't be read", path.display()))
        .and_then(|object| client::source_plan(root, matches, object));
    let (status, body) = match answer {
        Ok(answer) => answer,
        Err(error) => {
            complain(&error);
            return ERRORS;
        }
    };
    let mut data: Value = match serde_json::from_slice(&body) {
        Ok(data) if status < 400 => data,
        _ => {
            complain(&anyhow::anyhow!("{}: {}", path.display(), String::from_utf8_lossy(&body).trim_end()));
            return ERRORS;
        }
    };
    let text = data.as_object_mut().and_then(|fields| fields.remove("text"));
    match leaf.get_one::<String>("output").map(String::as_str) {
        Some("json") => print(&format!("{data}\n")),
        Some("yaml") => print(&values::yaml::emit(&data)),
        _ => print(&answered(text.as_ref().and_then(Value::as_str).unwrap_or_default().as_bytes())),
    };
    let has_problems =
        data.get("problems").and_then(Value::as_array).is_none_or(|problems| !problems.is_empty());
    match data.get("changes").and_then(Value::as_bool) {
        _ if has_problems => ERRORS,
        Some(true) => CHANGES,
        Some(false) => OK,
        None => ERRORS,
    }
}

/// Returns the exit code of all of them; each is done, whatever became of those before.
fn all(codes: impl Iterator<Item = u8>) -> u8 {
    codes.fold(OK, u8::max)
}

fn lint(path: &std::path::Path) -> u8 {
    let inspected = source::inspect(path);
    for Problem { path, message } in &inspected.warnings {
        say(&format!("{path}: warning: {message}"));
    }
    match inspected.outcome {
        Ok(bundle) => say(&format!("{}: {}", path.display(), described(&bundle))),
        Err(problems) => say_all(&problems),
    }
}

/// Returns what a bundle is, in a few words.
fn described(bundle: &Bundle) -> String {
    let kind = match bundle.kind {
        Kind::Module => "a module".to_owned(),
        Kind::Chart => format!("a chart with {}", counted(bundle.plans.len(), "plan")),
    };
    format!("{} {}, {kind}", bundle.name.as_str(), bundle.version)
}

/// Returns `1 bundle` or `5 bundles`.
fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
