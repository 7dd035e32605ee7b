//! Hooks of charts: objects that are made at certain moments of a release and waited for.

use std::time::Duration;

use chart::manifest::{DeletePolicy, Hook, HookEvent};
use chart::record::{HookRecord, HookRun, Time};
use jiff::Timestamp;
use serde_json::Value;

use super::error::ReleaseError;
use super::object::{Object, of_hook};
use crate::cluster::request::{RequestError, Requests};
use crate::cluster::watch::wait_for;
use crate::cluster::{Discovery, Resource};

/// Runs the hooks of one release.
pub(super) struct ChartHooks<'a> {
    pub(super) requests: &'a Requests,
    pub(super) discovery: &'a Discovery,
    pub(super) namespace: &'a str,
    /// How long one hook may take.
    pub(super) timeout: Duration,
}

impl ChartHooks<'_> {
    /// Runs the hooks of `event` in their order and writes down how they ran.
    ///
    /// The first that fails ends it. Hooks that are deleted when they succeed are
    /// deleted after the last.
    pub(super) async fn run(&self, event: HookEvent, hooks: &mut [HookRecord]) -> Result<(), ReleaseError> {
        for hook in hooks.iter_mut().filter(|hook| hook.events.contains(&event)) {
            if hook.delete_policies.is_empty() {
                hook.delete_policies.push(DeletePolicy(DeletePolicy::BEFORE_CREATION.to_owned()));
            }
        }
        let mut due: Vec<usize> = (0..hooks.len())
            .filter(|index| hooks.get(*index).is_some_and(|hook| hook.events.contains(&event)))
            .collect();
        due.sort_by_key(|index| hooks.get(*index).map(|hook| (hook.weight, hook.name.clone())));
        for index in &due {
            let Some(record) = hooks.get_mut(*index) else { continue };
            record.last_run = started();
            let hook = Hook::from(&*record);
            let outcome = self.run_one(event, &hook).await;
            record.last_run.completed_at = Time(Some(Timestamp::now()));
            "Succeeded".clone_into(&mut record.last_run.phase);
            if let Err(error) = outcome {
                "Failed".clone_into(&mut record.last_run.phase);
                self.delete(&hook, DeletePolicy::FAILED).await?;
                return Err(error);
            }
        }
        for index in due {
            if let Some(record) = hooks.get(index) {
                self.delete(&Hook::from(record), DeletePolicy::SUCCEEDED).await?;
            }
        }
        Ok(())
    }

    async fn run_one(&self, event: HookEvent, hook: &Hook) -> Result<(), ReleaseError> {
        self.delete(hook, DeletePolicy::BEFORE_CREATION).await?;
        let object = of_hook(&hook.path, &hook.manifest)?;
        let resource = self.resource(&object).await?;
        let failed = |problem: String| ReleaseError::Hook {
            event: event.name(),
            hook: format!("{} {}", hook.kind, hook.name),
            problem,
        };
        let mut value = object.value.clone();
        if let (true, Some(metadata)) =
            (resource.namespaced, value.get_mut("metadata").and_then(Value::as_object_mut))
        {
            metadata.entry("namespace").or_insert_with(|| self.namespace.into());
        }
        let collection = resource.path(Some(self.namespace_of(&object)));
        if let Err(error) = self.requests.create(&collection, &value).await {
            if is_deletion(event) && resource.namespaced && is_namespace_going(&error) {
                tracing::warn!(hook = %hook.name, "the hook of a deletion is passed over: {error}");
                return Ok(());
            }
            return Err(failed(error.to_string()));
        }
        match (resource.group.as_str(), resource.kind.as_str()) {
            ("batch", "Job") => self.wait(&object, &resource, Job).await.map_err(failed),
            ("", "Pod") => self.wait(&object, &resource, Pod).await.map_err(failed),
            _ => Ok(()),
        }
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

    /// Waits until `condition` holds for the living object, `None` if there is none; returns `None` when it is late.
    async fn wait_for(
        &self,
        object: &Object,
        resource: &Resource,
        condition: impl Fn(Option<&Value>) -> bool,
    ) -> Option<Result<Option<Value>, String>> {
        let path = resource.path(Some(self.namespace_of(object)));
        let waiting = wait_for(self.requests, &path, &object.name, condition);
        let waited = tokio::time::timeout(self.timeout, waiting).await.ok()?;
        Some(
            waited.map_err(|error| {
                format!("failed to probe for whether the condition is fulfilled yet: {error}")
            }),
        )
    }

    /// Waits until the object is done; returns what it failed by.
    async fn wait(&self, object: &Object, resource: &Resource, end: impl End) -> Result<(), String> {
        let done = |found: Option<&Value>| found.is_some_and(|found| end.of(found).is_some());
        let late =
            || format!("{} {} is not done after {} s", object.kind, object.name, self.timeout.as_secs());
        let found = self.wait_for(object, resource, done).await.ok_or_else(late)??;
        let verdict = found.as_ref().and_then(|found| end.of(found));
        verdict.unwrap_or_else(|| Err(format!("{} {} was deleted", object.kind, object.name)))
    }

    /// Deletes the object of a hook if `policy` says so, and waits until it is gone.
    async fn delete(&self, hook: &Hook, policy: &str) -> Result<(), ReleaseError> {
        // A CRD takes all its objects with it: Helm never deletes one that a hook made.
        if !hook.is_deleted(policy) || hook.kind == "CustomResourceDefinition" {
            return Ok(());
        }
        let object = of_hook(&hook.path, &hook.manifest)?;
        let resource = self.resource(&object).await?;
        let path = resource.object_path(Some(self.namespace_of(&object)), &object.name);
        if !self.requests.delete(&path).await? {
            return Ok(());
        }
        if self.requests.get(&path).await?.is_none() {
            return Ok(());
        }
        let problem = match self.wait_for(&object, &resource, |found| found.is_none()).await {
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => error,
            None => {
                format!("it is still there after {} s; does a finalizer hold it?", self.timeout.as_secs())
            }
        };
        Err(ReleaseError::Hook { event: "delete", hook: format!("{} {}", hook.kind, hook.name), problem })
    }
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
