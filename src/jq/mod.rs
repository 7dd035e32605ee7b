//! jq filters in this process: compiled once, run on JSON values.
//!
//! The language and its library are those of `jaq`; the values are our own, so
//! that results are those of the reference operator: integers stay integers,
//! keys are in order, and an update makes the parents that are missing.

mod access;
mod apart;
mod arithmetic;
mod container;
mod guard;
mod inputs;
mod limits;
mod natives;
mod print;
pub mod program;
mod regex;
mod value;

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars};
use serde_json::Value;
use thiserror::Error;

pub use apart::{Progress, Threads};
use inputs::{Data, Inputs, Kind, NoInputs};
use limits::Limits;
use value::Val;

/// What our filters define beside the language's own library.
const PRELUDE: &str = include_str!("prelude.jq");

/// What programs define beside that: they have inputs and a standard error.
const PROGRAM_PRELUDE: &str = include_str!("program.jq");

/// How many results of one run are taken.
const MOST_RESULTS: usize = 1_000_000;

/// How many letters of an error are told.
const LONGEST_ERROR: usize = 1_000;

/// How deep brackets may nest in the text of a filter.
const DEEPEST_FILTER: usize = 256;

/// A compiled filter. It can be used from several threads at once.
pub struct Filter {
    compiled: jaq_core::compile::Filter<jaq_core::Native<Kind>>,
}

/// What filters run on. A clone shares what it holds.
#[derive(Clone)]
pub struct Input(Val);

impl Input {
    /// Reads JSON.
    pub fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text).map(Self)
    }

    /// Puts a text into an object that has nothing under this key.
    pub fn complete(&mut self, key: &str, text: &str) {
        if let Val::Obj(object) = &mut self.0 {
            std::sync::Arc::make_mut(object).entry(key.into()).or_insert_with(|| Val::str(text));
        }
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").finish_non_exhaustive()
    }
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
    /// It took too long, or needed too much memory.
    #[error("{0}")]
    Limit(String),
    /// Its result is not JSON.
    #[error("{0}")]
    Result(String),
}

/// How a run ended.
enum End {
    /// There are no more results.
    Done,
    /// The filter said `halt`, with this exit code.
    Halted(i32),
    /// The filter ended with an error: its text, and whether it is an array or an object.
    Failed(String, bool),
    /// Who takes the results wanted no more.
    Stopped,
    /// The run has passed a limit.
    Limit(limits::Passed),
}

impl Filter {
    /// Compiles a filter.
    pub fn compile(text: &str) -> Result<Self, JqError> {
        Self::with_checks(text, |text| Self::with_prelude(PRELUDE, text, &[], jaq_core::funs::<Kind>()))
    }

    /// Compiles a filter that can read inputs and sees variables with these names, written with their `$`.
    fn of_program(text: &str, names: &[&str]) -> Result<Self, JqError> {
        let prelude = format!("{PRELUDE}{PROGRAM_PRELUDE}");
        Self::with_checks(text, |text| {
            Self::with_prelude(&prelude, text, names, jaq_core::funs::<Kind>().chain(inputs::funs()))
        })
    }

    /// Compiles a filter whose definitions check how deep they are called.
    fn with_checks(text: &str, compile: impl Fn(&str) -> Result<Self, JqError>) -> Result<Self, JqError> {
        if nesting(text) > DEEPEST_FILTER {
            return Err(JqError::Syntax(format!("its brackets nest deeper than {DEEPEST_FILTER}")));
        }
        let text = with_letters(text);
        // The places of mistakes are those in the filter as it was written.
        let plain = compile(&text).map_err(|error| {
            let Some(place) = guard::alternative(&text) else { return error };
            let place = place_of(&text, place);
            JqError::Syntax(format!(
                "alternatives of a destructuring, `?//`{place}, are not supported: test the value with `type` and `if`"
            ))
        })?;
        match guard::guarded(&text) {
            Some(guarded) => compile(&guarded),
            None => Ok(plain),
        }
    }

    fn with_prelude(
        prelude: &str,
        text: &str,
        names: &[&str],
        functions: impl Iterator<Item = jaq_core::native::Fun<Kind>>,
    ) -> Result<Self, JqError> {
        // Definitions beside the filter win over those of the library.
        let code = format!("{prelude}{text}");
        let text = code.get(prelude.len()..).unwrap_or_default();
        let arena = Arena::default();
        let definitions = jaq_core::defs().chain(jaq_std::defs());
        let file = File { code: code.as_str(), path: () };
        let modules = Loader::new(definitions).load(&arena, file).map_err(|errors| {
            let error = errors.into_iter().next().map(|(_, error)| describe_load(text, error));
            JqError::Syntax(error.unwrap_or_default())
        })?;
        let functions = functions
            .chain(jaq_std::funs())
            .chain(natives::funs())
            .chain(limits::funs())
            .chain(regex::funs());
        let globals = ["$ENV", "$__loc__"].into_iter().chain(names.iter().copied());
        let compiled = Compiler::default().with_funs(functions).with_global_vars(globals).compile(modules);
        let compiled = compiled.map_err(|errors| {
            let undefined = errors.into_iter().flat_map(|(_, errors)| errors).next();
            JqError::Syntax(undefined.map_or_else(String::new, |(name, kind)| {
                format!("{} {name} is not defined{}", kind.as_str(), place(text, name))
            }))
        })?;
        Ok(Self { compiled })
    }

    /// Hands each result for `input` to `take`, until that returns false.
    ///
    /// `globals` are the environment and the values of the filter's variables, in their order.
    fn each(
        &self,
        input: Val,
        globals: [Val; 2],
        variables: &[Val],
        inputs: &dyn Inputs,
        limits: Limits,
        take: impl FnMut(Val) -> bool,
    ) -> End {
        limits::begin(limits);
        let end = self.all(input, globals, variables, inputs, take);
        // However the filter has ended: what it gave after a limit is nothing that it meant.
        limits::end().map_or(end, End::Limit)
    }

    fn all(
        &self,
        input: Val,
        globals: [Val; 2],
        variables: &[Val],
        inputs: &dyn Inputs,
        mut take: impl FnMut(Val) -> bool,
    ) -> End {
        let variables = Vars::new(globals.into_iter().chain(variables.iter().cloned()));
        let context = Ctx::<Kind>::new(Data { lut: &self.compiled.lut, inputs }, variables);
        for result in self.compiled.id.run((context, input)) {
            match result {
                Ok(value) => {
                    if !take(value) {
                        return End::Stopped;
                    }
                }
                Err(exception) => {
                    return match exception.get_err() {
                        Ok(error) => {
                            let error = error.into_val();
                            let is_compound = matches!(error, Val::Arr(_) | Val::Obj(_));
                            End::Failed(text_of(error), is_compound)
                        }
                        Err(exception) => End::Halted(exception.get_halt().unwrap_or(0)),
                    };
                }
            }
        }
        End::Done
    }

    /// Returns all results for `input`.
    ///
    /// Where the stack of the thread is small, a filter that calls itself ends earlier with an error; see [`Threads`].
    pub fn run(&self, input: &Value) -> Result<Vec<Value>, JqError> {
        self.run_within(Val::from(input), Limits::OPERATOR)
    }

    fn run_within(&self, input: Val, limits: Limits) -> Result<Vec<Value>, JqError> {
        let mut results = Vec::new();
        let mut unusable = None;
        // A filter sees nothing of the operator's environment.
        let globals = [natives::empty_object(), natives::location(1)];
        let end = self.each(input, globals, &[], &NoInputs, limits, |value| {
            match value.to_json() {
                Ok(_) if results.len() >= MOST_RESULTS => {
                    unusable = Some(format!("the filter has more than {MOST_RESULTS} results"));
                }
                Ok(value) => results.push(value),
                Err(error) => unusable = Some(error),
            }
            unusable.is_none()
        });
        match (end, unusable) {
            (End::Limit(limit), _) => Err(JqError::Limit(limit.to_string())),
            (_, Some(error)) => Err(JqError::Result(error)),
            (End::Failed(error, _), None) => Err(JqError::Run(error.chars().take(LONGEST_ERROR).collect())),
            // `halt` ends the results quietly.
            (End::Done | End::Halted(_) | End::Stopped, None) => Ok(results),
        }
    }

    /// Returns the one result that a binding keeps: none is null, several are an array.
    pub fn result(&self, input: &Input) -> Result<Value, JqError> {
        let mut results = self.run_within(input.0.clone(), Limits::OPERATOR)?;
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

/// Returns the text with each letter that is written as a pair of escapes, `\ud83d\ude00`, as itself.
fn with_letters(text: &str) -> String {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('\\') {
        let (before, escape) = rest.split_at(place);
        out.push_str(before);
        let pair = unit(escape).zip(escape.get(6..).and_then(unit));
        let letter = pair.and_then(|(high, low)| {
            char::decode_utf16([high, low]).next()?.ok().filter(|letter| u32::from(*letter) > 0xffff)
        });
        let length = if let Some(letter) = letter {
            out.push(letter);
            12
        } else {
            // Two bytes, or less at the end: an escaped backslash begins no other escape.
            let length = escape.char_indices().nth(2).map_or(escape.len(), |(place, _)| place);
            out.push_str(escape.get(..length).unwrap_or_default());
            length
        };
        rest = escape.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Returns how deep brackets nest in a text. Those in strings and comments count: this is a limit, not a parser.
fn nesting(text: &str) -> usize {
    let mut depth = 0_usize;
    text.bytes()
        .map(|byte| {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth
        })
        .max()
        .unwrap_or(0)
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
    place_of(text, (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize))
}

/// Returns where the byte `start` of a text is.
fn place_of(text: &str, start: usize) -> String {
    let Some(before) = text.get(..start) else { return " at its end".to_owned() };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    format!(" at line {line}, column {column}")
}

#[cfg(test)]
mod tests;
