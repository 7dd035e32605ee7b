//! HTTP: what everybody may see on the TCP port, and what only the owner may see on the socket.

mod connection;
mod converge_status;
mod debug;
mod explain;
mod exposition;
mod listen;
mod mask;
mod page;
mod parameters;
mod public;
mod queue;
mod routes;

pub use debug::{Asked, Releases};
pub use listen::{ListenError, Served, serve};
pub use public::Health;
pub use routes::{port, socket};
