//! `addon-operator test`: the samples and examples, and what comes of bad tests.

use std::fs;
use std::path::Path;
use std::process::Command;

use addon_operator::config::Environment;
use tempfile::TempDir;

use crate::support::files::{LONG_EXAMPLE, copy, root, write};
use crate::support::program::hook;

struct Fixture {
    dir: TempDir,
}

const HOOK: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  echo '{"configVersion": "v1", "beforeHelm": 1, "schedule": [{"name": "now and then", "crontab": "0 0 1 1 *"}]}'
  exit 0
fi
echo "hello from $(jq -r .web.name "$VALUES_PATH")"
echo '{"op": "add", "path": "/web/seen", "value": true}' > "$VALUES_JSON_PATCH_PATH"
exit "$(jq -r '.web.code // 0' "$VALUES_PATH")"
"#;

impl Fixture {
    fn new() -> Self {
        let world = Self { dir: tempfile::tempdir().unwrap() };
        world.write("modules/values.yaml", "web: {name: nobody}\n");
        world.write("modules/010-web/hooks/a.sh", HOOK);
        world
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        write(&self.path(path), text);
    }

    fn test(&self, arguments: &[&str]) -> (i32, String) {
        run(self.dir.path(), arguments)
    }
}

fn run(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_addon-operator"))
        .arg("test")
        .args(arguments)
        .current_dir(dir)
        .env("KUBECONFIG", "/nowhere/poisoned")
        .env("KUBERNETES_SERVICE_HOST", "192.0.2.1")
        .env_remove("BASH_ENV")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

#[test]
fn the_tests_of_the_samples_and_examples_pass() {
    let dir = tempfile::tempdir().unwrap();
    for part in ["modules", "global-hooks", "examples"] {
        copy(&root().join(part), dir.path());
    }
    // Its lives take long, and `example_controllers` lives each.
    fs::remove_dir_all(dir.path().join(LONG_EXAMPLE)).unwrap();
    let (code, text) = run(dir.path(), &["modules", "global-hooks", "examples"]);
    assert_eq!(code, 0, "{text}");
    for example in fs::read_dir(dir.path().join("examples")).unwrap().map(Result::unwrap) {
        let name = example.file_name().into_string().unwrap();
        // A module that only names its chart has no files to test; the commands of its README are run elsewhere.
        let modules = fs::read_dir(example.path().join("modules")).into_iter().flatten().map(Result::unwrap);
        let files = modules.filter_map(|module| fs::read_dir(module.path()).ok()).flatten();
        let is_example = files.map(Result::unwrap).any(|file| file.file_name() != "module.yaml");
        assert!(!is_example || text.contains(&format!("examples/{name}/")), "{name} has no test:\n{text}");
    }
}

#[test]
fn webhooks_in_the_shapes_of_shell_operators_examples_run_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    copy(&root().join("tests/it/data/shell-operator/modules"), dir.path());
    let (code, text) = run(dir.path(), &["modules"]);
    assert_eq!(code, 0, "{text}");
    for hook in ["validating", "mutating", "conversion"] {
        assert!(text.contains(&format!("hooks/{hook}.test.yaml")), "{text}");
    }
}

/// Examples of shell-operator, their hooks, and what they do with objects.
const EXAMPLES: [(&str, &str, &str); 3] = [
    (
        "204-validating-webhook",
        "validating.sh",
        "
- admit: [{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: a, namespace: shop}, spec: {image: elsewhere/x}}]
  expect: {refused: Only images from repo.example.com are allowed}
- admit: [{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: b, namespace: shop}, spec: {image: repo.example.com/x}}]
  expect: {runs: [private-repo-policy.example.com Validating]}
",
    ),
    (
        "206-mutating-webhook",
        "mutating.sh",
        "
- admit: [{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: a, namespace: shop}, spec: {image: x}}]
  expect:
    runs: [change.crontab.resources Mutating]
    objects: [{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: a, namespace: shop}, spec: {image: x, replicas: 333}}]
",
    ),
    (
        "210-conversion-webhook",
        "conversion-alpha.sh",
        "
- convert:
    to: v1alpha2
    objects: [{apiVersion: stable.example.com/v1alpha1, kind: CronTab, metadata: {name: a}, spec: {cron: ['*', '*', '*', '*', '*/5'], imageName: x}}]
  expect:
    runs: [alpha1_to_alpha2 Conversion stable.example.com/v1alpha1 to stable.example.com/v1alpha2]
    converted: [{apiVersion: stable.example.com/v1alpha2, kind: CronTab, metadata: {name: a}, spec: {cron: '* * * * */5', imageName: x}}]
",
    ),
];

/// It passed with the examples of shell-operator at commit c8d19cb509551d1cfe310497b94ff251d63000e8.
#[test]
#[ignore = "SHELL_OPERATOR names a directory with the repository of shell-operator"]
fn the_webhooks_of_shell_operators_examples_run_unchanged() {
    let environment = Environment::of_process();
    let Some(given) = environment.text("SHELL_OPERATOR") else {
        eprintln!("skipped: SHELL_OPERATOR names no directory with the repository of shell-operator");
        return;
    };
    for (example, hook, steps) in EXAMPLES {
        let from = Path::new(given).join("examples").join(example);
        let world = Fixture { dir: tempfile::tempdir().unwrap() };
        let module = world.path("modules/010-crontabs");
        for (file, to) in
            [(format!("hooks/{hook}"), "hooks"), ("templates/crd/crontab.yaml".to_owned(), "crds")]
        {
            let (from, to) = (from.join(file), module.join(to));
            fs::create_dir_all(&to).unwrap();
            fs::copy(&from, to.join(from.file_name().unwrap())).unwrap();
        }
        world.write("modules/values.yaml", "crontabsEnabled: true\n");
        let label = format!("example-{}", &example[..3]);
        let namespace = format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: shop, labels: {{name: {label}}}}}}}"
        );
        world.write(
            &format!("modules/010-crontabs/hooks/{}", hook.replace(".sh", ".test.yaml")),
            &format!("name: {example}\nobjects: [{namespace}]\nsteps:{steps}"),
        );
        let (code, text) = world.test(&[]);
        assert!(code == 0 && text.contains("1 test"), "{example}: {text}");
    }
}

#[test]
fn what_differs_is_shown_and_nothing_else() {
    let world = Fixture::new();
    let file = "- name: wrong\n  run: beforeHelm\n  expect:\n    valuesPatch:\n    - op: add\n      path: /web/seen\n      value: false\n    log: [hello from nobody]\n\
                - name: right\n  run: beforeHelm\n  values: {web: {name: Ann}}\n  expect: {log: [/^hello from A.n$/], runs: [beforeHelm]}\n";
    world.write("modules/010-web/hooks/a.test.yaml", file);
    let (code, text) = world.test(&["--junit", "junit.xml"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("FAILED modules/010-web/hooks/a.test.yaml wrong"), "{text}");
    assert!(text.contains("    - - op: add\n") || text.contains("      path: /web/seen\n"), "{text}");
    assert!(text.contains("    -   value: false\n    +   value: true\n"), "{text}");
    assert!(text.contains("ok     modules/010-web/hooks/a.test.yaml right"), "{text}");
    assert!(text.contains("2 tests, 1 failed"), "{text}");
    let junit = fs::read_to_string(world.path("junit.xml")).unwrap();
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
    assert!(junit.contains("<failure message=\"valuesPatch differs:\">"), "{junit}");
    assert_eq!(world.test(&["--only", "right"]).0, 0);
    assert_eq!(world.test(&["modules/010-web/hooks/a.test.yaml", "--only", "a.test*wrong"]).0, 1);
}

#[test]
fn update_makes_expectations_right_and_keeps_all_else() {
    let world = Fixture::new();
    let file = "modules/010-web/hooks/a.test.yaml";
    world.write(
        file,
        "# A hook.\n- name: a # comment\n  run: beforeHelm\n  values: {web: {name: Ann}}\n  expect:\n    # What it says:\n    log: [bye]\n- name: b\n  run: beforeHelm\n  values: {web: {code: 3}}\n  expect:\n- name: c\n  run: now and then\n  expect: {}\n",
    );
    assert_eq!(world.test(&[]).0, 1);
    let (code, text) = world.test(&["--update"]);
    assert!(code == 1 && text.contains("a.test.yaml is updated"), "{text}");
    let written = fs::read_to_string(world.path(file)).unwrap();
    assert_eq!(
        written,
        "# A hook.\n- name: a # comment\n  run: beforeHelm\n  values: {web: {name: Ann}}\n  expect:\n    # What it says:\n    log:\n    - hello from Ann\n\
         - name: b\n  run: beforeHelm\n  values: {web: {code: 3}}\n  expect:\n    exit: 3\n\
         - name: c\n  run: now and then\n  expect:\n    valuesPatch:\n    - op: add\n      path: /web/seen\n      value: true\n"
    );
    let (code, text) = world.test(&[]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn update_writes_the_objects_of_a_chart() {
    let world = Fixture::new();
    world.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
    world.write(
        "modules/010-web/templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {name: {{ .Values.web.name }}}\n",
    );
    world.write("modules/010-web/web.test.yaml", "name: web\nexpect:\n");
    assert_eq!(world.test(&["--update"]).0, 1);
    let written = fs::read_to_string(world.path("modules/010-web/web.test.yaml")).unwrap();
    assert!(written.contains("  objects:\n  - apiVersion: v1\n    data:\n      name: nobody\n"), "{written}");
    let (code, text) = world.test(&[]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn bad_tests_name_file_line_key_and_what_is_meant() {
    let world = Fixture::new();
    world.write("modules/010-web/hooks/a.test.yaml", "run: beforeHelm\nexpect:\n  valuesPach: []\n");
    let (code, text) = world.test(&[]);
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("a.test.yaml:3:3: expect.valuesPach: unknown key; did you mean valuesPatch?"),
        "{text}"
    );
    for (test, said) in [
        ("run: beforeHlm\n", "there is no binding beforeHlm; did you mean beforeHelm?"),
        ("hook: b.sh\n", "there is no hook b.sh"),
        ("values: {wep: {}}\n", "there is no section of values wep; did you mean web?"),
        ("modules: [dns]\n", "there is no module dns"),
        ("steps: [{schedule: now}]\n", "there is no schedule now"),
        ("objects: [{apiVersion: v9, kind: Pod, metadata: {name: a}}]\n", "v9"),
        ("values: {web: {code: 4}}\nrun: beforeHelm\n", "exit status 4"),
        ("expect: {objects: [{kind: ConfigMap, metadata: {name: a}}]}\n", "objects differs"),
        ("expect: {error: no such}\n", "nothing failed"),
    ] {
        world.write("modules/010-web/hooks/a.test.yaml", test);
        let (code, text) = world.test(&[]);
        assert!(code == 1 && text.contains(said), "{test}: exit {code}, {text}");
    }
}

#[test]
fn without_a_test_there_is_nothing_to_pass() {
    let world = Fixture::new();
    let (code, text) = world.test(&[]);
    assert!(code == 2 && text.contains("no test was found"), "{text}");
    let (code, text) = world.test(&["nowhere"]);
    assert!(code == 2 && text.contains("nowhere"), "{text}");
}

#[test]
fn a_hook_that_never_ends_fails_its_test_alone() {
    let world = Fixture::new();
    world.write(
        "modules/020-slow/hooks/a.sh",
        &hook("\"beforeHelm\":1", "echo $$ > \"$PIDFILE\"\nexec sleep 600"),
    );
    let pid = world.path("pid");
    world.write("modules/020-slow/hooks/a.test.yaml", "run: beforeHelm\ntimeout: 1s\n");
    world.write("modules/010-web/hooks/a.test.yaml", "run: beforeHelm\n");
    let output = Command::new(env!("CARGO_BIN_EXE_addon-operator"))
        .arg("test")
        .current_dir(world.dir.path())
        .env("PIDFILE", &pid)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("after 1 s slow/hooks/a.sh was still at work"), "{text}");
    assert!(text.contains("2 tests, 1 failed"), "{text}");
    let pid = fs::read_to_string(pid).unwrap();
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "the hook outlived its test");
}

#[test]
fn a_step_does_not_end_while_a_filter_reads_what_it_changed() {
    let world = Fixture::new();
    // Slow enough for the operator to have nothing else to do.
    let filter = "reduce range(200000) as $number (0; . + $number)";
    world.write(
        "modules/020-filter/hooks/a.sh",
        &format!(
            r#"#!/usr/bin/env bash
if [[ "${{1:-}}" == "--config" ]]; then
  echo '{{"configVersion": "v1", "kubernetes": [{{"name": "maps", "apiVersion": "v1", "kind": "ConfigMap",
    "namespace": {{"nameSelector": {{"matchNames": ["here"]}}}}, "executeHookOnSynchronization": false, "jqFilter": "{filter}"}}]}}'
  exit 0
fi
echo "saw $(jq -r '.[0].filterResult' "$BINDING_CONTEXT_PATH")"
"#
        ),
    );
    world.write(
        "modules/020-filter/a.test.yaml",
        "objects:\n- {apiVersion: v1, kind: Namespace, metadata: {name: here}}\ntests:\n- name: slow\n  steps:\n  - apply:\n    \
         - {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: here}}\n    expect:\n      log: [\"saw 19999900000\"]\n",
    );
    let (code, text) = world.test(&["modules/020-filter"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn hooks_of_tests_reach_the_cluster_of_their_test_and_no_other() {
    let world = Fixture::new();
    world.write(
        "modules/010-web/hooks/a.sh",
        &hook("\"beforeHelm\":1", "grep -o 'server: https://127.0.0.1' \"$KUBECONFIG\"\necho \"host ${KUBERNETES_SERVICE_HOST:-none}\""),
    );
    world.write(
        "modules/010-web/hooks/a.test.yaml",
        "run: beforeHelm\nexpect: {log: ['server: https://127.0.0.1', host none]}\n",
    );
    let (code, text) = world.test(&[]);
    assert_eq!(code, 0, "{text}");
}

/// A hook that lets no ConfigMap be deleted, and converts Tabs but for those whose text is `bad`.
const ANSWERS: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetesValidating:
- name: kept
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [DELETE]}]
kubernetesCustomResourceConversion:
- {name: up, crdName: tabs.example.com, conversions: [{fromVersion: v1alpha1, toVersion: v1}]}
CONFIG
  exit 0
fi
if grep -q '"type":"Validating"' "$BINDING_CONTEXT_PATH"; then
  echo '{"allowed": false, "message": "it is kept"}' > "$VALIDATING_RESPONSE_PATH"
elif grep -q '"text":"bad"' "$BINDING_CONTEXT_PATH"; then
  echo '{"failedMessage": "bad is no text"}' > "$CONVERSION_RESPONSE_PATH"
else
  jq '{convertedObjects: [.[0].review.request.objects[] | .apiVersion = "example.com/v1"]}' \
    "$BINDING_CONTEXT_PATH" > "$CONVERSION_RESPONSE_PATH"
fi
"#;

const TABS: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tabs.example.com}\n\
    spec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: tabs, singular: tab, kind: Tab}\n  versions:\n\
    \x20 - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n\
    \x20 - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n";

#[test]
fn conversions_and_refused_deletions_are_tested_as_they_are_expected() {
    let world = Fixture::new();
    world.write("modules/020-tabs/hooks/answer.sh", ANSWERS);
    world.write("modules/020-tabs/crds/tabs.yaml", TABS);
    let tab = |version: &str, text: &str| {
        format!(
            "{{apiVersion: example.com/{version}, kind: Tab, metadata: {{name: a}}, spec: {{text: {text}}}}}"
        )
    };
    let (old, bad, new) = (tab("v1alpha1", "good"), tab("v1alpha1", "bad"), tab("v1", "good"));
    world.write(
        "modules/020-tabs/hooks/answer.test.yaml",
        &format!(
            "- name: as expected\n  objects: [{{kind: ConfigMap, metadata: {{name: m}}}}]\n  steps:\n\
             \x20 - {{convert: {{to: v1, objects: [{old}, {new}]}}, expect: {{runs: [up Conversion v1alpha1 to v1], converted: [{new}, {new}]}}}}\n\
             \x20 - {{convert: {{to: example.com/v1, objects: [{bad}]}}, expect: {{refused: bad is no text, converted: []}}}}\n\
             \x20 - {{delete: [{{kind: ConfigMap, name: m}}], expect: {{refused: it is kept, objects: [{{kind: ConfigMap, metadata: {{name: m}}}}]}}}}\n\
             - name: nothing is expected\n  steps:\n  - convert: {{to: v1, objects: [{bad}]}}\n\
             - name: other objects are expected\n  steps:\n  - {{convert: {{to: v1, objects: [{old}]}}, expect: {{converted: [{old}]}}}}\n\
             - name: there is no way\n  steps:\n  - {{convert: {{to: v1alpha1, objects: [{new}]}}, expect: {{refused: no hook converts}}}}\n\
             - name: there is no kind\n  steps:\n  - {{convert: {{to: v7, objects: [{new}]}}, expect: {{refused: there is no kind Tab in version example.com/v7}}}}\n"
        ),
    );
    let (code, text) = world.test(&[]);
    assert_eq!(code, 1, "{text}");
    for expected in [
        "it is refused: Internal error occurred: conversion webhook for example.com/v1alpha1, Kind=Tab failed: bad is no text",
        "- - apiVersion: example.com/v1alpha1",
        "+ - apiVersion: example.com/v1",
        "5 tests, 2 failed",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// A hook of the shell framework with a function for each question that the API server can ask.
const FRAMEWORK: &str = r#"#!/usr/bin/env bash
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
kubernetesValidating:
- name: text.tabs.example.com
  namespace: {labelSelector: {matchLabels: {team: shop}}}
  rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [tabs], operations: [CREATE, UPDATE], scope: Namespaced}]
kubernetesMutating:
- name: size.tabs.example.com
  rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [tabs], operations: [CREATE]}]
kubernetesCustomResourceConversion:
- {name: v1alpha1_to_v1, crdName: tabs.example.com, conversions: [{fromVersion: example.com/v1alpha1, toVersion: example.com/v1}]}
- {name: v1_to_v1alpha1, crdName: tabs.example.com, conversions: [{fromVersion: v1, toVersion: v1alpha1}]}
CONFIG
}

__on_validating::text.tabs.example.com() {
  if [[ "$(context::jq -r '.review.request.object.spec.text')" == good* ]]; then
    echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
  else
    echo '{"allowed": false, "message": "texts begin with good"}' > "$VALIDATING_RESPONSE_PATH"
  fi
}

__on_mutating::size.tabs.example.com() {
  local patch
  patch=$(echo '[{"op": "add", "path": "/spec/size", "value": 7}]' | base64 -w 0)
  echo "{\"allowed\": true, \"patch\": \"$patch\"}" > "$ADMISSION_RESPONSE_PATH"
}

convert() {
  context::jq --arg to "$1" '{convertedObjects: [.review.request.objects[] | .apiVersion = "example.com/" + $to]}' \
    > "$CONVERSION_RESPONSE_PATH"
}

__on_conversion::v1alpha1_to_v1() { convert v1; }
__on_conversion::v1_to_v1alpha1() { convert v1alpha1; }

hook::run "$@"
"#;

#[test]
fn hooks_of_the_shell_framework_allow_change_and_convert() {
    let world = Fixture::new();
    world.write("modules/020-tabs/hooks/answer.sh", FRAMEWORK);
    let preserving = "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}";
    let tabs = TABS.replace("schema: {openAPIV3Schema: {type: object}}", preserving);
    world.write("modules/020-tabs/crds/tabs.yaml", &tabs);
    let tab = |name: &str, text: &str| {
        format!(
            "{{apiVersion: example.com/v1, kind: Tab, metadata: {{name: {name}, namespace: shop}}, spec: {{text: {text}}}}}"
        )
    };
    world.write(
        "modules/020-tabs/hooks/answer.test.yaml",
        &format!(
            "objects: [{{apiVersion: v1, kind: Namespace, metadata: {{name: shop, labels: {{team: shop}}}}}}]\ntests:\n- name: all\n  steps:\n\
             \x20 - {{admit: [{}], expect: {{refused: texts begin with good}}}}\n\
             \x20 - admit: [{}]\n    expect:\n      runs: [size.tabs.example.com Mutating, text.tabs.example.com Validating]\n\
             \x20     objects: [{{apiVersion: example.com/v1, kind: Tab, metadata: {{name: b, namespace: shop}}, spec: {{size: 7}}}}]\n\
             \x20 - {{convert: {{to: v1alpha1, objects: [{}]}}, expect: {{runs: [v1_to_v1alpha1 Conversion v1 to v1alpha1]}}}}\n",
            tab("a", "bad"),
            tab("b", "good"),
            tab("c", "good")
        ),
    );
    let (code, text) = world.test(&[]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn slip_04_each_cluster_of_a_test_has_a_token_of_its_own() {
    let world = Fixture::new();
    let tokens = world.path("tokens");
    let noting = format!("sed -n 's/^ *token: //p' \"$KUBECONFIG\" >> '{}'\necho \"hello", tokens.display());
    world.write("modules/010-web/hooks/a.sh", &HOOK.replace("echo \"hello", &noting));
    let case = |name: &str| format!("- name: {name}\n  run: beforeHelm\n  expect: {{runs: [beforeHelm]}}\n");
    world.write("modules/010-web/hooks/a.test.yaml", &(case("one") + &case("two")));
    for _ in 0..2 {
        let (code, text) = world.test(&[]);
        assert_eq!(code, 0, "{text}");
    }
    let tokens = fs::read_to_string(tokens).unwrap();
    let found: std::collections::BTreeSet<&str> =
        tokens.lines().map(|token| token.trim_matches('"')).collect();
    assert_eq!((tokens.lines().count(), found.len()), (4, 4), "{tokens}");
    assert!(found.iter().all(|token| token.len() >= 43), "256 random bits need 43 characters: {found:?}");
}

#[test]
fn a_step_that_reconciles_an_object_as_it_is_runs_its_key_once_more() {
    const CONTROLLER: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  echo '{"configVersion": "v1", "reconcile": [{"name": "maps", "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"own": "yes"}},
    "children": [{"apiVersion": "v1", "kind": "Secret"}]}]}'
  exit 0
fi
jq '.[0] | {children: [{apiVersion: "v1", kind: "Secret", metadata: {name: "a", namespace: "web"}, stringData: {seen: "\(.children.Secret | length)"}}]}' \
  "$BINDING_CONTEXT_PATH" > "$RECONCILE_RESULT_PATH"
"#;
    let world = Fixture::new();
    world.write("modules/010-web/hooks/maps.sh", CONTROLLER);
    let test = |seen: &str| {
        let step = "  - reconcile: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web, labels: {own: 'yes'}}}\n";
        let expect = format!(
            "    expect: {{runs: [maps Reconcile web/a], children: [{{kind: Secret, metadata: {{name: a}}, stringData: {{seen: '{seen}'}}}}]}}\n"
        );
        world.write(
            "modules/010-web/hooks/maps.test.yaml",
            &format!("tests:\n- run: maps\n  steps:\n{step}{step}{step}{expect}"),
        );
        world.test(&["modules/010-web/hooks/maps.test.yaml"])
    };
    let (code, printed) = test("1");
    assert_eq!(code, 0, "{printed}");
    let (code, printed) = test("2");
    assert!(code != 0 && printed.contains("seen"), "{printed}");
}

#[test]
fn a_step_that_reconciles_an_object_whose_key_waits_is_an_error_that_says_for_what() {
    const CONTROLLER: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  echo '{"configVersion": "v1", "reconcile": [{"name": "maps", "apiVersion": "v1", "kind": "ConfigMap", "children": [{"apiVersion": "monitoring.example.com/v1", "kind": "Watcher"}]}]}'
  exit 0
fi
exit 7
"#;
    let world = Fixture::new();
    world.write("modules/010-web/hooks/maps.sh", CONTROLLER);
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
    for expect in ["", ", expect: {children: [], status: {}}"] {
        let text = format!("tests:\n- run: maps\n  steps:\n  - {{reconcile: {object}{expect}}}\n");
        world.write("modules/010-web/hooks/maps.test.yaml", &text);
        let (code, printed) = world.test(&["modules/010-web/hooks/maps.test.yaml"]);
        let why = "the key of ConfigMap a did not run; it waits for: kind ";
        assert!(code != 0 && printed.contains(why) && printed.contains("Watcher"), "{printed}");
    }
}

#[test]
fn a_step_that_reconciles_the_object_of_no_controller_is_an_error() {
    const CONTROLLER: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  echo '{"configVersion": "v1", "reconcile": [{"name": "maps", "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"own": "yes"}}}]}'
  exit 0
fi
echo '{}' > "$RECONCILE_RESULT_PATH"
"#;
    let world = Fixture::new();
    world.write("modules/010-web/hooks/maps.sh", CONTROLLER);
    let object = "apiVersion: v1, metadata: {name: a, labels: {own: 'yes'}}";
    let test = |kind: &str| {
        world.write(
            "modules/010-web/hooks/maps.test.yaml",
            &format!("tests:\n- run: maps\n  steps:\n  - reconcile: {{kind: {kind}, {object}}}\n"),
        );
        world.test(&["modules/010-web/hooks/maps.test.yaml"])
    };
    let (code, printed) = test("ConfigMap");
    assert_eq!(code, 0, "{printed}");
    let (code, printed) = test("Secret");
    assert!(
        code != 0 && printed.contains("there is no controller of kind Secret; known are ConfigMap"),
        "{printed}"
    );
}
