//! Merging maps into the first of them.

use super::args::{Answer, from, map};
use super::defaults::is_empty;
use crate::value::{CallError, Kind, MAX_NESTING, Map, MapType, Value};

/// Merges all maps into the first one and returns it.
///
/// Without `overwrite` only what is missing or empty is filled. Maps that were not there
/// are not copied: they belong to both from then on.
pub(super) fn merged(args: &[Value], overwrite: bool) -> Answer {
    let mut target = map(args, 0);
    for source in from(args, 1) {
        let Some(source) = source.as_map().filter(|source| !source.is_nil()) else {
            continue;
        };
        if target.is_nil() {
            target = Map::of(&MapType::ANY, crate::value::Entries::new());
        }
        merge(&target, source, overwrite, 0)?;
    }
    Ok(target.into())
}

fn merge(target: &Map, source: &Map, overwrite: bool, depth: usize) -> Result<(), CallError> {
    if depth > MAX_NESTING {
        return Err(CallError::new(format!(
            "maps to be merged are nested more than {MAX_NESTING} levels deep or hold themselves"
        )));
    }
    if target.same(source) {
        return Ok(());
    }
    let (wanted, found) = (target.class().element, source.class().element);
    for (key, new) in source.entries().iter() {
        if !wanted.is_interface() && wanted.name() != found.name() {
            return Err(CallError::new(format!(
                "reflect.Value.SetMapIndex: value of type {} is not assignable to type {}",
                found.name(),
                wanted.name()
            )));
        }
        if new.is_nil() {
            if overwrite {
                target.insert(key.clone(), Value::Nil);
            }
            continue;
        }
        let old = target.get(key);
        if let (Some(Value::Map(old)), Value::Map(new)) = (&old, new)
            && !old.is_nil()
        {
            merge(old, new, overwrite, depth + 1)?;
        }
        let is_slice = new.kind() == Kind::Slice;
        if is_slice && overwrite {
            target.insert(key.clone(), new.clone());
        }
        let kept = old.as_ref().filter(|old| !is_empty(old));
        let settled = match kept {
            Some(_) if is_slice => true,
            Some(old) => old.kind() == Kind::Map && new.kind() == Kind::Map,
            None => false,
        };
        if !settled && (overwrite || kept.is_none()) {
            target.insert(key.clone(), new.clone());
        }
    }
    Ok(())
}
