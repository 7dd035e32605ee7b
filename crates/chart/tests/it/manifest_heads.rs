//! What is read of rendered documents without a YAML parser is what a parser reads of them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test reads its own files and fails by panicking"
)]

use std::path::Path;

use chart::manifest::{self, Head, Heads, Text};
use chart::warnings::Warnings;

/// Documents with values over several lines, with quotes in quotes, with keys in quotes, and with JSON.
const WRITTEN: &[&str] = &[
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    one: some words that\n      go on\n      and on\n    \
     two: \"x\"\n  labels: {\"a\":\"b\",\"c\":1}\ndata:\n  \"k 1\": v\n  text: plain words\n    that go on\n  list:\n  - one two\n    \
     three\n  - \"q\\nr \\\"s\\\" \\u003c\"\n  - {a: b,c: [1,2]}\n",
    "\"apiVersion\": \"v1\"\n\"kind\": \"Secret\"\n\"metadata\":\n  \"name\": \"x\"\n  \"annotations\":\n    \
     \"helm.sh/hook\": \"post-install\"\n'data':\n  \"a\": 'b'\n",
    "kind: A\nmetadata:\n  name: b\n  annotations:\n    y: \"1\"\n    0x1f: a\n",
    "kind: A\nmetadata:\n  name: b\n    c\n",
    "kind: A\nmetadata:\n  name: \"b\\\"c\"\n  annotations:\n    d: \"e\\tf\"\n",
];

/// Returns the documents that Helm printed for the golden charts, and those above.
fn documents() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/render");
    let mut documents = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let text = std::fs::read(entry.unwrap().path().join("expected.yaml")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        documents.extend(manifest::split(&text).into_iter().map(str::to_owned));
    }
    documents.extend(WRITTEN.iter().map(|document| document.trim().to_owned()));
    documents
}

/// Compares both ways of reading one document.
fn check(document: &str) {
    let files = [("t".to_owned(), Text::Readable(document.to_owned()))].into();
    let sorted = manifest::sort(&files, &mut Heads::default(), &mut Warnings::default());
    if manifest::split(document) != [document] {
        return;
    }
    match (Head::read(document.as_bytes()), sorted) {
        (Ok(head), Ok(sorted)) => {
            for manifest in &sorted.manifests {
                assert_eq!(manifest.head, head, "{document}");
            }
            for hook in &sorted.hooks {
                assert_eq!((&hook.name, &hook.kind), (&head.name, &head.kind), "{document}");
            }
        }
        (Err(expected), Err(error)) => {
            assert_eq!(error.source.to_string(), expected.to_string(), "{document}");
        }
        (parsed, _) => panic!("{parsed:?} by the parser only for:\n{document}"),
    }
}

#[test]
fn heads_are_those_that_a_parser_reads() {
    let documents = documents();
    assert!(documents.len() > 200);
    for document in &documents {
        check(document);
    }
}

/// Indicators and scalars that are put into documents to break them.
const PARTS: &[&str] = &[
    "\n",
    " ",
    "  ",
    "- ",
    "-",
    ":",
    ": ",
    "#",
    " #",
    "\"",
    "'",
    "|",
    ">",
    "{",
    "}",
    "[",
    "]",
    "&a ",
    "*a",
    "!t ",
    "a: b\n",
    "null",
    "true",
    "5",
    "1e400",
    ".inf",
    "~",
    "\t",
    "é",
    "? ",
    "%",
    "@",
    "`",
    ",",
    "<<: ",
    "---",
    "...",
    "- - ",
    "\\",
    "\\\"",
    "\\n",
    "\\u0041",
    "\\ud800",
    "\\u00",
    "\\x41",
    "\\/",
    "\"a\": ",
    "\"a\":",
    "'a': ",
    "\"<<\": ",
    "\"\": ",
    "\n    more",
    "\n      more words",
    "\n  more",
    "\n\n    x",
    "\n# c\n    d",
    "{\"a\":1,\"b\":[1,2]}",
    "[1,2]",
    "{a: 1,b: 2}",
    "''",
    "\"x\\\"y\"",
    "'it''s'",
    "{\"a\" : 1}",
    "{'a':b}",
    "[-1]",
    "\n    x: y",
    "\n    - z",
    "\"null\": ",
    "null: ",
    "y: ",
    "  - plain\n    cont\n",
];

/// Lines that are put into them.
const LINES: &[&str] =
    &["kind: X\n", "metadata:\n", "  name: y\n", "  annotations:\n", "    helm.sh/hook: pre-install\n"];

#[test]
fn broken_documents_are_refused_as_a_parser_refuses_them() {
    let parts = [PARTS, LINES].concat();
    let mut state = 7_u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    for document in documents().iter().filter(|document| document.len() < 600) {
        let is_written = WRITTEN.iter().any(|written| written.trim() == document.as_str());
        for _ in 0..if is_written { 2_000 } else { 40 } {
            let mut changed = document.clone();
            for _ in 0..=below(3) {
                let mut at = below(changed.len() + 1);
                while !changed.is_char_boundary(at) {
                    at -= 1;
                }
                if below(3) == 0 {
                    let mut end = (at + 1 + below(6)).min(changed.len());
                    while !changed.is_char_boundary(end) {
                        end += 1;
                    }
                    changed.replace_range(at..end, "");
                } else {
                    changed.insert_str(at, parts.get(below(parts.len())).unwrap());
                }
            }
            check(changed.trim());
        }
    }
}
