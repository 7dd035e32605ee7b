//! How templates call functions and methods.

use crate::template::Context;
use crate::value::{Type, Value};

/// The body of a function. The arguments are already of the types that the
/// signature asks for, and as many as it asks for.
pub type Body = fn(&mut Context<'_>, &[Value]) -> Result<Value, CallError>;

/// The body of a method; the first value is the one that it is called on.
pub type MethodBody = fn(&mut Context<'_>, &Value, &[Value]) -> Result<Value, CallError>;

/// What a function takes and returns.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The types of the parameters.
    pub params: &'static [Type],
    /// Whether the last parameter takes any number of arguments, none too.
    pub variadic: bool,
    /// The type of the result.
    pub result: Type,
}

impl Signature {
    /// Returns the type that the argument at `index` must have.
    pub fn param(&self, index: usize) -> Option<Type> {
        match self.params.get(index) {
            Some(param) => Some(*param),
            None if self.variadic => self.params.last().copied(),
            None => None,
        }
    }
}

/// A function of templates.
#[derive(Debug)]
pub struct Function {
    /// The name that templates use.
    pub name: &'static str,
    /// What it takes and returns.
    pub signature: Signature,
    /// What it does.
    pub body: Body,
}

impl Function {
    /// Returns a function with a fixed number of parameters.
    pub const fn new(name: &'static str, params: &'static [Type], result: Type, body: Body) -> Self {
        Self { name, signature: Signature { params, variadic: false, result }, body }
    }

    /// Returns a function whose last parameter takes any number of arguments.
    pub const fn variadic(name: &'static str, params: &'static [Type], result: Type, body: Body) -> Self {
        Self { name, signature: Signature { params, variadic: true, result }, body }
    }
}

/// A method of a value.
#[derive(Debug)]
pub struct Method {
    /// The name that templates use.
    pub name: &'static str,
    /// What it takes and returns, without the receiver.
    pub signature: Signature,
    /// What it does.
    pub body: MethodBody,
}

impl Method {
    /// Returns a method with a fixed number of parameters.
    pub const fn new(name: &'static str, params: &'static [Type], result: Type, body: MethodBody) -> Self {
        Self { name, signature: Signature { params, variadic: false, result }, body }
    }
}

/// Why a function gave no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The function said no; a panic of Go's looks the same.
    #[error("{0}")]
    Message(String),
    /// `required` or `fail`: the message is all that people are told.
    #[error("{text}")]
    Refused {
        /// The whole chain, as Go would print it.
        text: String,
        /// What the chart's author wrote.
        message: String,
    },
    /// A limit of the render was reached.
    #[error("{0}")]
    Limit(String),
}

impl CallError {
    /// Returns the error with the text `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

impl From<String> for CallError {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<&str> for CallError {
    fn from(message: &str) -> Self {
        Self::Message(message.to_owned())
    }
}
