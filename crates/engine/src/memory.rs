//! When memory is short: what is used comes close to what may be used.

/// How much memory is used, close to what may be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShortMemory {
    /// The bytes that are used.
    pub used: u64,
    /// The bytes that may be used.
    pub limit: u64,
}

impl ShortMemory {
    /// Returns the state of the memory if it is short: more than nine tenths of `limit` bytes are used.
    pub const fn of(used: u64, limit: u64) -> Option<Self> {
        if used > limit / 10 * 9 { Some(Self { used, limit }) } else { None }
    }
}
