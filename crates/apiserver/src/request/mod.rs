//! What a client asks for: the path, the query and the representation, read from the HTTP request.

mod accept;
mod context;
pub(crate) mod options;
mod path;
mod query;

pub(crate) use accept::{
    Encoding, LISTS, LOGS, OBJECTS, Offer, Representation, STREAMS, Shape, check_accepted,
};
pub(crate) use context::{RequestContext, media_type_of};
pub(crate) use options::WriteOptions;
pub(crate) use path::{Path, ResourcePath, percent_decode};
pub(crate) use query::Query;
