//! What an expression is given: variables, and who may do what.

use std::collections::BTreeMap;

use crate::access_check::AccessCheck;
use crate::failure::Failure;
use crate::value::Value;

/// What an expression is given.
pub trait Activation {
    /// Returns the value of a variable.
    fn variable(&self, name: &str) -> Option<Value>;

    /// Returns the value of a field of `variables`, which are expressions themselves.
    fn composed(&self, _name: &str) -> Option<Result<Value, Failure>> {
        None
    }

    /// Returns whether a request would be allowed, and why.
    fn allows(&self, _check: &AccessCheck) -> (bool, String) {
        (true, String::new())
    }
}

impl Activation for BTreeMap<&str, Value> {
    fn variable(&self, name: &str) -> Option<Value> {
        self.get(name).cloned()
    }
}
