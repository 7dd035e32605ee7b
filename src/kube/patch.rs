//! Changes of objects that hooks ask for, carried out in order.

use std::sync::Arc;
use std::time::Duration;

use engine::object_patch::{Existing, ObjectPatch, Operation, Propagation, Target};
use engine::{Failure, FailureKind, HookId};
use futures::TryStreamExt;
use http::Request;
use kube::Api;
use kube::Client;
use kube::api::{
    DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy, WatchEvent, WatchParams,
};
use serde_json::Value;

use super::stream::encode;
use crate::cluster::{Discovery, Resource, failure, is_conflict, is_not_found};
use crate::jq::{Filter, JqError, Threads};

/// Who we are when objects are applied.
const FIELD_MANAGER: &str = "addon-operator";

/// How often an update is tried while others change the same object.
const ATTEMPTS: u32 = 5;

/// How long a deletion in the foreground is waited for.
const DELETION: Duration = Duration::from_secs(20);

/// Changes objects for hooks, with a client of its own.
pub struct Patcher {
    discovery: Discovery,
    client: Client,
    timeout: Duration,
    threads: Threads,
}

impl Patcher {
    /// Returns a patcher whose single requests take at most `timeout`.
    pub fn new(client: Client, discovery: Discovery, timeout: Duration) -> Self {
        Self { discovery, client, timeout, threads: Threads::default() }
    }

    /// Carries out all patches in order.
    ///
    /// Nothing is done if one of them can't be right on any object. Otherwise the first that
    /// fails ends it; the failure names its place and what was done before.
    pub async fn apply(&self, hook: &HookId, patches: &[ObjectPatch]) -> Result<(), Failure> {
        let name = |place: usize, mut failure: Failure, done: &str| {
            let (number, count, patch) =
                (place + 1, patches.len(), patches.get(place).map(ToString::to_string).unwrap_or_default());
            let cause = failure.message;
            failure.message =
                format!("object patch {number} of {count} of hook {hook}: {patch}: {cause} ({done})");
            failure
        };
        let mut steps = Vec::with_capacity(patches.len());
        for (place, patch) in patches.iter().enumerate() {
            steps.push(
                Step::of(&patch.operation).map_err(|failure| name(place, failure, "nothing was done"))?,
            );
        }
        for (place, (patch, step)) in patches.iter().zip(steps).enumerate() {
            if let Err(failure) = self.apply_one(patch, step).await {
                let done = match place {
                    0 => "nothing was done before".to_owned(),
                    1 => "the operation before it is done".to_owned(),
                    count => format!("the {count} operations before it are done"),
                };
                return Err(name(place, failure, &done));
            }
        }
        Ok(())
    }

    async fn apply_one(&self, patch: &ObjectPatch, step: Step<'_>) -> Result<(), Failure> {
        let target = &patch.target;
        let resource = self.discovery.resolve(&target.api_version, &target.kind).await;
        let resource = resource.map_err(|error| Failure::of(FailureKind::Cluster, &error))?;
        let namespace = (!target.namespace.is_empty()).then_some(target.namespace.as_str());
        let object = Object { patcher: self, api: self.api(&resource, namespace), resource, target };
        let outcome = match step {
            Step::Create { object: value, parsed, existing } => object.create(value, &parsed, existing).await,
            Step::Delete(propagation) => object.delete(propagation).await,
            Step::MergePatch(patch) => object.patch(&Patch::Merge(patch)).await,
            Step::JsonPatch(operations) => object.patch(&Patch::<Value>::Json(operations)).await,
            Step::Apply { object: value, force } => object.server_side_apply(value, force).await,
            Step::Filter(filter) => object.filter(filter).await,
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(Problem::Request(error)) if patch.ignore_missing_object && is_not_found(&error) => Ok(()),
            Err(Problem::Request(error)) => Err(failure("the API server refused", &error)),
            Err(Problem::Failure(failure)) => Err(failure),
        }
    }

    fn api(&self, resource: &Resource, namespace: Option<&str>) -> Api<DynamicObject> {
        let kind = resource.api_resource();
        match namespace {
            Some(namespace) if resource.namespaced => {
                Api::namespaced_with(self.client.clone(), namespace, &kind)
            }
            None if resource.namespaced => Api::default_namespaced_with(self.client.clone(), &kind),
            Some(_) | None => Api::all_with(self.client.clone(), &kind),
        }
    }
}

/// An operation whose parts were looked at before the first one is carried out.
enum Step<'a> {
    Apply { object: &'a Value, force: bool },
    Create { object: &'a Value, parsed: Box<DynamicObject>, existing: Existing },
    Delete(Propagation),
    Filter(Arc<Filter>),
    JsonPatch(json_patch::Patch),
    MergePatch(&'a Value),
}

impl<'a> Step<'a> {
    fn of(operation: &'a Operation) -> Result<Self, Failure> {
        let wrong = |text: String| Failure::new(FailureKind::HookOutput, text);
        Ok(match operation {
            Operation::Apply { object, force } => Self::Apply { object, force: *force },
            Operation::Create { object, existing } => {
                let parsed = serde_json::from_value(object.clone());
                let parsed = parsed.map_err(|error| wrong(format!("this is no object: {error}")))?;
                Self::Create { object, parsed: Box::new(parsed), existing: *existing }
            }
            Operation::Delete(propagation) => Self::Delete(*propagation),
            Operation::Jq { filter } => {
                Self::Filter(Arc::new(Filter::compile(filter).map_err(|error| wrong(error.to_string()))?))
            }
            Operation::JsonPatch { patch } => {
                let patch = serde_json::from_value(patch.clone());
                Self::JsonPatch(patch.map_err(|error| wrong(format!("this is no JSON Patch: {error}")))?)
            }
            Operation::MergePatch { patch } => Self::MergePatch(patch),
        })
    }
}

/// Why an operation did not work.
enum Problem {
    Request(kube::Error),
    Failure(Failure),
}

impl From<kube::Error> for Problem {
    fn from(error: kube::Error) -> Self {
        Self::Request(error)
    }
}

fn problem(kind: FailureKind, text: impl Into<String>) -> Problem {
    Problem::Failure(Failure::new(kind, text))
}

/// The object that an operation is about.
struct Object<'a> {
    patcher: &'a Patcher,
    api: Api<DynamicObject>,
    resource: Resource,
    target: &'a Target,
}

impl Object<'_> {
    async fn within<T>(&self, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Problem> {
        let limit = self.patcher.timeout;
        let outcome = tokio::time::timeout(limit, request).await;
        let late = |_| problem(FailureKind::Cluster, format!("no answer within {} s", limit.as_secs_f64()));
        Ok(outcome.map_err(late)??)
    }

    async fn create(&self, value: &Value, parsed: &DynamicObject, existing: Existing) -> Result<(), Problem> {
        match self.within(self.api.create(&PostParams::default(), parsed)).await {
            Ok(_) => Ok(()),
            Err(Problem::Request(error)) if is_conflict(&error) => match existing {
                Existing::Fail => Err(Problem::Request(error)),
                Existing::Keep => Ok(()),
                Existing::Update => self.update(value).await,
            },
            Err(error) => Err(error),
        }
    }

    /// Merges the given object into the living one. Its status is not ours.
    async fn update(&self, value: &Value) -> Result<(), Problem> {
        let mut patch = value.clone();
        if let Value::Object(fields) = &mut patch {
            fields.remove("status");
        }
        self.within(self.api.patch(&self.target.name, &PatchParams::default(), &Patch::Merge(&patch)))
            .await?;
        Ok(())
    }

    async fn patch(&self, patch: &Patch<impl serde::Serialize + std::fmt::Debug>) -> Result<(), Problem> {
        let params = PatchParams::default();
        match &self.target.subresource {
            Some(subresource) => {
                self.within(self.api.patch_subresource(subresource, &self.target.name, &params, patch))
                    .await?;
            }
            None => {
                self.within(self.api.patch(&self.target.name, &params, patch)).await?;
            }
        }
        Ok(())
    }

    async fn server_side_apply(&self, value: &Value, force: bool) -> Result<(), Problem> {
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), force, ..PatchParams::default() };
        let patch = Patch::Apply(value);
        match &self.target.subresource {
            Some(subresource) => {
                self.within(self.api.patch_subresource(subresource, &self.target.name, &params, &patch))
                    .await?;
            }
            None => {
                self.within(self.api.patch(&self.target.name, &params, &patch)).await?;
            }
        }
        Ok(())
    }

    /// Deletes the object; in the foreground it is waited for until it is gone.
    async fn delete(&self, propagation: Propagation) -> Result<(), Problem> {
        let policy = match propagation {
            Propagation::Background => PropagationPolicy::Background,
            Propagation::Foreground => PropagationPolicy::Foreground,
            Propagation::Orphan => PropagationPolicy::Orphan,
        };
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        let answer = match self.within(self.api.delete(&self.target.name, &params)).await {
            Ok(answer) => answer,
            Err(Problem::Request(error)) if is_not_found(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        match answer.left() {
            Some(living) if propagation == Propagation::Foreground => self.until_gone(&living).await,
            _ => Ok(()),
        }
    }

    async fn until_gone(&self, living: &DynamicObject) -> Result<(), Problem> {
        let wait = async {
            let selected = WatchParams::default().fields(&format!("metadata.name={}", self.target.name));
            // The object as it is now comes first, or nothing does when it is gone already.
            let version = living.metadata.resource_version.clone().unwrap_or_default();
            let mut changes = Box::pin(self.api.watch(&selected, &version).await?);
            if self.api.get_opt(&self.target.name).await?.is_none() {
                return Ok::<_, kube::Error>(());
            }
            while let Some(change) = changes.try_next().await? {
                if matches!(change, WatchEvent::Deleted(_)) {
                    return Ok(());
                }
            }
            Ok(())
        };
        let outcome = tokio::time::timeout(DELETION, wait).await;
        let late = |_| {
            let text = format!("it is still there after {} s; does it have finalizers?", DELETION.as_secs());
            problem(FailureKind::Cluster, text)
        };
        Ok(outcome.map_err(late)??)
    }

    /// Replaces the object by what a jq filter makes of it.
    async fn filter(&self, filter: Arc<Filter>) -> Result<(), Problem> {
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            let living = self.within(self.api.get(&self.target.name)).await?;
            let old = serde_json::to_value(&living)
                .map_err(|error| problem(FailureKind::Bug, error.to_string()))?;
            let (running, input) = (Arc::clone(&filter), old.clone());
            let results = self.patcher.threads.run(move |_| {
                let results = running.run(&input);
                let is_spent = matches!(results, Err(JqError::Limit(_)));
                (results, is_spent)
            });
            let results = results.await.and_then(|results| results.map_err(|error| error.to_string()));
            let mut results = results.map_err(|text| problem(FailureKind::HookOutput, text))?;
            let (Some(new @ Value::Object(_)), true) = (results.pop(), results.is_empty()) else {
                return Err(problem(FailureKind::HookOutput, "the filter should give exactly one object"));
            };
            if new == old {
                return Ok(());
            }
            match self.replace(&new).await {
                Err(Problem::Request(error)) if is_conflict(&error) => {
                    last = Some(error);
                    tokio::time::sleep(Duration::from_millis(10) * 2_u32.pow(attempt)).await;
                }
                outcome => return outcome,
            }
        }
        Err(last
            .map_or_else(|| problem(FailureKind::Cluster, "others change it all the time"), Problem::Request))
    }

    async fn replace(&self, new: &Value) -> Result<(), Problem> {
        let namespace = new.pointer("/metadata/namespace").and_then(Value::as_str);
        let mut path = format!("{}/{}", self.resource.path(namespace), encode(&self.target.name));
        if let Some(subresource) = &self.target.subresource {
            path.push('/');
            path.push_str(subresource);
        }
        let request =
            Request::put(path).header("content-type", "application/json").body(new.to_string().into_bytes());
        let request = request.map_err(|error| problem(FailureKind::Bug, error.to_string()))?;
        self.within(self.patcher.client.request::<Value>(request)).await?;
        Ok(())
    }
}
