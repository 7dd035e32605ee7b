//! `test`: hook tests without a cluster.

use std::path::PathBuf;

use clap::{ArgMatches, Command, value_parser};

use super::arguments::{argument, option, switch};
use super::output::{FAILED, MISCONFIGURED, OK, complain};
use crate::config::Environment;
use crate::testing::{self, Outcome, Tests};

/// Returns the command with its arguments.
pub(super) fn command() -> Command {
    Command::new("test")
        .about("Test hooks and modules without a cluster: run the files NAME.test.yaml beside them")
        .after_help(
            "A test says what is there (objects, values, ConfigMap), what happens and what shall come of it:\n\n  \
             - run: beforeHelm\n    values: {greeter: {name: Bob}}\n    expect:\n      \
             log: [\"Hello, Bob!\"]\n\n\
             Exit code: 0 all passed, 1 some failed, 2 a file can't be used or there is no test",
        )
        .args([
            argument("paths", "DIR", "Test files, and directories that hold them at any depth [default: .]")
                .num_args(0..)
                .value_parser(value_parser!(PathBuf)),
            option(
                "only",
                "PATTERN",
                "Run the tests whose file and name contain PATTERN; * stands for any text",
            ),
            switch("update", "Write what came into the files, where something else was expected"),
            option("junit", "FILE", "Write the results in JUnit's format, too")
                .value_parser(value_parser!(PathBuf)),
            option("jobs", "N", "How many run at the same time; 0 for two on each processor")
                .short('j')
                .default_value("0")
                .value_parser(value_parser!(usize)),
        ])
}

/// Runs the tests and returns the exit code.
pub(super) fn run(matches: &ArgMatches) -> u8 {
    let paths: Vec<PathBuf> = matches.get_many("paths").into_iter().flatten().cloned().collect();
    let tests = Tests {
        paths: if paths.is_empty() { vec![PathBuf::from(".")] } else { paths },
        only: matches.get_one::<String>("only").cloned(),
        update: matches.get_flag("update"),
        junit: matches.get_one::<PathBuf>("junit").cloned(),
        jobs: matches.get_one::<usize>("jobs").copied().unwrap_or_default(),
        environment: Environment::of_hooks(),
    };
    // Two providers of cryptography would make the choice a panic; there is one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match testing::run(&tests) {
        Ok(Outcome::Passed) => OK,
        Ok(Outcome::Failed) => FAILED,
        Ok(Outcome::Unusable) => MISCONFIGURED,
        Err(error) => {
            complain(&error);
            MISCONFIGURED
        }
    }
}
