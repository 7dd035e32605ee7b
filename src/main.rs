//! The program: parse arguments, build, run, map errors to exit codes.

fn main() {}
