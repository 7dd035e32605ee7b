//! Conditions of webhooks and policies: whether one is asked at all.

use expressions::{PER_CALL_LIMIT, Value as Cel};
use serde_json::Value;

use super::expression;
use super::given::Given;
use crate::fields::text;

/// How much the conditions of one webhook or policy may cost together.
const BUDGET: u64 = 2_500_000;

/// Returns whether all conditions hold.
///
/// # Errors
///
/// When none of them is false, and one can't be evaluated.
pub(crate) fn hold(conditions: &[Value], given: &Given<'_>, has_params: bool) -> Result<bool, String> {
    let mut budget = BUDGET;
    let mut problems: Vec<String> = Vec::new();
    for condition in conditions {
        let text = text(condition, "expression");
        let program = match expression::condition(text, has_params) {
            Ok(program) => program,
            Err(problem) => {
                problems.push(format!("compilation error: {problem}"));
                continue;
            }
        };
        let outcome = program.run(given, PER_CALL_LIMIT);
        if outcome.cost > budget {
            return Err(
                "validation failed due to running out of cost budget, no further validation rules will be run"
                    .to_owned(),
            );
        }
        budget -= outcome.cost;
        match outcome.value {
            Ok(Cel::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(failure) => {
                let problem = format!("expression '{text}' resulted in error: {failure}");
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
    }
    match problems.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
