//! What a key of the ConfigMap can make the operator hold, whatever it says.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use engine::{Catalog, Config, ConfigData, ConfigObject, EnabledFlag, Engine, Event, Global, Module, Time};
use serde_json::json;
use values::schema::Schemas;

use crate::{alone, grown_by};

/// How long the text of a key is; a ConfigMap has at most a mebibyte.
const TEXT: usize = 900 << 10;

/// What may be held beside the text. The process takes up to two fifths more than is counted here, and 100 MiB are its limit.
const MOST: usize = 72 << 20;

/// The one text that somebody may have written; it takes effect.
const HONEST: &str = "a list as people write it";

/// Items of lists get defaults, and must be strings where they are told to.
const SCHEMA: &str = "
type: object
additionalProperties: true
properties:
  objects:
    type: array
    items:
      type: object
      additionalProperties: true
      properties:
        a: {type: object, default: {b: {c: {d: 1}}}}
        e: {type: object, default: {f: {g: {h: 1}}}}
  texts:
    type: object
    additionalProperties: {type: array, items: {type: string}}
  choices:
    type: array
    items: {anyOf: [{type: string}, {type: object, required: [a, b, c, d, e, f], additionalProperties: false}]}
";

fn engine() -> Engine {
    let schemas = Schemas::compile(Some(("config-values.yaml", SCHEMA)), None).unwrap();
    let module = Module {
        name: "alpha".into(),
        key: "alpha".into(),
        chart_key: "alpha".into(),
        namespace: None,
        order: 1,
        path: "/modules/001-alpha".into(),
        content: 1,
        origin: engine::Origin::Files,
        enabled: Some(EnabledFlag { value: true, source: "modules/values.yaml".into() }),
        enabled_script: None,
        static_values: Arc::new(json!({"static": 1})),
        schemas: Arc::new(schemas),
        hooks: Vec::new(),
        layout: engine::ValuesLayout::Section,
        plans: engine::Plans::default(),
        has_unread_hooks: false,
        has_chart: true,
        chart: None,
        package: None,
        version: None,
        settings: engine::ModuleSettings::default(),
        dependencies: engine::ChartDependencies::default(),
        crds: Vec::new(),
        broken: None,
    };
    let catalog = Catalog {
        global: Arc::new(Global::default()),
        modules: Arc::new(vec![Arc::new(module)]),
        complete: true,
        warnings: Vec::new(),
    };
    Engine::new(Config::default(), catalog)
}

/// Returns a text of the usual length: `head`, then `piece` again and again, then `tail`.
fn repeated(head: &str, piece: &str, tail: &str) -> String {
    let count = (TEXT - head.len() - tail.len()) / piece.len();
    format!("{head}{}{tail}", piece.repeat(count))
}

/// Returns anchors inside of anchors around many scalars.
fn nested_anchors(scalar: &str) -> String {
    const DEPTH: usize = 60;
    let mut head = String::from("a: ");
    for level in 0..DEPTH {
        let _ = write!(head, "&a{level} [");
    }
    repeated(&head, scalar, &format!("1{}\n", "]".repeat(DEPTH)))
}

fn texts() -> BTreeMap<&'static str, String> {
    let long = "k".repeat(TEXT / 2);
    let mut anchored_keys = String::from("a:\n");
    for n in 0..TEXT / 30 {
        let _ = writeln!(anchored_keys, "  &k{n} key{n}: &v{n} 1");
    }
    BTreeMap::from([
        ("anchors inside of anchors", nested_anchors("x, ")),
        ("anchors inside of anchors around maps", nested_anchors("{a}, ")),
        ("an anchor for each key and value", anchored_keys),
        ("aliases of a small map", repeated("m: &m {a}\nb: [", "*m,", "]\n")),
        (
            "merges of a large map",
            repeated(&format!("m: &m {{{}}}\nb: [", "a,b,c,d,e,f,g,h,".repeat(9)), "{<<: *m},", "]\n"),
        ),
        ("small maps", repeated("a: [", "{a},", "]\n")),
        ("empty lists", repeated("a: [", "[],", "]\n")),
        ("empty maps", repeated("a: [", "{},", "]\n")),
        ("objects that get defaults", repeated("objects: [", "{},", "]\n")),
        ("texts that are numbers", repeated(&format!("texts: {{\"{long}\": ["), "1,", "]}\n")),
        (
            "choices that are bad",
            repeated("choices: [", "{b: 2, some-name-that-is-not-known: 3, some-other-name: 4},", "]\n"),
        ),
        (HONEST, repeated("a:\n", "- name: some-name-of-something\n  value: a value of so many words\n", "")),
    ])
}

#[test]
fn slip_05_no_text_of_a_key_makes_the_operator_hold_a_hundred_megabytes() {
    let _alone = alone();
    let mut held = Vec::new();
    for (what, text) in texts() {
        assert!(text.len() <= 1 << 20 && text.len() > TEXT / 2, "{what}: {}", text.len());
        let other = format!("{text}\nother: 1\n");
        let mut engine = engine();
        let grown = grown_by(async {
            // Each edit finds all in use that the one before it left.
            for (version, text) in [("1", &text), ("2", &other), ("3", &text), ("4", &other)] {
                let data = Some(Arc::new(ConfigData(BTreeMap::from([("alpha".to_owned(), text.clone())]))));
                engine.handle(
                    Time::START,
                    Event::ConfigChanged {
                        object: ConfigObject::ConfigMap,
                        version: version.to_owned(),
                        data,
                    },
                );
                engine.handle(Time::START, Event::Started);
            }
        });
        if what == HONEST {
            let (_, input) = engine.chart_input(&"alpha".into()).unwrap();
            assert!(input.module.unwrap().values.get("a").is_some(), "{what} is in use");
        }
        held.push((what, grown >> 20));
    }
    let most = held.iter().all(|(_, mebibytes)| *mebibytes <= MOST >> 20);
    assert!(most, "held at most, in MiB: {held:#?}");
}
