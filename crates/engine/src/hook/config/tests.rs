//! Tests of configurations of hooks.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::hook::selection::{LabelOperator, Namespaces};
use crate::hook::spec::{FailurePolicy, MAIN_QUEUE, Settings, SideEffects, WatchEvent};

fn module(text: &str) -> Result<HookSpec, ConfigError> {
    parse("hooks/test.sh".into(), HookKind::Module, text)
}

fn valid(text: &str) -> HookSpec {
    module(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Returns the bullets of the list of errors, or the whole message.
fn errors(text: &str) -> Vec<String> {
    let message = module(text).map(|spec| format!("{spec:?}")).unwrap_err().to_string();
    let bullets: Vec<String> =
        message.lines().filter_map(|l| l.strip_prefix("\t* ")).map(Into::into).collect();
    if bullets.is_empty() { vec![message] } else { bullets }
}

#[test]
fn a_lifecycle_point_has_an_order_in_both_dialects() {
    for text in
        ["{onStartup: 1}", "configVersion: v1\nonStartup: 1", "{\"configVersion\":\"v1\",\"onStartup\":1.0}"]
    {
        assert_eq!(valid(text).order(Lifecycle::OnStartup), Some(Order(1)), "{text}");
    }
    let spec = valid(
        "configVersion: v1\nonStartup: 0\nbeforeHelm: 5\nafterHelm: 10\nbeforeDeleteHelm: 1\nafterDeleteHelm: 2",
    );
    assert_eq!(spec.lifecycle.values().map(|order| order.0).collect::<Vec<_>>(), [0, 5, 10, 1, 2]);
    assert_eq!(valid("configVersion: v1\nonStartup: -3").order(Lifecycle::OnStartup), Some(Order(-3)));
    let global =
        parse("g".into(), HookKind::Global, "{configVersion: v1, beforeAll: 1, afterAll: 2}").unwrap();
    assert_eq!(global.order(Lifecycle::AfterAll), Some(Order(2)));
}

#[test]
fn a_lifecycle_point_of_the_other_kind_of_hook_is_refused() {
    assert_eq!(
        errors("configVersion: v1\nbeforeAll: 1"),
        ["beforeAll is a forbidden property (line 2, column 1)"]
    );
    let error = parse("g".into(), HookKind::Global, "{beforeHelm: 1}").unwrap_err().to_string();
    assert!(error.contains("beforeHelm is a forbidden property"), "{error}");
}

#[test]
fn orders_are_whole_numbers_and_not_negative() {
    for (text, expected) in [
        (
            "configVersion: v1\nonStartup: e1",
            "onStartup must be of type integer: \"string\" (line 2, column 1)",
        ),
        (
            "configVersion: v1\nonStartup: \"10\"",
            "onStartup must be of type integer: \"string\" (line 2, column 1)",
        ),
        (
            "configVersion: v1\nonStartup: 1.5",
            "onStartup must be of type integer: \"number\" (line 2, column 1)",
        ),
        (
            "configVersion: v1\nbeforeHelm: -1",
            "invalid beforeHelm config: order must not be negative: -1 (line 2, column 1)",
        ),
        ("{afterHelm: -1}", "invalid afterHelm config: order must not be negative: -1 (line 1, column 2)"),
    ] {
        assert_eq!(errors(text), [expected]);
    }
}

#[test]
fn the_version_decides_the_dialect() {
    assert_eq!(valid("onStartup: 1").config_version, ConfigVersion::V0);
    assert_eq!(valid("configVersion: v1").config_version, ConfigVersion::V1);
    for (text, expected) in [
        ("configVersion: ", "config version: missing 'configVersion' value"),
        ("configVersion: 1", "config version: string value is expected for key 'configVersion'"),
        (
            "configVersion: 1.0.1-unknown",
            "config version: 'configVersion' value '1.0.1-unknown' is unsupported",
        ),
        ("configVersion: ''", "config version: 'configVersion' value '' is unsupported"),
        ("configVersion: v0", "configVersion is a forbidden property (line 1, column 1)"),
    ] {
        assert_eq!(errors(text), [expected]);
    }
}

#[test]
fn a_misspelt_version_is_told_with_what_v0_does_not_know() {
    let text = "cOnfigVersion: v1\nkubernetes: [{kind: Pod}]\nschedule:\n- crontab: '* * * * *'\n";
    assert_eq!(
        errors(text),
        [
            "cOnfigVersion is a forbidden property, did you mean 'configVersion'? (line 1, column 1)",
            "kubernetes is a forbidden property (line 2, column 1)"
        ]
    );
}

#[test]
fn a_misspelt_property_is_told_with_the_one_that_was_meant() {
    for (text, expected) in [
        ("schedules: []", "schedules is a forbidden property, did you mean 'schedule'?"),
        (
            "kubernetes: [{kind: A, jqfilter: .a}]",
            "kubernetes.jqfilter is a forbidden property, did you mean 'jqFilter'?",
        ),
        ("kubernetes: [{kind: A, grp: a}]", "kubernetes.grp is a forbidden property, did you mean 'group'?"),
        ("afterHlm: 1", "afterHlm is a forbidden property, did you mean 'afterHelm'?"),
        ("x: 1", "x is a forbidden property ("),
        ("something: 1", "something is a forbidden property ("),
    ] {
        let found = errors(&format!("configVersion: v1\n{text}"));
        assert!(found.iter().any(|error| error.starts_with(expected)), "{text}: {found:?}");
    }
}

#[test]
fn text_that_is_no_mapping_is_refused() {
    assert!(errors("")[0].contains("should have at least 1 properties"));
    assert!(errors("{}")[0].contains("should have at least 1 properties"));
    assert_eq!(errors("hello"), ["config unmarshal: the configuration must be a mapping, found \"string\""]);
    assert_eq!(errors("[1]"), ["config unmarshal: the configuration must be a mapping, found \"array\""]);
    assert!(errors("configVersion: v1\nschedule:\n\t- crontab: x")[0].starts_with("config unmarshal: "));
    let long = format!("# {}", "x".repeat(MAX_BYTES));
    assert!(errors(&long)[0].contains("more than 4194304"));
}

#[test]
fn a_key_that_occurs_twice_is_refused_with_both_lines() {
    let text = "configVersion: v1\nonStartup: 1\nbeforeHelm: 1\nonStartup: 2\n";
    let message = &errors(text)[0];
    assert!(
        message.contains("line 4") && message.contains("line 2") && message.contains("onStartup"),
        "{message}"
    );
}

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
fn all_violations_of_the_shape_are_told_together_with_their_places() {
    let text = r#"configVersion: v1
type: wrong
kubernetes:
- name: x
  watchEvent: "Added"
  kinds: [Pod]
  nameSelector: {matchNames: [20]}
  labelSelector:
    matchExpressions: [{key: a, operator: Is}]
  executeHookOnEvent: [Created]
  allowFailure: "yes"
schedule: []
"#;
    let message = module(text).unwrap_err().to_string();
    insta::assert_snapshot!(message, @r#"
    9 errors occurred:
    	* schedule should have at least 1 items (line 12, column 1)
    	* kubernetes.kind is required (line 4, column 3)
    	* kubernetes.nameSelector.matchNames must be of type string: "number" (line 7, column 31)
    	* kubernetes.labelSelector.matchExpressions.operator should be one of [In NotIn Exists DoesNotExist] (line 9, column 33)
    	* kubernetes.watchEvent must be of type array: "string" (line 5, column 3)
    	* kubernetes.executeHookOnEvent should be one of [Added Modified Deleted] (line 10, column 24)
    	* kubernetes.allowFailure must be of type boolean: "string" (line 11, column 3)
    	* kubernetes.kinds is a forbidden property, did you mean 'kind'? (line 6, column 3)
    	* type is a forbidden property (line 2, column 1)
    "#);
}

#[test]
fn shapes_that_are_not_allowed_are_named() {
    let v1 = |rest: &str| format!("configVersion: v1\n{rest}");
    for (text, expected) in [
        ("schedule: {}", "schedule must be of type array: \"object\""),
        ("schedule: [x]", "schedule must be of type object: \"string\""),
        ("schedule: [{}]", "schedule.crontab is required"),
        (
            "schedule: [{crontab: '* * * * *', includeSnapshotsFrom: x}]",
            "schedule.includeSnapshotsFrom must be of type array: \"string\"",
        ),
        (
            "schedule: [{crontab: '* * * * *', includeSnapshotsFrom: []}]",
            "schedule.includeSnapshotsFrom should have at least 1 items",
        ),
        ("kubernetes: []", "kubernetes should have at least 1 items"),
        (
            "kubernetes: [{kind: Pod, namespace: {}}]",
            "kubernetes.namespace should have at least 1 properties",
        ),
        (
            "kubernetes: [{kind: Pod, namespace: {nameSelector: [default]}}]",
            "kubernetes.namespace.nameSelector must be of type object: \"array\"",
        ),
        (
            "kubernetes: [{kind: Pod, labelSelector: {}}]",
            "kubernetes.labelSelector should have at least 1 properties",
        ),
        ("kubernetes: [{kind: Pod, nameSelector: {}}]", "kubernetes.nameSelector.matchNames is required"),
        (
            "kubernetes: [{kind: Pod, executeHookOnSynchronization: ok}]",
            "kubernetes.executeHookOnSynchronization must be of type boolean: \"string\"",
        ),
        ("kubernetes: [{kind: Pod, mode: Incremental}]", "kubernetes.mode is a forbidden property"),
        ("kubernetes: [{kind: Pod, queue: null}]", "kubernetes.queue must be of type string: \"null\""),
        ("settings: 5", "settings must be of type object: \"number\""),
        ("settings: {executionMinPeriod: 5s}", "settings.executionMinPeriod is a forbidden property"),
        (
            "settings: {executionMinInterval: 5s, executionBurst: '1'}",
            "settings.executionBurst must be of type integer: \"string\"",
        ),
        ("kubernetesValidating: [{}]", "kubernetesValidating.name is required"),
        (
            "kubernetesCustomResourceConversion: [{name: x, conversions: [{to: x}]}]",
            "kubernetesCustomResourceConversion.crdName is required",
        ),
        (
            "kubernetesCustomResourceConversion: [{name: x, crdName: crontabs, conversions: []}]",
            "kubernetesCustomResourceConversion.conversions should have at least 1 items",
        ),
    ] {
        let found = errors(&v1(text));
        assert!(found.iter().any(|e| e.starts_with(expected)), "{text}: {found:?}");
    }
}

/// What follows the version, and how its error begins.
const WRONG_MEANINGS: &[(&str, &str)] = &[
    (
        "settings: {executionMinInterval: 30ks, executionBurst: 1}",
        "executionMinInterval is invalid: unknown unit \"ks\"",
    ),
    ("settings: {executionBurst: 1}", "executionMinInterval is invalid: it is missing"),
    ("settings: {}", "executionMinInterval is invalid: it is missing"),
    (
        "settings: {executionMinInterval: 1s, executionBurst: 3000000000}",
        "executionBurst is invalid: 3000000000",
    ),
    ("settings: {timeout: 0s}", "timeout is invalid: \"0s\" is not positive"),
    ("settings: {timeout: soon}", "timeout is invalid: invalid duration"),
    ("kubernetes: [{kind: ''}]", "invalid kubernetes config [0]: kind is invalid"),
    (
        "kubernetes: [{kind: Pod, apiVersion: v1/12/wqe}]",
        "invalid kubernetes config [0]: apiVersion is invalid",
    ),
    (
        "kubernetes: [{kind: Pod}, {kind: Pod, labelSelector: {matchLabels: {'a b': c}}}]",
        "invalid kubernetes config [1]: labelSelector is invalid: 'a b' is not a label key",
    ),
    (
        "kubernetes: [{kind: Pod, labelSelector: {matchLabels: {a: 'b c'}}}]",
        "invalid kubernetes config [0]: labelSelector is invalid: 'b c' is not a label value",
    ),
    (
        "kubernetes: [{kind: Pod, labelSelector: {matchExpressions: [{key: a, operator: In}]}}]",
        "invalid kubernetes config [0]: labelSelector is invalid: for 'In', 'NotIn' operators",
    ),
    (
        "kubernetes: [{kind: Pod, labelSelector: {matchExpressions: [{key: a, operator: Exists, values: [x]}]}}]",
        "invalid kubernetes config [0]: labelSelector is invalid: values set must be empty",
    ),
    (
        "kubernetes: [{kind: Pod, namespace: {labelSelector: {matchLabels: {-a: x}}}}]",
        "invalid kubernetes config [0]: namespace.labelSelector is invalid",
    ),
    (
        "kubernetes: [{kind: Pod, nameSelector: {matchNames: [a]}, fieldSelector: {matchExpressions: [{field: metadata.name, operator: '=', value: b}]}}]",
        "invalid kubernetes config [0]: fieldSelector 'metadata.name' and nameSelector.matchNames are mutually exclusive",
    ),
    (
        "kubernetes: [{kind: Pod, includeSnapshotsFrom: [x]}]",
        "invalid kubernetes config [0]: includeSnapshots 'x' binding name not found",
    ),
    (
        "kubernetes: [{kind: Pod}, {kind: Pod, includeSnapshotsFrom: [kubernetes]}]",
        "invalid kubernetes config [1]: includeSnapshots there are 2 'kubernetes' binding names",
    ),
    (
        "schedule: [{crontab: '* * * 22 *'}]",
        "invalid schedule config [0]: crontab is invalid: End of range (22) above maximum (12): 22",
    ),
    ("schedule: [{crontab: ''}]", "invalid schedule config [0]: crontab is invalid: Empty spec string"),
    (
        "schedule: [{crontab: '* * * * *', includeSnapshotsFrom: [x]}]",
        "invalid schedule config [0]: includeSnapshotsFrom is invalid: 'x' binding name not found",
    ),
    ("kubernetesValidating: [{name: nodots}]", "invalid kubernetesValidating config [0]: name is invalid"),
    (
        "kubernetesValidating: [{name: a.b.c}, {name: a.b.c}]",
        "invalid kubernetesValidating config [1]: name is invalid: 'a.b.c' is used twice",
    ),
    (
        "kubernetesValidating: [{name: a.b.c, timeoutSeconds: 32}]",
        "invalid kubernetesValidating config [0]: timeoutSeconds is invalid: 32",
    ),
    (
        "kubernetesValidating: [{name: a.b.c, rules: [{apiVersions: ['*', v1], apiGroups: [''], resources: [pods], operations: ['*']}]}]",
        "invalid kubernetesValidating config [0]: rules is invalid: if '*' is present in apiVersions",
    ),
    (
        "kubernetesValidating: [{name: a.b.c, rules: [{apiVersions: [v1], apiGroups: [''], resources: ['*/*', pods], operations: ['*']}]}]",
        "invalid kubernetesValidating config [0]: rules is invalid: if '*/*' is present",
    ),
    (
        "kubernetesValidating: [{name: a.b.c, rules: [{apiVersions: [v1], apiGroups: [''], resources: ['pods/*', pods/log], operations: ['*']}]}]",
        "invalid kubernetesValidating config [0]: rules is invalid: 'pods/log' is part of 'pods/*'",
    ),
    (
        "kubernetesMutating: [{name: x, includeSnapshotsFrom: [q]}]",
        "invalid kubernetesMutating config [0]: includeSnapshotsFrom is invalid: 'q'",
    ),
    (
        "kubernetesMutating: [{name: x, namespace: {labelSelector: {matchLabels: {a: -}}}}]",
        "invalid kubernetesMutating config [0]: namespace.labelSelector is invalid",
    ),
    (
        "kubernetesCustomResourceConversion: [{name: x, crdName: crontabs, conversions: [{fromVersion: a, toVersion: b}], includeSnapshotsFrom: [z]}]",
        "invalid kubernetesCustomResourceConversion config [0]: includeSnapshotsFrom is invalid: 'z'",
    ),
];

#[test]
fn the_meaning_is_checked_section_by_section() {
    for (rest, expected) in WRONG_MEANINGS {
        let found = errors(&format!("configVersion: v1\n{rest}"));
        assert!(found[0].starts_with(expected) && found[0].contains("(line 2,"), "{rest}: {found:?}");
    }
}

#[test]
fn the_first_wrong_section_ends_the_check_but_tells_all_of_itself() {
    let text = "configVersion: v1\nkubernetes: [{kind: A, apiVersion: a/b/c}, {kind: B, apiVersion: a/b/c}]\nschedule: [{crontab: x}]";
    assert_eq!(errors(text).len(), 2);
}

#[test]
fn settings_have_defaults_and_bounds() {
    let settings = |text: &str| valid(&format!("configVersion: v1\nsettings: {text}")).settings;
    let interval = |interval, burst| Settings {
        execution_min_interval: Duration::from_secs(interval),
        execution_burst: burst,
        timeout: None,
    };
    assert_eq!(valid("configVersion: v1").settings, interval(0, 1));
    assert_eq!(settings("{executionMinInterval: 20s}"), interval(20, 1));
    assert_eq!(settings("{executionMinInterval: 20s, executionBurst: 0}"), interval(20, 1));
    assert_eq!(settings("{executionMinInterval: 20s, executionBurst: -2}"), interval(20, 1));
    assert_eq!(settings("{executionMinInterval: -1s, executionBurst: 3}"), interval(0, 3));
    assert_eq!(settings("{timeout: 5m}").timeout, Some(Duration::from_mins(5)));
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

#[test]
fn the_old_dialect_is_read_with_its_defaults() {
    let spec = valid(
        r#"{"schedule": [{"crontab": "0 */5 * * * *", "unknown": 1}, {"name": "x", "crontab": "* * * * *", "allowFailure": true}],
            "onKubernetesEvent": [
              {"kind": "pod", "disableDebug": true},
              {"name": "y", "kind": "configmap", "event": ["add", "delete"], "objectName": "cm",
               "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]},
               "namespaceSelector": {"matchNames": ["ns"]}, "jqFilter": ".data", "allowFailure": true},
              {"kind": "pod", "namespaceSelector": {"matchNames": ["ns"], "any": true}, "event": []}]}"#,
    );
    assert_eq!(spec.schedules[0].name, "schedule");
    assert!(spec.schedules[1].allow_failure);
    let [plain, full, never] = &spec.kubernetes[..] else { panic!("three bindings") };
    assert_eq!(plain.name, "onKubernetesEvent");
    assert_eq!(plain.execute_on_events, WatchEvent::ALL.into());
    assert!(!plain.execute_on_synchronization && plain.keep_full_objects);
    assert_eq!(full.execute_on_events, BTreeSet::from([WatchEvent::Added, WatchEvent::Deleted]));
    assert_eq!(full.selection.labels.to_string(), "a=b,c");
    assert_eq!(full.selection.namespaces, Namespaces::Named(["ns".to_owned()].into()));
    assert!(full.selection.names.contains("cm"));
    assert_eq!((full.jq_filter.as_deref(), full.allow_failure), (Some(".data"), true));
    assert_eq!(never.selection.namespaces, Namespaces::All);
    assert!(never.execute_on_events.is_empty());
}

#[test]
fn what_is_wrong_in_the_old_dialect_is_named() {
    for (text, expected) in [
        ("onKubernetesEvent: [{kind: pod, event: [create]}]", "event 'create' is unsupported (line 1,"),
        (
            "onKubernetesEvent: [{event: [add]}]",
            "invalid onKubernetesEvent config [0]: kind is invalid: it is empty (line 1,",
        ),
        (
            "onKubernetesEvent: [{kind: pod, selector: {matchExpressions: [{key: a, operator: Is}]}}]",
            "selector is invalid: \"Is\"",
        ),
        (
            "schedule: [{crontab: x}]",
            "invalid schedule config [0]: crontab is invalid: Expected 5 or 6 fields, found 1: x (line 1,",
        ),
        ("schedule: {}", "schedule must be of type array: \"object\""),
    ] {
        let found = errors(text);
        assert!(found[0].starts_with(expected), "{text}: {found:?}");
    }
}

#[test]
fn a_program_that_does_not_compile_is_told_with_its_place() {
    let text = "configVersion: v1\nkubernetes:\n- kind: Pod\n- kind: Pod\n  jqFilter: '.a |'\n";
    assert_eq!(
        bad_jq_filter(text, 1, "unexpected end").to_string(),
        "1 error occurred:\n\t* invalid kubernetes config [1] jqFilter: compile jqFilter: unexpected end (line 5, column 3)\n\n"
    );
    let text = "onKubernetesEvent:\n- kind: Pod\n  jqFilter: '.a |'\n";
    assert!(bad_jq_filter(text, 0, "x").to_string().contains("(line 3, column 3)"));
}

proptest::proptest! {
    #[test]
    fn any_text_gets_an_answer(text in "(configVersion: v1\n)?[ -~\n]{0,200}") {
        drop(parse("h".into(), HookKind::Module, &text));
    }

    #[test]
    fn any_tree_of_known_words_gets_an_answer(tree in tree()) {
        let text = tree.to_string();
        drop(parse("h".into(), HookKind::Module, &text));
        drop(parse("h".into(), HookKind::Global, &text));
    }
}

/// Returns mappings whose keys and texts are those of configurations, put together at random.
fn tree() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let words = || {
        prop::sample::select(vec![
            "configVersion",
            "v1",
            "v0",
            "kubernetes",
            "schedule",
            "settings",
            "kind",
            "crontab",
            "* * * * *",
            "@every 1s",
            "name",
            "group",
            "includeSnapshotsFrom",
            "namespace",
            "nameSelector",
            "labelSelector",
            "matchLabels",
            "matchNames",
            "matchExpressions",
            "key",
            "operator",
            "values",
            "In",
            "fieldSelector",
            "field",
            "value",
            "executeHookOnEvent",
            "Added",
            "onKubernetesEvent",
            "event",
            "add",
            "selector",
            "kubernetesValidating",
            "rules",
            "timeout",
            "executionMinInterval",
            "executionBurst",
            "30s",
            "onStartup",
            "beforeHelm",
            "",
        ])
    };
    let leaf = prop_oneof![
        words().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let inner = leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(words().prop_map(String::from), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    (inner, any::<bool>()).prop_map(|(mut tree, versioned)| {
        if let (Value::Object(map), true) = (&mut tree, versioned) {
            map.insert("configVersion".into(), "v1".into());
        }
        tree
    })
}
