//! The shell framework, tested by the script that lies beside it.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use addon_operator::config::Environment;

use crate::support::files::{copied, root, tracked_below, write};

/// Where the framework and its tests are.
const FRAMEWORK: &str = "src/hook/shell";

/// What bash 4.4 does not have, as regular expressions.
const NEWER: &[&str] = &[
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "SRANDOM",
    "BASH_ARGV0",
    "BASH_COMPAT",
    "localvar_inherit",
    "assoc_expand_once",
    "progcomp_alias",
    "patsub_replacement",
    r"\$\{[^}]*@[UuLKk]\}",
    r"\bwait\s+-\w*p",
    r"\blocal\s+-\w*I",
    r"\bdeclare\s+-\w*I",
    r"\bread\s+-\w*E",
    r"\$\{\s",
    r"\$\{\|",
    r"\bunset\s+-\w*n",
];

fn passes(bash: &str) {
    passes_in(&mut Command::new("bash"), bash);
}

/// Runs the script in the environment of this command. Returns what it printed.
fn passes_in(command: &mut Command, bash: &str) -> String {
    let place = copied(FRAMEWORK);
    let script = place.path().join(FRAMEWORK).join("test.sh");
    let output = command.arg(script).arg(bash).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(" 0 failed "), "{text}");
    text.into_owned()
}

/// Says on the standard error what is not tested here. Not by a macro, whose output is shown for tests that fail only.
fn left_out(what: &str) {
    std::io::stderr().write_all(format!("LEFT OUT: {what}\n").as_bytes()).unwrap();
}

#[test]
fn the_shell_framework_passes_its_own_tests() {
    passes("bash");
}

/// An old bash is rare: `.ci/run` builds one and puts it into the path under this name.
#[test]
fn the_shell_framework_passes_its_own_tests_under_an_old_bash() {
    let Ok(version) = Command::new("bash-4.4").arg("--version").output() else {
        return left_out("there is no bash-4.4, the shell framework is not tested under it");
    };
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(version.contains("version 4.4."), "{version}");
    passes("bash-4.4");
}

/// Which jq the system has is not known here: `.ci/run` says which of the two is missing.
#[test]
fn the_shell_framework_passes_its_own_tests_with_jq_1_6_and_1_7() {
    let path = Environment::of_process().text("PATH").unwrap_or_default().to_owned();
    for version in ["1.6", "1.7"] {
        let is_it = |program: &Path| {
            let said = Command::new(program).arg("--version").output();
            said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).starts_with(&format!("jq-{version}")))
        };
        let named = [format!("jq-{version}"), "jq".to_owned()];
        let mut places =
            std::env::split_paths(&path).flat_map(|dir| named.each_ref().map(|name| dir.join(name)));
        let Some(program) = places.find(|program| is_it(program)) else {
            left_out(&format!("there is no jq-{version}, the shell framework is not tested with it"));
            continue;
        };
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(program, dir.path().join("jq")).unwrap();
        let first = format!("{}:{path}", dir.path().display());
        let text = passes_in(Command::new("bash").env("PATH", first), "bash");
        assert!(text.contains(&format!("jq-{version}")), "{text}");
    }
}

/// Where there is no jq, hooks have that of the operator; the functions for controllers have it everywhere.
#[test]
fn the_shell_framework_passes_its_own_tests_with_the_jq_of_the_operator() {
    let dir = tempfile::tempdir().unwrap();
    let jq = format!("#!/bin/sh\nexec '{}' hook jq \"$@\"\n", env!("CARGO_BIN_EXE_addon-operator"));
    write(&dir.path().join("jq"), &jq);
    let path = Environment::of_process().text("PATH").unwrap_or_default().to_owned();
    let first = format!("{}:{path}", dir.path().display());
    passes_in(Command::new("bash").env("PATH", first), "bash");
}

#[test]
fn the_shell_framework_uses_nothing_that_an_old_bash_does_not_have() {
    let newer: Vec<regex::Regex> = NEWER.iter().map(|text| regex::Regex::new(text).unwrap()).collect();
    let mut files = 0;
    let framework = root().join(FRAMEWORK);
    let scripts = tracked_below(&framework).filter(|path| path.extension().is_some_and(|end| end == "sh"));
    for path in scripts {
        files += 1;
        let text = std::fs::read_to_string(path).unwrap();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'))
        {
            for pattern in &newer {
                assert!(!pattern.is_match(line), "{}:{}: {line}", path.display(), number + 1);
            }
        }
    }
    assert!(files >= 7, "{files} files");
    assert!(newer.iter().any(|pattern| pattern.is_match("echo ${name@U}")));
}
