//! What is wrong with the rules of a schema, in the words of the real server.

use serde_json::Value as Json;

use super::rule::{compile, compile_message, text};
use super::{KEYWORD, MAX_DEPTH, field_path, is_embedded};
use crate::program::Program;
use crate::schema::{MAX_REQUEST, declared, properties};

/// How much one rule may cost at most, times how often it may be evaluated for one object.
const RULE_LIMIT: u64 = 10_000_000;

/// How much all rules of a schema may cost together.
const TOTAL_LIMIT: u64 = 100_000_000;

/// How many of the most expensive rules are named.
const MOST_EXPENSIVE: usize = 4;

/// One thing that is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path of the field.
    pub field: String,
    /// What kind of error it is.
    pub kind: ProblemKind,
    /// What people are told.
    pub detail: String,
}

/// What kind of error it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// Something has to be there.
    Required,
    /// Something may not be.
    Forbidden,
    /// The value, as messages show it, is wrong.
    Invalid(String),
    /// The value is none of these.
    NotSupported(String, &'static [&'static str]),
}

/// What a rule may have as its reason.
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Returns what is wrong with the rules of a schema at `path`. Expressions are looked at only where everything else is right.
pub fn problems(schema: &Json, path: &str) -> Vec<Problem> {
    let mut looking = Looking { form: Vec::new(), rules: Vec::new(), total: 0, expensive: Vec::new() };
    let context = Context { is_root: true, cardinality: Some(1), uncorrelated: None };
    looking.level(schema, path, &context, MAX_DEPTH);
    let Looking { form, rules, total, mut expensive } = looking;
    let mut problems = form;
    problems.extend(rules);
    if total > TOTAL_LIMIT {
        expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        problems.extend(expensive.into_iter().take(MOST_EXPENSIVE).map(|(field, _)| Problem {
            field,
            kind: ProblemKind::Forbidden,
            detail: detail.to_owned(),
        }));
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        problems.push(Problem {
            field: path.to_owned(),
            kind: ProblemKind::Forbidden,
            detail: too_expensive(what, total, TOTAL_LIMIT),
        });
    }
    problems
}

/// Where a level is.
#[derive(Clone)]
struct Context {
    is_root: bool,
    /// How often an object may have the level; `None` if there is no limit.
    cardinality: Option<u64>,
    /// The level whose parts can't be compared with what they were.
    uncorrelated: Option<String>,
}

struct Looking {
    /// What is wrong beside expressions.
    form: Vec<Problem>,
    rules: Vec<Problem>,
    total: u64,
    expensive: Vec<(String, u64)>,
}

impl Looking {
    fn level(&mut self, schema: &Json, path: &str, context: &Context, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let before = self.form.len();
        let cardinality = match (context.cardinality, most_parts(schema)) {
            (Some(own), Some(parts)) => Some(own.saturating_mul(parts)),
            _ => None,
        };
        let below = |schema: &Json, uncorrelated: bool| Context {
            is_root: is_embedded(schema),
            cardinality,
            uncorrelated: match &context.uncorrelated {
                None if uncorrelated => Some(path.to_owned()),
                known => known.clone(),
            },
        };
        if let Some(values @ Json::Object(_)) = schema.get("additionalProperties") {
            self.level(values, &format!("{path}.additionalProperties"), &below(values, false), depth);
        }
        for (name, property) in properties(schema) {
            self.level(property, &format!("{path}.properties[{name}]"), &below(property, false), depth);
        }
        if let Some(items @ Json::Object(_)) = schema.get("items") {
            let is_map = schema.get("x-kubernetes-list-type") == Some(&Json::from("map"));
            self.level(items, &format!("{path}.items"), &below(items, !is_map), depth);
        }
        let Some(rules) = schema.get(KEYWORD).and_then(Json::as_array) else { return };
        for (index, rule) in rules.iter().enumerate() {
            self.form(rule, schema, &format!("{path}.{KEYWORD}[{index}]"));
        }
        if self.form.len() > before || rules.is_empty() {
            return;
        }
        let Some(declared) = declared(schema, context.is_root) else {
            return self.add(
                &format!("{path}.{KEYWORD}"),
                ProblemKind::Forbidden,
                "values of this type can't be looked at by rules: give the schema a type",
            );
        };
        let declared = declared.named("selfType");
        for (index, rule) in rules.iter().enumerate() {
            let path = format!("{path}.{KEYWORD}[{index}]");
            self.rule(rule, &declared, &path, context);
        }
    }

    /// Looks at everything of a rule but its expressions.
    fn form(&mut self, rule: &Json, schema: &Json, path: &str) {
        let has_lines = |text: &str| text.contains(['\n', '\r']);
        let (message, expression) = (text(rule, "message"), text(rule, "rule").trim());
        let quoted = |text: &str| ProblemKind::Invalid(golang::strconv::quote(text.as_bytes()));
        let at = |field: &str| format!("{path}.{field}");
        let mut add = |field: &str, kind: ProblemKind, detail: &str| {
            self.form.push(Problem { field: at(field), kind, detail: detail.to_owned() });
        };
        if expression.is_empty() {
            add("rule", ProblemKind::Required, "rule is not specified");
        } else if !message.is_empty() && message.trim().is_empty() {
            add("message", quoted(message), "must be non-empty if specified");
        } else if has_lines(message.trim()) {
            add("message", quoted(message), "must not contain line breaks");
        } else if has_lines(expression) && message.is_empty() {
            add("message", ProblemKind::Required, "message must be specified if rule contains line breaks");
        }
        let made = text(rule, "messageExpression");
        if !made.is_empty() && made.trim().is_empty() {
            add(
                "messageExpression",
                ProblemKind::Required,
                "messageExpression must be non-empty if specified",
            );
        }
        if let Some(reason) = rule.get("reason").and_then(Json::as_str)
            && !REASONS.contains(&reason)
        {
            add("reason", ProblemKind::NotSupported(reason.to_owned(), &REASONS), "");
        }
        let field = text(rule, "fieldPath");
        if !field.is_empty() {
            if field.trim().is_empty() {
                add("fieldPath", quoted(field), "must be non-empty if specified");
            }
            if has_lines(field) {
                add("fieldPath", quoted(field), "must not contain line breaks");
            }
            if field_path::normalized(field, schema).is_err() {
                add("fieldPath", quoted(field), "must be a valid path");
            }
        }
    }

    fn add(&mut self, field: &str, kind: ProblemKind, detail: &str) {
        self.rules.push(Problem { field: field.to_owned(), kind, detail: detail.to_owned() });
    }

    /// Adds to what all rules cost.
    fn pay(&mut self, field: String, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_LIMIT / 100 {
            self.expensive.push((field, cost));
        }
    }

    fn rule(&mut self, rule: &Json, declared: &crate::Declared, path: &str, context: &Context) {
        let (at_rule, at_message) = (format!("{path}.rule"), format!("{path}.messageExpression"));
        let program = compile(rule, declared);
        let often = context.cardinality.unwrap_or(MAX_REQUEST / (declared.min_size + 1));
        let cost =
            program.as_ref().map_or(0, |program| program.most_cost(Some(declared)).saturating_mul(often));
        if cost > RULE_LIMIT {
            let detail = too_expensive("estimated rule cost", cost, RULE_LIMIT);
            self.add(&at_rule, ProblemKind::Forbidden, &detail);
        }
        self.pay(at_rule.clone(), cost);
        if let Err(problem) = &program {
            self.add(&at_rule, ProblemKind::Invalid(shown(rule)), problem);
        }
        // The real server looks at the message of rules that compile only.
        match compile_message(rule, declared).filter(|_| program.is_ok()) {
            Some(Err(problem)) => self.add(&at_message, ProblemKind::Invalid(shown(rule)), &problem),
            Some(Ok(message)) => {
                let cost = message.most_cost(Some(declared));
                if cost > RULE_LIMIT {
                    let detail = too_expensive("estimated messageExpression cost", cost, RULE_LIMIT);
                    self.add(&at_message, ProblemKind::Forbidden, &detail);
                }
                self.pay(at_message, cost);
            }
            None => {}
        }
        self.old(rule, program.as_ref().ok(), path, context);
    }

    /// Looks at how a rule uses what was before.
    fn old(&mut self, rule: &Json, program: Option<&Program>, path: &str, context: &Context) {
        if program.is_some_and(|program| program.mentions("oldSelf")) {
            if let Some(within) = &context.uncorrelated {
                let shown = golang::strconv::quote(text(rule, "rule").as_bytes());
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                self.add(&format!("{path}.rule"), ProblemKind::Invalid(shown), &detail);
            }
        } else if let Some(optional) = rule.get("optionalOldSelf").filter(|optional| !optional.is_null()) {
            let detail = "may not be set if oldSelf is not used in rule";
            self.add(&format!("{path}.optionalOldSelf"), ProblemKind::Invalid(optional.to_string()), detail);
        }
    }
}

/// Returns how many parts a value of a schema may have; `None` if there is no limit.
fn most_parts(schema: &Json) -> Option<u64> {
    let limit = |field: &str| schema.get(field).map(|most| most.as_u64().unwrap_or(0));
    match text(schema, "type") {
        "object" if schema.get("additionalProperties").is_some() => limit("maxProperties"),
        "array" => limit("maxItems"),
        _ => Some(1),
    }
}

/// Returns a rule as errors of the real server show it.
fn shown(rule: &Json) -> String {
    let escaped = |text: String| text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
    let quoted = |field: &str| escaped(Json::from(text(rule, field)).to_string());
    let optional = |field: &str| rule.get(field).unwrap_or(&Json::Null).to_string();
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        quoted("rule"),
        quoted("message"),
        quoted("messageExpression"),
        optional("reason"),
        quoted("fieldPath"),
        optional("optionalOldSelf"),
    )
}

#[expect(clippy::cast_precision_loss, reason = "a factor is shown with one digit")]
fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
