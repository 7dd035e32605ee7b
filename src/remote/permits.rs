//! How many requests are in flight: so many in all, and two to a host.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many requests go to one host at a time.
pub(crate) const PER_HOST: usize = 2;

/// How long others wait for a server that says nothing.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many requests may hang besides. Each may have read much that is in memory.
pub(crate) const HANGING: usize = 16;

/// Lets requests pass, those to one host in the order in which they came.
///
/// Who waits for a host holds none of the permits of all: a host that hangs keeps nobody else waiting.
#[derive(Debug)]
pub(crate) struct Permits {
    all: Arc<Semaphore>,
    hanging: Arc<Semaphore>,
    hosts: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

/// The right to have one request in flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    /// That of its host and that of all, until it steps aside.
    places: Option<[OwnedSemaphorePermit; 2]>,
    /// Its place among those that stepped aside.
    aside: Option<OwnedSemaphorePermit>,
    hanging: Arc<Semaphore>,
}

impl Permit {
    /// Returns whether others may wait for it.
    pub(crate) fn is_in_the_way(&self) -> bool {
        self.places.is_some()
    }

    /// Lets others pass although the request is in flight still: its server hangs. Only [`HANGING`] requests may do so.
    pub(crate) fn step_aside(&mut self) {
        self.aside = Arc::clone(&self.hanging).try_acquire_owned().ok();
        if self.aside.is_some() {
            self.places = None;
        }
    }
}

impl Permits {
    /// Returns permits for `in_all` requests, at least for one.
    pub(crate) fn new(in_all: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(in_all.max(1))),
            hanging: Arc::new(Semaphore::new(HANGING)),
            hosts: Mutex::default(),
        }
    }

    /// Waits for the turn of a request to `host`, which is a name with a port.
    pub(crate) async fn acquire(&self, host: &str) -> Option<Permit> {
        // Nobody closes a semaphore, so both are there.
        let of_host = self.of_host(host).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Permit { places: Some([of_host, of_all]), aside: None, hanging: Arc::clone(&self.hanging) })
    }

    fn of_host(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody uses or waits for are forgotten, so that there are as many as requests at most.
        hosts.retain(|_, permits| Arc::strong_count(permits) > 1);
        let permits = hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(PER_HOST)));
        Arc::clone(permits)
    }
}

/// Waits for what a server does next. One that hangs gives its place to others: it must not hold up those of the same host.
pub(super) async fn patiently<T>(permit: &mut Option<Permit>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Some(permit) = permit.as_mut().filter(|permit| permit.is_in_the_way()) {
        if let Ok(done) = tokio::time::timeout(PATIENCE, &mut work).await {
            return done;
        }
        permit.step_aside();
    }
    work.await
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn so_many_that_hang_let_others_pass() {
        let permits = Permits::new(4);
        let now = || permits.acquire("a").now_or_never().flatten();
        let mut hanging: Vec<Permit> = Vec::new();
        for _ in 0..HANGING {
            let mut permit = now().unwrap();
            permit.step_aside();
            assert!(!permit.is_in_the_way());
            hanging.push(permit);
        }
        let mut busy = [now().unwrap(), now().unwrap()];
        busy.iter_mut().for_each(Permit::step_aside);
        assert!(busy.iter().all(Permit::is_in_the_way), "too many hang already");
        assert!(now().is_none());
        drop(hanging);
        busy.iter_mut().for_each(Permit::step_aside);
        assert!(now().is_some());
    }

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
