//! Findings as a tree: one node for each schema that an instance does not fit.
//!
//! The library reports a flat list; Helm's shows which findings belong to the same
//! schema. The path that the evaluation took says so.

use std::collections::BTreeMap;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::message::{self, quote};

/// One finding, and those that led to it.
struct Finding {
    at: String,
    text: String,
    causes: Vec<Finding>,
}

/// Returns a line for each of `errors`.
pub(super) fn print(errors: &[&ValidationError<'_>], schema: &Value) -> String {
    let mut lines = String::new();
    for finding in findings(errors, 0, schema) {
        finding.print(0, &mut lines);
    }
    lines
}

impl Finding {
    fn leaf(error: &ValidationError<'_>, text: String) -> Self {
        Self { at: error.instance_path().as_str().to_owned(), text, causes: Vec::new() }
    }

    /// Returns what holds `causes` together, or the only one.
    fn group(mut causes: Vec<Self>, at: &str) -> Option<Self> {
        if causes.len() < 2 {
            return causes.pop();
        }
        Some(Self { at: at.to_owned(), text: "validation failed".to_owned(), causes })
    }

    fn print(&self, indent: usize, lines: &mut String) {
        for _ in 0..indent {
            lines.push_str("  ");
        }
        lines.push_str("- at ");
        lines.push_str(&quote(&self.at));
        lines.push_str(": ");
        lines.push_str(&self.text);
        lines.push('\n');
        for cause in &self.causes {
            cause.print(indent + 1, lines);
        }
    }
}

/// Returns the findings of one schema about one instance; `depth` is how many
/// segments of the evaluation's path lead to that schema.
#[expect(clippy::wildcard_enum_match_arm, reason = "only two kinds are special here")]
fn findings(errors: &[&ValidationError<'_>], depth: usize, schema: &Value) -> Vec<Finding> {
    let mut own: Vec<Finding> = Vec::new();
    let mut missing: BTreeMap<Vec<String>, (String, Vec<String>)> = BTreeMap::new();
    let mut inner: BTreeMap<(Vec<String>, Vec<String>), Vec<&ValidationError<'_>>> = BTreeMap::new();
    for error in errors {
        let path = segments(error.evaluation_path());
        let rest = path.get(depth..).unwrap_or_default();
        if let Some(step) = step(rest) {
            let at = instance_of_step(error, rest, step);
            inner.entry((rest.get(..step).unwrap_or_default().to_vec(), at)).or_default().push(error);
            continue;
        }
        match error.kind() {
            Kind::Type { .. } => return vec![Finding::leaf(error, message::of(error))],
            Kind::Required { property } => {
                if rest.last().is_some_and(|keyword| keyword.starts_with("depend")) {
                    if missing.insert(rest.to_vec(), (String::new(), Vec::new())).is_none() {
                        own.extend(dependents(error, schema));
                    }
                    continue;
                }
                let place = missing.entry(rest.to_vec()).or_default();
                error.instance_path().as_str().clone_into(&mut place.0);
                place.1.push(property.as_str().unwrap_or_default().to_owned());
            }
            _ => own.extend(of_error(error, path.len(), schema)),
        }
    }
    for (at, names) in missing.into_values().filter(|(_, names)| !names.is_empty()) {
        own.push(Finding { at, text: message::required(&names), causes: Vec::new() });
    }
    for (kind, causes) in by_step(inner, depth, schema) {
        match kind.as_deref() {
            Some("allOf") => own.push(together("'allOf' failed", causes)),
            Some(_) | None => own.extend(causes),
        }
    }
    own.sort_by(|a, b| a.at.cmp(&b.at));
    own
}

type Inner<'e> = BTreeMap<(Vec<String>, Vec<String>), Vec<&'e ValidationError<'e>>>;

/// Returns the findings of the schemas below one, those of `allOf` together.
fn by_step(inner: Inner<'_>, depth: usize, schema: &Value) -> Vec<(Option<String>, Vec<Finding>)> {
    let mut kinds: Vec<(Option<String>, Vec<Finding>)> = Vec::new();
    for ((step, at), errors) in inner {
        let found = findings(&errors, depth + step.len(), schema);
        let Some(found) = Finding::group(found, &pointer(&at)) else { continue };
        let kind = step.first().cloned();
        match kinds.last_mut() {
            Some((last, causes)) if *last == kind => causes.push(found),
            Some(_) | None => kinds.push((kind, vec![found])),
        }
    }
    kinds
}

/// Returns a finding for each property that asks for others that are missing.
fn dependents(error: &ValidationError<'_>, schema: &Value) -> Vec<Finding> {
    let (Some(Value::Object(wanted)), Some(found)) =
        (schema.pointer(error.schema_path().as_str()), error.instance().as_object())
    else {
        return vec![Finding::leaf(error, message::of(error))];
    };
    let mut findings = Vec::new();
    for (property, needs) in wanted.iter().filter(|(property, _)| found.contains_key(*property)) {
        let needs = needs.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(Value::as_str);
        let missing: Vec<String> =
            needs.filter(|name| !found.contains_key(*name)).map(str::to_owned).collect();
        if !missing.is_empty() {
            findings.push(Finding::leaf(error, message::dependent(property, &missing)));
        }
    }
    findings
}

fn together(text: &str, causes: Vec<Finding>) -> Finding {
    let at = causes.first().map(|cause| cause.at.clone()).unwrap_or_default();
    let at = causes.iter().map(|cause| &cause.at).min_by_key(|at| at.len()).cloned().unwrap_or(at);
    Finding { at, text: text.to_owned(), causes }
}

/// Returns the findings that one error of the library stands for.
#[expect(clippy::wildcard_enum_match_arm, reason = "most kinds stand for one finding")]
fn of_error(error: &ValidationError<'_>, depth: usize, schema: &Value) -> Vec<Finding> {
    let leaf = || Finding::leaf(error, message::of(error));
    let nested = |context: &[Vec<ValidationError<'static>>]| {
        let mut finding = leaf();
        for (index, errors) in context.iter().enumerate() {
            let errors: Vec<_> = errors.iter().collect();
            let found = findings(&errors, alternative_depth(&errors, depth, index), schema);
            finding.causes.extend(Finding::group(found, &finding.at));
        }
        vec![finding]
    };
    match error.kind() {
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => nested(context),
        Kind::PropertyNames { error: inner } => {
            let mut finding = leaf();
            finding.at = String::new();
            finding.causes.push(Finding { at: String::new(), ..Finding::leaf(inner, message::of(inner)) });
            vec![finding]
        }
        Kind::UnevaluatedProperties { unexpected } => unexpected
            .iter()
            .map(|name| Finding { at: below(&leaf().at, name), text: "false schema".to_owned(), ..leaf() })
            .collect(),
        Kind::UnevaluatedItems { unexpected } => {
            let items = error.instance().as_array().map_or(0, Vec::len);
            (items.saturating_sub(unexpected.len())..items)
                .map(|index| Finding {
                    at: below(&leaf().at, &index.to_string()),
                    text: "false schema".to_owned(),
                    ..leaf()
                })
                .collect()
        }
        _ => vec![leaf()],
    }
}

/// Returns how long the path to the alternative `index` of an `anyOf` is.
fn alternative_depth(errors: &[&ValidationError<'_>], depth: usize, index: usize) -> usize {
    let with_index = errors.iter().all(|error| {
        segments(error.evaluation_path()).get(depth).is_some_and(|segment| *segment == index.to_string())
    });
    depth + usize::from(with_index)
}

/// Returns how many segments at the start of `rest` lead into another schema.
fn step(rest: &[String]) -> Option<usize> {
    let length = match rest.first()?.as_str() {
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "allOf"
        | "prefixItems" => 2,
        "items" if rest.get(1).is_some_and(|next| next.bytes().all(|c| c.is_ascii_digit())) => 2,
        "items"
        | "additionalItems"
        | "additionalProperties"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "if"
        | "then"
        | "else"
        | "$ref"
        | "$dynamicRef"
        | "$recursiveRef" => 1,
        _ => return None,
    };
    (rest.len() > length).then_some(length)
}

/// Returns the instance that the schema behind a step is about.
fn instance_of_step(error: &ValidationError<'_>, rest: &[String], step: usize) -> Vec<String> {
    let instance = segments(error.instance_path());
    // What comes behind the step may lead deeper into the instance.
    let mut deeper = 0;
    let mut behind = rest.get(step..).unwrap_or_default();
    while let Some(next) = self::step(behind) {
        deeper += usize::from(goes_deeper(behind));
        behind = behind.get(next..).unwrap_or_default();
    }
    if matches!(error.kind(), Kind::FalseSchema) && !behind.is_empty() {
        deeper += usize::from(goes_deeper(behind));
    }
    let length = instance.len().saturating_sub(deeper);
    instance.get(..length).unwrap_or_default().to_vec()
}

/// Reports whether the schema behind the first step is about a part of the instance.
fn goes_deeper(rest: &[String]) -> bool {
    rest.first().is_some_and(|keyword| {
        matches!(
            keyword.as_str(),
            "properties"
                | "patternProperties"
                | "prefixItems"
                | "items"
                | "additionalItems"
                | "additionalProperties"
                | "unevaluatedItems"
                | "unevaluatedProperties"
        )
    })
}

fn segments(location: &jsonschema::paths::Location) -> Vec<String> {
    let text = location.as_str();
    if text.is_empty() {
        return Vec::new();
    }
    text.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect()
}

fn pointer(segments: &[String]) -> String {
    segments.iter().fold(String::new(), |path, segment| below(&path, segment))
}

fn below(path: &str, segment: &str) -> String {
    format!("{path}/{}", segment.replace('~', "~0").replace('/', "~1"))
}
