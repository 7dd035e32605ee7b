//! The format of test files. See docs/testing.md#the-format.
//!
//! Most of a test file are values, objects and sections of the ConfigMap. So all of it is read by the rules of Go, as
//! `values.yaml` is: `0123` is octal. `serde_yaml` has other rules, and a test would see other values
//! than the operator. It also stops at the first mistake, where this reports all of them with line and key.
//! That `yes` is a boolean by these rules, and so is a key `n`, surprises whoever compares texts: such words are refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Value};

use super::node::{Node, Pointer, Problems};
use crate::config::parse_duration;

/// What the names of test files end with.
pub(super) const ENDINGS: [&str; 2] = [".test.yaml", ".test.yml"];

/// How long a step may take.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Keys that a file can set for all its tests; a test can set them again.
const SHARED: [&str; 8] = ["hook", "run", "modules", "globalHooks", "values", "config", "objects", "timeout"];

/// Keys of a single test.
const OWN: [&str; 3] = ["name", "expect", "steps"];

/// Actions of a step. A step has exactly one.
const ACTIONS: [&str; 7] = ["admit", "apply", "config", "convert", "delete", "reconcile", "schedule"];

/// Keys of `expect`.
pub(super) const EXPECTED: [&str; 17] = [
    "refused",
    "converted",
    "runs",
    "exit",
    "error",
    "valuesPatch",
    "configPatch",
    "objectPatches",
    "metrics",
    "children",
    "status",
    "log",
    "values",
    "config",
    "objects",
    "absent",
    "enabled",
];

/// A test file.
#[derive(Debug)]
pub(super) struct TestFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) tests: Vec<Arc<Test>>,
}

/// One test.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) name: String,
    /// Its JSON pointer in the file.
    pub(super) pointer: String,
    /// Its own setup with that of the file.
    pub(super) setup: Setup,
    /// The first one is the start.
    pub(super) steps: Vec<Step>,
}

/// An action and its expectations.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Its JSON pointer in the file.
    pub(super) pointer: String,
    pub(super) action: Action,
    /// The expectations by key.
    pub(super) expect: Map<String, Value>,
    /// Whether `expect` is present but empty.
    pub(super) is_open: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// As a client would: objects that may be refused.
    Admit(Vec<Value>),
    Apply(Vec<Value>),
    Config(Map<String, Value>),
    /// Have the webhook of their definition turn objects into a version.
    Convert(Vec<Value>, String),
    Delete(Vec<Value>),
    /// Write the object of a controller: its key runs.
    Reconcile(Value),
    Schedule(String),
    Start,
}

/// What a test runs and what is there before: all tests of a file can share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Setup {
    pub(super) hook: Option<String>,
    /// The only binding that is on.
    pub(super) run: Option<String>,
    /// Modules that are on beside the one that is tested.
    pub(super) modules: Vec<String>,
    pub(super) global_hooks: Vec<String>,
    pub(super) values: Map<String, Value>,
    pub(super) config: Map<String, Value>,
    pub(super) objects: Vec<Value>,
    timeout: Option<Duration>,
}

impl Setup {
    /// Returns how long a step may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }
}

impl TestFile {
    /// Reads a file, or returns everything that is wrong with it.
    pub(super) fn read(path: &Path) -> Result<Self, Vec<String>> {
        let failed = |message: String| vec![format!("{}: {message}", path.display())];
        let text =
            std::fs::read_to_string(path).map_err(|error| failed(format!("can't be read: {error}")))?;
        Self::parse(path, text)
    }

    fn parse(path: &Path, text: String) -> Result<Self, Vec<String>> {
        let parsed = values::yaml::parse_plain(&text).map_err(|error| {
            let position = error.position();
            let message = error.to_string();
            let message = message.split_once(": ").map_or(message.as_str(), |(_, message)| message);
            vec![format!("{}:{}:{}: {message}", path.display(), position.line, position.column)]
        })?;
        let documents =
            values::yaml::parse_all(&text).map_or(1, |all| all.iter().filter(|one| !one.is_null()).count());
        if documents > 1 {
            let message = "has more than one YAML document; write its tests as one list";
            return Err(vec![format!("{}: {message}", path.display())]);
        }
        let problems = Problems::new(path, &text);
        let tests = tests(Node::new(&parsed, &Pointer::Root, &problems));
        let lines = problems.lines();
        if lines.is_empty() {
            Ok(Self { path: path.to_owned(), text, tests: tests.into_iter().map(Arc::new).collect() })
        } else {
            Err(lines)
        }
    }
}

fn tests(root: Node<'_>) -> Vec<Test> {
    let none = Setup::default();
    match root.value {
        Value::Array(_) => root.each(|item| test(item, &none)),
        Value::Object(map) if map.contains_key("tests") => {
            let mut known = SHARED.to_vec();
            known.push("tests");
            root.knows(&known);
            let setup = setup(root, &none);
            root.key("tests", |tests| tests.each(|item| test(item, &setup))).unwrap_or_default()
        }
        Value::Object(_) => vec![test(root, &none)],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            root.wrong("should be a test, a list of tests, or a mapping with the key tests");
            Vec::new()
        }
    }
}

fn setup(node: Node<'_>, above: &Setup) -> Setup {
    let mut setup = above.clone();
    setup.hook = node.key("hook", |node| node.text()).or(setup.hook);
    setup.run = node.key("run", |node| node.text()).or(setup.run);
    setup.modules.extend(node.key("modules", |node| node.texts()).unwrap_or_default());
    setup.global_hooks.extend(node.key("globalHooks", |node| node.texts()).unwrap_or_default());
    for (over, base) in [("values", &mut setup.values), ("config", &mut setup.config)] {
        if let Some(Err(error)) = node.key(over, |node| merge(base, node.map())) {
            node.key(over, |node| node.wrong(&error));
        }
    }
    setup.objects.extend(node.key("objects", |node| node.objects()).unwrap_or_default());
    let timeout = |node: Node<'_>| {
        let duration = parse_duration(&node.text());
        if duration.is_none() {
            node.wrong("should be a duration like 30s");
        }
        duration
    };
    setup.timeout = node.key("timeout", timeout).flatten().or(setup.timeout);
    setup
}

fn merge(base: &mut Map<String, Value>, over: Map<String, Value>) -> Result<(), String> {
    let mut merged = Value::Object(std::mem::take(base));
    values::merge::merge(&mut merged, &Value::Object(over)).map_err(|error| error.to_string())?;
    if let Value::Object(merged) = merged {
        *base = merged;
    }
    Ok(())
}

fn test(node: Node<'_>, above: &Setup) -> Test {
    let known: Vec<&str> = OWN.iter().chain(&SHARED).copied().collect();
    node.knows(&known);
    let setup = setup(node, above);
    let (expect, is_open) = expectation(node);
    let mut steps = vec![Step { pointer: node.pointer(), action: Action::Start, expect, is_open }];
    steps.extend(node.key("steps", |steps| steps.each(step)).unwrap_or_default());
    let name = node.key("name", |name| name.text()).or_else(|| setup.run.clone());
    Test { name: name.unwrap_or_else(|| "start".to_owned()), pointer: node.pointer(), setup, steps }
}

fn step(node: Node<'_>) -> Step {
    let mut known = ACTIONS.to_vec();
    known.push("expect");
    let is_map = node.knows(&known);
    let actions = [
        node.key("admit", |node| Action::Admit(node.objects())),
        node.key("apply", |node| Action::Apply(node.objects())),
        node.key("config", |node| Action::Config(node.map())),
        node.key("convert", conversion),
        node.key("delete", |node| Action::Delete(node.references())),
        node.key("reconcile", |node| Action::Reconcile(node.object())),
        node.key("schedule", |node| Action::Schedule(node.text())),
    ];
    let mut actions = actions.into_iter().flatten();
    let (action, more) = (actions.next(), actions.next().is_some());
    if is_map && (more || action.is_none()) {
        node.wrong(&format!("a step needs exactly one of {}", ACTIONS.join(", ")));
    }
    let (expect, is_open) = expectation(node);
    Step { pointer: node.pointer(), action: action.unwrap_or(Action::Start), expect, is_open }
}

/// Reads which objects are turned into which version. A version without a group has that of the objects.
fn conversion(node: Node<'_>) -> Action {
    let is_map = node.knows(&["to", "objects"]);
    let objects = node.key("objects", |node| {
        node.each(|item| {
            if item.value.get("apiVersion").and_then(Value::as_str).is_none() {
                item.wrong("its apiVersion is missing");
            }
            item.object()
        })
    });
    let to = node.key("to", |node| node.text());
    let (objects, to) = (objects.unwrap_or_default(), to.unwrap_or_default());
    if is_map && (objects.is_empty() || to.is_empty()) {
        node.wrong("needs objects, and to: the version that they are turned into");
    }
    let group = || objects.first()?.get("apiVersion")?.as_str()?.rsplit_once('/').map(|(group, _)| group);
    let to = match group().filter(|_| !to.contains('/')) {
        Some(group) => format!("{group}/{to}"),
        None => to,
    };
    Action::Convert(objects, to)
}

/// Returns what is expected, and whether there is a key for it without content.
fn expectation(node: Node<'_>) -> (Map<String, Value>, bool) {
    let Some(value) = node.value.get("expect") else { return (Map::new(), false) };
    let is_open = value.is_null() || value.as_object().is_some_and(Map::is_empty);
    node.key("expect", |expect| {
        if expect.knows(&EXPECTED) {
            check_shapes(expect);
        }
    });
    (value.as_object().cloned().unwrap_or_default(), is_open)
}

/// Returns the pattern of `/a pattern/`; `None` for any other text.
pub(super) fn pattern(wanted: &str) -> Option<Result<Regex, regex::Error>> {
    let pattern = wanted.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    pattern.filter(|pattern| !pattern.is_empty()).map(Regex::new)
}

fn check_shapes(expect: Node<'_>) {
    expect.key("runs", |node| drop(node.texts()));
    expect.key("log", |node| {
        node.each(|item| {
            if let Some(Err(error)) = pattern(&item.text()) {
                let error = error.to_string();
                item.wrong(&format!("is no pattern: {}", error.lines().last().unwrap_or_default()));
            }
        })
    });
    for key in ["valuesPatch", "configPatch", "objectPatches", "metrics"] {
        expect.key(key, |node| node.each(|item| drop(item.map())));
    }
    for key in ["values", "config", "enabled", "status"] {
        expect.key(key, |node| drop(node.map()));
    }
    expect.key("objects", |node| drop(node.objects()));
    expect.key("children", |node| drop(node.objects()));
    expect.key("converted", |node| drop(node.objects()));
    expect.key("absent", |node| drop(node.references()));
    expect.key("error", |node| drop(node.text()));
    expect.key("refused", |node| drop(node.text()));
    expect.key("exit", |node| {
        if node.value.as_u64().is_none() {
            node.wrong("should be an exit code");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        match TestFile::parse(Path::new("a.test.yaml"), text.to_owned()) {
            Ok(file) => format!("{} tests", file.tests.len()),
            Err(lines) => lines.join("\n"),
        }
    }

    #[test]
    fn complaints_name_file_line_key_and_the_nearest_known_key() {
        for (text, expected) in [
            ("run: beforeHelm\n", "1 tests"),
            ("- run: a\n- run: b\n", "2 tests"),
            (
                "run: beforeHelm\nexpect:\n  valuesPach: []\n",
                "a.test.yaml:3:3: expect.valuesPach: unknown key; did you mean valuesPatch?",
            ),
            ("run: a\nexpext: {}\n", "a.test.yaml:2:1: expext: unknown key; did you mean expect?"),
            (
                "tests:\n- name: x\n  steps:\n  - expect: {log: {}}\n",
                "a.test.yaml:4:5: tests[0].steps[0]: a step needs exactly one of admit, apply, config, convert, delete, reconcile, schedule\n\
                 a.test.yaml:4:14: tests[0].steps[0].expect.log: should be a list",
            ),
            ("objects: [{kind: Pod}]\n", "a.test.yaml:1:11: objects[0]: its metadata.name is missing"),
            ("run: a\nrun: b\n", "a.test.yaml:2:1: key \"run\" is already set at line 1, remove one of them"),
            (
                "run: a\n---\nrun: b\n",
                "a.test.yaml: has more than one YAML document; write its tests as one list",
            ),
            (
                "expect: {log: [a, '/(/']}\n",
                "a.test.yaml:1:19: expect.log[1]: is no pattern: error: unclosed group",
            ),
            (
                "steps: [{convert: {objects: [{kind: Tab, metadata: {name: a}}]}}]\n",
                "a.test.yaml:1:10: steps[0].convert: needs objects, and to: the version that they are turned into\n\
                 a.test.yaml:1:30: steps[0].convert.objects[0]: its apiVersion is missing",
            ),
            ("timeout: soon\n", "a.test.yaml:1:1: timeout: should be a duration like 30s"),
            (
                "run: a\nexpect:\n  status: {x: 1, n: 2}\n",
                "a.test.yaml:3:18: n without quotes is the boolean false: write false, or \"n\" if a text is meant",
            ),
            (
                "values:\n  web: {light: On}\n",
                "a.test.yaml:2:16: On without quotes is the boolean true: write true, or \"On\" if a text is meant",
            ),
            ("values: {web: {'n': no one, \"y\": 'off', x: true, z: !!str yes}}\n", "1 tests"),
            ("- [\n", "a.test.yaml:2:1: did not find expected node content while parsing a flow node"),
        ] {
            assert_eq!(problems(text), expected, "{text}");
        }
    }

    #[test]
    fn a_test_says_again_what_the_file_says_for_all() {
        let text = "values: {web: {a: 1, b: 1}}\nobjects: [{kind: Pod, metadata: {name: p}}]\n\
                    tests: [{run: x, values: {web: {b: 2}}}, {run: later}]\n";
        let file = TestFile::parse(Path::new("a.test.yaml"), text.to_owned()).unwrap();
        let [first, second] = file.tests.as_slice() else { panic!("{file:?}") };
        assert_eq!(Value::Object(first.setup.values.clone()), serde_json::json!({"web": {"a": 1, "b": 2}}));
        assert_eq!(Value::Object(second.setup.values.clone()), serde_json::json!({"web": {"a": 1, "b": 1}}));
        assert_eq!((first.name.as_str(), first.setup.objects.len(), second.name.as_str()), ("x", 1, "later"));
    }
}
