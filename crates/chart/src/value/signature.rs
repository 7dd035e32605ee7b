//! How templates call functions and methods.

use super::{Text, Type, Value};
use crate::environment::Environment;

/// What a running function may use of the render it is part of.
pub trait Context {
    /// Returns the way to what is not in the chart.
    fn environment(&mut self) -> &mut dyn Environment;

    /// Returns what the template `name` prints with `data` as its dot.
    fn execute_template(&mut self, name: &str, data: &Value) -> Result<Text, CallError>;

    /// Returns what `text` prints as a template with `data` as its dot.
    ///
    /// It sees all templates; those that it defines itself are gone afterwards.
    fn parse_and_execute(&mut self, text: &[u8], data: &Value) -> Result<Text, CallError>;

    /// Counts `bytes` that a function is about to make, so that no function can
    /// fill the memory; to be called before results whose size an argument decides.
    fn charge(&mut self, bytes: usize) -> Result<(), CallError>;

    /// Counts `steps` of work that a function is about to do, so that no function can go on
    /// for ever; to be called before work that grows faster than its arguments.
    fn count(&mut self, steps: usize) -> Result<(), CallError>;
}

/// The body of a function. The arguments are already of the types that the
/// signature asks for, and as many as it asks for.
pub type Body = fn(&mut dyn Context, &[Value]) -> Result<Value, CallError>;

/// The body of a method; the first value is the one that it is called on.
pub type MethodBody = fn(&mut dyn Context, &Value, &[Value]) -> Result<Value, CallError>;

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
    /// `required` or `fail`: people see nothing but the message.
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
