//! How many bytes renders take: what is copied is counted, not timed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use chart::chart::Chart;
use chart::environment::FixedEnvironment;
use chart::load::{Tree, from_directory};
use chart::object::{Capabilities, KubeVersion};
use chart::render::{Release, Request};
use chart::render_cache::{Cache, render};
use chart::template::{Limits, Renderer, TemplateSet, parse};
use chart::value::Value;
use chart::warnings::Warnings;

use crate::counting;

/// A thread of a test has 2 MiB of stack, of which a render may use half.
fn limits() -> Limits {
    Limits { stack: 1 << 20, ..Limits::default() }
}

/// Returns what a template prints, and how many bytes the render took.
fn counted(text: &str, data: &Value) -> (String, usize) {
    let mut set = TemplateSet::new();
    set.add(&parse("c/t.yaml", text.as_bytes()).unwrap());
    let mut environment = FixedEnvironment::default();
    let before = counting::taken_here();
    let out = Renderer::new(&mut environment, set, limits()).render("c/t.yaml", data).unwrap();
    let taken = counting::taken_here() - before;
    (String::from_utf8(out).unwrap(), taken)
}

/// Returns about a megabyte of small values.
fn megabyte() -> Value {
    let items = (0..10_000).map(|number| (format!("key-{number:05}"), Value::text("x".repeat(60))));
    Value::Map(chart::value::Map::new(items.map(|(key, value)| (key.into(), value)).collect()))
}

#[test]
fn a_large_value_passes_through_a_hundred_includes_without_a_copy() {
    let text = "{{ define \"a\" }}{{ if .n }}{{ include \"a\" (dict \"n\" (sub .n 1) \"all\" .all) }}\
                {{ else }}{{ len .all }}{{ end }}{{ end }}{{ include \"a\" (dict \"n\" 100 \"all\" .) }}";
    let (out, taken) = counted(text, &megabyte());
    assert_eq!(out, "10000");
    assert!(taken < 256 << 10, "{taken} bytes");
}

/// Copies of all elements would take more than a gigabyte, and more than the limit of a render.
#[test]
fn a_list_that_ten_thousand_elements_are_appended_to_is_seldom_copied() {
    let text = "{{ $all := list }}{{ range $number := until 10000 }}{{ $all = append $all $number }}{{ end }}\
                {{ len $all }} {{ first $all }} {{ last $all }}";
    let (out, taken) = counted(text, &Value::Nil);
    assert_eq!(out, "10000 0 9999");
    assert!(taken < 24 << 20, "{taken} bytes");
}

#[test]
fn one_text_that_tpl_is_given_a_thousand_times_is_parsed_once() {
    let text = |times: usize| format!("{{{{ range {times} }}}}{{{{ tpl $.text $ }}}}{{{{ end }}}}");
    let data =
        Value::map([("text", Value::text("{{/* one */}}{{ .name | default \"x\" | quote }}".repeat(20)))]);
    let (once, more) = (counted(&text(1), &data).1, counted(&text(1_001), &data).1);
    let each = (more - once) / 1_000;
    assert!(each * 3 < once, "{each} bytes each time, {once} the first time");
}

/// Vectors with room for more, and nodes as large as the largest of them, took 28 times the text. Nodes in pieces of memory of
/// their own took more than ten times the text.
#[test]
fn a_parsed_template_has_no_room_for_what_does_not_come() {
    let text = "name: {{ .Values.name }}\n{{- if .Values.on }}\nlabels: {{ include \"app.labels\" . | nindent 4 }}\n{{- end }}\n"
        .repeat(100);
    let before = counting::live_here();
    let parsed = parse("c/t.yaml", text.as_bytes()).unwrap();
    let taken = usize::try_from(counting::live_here() - before).unwrap();
    assert!(taken < 10 * text.len(), "{taken} bytes for a text of {}", text.len());
    drop(parsed);
}

/// A chart with subcharts, whose globals are about a megabyte.
fn with_subcharts(count: usize) -> Chart {
    let mut files = BTreeMap::new();
    let mut listed = "apiVersion: v2\nname: top\nversion: 0.1.0\ndependencies:\n".to_owned();
    for number in 0..count {
        writeln!(listed, "- {{name: sub{number}, version: 0.1.0}}").unwrap();
        let about = format!("apiVersion: v2\nname: sub{number}\nversion: 0.1.0\n");
        files.insert(format!("charts/sub{number}/Chart.yaml"), about);
        let shown = "n: {{ len .Values.global.all.inner }}\n";
        files.insert(format!("charts/sub{number}/templates/a.yaml"), shown.to_owned());
    }
    files.insert("Chart.yaml".to_owned(), listed);
    let tree: Tree = files.into_iter().map(|(path, text)| (path, Arc::from(text.as_bytes()))).collect();
    from_directory(&tree, &mut Warnings::default()).unwrap()
}

#[test]
fn globals_of_a_megabyte_are_not_copied_for_each_of_twenty_subcharts() {
    let values = serde_json::json!({"global": {"all": {"inner": megabyte().to_json().unwrap()}}});
    let values = values.as_object().unwrap();
    let release = Release { name: "r".into(), namespace: "n".into(), revision: 1, is_upgrade: false };
    let capabilities = Capabilities::without_cluster(KubeVersion::default());
    let request =
        Request { values, release: &release, capabilities: &capabilities, limits: limits(), validate: true };
    let taken = |count: usize| {
        let chart = with_subcharts(count);
        let before = counting::taken_here();
        let mut environment = FixedEnvironment::default();
        let rendered =
            render(&chart, &request, &mut Cache::default(), &mut environment, &mut Warnings::default());
        let rendered = rendered.unwrap();
        assert!(rendered.manifests.iter().all(|one| one.content.ends_with("n: 10000")));
        assert_eq!(rendered.manifests.len(), count);
        counting::taken_here() - before
    };
    let (one, twenty) = (taken(1), taken(20));
    assert!(twenty < one + (2 << 20), "{one} bytes with one, {twenty} with twenty");
}
