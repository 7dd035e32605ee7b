//! The CRDs of modules, which exist longer than releases.

use std::sync::Arc;

use chart::chart::CrdFile;
use chart::definitions;
use engine::Module;
use objects::patch::merge::diff;
use serde_json::{Map, Value};

use super::Helm;
use super::apply::established;
use super::error::ReleaseError;
use super::object::label;
use crate::cluster::request::PatchKind;
use crate::regular_file;

const COLLECTION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How often a CRD is written when others change it at the same time.
const ATTEMPTS: usize = 5;

impl Helm {
    /// Writes the CRDs of a module and waits until they are established. A broken file
    /// does not stop the others.
    pub(super) async fn ensure_module_crds(&self, module: &Arc<Module>) -> Result<(), ReleaseError> {
        let mut problems = Vec::new();
        let mut names = Vec::new();
        for file in &module.crds {
            match self.ensure_file(&module.path, file).await {
                Ok(found) => names.extend(found),
                Err(error) => problems.push(error),
            }
        }
        if module.package.is_some() {
            let crds = self.charts.load(module).await?.chart.crds();
            for crd in crds.into_iter().filter(|crd| !is_of_dependency(crd)) {
                match self.ensure_text(&crd.path, &crd.file.text()).await {
                    Ok(found) => names.extend(found),
                    Err(error) => problems.push(error),
                }
            }
        }
        for name in &names {
            problems.extend(established(&self.requests, name).await.err());
        }
        if !names.is_empty() {
            self.discovery.refresh();
        }
        if problems.is_empty() { Ok(()) } else { Err(ReleaseError::Crds(problems)) }
    }

    /// Returns the CRDs that a package brings, with what there is of each, and what it would be then. Of charts below `charts/` only
    /// those count that are not there: the others stay as they are.
    pub(super) async fn crds_of_package(
        &self,
        module: &Arc<Module>,
    ) -> Result<Vec<(String, Option<Value>, Value)>, ReleaseError> {
        let mut crds = Vec::new();
        for file in self.charts.load(module).await?.chart.crds() {
            let wrong = |problem: String| ReleaseError::Crd { path: file.path.clone(), problem };
            for (name, mut wanted) in documents(&file.file.text()).map_err(wrong)? {
                label(&mut wanted, &self.settings.extra_labels);
                let path = format!("{COLLECTION}/{name}");
                let current = self.requests.get(&path).await?;
                let change = match &current {
                    Some(current) if !is_of_dependency(&file) => change(current, &wanted),
                    Some(_) | None => None,
                };
                let after = match change {
                    Some(change) => {
                        Some(self.requests.dry_run_patch(&path, PatchKind::Merge, &change).await?)
                    }
                    None => Some(wanted).filter(|_| current.is_none()),
                };
                crds.extend(after.map(|after| (name, current, after)));
            }
        }
        Ok(crds)
    }

    async fn ensure_file(&self, directory: &str, file: &str) -> Result<Vec<String>, ReleaseError> {
        let path = std::path::Path::new(directory).join(file);
        let shown = path.display().to_string();
        let wrong = |problem: String| ReleaseError::Crd { path: shown.clone(), problem };
        let text = regular_file::read_text(&path).map_err(|error| wrong(error.to_string()))?;
        self.ensure_text(&shown, &text).await
    }

    /// Creates or updates the CRDs of a text, which is shown as `path`. Returns their names.
    async fn ensure_text(&self, path: &str, text: &str) -> Result<Vec<String>, ReleaseError> {
        let wrong = |problem: String| ReleaseError::Crd { path: path.to_owned(), problem };
        let mut names = Vec::new();
        for (name, mut crd) in documents(text).map_err(wrong)? {
            label(&mut crd, &self.settings.extra_labels);
            self.ensure(&name, crd).await?;
            names.push(name);
        }
        Ok(names)
    }

    /// Creates the CRDs of charts below `charts/` that are not there, and waits until they are established; returns whether there were
    /// any. Those that are there stay as they are: Helm does the same. The module's own are not among them.
    ///
    /// A guest's chart brings none: they would be there for the whole cluster.
    pub(super) async fn create_crds_of_dependencies(&self, crds: &[CrdFile]) -> Result<bool, ReleaseError> {
        let mut names = Vec::new();
        for crd in crds.iter().filter(|crd| is_of_dependency(crd)).filter(|_| self.guest.is_none()) {
            let wrong = |problem: String| ReleaseError::Crd { path: crd.path.clone(), problem };
            let text = std::str::from_utf8(&crd.file.data).map_err(|error| wrong(error.to_string()))?;
            for (name, mut wanted) in documents(text).map_err(wrong)? {
                if self.requests.get(&format!("{COLLECTION}/{name}")).await?.is_some() {
                    continue;
                }
                label(&mut wanted, &self.settings.extra_labels);
                match self.requests.create(COLLECTION, &wanted).await {
                    Ok(_) => names.push(name),
                    Err(error) if error.code() == 409 => names.push(name),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        for name in &names {
            established(&self.requests, name).await?;
        }
        if !names.is_empty() {
            self.discovery.refresh();
        }
        Ok(!names.is_empty())
    }

    /// Creates a CRD, or patches what differs except how its versions are converted: who may make and patch definitions can do that.
    async fn ensure(&self, name: &str, wanted: Value) -> Result<(), ReleaseError> {
        let path = format!("{COLLECTION}/{name}");
        for attempt in 1..=ATTEMPTS {
            let outcome = match self.requests.get(&path).await? {
                None => self.requests.create(COLLECTION, &wanted).await,
                Some(current) => match change(&current, &wanted) {
                    Some(change) => self.requests.patch(&path, PatchKind::Merge, &change).await,
                    None => return Ok(()),
                },
            };
            match outcome {
                Ok(_) => return Ok(()),
                Err(error) if matches!(error.code(), 404 | 409) && attempt < ATTEMPTS => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Returns whether a file is one of a chart below `charts/`.
fn is_of_dependency(crd: &CrdFile) -> bool {
    crd.path.contains("/charts/")
}

/// Returns the CRDs of a file with their names.
fn documents(text: &str) -> Result<Vec<(String, Value)>, String> {
    definitions::read(text, usize::MAX)
}

/// Returns the merge patch that makes `current` what `wanted` says, if nobody has changed it meanwhile; `None` when it is so already.
fn change(current: &Value, wanted: &Value) -> Option<Value> {
    let mut change = diff(current, &merged(current, wanted)?);
    if let Some(version) = current.pointer("/metadata/resourceVersion") {
        let metadata = change.as_object_mut()?.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        metadata.as_object_mut()?.insert("resourceVersion".to_owned(), version.clone());
    }
    Some(change)
}

/// Returns `current` changed to what `wanted` says; `None` when it is so already.
fn merged(current: &Value, wanted: &Value) -> Option<Value> {
    let mut merged = current.clone();
    let spec = wanted.get("spec")?;
    let mut spec = spec.clone();
    if let (Some(conversion), Some(spec)) = (current.pointer("/spec/conversion"), spec.as_object_mut()) {
        spec.insert("conversion".to_owned(), conversion.clone());
    }
    // What the API server fills in by itself is no difference.
    let filled = current.get("spec").is_some_and(|current| covers(current, &spec));
    if !filled {
        merged.as_object_mut()?.insert("spec".to_owned(), spec);
    }
    for map in ["labels", "annotations"] {
        let Some(Value::Object(entries)) = wanted.pointer(&format!("/metadata/{map}")) else { continue };
        let metadata = merged.get_mut("metadata")?.as_object_mut()?;
        let own = metadata.entry(map).or_insert_with(|| Value::Object(Map::new())).as_object_mut()?;
        for (key, value) in entries {
            own.insert(key.clone(), value.clone());
        }
    }
    (merged != *current).then_some(merged)
}

/// Reports whether `current` has all that `wanted` says, and lists of the same length.
fn covers(current: &Value, wanted: &Value) -> bool {
    match (current, wanted) {
        (Value::Object(current), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| current.get(key).is_some_and(|current| covers(current, value)))
        }
        (Value::Array(current), Value::Array(wanted)) => {
            current.len() == wanted.len()
                && current.iter().zip(wanted).all(|(current, wanted)| covers(current, wanted))
        }
        (current, wanted) => current == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_difference_is_written_and_the_conversion_stays() {
        let current = json!({
            "metadata": {"name": "a", "resourceVersion": "5", "labels": {"x": "y"}},
            "spec": {"group": "g", "conversion": {"strategy": "Webhook"}, "names": {"kind": "A", "listKind": "AList"}},
        });
        let same = json!({"metadata": {"name": "a"}, "spec": {"group": "g", "names": {"kind": "A"}}});
        assert_eq!(merged(&current, &same), None);
        let other = json!({"metadata": {"labels": {"h": "1"}}, "spec": {"group": "g", "names": {"kind": "B"}, "conversion": {"strategy": "None"}}});
        assert_eq!(
            merged(&current, &other),
            Some(json!({
                "metadata": {"name": "a", "resourceVersion": "5", "labels": {"x": "y", "h": "1"}},
                "spec": {"group": "g", "conversion": {"strategy": "Webhook"}, "names": {"kind": "B"}},
            }))
        );
        assert_eq!(
            change(&current, &other),
            Some(json!({
                "metadata": {"resourceVersion": "5", "labels": {"h": "1"}},
                "spec": {"names": {"kind": "B", "listKind": null}},
            }))
        );
    }
}
