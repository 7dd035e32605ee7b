//! One object, and what a hook can do to it.

use std::sync::Arc;
use std::time::Duration;

use engine::hook::reconcile::{ANOTHER_NAME, dropped_fields, is_child_of_same};
use engine::object_patch::{Existing, FIELD_MANAGER, Propagation, Target};
use engine::{Failure, FailureKind};
use http::Request;
use jq::{Filter, JqError, Threads};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::core::Status;
use kube::{Api, Client};
use serde_json::Value;

use super::error::PatchError;
use crate::cluster::{Resource, is_already_there, is_conflict, is_not_found};

/// How often an update is tried while others change the same object.
const ATTEMPTS: u32 = 5;

/// How long a deletion in the foreground is waited for.
const DELETION: Duration = Duration::from_secs(20);

/// How long to wait before it is checked whether a deleted object is gone, and the longest wait between two checks.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(1);

/// The object that an operation is about.
pub(super) struct Object<'a> {
    pub(super) client: &'a Client,
    pub(super) threads: &'a Threads,
    /// How long one request may take.
    pub(super) timeout: Duration,
    pub(super) api: Api<DynamicObject>,
    pub(super) resource: Resource,
    pub(super) target: &'a Target,
}

impl Object<'_> {
    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, PatchError> {
        let limit = self.timeout;
        let outcome = tokio::time::timeout(limit, request).await;
        let late = |_| {
            let text = format!("no answer within {} s", limit.as_secs_f64());
            PatchError::Silence(Failure::new(FailureKind::Cluster, text))
        };
        Ok(outcome.map_err(late)??)
    }

    pub(super) async fn create(&self, object: &DynamicObject, existing: Existing) -> Result<(), PatchError> {
        match self.within(self.api.create(&PostParams::default(), object)).await {
            Err(PatchError::Request(error)) if existing == Existing::Keep && is_already_there(&error) => {
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }

    /// Creates the object, or merges it into the living one. The living one is read first: a part of an object
    /// that is valid as a change would not be valid as a whole.
    pub(super) async fn create_or_update(
        &self,
        value: &Value,
        object: &DynamicObject,
    ) -> Result<(), PatchError> {
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            let living = match &*self.target.name {
                "" => None,
                name => self.within(self.api.get_opt(name)).await?,
            };
            let is_there = living.is_some();
            let outcome = match living {
                Some(living) => self.update(value, &living).await,
                None => self.create(object, Existing::Fail).await,
            };
            match outcome {
                Err(PatchError::Request(error))
                    if is_already_there(&error) || (is_there && is_conflict(&error)) =>
                {
                    last = Some(error);
                    pause(attempt).await;
                }
                outcome => return outcome,
            }
        }
        Err(others_change_it(last))
    }

    /// Merges the given object into the living one, unless that changes nothing. Its status is not ours.
    ///
    /// The change is for the version that was read. A request that is held up on its way may be carried out long after
    /// it was given up, and must not undo what was written since.
    async fn update(&self, value: &Value, living: &DynamicObject) -> Result<(), PatchError> {
        let mut patch = value.clone();
        if let Value::Object(fields) = &mut patch {
            fields.remove("status");
        }
        let old = as_value(living)?;
        let mut new = old.clone();
        json_patch::merge(&mut new, &patch);
        if new == old {
            return Ok(());
        }
        if let (Some(Value::Object(metadata)), Some(version)) =
            (patch.get_mut("metadata"), &living.metadata.resource_version)
        {
            metadata.entry("resourceVersion").or_insert_with(|| version.clone().into());
        }
        self.within(self.api.patch(&self.target.name, &PatchParams::default(), &Patch::Merge(&patch)))
            .await?;
        Ok(())
    }

    pub(super) async fn patch(
        &self,
        patch: &Patch<impl serde::Serialize + std::fmt::Debug>,
    ) -> Result<(), PatchError> {
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

    /// Carries out a JSON Patch. That a `test` in it does not hold is a conflict: somebody else was faster.
    pub(super) async fn json_patch(&self, operations: json_patch::Patch) -> Result<(), PatchError> {
        let (patch, mut last) = (Patch::<Value>::Json(operations.clone()), None);
        for attempt in 0..ATTEMPTS {
            match self.patch(&patch).await {
                Err(PatchError::Request(error)) if is_refused(&error) => {
                    // The API server does not say what is wrong with it, so the object is read anew.
                    let living = self.within(self.api.get_opt(&self.target.name)).await?;
                    let Some(living) = living else { return Err(PatchError::Request(error)) };
                    match json_patch::patch(&mut as_value(&living)?, &operations) {
                        Ok(()) => last = Some(error),
                        Err(problem) if matches!(problem.kind, json_patch::PatchErrorKind::TestFailed) => {
                            let text = format!(
                                "somebody else changed the object: the test of {} does not hold",
                                problem.path
                            );
                            return Err(PatchError::new(FailureKind::Conflict, text));
                        }
                        Err(_) => return Err(PatchError::Request(error)),
                    }
                    pause(attempt).await;
                }
                outcome => return outcome,
            }
        }
        last.map_or(Ok(()), |error| Err(PatchError::Request(error)))
    }

    /// Writes a status, and looks what the API server left out of it.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Dropped`] if it left out something: the rest is written.
    pub(super) async fn set_status(&self, patch: &Value, subresource: &str) -> Result<(), PatchError> {
        let (params, change) = (PatchParams::default(), Patch::Merge(patch));
        let request = self.api.patch_subresource(subresource, &self.target.name, &params, &change);
        let answer: DynamicObject = self.within(request).await?;
        let dropped = dropped_fields(patch, &as_value(&answer)?);
        if dropped.is_empty() {
            return Ok(());
        }
        let (kind, fields) = (&self.resource.kind, dropped.join(", "));
        let text =
            format!("the API server left out what its hook says of {fields}: kind {kind} has no such fields");
        Err(PatchError::new(FailureKind::Dropped, text))
    }

    pub(super) async fn server_side_apply(&self, value: &Value, force: bool) -> Result<(), PatchError> {
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

    /// Applies a child of a controller. What is there in its place stays as it is, unless it is a child of the same parent.
    ///
    /// Of what is made between the two requests by somebody else, no field is taken over.
    pub(super) async fn apply_child(&self, value: &Value) -> Result<(), PatchError> {
        let living = self.within(self.api.get_opt(&self.target.name)).await?;
        let Some(living) = living else { return self.server_side_apply(value, false).await };
        if !is_child_of_same(&as_value(&living)?, value) {
            let text = format!("{} is there already, and is not a child of it", self.target);
            return Err(PatchError::Failure(Failure::new(FailureKind::Cluster, text).advise(ANOTHER_NAME)));
        }
        self.server_side_apply(value, true).await
    }

    /// Asks whether the API server would make a child in the place of the one that lives. Nothing is written.
    ///
    /// Of a new object all is checked before its name is taken. What is no object of its kind is said by an apply only, which says
    /// of the living one what can't change as well.
    ///
    /// # Errors
    ///
    /// If it would be refused for another reason than that the living one is there.
    pub(super) async fn try_create(&self, value: &Value, object: &DynamicObject) -> Result<(), PatchError> {
        let manager = || Some(FIELD_MANAGER.to_owned());
        let params =
            PatchParams { field_manager: manager(), force: true, dry_run: true, field_validation: None };
        let applied = self.within(self.api.patch(&self.target.name, &params, &Patch::Apply(value))).await;
        let outcome = match applied {
            Err(problem) if problem.is_of_form() => Err(problem),
            Ok(_) | Err(_) => {
                let params = PostParams { dry_run: true, field_manager: manager() };
                self.within(self.api.create(&params, object)).await.map(drop)
            }
        };
        match outcome {
            Err(problem) if problem.is_of_living() => Ok(()),
            Err(problem) => Err(problem.with("what is there stays until this would be taken")),
            Ok(()) => Ok(()),
        }
    }

    /// Looks why there was nothing to change: the object may be there, and its kind have no such subresource.
    ///
    /// # Errors
    ///
    /// If that is so.
    pub(super) async fn has_subresource(&self) -> Result<(), PatchError> {
        let Some(name) = &self.target.subresource else { return Ok(()) };
        if self.within(self.api.get_opt(&self.target.name)).await?.is_none() {
            return Ok(());
        }
        let text =
            format!("kind {} has no subresource {name}, so nothing can be written there", self.resource.kind);
        let advice = format!(
            "add `subresources: {{{name}: {{}}}}` to the version in the CustomResourceDefinition of the kind"
        );
        Err(PatchError::Failure(Failure::new(FailureKind::Cluster, text).advise(advice)))
    }

    /// Deletes the object; in the foreground it is waited for until it is gone.
    pub(super) async fn delete(&self, propagation: Propagation) -> Result<(), PatchError> {
        let policy = match propagation {
            Propagation::Background => PropagationPolicy::Background,
            Propagation::Foreground => PropagationPolicy::Foreground,
            Propagation::Orphan => PropagationPolicy::Orphan,
        };
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        let answer = match self.within(self.api.delete(&self.target.name, &params)).await {
            Ok(answer) => answer,
            Err(PatchError::Request(error)) if is_not_found(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        match answer.left() {
            Some(living) if propagation == Propagation::Foreground => self.until_gone(&living).await,
            _ => Ok(()),
        }
    }

    /// Asks for the object until it is gone, or another one has its name.
    async fn until_gone(&self, living: &DynamicObject) -> Result<(), PatchError> {
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

    /// Replaces the object by what a jq filter, written as `text`, makes of it.
    pub(super) async fn filter(&self, filter: Arc<Filter>, text: &str) -> Result<(), PatchError> {
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            let living = self.within(self.api.get(&self.target.name)).await?;
            let old = as_value(&living)?;
            let (running, input) = (Arc::clone(&filter), old.clone());
            let results = self.threads.run(move |_| {
                let results = running.run(&input);
                let is_spent = matches!(results, Err(JqError::Limit(_)));
                (results, is_spent)
            });
            let results = results.await.and_then(|results| results.map_err(|error| error.to_string()));
            let mut results = results.map_err(|text| PatchError::new(FailureKind::HookOutput, text))?;
            let (Some(new @ Value::Object(_)), true) = (results.pop(), results.is_empty()) else {
                return Err(PatchError::new(
                    FailureKind::HookOutput,
                    "the filter should give exactly one object",
                ));
            };
            if new == old {
                return Ok(());
            }
            match self.replace(&new).await {
                Err(PatchError::Request(error)) if is_conflict(&error) => {
                    last = Some(error);
                    pause(attempt).await;
                }
                outcome => return outcome.map_err(|problem| problem.of_taken(text)),
            }
        }
        Err(others_change_it(last).of_taken(text))
    }

    async fn replace(&self, new: &Value) -> Result<(), PatchError> {
        let namespace = new.pointer("/metadata/namespace").and_then(Value::as_str);
        // It becomes a part of the path: anything else would lead to another object.
        if namespace
            .is_some_and(|name| !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
        {
            let text = "the filter makes a metadata.namespace that is no name of a namespace";
            return Err(PatchError::new(FailureKind::HookOutput, text));
        }
        let mut path = self.resource.object_path(namespace, &self.target.name);
        if let Some(subresource) = &self.target.subresource {
            path.push('/');
            path.push_str(subresource);
        }
        let request =
            Request::put(path).header("content-type", "application/json").body(new.to_string().into_bytes());
        let request = request.map_err(|error| PatchError::new(FailureKind::Bug, error.to_string()))?;
        self.within(self.client.request::<Value>(request)).await?;
        Ok(())
    }
}

/// Returns whether the API server could not apply a JSON Patch. What of an object is not valid it names.
fn is_refused(error: &kube::Error) -> bool {
    let is_unnamed =
        |status: &Status| status.details.as_ref().is_none_or(|details| details.causes.is_empty());
    matches!(error, kube::Error::Api(status) if status.code == 422 && is_unnamed(status))
}

fn as_value(object: &DynamicObject) -> Result<Value, PatchError> {
    serde_json::to_value(object).map_err(|error| PatchError::new(FailureKind::Bug, error.to_string()))
}

/// Waits until an object that others change is tried again.
async fn pause(attempt: u32) {
    tokio::time::sleep(Duration::from_millis(10) * 2_u32.pow(attempt)).await;
}

fn others_change_it(last: Option<kube::Error>) -> PatchError {
    last.map_or_else(
        || PatchError::new(FailureKind::Cluster, "others change it all the time"),
        PatchError::Request,
    )
}

/// Returns whether the next request may well be answered.
fn is_passing(problem: &PatchError) -> bool {
    match problem {
        PatchError::Request(kube::Error::Api(status)) | PatchError::Taken(kube::Error::Api(status), _) => {
            status.code >= 500 || status.code == 429
        }
        PatchError::Request(_) | PatchError::Silence(_) | PatchError::Taken(..) => true,
        PatchError::Failure(_) => false,
    }
}

fn still_there(object: &DynamicObject) -> PatchError {
    let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
    let reason = match finalizers {
        [] => "it has no finalizers; is something that it owns still there?".to_owned(),
        finalizers => format!("its finalizers are [{}]", finalizers.join(" ")),
    };
    PatchError::new(
        FailureKind::Cluster,
        format!("it is still there after {} s; {reason}", DELETION.as_secs()),
    )
}
