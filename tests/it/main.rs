//! Integration tests of the operator, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that stumbles over a surprise has done its job"
)]

mod architecture;
mod driver;
mod examples;
mod helm;
mod jq;
mod loading;
mod operator;
mod processes;
mod shell;
