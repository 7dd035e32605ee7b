//! Versions, lifecycle points and the old dialect.

use std::collections::BTreeSet;

use super::*;
use crate::hook::selection::Namespaces;
use crate::hook::spec::{Lifecycle, Order, WatchEvent};

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
        ("configVersion: ", "config version: missing 'configVersion' value (line 1, column 1)"),
        (
            "configVersion: 1",
            "config version: string value is expected for key 'configVersion' (line 1, column 1)",
        ),
        (
            "configVersion: 1.0.1-unknown",
            "config version: 'configVersion' value '1.0.1-unknown' is unsupported (line 1, column 1)",
        ),
        ("configVersion: ''", "config version: 'configVersion' value '' is unsupported (line 1, column 1)"),
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
fn in_version_0_null_is_as_good_as_nothing_inside_a_section() {
    let text = r#"{"onKubernetesEvent": [{"kind": "pod", "name": null, "selector": null, "jqFilter": null, "event": null,
        "namespaceSelector": {"any": null, "matchNames": null}}], "schedule": [{"name": null, "crontab": "* * * * *", "allowFailure": null}]}"#;
    let plain = r#"{"onKubernetesEvent": [{"kind": "pod"}], "schedule": [{"crontab": "* * * * *"}]}"#;
    assert_eq!(valid(text), valid(plain));
    assert!(errors(r#"{"onKubernetesEvent": null}"#)[0].contains("must be of type array"));
    assert!(
        errors("{configVersion: v1, schedule: [{crontab: '* * * * *', name: null}]}")[0]
            .contains("must be of type string")
    );
}
