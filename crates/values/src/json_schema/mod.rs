//! JSON Schema, every draft from 04 on: values are checked, and what is wrong is told in the words of Helm.
//!
//! Charts have such schemas, and plans of chart bundles. Nothing is fetched: a reference leads to the document itself or to
//! a schema of schemas.

mod address;
mod compile;
mod decimal;
mod document;
mod draft;
mod equal;
mod evaluate;
mod finding;
mod format;
mod message;
mod metaschema;
mod node;
mod ordinary;
mod problem;

use golang::json::{self, DecodeError};
use serde_json::Value;

pub use equal::equal;
use evaluate::Evaluation;
pub use evaluate::Limits;

/// Checks `values` within `limits` against the text of a schema, which messages know by its `url`.
///
/// # Errors
///
/// What is wrong with the values, with a line for each finding, or with the schema. They can quote values.
pub fn validate(url: &str, schema: &[u8], values: &Value, limits: Limits) -> Result<(), String> {
    let schema = read(schema)?;
    let compiled = compile::compile(url, schema).map_err(|problem| problem.to_string())?;
    Evaluation::of_values(&compiled, limits).run(values).map_err(|finding| {
        let lines = finding.lines();
        format!("{}\n", lines.strip_prefix('\n').unwrap_or(&lines))
    })
}

/// Checks that the text of a schema, which messages know by its `url`, can be used.
///
/// # Errors
///
/// What is wrong with the schema.
pub fn check(url: &str, schema: &[u8]) -> Result<(), String> {
    compile::compile(url, read(schema)?).map(drop).map_err(|problem| problem.to_string())
}

/// Reads a schema; an error is in Go's words.
fn read(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(text).map_err(|error| match json::decode(text) {
        Err(problem) => unread(text, &problem),
        Ok(_) => format!("invalid JSON: {error}"),
    })
}

/// Returns Go's words for `problem`, which differ for a text that ends too early.
fn unread(text: &[u8], problem: &DecodeError) -> String {
    if text.trim_ascii().is_empty() {
        return "EOF".to_owned();
    }
    let problem = problem.to_string();
    if problem.ends_with("after top-level value") {
        return "invalid character after top-level value".to_owned();
    }
    // A control character can't be right: if it is what is wrong now, the end was before.
    let mut marked = text.to_vec();
    marked.push(1);
    let is_cut = json::decode(&marked).is_err_and(|error| error.to_string().contains("'\\x01'"));
    if is_cut { "unexpected EOF".to_owned() } else { problem }
}

#[cfg(test)]
mod tests;
