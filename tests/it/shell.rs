//! The shell framework, tested by the script that lies beside it.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

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
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/hook/shell/test.sh");
    let output = Command::new("bash").arg(script).arg(bash).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(" 0 failed "), "{text}");
}

#[test]
fn the_shell_framework_passes_its_own_tests() {
    passes("bash");
}

/// An old bash is rare: `.ci/run` builds one and puts it into the path under this name.
#[test]
fn the_shell_framework_passes_its_own_tests_under_an_old_bash() {
    let Ok(version) = Command::new("bash-4.4").arg("--version").output() else {
        // Not by a macro, whose output is shown for tests that fail only.
        let said = "LEFT OUT: there is no bash-4.4, the shell framework is not tested under it\n";
        std::io::stderr().write_all(said.as_bytes()).unwrap();
        return;
    };
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(version.contains("version 4.4."), "{version}");
    passes("bash-4.4");
}

#[test]
fn the_shell_framework_uses_nothing_that_an_old_bash_does_not_have() {
    let newer: Vec<regex::Regex> = NEWER.iter().map(|text| regex::Regex::new(text).unwrap()).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/hook/shell");
    let mut files = 0;
    for entry in walkdir::WalkDir::new(root).into_iter().flatten() {
        if entry.path().extension().is_none_or(|extension| extension != "sh") {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(entry.path()).unwrap();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'))
        {
            for pattern in &newer {
                assert!(!pattern.is_match(line), "{}:{}: {line}", entry.path().display(), number + 1);
            }
        }
    }
    assert!(files >= 7, "{files} files");
    assert!(newer.iter().any(|pattern| pattern.is_match("echo ${name@U}")));
}
