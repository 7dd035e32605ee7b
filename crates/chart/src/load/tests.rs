//! Tests of reading charts.

use super::*;

fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(name, data)| ((*name).to_owned(), data.as_bytes().into())).collect()
}

fn load(files: &[(&str, &str)]) -> Result<Chart, LoadError> {
    from_directory(&tree(files), &mut Warnings::default())
}

const CHART: (&str, &str) = ("Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.0.0\n");

#[test]
fn files_are_sorted_into_templates_files_and_subcharts() {
    let chart = load(&[
        CHART,
        (".helmignore", "*.bak\n"),
        ("a.bak", ""),
        ("values.yaml", "\u{feff}a: 1\n"),
        ("templates/a-b.yaml", ""),
        ("templates/a/x.yaml", ""),
        ("crds/x.yaml", ""),
        ("charts/kid/Chart.yaml", "name: kid\nversion: 0.1.0\n"),
        ("charts/kid/templates/k.yaml", ""),
        ("charts/_off/Chart.yaml", "["),
        ("charts/kid.tgz.prov", "p"),
    ])
    .unwrap();
    let names = |files: &[File]| files.iter().map(|file| file.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&chart.templates), ["templates/a/x.yaml", "templates/a-b.yaml"]);
    assert_eq!(names(&chart.files), [".helmignore", "charts/kid.tgz.prov", "crds/x.yaml"]);
    assert_eq!(chart.dependencies.len(), 1);
    assert_eq!(chart.dependencies[0].metadata.api_version, "v1");
    assert_eq!(serde_json::to_string(&chart.defaults()).unwrap(), "{\"a\":1.0}");
}

#[test]
fn what_is_wrong_with_a_chart_is_said() {
    for (files, expected) in [
        (vec![("values.yaml", "a: 1")], "Chart.yaml file is missing"),
        (vec![CHART, (".helmignore", "**/x")], "double-star (**) syntax is not supported"),
        (
            vec![CHART, ("charts/README.md", "x")],
            "error unpacking subchart README.md in demo: Chart.yaml file is missing",
        ),
        (
            vec![CHART, ("charts/a.tgz/x", "x")],
            "error unpacking subchart tar in demo: expected a.tgz, got a.tgz/x",
        ),
        (
            vec![CHART, ("values.yaml", "[1]")],
            "cannot load values.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
    ] {
        assert_eq!(load(&files).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_module_without_metadata_is_a_chart_of_its_name() {
    let files = tree(&[
        ("hooks/a.sh", ""),
        ("templates/lib/x.yaml", ""),
        ("lib/y", ""),
        ("templates/t.yaml", ""),
        ("README.md", ""),
        (".helmignore", "README.md"),
    ]);
    let chart = from_module("my-module", &files, &mut Warnings::default()).unwrap();
    assert_eq!(chart.metadata.name, "my-module");
    assert_eq!(chart.metadata.version, "0.2.0");
    assert_eq!(chart.templates.len(), 2);
    assert_eq!(chart.files.len(), 2);
}

#[test]
fn charts_within_charts_have_a_limit() {
    let path = "charts/a/".repeat(MAX_CHART_DEPTH + 2);
    let mut files = Tree::new();
    for depth in 0..MAX_CHART_DEPTH + 3 {
        let at = path.get(..depth * "charts/a/".len()).unwrap();
        files.insert(format!("{at}Chart.yaml"), b"name: a\nversion: 1.0.0".as_slice().into());
    }
    let error = from_directory(&files, &mut Warnings::default()).unwrap_err().to_string();
    assert!(error.ends_with("more than 32 deep"), "{error}");
}
