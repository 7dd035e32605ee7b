//! How the cluster differs from what a chart renders to, without changing anything.

use std::fmt::Write as _;
use std::sync::Arc;

use engine::view::Secrets;
use engine::{ApplyMode, Failure, Module, ValuesInput};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::object::{self, Object};
use super::storage::StoredRevision;
use super::upgrade_plan::UpgradePlan;
use super::{Helm, ReleaseError, chart_values, server_side};
use crate::cluster::request;
use crate::line_diff;

/// In whose name the API server is asked what would become of an object, as the reference operator does.
const MANAGER: &str = "kubectl-client-side-apply";

/// What stands for data of a Secret.
const MASK: &str = "******";

/// The annotation in which `kubectl apply` keeps what it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What is said when there is no difference.
const NONE: &str = "No diff found";

impl Helm {
    /// Returns how the objects in the cluster would change if the module was upgraded now, as unified differences.
    ///
    /// Nothing is changed: the API server tries each object and forgets it. Without `shows_secrets`, data of Secrets are masked, and so
    /// is what was secret in the values of the revisions that are in the cluster.
    ///
    /// # Errors
    ///
    /// The chart does not render, or the API server does not take an object.
    pub async fn diff(
        &self,
        module: &Arc<Module>,
        input: &ValuesInput,
        shows_secrets: bool,
    ) -> Result<String, Failure> {
        let values = chart_values(module, input)?;
        let secret = Some(&*input.secret).filter(|_| !shows_secrets);
        let outcome = self.differences(module, values, secret).await;
        outcome.map_err(|error| self.failure(&error, "the difference can't be found"))
    }

    async fn differences(
        &self,
        module: &Arc<Module>,
        values: Map<String, Value>,
        secret: Option<&Secrets<'static>>,
    ) -> Result<String, ReleaseError> {
        let rendered = self.render_module(module, values.clone()).await?;
        let mut text = self.crd_differences(module).await?;
        for mut object in object::of_record(&rendered.manifest) {
            object::mark(&mut object.value, module.name.as_str(), &self.settings.namespace);
            text.push_str(&self.difference(&object, module.settings.apply, secret.is_some()).await?);
        }
        if let Some(secret) = secret.filter(|_| !text.is_empty()) {
            text = self.without_earlier_secrets(module.name.as_str(), secret, values, text).await?;
        }
        Ok(if text.is_empty() { NONE.to_owned() } else { text })
    }

    /// Returns a text without what was secret in the values of the revisions whose objects may be in the cluster. These are the only
    /// place where such values are known after a restart.
    async fn without_earlier_secrets(
        &self,
        name: &str,
        secret: &Secrets<'static>,
        values: Map<String, Value>,
        mut text: String,
    ) -> Result<String, ReleaseError> {
        let history = self.storage.history(name).await?;
        let revisions: Vec<_> = history.iter().map(StoredRevision::revision).collect();
        let now = Value::Object(values);
        for record in self.previous(name, &UpgradePlan::of(&revisions)).await? {
            let before = record.config.as_deref().map(RawValue::get).map(serde_json::from_str::<Value>);
            if let Some(Ok(before)) = before {
                text = secret.in_earlier(&before, &now).hide(&text).into_owned();
            }
        }
        Ok(text)
    }

    /// Returns how the CRDs in the cluster would change that the chart of a package brings.
    async fn crd_differences(&self, module: &Arc<Module>) -> Result<String, ReleaseError> {
        let mut text = String::new();
        if module.package.is_none() {
            return Ok(text);
        }
        for (name, before, after) in self.crds_of_package(module).await? {
            let name = format!("CustomResourceDefinition/{name}");
            text.push_str(&difference_of(&name, &before.map(shown).unwrap_or_default(), &shown(after)));
        }
        Ok(text)
    }

    async fn difference(
        &self,
        object: &Object,
        mode: ApplyMode,
        hides_data: bool,
    ) -> Result<String, ReleaseError> {
        let namespace = object.namespace.as_deref().unwrap_or(&self.settings.namespace);
        let name = format!("{namespace}/{}/{}", object.kind, object.name);
        let Ok(resource) = self.discovery.resolve(&object.api_version, &object.kind).await else {
            return Ok(format!(
                "{name}: kind {} of {} does not exist yet\n",
                object.kind, object.api_version
            ));
        };
        let path = resource.object_path(Some(namespace), &object.name);
        let mut before = self.requests.get(&path).await?;
        let mut after = match mode {
            ApplyMode::Client => self.requests.dry_run_apply(&path, MANAGER, &object.value).await?,
            // In the name of the release, so that what the chart renders no more is seen to go.
            ApplyMode::Server => {
                let applied = server_side::applied(object.value.clone(), &resource);
                self.requests.dry_run_apply(&path, request::MANAGER, &applied).await?
            }
        };
        if hides_data && resource.kind == "Secret" && resource.group.is_empty() {
            mask_data(before.as_mut(), &mut after);
        }
        Ok(difference_of(&name, &before.map(shown).unwrap_or_default(), &shown(after)))
    }
}

/// Masks the data of a Secret, so that one sees what differs and not what it is.
fn mask_data(before: Option<&mut Value>, after: &mut Value) {
    let mut none = Value::Null;
    let before = before.unwrap_or(&mut none);
    // What `kubectl apply` writes there has the data, too.
    for place in ["/data", "/stringData", "/metadata/annotations"] {
        let entries =
            |object: &Value| object.pointer(place).and_then(Value::as_object).cloned().unwrap_or_default();
        let (old, new) = (entries(before), entries(after));
        let is_masked = |key: &str| !place.ends_with("annotations") || key == LAST_APPLIED;
        for (object, other, side) in [(&mut *before, &new, "before"), (&mut *after, &old, "after")] {
            let Some(Value::Object(entries)) = object.pointer_mut(place) else { continue };
            for (key, value) in entries.iter_mut().filter(|(key, _)| is_masked(key)) {
                let is_same = other.get(key) == Some(value);
                *value = if is_same { MASK.into() } else { format!("{MASK} ({side})").into() };
            }
        }
    }
}

/// Returns how two texts differ; an empty text if they don't.
fn difference_of(name: &str, before: &str, after: &str) -> String {
    let mut text = String::new();
    for hunk in line_diff::hunks(before, after, 3) {
        if text.is_empty() {
            let _ = write!(text, "--- live/{name}\n+++ rendered/{name}\n");
        }
        let _ = write!(text, "{hunk}");
    }
    text
}

/// Returns an object as YAML without what changes by itself.
fn shown(mut object: Value) -> String {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for field in ["generation", "managedFields", "resourceVersion", "uid", "creationTimestamp"] {
            metadata.remove(field);
        }
    }
    values::yaml::emit(&object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_of_a_secret_are_seen_to_differ_and_not_seen() {
        let mut before = json!({"data": {"a": "QQ==", "b": "QQ==", "gone": "QQ=="}, "metadata": {"annotations": {"x": "y", LAST_APPLIED: "QQ=="}}});
        let mut after = json!({"data": {"a": "QQ==", "b": "Qg==", "new": "QQ=="}, "metadata": {"annotations": {"x": "y", LAST_APPLIED: "QQ=="}}});
        mask_data(Some(&mut before), &mut after);
        let annotations = json!({"x": "y", LAST_APPLIED: "******"});
        let seen = json!({"data": {"a": "******", "b": "****** (before)", "gone": "****** (before)"}, "metadata": {"annotations": annotations}});
        assert_eq!(before, seen);
        let seen = json!({"data": {"a": "******", "b": "****** (after)", "new": "****** (after)"}, "metadata": {"annotations": annotations}});
        assert_eq!(after, seen);
        let mut new = json!({"data": {"a": "QQ=="}});
        mask_data(None, &mut new);
        assert_eq!(new, json!({"data": {"a": "****** (after)"}}));
    }
}
