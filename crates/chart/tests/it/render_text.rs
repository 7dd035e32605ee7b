//! A template that is rendered with what a chart knows, without being one of its files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use chart::environment::FixedEnvironment;
use chart::object::{Capabilities, KubeVersion};
use chart::render::{Release, Request, render_text};
use chart::template::Limits;
use chart::warnings::Warnings;
use serde_json::json;

use crate::in_memory::chart;

/// Renders a text with a chart that has values, a named template, a file, a subchart, and a template that fails.
fn rendered(text: &str) -> Result<String, String> {
    let files = [
        ("Chart.yaml", "{apiVersion: v2, name: top, version: 0.1.0}"),
        ("values.yaml", "{size: 1, sub: {size: 7}}"),
        ("templates/_names.tpl", "{{ define \"top.name\" }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}"),
        ("templates/a.yaml", "{{ fail \"the chart itself is not rendered\" }}"),
        ("notes.txt", "a note"),
        ("charts/sub/Chart.yaml", "{apiVersion: v2, name: sub, version: 0.1.0}"),
        ("charts/sub/values.yaml", "{kind: inner}"),
    ];
    let chart = chart(&files);
    let release = Release { name: "r".into(), namespace: "n".into(), revision: 3, is_upgrade: true };
    let capabilities = Capabilities::without_cluster(KubeVersion::default());
    let values = json!({"size": 2});
    let request = Request {
        values: values.as_object().unwrap(),
        release: &release,
        capabilities: &capabilities,
        limits: Limits { stack: 1 << 20, ..Limits::default() },
        validate: true,
    };
    let mut environment = FixedEnvironment::default();
    let page = ("bind.yaml", Arc::from(text.as_bytes()));
    render_text(&chart, page, &request, &mut environment, &mut Warnings::default())
        .map_err(|error| error.to_string())
}

#[test]
fn it_knows_all_that_a_template_of_the_chart_knows() {
    for (text, expected) in [
        ("{{ .Values.size }} {{ .Values.sub.size }} {{ .Values.sub.kind }}", "2 7 inner"),
        ("{{ include \"top.name\" . }} {{ .Release.Revision }} {{ .Release.IsUpgrade }}", "r-top 3 true"),
        ("{{ .Files.Get \"notes.txt\" }} {{ .Template.Name }} {{ .Values.none }}", "a note top/bind.yaml "),
        ("", ""),
    ] {
        assert_eq!(rendered(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn a_text_that_fails_is_named() {
    for text in ["{{ .Values.size", "{{ fail \"x\" }}"] {
        let error = rendered(text).unwrap_err();
        assert!(error.contains("top/bind.yaml"), "{error}");
    }
}
