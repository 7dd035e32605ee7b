//! What keeps the objects of a cluster, and who follows their changes.

pub(crate) mod state_file;
pub(crate) mod watchers;
