//! The pause between two looks at what a test waits for.

use std::time::Duration;

/// Long beside a look, and short beside what is waited for.
const PAUSE: Duration = Duration::from_millis(5);

/// Lets others work before the next look: looks without pauses take the processor from what they wait for. A clock that is
/// paused stands still meanwhile.
pub(crate) async fn pause() {
    tokio::task::spawn_blocking(pause_thread).await.unwrap();
}

/// Does the same where nothing is asynchronous.
pub(crate) fn pause_thread() {
    std::thread::sleep(PAUSE);
}
