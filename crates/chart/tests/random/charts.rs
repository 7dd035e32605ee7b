//! Random charts: layers of values, dependencies in dependencies, imports, conditions, tags, globals and schemas.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::dice::Dice;
use super::expressions::{Kind, argument, block, call};

/// A chart and the values of its user.
#[derive(Clone)]
pub(crate) struct Random {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) values: String,
}

/// What expressions find.
const VALUES: &str = r#"
text: "Some Text"
odd: "ä: {x}\t"
multi: "l1\nl2\n\n  l4"
int: 3
big: 9007199254740993
negative: -17
float: 2.50
huge: 1e+21
yes: true
"null": ~
nothing: null
list: [1, two, 3.5, null, {k: v}]
strings: [b, a, "", B]
maps: [{n: 1, v: a}, {n: 2}]
empty: []
nomap: {}
map: {x: 1, y: {z: "q"}, k: [1], "with.dot": 1}
deep: {a: {b: {c: 1}}, k: 2}
typed: {i: 1, f: 1.0, g: 1e6, s: "1", b: false, o: 0o17, oct: 017, d: 2024-01-02, hex: 0xF}
date: 2024-02-29
global: {g: 1, k: x}
"#;

const HELPERS: &str = "{{ define \"named\" }}<{{ kindOf . }}>{{ end }}{{ define \"k\" }}{{ . }}{{ end }}";

fn metadata(name: &str) -> String {
    format!(
        "apiVersion: v2\nname: {name}\nversion: 0.1.0\nappVersion: \"1.0\"\nkeywords: [a, b]\nannotations: {{x: \"1\"}}\n\
         maintainers: [{{name: m, email: m@x}}]\n"
    )
}

fn around(template: String) -> Random {
    let files = [
        ("Chart.yaml", metadata("c")),
        ("values.yaml", VALUES.to_owned()),
        ("f.txt", "line1\nline2 ä\n".to_owned()),
        ("templates/_helpers.tpl", HELPERS.to_owned()),
        ("templates/t.yaml", template),
    ];
    Random { files: files.map(|(path, text)| (path.to_owned(), text)).into(), values: String::new() }
}

/// Returns a chart with one expression.
pub(crate) fn expression(dice: &mut Dice) -> Random {
    let expression = if dice.chance(90) { call(dice, None, 2) } else { argument(dice, Kind::Any, 2) };
    let is_time = ["oDate", "dateModify"].iter().any(|function| expression.contains(function));
    let shown = match dice.below(4) {
        1 if is_time => format!("{{{{ {expression} }}}}"),
        0 => format!("{{{{ {expression} | toJson }}}}"),
        1 => format!("{{{{ {expression} | printf \"%#v\" | quote }}}}"),
        _ => format!("{{{{ {expression} }}}}"),
    };
    around(format!("v: |-\n  {shown}\n"))
}

/// Returns a chart with control structures.
pub(crate) fn control(dice: &mut Dice) -> Random {
    let text = block(dice, 3, false);
    around(format!("v: |-\n  {}\n", text.replace('\n', "\n  ")))
}

const KEYS: &[&str] =
    &["a", "b", "c", "s1", "s2", "s3", "al", "global", "exports", "data", "tags", "enabled", "t1", "x.y"];
const SCALARS: &[&str] = &[
    "null",
    "~",
    "1",
    "0",
    "1.5",
    "1.0",
    "1e21",
    "true",
    "false",
    "yes",
    "x",
    "\"\"",
    "\"1\"",
    "'it''s'",
    "0123",
    "0x1F",
    "2024-01-02",
    ".5",
    "1_000",
    "[]",
    "{}",
    "!!str 5",
    "-0",
    "9007199254740993",
    "\"ü\\n\"",
    "1e3",
    ".inf",
    "0o7",
    "12345678901234567890",
];

/// Returns a random value in the flow style of YAML.
fn value(dice: &mut Dice, depth: usize) -> String {
    match dice.below(if depth == 0 { 5 } else { 10 }) {
        0..=4 => dice.pick(SCALARS).to_owned(),
        5 => {
            let items: Vec<String> = (0..dice.below(3)).map(|_| value(dice, depth - 1)).collect();
            format!("[{}]", items.join(", "))
        }
        _ => map(dice, depth),
    }
}

/// Returns a random map; no key comes twice.
fn map(dice: &mut Dice, depth: usize) -> String {
    let count = dice.below(5);
    let mut entries = BTreeMap::new();
    for _ in 0..count {
        let key = dice.pick(KEYS);
        let value = match key {
            "enabled" => dice.pick(&["true", "false", "true", "null", "x"]).to_owned(),
            "t1" => dice.pick(&["true", "false"]).to_owned(),
            "tags" => format!("{{t1: {}}}", dice.pick(&["true", "false", "null", "x"])),
            "s1" | "s2" | "s3" | "al" | "global" | "exports" | "data" if dice.chance(85) && depth > 0 => {
                map(dice, depth - 1)
            }
            _ => value(dice, depth.saturating_sub(1)),
        };
        entries.insert(key, value);
    }
    let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
    format!("{{{}}}", entries.join(", "))
}

fn dotted(dice: &mut Dice) -> String {
    let parts: Vec<&str> = (0..=dice.below(2))
        .map(|_| dice.pick(&["a", "b", "data", "exports", "s1", "s2", "c", "global"]))
        .collect();
    parts.join(".")
}

fn import(dice: &mut Dice) -> String {
    match dice.below(8) {
        0..=2 => dice.pick(&["data", "a", "b", "data.a", "nothing"]).to_owned(),
        3 => {
            dice.pick(&["{child: a}", "{parent: a}", "1", "{child: 1, parent: a}", "null", "[a]"]).to_owned()
        }
        _ => format!(
            "{{child: {}, parent: {}}}",
            dotted(dice),
            if dice.chance(20) { ".".to_owned() } else { dotted(dice) }
        ),
    }
}

/// Adds a chart and its dependencies below `path`.
#[expect(clippy::too_many_lines, reason = "the parts of a chart, one after the other")]
fn chart(dice: &mut Dice, files: &mut BTreeMap<String, String>, path: &str, name: &str, depth: usize) {
    let mut head = metadata(name);
    if depth < 3 && dice.chance(8) {
        head.push_str("type: library\n");
    }
    let names: Vec<&str> =
        ["s1", "s2", "s3"].into_iter().take(if depth == 0 { 0 } else { dice.below(4) }).collect();
    let mut dependencies = Vec::new();
    for name in &names {
        if dice.chance(10) {
            // It lies there, and nobody names it.
            continue;
        }
        let twice = if dice.chance(10) { 2 } else { 1 };
        for _ in 0..twice {
            let mut entry = format!(
                "- name: {name}\n  version: {}\n  repository: \"\"\n",
                dice.pick(&["0.1.0", "~0.1", "\">=0\"", "*", "0.x"]).replace('*', "\"*\"")
            );
            if twice == 2 || dice.chance(20) {
                let _ = writeln!(entry, "  alias: {}", dice.pick(&["al", "s3", "b"]));
            }
            if dice.chance(35) {
                let condition = dice.pick(&[
                    "s1.enabled",
                    "enabled",
                    "s2.enabled,a",
                    "global.enabled",
                    "a.b",
                    "al.enabled, s3.enabled",
                    "s3.enabled",
                ]);
                let _ = writeln!(entry, "  condition: {condition}");
            }
            if dice.chance(25) {
                let _ = writeln!(entry, "  tags: [{}]", dice.pick(&["t1", "t1, a", "b"]));
            }
            if dice.chance(60) {
                let imports: Vec<String> = (0..=dice.below(2)).map(|_| import(dice)).collect();
                let _ = writeln!(entry, "  import-values: [{}]", imports.join(", "));
            }
            dependencies.push(entry);
        }
    }
    if !dependencies.is_empty() {
        head.push_str("dependencies:\n");
        head.push_str(&dependencies.concat());
    } else if dice.chance(40) {
        head.push_str(dice.pick(&["dependencies: []\n", "dependencies:\n"]));
    }
    files.insert(format!("{path}Chart.yaml"), head);
    if dice.chance(90) {
        files.insert(format!("{path}values.yaml"), format!("{}\n", map(dice, 4)));
    }
    if dice.chance(12) {
        let schema = dice.pick(&[
            r#"{"type": "object", "properties": {"a": {"type": ["string", "integer", "null", "object"]}}}"#,
            r#"{"required": ["a"]}"#,
            r#"{"properties": {"global": {"type": "object"}, "b": {"multipleOf": 0.5}}}"#,
            r#"{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"s1": {"required": ["global"]}}}"#,
        ]);
        files.insert(format!("{path}values.schema.json"), schema.to_owned());
    }
    let touch = match dice.below(6) {
        0 => "{{ $_ := set .Values \"a\" (dict \"set\" 1) }}",
        1 => "{{ $_ := unset .Values \"b\" }}",
        2 => "{{ range $k, $v := .Subcharts }}{{ $k }} {{ toJson $v.Values }} {{ end }}",
        3 => "{{ if .Values.global }}{{ $_ := set .Values.global \"touched\" true }}{{ end }}",
        _ => "",
    };
    let show = dice.pick(&["toJson .Values", "toYaml .Values", "toJson .Values", ".Values"]);
    files.insert(
        format!("{path}templates/v.yaml"),
        format!("{touch}\nv: {{{{ {show} | quote }}}}\nn: {{{{ .Chart.Name }}}} {{{{ include \"who\" . }}}} {{{{ .Chart.IsRoot }}}}\n"),
    );
    files.insert(format!("{path}templates/_who.tpl"), format!("{{{{ define \"who\" }}}}{path}{{{{ end }}}}"));
    for name in names {
        chart(dice, files, &format!("{path}charts/{name}/"), name, depth - 1);
    }
}

/// Returns a chart with dependencies to three levels.
pub(crate) fn dependencies(dice: &mut Dice) -> Random {
    let mut files = BTreeMap::new();
    chart(dice, &mut files, "", "c", 3);
    let values = if dice.chance(70) { map(dice, 4) } else { String::new() };
    Random { files, values }
}
