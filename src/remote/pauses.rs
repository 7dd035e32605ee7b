//! Registries that want to be left alone for a while, and how long they may want that.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::Timestamp;
use tokio::time::Instant;

/// How long is waited if the registry does not say, or not so that it can be read.
const USUAL: Duration = Duration::from_mins(1);

/// The longest that a registry is left alone.
const LONGEST: Duration = Duration::from_hours(1);

/// Who is to be left alone until when.
#[derive(Default)]
pub(crate) struct Pauses(Mutex<BTreeMap<String, Instant>>);

impl Pauses {
    /// Returns whether a host is to be left alone.
    pub(super) fn has(&self, host: &str) -> bool {
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        pauses.retain(|_, until| *until > now);
        pauses.contains_key(host)
    }

    /// Records that a host is to be left alone.
    pub(super) fn add(&self, host: &str, pause: Duration) {
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pauses.insert(host.to_owned(), Instant::now() + pause);
    }
}

/// Returns how long a registry wants to be left alone: seconds, or the time of `now` until a date.
pub(super) fn wanted(headers: &HeaderMap, now: Timestamp) -> Duration {
    let text = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).unwrap_or_default().trim();
    let until = || {
        let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
        Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
    };
    let pause = text.parse().ok().map(Duration::from_secs).or_else(until);
    pause.unwrap_or(USUAL).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_seconds_or_a_date_and_an_hour_at_most() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (text, seconds) in [
            ("7", 7),
            ("0", 0),
            ("99999999", 3600),
            ("Thu, 01 Jan 2026 00:00:30 GMT", 30),
            ("Wed, 31 Dec 2025 00:00:00 GMT", 0),
            ("soon", 60),
            ("-1", 60),
            ("", 60),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            assert_eq!(wanted(&headers, now), Duration::from_secs(seconds), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_is_left_alone_until_its_time() {
        let pauses = Pauses::default();
        pauses.add("a.example", Duration::from_secs(7));
        assert!(pauses.has("a.example") && !pauses.has("b.example"));
        tokio::time::advance(Duration::from_secs(8)).await;
        assert!(!pauses.has("a.example"));
    }
}
