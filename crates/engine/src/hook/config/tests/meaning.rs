//! What has the right shape and makes no sense.

use std::time::Duration;

use super::*;
use crate::hook::spec::Settings;

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
    (
        "kubernetesValidating: [{name: a.B.c}]",
        "invalid kubernetesValidating config [0]: name is invalid: 'a.B.c' should",
    ),
    (
        "kubernetesMutating: [{name: '--'}]",
        "invalid kubernetesMutating config [0]: name is invalid: '--' has no letter",
    ),
    (
        "kubernetesMutating: [{name: addLabels}, {name: add-labels}]",
        "invalid kubernetesMutating config [1]: name is invalid: 'add-labels' is used twice",
    ),
    (
        "kubernetesMutating: [{name: a, timeoutSeconds: 0}]",
        "invalid kubernetesMutating config [0]: timeoutSeconds is invalid: 0",
    ),
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
        "kubernetesValidating: [{name: a, matchConditions: [{name: x, expression: 'object.metadata.name.foo('}]}]",
        "invalid kubernetesValidating config [0]: matchConditions is invalid: 'x': compilation failed: ERROR: <input>:1:2",
    ),
    (
        "kubernetesMutating: [{name: a, matchConditions: [{name: x, expression: '1'}]}]",
        "invalid kubernetesMutating config [0]: matchConditions is invalid: 'x': must evaluate to bool but got int",
    ),
    (
        "kubernetesValidating: [{name: a, matchConditions: [{name: x, expression: 'params.x == 1'}]}]",
        "invalid kubernetesValidating config [0]: matchConditions is invalid: 'x': compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'",
    ),
    (
        "kubernetesValidating: [{name: a, matchConditions: [{name: x, expression: ' '}]}]",
        "invalid kubernetesValidating config [0]: matchConditions is invalid: 'x' has no expression",
    ),
    (
        "kubernetesValidating: [{name: a, matchConditions: [{name: 'a b', expression: 'true'}]}]",
        "invalid kubernetesValidating config [0]: matchConditions is invalid: name 'a b': name part must consist of",
    ),
    (
        "kubernetesValidating: [{name: a, matchConditions: [{name: x, expression: 'true'}, {name: x, expression: 'false'}]}]",
        "invalid kubernetesValidating config [0]: matchConditions is invalid: name 'x' is used twice",
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
        ..Settings::default()
    };
    assert_eq!(valid("configVersion: v1").settings, interval(0, 1));
    assert_eq!(settings("{executionMinInterval: 20s}"), interval(20, 1));
    assert_eq!(settings("{executionMinInterval: 20s, executionBurst: 0}"), interval(20, 1));
    assert_eq!(settings("{executionMinInterval: 20s, executionBurst: -2}"), interval(20, 1));
    assert_eq!(settings("{executionMinInterval: -1s, executionBurst: 3}"), interval(0, 3));
    assert_eq!(settings("{timeout: 5m}").timeout, Some(Duration::from_mins(5)));
}

/// Takes programs that end with a bar for broken ones.
fn compile(text: &str) -> Result<(), String> {
    if text.ends_with('|') { Err("unexpected end".to_owned()) } else { Ok(()) }
}

fn problem(text: &str) -> String {
    parse_with("hooks/test.sh".into(), HookKind::Module, text, &compile).unwrap_err().to_string()
}

#[test]
fn a_program_that_does_not_compile_is_told_with_its_place() {
    let text = "configVersion: v1\nkubernetes:\n- kind: Pod\n- kind: Pod\n  jqFilter: '.a |'\n";
    assert_eq!(
        problem(text),
        "1 error occurred:\n\t* invalid kubernetes config [1] jqFilter: compile jqFilter: unexpected end (line 5, column 3)\n\n"
    );
    let text = "onKubernetesEvent:\n- kind: Pod\n  jqFilter: '.a |'\n";
    let found = problem(text);
    assert!(
        found.contains("invalid onKubernetesEvent config [0] jqFilter")
            && found.contains("(line 3, column 3)"),
        "{found}"
    );
}

#[test]
fn programs_that_do_not_compile_are_told_with_the_other_mistakes_of_their_section_and_before_those_of_later_ones()
 {
    let found = problem(
        "{configVersion: v1, kubernetes: [{kind: A, jqFilter: '.a |'}, {kind: B, jqFilter: '.b |'}]}",
    );
    assert!(found.contains("[0] jqFilter") && found.contains("[1] jqFilter"), "{found}");
    let found = problem(
        "{configVersion: v1, kubernetes: [{kind: A, apiVersion: a/b/c}, {kind: B, jqFilter: '.b |'}]}",
    );
    assert!(found.contains("apiVersion is invalid") && found.contains("[1] jqFilter"), "{found}");
    let later = [
        "kubernetes: [{kind: A, jqFilter: '.a |', includeSnapshotsFrom: [x]}]",
        "schedule: [{crontab: x}], kubernetes: [{kind: A, jqFilter: '.a |'}]",
    ];
    for text in later {
        let found = problem(&format!("{{configVersion: v1, {text}}}"));
        assert!(found.starts_with("1 error") && found.contains("[0] jqFilter"), "{text}: {found}");
    }
}

#[test]
fn programs_of_a_reconcile_binding_that_do_not_compile_are_told_with_their_place() {
    let site = "configVersion: v1\nreconcile:\n- apiVersion: example.com/v1\n  kind: Site\n";
    let child = problem(&format!("{site}  children:\n  - {{apiVersion: v1, kind: Pod, jqFilter: '.a |'}}\n"));
    assert!(
        child.contains("invalid reconcile config [0]: jqFilter is invalid: unexpected end (line 6,"),
        "{child}"
    );
    let related = problem(&format!(
        "{site}  related:\n  - {{apiVersion: v1, kind: Pod, ownerOf: true, jqFilter: '.a |'}}\n"
    ));
    assert!(
        related.contains("invalid reconcile config [0]: jqFilter is invalid: unexpected end (line 6,"),
        "{related}"
    );
}
