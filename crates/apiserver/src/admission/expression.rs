//! Expressions of policies and conditions: compiled once, with the types that they may have.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use expressions::{Environment, Program, Type};

/// How many compiled conditions are kept.
const KEPT: usize = 1_024;

type Compiled = Result<Arc<Program>, String>;

static CONDITIONS: LazyLock<Mutex<BTreeMap<(bool, String), Compiled>>> = LazyLock::new(Mutex::default);

/// Compiles an expression whose value has one of these types; `dyn` is any. An error is in the words of the real server.
pub(crate) fn compile(text: &str, environment: &Environment, outputs: &[Type]) -> Result<Program, String> {
    let program =
        Program::compile(text, environment).map_err(|problems| format!("compilation failed: {problems}"))?;
    let output = program.output();
    if outputs.contains(&output) || outputs.contains(&Type::Dyn) {
        return match program.unusable() {
            Some(problem) => Err(format!("program instantiation failed: {problem}")),
            None => Ok(program),
        };
    }
    let names: Vec<String> = outputs.iter().map(named).collect();
    match names.as_slice() {
        [one] => Err(format!("must evaluate to {one} but got {}", named(&output))),
        many => Err(format!("must evaluate to one of [{}] but got {}", many.join(" "), named(&output))),
    }
}

fn named(of: &Type) -> String {
    if *of == Type::Null { "null_type".to_owned() } else { of.to_string() }
}

/// Compiles a condition, which is true or false, or returns what it was compiled to before.
pub(crate) fn condition(text: &str, has_params: bool) -> Compiled {
    let key = (has_params, text.to_owned());
    let known = || CONDITIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(compiled) = known().get(&key) {
        return compiled.clone();
    }
    let compiled = compile(text, &expressions::admission(has_params, true), &[Type::Bool]).map(Arc::new);
    let mut known = known();
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert(key, compiled.clone());
    compiled
}
