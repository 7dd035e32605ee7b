//! How much a hook may write.

/// How long the file may be.
pub const MAX_BYTES: usize = 64 << 20;

/// How many values the documents of a file may hold. Each needs much more memory than its text.
pub const MAX_VALUES: usize = 4_000_000;

/// How long a file of YAML may be, which needs much more memory than JSON.
pub const MAX_YAML_BYTES: usize = 16 << 20;

/// How many operations the file may hold.
pub const MAX_OPERATIONS: usize = 100_000;
