//! Reads what a file with several hooks prints for `hook config`. See docs/hooks.md#several-hooks-in-one-file.
//!
//! Each of them is turned into a configuration of version 1, so that it means what that means.

use serde_json::{Map, Value, json};
use values::{json_type, yaml};

use super::error::{Compile, ConfigError, MAX_BYTES};
use super::v1;
use crate::hook::spec::{HookKind, HookSpec};

/// How many hooks a file may have.
const MOST_HOOKS: usize = 9_999;

/// How long the name of a hook may be.
const LONGEST_NAME: usize = 253;

/// The group of all bindings of objects and schedules: their contexts have all snapshots. As in the reference operator, points of
/// a lifecycle are of no group.
const GROUP: &str = "main";

/// What is taken over from a `kubernetes` binding as it is.
const KUBERNETES: [&str; 13] = [
    "name",
    "apiVersion",
    "kind",
    "nameSelector",
    "namespace",
    "labelSelector",
    "fieldSelector",
    "executeHookOnSynchronization",
    "waitForSynchronization",
    "jqFilter",
    "resynchronizationPeriod",
    "includeSnapshotsFrom",
    "queue",
];

/// Keys of the configuration of one hook, at least one of which is there.
const KEYS_OF_ONE: [&str; 15] = [
    "configVersion",
    "onStartup",
    "schedule",
    "kubernetes",
    "onKubernetesEvent",
    "beforeAll",
    "afterAll",
    "beforeHelm",
    "afterHelm",
    "beforeDeleteHelm",
    "afterDeleteHelm",
    "kubernetesValidating",
    "kubernetesMutating",
    "kubernetesCustomResourceConversion",
    "settings",
];

/// Returns whether a text is what a file with several hooks prints for `hook config`, right or wrong in its parts.
pub fn is_batch(text: &str) -> bool {
    if text.len() > MAX_BYTES {
        return false;
    }
    match serde_json::from_str(text) {
        Ok(Value::Array(hooks)) => !hooks.is_empty() && hooks.iter().all(Value::is_object),
        Ok(Value::Object(map)) => map.get("hooks").is_some_and(Value::is_array),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | Err(_) => false,
    }
}

/// Returns whether a text is the configuration of one hook, right or wrong in its parts: it has a key of one.
pub fn is_of_one_hook(text: &str) -> bool {
    let is_known = |key: &String| KEYS_OF_ONE.contains(&key.as_str());
    matches!(yaml::parse_strict(text), Ok(Value::Object(map)) if map.keys().any(is_known))
}

/// Returns what the hooks of `file` asked for, in the order of the configuration, which is that of their indexes.
///
/// `compile` returns why a jq program does not compile.
///
/// # Errors
///
/// What is wrong with the first hook that is wrong, or with the whole.
pub fn parse_batch(
    file: &str,
    kind: HookKind,
    text: &str,
    compile: Compile<'_>,
) -> Result<Vec<HookSpec>, ConfigError> {
    if text.len() > MAX_BYTES {
        return Err(ConfigError::TooLong(text.len()));
    }
    let value = serde_json::from_str(text).map_err(|error| ConfigError::Batch(error.to_string()))?;
    let hooks = hooks(value)?;
    if hooks.len() > MOST_HOOKS {
        let problem = format!("it has {} hooks, more than {MOST_HOOKS}; use several files", hooks.len());
        return Err(ConfigError::Batch(problem));
    }
    let parse = |(index, hook): (usize, Value)| {
        let of_hook = |error| ConfigError::OfBatch { index, error: Box::new(error) };
        let (name, config) =
            translated(hook, kind).map_err(|problem| of_hook(ConfigError::Batch(problem)))?;
        let name = match kind {
            HookKind::Global => format!("{file}-{name}-{index}"),
            HookKind::Module => format!("{file}:{name}:{index}"),
        };
        // The text that was printed is another one: places in it would mislead.
        v1::parse(name.as_str().into(), kind, &config, "", compile).map_err(of_hook)
    };
    hooks.into_iter().enumerate().map(parse).collect()
}

/// Returns the hooks of the whole: a list of them, or a mapping with one.
fn hooks(value: Value) -> Result<Vec<Value>, ConfigError> {
    let expected = |found: &str| {
        let problem =
            format!("hooks must be a list, found \"{found}\"; print {{\"version\":\"v1\",\"hooks\":[…]}}");
        Err(ConfigError::Batch(problem))
    };
    match value {
        Value::Array(hooks) => Ok(hooks),
        Value::Object(mut map) => {
            if let Some(version) = present(&map, "version").filter(|version| version != "v1") {
                let problem = format!("version {version} is unsupported; \"v1\" is expected");
                return Err(ConfigError::Batch(problem));
            }
            match map.remove("hooks") {
                None | Some(Value::Null) => Ok(Vec::new()),
                Some(Value::Array(hooks)) => Ok(hooks),
                Some(other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_))) => {
                    expected(json_type(&other))
                }
            }
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            expected(json_type(&other))
        }
    }
}

/// Returns the name of a hook, and its configuration in version 1.
fn translated(hook: Value, kind: HookKind) -> Result<(String, Map<String, Value>), String> {
    let Value::Object(hook) = hook else {
        return Err(format!("it must be a mapping, found \"{}\"", json_type(&hook)));
    };
    let name = hook.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
    let name = name.filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME);
    let name = name.filter(|name| !name.contains(char::is_control));
    let name = name.ok_or_else(|| format!("metadata.name must be a text of 1 to {LONGEST_NAME} bytes"))?;
    if let Some(version) = present(&hook, "configVersion").filter(|version| version != "v1") {
        return Err(format!("'configVersion' value {version} is unsupported; \"v1\" is expected"));
    }
    let mut config = Map::from_iter([("configVersion".to_owned(), json!("v1"))]);
    let global = kind == HookKind::Global;
    for (key, to) in [
        ("onStartup", "onStartup"),
        ("beforeHelm", if global { "beforeAll" } else { "beforeHelm" }),
        ("afterHelm", if global { "afterAll" } else { "afterHelm" }),
        ("beforeDeleteHelm", "beforeDeleteHelm"),
        ("afterDeleteHelm", "afterDeleteHelm"),
    ] {
        // A program has one configuration for both kinds, and what is no part of the other is ignored.
        if global && to.ends_with("DeleteHelm") {
            continue;
        }
        config.extend(present(&hook, key).map(|order| (to.to_owned(), order)));
    }
    if let Some(Value::Object(settings)) = present(&hook, "settings") {
        config.extend(translated_settings(&settings).map(|settings| ("settings".to_owned(), settings)));
    }
    let may_fail = present(&hook, "allowFailure");
    for (section, keys) in [("schedule", &["name", "crontab", "queue"][..]), ("kubernetes", &KUBERNETES)] {
        let bindings = match present(&hook, section) {
            None => continue,
            Some(Value::Array(bindings)) => bindings,
            Some(
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_)),
            ) => {
                return Err(format!("{section} must be a list, found \"{}\"", json_type(&other)));
            }
        };
        let binding = |binding: Value| match binding {
            Value::Object(binding) => Ok(translated_binding(&binding, section, keys, may_fail.as_ref())),
            other
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Err(format!("{section} must hold mappings, found \"{}\"", json_type(&other)))
            }
        };
        let bindings: Vec<Value> = bindings.into_iter().map(binding).collect::<Result<_, _>>()?;
        if !bindings.is_empty() {
            config.insert(section.to_owned(), Value::Array(bindings));
        }
    }
    Ok((name.to_owned(), config))
}

fn translated_binding(
    binding: &Map<String, Value>,
    section: &str,
    keys: &[&str],
    may_fail: Option<&Value>,
) -> Value {
    let mut made = Map::new();
    for key in keys {
        made.extend(present(binding, key).map(|value| ((*key).to_owned(), value)));
    }
    if let Some(may_fail) = present(binding, "allowFailure").as_ref().or(may_fail) {
        made.insert("allowFailure".to_owned(), may_fail.clone());
    }
    made.insert("group".to_owned(), json!(GROUP));
    if section == "kubernetes" {
        let keeps = present(binding, "keepFullObjectsInMemory").unwrap_or(Value::Bool(false));
        made.insert("keepFullObjectsInMemory".to_owned(), keeps);
        match present(binding, "executeHookOnEvent") {
            None | Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => {
                made.insert("executeHookOnEvent".to_owned(), json!([]));
            }
            Some(
                events @ (Value::Null
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_)),
            ) => {
                made.insert("executeHookOnEvent".to_owned(), events);
            }
        }
    }
    Value::Object(made)
}

/// Returns the settings, if they limit anything. Their interval is a number of nanoseconds.
fn translated_settings(settings: &Map<String, Value>) -> Option<Value> {
    let interval = match present(settings, "executionMinInterval")? {
        Value::Number(nanos) if nanos.as_f64() == Some(0.0) => return None,
        Value::Number(nanos) => json!(format!("{nanos}ns")),
        other @ (Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
            other
        }
    };
    let mut made = Map::from_iter([("executionMinInterval".to_owned(), interval)]);
    made.extend(present(settings, "executionBurst").map(|burst| ("executionBurst".to_owned(), burst)));
    Some(Value::Object(made))
}

/// Returns what stands at a key, unless it is nothing: programs print empty fields, too.
fn present(map: &Map<String, Value>, key: &str) -> Option<Value> {
    let is_nothing = |value: &&Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    map.get(key).filter(|value| !is_nothing(value)).cloned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::hook::context::{BindingContext, RunContexts};
    use crate::hook::snapshot::Snapshot;
    use crate::hook::spec::Lifecycle;

    fn parse(kind: HookKind, text: &str) -> Result<Vec<HookSpec>, String> {
        parse_batch("tool", kind, text, &|_| Ok(())).map_err(|error| error.to_string())
    }

    const TWO: &str = r#"{"version": "v1", "has_settings_check": true, "readiness": {"metadata": {"name": "ready"}}, "hooks": [
        {"configVersion": "v1", "metadata": {"name": "pods", "path": "hooks/pods.go"}, "beforeHelm": 5, "afterHelm": null, "schedule": [],
         "kubernetes": [{"name": "pods", "kind": "Pod", "executeHookOnEvent": false, "jqFilter": "", "nameSelector": null},
                        {"name": "nodes", "kind": "Node", "keepFullObjectsInMemory": true, "queue": "side"}],
         "settings": {"executionMinInterval": 3000000000, "executionBurst": 2, "enableSchedulesOnStartup": false}, "logLevel": "info"},
        {"metadata": {"name": "each"}, "schedule": [{"name": "each", "crontab": "* * * * *"}], "allowFailure": true}]}"#;

    #[test]
    fn each_hook_of_a_file_is_a_hook_of_version_1_whose_bindings_are_one_group() {
        let hooks = parse(HookKind::Module, TWO).unwrap();
        let names: Vec<&str> = hooks.iter().map(|hook| hook.name.as_str()).collect();
        assert_eq!(names, ["tool:pods:0", "tool:each:1"]);
        let pods = &hooks[0];
        assert_eq!(pods.order(Lifecycle::BeforeHelm).unwrap().0, 5);
        assert_eq!(pods.order(Lifecycle::AfterHelm), None);
        assert_eq!(pods.settings.execution_min_interval, Duration::from_secs(3));
        assert_eq!(pods.settings.execution_burst, 2);
        let [first, second] = &pods.kubernetes[..] else { panic!("{pods:?}") };
        assert!(first.execute_on_events.is_empty() && !first.keep_full_objects && second.keep_full_objects);
        assert_eq!(first.include_snapshots_from, ["pods", "nodes"]);
        assert_eq!((first.group.as_deref(), second.queue.as_str()), (Some("main"), "side"));
        assert!(hooks[1].schedules[0].allow_failure);
    }

    #[test]
    fn what_only_modules_have_is_ignored_in_a_global_hook() {
        let text =
            r#"[{"metadata": {"name": "a"}, "beforeHelm": 3, "beforeDeleteHelm": 1, "afterDeleteHelm": 2}]"#;
        let global = parse(HookKind::Global, text).unwrap().remove(0);
        assert_eq!(global.order(Lifecycle::BeforeAll).unwrap().0, 3);
        let of_module = parse(HookKind::Module, text).unwrap().remove(0);
        assert_eq!(of_module.order(Lifecycle::AfterDeleteHelm).unwrap().0, 2);
    }

    #[test]
    fn bindings_are_of_the_group_and_points_of_a_lifecycle_have_the_snapshots_alone() {
        let text = r#"[{"metadata": {"name": "a"}, "onStartup": 1, "beforeHelm": 1, "schedule": [{"name": "each", "crontab": "* * * * *"}],
            "kubernetes": [{"name": "pods", "kind": "Pod"}]}]"#;
        let hook = parse(HookKind::Module, text).unwrap().remove(0);
        for (context, expected) in [
            (
                BindingContext::schedule(&hook.schedules[0]),
                r#"{"binding":"each","groupName":"main","snapshots":{"pods":[]},"type":"Group"}"#,
            ),
            (
                BindingContext::synchronization(&hook.kubernetes[0], 0),
                r#"{"binding":"pods","groupName":"main","snapshots":{"pods":[]},"type":"Group"}"#,
            ),
            // As in the reference operator, whose lifecycle bindings have no group.
            (
                BindingContext::lifecycle(Lifecycle::BeforeHelm),
                r#"{"binding":"beforeHelm","snapshots":{"pods":[]}}"#,
            ),
            (BindingContext::lifecycle(Lifecycle::OnStartup), r#"{"binding":"onStartup"}"#),
        ] {
            let mut out = Vec::new();
            RunContexts::new(&hook, vec![context], |_| Snapshot::default()).write(&mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("[{expected}]\n"));
        }
    }

    #[test]
    fn a_bare_list_does_and_global_hooks_have_their_own_points_and_names() {
        let text = r#"[{"metadata": {"name": "a"}, "beforeHelm": 1, "afterHelm": 2, "onStartup": 3}]"#;
        let hooks = parse(HookKind::Global, text).unwrap();
        assert_eq!(hooks[0].name.as_str(), "tool-a-0");
        let points: Vec<Lifecycle> = hooks[0].lifecycle.keys().copied().collect();
        assert_eq!(points, [Lifecycle::OnStartup, Lifecycle::BeforeAll, Lifecycle::AfterAll]);
    }

    #[test]
    fn what_is_wrong_is_told_with_the_index_of_the_hook() {
        for (text, expected) in [
            (r#"[{"beforeHelm": 1}]"#, "hook 0: metadata.name must be a text of 1 to 253 bytes"),
            (r#"[{"metadata": {"name": "a"}}, 5]"#, "hook 1: it must be a mapping, found \"number\""),
            (r#"{"version": "v2", "hooks": []}"#, "version \"v2\" is unsupported; \"v1\" is expected"),
            (r#"{"hooks": 1}"#, "hooks must be a list, found \"number\""),
            (r#"[{"metadata": {"name": "a"}, "kubernetes": [{}]}]"#, "hook 0: "),
            (r#"[{"metadata": {"name": "a"}, "kubernetes": {}}]"#, "hook 0: kubernetes must be a list"),
            (r#"[{"metadata": {"name": "a"}, "schedule": [{"crontab": "x"}]}]"#, "crontab is invalid"),
            (
                r#"[{"metadata": {"name": "a"}, "configVersion": "v7"}]"#,
                "hook 0: 'configVersion' value \"v7\" is unsupported",
            ),
            ("Found 2 items", "expected value"),
        ] {
            let error = parse(HookKind::Module, text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn there_is_a_limit_of_hooks_and_of_bytes() {
        let hooks = |count: usize| format!("[{}]", vec![r#"{"metadata":{"name":"a"}}"#; count].join(","));
        assert_eq!(parse(HookKind::Module, &hooks(MOST_HOOKS)).unwrap().len(), MOST_HOOKS);
        assert!(parse(HookKind::Module, &hooks(MOST_HOOKS + 1)).unwrap_err().contains("more than 9999"));
        let long = " ".repeat(MAX_BYTES + 1);
        assert!(parse(HookKind::Module, &long).is_err() && !is_batch(&long));
    }

    #[test]
    fn the_answers_of_one_hook_and_of_several_are_told_apart() {
        assert!(is_batch(TWO) && is_batch("[{}]") && is_batch("{\"hooks\": []}"));
        for text in ["", "[]", "[1]", "{}", "{\"hooks\": 1}", "Found 1 items", "configVersion: v1"] {
            assert!(!is_batch(text), "{text}");
        }
        assert!(is_of_one_hook("configVersion: v1") && is_of_one_hook("{\"onStartup\": 1}"));
        for text in ["", "{}", "usage: tool hook list", "[1]"] {
            assert!(!is_of_one_hook(text), "{text}");
        }
    }
}
