//! How far the first converge is, for those who wait for its end.

/// How far the first converge is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Progress {
    /// It goes on.
    #[default]
    Running,
    /// It came to its end: the operator is ready, and releases that nobody wants any more are removed.
    Converged,
    /// A whole round has brought nothing further; why, in one line.
    Stuck(String),
}
