//! HTTP: what everybody may see on the TCP port, and what only the owner may see on the socket.

mod chart_test;
mod charts;
mod connection;
mod converge_status;
mod debug;
mod debug_state;
mod explain;
mod exposition;
mod listen;
mod mask;
mod page;
mod parameters;
mod public;
mod queue;
mod response;
mod routes;
mod secret_values;
mod source_plan;
mod source_plans;

pub use connection::Port;
pub use debug_state::{ChartArchives, DebugState, Releases};
pub use listen::{HttpServers, ListenError, serve};
pub use public::router as port;
pub use source_plans::{PinnedFetch, SourcePlans};
