//! Random templates answered by Go's `text/template`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use chart::environment::FixedEnvironment;
use chart::template::{Limits, Renderer, TemplateSet, parse};
use chart::value::{Context as _, Value};

const CASES: &str = include_str!("../golden/language/cases.json");

/// The file that the cases pretend to be.
const NAME: &str = "c/t.yaml";

fn data() -> Value {
    let inner = || Value::map([("z", Value::Float(1.5))]);
    Value::map([
        ("a", Value::text("A<b>")),
        ("e", Value::list(vec![])),
        ("f", Value::Float(42.0)),
        ("k", Value::strings(["k1", "k2"])),
        (
            "l",
            Value::list(vec![
                Value::text("p"),
                Value::Float(2.0),
                Value::Nil,
                Value::map([("x", Value::text("lx"))]),
            ]),
        ),
        ("m", Value::map([("b", Value::Bool(true)), ("x", Value::text("mx")), ("y", inner())])),
        ("n", Value::Int(3)),
        ("s", Value::text("str")),
        ("t", Value::Bool(true)),
        ("u", Value::Nil),
        ("z", Value::Int64(9)),
    ])
}

fn run(text: &str, strict: bool) -> Result<String, String> {
    let parsed = parse(NAME, text.as_bytes()).map_err(|error| error.to_string())?;
    let mut set = TemplateSet::new();
    set.add(&parsed);
    let mut environment = FixedEnvironment::default();
    let mut context = Renderer::new(&mut environment, set, Limits::default());
    if strict {
        context = context.strict();
    }
    let out = context.execute_template(NAME, &data()).map_err(|error| error.to_string())?;
    Ok(out.lossy().into_owned())
}

fn check() {
    let cases: serde_json::Value = serde_json::from_str(CASES).unwrap();
    let cases = cases.as_array().unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let text = case[0].as_str().unwrap();
        let (out, error) = (case[2].as_str().unwrap(), case[3].as_str().unwrap());
        let expected = if error.is_empty() { Ok(out) } else { Err(error) };
        // Helm names the set of all templates otherwise than a single one.
        let got = run(text, case[1].as_bool().unwrap()).map_err(|error| {
            error.replace("associated with template \"gotpl\"", "associated with template \"c/t.yaml\"")
        });
        if got.as_deref().map_err(String::as_str) != expected {
            wrong.push(format!("{text}\n  expected {expected:?}\n  got      {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn templates_print_what_go_prints() {
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    thread.spawn(check).unwrap().join().unwrap();
}
