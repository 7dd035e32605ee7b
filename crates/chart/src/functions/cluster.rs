//! Objects of the cluster.

use super::args::{Answer, MAP, STRING, string};
use crate::call::Function;
use crate::template::Context;
use crate::value::{Entries, Map, Value};

pub(super) const FUNCTIONS: &[Function] =
    &[Function::new("lookup", &[STRING, STRING, STRING, STRING], MAP, lookup)];

/// Returns an object, or a list of them without a name; an empty map if there is none.
fn lookup(context: &mut Context<'_>, args: &[Value]) -> Answer {
    let (version, kind) = (string(args, 0), string(args, 1));
    let (namespace, name) = (string(args, 2), string(args, 3));
    let found =
        context.world.lookup(&version, &kind, &namespace, &name).map_err(|error| error.to_string())?;
    let found = Value::from_typed_json(&found);
    super::shown::charge(context, &found)?;
    Ok(found.as_map().cloned().unwrap_or_else(|| Map::new(Entries::new())).into())
}
