//! The program: parse arguments, build, run, map errors to exit codes.

use std::process::ExitCode;

use heap::Heap;

#[global_allocator]
static HEAP: Heap = Heap;

fn main() -> ExitCode {
    ExitCode::from(addon_operator::cli::run(std::env::args_os().collect()))
}
