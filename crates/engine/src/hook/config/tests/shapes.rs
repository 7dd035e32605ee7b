//! What has the wrong shape.

use super::*;

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
