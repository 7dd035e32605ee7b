//! How many requests are in flight: so many in all, and two to a host.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many requests go to one host at a time.
pub(crate) const PER_HOST: usize = 2;

/// Lets requests pass, those to one host in the order in which they came.
///
/// Who waits for a host holds none of the permits of all: a host that hangs keeps nobody else waiting.
#[derive(Debug)]
pub(crate) struct Permits {
    all: Arc<Semaphore>,
    hosts: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

/// The right to have one request in flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    _host: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Permits {
    /// Returns permits for `in_all` requests, at least for one.
    pub(crate) fn new(in_all: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(in_all.max(1))), hosts: Mutex::default() }
    }

    /// Waits for the turn of a request to `host`, which is a name with a port.
    pub(crate) async fn acquire(&self, host: &str) -> Option<Permit> {
        // Nobody closes a semaphore, so both are there.
        let of_host = self.of_host(host).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Permit { _host: of_host, _all: of_all })
    }

    fn of_host(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody uses or waits for are forgotten, so that there are as many as requests at most.
        hosts.retain(|_, permits| Arc::strong_count(permits) > 1);
        let permits = hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(PER_HOST)));
        Arc::clone(permits)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn two_pass_to_a_host_and_no_more_in_all_than_there_are() {
        let permits = Permits::new(4);
        let now = |host: &'static str| permits.acquire(host).now_or_never().flatten();
        let (first, second) = (now("a"), now("a"));
        assert!(first.is_some() && second.is_some());
        assert!(now("a").is_none(), "a third to the same host waits");
        let (third, fourth) = (now("b"), now("b"));
        assert!(third.is_some() && fourth.is_some());
        assert!(now("c").is_none(), "there are four in all");
        drop(third);
        assert!(now("a").is_none());
        assert!(now("c").is_some());
        drop((first, second, fourth));
        assert!(now("a").is_some());
    }

    #[tokio::test]
    async fn who_waits_for_a_host_takes_the_turn_of_nobody_else() {
        let permits = Permits::new(3);
        let busy = (permits.acquire("a").await, permits.acquire("a").await);
        let mut waiting = Box::pin(permits.acquire("a"));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(permits.acquire("b").now_or_never().flatten().is_some());
        drop(busy);
        assert!(waiting.now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn hosts_that_nobody_asks_are_forgotten() {
        let permits = Permits::new(4);
        for number in 0..100 {
            drop(permits.acquire(&format!("host-{number}")).await);
        }
        let permit = permits.acquire("last").await;
        assert_eq!(permits.hosts.lock().unwrap().len(), 1);
        drop(permit);
    }
}
