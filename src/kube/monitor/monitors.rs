//! Monitors: which watches run, and whom each of them feeds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use engine::hook::selection::{MonitorSpec, Namespaces, Selection};
use engine::{Event, Failure, FailureKind, MonitorId};
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::informer::Watching;
use super::object_filter::Sieve;
use super::timing::Timings;
use crate::cluster::Discovery;
use crate::cluster::watch::Kinds;
use crate::driver::Inbox;
use crate::jq::Threads;

/// All watches of bindings. Monitors with equal selections share one.
pub struct Monitors {
    client: Client,
    kinds: Arc<Kinds>,
    threads: Threads,
    watches: BTreeMap<Selection, Watch>,
    selections: BTreeMap<MonitorId, Selection>,
    health: Healths,
    timings: Timings,
}

/// A running watch.
struct Watch {
    users: watch::Sender<Users>,
    task: JoinHandle<()>,
}

/// The monitors that a watch feeds.
pub(super) type Users = BTreeMap<MonitorId, Sieve>;

/// How a watch is.
#[derive(Clone, Debug)]
pub struct WatchHealth {
    /// What it watches.
    pub name: String,
    /// Since when it is so. A watch that does not work does not since its last sign of life.
    pub since: Instant,
    /// Why it does not work; `None` when it does.
    pub error: Option<String>,
}

/// How all watches are, by name.
#[derive(Clone, Debug, Default)]
pub struct Healths(Arc<Mutex<BTreeMap<String, WatchHealth>>>);

impl Healths {
    /// Returns how all watches are.
    pub fn all(&self) -> Vec<WatchHealth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Takes in that a watch works.
    pub(crate) fn works(&self, name: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(name).is_none_or(|health| health.error.is_some()) {
            let health = WatchHealth { name: name.to_owned(), since: Instant::now(), error: None };
            all.insert(name.to_owned(), health);
        }
    }

    /// Takes in that a watch does not work; it did until `alive`.
    pub(crate) fn broke(&self, name: &str, error: String, alive: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = all.get(name).filter(|old| old.error.is_some()).map_or(alive, |old| old.since);
        let health = WatchHealth { name: name.to_owned(), since, error: Some(error) };
        all.insert(name.to_owned(), health);
    }

    fn forget(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

impl Monitors {
    /// Returns monitors of the cluster behind `client`; none runs yet.
    pub fn new(client: Client, discovery: Discovery) -> Self {
        Self {
            kinds: Arc::new(Kinds::new(client.clone(), discovery)),
            client,
            threads: Threads::default(),
            watches: BTreeMap::new(),
            selections: BTreeMap::new(),
            health: Healths::default(),
            timings: Timings::default(),
        }
    }

    /// Returns what tells how long watches work.
    pub fn timings(&self) -> Timings {
        self.timings.clone()
    }

    /// Returns how the watches are, now and later.
    pub fn health(&self) -> Healths {
        self.health.clone()
    }

    /// Begins to list and watch, or lets a running watch feed one more.
    pub fn start(&mut self, monitor: MonitorId, spec: &MonitorSpec, inbox: &Inbox) {
        let sieve = match Sieve::new(spec.jq_filter.as_deref(), spec.keep_objects) {
            Ok(sieve) => sieve.timed(monitor, self.timings.clone()),
            Err(error) => {
                let failure = Failure::new(FailureKind::HookOutput, error);
                inbox.answer(Event::WatchFailed { monitor, failure });
                return;
            }
        };
        let selection = spec.selection.clone();
        self.selections.insert(monitor, selection.clone());
        if let Some(watch) = self.watches.get(&selection) {
            watch.users.send_modify(|users| {
                users.insert(monitor, sieve);
            });
            return;
        }
        let (users, receiver) = watch::channel(Users::from([(monitor, sieve)]));
        let watching = Watching {
            client: self.client.clone(),
            kinds: Arc::clone(&self.kinds),
            threads: self.threads.clone(),
            selection: selection.clone(),
            name: name(&selection),
            users: receiver,
            inbox: inbox.clone(),
            health: self.health.clone(),
            alive: Instant::now(),
        };
        let task = tokio::spawn(watching.run());
        self.watches.insert(selection, Watch { users, task });
    }

    /// Stops to feed a monitor, and its watch if it fed nobody else.
    pub fn stop(&mut self, monitor: MonitorId) {
        let Some(selection) = self.selections.remove(&monitor) else { return };
        let Some(watch) = self.watches.get(&selection) else { return };
        watch.users.send_modify(|users| {
            users.remove(&monitor);
        });
        if watch.users.borrow().is_empty() {
            watch.task.abort();
            let name = name(&selection);
            self.health.forget(&format!("{name} (its namespaces)"));
            self.health.forget(&name);
            self.watches.remove(&selection);
        }
    }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        for watch in self.watches.values() {
            watch.task.abort();
        }
    }
}

/// Returns a selection as people name it.
fn name(selection: &Selection) -> String {
    let mut name = match (selection.api_version.as_str(), selection.kind.as_str()) {
        ("", kind) => kind.to_owned(),
        (version, kind) => format!("{version}/{kind}"),
    };
    match &selection.namespaces {
        Namespaces::All => {}
        Namespaces::Named(names) => {
            name.push_str(" in ");
            name.push_str(&names.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
        }
        Namespaces::Labelled(labels) => drop(write!(name, " in namespaces with {labels}")),
    }
    for (what, text) in [("labels", selection.labels.to_string()), ("fields", selection.fields.to_string())] {
        if !text.is_empty() {
            let _ = write!(name, ", {what} {text}");
        }
    }
    if !selection.names.is_empty() {
        let names: Vec<&str> = selection.names.iter().map(String::as_str).collect();
        let _ = write!(name, ", names {}", names.join(", "));
    }
    name
}
