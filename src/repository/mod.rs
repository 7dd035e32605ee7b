//! Chart repositories: fetches indexes and archives, and keeps in the cluster what is wanted of them.
//!
//! ```text
//! repository ─▶ remote ─▶ index ─▶ index maps
//!                 └─▶ archive ─▶ package, maps ◀─ pins
//! ```

mod config_maps;
mod index;
mod inspection;
mod package;
mod pins;
mod repositories;
mod resolve;
mod stop;
mod verified;

pub use inspection::default_values;
pub use repositories::{Options, Repositories};
