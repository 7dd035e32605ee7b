//! Chart repositories: fetches indexes and archives, and keeps in the cluster what is wanted of them.
//!
//! ```text
//! repository ─▶ remote ─▶ index, or tags (oci) ─▶ index maps
//!                 └─▶ archive ─▶ package, maps ◀─ pins
//! ```

mod config_maps;
mod index;
mod inspection;
mod map_watch;
mod oci;
mod package;
mod pauses;
mod pins;
mod repositories;
mod resolve;
mod stop;
mod verified;

pub use inspection::default_values;
pub use repositories::{Options, Repositories};
