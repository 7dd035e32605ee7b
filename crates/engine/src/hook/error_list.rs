//! Lists of errors in the form of the reference operator.

use std::fmt::{Display, Formatter, Result};

/// Writes how many errors there are, a line for each, and an empty line.
pub(super) fn write(f: &mut Formatter<'_>, errors: &[impl Display]) -> Result {
    match errors.len() {
        1 => writeln!(f, "1 error occurred:")?,
        count => writeln!(f, "{count} errors occurred:")?,
    }
    for error in errors {
        writeln!(f, "\t* {error}")?;
    }
    writeln!(f)
}
