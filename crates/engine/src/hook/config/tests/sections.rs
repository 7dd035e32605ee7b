//! The sections of a v1 configuration.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::hook::selection::{LabelOperator, Namespaces};
use crate::hook::spec::{FailurePolicy, MAIN_QUEUE, Settings, SideEffects, WatchEvent};

#[test]
fn schedules_get_their_defaults() {
    let spec = valid(
        "configVersion: v1\nschedule:\n- crontab: '*/5 * * * *'\n- {name: x, crontab: '@daily', queue: slow, allowFailure: true}\n- {crontab: '* * * * * *', queue: '', name: ''}\n",
    );
    let shown: Vec<_> = spec
        .schedules
        .iter()
        .map(|s| (s.name.as_str(), s.crontab.as_str(), s.queue.as_str(), s.allow_failure))
        .collect();
    assert_eq!(
        shown,
        [
            ("schedule", "*/5 * * * *", MAIN_QUEUE, false),
            ("x", "@daily", "slow", true),
            ("schedule", "* * * * * *", MAIN_QUEUE, false)
        ]
    );
    assert_eq!(spec.queues().into_iter().map(crate::QueueName::as_str).collect::<Vec<_>>(), ["slow"]);
}

#[test]
fn a_kubernetes_binding_gets_its_defaults() {
    let spec = valid("configVersion: v1\nkubernetes:\n- kind: Pod\n");
    let binding = &spec.kubernetes[0];
    assert_eq!((binding.name.as_str(), binding.queue.as_str()), ("kubernetes", MAIN_QUEUE));
    assert_eq!(binding.execute_on_events, WatchEvent::ALL.into());
    assert!(
        binding.execute_on_synchronization && binding.wait_for_synchronization && binding.keep_full_objects
    );
    assert!(!binding.allow_failure && binding.jq_filter.is_none() && binding.group.is_none());
    assert_eq!(binding.selection, crate::hook::Selection { kind: "Pod".into(), ..Default::default() });
}

const FULL: &str = r#"
configVersion: v1
settings: {executionMinInterval: 30s, executionBurst: 3, timeout: 1m}
kubernetes:
- name: full
  apiVersion: apps/v1
  kind: deployment
  watchEvent: [Deleted]
  executeHookOnEvent: ["Added"]
  executeHookOnSynchronization: false
  waitForSynchronization: false
  keepFullObjectsInMemory: false
  resynchronizationPeriod: whatever
  nameSelector: {matchNames: [b, a, b]}
  labelSelector:
    matchLabels: {app: web, empty: ""}
    matchExpressions:
    - {key: tier, operator: In, values: [x]}
    - {key: zone, operator: DoesNotExist}
  fieldSelector:
    matchExpressions: [{field: status.phase, operator: NotEquals, value: Running}]
  namespace:
    nameSelector: {matchNames: [one, two]}
  jqFilter: .metadata.name
  includeSnapshotsFrom: [full]
  queue: side
  group: pair
  allowFailure: true
- name: dynamic
  kind: Pod
  executeHookOnEvent: []
  namespace: {labelSelector: {matchLabels: {team: a}}, nameSelector: {matchNames: [ignored]}}
  nameSelector: {matchNames: []}
  waitForSynchronization: false
  group: pair
- {name: old, kind: po, watchEvent: [Modified]}
"#;

#[test]
fn every_property_of_a_kubernetes_binding_is_read() {
    let spec = valid(FULL);
    let [full, dynamic, old] = &spec.kubernetes[..] else { panic!("three bindings") };
    assert_eq!(
        (full.selection.api_version.as_str(), full.selection.kind.as_str()),
        ("apps/v1", "deployment")
    );
    assert_eq!(full.execute_on_events, BTreeSet::from([WatchEvent::Added]), "the new spelling wins");
    assert!(!full.execute_on_synchronization && !full.wait_for_synchronization && !full.keep_full_objects);
    assert_eq!(full.selection.names.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(full.selection.labels.to_string(), "app=web,empty=,tier in (x),!zone");
    assert_eq!(full.selection.labels.match_expressions[1].operator, LabelOperator::DoesNotExist);
    assert_eq!(full.selection.fields.to_string(), "status.phase!=Running");
    assert_eq!(full.selection.namespaces, Namespaces::Named(["one".to_owned(), "two".to_owned()].into()));
    assert_eq!((full.jq_filter.as_deref(), full.queue.as_str()), (Some(".metadata.name"), "side"));
    assert_eq!(full.include_snapshots_from, ["full", "dynamic"], "its own list, then the group");
    assert!(full.allow_failure);
    assert!(dynamic.execute_on_events.is_empty() && dynamic.selection.names.is_empty());
    assert!(
        matches!(&dynamic.selection.namespaces, Namespaces::Labelled(labels) if labels.to_string() == "team=a")
    );
    assert!(dynamic.wait_for_synchronization, "in the main queue there is nothing else");
    assert_eq!(old.execute_on_events, BTreeSet::from([WatchEvent::Modified]));
    let settings = Settings {
        execution_min_interval: Duration::from_secs(30),
        execution_burst: 3,
        timeout: Some(Duration::from_mins(1)),
        ..Settings::default()
    };
    assert_eq!(spec.settings, settings);
}

#[test]
fn a_group_adds_the_snapshots_of_its_members() {
    let spec = valid(
        r"
configVersion: v1
kubernetes: [{name: a, kind: Pod, group: g}, {name: b, kind: Pod, group: g}, {name: c, kind: Pod}]
schedule:
- {crontab: '* * * * *', group: g, includeSnapshotsFrom: [c, b]}
- {crontab: '* * * * *', group: lonely}
- {crontab: '* * * * *', includeSnapshotsFrom: [a, a]}
kubernetesValidating: [{name: a.example.com, group: g}]
kubernetesMutating: [{name: anything, group: g}]
kubernetesCustomResourceConversion: [{name: x, crdName: crontabs, conversions: [{fromVersion: v1, toVersion: v2}], group: g}]
",
    );
    assert_eq!(spec.kubernetes[0].include_snapshots_from, ["a", "b"]);
    assert!(spec.kubernetes[2].include_snapshots_from.is_empty());
    let schedules: Vec<_> = spec.schedules.iter().map(|s| s.include_snapshots_from.clone()).collect();
    assert_eq!(schedules, [vec!["c", "b", "a"], vec![], vec!["a", "a"]]);
    assert_eq!(spec.validating[0].include_snapshots_from, ["a", "b"]);
    assert_eq!(spec.mutating[0].include_snapshots_from, ["a", "b"]);
    assert_eq!(spec.conversions[0].include_snapshots_from, ["a", "b"]);
}

#[test]
fn webhooks_are_read_with_their_defaults() {
    let spec = valid(
        r"
configVersion: v1
kubernetesValidating:
- name: a.b.c
- name: d.e.f
  rules: [{apiVersions: [v1], apiGroups: [''], resources: [pods, pods/log], operations: [CREATE, UPDATE], scope: Namespaced}]
  labelSelector: {matchLabels: {a: b}}
  namespace: {labelSelector: {matchLabels: {c: d}}}
  failurePolicy: Ignore
  sideEffects: NoneOnDryRun
  timeoutSeconds: 30
  matchConditions: [{name: x, expression: 'true', extra: fine}]
kubernetesCustomResourceConversion:
- {name: up, crdName: crontabs.stable.example.com, conversions: [{fromVersion: v1, toVersion: stable.example.com/v2}]}
",
    );
    let [plain, full] = &spec.validating[..] else { panic!("two webhooks") };
    assert_eq!(
        (plain.failure_policy, plain.side_effects, plain.timeout_seconds),
        (None, SideEffects::None, 10)
    );
    assert_eq!(full.failure_policy, Some(FailurePolicy::Ignore));
    assert_eq!((full.side_effects, full.timeout_seconds), (SideEffects::NoneOnDryRun, 30));
    assert_eq!(full.rules[0].operations, ["CREATE", "UPDATE"]);
    assert_eq!(full.rules[0].scope.as_deref(), Some("Namespaced"));
    assert_eq!(full.match_conditions, [("x".to_owned(), "true".to_owned())]);
    assert_eq!(spec.conversions[0].conversions, [("v1".to_owned(), "stable.example.com/v2".to_owned())]);
}
