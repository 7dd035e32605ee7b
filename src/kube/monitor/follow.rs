//! What an informer does behind its lists: it follows changes, and lists for monitors and namespaces that join.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{Event, FailureKind};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;

use super::changes::number;
use super::informer::{Informer, RoundEnd, State};
use super::listing::{Listed, Objects};
use super::namespaces::{LabelledNamespaces, Step};
use super::object_filter::Subscribers;
use super::selection::{Target, collection};
use super::subscriptions::Subscriptions;
use crate::cluster::watch::{Progress, Watch, WatchError};
use crate::cluster::{Crds, Resource};

/// What stands for the lists of namespaces that join, among the numbers of collections.
const NAMESPACES: usize = usize::MAX;

/// What a watch of one of the collections did.
struct Followed {
    collection: usize,
    watch: Watch,
    outcome: Result<Progress, WatchError>,
}

impl Informer {
    /// Follows the collections of `target`, each behind one of `versions`, until something ends it.
    pub(super) async fn follow(
        &mut self,
        target: Target,
        versions: Vec<String>,
        mut subscriptions: Subscriptions,
        state: &mut State,
    ) -> RoundEnd {
        let collections = target.collections.iter().cloned().zip(versions).enumerate();
        let mut watches: FuturesUnordered<_> = collections
            .map(|(place, (collection, version))| {
                let steadiness = state.steadiness.get(&place).copied().unwrap_or_default();
                next(place, Watch::new(self.requests.clone(), collection, version).after(steadiness))
            })
            .collect();
        let mut subscribers = self.subscribers.clone();
        state.condition.begin(watches.len());
        loop {
            tokio::select! {
                changed = subscribers.changed() => {
                    if changed.is_err() {
                        return RoundEnd::Over;
                    }
                    let now = subscribers.borrow_and_update().clone();
                    self.listed.retain(|monitor| now.contains_key(monitor));
                    let new = subscriptions.replace(now);
                    if let Err(error) = self.admit(&target, new, &mut subscriptions, state.namespace_names()).await {
                        return error.into();
                    }
                }
                () = changed(&mut state.crds) => if let Some(end) = self.kind_changed(&target.resource).await {
                    return end;
                },
                step = next_step(&mut state.namespaces) => {
                    self.carry_out(step, &target, &mut subscriptions, state).await;
                }
                again = subscriptions.due() => {
                    if let Err(error) = self.admit(&target, again, &mut subscriptions, state.namespace_names()).await {
                        return error.into();
                    }
                }
                Some(followed) = watches.next() => {
                    match self.advance(followed, &target, &subscriptions, state).await {
                        Ok((place, watch)) => watches.push(next(place, watch)),
                        Err(error) => return self.why_ended(error, &target.resource).await,
                    }
                }
            }
        }
    }

    /// Returns why the round ends after a watch failed.
    async fn why_ended(&self, error: WatchError, resource: &Resource) -> RoundEnd {
        if let WatchError::KindMissing = error {
            self.discovery.refresh();
            let changed = self.kind_changed(resource).await;
            return changed.unwrap_or_else(|| {
                RoundEnd::Failed(FailureKind::Cluster, "it can be listed, but not watched".to_owned())
            });
        }
        error.into()
    }

    /// Reports what a watch did. Returns the watch, which goes on.
    async fn advance(
        &mut self,
        followed: Followed,
        target: &Target,
        subscriptions: &Subscriptions,
        state: &mut State,
    ) -> Result<(usize, Watch), WatchError> {
        let Followed { collection, mut watch, outcome } = followed;
        match outcome {
            Ok(Progress::Opened | Progress::Ended) => {}
            Ok(Progress::Lasts) => self.works(collection, state).await,
            Ok(Progress::Changed(changes)) => {
                if watch.lasts() {
                    self.works(collection, state).await;
                }
                let changes = self.select(changes, state.namespaces.as_ref());
                self.publish_changes(collection, changes, &target.type_meta, subscriptions).await?;
            }
            // For a minute nothing was seen, or what is seen lasts for moments.
            Ok(Progress::Broke(error @ WatchError::Silent) | Progress::Unsteady(error)) => {
                state.condition.fail(collection);
                self.report_failure(&error, state).await;
            }
            Ok(Progress::Broke(error)) => {
                tracing::debug!("the watch of {} is opened again: {error}", self.name);
            }
            Err(error) if error.keeps_version(state.attempts.failures()) => {
                watch.put_off(state.attempts.fail());
                state.condition.fail(collection);
                self.report_failure(&error, state).await;
            }
            Err(error) => {
                state.steadiness.insert(collection, watch.steadiness());
                return Err(error);
            }
        }
        Ok((collection, watch))
    }

    async fn works(&self, collection: usize, state: &mut State) {
        // A namespace that could be listed is no watch that lasts.
        if collection != NAMESPACES {
            state.attempts.work();
        }
        if state.condition.works(collection) {
            self.report(|monitor| Event::WatchRestored { monitor }).await;
        }
    }

    /// Lists the objects for some of the monitors, which follow from there.
    async fn admit(
        &mut self,
        target: &Target,
        subscribers: Subscribers,
        subscriptions: &mut Subscriptions,
        namespaces: Option<BTreeSet<String>>,
    ) -> Result<(), WatchError> {
        if subscribers.is_empty() {
            return Ok(());
        }
        let listed = self.list(&target.type_meta, &target.collections, &subscribers, namespaces).await?;
        let versions: Vec<u64> = listed.versions.iter().map(|version| number(version)).collect();
        subscriptions.list(listed.objects.keys().copied(), &versions);
        self.publish_lists(&target.resource, listed.objects).await;
        subscriptions.fail(listed.failed);
        Ok(())
    }

    /// Handles a namespace that joined or left. The snapshots of hooks change without an event.
    async fn carry_out(
        &mut self,
        step: Step,
        target: &Target,
        subscriptions: &mut Subscriptions,
        state: &mut State,
    ) {
        let Some(namespaces) = &mut state.namespaces else { return };
        match step {
            Step::Leave(name) => {
                let nothing = subscriptions.monitors().map(|monitor| (monitor, Vec::new())).collect();
                self.publish_namespace(&name, nothing).await;
                namespaces.leave(&name);
            }
            Step::Join(name) => match self.list_namespace(&name, target, subscriptions).await {
                Ok(listed) => {
                    self.publish_namespace(&name, listed.objects).await;
                    namespaces.join(name, listed.versions.first().map_or(0, |version| number(version)));
                    subscriptions.fail(listed.failed);
                    self.works(NAMESPACES, state).await;
                }
                Err(error) => {
                    namespaces.put_off();
                    state.condition.fail(NAMESPACES);
                    self.report_failed(error.kind(), &format!("namespace {name}: {error}"), state).await;
                }
            },
        }
    }

    async fn list_namespace(
        &mut self,
        name: &str,
        target: &Target,
        subscriptions: &Subscriptions,
    ) -> Result<Listed, WatchError> {
        let collection = collection(&target.resource, &self.selection, Some(name));
        let only = BTreeSet::from([name.to_owned()]);
        self.list(&target.type_meta, &[collection], &subscriptions.working(), Some(only)).await
    }

    async fn publish_namespace(&self, name: &str, objects: Objects) {
        for (monitor, objects) in objects {
            let namespace = Arc::from(name);
            self.inbox.event(Event::NamespaceListed { monitor, namespace, objects }).await;
        }
    }
}

async fn next(collection: usize, mut watch: Watch) -> Followed {
    let outcome = watch.next().await;
    Followed { collection, watch, outcome }
}

async fn changed(crds: &mut Option<watch::Receiver<Crds>>) {
    let over = match crds {
        Some(crds) => crds.changed().await.is_err(),
        None => true,
    };
    if over {
        std::future::pending::<()>().await;
    }
}

async fn next_step(namespaces: &mut Option<LabelledNamespaces>) -> Step {
    match namespaces {
        Some(namespaces) => namespaces.next().await,
        None => std::future::pending().await,
    }
}
