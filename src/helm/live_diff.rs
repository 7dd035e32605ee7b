//! How the cluster differs from what a chart renders to, without changing anything.

use std::fmt::Write as _;
use std::sync::Arc;

use engine::{ApplyMode, Failure, Module, ValuesInput};
use serde_json::Value;
use similar::TextDiff;

use super::object::{self, Object};
use super::{Helm, ReleaseError, chart_values, server_side};
use crate::cluster::request;

/// In whose name the API server is asked what would become of an object, as the reference operator does.
const MANAGER: &str = "kubectl-client-side-apply";

/// What is said when there is no difference.
const NONE: &str = "No diff found";

impl Helm {
    /// Returns how the objects in the cluster would change if the module was upgraded now, as unified differences.
    ///
    /// Nothing is changed: the API server tries each object and forgets it.
    ///
    /// # Errors
    ///
    /// The chart does not render, or the API server does not take an object.
    pub async fn diff(&self, module: &Arc<Module>, values: &ValuesInput) -> Result<String, Failure> {
        let values = chart_values(module, values)?;
        let outcome = self.differences(module, values).await;
        outcome.map_err(|error| self.failure(&error, "the difference can't be found"))
    }

    async fn differences(
        &self,
        module: &Arc<Module>,
        values: serde_json::Map<String, Value>,
    ) -> Result<String, ReleaseError> {
        let rendered = self.render_module(module, values).await?;
        let mut text = self.crd_differences(module).await?;
        for mut object in object::of_record(&rendered.manifest) {
            object::mark(&mut object.value, module.name.as_str(), &self.settings.namespace);
            text.push_str(&self.difference(&object, module.settings.apply).await?);
        }
        Ok(if text.is_empty() { NONE.to_owned() } else { text })
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

    async fn difference(&self, object: &Object, mode: ApplyMode) -> Result<String, ReleaseError> {
        let namespace = object.namespace.as_deref().unwrap_or(&self.settings.namespace);
        let name = format!("{namespace}/{}/{}", object.kind, object.name);
        let Ok(resource) = self.discovery.resolve(&object.api_version, &object.kind).await else {
            return Ok(format!(
                "{name}: kind {} of {} does not exist yet\n",
                object.kind, object.api_version
            ));
        };
        let path = resource.object_path(Some(namespace), &object.name);
        let before = self.requests.get(&path).await?;
        let after = match mode {
            ApplyMode::Client => self.requests.dry_run_apply(&path, MANAGER, &object.value).await?,
            // In the name of the release, so that what the chart renders no more is seen to go.
            ApplyMode::Server => {
                let applied = server_side::applied(object.value.clone(), &resource);
                self.requests.dry_run_apply(&path, request::MANAGER, &applied).await?
            }
        };
        Ok(difference_of(&name, &before.map(shown).unwrap_or_default(), &shown(after)))
    }
}

/// Returns how two texts differ; an empty text if they don't.
fn difference_of(name: &str, before: &str, after: &str) -> String {
    let mut text = String::new();
    if before != after {
        let diff = TextDiff::from_lines(before, after);
        let _ = write!(
            text,
            "{}",
            diff.unified_diff()
                .context_radius(3)
                .header(&format!("live/{name}"), &format!("rendered/{name}"))
        );
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
