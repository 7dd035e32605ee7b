//! git's protocol and objects, as far as it takes to read one tree of a repository on a web server.
//!
//! ```text
//! answer of a server ─▶ packet ─▶ protocol ─▶ pack ─▶ objects ─▶ tree
//!                       lines     refs         unpack  by id      paths, modes
//! ```
//!
//! An adapter sends the requests, keeps what is received, and offers a [`Spool`] for what is unpacked. Whatever a server
//! sends, memory stays bounded: [`pack`] keeps the numbers of objects, and their bytes are in the spool.

mod delta;
pub mod object;
pub mod pack;
pub mod packet;
pub mod protocol;
pub mod tree;

pub use object::{Kind, ObjectId};
pub use pack::{Objects, PackError, Spool};
pub use protocol::{Answer, Listing, ProtocolError, Reference, Server};
