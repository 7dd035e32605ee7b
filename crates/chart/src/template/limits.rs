//! How much one render may use.

/// The limits of one render; the defaults are far above real charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes of templates that are executed. What takes long, such as a new key, counts as many.
    pub steps: u64,
    /// Templates that are executed within each other.
    pub depth: usize,
    /// Bytes that templates and functions write, all together.
    pub bytes: usize,
    /// Bytes that one file may render to.
    pub file: usize,
    /// Bytes that all files may render to, all together.
    pub text: usize,
    /// Bytes of stack that the render may use; the thread must have more.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 50_000_000,
            depth: 20_000,
            bytes: 256 << 20,
            file: usize::MAX,
            text: usize::MAX,
            stack: 48 << 20,
        }
    }
}
