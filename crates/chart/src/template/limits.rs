//! How much one render may use.

/// The limits of one render; the defaults are far above real charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes of templates that are executed.
    pub steps: u64,
    /// Templates that are executed within each other.
    pub depth: usize,
    /// Bytes that templates and functions write, all together.
    pub bytes: usize,
    /// Bytes of stack that the render may use; the thread must have more.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 50_000_000, depth: 20_000, bytes: 256 << 20, stack: 48 << 20 }
    }
}
