//! A definition as the server uses it.

use std::sync::{Arc, OnceLock};

use expressions::rules::Rules;
use objects::schema::Structural;
use objects::types::{Name, Shape};
use serde_json::Value;

use crate::kind::{Kind, Subresource, Verb};
use crate::store::{TableName, table_name};
use crate::table::{self, Column};

pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) group: String,
    /// The version that objects are stored in.
    pub(crate) storage: String,
    pub(crate) versions: Vec<Version>,
    /// Where the webhook is that converts objects, if there is one.
    pub(crate) converter: Option<Value>,
    /// Whether the definition waits for its deletion: no new objects.
    pub(crate) terminating: bool,
    /// A number that changes with what was read.
    fingerprint: u64,
}

impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

/// One version of a custom kind.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) kind: Arc<Kind>,
    pub(crate) served: bool,
    /// The schema as it was written.
    pub(crate) schema: Value,
    /// The rules of the schema, compiled when they are first needed.
    rules: OnceLock<Option<Rules>>,
    /// The schema, read.
    pub(crate) structural: Structural,
    pub(crate) shape: Shape,
    /// The paths that objects can be selected by.
    pub(crate) selectable: Vec<String>,
    pub(crate) columns: Arc<[Column]>,
    pub(crate) scale: Option<ScalePaths>,
    /// What clients are warned of when the version is deprecated.
    pub(crate) warning: Option<String>,
}

/// Where the numbers of a scale are.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("the definition has no {0}")]
pub(crate) struct DefinitionError(&'static str);

impl Definition {
    /// Reads an object of the kind `CustomResourceDefinition`.
    pub(crate) fn read(object: &Value) -> Result<Definition, DefinitionError> {
        let spec = object.get("spec").ok_or(DefinitionError("spec"))?;
        let group = text(spec, "group").ok_or(DefinitionError("group"))?;
        let versions = spec.get("versions").and_then(Value::as_array).ok_or(DefinitionError("versions"))?;
        let names = object.pointer("/status/acceptedNames").ok_or(DefinitionError("accepted names"))?;
        let mut sorted: Vec<&Value> =
            versions.iter().filter(|version| text(version, "name").is_some()).collect();
        sorted.sort_by(|a, b| {
            let name = |version: &Value| text(version, "name").unwrap_or_default();
            super::version_order::compare(&name(b), &name(a))
        });
        let storage = sorted
            .iter()
            .find(|version| version.get("storage") == Some(&Value::Bool(true)))
            .and_then(|version| text(version, "name"))
            .ok_or(DefinitionError("version for storage"))?;
        let versions: Vec<Version> = sorted
            .iter()
            .enumerate()
            .map(|(index, version)| read_version(spec, names, &group, version, index == 0))
            .collect();
        let terminating = object.pointer("/metadata/deletionTimestamp").is_some();
        let source = format!("{spec}{names}{terminating}");
        let fingerprint = crate::fingerprint::fingerprint(source.as_bytes());
        let converter = spec.pointer("/conversion/webhook/clientConfig").filter(|client| client.is_object());
        let converter = converter.cloned();
        Ok(Definition { group, storage, versions, converter, terminating, fingerprint })
    }

    pub(crate) fn table(&self) -> Option<TableName> {
        let kind = &self.versions.first()?.kind;
        Some(table_name(&self.group, &kind.plural))
    }
}

impl Version {
    /// Returns the rules of the schema; nothing if it has none.
    pub(crate) fn rules(&self) -> Option<&Rules> {
        self.rules.get_or_init(|| Rules::of(&self.schema)).as_ref()
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn texts(value: &Value, name: &str) -> Vec<Name> {
    let list = value.get(name).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(|text| Name::from(text.to_owned())))
        .collect()
}

#[expect(clippy::too_many_lines, reason = "one field after the other")]
fn read_version(spec: &Value, names: &Value, group: &str, version: &Value, preferred: bool) -> Version {
    let name = |field: &str| text(names, field).unwrap_or_default();
    let kind = name("kind");
    let version_name = text(version, "name").unwrap_or_default();
    let scale = version.pointer("/subresources/scale").filter(|scale| scale.is_object());
    let has_status = version.pointer("/subresources/status").is_some_and(Value::is_object);
    let mut subresources = Vec::new();
    let verbs = vec![Verb::Get, Verb::Patch, Verb::Update];
    if scale.is_some() {
        subresources.push(Subresource {
            name: "scale".into(),
            verbs: verbs.clone(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
        });
    }
    if has_status {
        subresources.push(Subresource {
            name: "status".into(),
            verbs,
            group: group.to_owned().into(),
            version: version_name.clone().into(),
            kind: kind.clone().into(),
        });
    }
    let singular = text(names, "singular").unwrap_or_else(|| kind.to_lowercase());
    let list_kind = text(names, "listKind").unwrap_or_else(|| format!("{kind}List"));
    let deprecated = version.get("deprecated") == Some(&Value::Bool(true));
    let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
    let structural = Structural::of(schema);
    let warning = text(version, "deprecationWarning")
        .unwrap_or_else(|| format!("{group}/{version_name} {kind} is deprecated"));
    Version {
        kind: Arc::new(Kind {
            group: group.to_owned().into(),
            version: version_name.into(),
            kind: kind.into(),
            list_kind: list_kind.into(),
            plural: name("plural").into(),
            singular: singular.into(),
            namespaced: spec.get("scope").and_then(Value::as_str) == Some("Namespaced"),
            short_names: texts(names, "shortNames"),
            categories: texts(names, "categories"),
            verbs: vec![
                Verb::Delete,
                Verb::DeleteCollection,
                Verb::Get,
                Verb::List,
                Verb::Patch,
                Verb::Create,
                Verb::Update,
                Verb::Watch,
            ],
            subresources,
            preferred,
            stored_as: None,
        }),
        served: version.get("served") == Some(&Value::Bool(true)),
        schema: schema.clone(),
        rules: OnceLock::new(),
        shape: structural.shape(),
        structural,
        selectable: selectable(version),
        columns: table::custom_columns(version.get("additionalPrinterColumns").unwrap_or(&Value::Null)),
        scale: scale.map(|scale| ScalePaths {
            spec_replicas: text(scale, "specReplicasPath").unwrap_or_default(),
            status_replicas: text(scale, "statusReplicasPath").unwrap_or_default(),
            selector: text(scale, "labelSelectorPath"),
        }),
        warning: deprecated.then_some(warning),
    }
}

fn selectable(version: &Value) -> Vec<String> {
    let list = version.get("selectableFields").and_then(Value::as_array);
    let path = |field: &Value| text(field, "jsonPath").map(|path| path.trim_start_matches('.').to_owned());
    list.into_iter().flatten().filter_map(path).collect()
}
