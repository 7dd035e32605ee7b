//! jq filters in this process: compiled once, run on JSON values.
//!
//! The language and its library are those of `jaq`; the values are our own, so
//! that results are those of the reference operator (see docs/hooks.md#filters): integers stay integers,
//! keys are in order, and an update makes the parents that are missing.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a function of filters is about some forms of a value and refuses all others"
)]

mod access;
mod alternatives;
mod arithmetic;
mod builtins;
mod cardinality;
mod collections;
pub mod command;
mod compile;
mod desugar;
mod error_text;
mod folds;
mod generators;
mod inputs;
mod limits;
mod picking;
mod print;
mod regex;
mod runtime;
mod threads;
mod tokens;
mod value;

use std::time::Duration;

use jaq_core::{Ctx, Vars};
use serde_json::Value;
use thiserror::Error;

use limits::{DEADLINE, Limits};
use runtime::{FoldStates, Inputs, NoInputs, RunData, Runtime};
pub use threads::{Progress, Threads};
use value::{JsonResult, Val};

/// How many results of one run are taken.
const MOST_RESULTS: usize = 1_000_000;

/// How many characters of an error are reported.
const LONGEST_ERROR: usize = 1_000;

/// A compiled filter. It can be used from several threads at once.
pub struct Filter {
    compiled: jaq_core::compile::Filter<jaq_core::Native<Runtime>>,
    text: Box<str>,
    only_picks: bool,
}

/// The input of a filter, parsed. A clone shares the value.
#[derive(Clone)]
pub struct Input(Val);

impl Input {
    /// Reads JSON.
    pub fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        value::from_json(text).map(Self)
    }

    /// Sets a key of an object to a text, unless it has that key.
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

/// Why a filter can't be compiled, or why its run failed.
#[derive(Debug, Error)]
pub enum JqError {
    /// Its text is not a filter.
    #[error("the jq filter is not understood: {0}")]
    Syntax(String),
    /// It ended with an error, which quotes nothing of the object.
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
    /// The filter called `halt`, with this exit code.
    Halted(i32),
    /// The filter ended with an error.
    Failed(Val),
    /// The receiver of the results asked for no more.
    Stopped,
    /// The run has passed a limit.
    Limit(limits::Exceeded),
}

impl Filter {
    /// Passes each result for `input` to `take`, until that returns false.
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
        // After a limit the results are wrong, however the filter has ended.
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
        let states = FoldStates::default();
        let data = RunData { lut: &self.compiled.lut, inputs, states: &states };
        let context = Ctx::<Runtime>::new(data, variables);
        for result in self.compiled.id.run((context, input)) {
            match result {
                Ok(value) => {
                    if !take(value) {
                        return End::Stopped;
                    }
                }
                Err(exception) => {
                    return match exception.get_err() {
                        Ok(error) => End::Failed(error.into_val()),
                        Err(exception) => End::Halted(exception.get_halt().unwrap_or(0)),
                    };
                }
            }
        }
        End::Done
    }

    /// Returns whether the filter only picks fields: it needs no more time than its text and its input have bytes.
    pub fn only_picks(&self) -> bool {
        self.only_picks
    }

    /// Returns all results for `input`.
    ///
    /// Where the stack of the thread is small, a filter that calls itself ends earlier with an error; see [`Threads`].
    pub fn run(&self, input: &Value) -> Result<Vec<Value>, JqError> {
        self.run_within(&Val::from(input), Limits::OPERATOR)
    }

    fn run_within(&self, input: &Val, limits: Limits) -> Result<Vec<Value>, JqError> {
        self.results(input, limits, Val::to_json)
    }

    /// Returns all results, each as `convert` makes it.
    fn results<T>(
        &self,
        input: &Val,
        limits: Limits,
        convert: impl Fn(&Val) -> Result<T, String>,
    ) -> Result<Vec<T>, JqError> {
        let mut results = Vec::new();
        let mut unusable = None;
        // Filters do not see the operator's environment.
        let globals = [builtins::empty_object(), builtins::location(1)];
        error_text::forget();
        let end = self.each(input.clone(), globals, &[], &NoInputs, limits, |value| {
            match convert(&value) {
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
            (End::Failed(error), None) => {
                let error = error_text::reported(&error, input, &self.text);
                error_text::forget();
                Err(JqError::Run(error.chars().take(LONGEST_ERROR).collect()))
            }
            // `halt` ends the results quietly.
            (End::Done | End::Halted(_) | End::Stopped, None) => Ok(results),
        }
    }

    /// Returns the one result that a binding keeps, as JSON: none is null, several are an array.
    pub fn result(&self, input: &Input) -> Result<Vec<u8>, JqError> {
        self.result_within(input, DEADLINE)
    }

    /// Returns what [`Self::result`] returns, or an error when the filter takes longer than `time`.
    pub fn result_within(&self, input: &Input, time: Duration) -> Result<Vec<u8>, JqError> {
        let limits = Limits { time: Some(time), ..Limits::OPERATOR };
        let mut results = self.results(&input.0, limits, |value| {
            let mut text = Vec::new();
            let written = golang::json::write(&mut text, &JsonResult::new(value));
            written.map(|()| text).map_err(|error| error.to_string())
        })?;
        Ok(match results.len() {
            0 => b"null".to_vec(),
            1 => results.pop().unwrap_or_default(),
            _ => [b"[".as_slice(), &results.join(b",".as_slice()), b"]"].concat(),
        })
    }
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").finish_non_exhaustive()
    }
}

/// Limits of memory count only on this heap.
#[cfg(test)]
#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

#[cfg(test)]
mod tests;
