//! Reconcile bindings.

use super::*;
use crate::hook::reconcile::{FieldPath, ParentReference, Update};

const BARE: &str = "apiVersion: example.com/v1, kind: Site";

fn refused(text: &str) -> String {
    errors(&format!("configVersion: v1\nreconcile: {text}")).remove(0)
}

#[test]
fn a_reconcile_binding_gets_its_defaults() {
    let spec = valid(&format!("configVersion: v1\nreconcile: [{{{BARE}}}]"));
    let binding = &spec.reconciles[0];
    assert_eq!((binding.name.as_str(), binding.concurrency), ("reconcile", 1));
    assert!(binding.finalizer.is_none() && binding.queue.is_none());
    assert!(binding.children.is_empty() && binding.related.is_empty());
    assert!(spec.watches());
}

#[test]
fn a_reconcile_binding_says_what_it_makes_and_looks_at() {
    let spec = valid(
        "configVersion: v1
reconcile:
- name: site
  apiVersion: example.com/v1
  kind: Site
  namespace: {nameSelector: {matchNames: [a]}}
  nameSelector: {matchNames: [b]}
  labelSelector: {matchLabels: {c: d}}
  finalizer: example.com/site
  queue: sites
  concurrency: 5
  children:
  - {apiVersion: v1, kind: ConfigMap}
  - {apiVersion: apps/v1, kind: Deployment, update: Recreate, jqFilter: .status}
  related:
  - {apiVersion: v1, kind: Secret, parentAnnotation: example.com/site}
  - {name: pods, apiVersion: v1, kind: Pod, parentLabel: site}
  - {apiVersion: example.com/v1, kind: Group, ownerOf: true}
  - {name: keys, apiVersion: v1, kind: Secret, namedBy: [spec.key.name], jqFilter: .data}",
    );
    let binding = &spec.reconciles[0];
    assert_eq!(binding.queue.as_ref().map(crate::QueueName::as_str), Some("sites"));
    assert_eq!((binding.concurrency, binding.finalizer.as_deref()), (5, Some("example.com/site")));
    let children: Vec<_> = binding
        .children
        .iter()
        .map(|child| (child.kind.to_string(), child.update, child.jq_filter.as_deref()))
        .collect();
    assert_eq!(
        children,
        [
            ("ConfigMap".to_owned(), Update::InPlace, None),
            ("Deployment.apps".to_owned(), Update::Recreate, Some(".status")),
        ]
    );
    let related: Vec<_> = binding.related.iter().map(|one| (one.name.as_str(), one.parent.clone())).collect();
    assert_eq!(
        related,
        [
            ("Secret", ParentReference::Annotation("example.com/site".into())),
            ("pods", ParentReference::Label("site".into())),
            ("Group.example.com", ParentReference::Owner),
            ("keys", ParentReference::Fields(vec![FieldPath::parse("spec.key.name").unwrap()])),
        ]
    );
    assert!(!binding.parent.names.is_empty() && !binding.parent.labels.is_empty());
}

#[test]
fn what_makes_no_sense_in_a_reconcile_binding_names_its_place() {
    let cases = [
        ("[]".to_owned(), "reconcile should have at least 1 items"),
        ("[{kind: Site}]".to_owned(), "reconcile.apiVersion is required"),
        (
            format!("[{{{BARE}, finaliser: a/b}}]"),
            "reconcile.finaliser is a forbidden property, did you mean 'finalizer'?",
        ),
        (format!("[{{{BARE}, concurrency: 0}}]"), "reconcile.concurrency should be from 1 to 100"),
        (format!("[{{{BARE}, concurrency: 101}}]"), "reconcile.concurrency should be from 1 to 100"),
        (
            "[{apiVersion: v1, kind: sites}]".to_owned(),
            "invalid reconcile config [0]: kind is invalid: write 'sites' as objects do",
        ),
        (
            "[{apiVersion: a/b/c, kind: Site}]".to_owned(),
            "invalid reconcile config [0]: apiVersion is invalid",
        ),
        (
            format!("[{{{BARE}}}, {{{BARE}}}]"),
            "invalid reconcile config [1]: name is invalid: there is another binding",
        ),
        (
            format!("[{{{BARE}, finalizer: site}}]"),
            "invalid reconcile config [0]: finalizer is invalid: 'site' has no domain",
        ),
        (
            format!("[{{{BARE}, finalizer: a.b/c}}, {{{BARE}, name: x, finalizer: a.b/c}}]"),
            "invalid reconcile config [1]: finalizer is invalid: binding 'reconcile' has it for the same kind",
        ),
        (format!("[{{{BARE}, queue: main}}]"), "invalid reconcile config [0]: queue is invalid"),
        (format!("[{{{BARE}, children: [{{apiVersion: v1}}]}}]"), "reconcile.children.kind is required"),
        (
            format!("[{{{BARE}, children: [{{apiVersion: v1, kind: Pod, update: Always}}]}}]"),
            "reconcile.children.update should be one of [InPlace Recreate OnDelete]",
        ),
        (
            format!("[{{{BARE}, children: [{{{BARE}}}]}}]"),
            "invalid reconcile config [0]: kind is invalid: Site.example.com is the kind of the parent",
        ),
        (
            format!("[{{{BARE}, children: [{{apiVersion: a/v1, kind: A}}, {{apiVersion: a/v2, kind: A}}]}}]"),
            "invalid reconcile config [0]: kind is invalid: A.a is there twice",
        ),
        (
            format!("[{{{BARE}, related: [{{apiVersion: v1, kind: Pod}}]}}]"),
            "reconcile.related should have one of parentAnnotation, parentLabel, namedBy and ownerOf: true",
        ),
        (
            format!("[{{{BARE}, related: [{{apiVersion: v1, kind: Pod, parentLabel: a, ownerOf: true}}]}}]"),
            "reconcile.related should have one of parentAnnotation, parentLabel, namedBy and ownerOf: true",
        ),
        (
            format!("[{{{BARE}, related: [{{apiVersion: v1, kind: Pod, parentLabel: 'a b'}}]}}]"),
            "invalid reconcile config [0]: parentLabel is invalid: 'a b' is not a label key",
        ),
        (
            format!(
                "[{{{BARE}, related: [{{apiVersion: v1, kind: Pod, parentLabel: a}}, {{apiVersion: v1, kind: Pod, parentLabel: b}}]}}]"
            ),
            "invalid reconcile config [0]: name is invalid: 'Pod' is there twice",
        ),
    ];
    for (text, expected) in cases {
        let error = refused(&text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let kinds: Vec<String> = (0..51).map(|n| format!("{{apiVersion: v1, kind: K{n}}}")).collect();
    let error = refused(&format!("[{{{BARE}, children: [{}]}}]", kinds.join(", ")));
    assert!(error.contains("51 kinds are more than the 50"), "{error}");
}

#[test]
fn the_fields_in_which_a_parent_names_others_are_paths() {
    let cases = [
        (
            format!("[{{{BARE}, related: [{{apiVersion: v1, kind: Pod, parentLabel: a, namedBy: [b]}}]}}]"),
            "reconcile.related should have one of parentAnnotation, parentLabel, namedBy and ownerOf: true",
        ),
        (
            format!("[{{{BARE}, related: [{{apiVersion: v1, kind: Pod, namedBy: []}}]}}]"),
            "reconcile.related.namedBy should have at least 1 items",
        ),
        (
            format!("[{{{BARE}, related: [{{apiVersion: v1, kind: Pod, namedBy: [.spec.name]}}]}}]"),
            "reconcile.related.namedBy should have paths such as spec.secret.name, of at most 20 parts, not '.spec.name'",
        ),
        (
            format!(
                "[{{{BARE}, related: [{{apiVersion: v1, kind: Pod, namedBy: [a{}]}}]}}]",
                ".a".repeat(20)
            ),
            "reconcile.related.namedBy should have paths such as spec.secret.name, of at most 20 parts",
        ),
        (
            format!(
                "[{{{BARE}, related: [{{apiVersion: v1, kind: Pod, namedBy: [{}]}}]}}]",
                ["a"; 21].join(", ")
            ),
            "reconcile.related.namedBy has 21 fields, and may have 20",
        ),
    ];
    for (text, expected) in cases {
        let error = refused(&text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn the_fields_that_are_a_hooks_alone_are_paths_that_others_do_not_write() {
    let child = |more: &str| format!("[{{{BARE}, children: [{{apiVersion: v1, kind: Pod, {more}}}]}}]");
    let spec = valid(&format!("configVersion: v1\nreconcile: {}", child("exact: [spec, data.a]")));
    let exact: Vec<String> = spec.reconciles[0].children[0].exact.iter().map(ToString::to_string).collect();
    assert_eq!(exact, ["spec", "data.a"]);
    for (more, expected) in [
        ("exact: []".to_owned(), "reconcile.children.exact should have at least 1 items"),
        ("exact: [.spec]".to_owned(), "reconcile.children.exact should have paths such as spec.secret.name"),
        (
            format!("exact: [{}]", ["a"; 21].join(", ")),
            "reconcile.children.exact has 21 fields, and may have 20",
        ),
        (
            "exact: [metadata.labels]".to_owned(),
            "invalid reconcile config [0]: exact is invalid: metadata.labels is not of the hook alone",
        ),
        (
            "exact: [status]".to_owned(),
            "invalid reconcile config [0]: exact is invalid: status is not of the hook alone",
        ),
        (
            "exact: [spec], update: OnDelete".to_owned(),
            "invalid reconcile config [0]: exact is invalid: with update: OnDelete",
        ),
    ] {
        let error = refused(&child(&more));
        assert!(error.starts_with(expected), "{more}: {error}");
    }
}

#[test]
fn how_runs_are_tried_again_is_refused_where_there_are_only_keys_which_have_waits_of_their_own() {
    let with = |more: &str| {
        format!("configVersion: v1\nsettings: {{retry: {{delay: 1s}}}}\n{more}reconcile: [{{{BARE}}}]")
    };
    let found = errors(&with(""));
    assert!(
        found.len() == 1 && found[0].contains("retry is invalid: the hook has reconcile bindings only"),
        "{found:?}"
    );
    valid(&with("schedule: [{crontab: '* * * * *'}]\n"));
    valid(&format!("configVersion: v1\nsettings: {{timeout: 5s}}\nreconcile: [{{{BARE}}}]"));
}
