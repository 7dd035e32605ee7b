//! The sections for webhooks: `kubernetesValidating`, `kubernetesMutating` and
//! `kubernetesCustomResourceConversion`.

use std::collections::BTreeSet;

use expressions::{Program, Type};

use super::fields::Fields;
use super::kubernetes::problem_of_includes;
use super::report::{Path, Report};
use super::selector;
use crate::hook::domain::{is_webhook_name, webhook_id};
use crate::hook::spec::{
    AdmissionBinding, AdmissionRule, ConversionBinding, FailurePolicy, HookSpec, SideEffects,
};

/// The section for webhooks that change objects.
const MUTATING: &str = "kubernetesMutating";

const OPERATIONS: [&str; 5] = ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"];

/// How long the API server waits for a webhook that does not say, in seconds.
const DEFAULT_TIMEOUT: i64 = 10;

/// How many conditions a webhook has at most.
const MOST_CONDITIONS: usize = 64;

/// The longest name of a binding that is completed to the name of a webhook, in letters of its id.
const LONGEST_ID: usize = 100;

/// Reads one of the two admission sections.
pub(super) fn read(fields: &mut Fields<'_>, section: &'static str) -> Vec<AdmissionBinding> {
    let items = fields.objects(section, 1).unwrap_or_default();
    items.into_iter().map(|item| read_one(item, section == MUTATING)).collect()
}

fn read_one(mut item: Fields<'_>, is_mutating: bool) -> AdmissionBinding {
    item.require(&["name"]);
    let rules = item.objects("rules", 1).unwrap_or_default().into_iter().map(read_rule).collect();
    let namespace_selector = item.object("namespace").and_then(|mut namespace| {
        namespace.require(&["labelSelector"]);
        let labels = selector::labels(&mut namespace, "labelSelector");
        namespace.finish();
        labels
    });
    let mut match_conditions = Vec::new();
    for mut condition in item.objects("matchConditions", 0).unwrap_or_default() {
        condition.require(&["name", "expression"]);
        let name = condition.string("name").unwrap_or_default();
        match_conditions.push((name, condition.string("expression").unwrap_or_default()));
    }
    let binding = AdmissionBinding {
        name: item.string("name").unwrap_or_default(),
        rules,
        object_selector: selector::labels(&mut item, "labelSelector"),
        namespace_selector,
        failure_policy: item.word("failurePolicy", &["Ignore", "Fail"]).map(|word| match word {
            "Ignore" => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        }),
        side_effects: match item.word("sideEffects", &["None", "NoneOnDryRun"]) {
            Some("NoneOnDryRun") => SideEffects::NoneOnDryRun,
            Some(_) | None => SideEffects::None,
        },
        timeout_seconds: item.integer("timeoutSeconds").unwrap_or(DEFAULT_TIMEOUT),
        include_system_namespaces: item.boolean("includeSystemNamespaces").unwrap_or(false),
        reinvoked: is_mutating && item.word("reinvocationPolicy", &["Never", "IfNeeded"]) == Some("IfNeeded"),
        match_conditions,
        include_snapshots_from: item.strings("includeSnapshotsFrom", 1).unwrap_or_default(),
        group: item.string("group").filter(|group| !group.is_empty()),
    };
    item.finish();
    binding
}

fn read_rule(mut item: Fields<'_>) -> AdmissionRule {
    item.require(&["apiVersions", "apiGroups", "resources", "operations"]);
    let operations = item.words("operations", 1, &OPERATIONS).unwrap_or_default();
    let mut list = |key| item.strings(key, 1).unwrap_or_default();
    let rule = AdmissionRule {
        api_groups: list("apiGroups"),
        api_versions: list("apiVersions"),
        resources: list("resources"),
        operations: operations.into_iter().map(ToOwned::to_owned).collect(),
        scope: item.word("scope", &["Cluster", "Namespaced", "*"]).map(ToOwned::to_owned),
    };
    item.finish();
    rule
}

/// Reads the section for conversions.
pub(super) fn read_conversions(fields: &mut Fields<'_>) -> Vec<ConversionBinding> {
    let items = fields.objects("kubernetesCustomResourceConversion", 1).unwrap_or_default();
    let read_one = |mut item: Fields<'_>| {
        item.require(&["name", "crdName", "conversions"]);
        let mut conversions = Vec::new();
        for mut rule in item.objects("conversions", 1).unwrap_or_default() {
            rule.require(&["fromVersion", "toVersion"]);
            let from = rule.string("fromVersion").unwrap_or_default();
            conversions.push((from, rule.string("toVersion").unwrap_or_default()));
            rule.finish();
        }
        let binding = ConversionBinding {
            name: item.string("name").unwrap_or_default(),
            crd_name: item.string("crdName").unwrap_or_default(),
            conversions,
            include_snapshots_from: item.strings("includeSnapshotsFrom", 1).unwrap_or_default(),
            group: item.string("group").filter(|group| !group.is_empty()),
        };
        item.finish();
        binding
    };
    items.into_iter().map(read_one).collect()
}

/// Notes what is wrong with the meaning of the validating webhooks.
pub(super) fn check_validating(spec: &HookSpec, report: &Report) {
    check(spec, &spec.validating, "kubernetesValidating", report);
    check_api(&spec.validating, "kubernetesValidating", report);
}

/// Notes what is wrong with the meaning of the mutating webhooks.
pub(super) fn check_mutating(spec: &HookSpec, report: &Report) {
    check(spec, &spec.mutating, MUTATING, report);
    check_api(&spec.mutating, MUTATING, report);
}

/// Notes what the API server would refuse. It refuses all webhooks for one that is wrong.
fn check_api(bindings: &[AdmissionBinding], section_name: &str, report: &Report) {
    let section = Path::default().key(section_name);
    let mut names = BTreeSet::new();
    for (index, binding) in bindings.iter().enumerate() {
        let path = section.item(index);
        let note = |key: &str, problem: String| {
            report.note(&path.key(key), format!("invalid {section_name} config [{index}]: {problem}"));
        };
        let AdmissionBinding { name, timeout_seconds, .. } = binding;
        if let Some(problem) = problem_of_name(name) {
            note("name", format!("name is invalid: {problem}"));
        } else if !names.insert(if is_webhook_name(name) { name.clone() } else { webhook_id(name) }) {
            note("name", format!("name is invalid: '{name}' is used twice"));
        }
        if !(1..=30).contains(timeout_seconds) {
            note(
                "timeoutSeconds",
                format!("timeoutSeconds is invalid: {timeout_seconds} must be between 1 and 30"),
            );
        }
        for problem in binding.rules.iter().filter_map(problem_of_rule) {
            note("rules", format!("rules is invalid: {problem}"));
        }
        for problem in problems_of_conditions(&binding.match_conditions) {
            note("matchConditions", format!("matchConditions is invalid: {problem}"));
        }
    }
}

/// Returns why a webhook can't have this name. One without dots is completed by the name of its module.
fn problem_of_name(name: &str) -> Option<String> {
    if is_webhook_name(name) {
        return None;
    }
    if name.split('.').count() >= 3 {
        return Some(format!(
            "'{name}' should be a domain with at least three segments separated by dots, in lower case"
        ));
    }
    let id = webhook_id(name);
    if id.is_empty() {
        return Some(format!("'{name}' has no letter or digit to make the name of a webhook of"));
    }
    (id.len() > LONGEST_ID).then(|| format!("'{name}' is longer than {LONGEST_ID} letters"))
}

fn check(spec: &HookSpec, bindings: &[AdmissionBinding], section: &str, report: &Report) {
    let section_path = Path::default().key(section);
    for (index, binding) in bindings.iter().enumerate() {
        let path = section_path.item(index);
        let note = |key: &str, problem: String| {
            report.note(&path.key(key), format!("invalid {section} config [{index}]: {problem}"));
        };
        if let Some(problem) = problem_of_includes(spec, &binding.include_snapshots_from) {
            note("includeSnapshotsFrom", format!("includeSnapshotsFrom is invalid: {problem}"));
        }
        let selectors = [
            ("labelSelector", "labelSelector", &binding.object_selector),
            ("namespace", "namespace.labelSelector", &binding.namespace_selector),
        ];
        for (key, name, labels) in selectors {
            if let Some(problem) = labels.as_ref().and_then(selector::problem_of_labels) {
                note(key, format!("{name} is invalid: {problem}"));
            }
        }
    }
}

/// Notes what is wrong with the meaning of the conversions.
pub(super) fn check_conversions(spec: &HookSpec, report: &Report) {
    let section = Path::default().key("kubernetesCustomResourceConversion");
    for (index, binding) in spec.conversions.iter().enumerate() {
        if let Some(problem) = problem_of_includes(spec, &binding.include_snapshots_from) {
            let path = section.item(index).key("includeSnapshotsFrom");
            let message = format!(
                "invalid kubernetesCustomResourceConversion config [{index}]: includeSnapshotsFrom is invalid: {problem}"
            );
            report.note(&path, message);
        }
    }
}

/// Returns why the API server would refuse these conditions.
fn problems_of_conditions(conditions: &[(String, String)]) -> Vec<String> {
    let mut problems = Vec::new();
    if conditions.len() > MOST_CONDITIONS {
        problems.push(format!("there are {}, and {MOST_CONDITIONS} at most are allowed", conditions.len()));
    }
    let environment = expressions::admission(false, true);
    let mut names = BTreeSet::new();
    for (name, expression) in conditions.iter().take(MOST_CONDITIONS) {
        for problem in objects::names::qualified(name) {
            problems.push(format!("name '{name}': {problem}"));
        }
        if !names.insert(name) {
            problems.push(format!("name '{name}' is used twice"));
        }
        if expression.trim().is_empty() {
            problems.push(format!("'{name}' has no expression"));
        } else if let Err(problem) = Program::compile_to(expression, &environment, &[Type::Bool]) {
            // The lines that follow show the place in the text.
            problems.push(format!("'{name}': {}", problem.lines().next().unwrap_or_default()));
        }
    }
    problems
}

/// Returns why the API server would refuse this rule.
fn problem_of_rule(rule: &AdmissionRule) -> Option<String> {
    let lists = [
        ("operations", &rule.operations),
        ("apiGroups", &rule.api_groups),
        ("apiVersions", &rule.api_versions),
    ];
    for (name, list) in lists {
        if list.len() > 1 && list.iter().any(|item| item == "*") {
            return Some(format!("if '*' is present in {name}, nothing else may be"));
        }
    }
    if rule.api_versions.iter().any(String::is_empty) {
        return Some("a version in apiVersions is empty".to_owned());
    }
    problem_of_resources(&rule.resources)
}

fn problem_of_resources(resources: &[String]) -> Option<String> {
    let has = |text: &str| resources.iter().any(|resource| resource == text);
    if resources.iter().any(String::is_empty) {
        return Some("a resource is empty".to_owned());
    }
    if resources.len() > 1 && has("*/*") {
        return Some("if '*/*' is present in resources, nothing else may be".to_owned());
    }
    resources.iter().find_map(|resource| {
        let Some((name, sub)) = resource.split_once('/') else {
            return (resource != "*" && has("*")).then(|| format!("'{resource}' is part of '*'"));
        };
        let by_name = sub != "*" && has(&format!("{name}/*"));
        let by_sub = name != "*" && has(&format!("*/{sub}"));
        match (by_name, by_sub) {
            (true, _) => Some(format!("'{resource}' is part of '{name}/*'")),
            (_, true) => Some(format!("'{resource}' is part of '*/{sub}'")),
            (false, false) => None,
        }
    })
}
