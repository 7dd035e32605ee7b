//! What a bundle says of itself to platforms: its `meta.yaml`, and those of its plans. See docs/source-broker.md.

use std::path::Path;
use std::sync::Arc;

use engine::{Offer, OfferedPlan};
use serde_json::{Map, Value};
use source::bundle::META;

use super::mapping::read_mapping;

/// Fields of `meta.yaml`, and what the Open Service Broker API calls them.
const METADATA: [(&str, &str); 6] = [
    ("displayName", "displayName"),
    ("documentationURL", "documentationUrl"),
    ("imageURL", "imageUrl"),
    ("longDescription", "longDescription"),
    ("providerDisplayName", "providerDisplayName"),
    ("supportURL", "supportUrl"),
];

/// Returns what the bundle in a directory says of itself; nothing if its `meta.yaml` can't be read. It was linted when it
/// was fetched.
pub(super) fn read(root: &Path) -> Option<Arc<Offer>> {
    let meta = read_mapping(&root.join(META)).ok()??;
    let mut metadata = Map::new();
    for (field, name) in METADATA {
        if let Some(text) = text(&meta, field) {
            metadata.insert(name.to_owned(), Value::String(text));
        }
    }
    if let Some(labels) = meta.get("labels").and_then(Value::as_object) {
        let labels = labels.iter().map(|(name, value)| (name.clone(), Value::String(shown(value))));
        metadata.insert("labels".to_owned(), Value::Object(labels.collect()));
    }
    let tags = text(&meta, "tags").unwrap_or_default();
    let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(Arc::from);
    let requires = meta.get("requires").and_then(Value::as_array);
    Some(Arc::new(Offer {
        description: text(&meta, "description").unwrap_or_default().into(),
        tags: tags.collect(),
        requires: requires.into_iter().flatten().map(|item| shown(item).into()).collect(),
        metadata: Arc::new(Value::Object(metadata)),
        plans: plans(&root.join("plans")),
    }))
}

/// Returns what the plans below a directory say of themselves, sorted by their directories. Of two with one name the first
/// counts: a plan is picked by its name.
fn plans(directory: &Path) -> Vec<OfferedPlan> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut directories: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    directories.sort();
    let mut plans: Vec<OfferedPlan> = Vec::new();
    for directory in directories {
        let Some(plan) = plan(&directory) else { continue };
        if !plans.iter().any(|other| other.name == plan.name) {
            plans.push(plan);
        }
    }
    plans
}

fn plan(directory: &Path) -> Option<OfferedPlan> {
    let meta = read_mapping(&directory.join(META)).ok()??;
    Some(OfferedPlan {
        id: text(&meta, "id")?.into(),
        name: text(&meta, "name")?.into(),
        description: text(&meta, "description").unwrap_or_default().into(),
        display_name: text(&meta, "displayName").unwrap_or_default().into(),
        free: meta.get("free").and_then(Value::as_bool),
    })
}

/// Returns a text that is not empty. Numbers and words for true and false are texts, as they are for the lint.
fn text(meta: &Map<String, Value>, field: &str) -> Option<String> {
    Some(shown(meta.get(field)?)).filter(|text| !text.is_empty())
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}
