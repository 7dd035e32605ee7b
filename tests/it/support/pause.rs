//! The pause between two looks at what a test waits for.

use std::time::Duration;

/// Long beside a look, and short beside what is waited for.
const PAUSE: Duration = Duration::from_millis(5);

/// The same where a look starts a program, or asks for a picture of everything.
const LONG_PAUSE: Duration = Duration::from_millis(50);

/// Lets others work before the next look: looks without pauses take the processor from what they wait for. A clock that is
/// paused stands still meanwhile.
pub(crate) async fn pause() {
    tokio::task::spawn_blocking(pause_thread).await.unwrap();
}

/// Does the same between looks that take long themselves.
pub(crate) async fn long_pause() {
    tokio::task::spawn_blocking(long_pause_thread).await.unwrap();
}

/// Does the same where nothing is asynchronous.
pub(crate) fn pause_thread() {
    std::thread::sleep(PAUSE);
}

/// Does the same between looks that take long themselves.
pub(crate) fn long_pause_thread() {
    std::thread::sleep(LONG_PAUSE);
}
