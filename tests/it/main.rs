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
mod hooks;
mod jq;
mod loading;
mod object_patches;
mod operator;
mod processes;
mod shell;
