//! One supervised watch: it lists, follows, and after any break begins again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use engine::hook::WatchEvent;
use engine::hook::selection::{LabelSelector, Namespaces, Selection};
use engine::snapshot::{Item, Key};
use engine::{Event, Failure, FailureKind, MonitorId};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::Namespace;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::watch;

use super::filtering::FilterThreads;
use super::kinds::Kinds;
use super::monitors::{Healths, Users};
use super::stream::{Changes, Line, Source, StreamError, encode};
use crate::cluster::{ResolveError, Resource};
use crate::driver::Inbox;

/// The first wait after a failure, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));

/// How long a new watch waits for others that start with it.
const GATHER: Duration = Duration::from_millis(2);

/// One watch and whom it feeds.
pub(super) struct Watching {
    pub(super) client: Client,
    pub(super) kinds: Arc<Kinds>,
    pub(super) threads: FilterThreads,
    pub(super) selection: Selection,
    pub(super) name: String,
    pub(super) users: watch::Receiver<Users>,
    pub(super) inbox: Inbox,
    pub(super) health: Healths,
}

/// Why a round of listing and following ended.
enum Ended {
    /// Something that a new list mends: a forgotten version, a new user, other namespaces.
    Relist,
    /// The kind is not there.
    KindMissing(String),
    /// An error; the next round waits.
    Failed(String),
    /// Nobody listens any more.
    Over,
}

impl Watching {
    pub(super) async fn run(mut self) {
        tokio::time::sleep(GATHER).await;
        let mut failures: u32 = 0;
        let mut missing = false;
        loop {
            let mut kinds = self.kinds.changes().await;
            kinds.mark_unchanged();
            match self.round(&mut failures, &mut missing).await {
                Ended::Over => return,
                Ended::Relist => {}
                Ended::KindMissing(kind) => {
                    if !missing {
                        missing = true;
                        self.tell(|monitor| Event::KindVanished { monitor, kind: kind.clone() }).await;
                    }
                    self.health.set(&self.name, None);
                    if kinds.changed().await.is_err() {
                        return;
                    }
                }
                Ended::Failed(error) => {
                    failures += 1;
                    self.health.set(&self.name, Some(error.clone()));
                    let message = format!("watch of {}: {error}", self.name);
                    let failure = Failure::new(FailureKind::Cluster, message);
                    self.tell(|monitor| Event::WatchFailed { monitor, failure: failure.clone() }).await;
                    tokio::time::sleep(backoff(failures)).await;
                }
            }
        }
    }

    /// Lists and then follows until something ends it.
    async fn round(&mut self, failures: &mut u32, missing: &mut bool) -> Ended {
        let selection = self.selection.clone();
        let resource = match self.kinds.resolve(&selection.api_version, &selection.kind).await {
            Ok(resource) => resource,
            Err(ResolveError::Unknown(_)) => return Ended::KindMissing(kind_name(&selection)),
            Err(error @ ResolveError::Cluster(_)) => return Ended::Failed(chain(&error)),
        };
        let mut namespaces = LabelledNamespaces::new(&self.client, &selection.namespaces);
        if let Some(namespaces) = &mut namespaces
            && let Err(error) = namespaces.list().await
        {
            return Ended::Failed(error);
        }
        let users = self.users.borrow_and_update().clone();
        let mut versions = Vec::new();
        let sources = sources(&resource, &selection);
        for (place, source) in sources.iter().enumerate() {
            let is_last = place + 1 == sources.len();
            match self.list(source, &users, namespaces.as_ref(), is_last).await {
                Ok(version) => versions.push(version),
                Err(StreamError::Gone) => return Ended::KindMissing(kind_name(&selection)),
                Err(StreamError::Expired) => return Ended::Relist,
                Err(StreamError::Failed(error)) => return Ended::Failed(error),
            }
        }
        if std::mem::take(missing) {
            self.tell(|monitor| Event::KindAppeared { monitor }).await;
        }
        *failures = 0;
        self.health.set(&self.name, None);
        self.follow(sources, versions, &users, namespaces, failures).await
    }

    /// Reads all pages of one source and passes them on. Returns the version behind which to follow.
    async fn list(
        &self,
        source: &Source,
        users: &Users,
        namespaces: Option<&LabelledNamespaces>,
        is_last: bool,
    ) -> Result<String, StreamError> {
        let mut next: Option<String> = None;
        loop {
            let page = source.page(&self.client, next.as_deref()).await?;
            let mut pages: BTreeMap<MonitorId, Vec<(Key, Arc<Item>)>> =
                users.keys().map(|monitor| (*monitor, Vec::new())).collect();
            for object in page.items {
                let key = key_of(&object);
                if !self.is_selected(&key, namespaces) {
                    continue;
                }
                let object = Arc::new(object);
                for (monitor, sieve) in users {
                    let item = sieve.item(&self.threads, &object).await;
                    let item = item.map_err(|error| {
                        StreamError::Failed(format!("filter of object {}: {error}", show(&key)))
                    })?;
                    pages.entry(*monitor).or_default().push((key.clone(), item));
                }
            }
            let last = is_last && page.next.is_none();
            for (monitor, page) in pages {
                self.inbox.event(Event::Listed { monitor, page, last }).await;
            }
            match page.next {
                Some(token) => next = Some(token),
                None => return Ok(page.version),
            }
        }
    }

    async fn follow(
        &mut self,
        sources: Vec<Source>,
        versions: Vec<String>,
        users: &Users,
        namespaces: Option<LabelledNamespaces>,
        failures: &mut u32,
    ) -> Ended {
        let mut others = pin!(LabelledNamespaces::changed(namespaces.clone()));
        let mut streams: FuturesUnordered<_> = sources
            .into_iter()
            .zip(versions)
            .map(|(source, version)| open(self.client.clone(), source, version))
            .collect();
        let mut open_streams = FuturesUnordered::new();
        let mut joined = self.users.clone();
        joined.mark_unchanged();
        loop {
            tokio::select! {
                changed = joined.changed() => {
                    if changed.is_err() {
                        return Ended::Over;
                    }
                    let now = joined.borrow_and_update().clone();
                    if now.keys().any(|monitor| !users.contains_key(monitor)) {
                        return Ended::Relist;
                    }
                }
                () = &mut others => return Ended::Relist,
                Some(opened) = streams.next() => match opened {
                    Ok(stream) => open_streams.push(next(stream)),
                    Err(error) => return ended(error, &self.selection),
                },
                Some((mut stream, line)) = open_streams.next() => match line {
                    Ok(None) => streams.push(open(self.client.clone(), stream.source, stream.version)),
                    Ok(Some(line)) => match self.take(&mut stream, line, users, namespaces.as_ref()).await {
                        Ok(()) => {
                            *failures = 0;
                            open_streams.push(next(stream));
                        }
                        Err(error) => return ended(error, &self.selection),
                    },
                    // A connection that broke is opened again where it was.
                    Err(StreamError::Failed(error)) => {
                        *failures += 1;
                        if *failures > 1 {
                            return Ended::Failed(error);
                        }
                        streams.push(open(self.client.clone(), stream.source, stream.version));
                    }
                    Err(error) => return ended(error, &self.selection),
                },
            }
        }
    }

    /// Passes on one change.
    async fn take(
        &self,
        stream: &mut Stream,
        line: Line,
        users: &Users,
        namespaces: Option<&LabelledNamespaces>,
    ) -> Result<(), StreamError> {
        let change = match line.event.as_str() {
            "ADDED" => WatchEvent::Added,
            "MODIFIED" => WatchEvent::Modified,
            "DELETED" => WatchEvent::Deleted,
            "ERROR" => return Err(watch_error(&line.object)),
            // Bookmarks only move the version.
            _ => {
                stream.move_to(&line.object);
                return Ok(());
            }
        };
        stream.move_to(&line.object);
        let key = key_of(&line.object);
        if !self.is_selected(&key, namespaces) {
            return Ok(());
        }
        let object = Arc::new(line.object);
        for (monitor, sieve) in users {
            let item = if change == WatchEvent::Deleted {
                sieve.last_item(&self.threads, &object).await
            } else {
                match sieve.item(&self.threads, &object).await {
                    Ok(item) => item,
                    // The last good state stays.
                    Err(error) => {
                        let message = format!("filter of object {}: {error}", show(&key));
                        let failure = Failure::new(FailureKind::HookOutput, message);
                        self.inbox.event(Event::WatchFailed { monitor: *monitor, failure }).await;
                        continue;
                    }
                }
            };
            let event = Event::ObjectChanged { monitor: *monitor, change, key: key.clone(), item };
            self.inbox.event(event).await;
        }
        Ok(())
    }

    fn is_selected(&self, key: &Key, namespaces: Option<&LabelledNamespaces>) -> bool {
        let names = &self.selection.names;
        (names.is_empty() || names.contains(&*key.name))
            && namespaces.is_none_or(|namespaces| namespaces.matching.contains(&*key.namespace))
    }

    async fn tell(&self, event: impl Fn(MonitorId) -> Event) {
        let users: Vec<MonitorId> = self.users.borrow().keys().copied().collect();
        for monitor in users {
            self.inbox.event(event(monitor)).await;
        }
    }
}

/// An open watch of one source.
struct Stream {
    source: Source,
    version: String,
    changes: Changes,
}

impl Stream {
    fn move_to(&mut self, object: &Value) {
        if let Some(version) = object.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
            version.clone_into(&mut self.version);
        }
    }
}

async fn open(client: Client, source: Source, version: String) -> Result<Stream, StreamError> {
    let changes = source.watch(&client, &version).await?;
    Ok(Stream { source, version, changes })
}

async fn next(mut stream: Stream) -> (Stream, Result<Option<Line>, StreamError>) {
    let line = stream.changes.next().await;
    (stream, line)
}

fn ended(error: StreamError, selection: &Selection) -> Ended {
    match error {
        StreamError::Expired => Ended::Relist,
        StreamError::Gone => Ended::KindMissing(kind_name(selection)),
        StreamError::Failed(error) => Ended::Failed(error),
    }
}

fn watch_error(status: &Value) -> StreamError {
    if status.get("code").and_then(Value::as_u64) == Some(410) {
        return StreamError::Expired;
    }
    let message = status.get("message").and_then(Value::as_str).unwrap_or("the watch ended with an error");
    StreamError::Failed(message.to_owned())
}

/// The namespaces whose labels match, as they come and go.
#[derive(Clone)]
struct LabelledNamespaces {
    api: Api<Namespace>,
    selector: LabelSelector,
    matching: BTreeSet<String>,
}

impl LabelledNamespaces {
    fn new(client: &Client, namespaces: &Namespaces) -> Option<Self> {
        match namespaces {
            Namespaces::Labelled(selector) => Some(Self {
                api: Api::all(client.clone()),
                selector: selector.clone(),
                matching: BTreeSet::new(),
            }),
            Namespaces::All | Namespaces::Named(_) => None,
        }
    }

    async fn list(&mut self) -> Result<(), String> {
        let params = kube::api::ListParams::default().labels(&self.selector.to_string());
        let list = self.api.list_metadata(&params).await;
        let list =
            list.map_err(|error| crate::cluster::failure("can't list namespaces", &error).to_string())?;
        self.matching = list.items.into_iter().filter_map(|namespace| namespace.metadata.name).collect();
        Ok(())
    }

    /// Returns when other namespaces match than those that were listed; never without a selector.
    async fn changed(namespaces: Option<Self>) {
        let Some(namespaces) = namespaces else { return std::future::pending().await };
        let selected = watcher::Config::default().labels(&namespaces.selector.to_string());
        let mut events = pin!(watcher(namespaces.api.clone(), selected).default_backoff());
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            let name = |namespace: Namespace| namespace.metadata.name.unwrap_or_default();
            let differs = match event {
                Ok(watcher::Event::Init) => {
                    listed.clear();
                    false
                }
                Ok(watcher::Event::InitApply(namespace)) => {
                    listed.insert(name(namespace));
                    false
                }
                Ok(watcher::Event::InitDone) => listed != namespaces.matching,
                Ok(watcher::Event::Apply(namespace)) => !namespaces.matching.contains(&name(namespace)),
                Ok(watcher::Event::Delete(namespace)) => namespaces.matching.contains(&name(namespace)),
                Err(_) => false,
            };
            if differs {
                return;
            }
        }
    }
}

/// Returns what is listed and watched for a selection.
fn sources(resource: &Resource, selection: &Selection) -> Vec<Source> {
    let mut fields = selection.fields.to_string();
    if let (Some(name), 1) = (selection.names.first(), selection.names.len()) {
        let by_name = format!("metadata.name={name}");
        fields = if fields.is_empty() { by_name } else { format!("{fields},{by_name}") };
    }
    let mut query = String::new();
    for (parameter, selector) in [("labelSelector", selection.labels.to_string()), ("fieldSelector", fields)]
    {
        if !selector.is_empty() {
            let _ = write!(query, "&{parameter}={}", encode(&selector));
        }
    }
    let source = |namespace: Option<&str>| Source {
        path: resource.path(namespace),
        query: query.clone(),
        api_version: resource.api_version(),
        kind: resource.kind.clone(),
    };
    match &selection.namespaces {
        Namespaces::Named(names) => names.iter().map(|name| source(Some(name))).collect(),
        Namespaces::All | Namespaces::Labelled(_) => vec![source(None)],
    }
}

fn key_of(object: &Value) -> Key {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    Key::new(text("/metadata/namespace"), text("/metadata/name"))
}

fn show(key: &Key) -> String {
    if key.namespace.is_empty() { key.name.to_string() } else { format!("{}/{}", key.namespace, key.name) }
}

fn kind_name(selection: &Selection) -> String {
    if selection.api_version.is_empty() {
        selection.kind.clone()
    } else {
        format!("{}/{}", selection.api_version, selection.kind)
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    Failure::of(FailureKind::Cluster, error).to_string()
}

/// Returns how long to wait after so many failures in a row, a little different for each.
fn backoff(failures: u32) -> Duration {
    let (first, longest) = BACKOFF;
    let doubled = first.saturating_mul(1 << failures.saturating_sub(1).min(8)).min(longest);
    doubled.mul_f64(rand::random_range(0.8..1.2))
}
