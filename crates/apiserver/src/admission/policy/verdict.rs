//! What a policy says of a write.

use expressions::{Failure, PER_CALL_LIMIT, Program, Value as Cel};

use super::compiled::{Policy, Validation};
use crate::admission::condition;
use crate::admission::given::Given;

/// How much one policy may cost with one parameter.
const BUDGET: u64 = 10_000_000;

/// How long a message of an expression may be, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

const OVER: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// One thing that a policy has against a write.
pub(super) struct Decision {
    pub(super) reason: Option<String>,
    pub(super) message: String,
    /// Whether it is about annotations of the audit log, which refuse whatever the binding says.
    pub(super) is_of_audit: bool,
}

/// What comes of one validation.
enum Outcome {
    Holds,
    Broken,
    Failed(String),
}

/// Returns what a policy has against a write.
pub(super) fn decisions(policy: &Policy, given: &Given<'_>) -> Vec<Decision> {
    let failed = |message: String| -> Vec<Decision> {
        let decision = Decision { reason: None, message, is_of_audit: false };
        if policy.is_ignored { Vec::new() } else { vec![decision] }
    };
    match condition::hold(&policy.conditions, given, policy.param_kind.is_some()) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(problem) => return failed(problem),
    }
    let mut budget = BUDGET;
    let mut outcomes = Vec::with_capacity(policy.validations.len());
    for validation in &policy.validations {
        match evaluated(&validation.program, &validation.text, given, &mut budget) {
            Err(Over) => return failed(OVER.to_owned()),
            Ok(Ok(Cel::Bool(true))) => outcomes.push(Outcome::Holds),
            Ok(Ok(_)) => outcomes.push(Outcome::Broken),
            Ok(Err(problem)) => outcomes.push(Outcome::Failed(problem)),
        }
    }
    let mut found = Vec::new();
    for (validation, outcome) in policy.validations.iter().zip(outcomes) {
        match outcome {
            Outcome::Holds => {}
            Outcome::Failed(problem) => found.extend(failed(problem)),
            Outcome::Broken => match message(validation, given, &mut budget) {
                Ok(message) => {
                    let reason = validation.reason.clone().or_else(|| Some("Invalid".to_owned()));
                    found.push(Decision { reason, message, is_of_audit: false });
                }
                Err(Over) => found.extend(failed(format!("failed messageExpression: {OVER}"))),
            },
        }
    }
    found.extend(annotations(policy, given));
    found
}

/// Returns the message of a broken validation: what its expression makes, what it says, or the expression itself.
fn message(validation: &Validation, given: &Given<'_>, budget: &mut u64) -> Result<String, Over> {
    let mut message = String::new();
    if let Some(program) = &validation.message_program
        && let Ok(Cel::String(text)) = run(program, given, budget)?
    {
        let text = text.trim();
        if text.len() <= MAX_MESSAGE && !text.contains('\n') {
            text.clone_into(&mut message);
        }
    }
    if message.is_empty() {
        validation.message.clone_into(&mut message);
    }
    if message.is_empty() {
        message = format!("failed expression: {}", validation.text.trim());
    }
    Ok(message)
}

/// Evaluates the annotations of the audit log. Only what is wrong with them has consequences here.
fn annotations(policy: &Policy, given: &Given<'_>) -> Vec<Decision> {
    let failed = |message: String| Decision { reason: None, message, is_of_audit: true };
    let mut budget = BUDGET;
    let mut found = Vec::new();
    for annotation in &policy.annotations {
        match evaluated(&annotation.program, &annotation.text, given, &mut budget) {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(Over) if policy.is_ignored => {}
            Ok(Err(problem)) => found.push(failed(problem)),
            Err(Over) => found.push(failed(OVER.to_owned())),
        }
    }
    found
}

/// The budget is spent.
struct Over;

/// Runs an expression within a budget.
fn run(program: &Program, given: &Given<'_>, budget: &mut u64) -> Result<Result<Cel, Failure>, Over> {
    let outcome = program.run(given, PER_CALL_LIMIT);
    let cost = outcome.cost.saturating_add(given.take_cost());
    *budget = budget.checked_sub(cost).ok_or(Over)?;
    Ok(outcome.value)
}

/// Like [`run`], with what people are told when there is no value.
fn evaluated(
    program: &Result<Program, String>,
    text: &str,
    given: &Given<'_>,
    budget: &mut u64,
) -> Result<Result<Cel, String>, Over> {
    let program = match program {
        Ok(program) => program,
        Err(problem) => return Ok(Err(format!("compilation error: {problem}"))),
    };
    let value = run(program, given, budget)?;
    Ok(value.map_err(|failure| format!("expression '{text}' resulted in error: {failure}")))
}
