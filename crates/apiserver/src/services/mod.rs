//! Services: the addresses and ports they get, and the fields that depend on their type.

mod allocator;
mod type_fields;

pub(crate) use allocator::ServiceAllocator;
