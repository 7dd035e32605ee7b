//! A policy whose expressions are compiled.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use expressions::{Environment, Program, Type};
use serde_json::Value;

use crate::fields::{get, has, list, text};

/// How many compiled policies are kept.
const KEPT: usize = 256;

static POLICIES: LazyLock<Mutex<BTreeMap<String, Arc<Policy>>>> = LazyLock::new(Mutex::default);

/// A policy whose expressions are compiled.
pub(crate) struct Policy {
    /// Whether what can't be evaluated lets a write pass.
    pub(super) is_ignored: bool,
    pub(super) param_kind: Option<Value>,
    pub(super) conditions: Vec<Value>,
    pub(super) variables: Vec<(String, Program)>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Annotation>,
    /// What is wrong with the policy, by the path of the field below `spec`, and the text that is wrong.
    pub(crate) problems: Vec<(String, String, String)>,
}

/// One expression that has to be true.
pub(super) struct Validation {
    pub(super) text: String,
    pub(super) program: Result<Program, String>,
    pub(super) message: String,
    pub(super) message_program: Option<Program>,
    pub(super) reason: Option<String>,
}

/// One annotation of the audit log.
pub(super) struct Annotation {
    pub(super) text: String,
    pub(super) program: Result<Program, String>,
}

/// Returns the policy of a specification, compiled once.
pub(super) fn policy(spec: &Value) -> Arc<Policy> {
    let key = spec.to_string();
    let known = || POLICIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(policy) = known().get(&key) {
        return Arc::clone(policy);
    }
    let policy = Arc::new(read(spec));
    let mut known = known();
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert(key, Arc::clone(&policy));
    policy
}

/// Compiles the expressions of a policy.
#[expect(clippy::too_many_lines, reason = "the expressions of a policy, one kind after the other")]
pub(crate) fn read(spec: &Value) -> Policy {
    let has_params = has(spec, "paramKind");
    let composes = !list(spec, "variables").is_empty();
    let environment = |authorizer: bool, params: bool, variables: &[(String, Type)]| -> Environment {
        let environment = expressions::admission(params, authorizer);
        if !composes {
            return environment;
        }
        environment.with("variables", Type::object("kubernetes.variables", variables.iter().cloned()))
    };
    let mut problems = Vec::new();
    let mut variables: Vec<(String, Program)> = Vec::new();
    let mut types: Vec<(String, Type)> = Vec::new();
    for (index, variable) in list(spec, "variables").iter().enumerate() {
        let (name, expression) = (text(variable, "name"), text(variable, "expression"));
        if expression.trim().is_empty() {
            continue;
        }
        match Program::compile_to(expression, &environment(true, has_params, &types), &[Type::Dyn]) {
            Ok(program) => {
                types.push((name.to_owned(), program.output()));
                variables.push((name.to_owned(), program));
            }
            Err(problem) => {
                problems.push((format!("variables[{index}].expression"), expression.to_owned(), problem));
                types.push((name.to_owned(), Type::Dyn));
            }
        }
    }
    let with_authorizer = environment(true, has_params, &types);
    let of_messages = environment(false, has_params, &types);
    let mut add = |place: String, expression: &str, program: &Result<Program, String>| {
        if let Err(problem) = program {
            problems.push((place, expression.to_owned(), problem.clone()));
        }
    };
    let validations = list(spec, "validations").iter().enumerate().map(|(index, validation)| {
        let expression = text(validation, "expression");
        let program = Program::compile_to(expression, &with_authorizer, &[Type::Bool]);
        if !expression.trim().is_empty() {
            add(format!("validations[{index}].expression"), expression, &program);
        }
        let message = text(validation, "messageExpression");
        let made =
            (!message.trim().is_empty()).then(|| Program::compile_to(message, &of_messages, &[Type::String]));
        if let Some(made) = &made {
            add(format!("validations[{index}].messageExpression"), message, made);
        }
        Validation {
            text: expression.to_owned(),
            program,
            message: text(validation, "message").trim().to_owned(),
            message_program: made.and_then(Result::ok),
            reason: get(validation, "reason").as_str().map(str::to_owned),
        }
    });
    let validations: Vec<Validation> = validations.collect();
    let annotations = list(spec, "auditAnnotations").iter().enumerate().map(|(index, annotation)| {
        let expression = text(annotation, "valueExpression");
        let program = Program::compile_to(expression.trim(), &with_authorizer, &[Type::String, Type::Null]);
        if !expression.trim().is_empty() {
            add(format!("auditAnnotations[{index}].valueExpression"), expression, &program);
        }
        Annotation { text: expression.to_owned(), program }
    });
    let annotations: Vec<Annotation> = annotations.collect();
    Policy {
        is_ignored: text(spec, "failurePolicy") == "Ignore",
        param_kind: has_params.then(|| get(spec, "paramKind").clone()),
        conditions: list(spec, "matchConditions").to_vec(),
        variables,
        validations,
        annotations,
        problems,
    }
}
