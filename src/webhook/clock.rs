//! What time it is for certificates, whose times are months.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

/// How long is waited at most until the time is looked at again: the clock of the system may jump, and a machine may sleep.
const LOOK: Duration = Duration::from_hours(1);

/// What time it is.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// That of the system.
    #[default]
    System,
    /// What somebody says.
    Held(watch::Receiver<Timestamp>),
}

impl Clock {
    /// Returns the time.
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Held(time) => *time.borrow(),
        }
    }

    /// Waits until a time.
    pub(super) async fn until(&self, time: Timestamp) {
        match self {
            Self::System => loop {
                match Duration::try_from(time.duration_since(Timestamp::now())) {
                    Ok(left) if !left.is_zero() => tokio::time::sleep(left.min(LOOK)).await,
                    _ => return,
                }
            },
            Self::Held(held) => {
                if held.clone().wait_for(|now| *now >= time).await.is_err() {
                    // Nobody moves it any more.
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}
