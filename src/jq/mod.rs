//! jq filters in this process: compiled once, run on JSON values.
//!
//! The language and its library are those of `jaq`; the values are our own, so
//! that results are those of the reference operator: integers stay integers,
//! keys are in order, and an update makes the parents that are missing.

mod access;
mod arithmetic;
mod natives;
mod value;

use jaq_core::data::JustLut;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars};
use serde_json::Value;
use thiserror::Error;

use value::Val;

/// What our filters define beside the language's own library.
const PRELUDE: &str = include_str!("prelude.jq");

/// How many results of one run are taken.
const MOST_RESULTS: usize = 1_000_000;

/// A compiled filter. It can be used from several threads at once.
pub struct Filter {
    compiled: jaq_core::compile::Filter<jaq_core::Native<JustLut<Val>>>,
    variables: usize,
}

/// Why a filter can't be compiled or what it ran into.
#[derive(Debug, Error)]
pub enum JqError {
    /// Its text is not a filter.
    #[error("the jq filter is not understood: {0}")]
    Syntax(String),
    /// It ended with an error.
    #[error("{0}")]
    Run(String),
    /// Its result is not JSON.
    #[error("{0}")]
    Result(String),
}

impl Filter {
    /// Compiles a filter.
    pub fn compile(text: &str) -> Result<Self, JqError> {
        Self::with_variables(text, &[])
    }

    /// Compiles a filter that sees variables with these names, written with their `$`.
    pub fn with_variables(text: &str, names: &[&str]) -> Result<Self, JqError> {
        // Definitions beside the filter win over those of the library.
        let code = format!("{PRELUDE}{text}");
        let text = code.get(PRELUDE.len()..).unwrap_or_default();
        let arena = Arena::default();
        let definitions = jaq_core::defs().chain(jaq_std::defs());
        let file = File { code: code.as_str(), path: () };
        let modules = Loader::new(definitions).load(&arena, file).map_err(|errors| {
            let error = errors.into_iter().next().map(|(_, error)| describe_load(text, error));
            JqError::Syntax(error.unwrap_or_default())
        })?;
        let functions = jaq_core::funs::<JustLut<Val>>().chain(jaq_std::funs()).chain(natives::funs());
        let globals = std::iter::once("$ENV").chain(names.iter().copied());
        let compiled = Compiler::default().with_funs(functions).with_global_vars(globals).compile(modules);
        let compiled = compiled.map_err(|errors| {
            let undefined = errors.into_iter().flat_map(|(_, errors)| errors).next();
            JqError::Syntax(undefined.map_or_else(String::new, |(name, kind)| {
                format!("{} {name} is not defined{}", kind.as_str(), place(text, name))
            }))
        })?;
        Ok(Self { compiled, variables: names.len() })
    }

    /// Returns all results for `input`.
    pub fn run(&self, input: &Value) -> Result<Vec<Value>, JqError> {
        self.run_with(input, &[])
    }

    /// Returns all results for `input` with the values of the filter's variables, in their order.
    pub fn run_with(&self, input: &Value, variables: &[Value]) -> Result<Vec<Value>, JqError> {
        let variables =
            variables.iter().map(Val::from).chain(std::iter::repeat(Val::Null)).take(self.variables);
        let variables = Vars::new(std::iter::once(natives::empty_object()).chain(variables));
        let context = Ctx::<JustLut<Val>>::new(&self.compiled.lut, variables);
        let mut results = Vec::new();
        for result in self.compiled.id.run((context, Val::from(input))) {
            match result {
                Ok(value) => results.push(value.to_json().map_err(JqError::Result)?),
                Err(exception) => match exception.get_err() {
                    Ok(error) => return Err(JqError::Run(text_of(error.into_val()))),
                    // `halt` ends the results quietly.
                    Err(_) => break,
                },
            }
            if results.len() > MOST_RESULTS {
                return Err(JqError::Result(format!("the filter has more than {MOST_RESULTS} results")));
            }
        }
        Ok(results)
    }

    /// Returns the one result that a binding keeps: none is null, several are an array.
    pub fn result(&self, input: &Value) -> Result<Value, JqError> {
        let mut results = self.run(input)?;
        Ok(match results.len() {
            0 => Value::Null,
            1 => results.pop().unwrap_or_default(),
            _ => Value::Array(results),
        })
    }
}

/// Returns what an error says: a string as it is, anything else as JSON.
fn text_of(error: Val) -> String {
    match error {
        Val::Str(text) => text.as_ref().to_owned(),
        other => other.to_string(),
    }
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").finish_non_exhaustive()
    }
}

fn describe_load(text: &str, error: jaq_core::load::Error<&str>) -> String {
    use jaq_core::load::Error;
    match error {
        Error::Io(errors) => errors.into_iter().next().map(|(_, error)| error).unwrap_or_default(),
        Error::Lex(errors) => errors
            .into_iter()
            .next()
            .map(|(expected, found)| format!("expected {}{}", expected.as_str(), place(text, found)))
            .unwrap_or_default(),
        Error::Parse(errors) => errors
            .into_iter()
            .next()
            .map(|(expected, found)| format!("expected {}{}", expected.as_str(), place(text, found)))
            .unwrap_or_default(),
    }
}

/// Returns where `part`, a slice of `text`, stands in it.
fn place(text: &str, part: &str) -> String {
    let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let Some(before) = text.get(..start) else { return " at its end".to_owned() };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    format!(" at line {line}, column {column}")
}

#[cfg(test)]
mod tests;
