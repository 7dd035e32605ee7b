//! Who may work when. What takes memory is done one at a time; what waits for the disk is done one at a time for each
//! configuration, so that none waits while another one unpacks thousands of files. The configurations of one namespace have a few
//! of all these turns, whoever else is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use engine::{Failure, FailureKind, SourceKey, SourceKind};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many configurations do something on the disk at a time. Each has its names in memory, and a thread.
const DISK_TURNS: usize = 32;

/// How many of them may be of one namespace.
const DISK_TURNS_OF_NAMESPACE: usize = 4;

/// The turns of all configurations.
#[derive(Debug)]
pub(super) struct Turns {
    memory: Arc<Semaphore>,
    disk: Arc<Semaphore>,
    configurations: Mutex<BTreeMap<SourceKey, Weak<Semaphore>>>,
    namespaces: Mutex<BTreeMap<Arc<str>, Weak<Semaphore>>>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            memory: Arc::new(Semaphore::new(1)),
            disk: Arc::new(Semaphore::new(DISK_TURNS)),
            configurations: Mutex::default(),
            namespaces: Mutex::default(),
        }
    }
}

/// The turn to take memory, for work on a thread of its own.
pub(super) struct MemoryTurn {
    memory: Arc<Semaphore>,
    runtime: Handle,
}

impl MemoryTurn {
    /// Waits until nobody else takes memory.
    pub(super) fn wait(&self) -> Result<SemaphorePermit<'_>, Failure> {
        let turn = self.runtime.block_on(self.memory.acquire());
        turn.map_err(|error| Failure::of(FailureKind::Bug, &error))
    }
}

impl Turns {
    /// Does what takes memory on a thread of its own, when it is its turn.
    pub(super) async fn in_memory<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        // It goes into the thread, which goes on when nobody waits for it any more.
        let turn = Arc::clone(&self.memory).acquire_owned().await;
        blocking(move || {
            let _turn = turn;
            work()
        })
        .await
    }

    /// Does what waits for the disk on a thread of its own, when nothing else is done there for the same configuration.
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        source: &SourceKey,
        work: impl FnOnce(&MemoryTurn) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let own = of(&self.configurations, source, 1).acquire_owned().await;
        let of_namespace = match source.kind {
            SourceKind::Cluster => None,
            SourceKind::Namespaced => {
                let turns = of(&self.namespaces, &source.namespace, DISK_TURNS_OF_NAMESPACE);
                Some(turns.acquire_owned().await)
            }
        };
        let turn = (own, of_namespace, Arc::clone(&self.disk).acquire_owned().await);
        let memory = MemoryTurn { memory: Arc::clone(&self.memory), runtime: Handle::current() };
        blocking(move || {
            let _turn = turn;
            work(&memory)
        })
        .await
    }
}

/// Returns the turns of one of many, of whom only those are known that have or wait for one.
fn of<K: Clone + Ord>(all: &Mutex<BTreeMap<K, Weak<Semaphore>>>, key: &K, count: usize) -> Arc<Semaphore> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(turns) = all.get(key).and_then(Weak::upgrade) {
        return turns;
    }
    all.retain(|_, turns| turns.strong_count() > 0);
    let turns = Arc::new(Semaphore::new(count));
    all.insert(key.clone(), Arc::downgrade(&turns));
    turns
}

/// Does what waits for the disk on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Failure::new(FailureKind::Bug, format!("a defect of the operator, in module sources: {error}"))
    })
}
