//! Waiting for the API server at the start, so that whoever asks meanwhile is told what for.

use std::future::Future;

use engine::Failure;
use tokio::time::sleep;

use super::surroundings::{ASK_AGAIN, Outcome, Surroundings};
use crate::driver::Channels;

/// What a start waits for, in words.
pub(super) struct Wanted<'w> {
    /// What it is: `ConfigMap ops/addon-operator`.
    pub(super) what: &'w str,
    /// What is wrong as long as it does not come, for the log.
    pub(super) complaint: &'static str,
}

/// Asks until there is an answer. An API server that is away is asked again every second, except with `--once`.
pub(super) async fn answered<T, A: Future<Output = Result<T, Failure>>>(
    wanted: &Wanted<'_>,
    around: &Surroundings,
    channels: &Channels,
    ask: impl Fn() -> A,
) -> Result<T, Outcome> {
    let Wanted { what, complaint } = wanted;
    let mut is_reported = false;
    let mut shutdown = around.shutdown.clone();
    loop {
        let answer = tokio::select! {
            answer = ask() => answer,
            // An API server that says nothing must not keep the end waiting.
            _ = shutdown.wait_for(|requested| *requested) => return Err(Outcome::Done),
        };
        let failure = match answer {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        if around.once {
            tracing::error!(error = %failure, "{complaint}");
            return Err(Outcome::ClusterAway);
        }
        channels.say(format!("it waits for {what}: {failure}"));
        if !std::mem::replace(&mut is_reported, true) {
            tracing::error!(error = %failure, "{complaint}; it is asked again every second");
        }
        tokio::select! {
            () = sleep(ASK_AGAIN) => {}
            _ = shutdown.wait_for(|requested| *requested) => return Err(Outcome::Done),
        }
    }
}
