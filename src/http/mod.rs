//! HTTP: what everybody may see on the TCP port, and what only the owner may see on the socket.

mod connection;
mod debug;
mod listen;
mod mask;
mod page;
mod public;
mod queue;
mod status;

pub use debug::Releases;
pub use listen::{ListenError, Served, serve};
pub use public::Health;
