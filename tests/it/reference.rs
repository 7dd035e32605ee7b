//! `docs/reference.md` is made from the tables of the program.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use addon_operator::cli;
use addon_operator::config::{Environment, SECTIONS, settings};
use addon_operator::telemetry::Telemetry;
use clap::Command;

/// Returns a text as it may stand in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) }
}

fn options(text: &mut String) {
    text.push_str("## Options of `start` and `dev`\n\nA flag wins over a variable, and of several variables the first wins. \
        Durations are written as `5s`, `1m30s`, `500ms`.\n");
    for (heading, settings) in SECTIONS {
        let _ = write!(
            text,
            "\n### {heading}\n\n| flag | variables | default | meaning |\n| --- | --- | --- | --- |\n"
        );
        for setting in *settings {
            let value = match setting.words {
                [] => setting.value.to_owned(),
                words => words.join("|"),
            };
            let variables: Vec<String> = setting.variables.iter().map(|name| code(name)).collect();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                code(format!("--{} {value}", setting.flag).trim_end()),
                variables.join(", "),
                code(setting.default),
                cell(setting.help)
            );
        }
    }
}

fn commands(text: &mut String, command: &Command, path: &str) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        let path = format!("{path} {}", inner.get_name());
        if inner.get_subcommands().next().is_none() {
            let settings: Vec<&str> = settings().map(|setting| setting.flag).collect();
            let arguments = inner.get_arguments().filter(|argument| {
                !argument.is_hide_set()
                    && argument.get_long().is_none_or(|long| !settings.contains(&long) && long != "help")
            });
            let arguments: Vec<String> = arguments
                .map(|argument| {
                    if let Some(long) = argument.get_long() {
                        return format!("`--{long}`");
                    }
                    let names = argument.get_value_names().unwrap_or_default();
                    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
                })
                .collect();
            let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
            let _ =
                writeln!(text, "| `{}` | {} | {} |", path.trim_start(), cell(&about), arguments.join(" "));
        }
        commands(text, inner, &path);
    }
}

fn metrics(text: &mut String) {
    text.push_str("## Metrics at `/metrics`\n\nThe prefix is that of `--prometheus-metrics-prefix`. \
        The metrics of the process (`process_…`) are there, too. What hooks export is at `/metrics/hooks`.\n\n\
        | name | type | labels | meaning |\n| --- | --- | --- | --- |\n");
    for metric in Telemetry::new("addon_operator_").unwrap().described() {
        let labels: Vec<String> = metric.labels.iter().map(|label| code(label)).collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            metric.name,
            metric.kind,
            labels.join(", "),
            cell(&metric.help)
        );
    }
}

fn reference() -> String {
    let mut text = "# Reference\n\nThis file is made from the tables of the program; a test compares them. \
        After a change of a table: `UPDATE_DOCS=1 cargo test --test it reference`.\n\n"
        .to_owned();
    text.push_str("## Commands\n\nEach of them explains itself with `--help`.\n\n| command | does | arguments |\n| --- | --- | --- |\n");
    commands(&mut text, &cli::command(), "");
    text.push('\n');
    options(&mut text);
    text.push('\n');
    metrics(&mut text);
    text
}

#[test]
fn the_reference_is_that_of_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md");
    let made = reference();
    if Environment::of_process().text("UPDATE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/reference.md is not up to date: UPDATE_DOCS=1 cargo test --test it reference"
    );
}

#[test]
fn every_option_and_metric_says_what_it_is_and_occurs_once() {
    let mut seen = BTreeMap::new();
    let names = settings().map(|setting| (setting.flag.to_owned(), setting.help.to_owned()));
    let metrics = Telemetry::new("addon_operator_")
        .unwrap()
        .described()
        .into_iter()
        .map(|metric| (metric.name, metric.help));
    for (name, help) in names.chain(metrics) {
        assert!(!help.is_empty(), "{name} has no help");
        assert!(seen.insert(name.clone(), help).is_none(), "{name} is there twice");
    }
}

#[test]
fn the_installation_has_the_kinds_that_the_program_prints() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/install/05-crds.yaml");
    let installed = std::fs::read_to_string(path).unwrap();
    // An API server drops the fields of a spec that its kind does not know.
    assert!(
        installed == addon_operator::source::CRDS,
        "examples/install/05-crds.yaml is not up to date: cp src/source/crds.yaml examples/install/05-crds.yaml"
    );
}
