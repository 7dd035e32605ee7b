//! The program: parse arguments, build, run, map errors to exit codes.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(addon_operator::cli::run(std::env::args_os().collect()))
}
