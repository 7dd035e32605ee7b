//! Values that charts share, as Helm's charts do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use chart::template::Limits;

use crate::in_memory;

/// Renders a chart of these files; returns its documents by file.
fn rendered(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let rendered = in_memory::rendered(files, Limits { stack: 1 << 20, ..Limits::default() }).unwrap();
    rendered.manifests.into_iter().map(|one| (one.path, one.content.to_string())).collect()
}

/// What Helm 3.19 prints: the tables inside a table of globals are the same for all charts, the table around them is not.
#[test]
fn a_change_of_a_shared_global_is_seen_by_all_charts() {
    let shown = "a: {{ .Values.global.m.q.x }}\nk: {{ .Values.global.m }}\n";
    let files = [
        ("Chart.yaml", "{apiVersion: v2, name: top, version: 0.1.0}"),
        ("values.yaml", "global: {m: {q: {x: 1}}}"),
        ("templates/a.yaml", shown),
        ("charts/one/Chart.yaml", "{apiVersion: v2, name: one, version: 0.1.0}"),
        ("charts/one/templates/a.yaml", shown),
        ("charts/two/Chart.yaml", "{apiVersion: v2, name: two, version: 0.1.0}"),
        (
            "charts/two/templates/a.yaml",
            "{{ $_ := set .Values.global.m.q \"x\" 2 }}{{ $_ := set .Values.global.m \"z\" 2 }}b: {{ .Values.global.m.q.x }}\n",
        ),
    ];
    let expected = [
        ("top/charts/one/templates/a.yaml", "a: 2\nk: map[q:map[x:2]]"),
        ("top/charts/two/templates/a.yaml", "b: 2"),
        ("top/templates/a.yaml", "a: 2\nk: map[q:map[x:2]]"),
    ];
    let expected = expected.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(rendered(&files), expected);
}
