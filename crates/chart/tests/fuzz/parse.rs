//! The target `parse`: a source is parsed or refused, with a line that it has.

use chart::template::parse;

/// Parses `bytes`.
pub(crate) fn run(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').count();
    match parse("c/t.yaml", bytes) {
        Ok(templates) => assert!(templates.iter().any(|template| template.name() == "c/t.yaml")),
        Err(error) => assert!(error.line <= lines, "{error}"),
    }
}
