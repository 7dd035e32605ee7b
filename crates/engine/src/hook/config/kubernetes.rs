//! The section `kubernetes`. See docs/hooks.md#kubernetes-bindings.

use std::collections::BTreeSet;

use super::error::Compile;
use super::fields::Fields;
use super::report::{Path, Report};
use super::selector;
use crate::hook::selection::{Namespaces, Selection};
use crate::hook::spec::{HookSpec, KubernetesBinding, MAIN_QUEUE, WatchEvent};

/// Reads the section of a v1 configuration.
pub(super) fn read(fields: &mut Fields<'_>) -> Vec<KubernetesBinding> {
    let items = fields.objects("kubernetes", 1).unwrap_or_default();
    items.into_iter().map(read_one).collect()
}

fn read_one(mut item: Fields<'_>) -> KubernetesBinding {
    item.require(&["kind"]);
    let mut selection = selector::selection(&mut item);
    selection.fields = selector::fields(&mut item, "fieldSelector");
    // The old spelling counts only where the new one is absent; both are checked.
    let old = read_events(&mut item, "watchEvent");
    let execute_on_events = read_events(&mut item, "executeHookOnEvent").or(old);
    // It says how often to list anew. Watches here never need that, so nothing follows from it.
    item.string("resynchronizationPeriod");
    let queue = item.string("queue").filter(|queue| !queue.is_empty());
    let wait = item.boolean("waitForSynchronization").unwrap_or(true);
    let binding = KubernetesBinding {
        name: item.string("name").filter(|name| !name.is_empty()).unwrap_or_else(|| "kubernetes".to_owned()),
        selection,
        jq_filter: item.string("jqFilter").filter(|filter| !filter.is_empty()),
        keep_full_objects: item.boolean("keepFullObjectsInMemory").unwrap_or(true),
        execute_on_events: execute_on_events.unwrap_or_else(|| WatchEvent::ALL.into()),
        execute_on_synchronization: item.boolean("executeHookOnSynchronization").unwrap_or(true),
        // In the main queue nothing can go past a Synchronization.
        wait_for_synchronization: wait || queue.is_none(),
        include_snapshots_from: item.strings("includeSnapshotsFrom", 1).unwrap_or_default(),
        group: item.string("group").filter(|group| !group.is_empty()),
        queue: queue.as_deref().unwrap_or(MAIN_QUEUE).into(),
        allow_failure: item.boolean("allowFailure").unwrap_or(false),
    };
    item.finish();
    binding
}

fn read_events(item: &mut Fields<'_>, key: &'static str) -> Option<BTreeSet<WatchEvent>> {
    let words = item.words(key, 0, &["Added", "Modified", "Deleted"])?;
    Some(WatchEvent::ALL.into_iter().filter(|event| words.contains(&event.as_str())).collect())
}

/// Notes what is wrong with the meaning of single bindings.
pub(super) fn check(spec: &HookSpec, section: &str, report: &Report, compile: Compile<'_>) {
    let section_path = Path::default().key(section);
    for (index, binding) in spec.kubernetes.iter().enumerate() {
        let path = section_path.item(index);
        let note = |key: &str, problem: String| {
            report.note(&path.key(key), format!("invalid {section} config [{index}]: {problem}"));
        };
        let Selection { api_version, kind, names, namespaces, labels, fields, only_metadata: _ } =
            &binding.selection;
        if api_version.matches('/').count() > 1 {
            note(
                "apiVersion",
                format!("apiVersion is invalid: '{api_version}' must be 'version' or 'group/version'"),
            );
        }
        if kind.is_empty() {
            note("kind", "kind is invalid: it is empty".to_owned());
        }
        if let Some(problem) = selector::problem_of_labels(labels) {
            note("labelSelector", format!("labelSelector is invalid: {problem}"));
        }
        if let Some(problem) = selector::problem_of_fields(fields) {
            note("fieldSelector", format!("fieldSelector is invalid: {problem}"));
        }
        let names_by_field = fields.match_expressions.iter().any(|part| part.field == "metadata.name");
        if names_by_field && !names.is_empty() {
            note(
                "fieldSelector",
                "fieldSelector 'metadata.name' and nameSelector.matchNames are mutually exclusive".to_owned(),
            );
        }
        let by_labels = match namespaces {
            Namespaces::All | Namespaces::Named(_) => None,
            Namespaces::Labelled(labels) => selector::problem_of_labels(labels),
        };
        if let Some(problem) = by_labels {
            note("namespace", format!("namespace.labelSelector is invalid: {problem}"));
        }
        if let Some(Err(problem)) = binding.jq_filter.as_deref().map(compile) {
            let message = format!("invalid {section} config [{index}] jqFilter: compile jqFilter: {problem}");
            report.note(&path.key("jqFilter"), message);
        }
    }
}

/// Notes names in `includeSnapshotsFrom` that do not lead to exactly one binding.
pub(super) fn check_includes(spec: &HookSpec, report: &Report) {
    let section = Path::default().key("kubernetes");
    for (index, binding) in spec.kubernetes.iter().enumerate() {
        if let Some(problem) = problem_of_includes(spec, &binding.include_snapshots_from) {
            let path = section.item(index).key("includeSnapshotsFrom");
            report.note(&path, format!("invalid kubernetes config [{index}]: includeSnapshots {problem}"));
        }
    }
}

/// Returns why one of `names` does not lead to exactly one kubernetes binding.
pub(super) fn problem_of_includes(spec: &HookSpec, names: &[String]) -> Option<String> {
    names.iter().find_map(|name| {
        match spec.kubernetes.iter().filter(|binding| binding.name == *name).count() {
            0 => Some(format!("'{name}' binding name not found")),
            1 => None,
            count => Some(format!("there are {count} '{name}' binding names")),
        }
    })
}
