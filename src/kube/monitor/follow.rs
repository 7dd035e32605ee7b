//! What an informer does behind its lists: it follows changes, and lists for monitors and namespaces that join.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::Event;
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

/// What a watch of one of the collections did.
struct Followed {
    collection: usize,
    watch: Watch,
    /// Whether it was open before.
    was_open: bool,
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
                next(place, Watch::new(self.requests.clone(), collection, version))
            })
            .collect();
        let mut subscribers = self.subscribers.clone();
        loop {
            tokio::select! {
                changed = subscribers.changed() => {
                    if changed.is_err() {
                        return RoundEnd::Over;
                    }
                    let now = subscribers.borrow_and_update().clone();
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
                        Err(error) => return error.into(),
                    }
                }
            }
        }
    }

    /// Reports what a watch did. Returns the watch, which goes on.
    async fn advance(
        &mut self,
        followed: Followed,
        target: &Target,
        subscriptions: &Subscriptions,
        state: &mut State,
    ) -> Result<(usize, Watch), WatchError> {
        let Followed { collection, watch, was_open, outcome } = followed;
        match outcome {
            Ok(Progress::Opened | Progress::Ended) => self.sign_of_life(),
            Ok(Progress::Changed(changes)) => {
                self.sign_of_life();
                state.failures = 0;
                let changes = self.select(changes, state.namespaces.as_ref());
                self.publish_changes(collection, changes, &target.type_meta, subscriptions).await?;
            }
            // A connection that broke is opened again where it was, once.
            Err(error @ (WatchError::Failed(_) | WatchError::Silent)) if was_open => {
                state.failures += 1;
                if state.failures > 1 {
                    return Err(error);
                }
                self.health.broke(&self.name, error.to_string(), self.alive);
            }
            Err(error) => return Err(error),
        }
        Ok((collection, watch))
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
        self.publish_lists(listed.objects).await;
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
        let part = format!("{} (its namespaces)", self.name);
        match step {
            Step::Works => self.health.works(&part),
            Step::Broken(error) => {
                self.health.broke(&part, error.clone(), namespaces.alive());
                self.report_failure(&error).await;
            }
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
                }
                Err(error) => {
                    self.report_failure(&format!("namespace {name}: {error}")).await;
                    namespaces.put_off();
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
    let was_open = watch.is_open();
    let outcome = watch.next().await;
    Followed { collection, watch, was_open, outcome }
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

async fn next_step(namespaces: &mut Option<LabelledNamespaces>) -> Step {
    match namespaces {
        Some(namespaces) => namespaces.next().await,
        None => std::future::pending().await,
    }
}
