//! One-line templates over one chart, answered by the real Helm.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;

use chart::template::{Context, Limits, TemplateSet, parse};
use chart::value::{Map, MapClass, Value};
use chart::world::FixedWorld;

const HELPERS: &str = include_str!("golden/snippets/chart/templates/_helpers.tpl");
const VALUES: &str = include_str!("golden/snippets/chart/values.yaml");
static VALUES_CLASS: MapClass =
    MapClass { name: "chartutil.Values", element: chart::value::Type::Any, named: true, methods: &[] };

/// Objects of a chart, which a template alone does not have.
const OBJECTS: &[&str] = &[
    ".Chart",
    ".Files",
    ".Capabilities",
    ".Values.AsMap",
    ".Values.PathValue",
    ".Values.Table",
    ".Values.YAML",
    ".Values.Encode",
];

fn data() -> Value {
    let values = values::yaml::parse(VALUES).unwrap();
    let values = Value::from_json(&values).as_map().unwrap().clone();
    let release = Value::map([
        ("Name", Value::text("rel")),
        ("Namespace", Value::text("ns")),
        ("Service", Value::text("Helm")),
        ("IsInstall", Value::Bool(true)),
        ("IsUpgrade", Value::Bool(false)),
        ("Revision", Value::Int(1)),
    ]);
    let template = Value::map([
        ("Name", Value::text("snippets/templates/t.yaml")),
        ("BasePath", Value::text("snippets/templates")),
    ]);
    let entries = [
        ("Values".into(), Value::Map(values.as_class(&VALUES_CLASS))),
        ("Release".into(), release),
        ("Template".into(), template),
    ];
    Value::Map(Map::of(&VALUES_CLASS, entries.into_iter().collect()))
}

fn render(tpl: &str) -> Result<String, String> {
    let text = format!("v: |-\n  {tpl}\n");
    let name = "snippets/templates/t.yaml";
    let mut set = TemplateSet::new();
    let helpers = parse("snippets/templates/_helpers.tpl", HELPERS.as_bytes()).map_err(|e| e.for_people())?;
    set.add(&parse(name, text.as_bytes()).map_err(|e| e.for_people())?);
    set.add(&helpers);
    let mut world = FixedWorld::default();
    let out =
        Context::new(&mut world, set, Limits::default()).render(name, &data()).map_err(|e| e.for_people())?;
    // Helm prints the document without the space around it.
    let out = String::from_utf8_lossy(&out).trim().to_owned();
    Ok(match out.strip_prefix("v: |-\n  ") {
        Some(out) => out.to_owned(),
        None => format!("---\n# Source: {name}\n{out}\n"),
    })
}

fn check(file: &str) -> (usize, usize, String) {
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    let (mut passed, mut skipped, mut failures) = (0, 0, String::new());
    for snippet in file.get("snippets").unwrap().as_array().unwrap() {
        let text = |key: &str| snippet.get(key).and_then(serde_json::Value::as_str);
        let tpl = text("tpl").unwrap();
        let got = match render(tpl) {
            Ok(out) => out,
            Err(error) => {
                let error = format!("Error: {error}\n\nUse --debug flag to render out invalid YAML\n");
                error.lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
            }
        };
        let expected = text("out").or(text("err")).unwrap();
        if got == expected {
            passed += 1;
        } else if OBJECTS.iter().any(|object| tpl.contains(object)) {
            skipped += 1;
        } else {
            write!(failures, "{tpl}\n  expected {expected:?}\n  got      {got:?}\n").unwrap();
        }
    }
    (passed, skipped, failures)
}

#[test]
fn snippets_print_what_helm_prints() {
    let mut all = String::new();
    for file in [
        include_str!("golden/snippets/language.json"),
        include_str!("golden/snippets/exec-errors.json"),
        include_str!("golden/snippets/functions.json"),
    ] {
        let thread = std::thread::Builder::new().stack_size(64 << 20);
        let (passed, skipped, failures) = thread.spawn(move || check(file)).unwrap().join().unwrap();
        writeln!(all, "{failures}{passed} passed, {skipped} skipped").unwrap();
    }
    assert!(!all.contains("expected"), "{all}");
}
