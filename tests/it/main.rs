//! Integration tests of the operator, in one binary.

mod shell;
