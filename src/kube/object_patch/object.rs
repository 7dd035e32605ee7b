//! One object, and what a hook can do to it.

use std::sync::Arc;
use std::time::Duration;

use engine::object_patch::{Existing, Propagation, Target};
use engine::{Failure, FailureKind};
use http::Request;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::Value;

use super::{Patcher, Problem, problem};
use crate::cluster::{Resource, is_conflict, is_not_found};
use crate::jq::{Filter, JqError};

/// Who we are when objects are applied.
const FIELD_MANAGER: &str = "addon-operator";

/// How often an update is tried while others change the same object.
const ATTEMPTS: u32 = 5;

/// How long a deletion in the foreground is waited for.
const DELETION: Duration = Duration::from_secs(20);

/// How long to wait before an object that is deleted is looked for, and the longest wait between two looks.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(1);

/// The object that an operation is about.
pub(super) struct Object<'a> {
    pub(super) patcher: &'a Patcher,
    pub(super) api: Api<DynamicObject>,
    pub(super) resource: Resource,
    pub(super) target: &'a Target,
}

impl Object<'_> {
    async fn within<T>(&self, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Problem> {
        let limit = self.patcher.timeout;
        let outcome = tokio::time::timeout(limit, request).await;
        let late = |_| {
            let text = format!("no answer within {} s", limit.as_secs_f64());
            Problem::Silence(Failure::new(FailureKind::Cluster, text))
        };
        Ok(outcome.map_err(late)??)
    }

    pub(super) async fn create(&self, object: &DynamicObject, existing: Existing) -> Result<(), Problem> {
        match self.within(self.api.create(&PostParams::default(), object)).await {
            Err(Problem::Request(error)) if existing == Existing::Keep && is_conflict(&error) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Creates the object, or merges it into the living one. What lives is looked at first: a part of an object that
    /// is fine as a change would not be fine as a whole.
    pub(super) async fn create_or_update(
        &self,
        value: &Value,
        object: &DynamicObject,
    ) -> Result<(), Problem> {
        if !self.target.name.is_empty()
            && let Some(living) = self.within(self.api.get_opt(&self.target.name)).await?
        {
            return self.update(value, Some(&living)).await;
        }
        match self.create(object, Existing::Fail).await {
            Err(Problem::Request(error)) if is_conflict(&error) => self.update(value, None).await,
            outcome => outcome,
        }
    }

    /// Merges the given object into the living one, unless that changes nothing. Its status is not ours.
    async fn update(&self, value: &Value, living: Option<&DynamicObject>) -> Result<(), Problem> {
        let mut patch = value.clone();
        if let Value::Object(fields) = &mut patch {
            fields.remove("status");
        }
        if let Some(living) = living {
            let old = as_value(living)?;
            let mut new = old.clone();
            json_patch::merge(&mut new, &patch);
            if new == old {
                return Ok(());
            }
        }
        self.within(self.api.patch(&self.target.name, &PatchParams::default(), &Patch::Merge(&patch)))
            .await?;
        Ok(())
    }

    pub(super) async fn patch(
        &self,
        patch: &Patch<impl serde::Serialize + std::fmt::Debug>,
    ) -> Result<(), Problem> {
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

    pub(super) async fn server_side_apply(&self, value: &Value, force: bool) -> Result<(), Problem> {
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
    pub(super) async fn delete(&self, propagation: Propagation) -> Result<(), Problem> {
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

    /// Asks for the object until it is gone, or another one has its name.
    async fn until_gone(&self, living: &DynamicObject) -> Result<(), Problem> {
        let (mut wait, mut seen) = (FIRST_LOOK, Ok(living.clone()));
        let asking = async {
            loop {
                tokio::time::sleep(wait).await;
                wait = LAST_LOOK.min(wait * 2);
                seen = match self.within(self.api.get_opt(&self.target.name)).await {
                    Ok(None) => return Ok(()),
                    Ok(Some(now)) if now.metadata.uid != living.metadata.uid => return Ok(()),
                    Ok(Some(now)) => Ok(now),
                    Err(problem) if is_passing(&problem) => Err(problem),
                    Err(problem) => return Err(problem),
                };
            }
        };
        match tokio::time::timeout(DELETION, asking).await {
            Ok(outcome) => outcome,
            Err(_) => Err(match seen {
                Ok(object) => still_there(&object),
                Err(problem) => problem,
            }),
        }
    }

    /// Replaces the object by what a jq filter makes of it.
    pub(super) async fn filter(&self, filter: Arc<Filter>) -> Result<(), Problem> {
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            let living = self.within(self.api.get(&self.target.name)).await?;
            let old = as_value(&living)?;
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
        let mut path = self.resource.object_path(namespace, &self.target.name);
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

fn as_value(object: &DynamicObject) -> Result<Value, Problem> {
    serde_json::to_value(object).map_err(|error| problem(FailureKind::Bug, error.to_string()))
}

/// Returns whether the next request may well be answered.
fn is_passing(problem: &Problem) -> bool {
    match problem {
        Problem::Request(kube::Error::Api(status)) => status.code >= 500 || status.code == 429,
        Problem::Request(_) | Problem::Silence(_) => true,
        Problem::Failure(_) => false,
    }
}

fn still_there(object: &DynamicObject) -> Problem {
    let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
    let reason = match finalizers {
        [] => "it has no finalizers; is something that it owns still there?".to_owned(),
        finalizers => format!("its finalizers are [{}]", finalizers.join(" ")),
    };
    problem(FailureKind::Cluster, format!("it is still there after {} s; {reason}", DELETION.as_secs()))
}
