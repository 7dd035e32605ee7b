//! Repositories of git: one commit is fetched, without its history, and read from its pack.
//!
//! ```text
//! ls-refs ─▶ remote ─▶ checkout ─▶ bundle ─▶ the archive that the store keeps
//! fetch      http      pack, objects  paths
//! ```
//!
//! What git's messages, packs and trees mean is in `source::git`. There is no `git` program in the image.

mod bundle;
mod checkout;
mod fetch;
mod remote;
mod spool;

pub(super) use checkout::{Checkout, Pass};
pub(super) use remote::Remote;
