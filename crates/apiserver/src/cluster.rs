//! The state that requests share: the store, what is served, and who must hear of changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;
use tokio::sync::watch;

use crate::config::Config;
use crate::controllers::simulation;
use crate::fault_injection::Faults;
use crate::random::Random;
use crate::registry::Definition;
use crate::registry::{Registry, Resource};
use crate::storage::state_file::Saver;
use crate::store::{Committed, Event, Place, Refusal, Store, Stored, TableName, Write, key_of};
use crate::work_queue::{Chore, Chores};

/// A cluster: everything that the requests of all clients share.
pub(crate) struct Cluster {
    pub(crate) config: Config,
    store: RwLock<Store>,
    registry: RwLock<Arc<Registry>>,
    definitions: Mutex<std::collections::BTreeMap<String, Arc<Definition>>>,
    /// Tells watchers of a table the revision of its latest change.
    wakes: Mutex<HashMap<TableName, watch::Sender<u64>>>,
    /// Keeps the cluster in a file.
    pub(crate) saver: Arc<Saver>,
    random: Mutex<Random>,
    pub(crate) chores: Chores,
    pub(crate) faults: Faults,
    pub(crate) quiet: crate::storage::watchers::Quiet,
    pub(crate) addresses: crate::services::Addresses,
    pub(crate) tokens: crate::authentication::Tokens,
    pub(crate) documents: crate::discovery::Documents,
    pub(crate) published: crate::openapi::Documents,
}

/// The revision that watchers are told when their table is gone.
pub(crate) const CLOSED: u64 = u64::MAX;

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("revision", &self.read().revision()).finish_non_exhaustive()
    }
}

impl Cluster {
    pub(crate) fn new(config: Config) -> Cluster {
        Cluster {
            store: RwLock::new(Store::new(config.history)),
            registry: RwLock::new(Arc::new(Registry::new(std::iter::empty(), 1))),
            definitions: Mutex::default(),
            wakes: Mutex::default(),
            saver: Arc::default(),
            random: Mutex::new(Random::new(config.seed)),
            chores: Chores::default(),
            faults: Faults::default(),
            quiet: crate::storage::watchers::Quiet::default(),
            addresses: crate::services::Addresses::default(),
            tokens: crate::authentication::Tokens::default(),
            documents: crate::discovery::Documents::default(),
            published: crate::openapi::Documents::default(),
            config,
        }
    }

    /// Returns the time of this moment.
    pub(crate) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn random(&self) -> MutexGuard<'_, Random> {
        lock(&self.random)
    }

    /// Returns what is served at this moment.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the latest version of an object.
    pub(crate) fn get(&self, table: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Stored>> {
        self.read().get(table, &key_of(namespace, name)).cloned()
    }

    /// Returns the latest version of the object at `place`.
    pub(crate) fn at(&self, place: &Place) -> Option<Arc<Stored>> {
        self.read().get(&place.table, &place.key).cloned()
    }

    /// Commits a change and tells everybody who must hear of it.
    pub(crate) fn commit(&self, place: &Place, write: Write) -> Result<Committed, Refusal> {
        let now = self.now();
        let committed = self.write().commit(place, write, now)?;
        if let Committed::Changed(event) = &committed {
            self.announce(place, event);
        }
        Ok(committed)
    }

    fn announce(&self, place: &Place, event: &Arc<Event>) {
        if let Some(wake) = lock(&self.wakes).get(&place.table) {
            wake.send_replace(event.revision);
        }
        if self.config.state.is_some() {
            self.saver.mark(event.revision);
        }
        let store = self.read();
        self.chores.notice(&store, place, event);
        if self.config.simulate.is_some() && simulation::is_simulated(&place.table) {
            for affected in simulation::affected(&store, place, event) {
                self.chores.plan(Chore::Simulate(affected));
            }
        }
    }

    /// Returns a receiver that hears of the changes of a table.
    pub(crate) fn subscribe(&self, table: &TableName) -> watch::Receiver<u64> {
        let mut wakes = lock(&self.wakes);
        // Tables that nobody watches any more are forgotten here, where new watches begin.
        if wakes.len() > 256 {
            wakes.retain(|_, wake| wake.receiver_count() > 0);
        }
        wakes.entry(Arc::clone(table)).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Forgets the history: older revisions than the present one are expired.
    pub(crate) fn forget_history(&self) {
        self.write().forget_history();
    }

    /// Serves (or no longer serves) the kinds of a custom resource definition.
    pub(crate) fn define(&self, name: &str, definition: Option<Arc<Definition>>) {
        let mut definitions = lock(&self.definitions);
        let gone = match definition {
            Some(definition) => {
                definitions.insert(name.to_owned(), definition);
                None
            }
            None => definitions.remove(name),
        };
        let mut registry = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        *registry = Arc::new(Registry::new(definitions.values(), registry.generation + 1));
        drop(registry);
        if let Some(table) = gone.as_ref().and_then(|definition| definition.table())
            && let Some(wake) = lock(&self.wakes).remove(&table)
        {
            wake.send_replace(CLOSED);
        }
    }

    /// Returns the definition called `name`.
    pub(crate) fn definition(&self, name: &str) -> Option<Arc<Definition>> {
        lock(&self.definitions).get(name).cloned()
    }

    /// Puts back what an earlier life kept.
    pub(crate) fn restore(&self, restore: impl FnOnce(&mut Store)) {
        restore(&mut self.write());
    }

    /// Returns the built-in resource whose objects are in this table.
    pub(crate) fn resource_of(&self, table: &str) -> Option<Arc<Resource>> {
        self.registry().of_table(table).cloned()
    }
}

/// Locks what cannot be left half-changed: a panic elsewhere does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
