//! All configurations of module sources, as data and as lines.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::format::{Format, columns, one_line, span};
use super::problems::{ownerless, way_out_of_ownerless};
use super::why::{Unknown, unknown};
use super::{ModuleView, SourceAddonView, SourceRepositoryView, SourceView, View};
use crate::addon::SourceKey;

/// Returns the configuration that a person means: `NAME`, `NAMESPACE/NAME`, or one of both behind a kind.
///
/// # Errors
///
/// If there is none, or more than one.
pub fn find<'v>(view: &'v View, name: &str) -> Result<&'v SourceView, Unknown> {
    let meant: Vec<&SourceView> = view.sources.iter().filter(|source| source.is_called(name)).collect();
    match meant.as_slice() {
        [one] => Ok(one),
        [] => Err(unknown("source", name, view.sources.iter().map(|source| &*source.key.name))),
        several => {
            let all: Vec<String> = several.iter().map(|source| source.address()).collect();
            let hint = Some(format!("which one: {}?", all.join(" or ")));
            Err(Unknown { what: "single source", name: name.to_owned(), hint })
        }
    }
}

/// Returns all configurations as data.
pub fn data(view: &View, format: Format<'_>) -> Value {
    let mut data = json!({"sources": list(view, format)});
    let ownerless = ownerless_modules(view)
        .map(|(module, source)| json!({"name": module.name.as_str(), "source": source.address()}));
    let ownerless: Vec<Value> = ownerless.collect();
    if let Some(fields) = data.as_object_mut().filter(|_| !ownerless.is_empty()) {
        fields.insert("ownerless".to_owned(), ownerless.into());
    }
    data
}

/// Returns all configurations as a list.
pub(super) fn list(view: &View, format: Format<'_>) -> Value {
    view.sources.iter().map(|source| source_data(source, format)).collect()
}

fn source_data(source: &SourceView, format: Format<'_>) -> Value {
    let of_work = || source.work.as_ref().and_then(|work| work.waits_for.clone());
    let waits_for = source.waits_for.clone().or_else(of_work);
    let repositories = source.repositories.iter().map(|its| repository_data(its, format));
    json!({
        "kind": source.key.kind.as_str(),
        "namespace": &*source.key.namespace,
        "name": &*source.key.name,
        "phase": phase(source),
        "modules": source.modules,
        "message": (format.show)(&source.message),
        "suspended": source.is_suspended,
        "generation": source.generation,
        "observedGeneration": source.observed_generation,
        "lastProcessedTime": source.processed_at,
        "nextSeconds": source.processed_in.map(|time| time.as_secs_f64()),
        "waitsFor": waits_for,
        "repositories": repositories.collect::<Vec<_>>(),
    })
}

fn repository_data(repository: &SourceRepositoryView, format: Format<'_>) -> Value {
    let mut data = Map::from_iter([
        ("url".to_owned(), Value::from(repository.url.clone())),
        ("status".to_owned(), repository.phase.into()),
    ]);
    add_problem(&mut data, &repository.reason, &repository.message, format);
    let addons = repository.addons.iter().map(|addon| addon_data(addon, format));
    data.insert("addons".to_owned(), addons.collect());
    data.into()
}

fn addon_data(addon: &SourceAddonView, format: Format<'_>) -> Value {
    let mut data = Map::from_iter([
        ("name".to_owned(), Value::from(addon.name.clone())),
        ("version".to_owned(), addon.version.clone().into()),
        ("digest".to_owned(), addon.digest.clone().into()),
        ("status".to_owned(), addon.phase.into()),
    ]);
    add_problem(&mut data, &addon.reason, &addon.message, format);
    if let Some((name, state)) = &addon.module {
        let mut module = Map::from_iter([
            ("name".to_owned(), Value::from(name.as_str())),
            ("state".to_owned(), (*state).into()),
        ]);
        if !addon.module_message.is_empty() {
            module.insert("message".to_owned(), (format.show)(&addon.module_message).into());
        }
        data.insert("module".to_owned(), module.into());
    }
    data.into()
}

fn add_problem(data: &mut Map<String, Value>, reason: &str, message: &str, format: Format<'_>) {
    if !reason.is_empty() {
        data.insert("reason".to_owned(), reason.into());
        data.insert("message".to_owned(), (format.show)(message).into());
    }
}

/// Returns all configurations as a table.
pub fn text(view: &View, format: Format<'_>) -> String {
    let ownerless = ownerless_text(view);
    if view.sources.is_empty() && !ownerless.is_empty() {
        return ownerless;
    }
    if view.sources.is_empty() {
        return "There is no module source: docs/sources.md says how to apply one.\n".to_owned();
    }
    let row = |source: &SourceView| {
        vec![
            source.key.kind.as_str().to_owned(),
            source.key.namespace.to_string(),
            source.key.name.to_string(),
            phase(source).to_owned(),
            source.modules.clone(),
            source.processed_at.clone(),
            source.processed_in.map(span).unwrap_or_default(),
            one_line(&(format.show)(&told(source))),
        ]
    };
    let rows: Vec<Vec<String>> = view.sources.iter().map(row).collect();
    let heads = ["KIND", "NAMESPACE", "NAME", "PHASE", "MODULES", "PROCESSED", "NEXT IN", "MESSAGE"];
    columns(&heads, &rows, "") + &ownerless
}

/// Returns a line for each module that goes on and that nobody brings: its configuration is gone.
fn ownerless_text(view: &View) -> String {
    let mut text = String::new();
    for (module, source) in ownerless_modules(view) {
        let (name, way_out) = (&module.name, way_out_of_ownerless(module, source));
        let _ = writeln!(
            text,
            "Module {name} goes on although {source} is gone, and nobody brings it: {way_out}."
        );
    }
    text
}

fn ownerless_modules(view: &View) -> impl Iterator<Item = (&ModuleView, &SourceKey)> {
    view.modules.iter().filter_map(|module| Some((module, ownerless(view, module)?)))
}

/// Returns how far a configuration is, in one word.
pub fn phase(source: &SourceView) -> &'static str {
    if source.is_deleting { "Deleting" } else { source.phase }
}

/// Returns what is said about a configuration in one line: why it is in its phase, and which versions do not come.
pub fn told(source: &SourceView) -> String {
    let suspended = source.is_suspended && source.phase == "Ready";
    let suspended = suspended.then_some("suspended").into_iter();
    let message = Some(source.message.as_str()).filter(|message| !message.is_empty());
    let held = source.held_back().map(|addon| addon.module_message.as_str());
    suspended.chain(message).chain(held).collect::<Vec<_>>().join("; ")
}

/// What the status calls a module that goes on although it is registered no more.
pub(super) const RETAINED: &str = "Retained";
