//! How long reading, writing, patching and validating values takes.

#![expect(clippy::unwrap_used, reason = "a benchmark may stop")]

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use values::patch::{Patch, Root, Target};
use values::schema::Schemas;
use values::{Section, yaml};

fn main() {
    divan::main();
}

/// Returns manifests of about 106 KiB.
fn manifests() -> String {
    let mut text = String::from("items:\n");
    let mut index = 0;
    while text.len() < 106 * 1024 {
        write!(
            text,
            "- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-{index}
    namespace: production
    labels: {{app: web, tier: \"front\"}}
    annotations:
      description: 'a deployment: number {index}, one of many'
  spec:
    replicas: {index}
    paused: off
    selector:
      matchLabels:
        app: web
    template:
      spec:
        containers:
        - name: main
          image: registry.example.com/web:1.{index}
          args: [--listen, \":8080\", --verbose]
          resources:
            limits: {{cpu: 500m, memory: 128Mi}}
          env:
          - name: SCRIPT
            value: |
              set -e
              exec \"$@\"
"
        )
        .unwrap();
        index += 1;
    }
    text
}

#[divan::bench]
fn yaml_parse_106_kib(bencher: divan::Bencher) {
    let text = manifests();
    bencher.bench(|| yaml::parse(divan::black_box(&text)).unwrap());
}

#[divan::bench]
fn yaml_emit_106_kib(bencher: divan::Bencher) {
    let value = yaml::parse(&manifests()).unwrap();
    bencher.bench(|| yaml::emit(divan::black_box(&value)));
}

fn schemas() -> Schemas {
    let config = "
type: object
properties:
  apps:
    type: array
    items:
      type: object
      required: [name]
      properties:
        name: {type: string, pattern: '^[a-z0-9-]+$', minLength: 1}
        replicas: {type: integer, minimum: 0, default: 1}
        mode: {type: string, enum: [fast, slow], default: fast}
";
    let values = "
x-extend: {schema: config-values.yaml}
type: object
properties:
  internal: {type: object, default: {}, additionalProperties: true}
";
    Schemas::compile(Some(("config-values.yaml", config)), Some(("values.yaml", values))).unwrap()
}

fn section() -> Section {
    let apps: Vec<Value> =
        (0..50).map(|index| json!({"name": format!("app-{index}"), "replicas": index})).collect();
    let root = Root::Module("web".to_owned());
    Section::new(root, json!({ "apps": apps }), Arc::new(schemas())).unwrap()
}

#[divan::bench]
fn schema_compile() -> Schemas {
    schemas()
}

#[divan::bench]
fn section_validate_50_items(bencher: divan::Bencher) {
    let section = section();
    bencher.bench(|| section.validate());
}

#[divan::bench]
fn section_patched(bencher: divan::Bencher) {
    let section = section();
    let text = br#"{"op":"add","path":"/web/internal/ready","value":true}"#;
    bencher.bench(|| {
        let patch = Patch::read(text, Target::Values, section.root()).unwrap();
        section.with_values_patch(&patch).unwrap()
    });
}
