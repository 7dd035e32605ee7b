//! Configurations as users write them, in YAML and as the same in JSON, with the errors that they get.

use super::*;

/// Configurations that are fine.
const GOOD: &[&str] = &[
    "onStartup: 1\n",
    "schedule:\n- {crontab: '0 */5 * * * *', allowFailure: true}\n- {name: each, crontab: '0 0 */1 * * *'}\nonKubernetesEvent:\n- {kind: pod}\n",
    "configVersion: v1\nonStartup: 212\n",
    "---\nconfigVersion: v1 # a comment\nonStartup: 112\n...\n",
    "configVersion: v1\nschedule:\n- crontab: '*/5 * * * *'\n- {crontab: '@every 1h', queue: side}\n",
    "configVersion: v1\nkubernetes:\n- {name: a, kind: Pod}\n- {name: b, kind: Node}\n- {name: c, kind: Pod, includeSnapshotsFrom: [a, b]}\n",
    "configVersion: v1\nkubernetes:\n- {kind: Pod, nameSelector: {matchNames: []}}\n",
    "configVersion: v1\nkubernetes:\n- {kind: Pod, labelSelector: {matchLabels: {a: ''}}}\n",
    "configVersion: v1\nkubernetes:\n- {name: a, kind: Pod, group: g}\n- {name: b, kind: Pod, group: g}\nschedule:\n- {crontab: '* * * * *', group: g}\n",
    "configVersion: v1\nkubernetes:\n- {kind: Pod, executeHookOnSynchronization: false}\n- {name: b, kind: Pod, executeHookOnSynchronization: true}\n",
    "configVersion: v1\nkubernetes:\n- {kind: Pod, watchEvent: [Added, Modified]}\n- {kind: Pod, executeHookOnEvent: []}\n",
    "configVersion: v1\nkubernetes:\n- {kind: Pod, apiVersion: apps/v1, fieldSelector: {matchExpressions: [{field: a.b, operator: '!=', value: x}]}}\n",
    "configVersion: v1\nkubernetes:\n- {kind: Pod, name: \"with blanks & <signs>\"}\nsettings: {executionMinInterval: 30s, executionBurst: 1, timeout: 1m}\n",
    "configVersion: v1\nkubernetesCustomResourceConversion:\n- {name: a, crdName: b, conversions: [{fromVersion: a, toVersion: b}, {fromVersion: b, toVersion: c}]}\n",
];

#[test]
fn the_same_in_json_means_the_same() {
    for text in GOOD {
        let yaml = valid(text);
        let tree = yaml::parse(text).unwrap();
        for json in [tree.to_string(), serde_json::to_string_pretty(&tree).unwrap()] {
            assert_eq!(valid(&json), yaml, "{json}");
        }
    }
}

/// Configurations that are wrong, the message and where it is: a line and a column of the text.
const BAD: &[(&str, &str, (usize, usize))] = &[
    ("onStartup: e1\n", "onStartup must be of type integer: \"string\"", (1, 1)),
    (
        "configVersion: v2\nonStartup: 1\n",
        "config version: 'configVersion' value 'v2' is unsupported",
        (1, 1),
    ),
    (
        "onStartup: 1\nconfigVersion: 1\n",
        "config version: string value is expected for key 'configVersion'",
        (2, 1),
    ),
    ("configVersion: v1\nkubernetes:\n- name: a\n", "kubernetes.kind is required", (3, 3)),
    (
        "configVersion: v1\nkubernetes:\n- kind: Pod\n  apiVersion: v1/12/wqe\n",
        "invalid kubernetes config [0]: apiVersion is invalid: 'v1/12/wqe' must be 'version' or 'group/version'",
        (4, 3),
    ),
    (
        "configVersion: v1\nkubernetes:\n- kind: Pod\n- kind: Pod\n  executeHookOnSynchronization: ok\n",
        "kubernetes.executeHookOnSynchronization must be of type boolean: \"string\"",
        (5, 3),
    ),
    (
        "configVersion: v1\nkubernetes:\n- kind: Pod\n  nameSelector:\n    matchNames: [a, 20]\n",
        "kubernetes.nameSelector.matchNames must be of type string: \"number\"",
        (5, 21),
    ),
    (
        "configVersion: v1\nkubernetes:\n- kind: Pod\n  watchEvent: Added\n",
        "kubernetes.watchEvent must be of type array: \"string\"",
        (4, 3),
    ),
    (
        "configVersion: v1\nschedule:\n- crontab: '* * * * *'\n- crontab: '*/0 * * * *'\n",
        "invalid schedule config [1]: crontab is invalid: Step of range should be a positive number: */0",
        (4, 3),
    ),
    (
        "configVersion: v1\nschedule:\n- crontab: '* * * * *'\n  includeSnapshotsFrom: pods\n",
        "schedule.includeSnapshotsFrom must be of type array: \"string\"",
        (4, 3),
    ),
    (
        "configVersion: v1\nsettings:\n  executionMinInterval: 30ks\n  executionBurst: 1\n",
        "executionMinInterval is invalid: unknown unit \"ks\"",
        (3, 3),
    ),
    (
        "configVersion: v1\nkubernetesValidating:\n- name: a.b.c\n  timeoutSeconds: 32\n",
        "invalid kubernetesValidating config [0]: timeoutSeconds is invalid: 32 must be between 1 and 30",
        (4, 3),
    ),
    (
        "configVersion: v1\nkubernetesCustomResourceConversion:\n- name: a\n  crdName: b\n  conversions:\n  - fromVersion: a\n    to: b\n",
        "kubernetesCustomResourceConversion.conversions.toVersion is required",
        (6, 5),
    ),
    (
        "configVersion: v1\nkubernetes:\n- kind: Pod\n  labelSelector:\n    matchLabel: {a: b}\n",
        "kubernetes.labelSelector.matchLabel is a forbidden property, did you mean 'matchLabels'?",
        (5, 5),
    ),
    (
        "schedule:\n- crontab: '* * * * *'\nonKubernetesEvent:\n- kind: pod\n  event: [add, create]\n",
        "event 'create' is unsupported",
        (5, 3),
    ),
    (
        "schedule:\n- crontab: x\n",
        "invalid schedule config [0]: crontab is invalid: Expected 5 or 6 fields, found 1: x",
        (2, 3),
    ),
    ("onStartup: 1\nbeforeHelm: two\n", "beforeHelm must be of type integer: \"string\"", (2, 1)),
];

/// Returns where a message says that the mistake is.
fn place(message: &str) -> (usize, usize) {
    let (_, place) = message.rsplit_once("(line ").unwrap_or_else(|| panic!("no place: {message}"));
    let (line, column) = place.trim_end().trim_end_matches(')').split_once(", column ").unwrap();
    (line.parse().unwrap(), column.parse().unwrap())
}

#[test]
fn mistakes_are_told_with_their_line_and_column() {
    for (text, expected, at) in BAD {
        let found = errors(text);
        let message = found
            .iter()
            .find(|message| message.starts_with(expected))
            .unwrap_or_else(|| panic!("{text}{found:?}"));
        assert_eq!(place(message), *at, "{text}{message}");
    }
}

#[test]
fn mistakes_in_json_are_told_with_theirs() {
    for (text, expected, (line, column)) in BAD {
        let tree = yaml::parse(text).unwrap();
        let json = serde_json::to_string_pretty(&tree).unwrap();
        let found = errors(&json);
        let message = found
            .iter()
            .find(|message| message.starts_with(expected))
            .unwrap_or_else(|| panic!("{json}{found:?}"));
        // The place shows the same property.
        let word = |text: &str, line: usize, column: usize| {
            let rest: String = text.lines().nth(line - 1).unwrap().chars().skip(column - 1).collect();
            let rest = rest.trim_start_matches(['{', '[', '"', '\'', ' ', '-']).to_owned();
            rest.chars().take_while(|char| char.is_alphanumeric()).collect::<String>()
        };
        let (json_line, json_column) = place(message);
        let (before, after) = (word(text, *line, *column), word(&json, json_line, json_column));
        assert!(after.is_empty() || before == after, "{json}\n{message}: {before:?} and {after:?}");
    }
}

#[test]
fn text_that_can_not_be_read_is_told_with_its_place() {
    for (text, expected) in [
        ("configVersion: v1\nschedule:\n\t- crontab: x\n", "line 3"),
        ("configVersion: v1\nkubernetes: [\n", "line 3"),
        ("{\"configVersion\": \"v1\",\n \"onStartup\": 1,\n \"onStartup\": 2}", "line 3"),
        ("configVersion: v1\nonStartup: 1\n onStartup: 2\n", "line 3"),
        ("configVersion: v1\nonStartup: \"a\n", "line 3"),
        ("a: &x [*x]\n", "line 1"),
    ] {
        let found = errors(text);
        assert!(found.len() == 1 && found[0].starts_with("config unmarshal: "), "{text}{found:?}");
        assert!(found[0].contains(expected), "{text}{found:?}");
    }
}

#[test]
fn deep_nesting_is_refused_and_does_no_harm() {
    for text in ["[".repeat(100_000), format!("a: {}", "{a: ".repeat(100_000)), "- ".repeat(50_000)] {
        assert!(module(&text).is_err());
    }
}
