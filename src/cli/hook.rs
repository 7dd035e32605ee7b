//! `hook …`: what hooks call, in images without `jq` and without bash.

mod path;
mod values;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ArgMatches;
use jq::command;
use serde_json::Value;

use super::output::{FAILED, OK, complain, print};
use crate::config::Environment;
use crate::hook::shell_framework;
use crate::process::memory;
use path::HookPath;
use values::{Change, Values};

/// Runs the `jq` program. `arguments` do not hold its name.
pub(super) fn jq(arguments: &[OsString]) -> u8 {
    // A heap of the thread's own would grow by one page at a time.
    memory::share_heap();
    let environment = Environment::of_process();
    let text = |text: &OsString| text.to_string_lossy().into_owned();
    command::run(
        arguments,
        environment.variables().map(|(name, value)| (text(name), text(value))).collect::<Vec<_>>(),
    )
}

/// Runs a command of `hook` and returns its exit code.
pub(super) fn run(matches: &ArgMatches) -> u8 {
    let environment = Environment::of_process();
    let outcome = match matches.subcommand() {
        Some(("framework", inner)) => write_framework(inner),
        Some(("values", inner)) => {
            inner.subcommand().map_or(Ok(FAILED), |(name, inner)| change_values(name, inner, &environment))
        }
        Some(("context", inner)) => {
            inner.subcommand().map_or(Ok(FAILED), |(name, inner)| read_context(name, inner, &environment))
        }
        Some(("jq", inner)) => {
            let arguments = inner.get_many::<OsString>("arguments").unwrap_or_default().cloned();
            return jq(&arguments.collect::<Vec<_>>());
        }
        Some(_) | None => Ok(FAILED),
    };
    outcome.unwrap_or_else(|error| complain(&error))
}

fn write_framework(matches: &ArgMatches) -> anyhow::Result<u8> {
    let directory = matches.get_one::<PathBuf>("directory").cloned().unwrap_or_default();
    let written = shell_framework::write(&directory)
        .with_context(|| format!("can't write into {}", directory.display()))?;
    let lines: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    Ok(print(&(lines.join("\n") + "\n")))
}

fn path_of(matches: &ArgMatches) -> HookPath {
    HookPath::parse(matches.get_one::<String>("path").map_or("", String::as_str))
}

/// Returns the exit code that says yes (0) or no (1).
fn answer(yes: bool) -> u8 {
    if yes { OK } else { FAILED }
}

fn change_values(command: &str, matches: &ArgMatches, environment: &Environment) -> anyhow::Result<u8> {
    let (file, operations_file) = if matches.get_flag("config") {
        ("CONFIG_VALUES_PATH", "CONFIG_VALUES_JSON_PATCH_PATH")
    } else {
        ("VALUES_PATH", "VALUES_JSON_PATCH_PATH")
    };
    let file = PathBuf::from(variable(environment, file)?);
    let root = read_json(&file)?;
    let path = path_of(matches);
    match command {
        "get" => show(path.value_in(&root).filter(|value| !value.is_null()), &path, matches),
        "has" => Ok(answer(path.exists_in(&root))),
        "set" | "unset" => {
            let mut values = Values::new(root);
            let change = match matches.try_get_one::<String>("value").ok().flatten() {
                Some(text) => Change::Set(values::json_or_text(text)),
                None => Change::Unset,
            };
            let operations = values.change(&path, change)?;
            values.write(&file, environment.text(operations_file).map(Path::new), &operations)?;
            Ok(OK)
        }
        other => bail!("there is no command {other:?}"),
    }
}

fn read_context(command: &str, matches: &ArgMatches, environment: &Environment) -> anyhow::Result<u8> {
    let all = read_json(Path::new(variable(environment, "BINDING_CONTEXT_PATH")?))?;
    let index = environment.text("BINDING_CONTEXT_CURRENT_INDEX").unwrap_or("0");
    let index: usize =
        index.parse().with_context(|| format!("BINDING_CONTEXT_CURRENT_INDEX is {index:?}, not a number"))?;
    let context = all.get(index).with_context(|| format!("there is no binding context {index}"))?;
    let path = path_of(matches);
    let found = path.value_in(context).unwrap_or(&Value::Null);
    match command {
        // A key whose value is null is there.
        "get" => show(path.exists_in(context).then_some(found), &path, matches),
        "has" => Ok(answer(path.exists_in(context))),
        "is-true" => Ok(answer(*found == Value::Bool(true))),
        "is-false" => Ok(answer(*found == Value::Bool(false))),
        "is-null" => Ok(answer(found.is_null())),
        other => bail!("there is no command {other:?}"),
    }
}

/// Prints the value at a path, a string as it is; `null` where there is none.
fn show(found: Option<&Value>, path: &HookPath, matches: &ArgMatches) -> anyhow::Result<u8> {
    if found.is_none() && matches.get_flag("required") {
        bail!("Value {path} required, but doesn't exist");
    }
    let text = match found.unwrap_or(&Value::Null) {
        Value::String(text) => text.clone(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            serde_json::to_string_pretty(other)?
        }
    };
    Ok(print(&format!("{text}\n")))
}

fn variable<'a>(environment: &'a Environment, name: &str) -> anyhow::Result<&'a str> {
    let set = environment.text(name).filter(|text| !text.is_empty());
    set.with_context(|| format!("{name} is not set: is this a hook that the operator started?"))
}

fn read_json(path: &Path) -> anyhow::Result<Value> {
    let bytes = fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is not JSON", path.display()))
}
