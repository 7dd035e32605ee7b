//! `module test`: runs the tests of a module's chart in a running operator, and prints what came of them as `helm test` does.

use std::fmt::Write as _;

use clap::{Arg, ArgMatches, Command};
use engine::view::escaped;
use engine::{PodLog, TestReport};

use super::arguments::option;
use super::client;
use super::output::{FAILED, MISCONFIGURED, OK, answered, complain, print};
use super::request::{encoded, post};

/// Returns the command with its options.
pub(super) fn command(command: Command) -> Command {
    command
        .after_help(
            "The tests are those of the revision that is deployed, whatever the files of the module say by now.\n\n\
             Examples:\n  addon-operator module test web\n  addon-operator module test web --filter name=smoke --timeout 10m\n  \
             addon-operator module test web --filter '!name=slow' -o json\n\n\
             Exit code: 0 if all passed or there are none, 1 if one failed, 2 if they could not be run.",
        )
        .args([
            option("filter", "FILTER", "Which tests: name=NAME, or !name=NAME for all others; several with commas, or one after the other")
                .value_delimiter(',')
                .action(clap::ArgAction::Append),
            option("timeout", "DURATION", "How long one test may take, like 5m; what --helm-timeout says if nothing is said"),
            Arg::new("logs")
                .long("logs")
                .value_name("BOOL")
                .help("Print the logs of their Pods at the end")
                .num_args(0..=1)
                .require_equals(true)
                .default_value("true")
                .default_missing_value("true")
                .value_parser(clap::value_parser!(bool)),
            super::arguments::switch(
                "show-secrets",
                "Show the values that come from the Secret over the ConfigMap in logs, too",
            ),
        ])
}

/// Runs the tests and returns the exit code.
pub(super) fn run(root: &ArgMatches, matches: &ArgMatches) -> u8 {
    let Some((_, leaf)) = matches.subcommand() else { return MISCONFIGURED };
    let path = match path(leaf) {
        Ok(path) => path,
        Err(error) => return not_run(&error),
    };
    let (status, body) = match client::ask(root, matches, &post(path)) {
        Ok(answer) => answer,
        Err(error) => return not_run(&error),
    };
    if status >= 400 {
        return not_run(&anyhow::anyhow!("{}", String::from_utf8_lossy(&body).trim_end()));
    }
    let report: TestReport = match serde_json::from_slice(&body) {
        Ok(report) => report,
        Err(error) => {
            return not_run(&anyhow::anyhow!("the operator answers what is no report of tests: {error}"));
        }
    };
    match leaf.get_one::<String>("output").map(String::as_str) {
        Some("json") => print(&answered(&body)),
        Some("yaml") => {
            let value = serde_json::from_slice(&body).unwrap_or_default();
            print(&escaped(&values::yaml::emit(&value)))
        }
        _ => print(&escaped(&text(&report))),
    };
    match &report.failure {
        Some(failure) => {
            complain(&anyhow::anyhow!("{failure}"));
            FAILED
        }
        None => OK,
    }
}

/// Says why no test was run, and returns the exit code for that.
fn not_run(error: &anyhow::Error) -> u8 {
    complain(error);
    MISCONFIGURED
}

/// Returns the path that asks for the tests.
fn path(leaf: &ArgMatches) -> anyhow::Result<String> {
    let module = leaf.get_one::<String>("name").map(String::as_str).unwrap_or_default();
    let mut path = format!("/module/{}/test?logs={}", encoded(module), leaf.get_one("logs").unwrap_or(&true));
    for filter in leaf.get_many::<String>("filter").into_iter().flatten() {
        let (key, name) = match filter.strip_prefix('!') {
            Some(filter) => ("without", filter.trim_start().strip_prefix("name=")),
            None => ("only", filter.strip_prefix("name=")),
        };
        let name = name.filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| anyhow::anyhow!("--filter {filter:?} is neither name=NAME nor !name=NAME"))?;
        let _ = write!(path, "&{key}={}", encoded(name));
    }
    if let Some(timeout) = leaf.get_one::<String>("timeout") {
        let _ = write!(path, "&timeout={}", encoded(timeout));
    }
    if leaf.get_flag("show-secrets") {
        path.push_str("&showSecrets=true");
    }
    Ok(path)
}

/// Returns a report as people read it: in the form of `helm test`.
fn text(report: &TestReport) -> String {
    let mut text = format!("NAME: {}\n", report.release);
    if let Some(time) = &report.last_deployed {
        let _ = writeln!(text, "LAST DEPLOYED: {time}");
    }
    let _ =
        writeln!(text, "NAMESPACE: {}\nSTATUS: deployed\nREVISION: {}", report.namespace, report.revision);
    if report.tests.is_empty() {
        let why = if report.known == 0 {
            format!("the chart of module {} has no tests", report.release)
        } else {
            format!("none of the {} tests of module {} was chosen", report.known, report.release)
        };
        let _ = writeln!(text, "TEST SUITE: None\n\n{why}");
    }
    for test in &report.tests {
        let _ = writeln!(text, "TEST SUITE:     {}", test.name);
        for (what, time) in [("Last Started:  ", &test.started), ("Last Completed:", &test.completed)] {
            if let Some(time) = time {
                let _ = writeln!(text, "{what} {time}");
            }
        }
        let phase = if test.phase.is_empty() { "not run, one before it failed" } else { &test.phase };
        let _ = writeln!(text, "Phase:          {phase}");
    }
    for (container, log) in &report.logs {
        let _ = writeln!(text, "\nPOD LOGS: {container}");
        let PodLog { text: lines, is_cut, problem } = log;
        if let Some(problem) = problem {
            let _ = writeln!(text, "(they can't be read: {problem})");
        }
        if *is_cut {
            text.push_str("(only its last lines)\n");
        }
        text.push_str(lines);
        if !lines.is_empty() && !lines.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use engine::TestRun;

    use super::*;

    fn parsed(arguments: &[&str]) -> anyhow::Result<String> {
        let words = ["addon-operator", "module", "test", "web"].iter().chain(arguments);
        let matches = crate::cli::command().try_get_matches_from(words).unwrap();
        let (_, module) = matches.subcommand().unwrap();
        path(module.subcommand().unwrap().1)
    }

    #[test]
    fn the_options_are_those_of_helm() {
        assert_eq!(parsed(&[]).unwrap(), "/module/web/test?logs=true");
        assert_eq!(parsed(&["--logs"]).unwrap(), "/module/web/test?logs=true");
        assert_eq!(
            parsed(&["--logs=false", "--timeout", "90s"]).unwrap(),
            "/module/web/test?logs=false&timeout=90s"
        );
        let several = parsed(&["--filter", "name=a,name=b", "--filter", "!name=c"]).unwrap();
        assert_eq!(several, "/module/web/test?logs=true&only=a&only=b&without=c");
        let error = parsed(&["--filter", "weight=1"]).unwrap_err().to_string();
        assert_eq!(error, "--filter \"weight=1\" is neither name=NAME nor !name=NAME");
    }

    #[test]
    fn a_report_reads_as_that_of_helm() {
        let time = Some("2026-01-02T12:00:00Z".to_owned());
        let test = |name: &str, phase: &str| TestRun {
            name: name.to_owned(),
            kind: "Pod".to_owned(),
            phase: phase.to_owned(),
            started: time.clone().filter(|_| !phase.is_empty()),
            completed: time.clone().filter(|_| !phase.is_empty()),
        };
        let log = PodLog { text: "hello".to_owned(), is_cut: true, problem: None };
        let mut report = TestReport {
            release: "web".to_owned(),
            namespace: "ops".to_owned(),
            revision: 2,
            last_deployed: time.clone(),
            known: 2,
            tests: vec![test("first", "Failed"), test("second", "")],
            failure: Some("it failed".to_owned()),
            logs: [("first/main".to_owned(), log)].into(),
        };
        let head =
            "NAME: web\nLAST DEPLOYED: 2026-01-02T12:00:00Z\nNAMESPACE: ops\nSTATUS: deployed\nREVISION: 2\n";
        let expected = format!(
            "{head}TEST SUITE:     first\nLast Started:   2026-01-02T12:00:00Z\nLast Completed: 2026-01-02T12:00:00Z\nPhase:          Failed\n\
             TEST SUITE:     second\nPhase:          not run, one before it failed\n\nPOD LOGS: first/main\n(only its last lines)\nhello\n"
        );
        assert_eq!(text(&report), expected);
        (report.tests, report.logs) = (Vec::new(), std::collections::BTreeMap::default());
        assert_eq!(
            text(&report),
            format!("{head}TEST SUITE: None\n\nnone of the 2 tests of module web was chosen\n")
        );
        report.known = 0;
        assert_eq!(
            text(&report),
            format!("{head}TEST SUITE: None\n\nthe chart of module web has no tests\n")
        );
    }
}
