//! The crate as others use it, in one binary: each one more has all that it needs linked once more.

mod allocations;
#[expect(dead_code, reason = "tests of other crates count in other ways")]
#[path = "../../../../tests/memory/counting.rs"]
mod counting;
mod fmt;
mod functions;
#[path = "../golden/mod.rs"]
mod golden;
mod in_memory;
mod language;
mod limits;
mod manifest_heads;
#[path = "../random/mod.rs"]
mod random;
mod render_text;
mod replay;
mod schema;
mod shared_values;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;
