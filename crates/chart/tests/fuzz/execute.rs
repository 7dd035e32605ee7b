//! The target `execute`: every template ends, with output or an error.

use chart::environment::FixedEnvironment;
use chart::template::{Limits, Renderer, TemplateSet, parse};
use chart::value::Value;

/// Executes `bytes` as a template.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(templates) = parse("c/t.yaml", bytes) else {
        return;
    };
    let mut set = TemplateSet::new();
    set.add(&templates);
    let limits = Limits { steps: 5_000, depth: 100, bytes: 1 << 18, stack: 1 << 20, ..Limits::default() };
    let inner = Value::map([("x", Value::text("y")), ("n", Value::Nil)]);
    let data = Value::map([
        ("a", Value::text("{{ .b }}")),
        ("b", Value::Bool(true)),
        ("f", Value::Float(1.5e6)),
        ("i", Value::Int(3)),
        ("l", Value::list(vec![Value::Int64(1), Value::text("é"), Value::Nil])),
        ("m", inner),
    ]);
    let mut environment = FixedEnvironment::default();
    let mut context = Renderer::new(&mut environment, set, limits);
    match context.render("c/t.yaml", &data) {
        Ok(out) => assert!(out.len() <= limits.bytes),
        Err(error) => assert!(!error.for_people().is_empty()),
    }
}
