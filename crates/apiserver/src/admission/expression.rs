//! Expressions of policies and conditions: compiled once, with the types that they may have.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use expressions::{Program, Type};

/// How many compiled conditions are kept.
const KEPT: usize = 1_024;

type Compiled = Result<Arc<Program>, String>;

static CONDITIONS: LazyLock<Mutex<BTreeMap<(bool, String), Compiled>>> = LazyLock::new(Mutex::default);

/// Compiles a condition, which is true or false, or returns what it was compiled to before.
pub(crate) fn condition(text: &str, has_params: bool) -> Compiled {
    let key = (has_params, text.to_owned());
    let known = || CONDITIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(compiled) = known().get(&key) {
        return compiled.clone();
    }
    let environment = expressions::admission(has_params, true);
    let compiled = Program::compile_to(text, &environment, &[Type::Bool]).map(Arc::new);
    let mut known = known();
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert(key, compiled.clone());
    compiled
}
