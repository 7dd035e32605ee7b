//! The addon operator: adapters around the pure engine.

pub mod helm;
