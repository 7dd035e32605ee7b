//! What a watch reads and passes on: lists, changes, and the objects of namespaces that join.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use engine::hook::WatchEvent;
use engine::snapshot::{Item, Key};
use engine::{Event, Failure, FailureKind, MonitorId};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use super::informer::{Ended, Lasting, Target, Watching, source};
use super::monitors::Users;
use super::namespaces::{LabelledNamespaces, Move};
use super::object_filter::{Raw, Sifted, sift};
use super::timing::Timing;
use crate::cluster::watch::{Changes, Head, Line, Source, StreamError, backoff, watch_error};
use crate::process::memory;

/// How many changes that came together are passed on as they are; of more, only the last of a series without a
/// deletion counts for each object.
const UNMERGED: usize = 64;

/// How long a watch has to last to count as one that works.
const SHORTEST: Duration = Duration::from_secs(1);

/// The first wait and the longest until the objects are listed again for a filter that did not work on one.
const REFILTER: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(5));

/// After how many bytes of a list the memory that was used for it is given back at once.
const LARGE_LIST: usize = 4 << 20;

/// The objects of each monitor.
type Objects = BTreeMap<MonitorId, Vec<(Key, Arc<Item>)>>;

/// What a list came to.
pub(super) struct Listed {
    /// The objects of those whose filter worked on all of them.
    pub(super) objects: Objects,
    /// The others.
    pub(super) failed: BTreeSet<MonitorId>,
    /// The version of each source behind which to follow.
    pub(super) versions: Vec<String>,
}

/// Whom a watch feeds while it follows.
struct Fed {
    users: Users,
    /// Up to which version of each source those know the objects that joined later.
    known: BTreeMap<MonitorId, Vec<u64>>,
    /// Those whose filter did not work on the list.
    failed: BTreeSet<MonitorId>,
    /// When and how often their objects are listed again.
    retry: Option<(Instant, u32)>,
}

/// An open watch of one source.
struct Stream {
    place: usize,
    source: Source,
    version: String,
    opened: Instant,
    changes: Changes,
}

impl Fed {
    /// Takes in that the filters of these monitors did not work.
    fn fail(&mut self, failed: BTreeSet<MonitorId>) {
        self.failed.extend(failed);
        let times = self.retry.map_or(0, |(_, times)| times) + 1;
        self.retry = (!self.failed.is_empty()).then(|| (Instant::now() + backoff(REFILTER, times), times));
    }

    /// Takes in whom the watch feeds now. Returns those that are new.
    fn replace(&mut self, users: Users) -> Users {
        self.known.retain(|monitor, _| users.contains_key(monitor));
        self.failed.retain(|monitor| users.contains_key(monitor));
        let old = std::mem::replace(&mut self.users, users);
        let mut new = self.users.clone();
        new.retain(|monitor, _| !old.contains_key(monitor));
        new
    }

    /// Returns those that a state of an object is news for.
    fn users_for(&self, place: usize, version: u64) -> Users {
        let is_news = |monitor: &MonitorId| {
            let known = self.known.get(monitor).and_then(|known| known.get(place));
            !self.failed.contains(monitor) && known.is_none_or(|known| version == 0 || version > *known)
        };
        self.users.iter().filter(|(monitor, _)| is_news(monitor)).map(|(m, s)| (*m, s.clone())).collect()
    }
}

impl Watching {
    /// Reads all pages of these sources. Nobody is told yet.
    pub(super) async fn list(
        &mut self,
        target: &Target,
        sources: &[Source],
        users: &Users,
        wanted: Option<BTreeSet<String>>,
    ) -> Result<Listed, StreamError> {
        let mut objects: Objects = users.keys().map(|monitor| (*monitor, Vec::new())).collect();
        let (mut failed, mut versions) = (BTreeSet::new(), Vec::new());
        let mut bytes = 0_usize;
        for source in sources {
            let mut pages = source.pages(&self.client);
            while let Some(items) = pages.next().await? {
                self.alive = Instant::now();
                let mut raws = Vec::with_capacity(items.len());
                for text in items {
                    bytes = bytes.saturating_add(text.len());
                    let key = Head::of(&text)?.key();
                    if self.is_named(&key)
                        && wanted.as_ref().is_none_or(|wanted| wanted.contains(&*key.namespace))
                    {
                        raws.push(Raw { text, key, change: WatchEvent::Added });
                    }
                }
                let sifted = sift(&self.threads, users, &target.completion, raws).await;
                for (monitor, items) in sifted.map_err(StreamError::Failed)? {
                    for sifted in items {
                        match sifted {
                            Sifted::Item { key, item, .. } => {
                                objects.entry(monitor).or_default().push((key, item));
                            }
                            Sifted::Failed(error) => {
                                if failed.insert(monitor) {
                                    self.tell_filter(monitor, error).await;
                                }
                            }
                        }
                    }
                }
            }
            versions.push(pages.into_version());
        }
        if bytes > LARGE_LIST {
            tokio::task::spawn_blocking(memory::give_back);
        }
        objects.retain(|monitor, _| !failed.contains(monitor));
        Ok(Listed { objects, failed, versions })
    }

    /// Passes lists on.
    pub(super) async fn tell_listed(&self, objects: Objects) {
        let lists: Vec<_> = objects.into_iter().collect();
        if !lists.is_empty() {
            self.inbox.event(Event::Listed { lists }).await;
        }
    }

    async fn tell_filter(&self, monitor: MonitorId, error: String) {
        let failure = Failure::new(FailureKind::HookOutput, error);
        self.inbox.event(Event::WatchFailed { monitor, failure }).await;
    }

    /// Follows the sources until something ends it.
    pub(super) async fn follow(
        &mut self,
        target: Target,
        versions: Vec<String>,
        users: Users,
        failed: BTreeSet<MonitorId>,
        lasting: &mut Lasting,
    ) -> Ended {
        let mut fed = Fed { users, known: BTreeMap::new(), failed: BTreeSet::new(), retry: None };
        fed.fail(failed);
        let client = self.client.clone();
        let opening = |place, source, version, wait| open(client.clone(), place, source, version, wait);
        let none = Duration::ZERO;
        let sources = target.sources.iter().cloned().zip(versions).enumerate();
        let mut closed: FuturesUnordered<_> =
            sources.map(|(place, (source, version))| opening(place, source, version, none)).collect();
        let mut streams = FuturesUnordered::new();
        let mut joined = self.users.clone();
        loop {
            tokio::select! {
                changed = joined.changed() => {
                    if changed.is_err() {
                        return Ended::Over;
                    }
                    let now = joined.borrow_and_update().clone();
                    let new = fed.replace(now);
                    if let Err(error) = self.admit(&target, new, &mut fed, names(lasting)).await {
                        return error.into();
                    }
                }
                () = changed(&mut lasting.crds) => if let Some(ended) = self.kind_changed(&target.resource).await {
                    return ended;
                },
                step = moved(&mut lasting.namespaces) => self.step(step, &target, &mut fed, lasting).await,
                () = due(fed.retry) => {
                    let failed = std::mem::take(&mut fed.failed);
                    let mut again = fed.users.clone();
                    again.retain(|monitor, _| failed.contains(monitor));
                    if let Err(error) = self.admit(&target, again, &mut fed, names(lasting)).await {
                        return error.into();
                    }
                }
                Some(opened) = closed.next() => match opened {
                    Ok(stream) => {
                        self.sign_of_life();
                        streams.push(next(stream));
                    }
                    Err(error) => return error.into(),
                },
                Some((mut stream, lines)) = streams.next() => match lines {
                    Ok(Some(lines)) => {
                        self.sign_of_life();
                        lasting.failures = 0;
                        let (changes, end) = self.select(&mut stream, lines, lasting.namespaces.as_ref());
                        match self.pass_on(stream.place, changes, &target, &fed).await.and(end) {
                            Ok(()) => streams.push(next(stream)),
                            Err(error) => return error.into(),
                        }
                    }
                    Ok(None) => {
                        self.sign_of_life();
                        let wait = SHORTEST.saturating_sub(stream.opened.elapsed());
                        closed.push(opening(stream.place, stream.source, stream.version, wait));
                    }
                    // A connection that broke is opened again where it was.
                    Err(error @ (StreamError::Failed(_) | StreamError::Silent)) => {
                        lasting.failures += 1;
                        if lasting.failures > 1 {
                            return error.into();
                        }
                        self.health.broke(&self.name, error.to_string(), self.alive);
                        closed.push(opening(stream.place, stream.source, stream.version, none));
                    }
                    Err(error) => return error.into(),
                },
            }
        }
    }

    /// Lists the objects for some of those that the watch feeds, and lets them follow.
    async fn admit(
        &mut self,
        target: &Target,
        users: Users,
        fed: &mut Fed,
        wanted: Option<BTreeSet<String>>,
    ) -> Result<(), StreamError> {
        if users.is_empty() {
            return Ok(());
        }
        let listed = self.list(target, &target.sources, &users, wanted).await?;
        let versions: Vec<u64> = listed.versions.iter().map(|version| number(version)).collect();
        fed.known.extend(listed.objects.keys().map(|monitor| (*monitor, versions.clone())));
        self.tell_listed(listed.objects).await;
        fed.fail(listed.failed);
        Ok(())
    }

    /// Takes in that a namespace came or went. What a hook sees of it changes without an event.
    async fn step(&mut self, step: Move, target: &Target, fed: &mut Fed, lasting: &mut Lasting) {
        let Some(namespaces) = &mut lasting.namespaces else { return };
        let part = format!("{} (its namespaces)", self.name);
        match step {
            Move::Works => self.health.works(&part),
            Move::Broken(error) => {
                self.health.broke(&part, error.clone(), namespaces.alive());
                self.tell_failure(&error).await;
            }
            Move::Leave(name) => {
                let nothing = fed.users.keys().map(|monitor| (*monitor, Vec::new())).collect();
                self.tell_namespace(&name, nothing).await;
                namespaces.leave(&name);
            }
            Move::Join(name) => {
                let source = source(&target.resource, &self.selection, Some(&name));
                let users = fed.users_for(0, 0);
                match self.list(target, &[source], &users, Some(BTreeSet::from([name.clone()]))).await {
                    Ok(listed) => {
                        self.tell_namespace(&name, listed.objects).await;
                        namespaces.join(name, listed.versions.first().map_or(0, |version| number(version)));
                        fed.fail(listed.failed);
                    }
                    Err(error) => {
                        self.tell_failure(&format!("namespace {name}: {error}")).await;
                        namespaces.put_off();
                    }
                }
            }
        }
    }

    async fn tell_namespace(&self, name: &str, objects: Objects) {
        for (monitor, objects) in objects {
            let namespace = Arc::from(name);
            self.inbox.event(Event::NamespaceListed { monitor, namespace, objects }).await;
        }
    }

    /// Returns the changes in these lines that count, up to an error among them.
    fn select(
        &self,
        stream: &mut Stream,
        lines: Vec<Line>,
        namespaces: Option<&LabelledNamespaces>,
    ) -> (Vec<(u64, Raw)>, Result<(), StreamError>) {
        let mut changes: Vec<(u64, Raw)> = Vec::with_capacity(lines.len());
        for line in lines {
            let change = match line.event.as_str() {
                "ADDED" => Some(WatchEvent::Added),
                "MODIFIED" => Some(WatchEvent::Modified),
                "DELETED" => Some(WatchEvent::Deleted),
                "ERROR" => return (merged(changes), Err(watch_error(&line.object))),
                // Bookmarks only move the version.
                _ => None,
            };
            let (key, version) = (line.head.key(), number(line.head.version()));
            if !line.head.version().is_empty() {
                line.head.version().clone_into(&mut stream.version);
            }
            let counts = namespaces.is_none_or(|all| all.counts(&key.namespace, version));
            if let Some(change) = change.filter(|_| counts && self.is_named(&key)) {
                changes.push((version, Raw { text: line.object, key, change }));
            }
        }
        (merged(changes), Ok(()))
    }

    /// Passes on changes that came together.
    async fn pass_on(
        &self,
        place: usize,
        changes: Vec<(u64, Raw)>,
        target: &Target,
        fed: &Fed,
    ) -> Result<(), StreamError> {
        let oldest = changes.iter().map(|(version, _)| *version).min().unwrap_or_default();
        let users = fed.users_for(place, oldest);
        let is_news_for_all = users.len() + fed.failed.len() == fed.users.len();
        if is_news_for_all {
            let raws = changes.into_iter().map(|(_, raw)| raw).collect();
            return self.tell_changes(&users, raws, target).await;
        }
        // Some have listed these objects a moment ago.
        for (version, raw) in changes {
            self.tell_changes(&fed.users_for(place, version), vec![raw], target).await?;
        }
        Ok(())
    }

    async fn tell_changes(&self, users: &Users, raws: Vec<Raw>, target: &Target) -> Result<(), StreamError> {
        if raws.is_empty() || users.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let sifted = sift(&self.threads, users, &target.completion, raws).await;
        let mut lists: Vec<_> = sifted
            .map_err(StreamError::Failed)?
            .into_iter()
            .map(|(monitor, items)| (monitor, items.into_iter()))
            .collect();
        // Object by object: all hear of one at the same moment.
        loop {
            let mut told = None;
            let mut items = Vec::with_capacity(lists.len());
            let mut is_done = true;
            for (monitor, sifted) in &mut lists {
                let Some(sifted) = sifted.next() else { continue };
                is_done = false;
                match sifted {
                    Sifted::Item { change, key, item } => {
                        told = Some((change, key));
                        items.push((*monitor, item));
                        if let Some(sieve) = users.get(monitor) {
                            sieve.took(Timing::PassedOn(begun.elapsed()));
                        }
                    }
                    // The last good state stays.
                    Sifted::Failed(error) => self.tell_filter(*monitor, error).await,
                }
            }
            if let Some((change, key)) = told {
                self.inbox.event(Event::ObjectChanged { change, key, items }).await;
            }
            if is_done {
                return Ok(());
            }
        }
    }

    fn is_named(&self, key: &Key) -> bool {
        let names = &self.selection.names;
        names.is_empty() || names.contains(&*key.name)
    }
}

async fn open(
    client: Client,
    place: usize,
    source: Source,
    version: String,
    wait: Duration,
) -> Result<Stream, StreamError> {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    let changes = source.watch(&client, &version).await?;
    Ok(Stream { place, source, version, opened: Instant::now(), changes })
}

async fn next(mut stream: Stream) -> (Stream, Result<Option<Vec<Line>>, StreamError>) {
    let lines = stream.changes.next().await;
    (stream, lines)
}

async fn changed(crds: &mut Option<watch::Receiver<u64>>) {
    let over = match crds {
        Some(crds) => crds.changed().await.is_err(),
        None => true,
    };
    if over {
        std::future::pending::<()>().await;
    }
}

/// Returns the namespaces that a watch is about; `None` when there is no selector for them.
pub(super) fn names(lasting: &Lasting) -> Option<BTreeSet<String>> {
    lasting.namespaces.as_ref().map(LabelledNamespaces::names)
}

async fn moved(namespaces: &mut Option<LabelledNamespaces>) -> Move {
    match namespaces {
        Some(namespaces) => namespaces.next().await,
        None => std::future::pending().await,
    }
}

async fn due(retry: Option<(Instant, u32)>) {
    match retry {
        Some((at, _)) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Returns a version as a number; 0 when it is none.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

/// Returns the changes without those that a later one of the same object makes worthless, if they are many.
///
/// Deletions stay, and the order of each object.
fn merged(changes: Vec<(u64, Raw)>) -> Vec<(u64, Raw)> {
    if changes.len() <= UNMERGED {
        return changes;
    }
    // From the end: what is followed by a newer state of the same object is not needed.
    let mut followed: BTreeSet<Key> = BTreeSet::new();
    let mut kept = Vec::with_capacity(changes.len());
    for (version, raw) in changes.into_iter().rev() {
        match raw.change {
            WatchEvent::Deleted => {
                followed.remove(&raw.key);
                kept.push((version, raw));
            }
            WatchEvent::Added | WatchEvent::Modified => {
                if followed.insert(raw.key.clone()) {
                    kept.push((version, raw));
                }
            }
        }
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_changes_the_last_of_each_object_and_all_deletions_stay_in_order() {
        use WatchEvent::{Added, Deleted, Modified};
        let raw = |version: u64, name: &str, change| {
            (version, Raw { text: bytes::Bytes::new(), key: Key::new("", name), change })
        };
        let mut changes = vec![
            raw(1, "a", Added),
            raw(2, "b", Added),
            raw(3, "a", Modified),
            raw(4, "a", Deleted),
            raw(5, "a", Added),
            raw(6, "b", Modified),
        ];
        assert_eq!(merged(changes.clone()).len(), changes.len());
        changes.extend((7..100).map(|version| raw(version, "a", Modified)));
        let kept: Vec<u64> = merged(changes).into_iter().map(|(version, _)| version).collect();
        assert_eq!(kept, [3, 4, 6, 99]);
    }
}
