//! The program: parse arguments, build, run, map errors to exit codes.

use std::process::ExitCode;

use addon_operator::helm::template::{self, TemplateArgs};
use clap::Parser;

#[derive(Parser)]
enum Command {
    /// Prints what a chart renders to.
    Template(TemplateArgs),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Template(args) => template::run(&args),
    }
}
