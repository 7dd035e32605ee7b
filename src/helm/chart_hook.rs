//! Hooks of charts: objects that are made at certain moments of a release and waited for.

use std::time::Duration;

use chart::manifest::{DeletePolicy, Hook, HookEvent};
use chart::record::{HookRecord, HookRun, Time};
use jiff::Timestamp;
use serde_json::Value;

use super::cancellation::Cancellation;
use super::error::ReleaseError;
use super::object::{Object, of_hook, uid};
use crate::cluster::request::{RequestError, Requests};
use crate::cluster::watch::{Patience, Unfulfilled, wait_for};
use crate::cluster::{Discovery, Resource};

/// How long the object of a hook that was deleted may be missing: whoever replaces it deletes it and makes another.
const MISSING: Duration = Duration::from_secs(5);

/// Runs the hooks of one release.
pub(super) struct ChartHooks<'a> {
    pub(super) requests: &'a Requests,
    pub(super) discovery: &'a Discovery,
    pub(super) namespace: &'a str,
    /// How long one hook may take.
    pub(super) timeout: Duration,
    /// Ends the hook that runs, as one that failed.
    pub(super) cancellation: &'a Cancellation,
}

/// An object that this run made for a hook.
pub(super) struct Made {
    pub(super) kind: String,
    pub(super) name: String,
    collection: String,
    pub(super) path: String,
    /// The identity by which only this object is deleted, and none that took its place.
    uid: String,
}

/// The hooks that ran, with the objects that were made for them and are still there.
#[derive(Default)]
pub(super) struct HookObjects {
    succeeded: Vec<(Hook, Vec<Made>)>,
    failed: Option<(Hook, Vec<Made>)>,
}

impl HookObjects {
    /// Returns these objects, in the order in which they were made.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Made> {
        self.succeeded.iter().chain(&self.failed).flat_map(|(_, made)| made)
    }
}

/// Why a wait ended before the object was as wanted.
enum Unmet {
    /// The operator ends, or something newer takes its place.
    Cancelled,
    /// The time is over; the text says why the object could not be seen, or is empty.
    Late(String),
    Broken(String),
    /// The object was deleted.
    Gone,
}

impl ChartHooks<'_> {
    /// Runs the hooks of `event` in their order and writes down how they ran.
    ///
    /// The first that fails ends it. Hooks that are deleted when they succeed are
    /// deleted after the last, or when one behind them fails. Only objects that this run
    /// made are deleted because a hook succeeded or failed.
    pub(super) async fn run(&self, event: HookEvent, hooks: &mut [HookRecord]) -> Result<(), ReleaseError> {
        let (made, outcome) = self.run_and_keep(event, hooks).await;
        let cleared = self.clear_up(made).await;
        outcome.and(cleared)
    }

    /// Does the same, but leaves the objects of all that ran where they are: [`Self::clear_up`] deletes them.
    pub(super) async fn run_and_keep(
        &self,
        event: HookEvent,
        hooks: &mut [HookRecord],
    ) -> (HookObjects, Result<(), ReleaseError>) {
        for hook in hooks.iter_mut().filter(|hook| hook.events.contains(&event)) {
            if hook.delete_policies.is_empty() {
                hook.delete_policies.push(DeletePolicy(DeletePolicy::BEFORE_CREATION.to_owned()));
            }
        }
        let mut due: Vec<usize> = (0..hooks.len())
            .filter(|index| hooks.get(*index).is_some_and(|hook| hook.events.contains(&event)))
            .collect();
        due.sort_by_key(|index| hooks.get(*index).map(|hook| (hook.weight, hook.name.clone())));
        let mut kept = HookObjects::default();
        for index in due {
            let Some(record) = hooks.get_mut(index) else { continue };
            record.last_run = started();
            let hook = Hook::from(&*record);
            let mut made = Vec::new();
            let outcome = self.run_one(event, &hook, &mut made).await;
            record.last_run.completed_at = Time(Some(Timestamp::now()));
            if let Err(error) = outcome {
                "Failed".clone_into(&mut record.last_run.phase);
                kept.failed = Some((hook, made));
                return (kept, Err(error));
            }
            "Succeeded".clone_into(&mut record.last_run.phase);
            kept.succeeded.push((hook, made));
        }
        (kept, Ok(()))
    }

    /// Deletes what hooks that ran leave behind, as each of them says. When one failed, its failure counts for more than one of
    /// the deletion, which is only logged.
    pub(super) async fn clear_up(&self, kept: HookObjects) -> Result<(), ReleaseError> {
        let HookObjects { succeeded, failed } = kept;
        let succeeded = succeeded.iter().filter(|(hook, _)| hook.is_deleted(DeletePolicy::SUCCEEDED));
        let Some((failed, made)) = failed else {
            for (hook, made) in succeeded.rev() {
                self.delete_made(hook, made).await?;
            }
            return Ok(());
        };
        let failed = failed.is_deleted(DeletePolicy::FAILED).then_some((&failed, made.as_slice()));
        let succeeded = succeeded.map(|(hook, made)| (hook, made.as_slice()));
        for (hook, made) in failed.into_iter().chain(succeeded) {
            if let Err(error) = self.delete_made(hook, made).await {
                tracing::warn!(hook = %hook.name, "the object of a hook was not deleted: {error}");
            }
        }
        Ok(())
    }

    /// Makes the objects of a hook, notes each in `made`, and waits until they are done.
    async fn run_one(&self, event: HookEvent, hook: &Hook, made: &mut Vec<Made>) -> Result<(), ReleaseError> {
        if self.cancellation.is_requested() {
            return Err(ReleaseError::Cancelled);
        }
        let failed = |problem: String| ReleaseError::Hook {
            event: event.name(),
            hook: format!("{} {}", hook.kind, hook.name),
            problem,
        };
        let mut objects = Vec::new();
        for object in of_hook(&hook.path, &hook.manifest)? {
            let resource = self.resource(&object).await?;
            objects.push((object, resource));
        }
        if hook.is_deleted(DeletePolicy::BEFORE_CREATION) {
            self.delete_old(hook, &objects).await?;
        }
        for (object, resource) in &objects {
            match self.make(object, resource).await {
                Ok(new) => made.push(new),
                Err(error) if is_deletion(event) && resource.namespaced && is_namespace_going(&error) => {
                    tracing::warn!(hook = %hook.name, "the hook of a deletion is passed over: {error}");
                    return Ok(());
                }
                Err(error) => return Err(failed(error.to_string())),
            }
        }
        for (object, resource) in &objects {
            let waited = match (resource.group.as_str(), resource.kind.as_str()) {
                ("batch", "Job") => self.wait(event, (object, resource), Job).await,
                ("", "Pod") => self.wait(event, (object, resource), Pod).await,
                _ => Ok(()),
            };
            // Which of several objects it was is not known otherwise.
            let name =
                if objects.len() > 1 { format!("{} {}: ", object.kind, object.name) } else { String::new() };
            waited.map_err(|unmet| match unmet {
                Unmet::Cancelled => ReleaseError::Cancelled,
                Unmet::Broken(problem) => failed(format!("{name}{problem}")),
                Unmet::Gone => failed(format!("{} {} was deleted", object.kind, object.name)),
                Unmet::Late(unseen) => failed(format!(
                    "{} {} is not done after {} s{unseen}",
                    object.kind,
                    object.name,
                    self.timeout.as_secs()
                )),
            })?;
        }
        Ok(())
    }

    async fn make(&self, object: &Object, resource: &Resource) -> Result<Made, RequestError> {
        let mut value = object.value.clone();
        if let (true, Some(metadata)) =
            (resource.namespaced, value.get_mut("metadata").and_then(Value::as_object_mut))
        {
            metadata.entry("namespace").or_insert_with(|| self.namespace.into());
        }
        let namespace = Some(self.namespace_of(object));
        let collection = resource.path(namespace);
        let new = self.requests.create(&collection, &value).await?;
        Ok(Made {
            kind: object.kind.clone(),
            name: object.name.clone(),
            path: resource.object_path(namespace, &object.name),
            collection,
            uid: uid(&new).to_owned(),
        })
    }

    fn namespace_of<'o>(&'o self, object: &'o Object) -> &'o str {
        object.namespace.as_deref().unwrap_or(self.namespace)
    }

    async fn resource(&self, object: &Object) -> Result<Resource, ReleaseError> {
        self.discovery
            .resolve(&object.api_version, &object.kind)
            .await
            .map_err(|source| ReleaseError::of_kind(&object.path, &object.kind, &object.name, source))
    }

    /// Waits until `condition` holds for the living object, `None` if there is none, which ends the wait after `absent`.
    async fn wait_for(
        &self,
        (collection, name): (&str, &str),
        absent: Option<Duration>,
        condition: impl Fn(Option<&Value>) -> bool,
    ) -> Result<Option<Value>, Unmet> {
        let patience = Patience { whole: self.timeout, absent };
        let waiting = wait_for(self.requests, (collection, name), patience, condition);
        let waited = tokio::select! {
            biased;
            waited = waiting => waited,
            () = self.cancellation.requested() => return Err(Unmet::Cancelled),
        };
        waited.map_err(|unfulfilled| match unfulfilled {
            Unfulfilled::Late(None) => Unmet::Late(String::new()),
            Unfulfilled::Late(Some(error)) => Unmet::Late(format!(", as far as one can see: {error}")),
            Unfulfilled::Refused(error) => {
                Unmet::Broken(format!("failed to probe for whether the condition is fulfilled yet: {error}"))
            }
            Unfulfilled::Gone => Unmet::Gone,
        })
    }

    /// Waits until the object is done or deleted, and nothing took its place; returns what it failed by.
    async fn wait(
        &self,
        event: HookEvent,
        (object, resource): (&Object, &Resource),
        end: impl End,
    ) -> Result<(), Unmet> {
        // A test that somebody deletes is over. Others may be replaced: a release waits for what they do.
        let absent = if event == HookEvent::Test { Duration::ZERO } else { MISSING };
        let done = |found: Option<&Value>| found.is_some_and(|found| end.of(found).is_some());
        let (place, name) = (self.namespace_of(object), &object.name);
        let what = format!("{} {place}/{name} ({} hook of its chart) to end", object.kind, event.name());
        self.cancellation.waits_for(Some(what)).await;
        let found = self.wait_for((&resource.path(Some(place)), name), Some(absent), done).await;
        self.cancellation.waits_for(None).await;
        let found = found?;
        let verdict = found.as_ref().and_then(|found| end.of(found)).ok_or(Unmet::Gone)?;
        verdict.map_err(Unmet::Broken)
    }

    /// Deletes the objects that earlier runs of a hook have left, and waits until they are gone.
    async fn delete_old(&self, hook: &Hook, objects: &[(Object, Resource)]) -> Result<(), ReleaseError> {
        for (object, resource) in objects.iter().filter(|(object, _)| is_deletable(&object.kind)) {
            let namespace = Some(self.namespace_of(object));
            let path = resource.object_path(namespace, &object.name);
            let Some(deleted) = self.requests.delete_any(&path).await? else { continue };
            // What others make in its place meanwhile is not waited for.
            let is_there = |found: Option<&Value>| {
                found.is_some_and(|found| deleted.is_empty() || uid(found) == deleted)
            };
            if is_there(self.requests.get(&path).await?.as_ref()) {
                let gone = |found: Option<&Value>| !is_there(found);
                let waited = self.wait_for((&resource.path(namespace), &object.name), None, gone).await;
                self.told(hook, waited)?;
            }
        }
        Ok(())
    }

    /// Deletes the objects that this run made for a hook, and waits until they are gone. When the operator ends,
    /// nothing is waited for.
    async fn delete_made(&self, hook: &Hook, made: &[Made]) -> Result<(), ReleaseError> {
        for one in made.iter().filter(|made| is_deletable(&made.kind)) {
            let is_there = |found: Option<&Value>| found.is_some_and(|found| uid(found) == one.uid);
            if self.requests.delete_this(&one.path, &one.uid).await?
                && !self.cancellation.is_requested()
                && is_there(self.requests.get(&one.path).await?.as_ref())
            {
                let waited =
                    self.wait_for((&one.collection, &one.name), None, |found| !is_there(found)).await;
                if !matches!(waited, Err(Unmet::Cancelled)) {
                    self.told(hook, waited)?;
                }
            }
        }
        Ok(())
    }

    /// Returns why an object that was deleted is still there.
    fn told(&self, hook: &Hook, waited: Result<Option<Value>, Unmet>) -> Result<(), ReleaseError> {
        let problem = match waited {
            Ok(_) | Err(Unmet::Gone) => return Ok(()),
            Err(Unmet::Cancelled) => return Err(ReleaseError::Cancelled),
            Err(Unmet::Broken(problem)) => problem,
            Err(Unmet::Late(unseen)) => {
                let seconds = self.timeout.as_secs();
                format!("it is still there after {seconds} s{unseen}; does a finalizer hold it?")
            }
        };
        Err(ReleaseError::Hook { event: "delete", hook: format!("{} {}", hook.kind, hook.name), problem })
    }
}

/// Reports whether hooks delete objects of a kind. A CRD takes all its objects with it: Helm never deletes one.
fn is_deletable(kind: &str) -> bool {
    kind != "CustomResourceDefinition"
}

fn is_deletion(event: HookEvent) -> bool {
    matches!(event, HookEvent::PreDelete | HookEvent::PostDelete)
}

/// Reports whether nothing can be made in a namespace any more, which would keep a release
/// from being removed for ever.
fn is_namespace_going(error: &RequestError) -> bool {
    error.code() == 404 || (error.code() == 403 && error.to_string().contains("being terminated"))
}

fn started() -> HookRun {
    HookRun {
        started_at: Time(Some(Timestamp::now())),
        completed_at: Time(None),
        phase: "Running".to_owned(),
    }
}

/// How one sees that an object is done.
trait End: Copy {
    /// Returns whether it did well, if it is done.
    fn of(self, object: &Value) -> Option<Result<(), String>>;
}

#[derive(Clone, Copy)]
struct Job;

impl End for Job {
    fn of(self, object: &Value) -> Option<Result<(), String>> {
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array)?;
        conditions.iter().find_map(|condition| {
            let text = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
            match (text("type"), text("status")) {
                ("Complete", "True") => Some(Ok(())),
                ("Failed", "True") => Some(Err(text("reason").to_owned())),
                _ => None,
            }
        })
    }
}

#[derive(Clone, Copy)]
struct Pod;

impl End for Pod {
    fn of(self, object: &Value) -> Option<Result<(), String>> {
        match object.pointer("/status/phase").and_then(Value::as_str)? {
            "Succeeded" => Some(Ok(())),
            "Failed" => Some(Err("the Pod failed".to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn jobs_and_pods_say_when_they_are_done() {
        let job = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "BackoffLimitExceeded"}]}});
        assert_eq!(Job.of(&json!({})), None);
        assert_eq!(Job.of(&job("Suspended")), None);
        assert_eq!(Job.of(&job("Complete")), Some(Ok(())));
        assert_eq!(Job.of(&job("Failed")), Some(Err("BackoffLimitExceeded".to_owned())));
        assert_eq!(Pod.of(&json!({"status": {"phase": "Running"}})), None);
        assert_eq!(Pod.of(&json!({"status": {"phase": "Succeeded"}})), Some(Ok(())));
    }
}
