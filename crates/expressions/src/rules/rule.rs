//! One rule of a schema.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::field_path;
use crate::cost::PER_CALL_LIMIT;
use crate::declared::Declared;
use crate::environment::Environment;
use crate::failure::FailureKind;
use crate::program::Program;
use crate::types::Type;
use crate::value::Value;

/// How long a message of an expression may be, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// One rule of a schema.
#[derive(Debug)]
pub(super) struct Rule {
    /// The rule, or why it can't be evaluated; nothing if it is empty.
    program: Option<Result<Program, String>>,
    /// What people are told that break it.
    message: String,
    message_program: Option<Program>,
    pub(super) reason: &'static str,
    field_path: Option<String>,
    pub(super) uses_old: bool,
    takes_missing_old: bool,
    /// What stands for the rule in errors.
    shown: String,
}

/// What comes of a rule.
pub(super) enum Verdict {
    Holds,
    /// It can't be evaluated.
    Fails(String),
    /// No other rule is evaluated; without a text since all of them cost too much.
    Ends(Option<String>),
    /// It is broken; perhaps no other rule is evaluated.
    Broken {
        detail: String,
        ends: bool,
    },
}

pub(super) fn text<'a>(rule: &'a Json, field: &str) -> &'a str {
    rule.get(field).and_then(Json::as_str).unwrap_or_default()
}

/// Returns the variables of a rule.
pub(super) fn environment(declared: &Declared, optional_old: bool) -> Environment {
    let of = declared.of.clone();
    let old = if optional_old { Type::optional(of.clone()) } else { of.clone() };
    Environment::default().with("self", of).with("oldSelf", old)
}

/// Compiles a rule.
pub(super) fn compile(rule: &Json, declared: &Declared) -> Result<Program, String> {
    let optional = rule.get("optionalOldSelf") == Some(&Json::Bool(true));
    let program = Program::compile(text(rule, "rule"), &environment(declared, optional))
        .map_err(|problems| format!("compilation failed: {problems}"))?;
    if program.output() != Type::Bool {
        return Err("cel expression must evaluate to a bool".to_owned());
    }
    match program.unusable() {
        Some(problem) => Err(format!("program instantiation failed: {problem}")),
        None => Ok(program),
    }
}

/// Compiles the expression that makes the message of a rule; nothing if it has none.
pub(super) fn compile_message(rule: &Json, declared: &Declared) -> Option<Result<Program, String>> {
    let expression = text(rule, "messageExpression");
    if expression.is_empty() {
        return None;
    }
    let optional = rule.get("optionalOldSelf") == Some(&Json::Bool(true));
    let program = Program::compile(expression, &environment(declared, optional));
    Some(match program {
        Err(problems) => Err(format!("messageExpression compilation failed: {problems}")),
        Ok(program) if program.output() != Type::String => {
            Err("messageExpression must evaluate to a string".to_owned())
        }
        Ok(program) => match program.unusable() {
            Some(problem) => Err(format!("messageExpression instantiation failed: {problem}")),
            None => Ok(program),
        },
    })
}

impl Rule {
    pub(super) fn read(rule: &Json, schema: &Json, declared: &Declared) -> Self {
        let is_empty = text(rule, "rule").trim().is_empty();
        let program = (!is_empty).then(|| compile(rule, declared));
        let compiled = program.as_ref().and_then(|program| program.as_ref().ok());
        let message = text(rule, "message");
        let shown = if message.is_empty() { text(rule, "rule") } else { message }.trim().to_owned();
        let path = text(rule, "fieldPath");
        Self {
            uses_old: compiled.is_some_and(|program| program.mentions("oldSelf")),
            message: if message.is_empty() { format!("failed rule: {shown}") } else { shown.clone() },
            message_program: compile_message(rule, declared).and_then(Result::ok),
            reason: match text(rule, "reason") {
                "FieldValueForbidden" => "FieldValueForbidden",
                "FieldValueRequired" => "FieldValueRequired",
                "FieldValueDuplicate" => "FieldValueDuplicate",
                _ => "FieldValueInvalid",
            },
            field_path: field_path::normalized(path, schema).ok().filter(|path| !path.is_empty()),
            takes_missing_old: rule.get("optionalOldSelf") == Some(&Json::Bool(true)),
            program,
            shown,
        }
    }

    /// Returns the path of the field that a broken rule names.
    pub(super) fn field(&self, path: &str) -> String {
        match &self.field_path {
            Some(below) if path.is_empty() => below.clone(),
            Some(below) => format!("{path}.{below}"),
            None => path.to_owned(),
        }
    }

    pub(super) fn judge(&self, own: &Value, old: Option<&Value>, budget: &mut u64) -> Verdict {
        let program = match &self.program {
            None => return Verdict::Holds,
            Some(Err(problem)) => return Verdict::Fails(format!("rule compile error: {problem}")),
            Some(Ok(program)) => program,
        };
        if self.uses_old && old.is_none() && !self.takes_missing_old {
            return Verdict::Holds;
        }
        let given = if self.takes_missing_old {
            Some(old.map_or(Value::Optional(None), |old| Value::some(old.clone())))
        } else {
            old.cloned()
        };
        let variables = variables(own, given);
        let outcome = program.run(&variables, PER_CALL_LIMIT);
        if outcome.cost > *budget {
            return Verdict::Ends(None);
        }
        *budget -= outcome.cost;
        let shown = &self.shown;
        match outcome.value {
            Ok(Value::Bool(true)) => Verdict::Holds,
            Ok(_) => self.message(&variables, budget),
            Err(failure) => match failure.kind {
                FailureKind::NoSuchOverload(..) => Verdict::Fails(format!(
                    "'{failure}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
                )),
                FailureKind::Cost => Verdict::Ends(Some(format!(
                    "'{failure}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
                ))),
                _ => Verdict::Fails(format!("{failure} evaluating rule: {shown}")),
            },
        }
    }

    fn message(&self, variables: &BTreeMap<&'static str, Value>, budget: &mut u64) -> Verdict {
        let plain = || Verdict::Broken { detail: self.message.clone(), ends: false };
        let Some(program) = &self.message_program else { return plain() };
        let outcome = program.run(variables, PER_CALL_LIMIT);
        if outcome.cost > *budget {
            let detail = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run";
            return Verdict::Broken { detail: detail.to_owned(), ends: true };
        }
        *budget -= outcome.cost;
        match outcome.value {
            Ok(Value::String(text)) => {
                let text = text.trim();
                if text.is_empty() || text.len() > MAX_MESSAGE || text.contains('\n') {
                    return plain();
                }
                Verdict::Broken { detail: text.to_owned(), ends: false }
            }
            Err(failure) if failure.kind == FailureKind::Cost => {
                let text = program.text();
                let detail = format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: {text:?}"
                );
                Verdict::Broken { detail, ends: true }
            }
            _ => plain(),
        }
    }
}

/// What a rule is given.
fn variables(own: &Value, old: Option<Value>) -> BTreeMap<&'static str, Value> {
    let mut variables = BTreeMap::from([("self", own.clone())]);
    variables.extend(old.map(|old| ("oldSelf", old)));
    variables
}
