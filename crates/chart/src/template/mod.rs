//! Go's template language: parsed once, executed often.

mod ast;
mod builtins;
mod control;
mod error;
mod exec;
mod lexer;
mod limits;
mod location;
mod names;
mod number;
mod parser;
mod set;
mod token;
mod tree_set;
mod unquote;

pub use ast::Template;
pub use error::{ExecError, ParseError};
pub use exec::Renderer;
pub use limits::Limits;
pub use parser::parse;
pub use set::TemplateSet;
