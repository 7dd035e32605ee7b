//! The section `reconcile`. See docs/hooks.md#writing-a-controller.

use std::collections::BTreeSet;

use super::error::Compile;
use super::fields::Fields;
use super::report::{Path, Report};
use super::selector;
use crate::hook::reconcile::{
    ChildKind, FieldPath, MAX_CONCURRENCY, MAX_FIELDS, MAX_KINDS, MAX_PATH_PARTS, ObjectKind,
    ParentReference, ReconcileBinding, RelatedKind, Update,
};
use crate::hook::selection::{Namespaces, Selection};
use crate::hook::spec::HookSpec;
use crate::name::QueueName;
use crate::retry::RetryPolicy;

/// Reads the section of a v1 configuration.
pub(super) fn read(fields: &mut Fields<'_>, report: &Report) -> Vec<ReconcileBinding> {
    let items = fields.objects("reconcile", 1).unwrap_or_default();
    items.into_iter().map(|item| read_one(item, report)).collect()
}

fn read_one(mut item: Fields<'_>, report: &Report) -> ReconcileBinding {
    item.require(&["apiVersion", "kind"]);
    let parent = selector::selection(&mut item);
    let concurrency = item.integer("concurrency").unwrap_or(1);
    if !(1..=MAX_CONCURRENCY).contains(&concurrency) {
        let path = item.path().key("concurrency");
        report.note(&path, format!("{path} should be from 1 to {MAX_CONCURRENCY}"));
    }
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let binding = ReconcileBinding {
        name: given(item.string("name")).unwrap_or_else(|| "reconcile".to_owned()),
        parent,
        finalizer: given(item.string("finalizer")),
        queue: given(item.string("queue")).map(QueueName::from),
        concurrency: usize::try_from(concurrency).unwrap_or(1).max(1),
        children: item
            .objects("children", 0)
            .unwrap_or_default()
            .into_iter()
            .map(|item| read_child(item, report))
            .collect(),
        related: item
            .objects("related", 0)
            .unwrap_or_default()
            .into_iter()
            .map(|item| read_related(item, report))
            .collect(),
    };
    item.finish();
    binding
}

fn read_child(mut item: Fields<'_>, report: &Report) -> ChildKind {
    item.require(&["apiVersion", "kind"]);
    let kind = ObjectKind {
        api_version: item.string("apiVersion").unwrap_or_default(),
        kind: item.string("kind").unwrap_or_default(),
    };
    let update = item.word("update", &["InPlace", "Recreate", "OnDelete"]);
    let update = update.and_then(|word| word.parse().ok()).unwrap_or_default();
    let exact = item.strings("exact", 1).map(|paths| fields(&paths, &item.path().key("exact"), report));
    let jq_filter = item.string("jqFilter").filter(|filter| !filter.is_empty());
    item.finish();
    ChildKind { kind, update, exact: exact.unwrap_or_default(), jq_filter }
}

fn read_related(mut item: Fields<'_>, report: &Report) -> RelatedKind {
    item.require(&["apiVersion", "kind"]);
    let selection = selector::selection(&mut item);
    let kind = ObjectKind { api_version: selection.api_version.clone(), kind: selection.kind.clone() };
    let name = item.string("name").filter(|name| !name.is_empty()).unwrap_or_else(|| kind.to_string());
    let annotation = item.string("parentAnnotation").map(ParentReference::Annotation);
    let label = item.string("parentLabel").map(ParentReference::Label);
    let owner = item.boolean("ownerOf").filter(|is_owner| *is_owner).map(|_| ParentReference::Owner);
    let named = item.strings("namedBy", 1).map(|paths| fields(&paths, &item.path().key("namedBy"), report));
    let named = named.map(ParentReference::Fields);
    let mut references = annotation.into_iter().chain(label).chain(owner).chain(named);
    let parent = if let (Some(parent), None) = (references.next(), references.next()) {
        parent
    } else {
        let path = item.path();
        let text =
            format!("{path} should have one of parentAnnotation, parentLabel, namedBy and ownerOf: true");
        report.note(path, text);
        ParentReference::Owner
    };
    let jq_filter = item.string("jqFilter").filter(|filter| !filter.is_empty());
    item.finish();
    RelatedKind { name, selection, parent, jq_filter }
}

/// Reads the paths of fields.
fn fields(paths: &[String], place: &Path, report: &Report) -> Vec<FieldPath> {
    if paths.len() > MAX_FIELDS {
        report.note(place, format!("{place} has {} fields, and may have {MAX_FIELDS}", paths.len()));
    }
    let read = |path: &String| {
        let field = FieldPath::parse(path);
        if field.is_none() {
            let text = format!(
                "{place} should have paths such as spec.secret.name, of at most {MAX_PATH_PARTS} parts, not '{path}'"
            );
            report.note(place, text);
        }
        field
    };
    paths.iter().filter_map(read).collect()
}

/// Notes what is wrong with the meaning of bindings.
pub(super) fn check(spec: &HookSpec, report: &Report, compile: Compile<'_>) {
    let section = Path::default().key("reconcile");
    let is_nothing_else =
        spec.lifecycle.is_empty() && spec.schedules.is_empty() && spec.kubernetes.is_empty();
    if !spec.reconciles.is_empty() && is_nothing_else && spec.settings.retry != RetryPolicy::default() {
        let path = Path::default().key("settings").key("retry");
        let text =
            "retry is invalid: the hook has reconcile bindings only, and their keys have waits of their own";
        report.note(&path, text);
    }
    let mut names = BTreeSet::new();
    for (index, binding) in spec.reconciles.iter().enumerate() {
        let path = section.item(index);
        let note = |path: &Path, problem: String| {
            report.note(path, format!("invalid reconcile config [{index}]: {problem}"));
        };
        if !names.insert(&binding.name) {
            let problem = format!("name is invalid: there is another binding '{}'", binding.name);
            note(&path.key("name"), problem);
        }
        check_selection(&binding.parent, &|key, problem| note(&path.key(key), problem));
        if let Some(finalizer) = &binding.finalizer
            && let Some(problem) = problem_of_finalizer(finalizer)
        {
            note(&path.key("finalizer"), format!("finalizer is invalid: {problem}"));
        }
        let before = spec.reconciles.get(..index).unwrap_or_default();
        if let Some(other) = before.iter().find(|other| other.shares_finalizer_with(binding)) {
            let problem = format!("finalizer is invalid: binding '{}' has it for the same kind", other.name);
            note(&path.key("finalizer"), problem);
        }
        if binding.queue.as_ref().is_some_and(QueueName::is_main) {
            note(
                &path.key("queue"),
                "queue is invalid: keys have a queue of their own, and can't be in main".to_owned(),
            );
        }
        check_children(binding, &path.key("children"), &note, compile);
        check_related(binding, &path.key("related"), &note, compile);
    }
}

fn check_children(
    binding: &ReconcileBinding,
    path: &Path,
    note: &dyn Fn(&Path, String),
    compile: Compile<'_>,
) {
    check_count(binding.children.len(), path, note);
    let mut kinds = BTreeSet::new();
    for (index, child) in binding.children.iter().enumerate() {
        let path = path.item(index);
        check_kind(&child.kind, &|key, problem| note(&path.key(key), problem));
        check_filter(child.jq_filter.as_deref(), &path, note, compile);
        check_exact(child, &|problem| note(&path.key("exact"), format!("exact is invalid: {problem}")));
        let same =
            |other: &ObjectKind| (other.group(), &other.kind) == (child.kind.group(), &child.kind.kind);
        if same(&binding.kind()) {
            note(&path.key("kind"), format!("kind is invalid: {} is the kind of the parent", child.kind));
        } else if !kinds.insert((child.kind.group(), &child.kind.kind)) {
            note(&path.key("kind"), format!("kind is invalid: {} is there twice", child.kind));
        }
    }
}

/// Notes fields of a child that are not its hook's alone: others write into all metadata and into the status.
fn check_exact(child: &ChildKind, note: &dyn Fn(String)) {
    if !child.exact.is_empty() && child.update == Update::OnDelete {
        note("with update: OnDelete a child is left as it is".to_owned());
    }
    for field in &child.exact {
        if field
            .parts()
            .next()
            .is_some_and(|part| ["apiVersion", "kind", "metadata", "status"].contains(&part))
        {
            note(format!("{field} is not of the hook alone; name fields such as spec"));
        }
    }
}

fn check_related(
    binding: &ReconcileBinding,
    path: &Path,
    note: &dyn Fn(&Path, String),
    compile: Compile<'_>,
) {
    check_count(binding.related.len(), path, note);
    let mut names = BTreeSet::new();
    for (index, related) in binding.related.iter().enumerate() {
        let path = path.item(index);
        if !names.insert(&related.name) {
            let problem = format!("name is invalid: '{}' is there twice; give each a name", related.name);
            note(&path.key("name"), problem);
        }
        check_selection(&related.selection, &|key, problem| note(&path.key(key), problem));
        check_filter(related.jq_filter.as_deref(), &path, note, compile);
        let (key, reference) = match &related.parent {
            ParentReference::Annotation(key) => ("parentAnnotation", key),
            ParentReference::Label(key) => ("parentLabel", key),
            ParentReference::Owner | ParentReference::Fields(_) => continue,
        };
        if let Some(problem) = selector::problem_of_key(reference) {
            note(&path.key(key), format!("{key} is invalid: {problem}"));
        }
    }
}

fn check_filter(filter: Option<&str>, path: &Path, note: &dyn Fn(&Path, String), compile: Compile<'_>) {
    if let Some(Err(problem)) = filter.map(compile) {
        note(&path.key("jqFilter"), format!("jqFilter is invalid: {problem}"));
    }
}

fn check_count(count: usize, path: &Path, note: &dyn Fn(&Path, String)) {
    if count > MAX_KINDS {
        note(path, format!("{count} kinds are more than the {MAX_KINDS} that there may be"));
    }
}

fn check_selection(selection: &Selection, note: &dyn Fn(&str, String)) {
    let kind = ObjectKind { api_version: selection.api_version.clone(), kind: selection.kind.clone() };
    check_kind(&kind, note);
    if let Some(problem) = selector::problem_of_labels(&selection.labels) {
        note("labelSelector", format!("labelSelector is invalid: {problem}"));
    }
    if let Namespaces::Labelled(labels) = &selection.namespaces
        && let Some(problem) = selector::problem_of_labels(labels)
    {
        note("namespace", format!("namespace.labelSelector is invalid: {problem}"));
    }
}

fn check_kind(kind: &ObjectKind, note: &dyn Fn(&str, String)) {
    let version = &kind.api_version;
    if version.is_empty() || version.matches('/').count() > 1 {
        note(
            "apiVersion",
            format!("apiVersion is invalid: '{version}' must be 'version' or 'group/version'"),
        );
    }
    // Objects are compared by it, so a plural or a short name would match none.
    if !kind.kind.starts_with(|first: char| first.is_ascii_uppercase()) {
        let problem = format!("kind is invalid: write '{}' as objects do, such as Deployment", kind.kind);
        note("kind", problem);
    }
}

fn problem_of_finalizer(finalizer: &str) -> Option<String> {
    if !finalizer.contains('/') {
        return Some(format!("'{finalizer}' has no domain; write one, as example.com/{finalizer}"));
    }
    selector::problem_of_key(finalizer)
}
