//! CEL as Kubernetes evaluates it.
//!
//! ```text
//! text ─ syntax ─▶ tree ─ check ─▶ types, overloads ─ cost::estimate ─▶ the most that it may cost
//!                    └─── evaluate (library, cost) ─▶ value, or why there is none
//! ```
//!
//! The crate `cel` reads the text. What follows is here, as Kubernetes asks for more than it offers: types of schemas that are
//! checked before anything runs, a budget that ends a run, the functions of Kubernetes, and errors in the words of the real server.
//!
//! `schema` reads types from OpenAPI schemas and values that have them; `rules` are `x-kubernetes-validations`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most functions are about one or two forms of values and types"
)]

mod access_check;
mod activation;
mod address;
mod check;
mod cost;
mod declared;
mod devices;
mod environment;
mod escape;
mod evaluate;
mod failure;
mod library;
mod macros;
mod placed;
mod program;
pub mod rules;
pub mod schema;
mod semver;
mod syntax;
mod times;
mod tree;
mod types;
mod value;

pub use access_check::AccessCheck;
pub use activation::Activation;
pub use cost::PER_CALL_LIMIT;
pub use declared::Declared;
pub use devices::devices;
pub use environment::{Environment, admission};
pub use escape::escape;
pub use failure::{Failure, FailureKind};
pub use program::{Outcome, Program};
pub use semver::is_version;
pub use types::Type;
pub use value::{Key, List, ListKind, Map, Opaque, Value};
