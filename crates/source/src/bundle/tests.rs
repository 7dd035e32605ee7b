//! What the lint finds beyond what was recorded of the original.

use super::*;
use crate::index::Index;

/// A file of CRDs, in whose second document stands what looks like the beginning of another one.
const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.io}
spec: {}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: words.example.io}
spec:
  description: \"
    --- [\"
--- # c
";

const META_TEXT: &str = "{id: i, name: web-app, version: 1.2.0, description: d, displayName: D, weight: 30}";

/// Returns a module bundle with these edits; files below `hooks/` are executable.
fn module(edits: &[(&str, Option<&str>)]) -> Tree {
    let base = [
        (META, META_TEXT),
        ("Chart.yaml", "{name: web, version: 0.1.0}"),
        ("templates/a.yaml", "{{ if }}"),
        ("values.yaml", "webApp: {a: 1}\nwebAppEnabled: true\n"),
        ("openapi/config-values.yaml", "{type: object, properties: {a: {type: integer}}}"),
        ("crds/a.yaml", CRD),
        ("hooks/a.sh", "#!/bin/sh"),
        ("hooks/b/README.md", "x"),
    ];
    let entry = |path: &str, text: &str| {
        let is_executable = path.starts_with("hooks/") && !tree::has_extension(path, "md");
        (path.to_owned(), Entry::file(text.as_bytes(), is_executable))
    };
    let mut tree: Tree = base.iter().map(|(path, text)| entry(path, text)).collect();
    for (path, text) in edits {
        match text {
            Some(text) => tree.extend([entry(path, text)]),
            None => drop(tree.remove(*path)),
        }
    }
    tree
}

/// Lints a bundle whose `module.yaml` may say anything.
fn lint(tree: &Tree) -> Report {
    super::lint(tree, |_| Ok(()))
}

fn problems(tree: &Tree) -> Vec<String> {
    match lint(tree).outcome {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(Problem::to_string).collect(),
    }
}

#[test]
fn a_module_bundle_is_read() {
    let bundle = lint(&module(&[])).outcome.unwrap();
    assert_eq!((bundle.name.as_str(), bundle.version.to_string().as_str()), ("web-app", "1.2.0"));
    assert_eq!((bundle.kind, bundle.weight, bundle.plans.len()), (Kind::Module, Some(30), 0));
    assert!(lint(&module(&[("Chart.yaml", None)])).outcome.is_ok(), "templates/ alone are a chart");
}

#[test]
fn what_is_no_crd_is_a_problem_wherever_it_is_written_from() {
    let crd = CRD.replace("CustomResourceDefinition", "ConfigMap");
    let only = "document 1: only CRDs of apiextensions.k8s.io/v1 belong here, not apiextensions.k8s.io/v1 ConfigMap: remove it";
    let found = problems(&chart(&[("chart/web/crds/a.yaml", &crd), ("chart/web/crds/b/doc-a.yaml", "a: b")]));
    assert_eq!(found, [format!("chart/web/crds/a.yaml: {only}")]);
    let found = problems(&chart(&[("chart/web/crds/a.yaml", "[x"), ("chart/web/crds/b.txt", "[x")]));
    assert!(found.len() == 1 && found[0].starts_with("chart/web/crds/a.yaml: line 2, column "), "{found:?}");
    let head = ("charts/db/Chart.yaml", "{name: db, version: 0.1.0}");
    let with = |text| module(&[(head.0, Some(head.1)), ("charts/db/crds/a.yaml", Some(text))]);
    assert_eq!(problems(&with(&crd)), [format!("charts/db/crds/a.yaml: {only}")]);
    assert_eq!(problems(&with(CRD)), [""; 0]);
    assert_eq!(problems(&chart(&[("chart/web/crds/a.yaml", CRD)])), [""; 0]);
}

#[test]
fn a_module_may_name_its_chart_and_then_has_none_of_its_own() {
    let named = Some("chart: {repository: corp, name: web, version: '1'}");
    let parts = ["Chart.yaml", "templates/a.yaml", "hooks/a.sh", "hooks/b/README.md", "crds/a.yaml"];
    let bare: Vec<(&str, Option<&str>)> = parts.iter().map(|part| (*part, None)).collect();
    let with = |file| bare.iter().copied().chain([("module.yaml", file)]).collect::<Vec<_>>();
    assert_eq!(problems(&module(&with(named))), [""; 0]);
    for file in [None, Some("namespace: web")] {
        let found = problems(&module(&with(file)));
        assert!(found.len() == 1 && found[0].contains("there is nothing to install"), "{found:?}");
    }
    let found = problems(&module(&[("module.yaml", named)]));
    assert_eq!(found, ["module.yaml: chart: the module has one of its own (Chart.yaml): remove one of them"]);
}

#[test]
fn the_namespace_of_the_release_is_known_without_loading_the_module() {
    for (file, expected) in [
        (Some("namespace: web-1"), Some("web-1")),
        (Some("namespace: Web"), None),
        (Some("namespace: [a]"), None),
        (None, None),
    ] {
        let bundle = lint(&module(&[("module.yaml", file)])).outcome.unwrap();
        assert_eq!(bundle.namespace.as_deref(), expected, "{file:?}");
    }
}

#[test]
fn what_module_yaml_may_not_say_is_a_problem_of_that_file() {
    let tree = module(&[("module.yaml", Some("nmespace: web"))]);
    let problem = super::lint(&tree, |text| Err(format!("{text} is wrong"))).outcome.unwrap_err();
    assert_eq!(problem[0].to_string(), "module.yaml: nmespace: web is wrong");
    let absent = super::lint(&module(&[]), |text| Err(text.to_owned()));
    assert!(absent.outcome.is_ok());
}

#[test]
fn a_file_is_one_document_without_a_key_twice() {
    let meta = "id: i\nname: web-app\nversion: 1.2.0\ndescription: d\ndisplayName: D\n";
    assert_eq!(problems(&module(&[(META, Some(&format!("---\n{meta}---\n# nothing\n")))])), [""; 0]);
    for (path, text, expected) in [
        (META, format!("{meta}id: j\n"), "meta.yaml: line 6, column 1: key \"id\" is already set at line 1"),
        (META, format!("{meta}---\nid: j\n"), "meta.yaml: line 6, column 1: a second document begins here"),
        (
            "values.yaml",
            "webApp: {a: 1, a: 2}".to_owned(),
            "values.yaml: line 1, column 16: key \"a\" is already",
        ),
        (
            "openapi/values.yaml",
            "type: object\ntype: object\n".to_owned(),
            "openapi/values.yaml: line 2, column 1: key",
        ),
        (
            "module.yaml",
            "namespace: web\n---\nnamespace: db\n".to_owned(),
            "module.yaml: line 2, column 1: a second",
        ),
    ] {
        let found = problems(&module(&[(path, Some(&text))]));
        assert!(found.iter().any(|problem| problem.starts_with(expected)), "{path}: {found:?}");
    }
    // Charts are read as Helm reads them.
    let chart = "name: web\nversion: 0.1.0\nversion: 0.2.0\n";
    assert_eq!(problems(&module(&[("Chart.yaml", Some(chart))])), [""; 0]);
}

#[test]
fn a_text_that_yaml_reads_as_a_boolean_is_told() {
    let meta = META_TEXT.replace("description: d", "description: y");
    let report = lint(&module(&[(META, Some(&meta))]));
    assert_eq!(report.outcome.unwrap().description, "true");
    let warnings: Vec<String> = report.warnings.iter().map(Problem::to_string).collect();
    assert_eq!(
        warnings,
        ["meta.yaml: description: it is a word for true, and read as that: write a text in quotes"]
    );
    let quoted = META_TEXT.replace("description: d", "description: 'y'");
    let report = lint(&module(&[(META, Some(&quoted))]));
    assert_eq!((report.outcome.unwrap().description.as_str(), report.warnings.len()), ("y", 0));
}

#[test]
fn what_is_wrong_with_a_module_names_its_file() {
    for (path, text, problem) in [
        ("values.yaml", "other: {}", "values.yaml: other: only webApp and webAppEnabled"),
        ("values.yaml", "global: {}", "values.yaml: global: only webApp and webAppEnabled"),
        ("values.yaml", "webApp: 1", "values.yaml: webApp: the section has to be a mapping"),
        ("values.yaml", "webAppEnabled: maybe", "values.yaml: webAppEnabled: it has to be true or false"),
        ("values.yaml", "a: [b", "values.yaml: "),
        (
            "Chart.yaml",
            "{name: web}",
            "Chart.yaml: the chart can't be loaded: validation: chart.metadata.version is required",
        ),
        ("openapi/values.yaml", "type: 7", "openapi/values.yaml: "),
        ("openapi/other.yaml", "a: [b", "openapi/other.yaml: "),
        ("crds/a.yaml", &format!("{CRD}---\na: [b"), "crds/a.yaml: line "),
        ("crds/a.yaml", "hello", "crds/a.yaml: document 1: only CRDs of apiextensions.k8s.io/v1 belong here"),
        (
            "crds/b/c.yaml",
            "- a",
            "crds/b/c.yaml: document 1: only CRDs of apiextensions.k8s.io/v1 belong here",
        ),
        ("crds/doc-a.yaml", "[x", "crds/doc-a.yaml: "),
        ("charts/db/Chart.yaml", "x", "Chart.yaml: the chart can't be loaded"),
        ("enabled", "#!/bin/sh", "enabled: the file is not executable"),
        ("meta.yaml", "- a", "meta.yaml: the file has to be a mapping"),
    ] {
        let found = problems(&module(&[(path, Some(text))]));
        assert!(found.len() == 1 && found[0].starts_with(problem), "{path} {text}: {found:?}");
    }
    for (field, problem) in [
        ("weight: -1", "weight: it has to be a whole number"),
        ("weight: 2147483648", "weight: it has to be a whole number"),
        ("name: webApp", "name: 'webApp' name should be in kebab-case"),
        ("name: [a]", "name: it has to be a text"),
        ("name: global", "name: the values of the module would be the global ones"),
        (
            "name: web-enabled",
            "name: its key in the ConfigMap would be webEnabled, which says something about a module with the key web",
        ),
        ("name: web-maintenance", "name: its key in the ConfigMap would be webMaintenance"),
        (
            "name: a-name-of-fifty-four-letters-is-too-long-for-a-release",
            "name: the release of the module has that name, too",
        ),
        ("name: 'a.b'", "name: "),
        ("labels: [a]", "labels: it has to be a mapping of texts"),
        ("requires: {a: b}", "requires: it has to be a list of texts"),
        ("requires: [[a]]", "requires: it has to be a list of texts"),
        ("planUpdatable: 1", "planUpdatable: it has to be true or false"),
    ] {
        // It takes the place of one that is there.
        let key = field.split(':').next().unwrap();
        let rest = META_TEXT.trim_matches(['{', '}']).split(", ").filter(|other| !other.starts_with(key));
        let text = format!("{{{}, {field}}}", rest.collect::<Vec<_>>().join(", "));
        let found = problems(&module(&[(META, Some(&text))]));
        assert!(found.len() == 1 && found[0].contains(problem), "{field}: {found:?}");
    }
}

#[test]
fn a_hook_that_can_not_be_run_is_a_problem_and_a_library_is_none() {
    let mut tree = module(&[]);
    for path in ["hooks/a.sh", "hooks/lib/c.sh", "hooks/.git/d", "hooks/e~", "hooks/__pycache__/a.pyc"] {
        tree.insert(path.to_owned(), Entry::file(b"x".as_slice(), false));
    }
    let found = problems(&tree);
    assert!(found.len() == 1 && found[0].starts_with("hooks/a.sh: the file is not executable"), "{found:?}");
}

#[test]
fn all_problems_are_found_at_once_and_sorted() {
    let found = problems(&module(&[
        (META, Some("{name: a_b, version: x}")),
        ("values.yaml", Some("- a")),
        ("crds/a.yaml", Some("a: [b")),
    ]));
    let places: Vec<&str> = found.iter().map(|problem| problem.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["crds/a.yaml", META, META, META, META, META, "values.yaml"], "{found:#?}");
}

#[test]
fn a_version_that_yaml_takes_for_another_number_is_a_problem() {
    let with = |version: &str| module(&[(META, Some(&META_TEXT.replace("1.2.0", version)))]);
    let problem = "meta.yaml: version: it is read as the number 1.1: write the version in quotes";
    assert_eq!(problems(&with("1.10")), [problem]);
    for version in ["'1.10'", "1.10.0", "2"] {
        assert_eq!(problems(&with(version)), Vec::<String>::new(), "{version}");
    }
}

#[test]
fn nothing_to_install_is_a_problem() {
    let tree = Tree::from([(META.to_owned(), Entry::file(META_TEXT.as_bytes(), false))]);
    assert!(problems(&tree)[0].starts_with("there is nothing to install"));
}

#[test]
fn there_is_a_limit_for_bytes_entries_and_problems() {
    let mut tree = module(&[]);
    let huge =
        Entry::File { content: Content::Size(crate::archive_path::MAX_UNPACKED_BYTES), is_executable: true };
    tree.insert("hooks/big".to_owned(), huge);
    assert!(problems(&tree)[0].contains("more than 64 MiB"));
    let mut tree = module(&[]);
    tree.extend(
        (0..crate::archive_path::MAX_ENTRIES)
            .map(|n| (format!("hooks/x{n}"), Entry::file(b"".as_slice(), false))),
    );
    let found = problems(&tree);
    assert_eq!(found.len(), MAX_PROBLEMS + 1);
    assert!(found.iter().any(|problem| problem.contains("more than 5000 files")), "{found:#?}");
    assert_eq!(found.last().unwrap(), "and 4901 more");
}

#[test]
fn content_that_is_not_needed_need_not_be_there() {
    let whole = module(&[("templates/b.yaml", Some("b")), ("README.md", Some("r"))]);
    let without = |(path, entry): (&String, &Entry)| {
        let entry = match entry {
            Entry::File { content: Content::Bytes(bytes), is_executable } if !tree::needs_content(path) => {
                Entry::File { content: Content::Size(bytes.len() as u64), is_executable: *is_executable }
            }
            other @ (Entry::File { .. } | Entry::Directory | Entry::Link { .. }) => other.clone(),
        };
        (path.clone(), entry)
    };
    let sizes: Tree = whole.iter().map(without).collect();
    assert_ne!(whole, sizes);
    for edit in [None, Some("values.yaml"), Some("Chart.yaml"), Some(META), Some("crds/a.yaml")] {
        let (mut whole, mut sizes) = (whole.clone(), sizes.clone());
        for tree in [&mut whole, &mut sizes] {
            tree.extend(edit.map(|path| (path.to_owned(), Entry::file(b"a: [b".as_slice(), false))));
        }
        assert_eq!(problems(&sizes), problems(&whole), "{edit:?}");
        assert_eq!(problems(&sizes).is_empty(), edit.is_none());
    }
}

#[test]
fn a_link_is_what_it_leads_to() {
    let mut tree = module(&[("shared/meta.yaml", Some(META_TEXT))]);
    tree.insert(META.to_owned(), Entry::Link { target: "shared/meta.yaml".to_owned() });
    assert!(lint(&tree).outcome.is_ok());
    tree.insert(META.to_owned(), Entry::Link { target: "missing".to_owned() });
    assert_eq!(
        problems(&tree),
        ["meta.yaml: the file is missing: add it with id, name, version, description and displayName"]
    );
}

#[test]
fn the_directory_around_a_bundle_is_found() {
    for (paths, expected) in [
        (&["a", "a/meta.yaml", "a/chart/b"][..], Some("a")),
        (&["meta.yaml", "chart/b"], None),
        (&["a/meta.yaml", "b/c"], None),
        (&["a/b/meta.yaml"], None),
        (&[], None),
    ] {
        assert_eq!(tree::top_directory(paths.iter().copied()), expected, "{paths:?}");
    }
}

/// Returns a chart bundle with the plans micro and big, and these edits.
fn chart(edits: &[(&str, &str)]) -> Tree {
    let base = [
        (META, META_TEXT),
        ("chart/web/Chart.yaml", "{name: web, version: 0.1.0}"),
        ("plans/1/meta.yaml", "{id: p1, name: micro, description: d, displayName: D}"),
        ("plans/2/meta.yaml", "{id: p2, name: big, description: d, displayName: D, bindable: true}"),
        ("plans/2/values.yaml", "size: 9"),
        ("plans/2/create-instance-schema.json", "{\"type\": \"object\"}"),
        ("plans/2/bind.yaml", "credential: []"),
    ];
    base.iter()
        .chain(edits)
        .map(|(path, text)| ((*path).to_owned(), Entry::file(text.as_bytes(), false)))
        .collect()
}

#[test]
fn plans_are_read_with_what_their_modules_need() {
    let bundle = ChartBundle::read(&chart(&[])).unwrap();
    assert_eq!(bundle.chart, "chart/web");
    let [micro, big] = bundle.plans.as_slice() else { panic!("{bundle:?}") };
    assert_eq!((micro.name.as_str(), &micro.values, &micro.schema), ("micro", &serde_json::json!({}), &None));
    assert_eq!((big.name.as_str(), &big.values), ("big", &serde_json::json!({"size": 9})));
    assert_eq!((&micro.credentials, big.credentials.as_deref()), (&None, Some("plans/2/bind.yaml")));
    assert_eq!(big.schema.as_deref(), Some(br#"{"type": "object"}"#.as_slice()));
    // A template that nobody may bind is not read, and a schema can say nothing.
    let edits = [("plans/1/bind.yaml", "a"), ("plans/2/create-instance-schema.json", "null")];
    let bundle = ChartBundle::read(&chart(&edits)).unwrap();
    assert!(bundle.plans.iter().all(|plan| plan.schema.is_none()) && bundle.plans[0].credentials.is_none());
    assert!(lint(&chart(&[])).outcome.is_ok());
}

#[test]
fn there_is_a_limit_for_plans_and_their_values() {
    let mut tree = chart(&[]);
    let meta = |n: usize| format!("{{id: p{n}, name: p{n}, description: d, displayName: D}}");
    for n in 3..=chart_bundle::MAX_PLANS {
        tree.insert(format!("plans/{n}/meta.yaml"), Entry::file(meta(n).as_bytes(), false));
    }
    assert_eq!(ChartBundle::read(&tree).unwrap().plans.len(), chart_bundle::MAX_PLANS);
    tree.insert("plans/x/meta.yaml".to_owned(), Entry::file(meta(0).as_bytes(), false));
    assert_eq!(problems(&tree), ["plans: there are more than 50 plans: remove what nobody picks"]);
    let values = |size: usize| format!("a: {}", "x".repeat(size - 3));
    let fits = values(chart_bundle::MAX_VALUES);
    assert_eq!(problems(&chart(&[("plans/1/values.yaml", &fits)])), [""; 0]);
    let large = values(chart_bundle::MAX_VALUES + 1);
    let found = problems(&chart(&[("plans/1/values.yaml", &large)]));
    assert_eq!(found, ["plans/1/values.yaml: the values have 65537 bytes, and 65536 are read: shorten them"]);
}

#[test]
fn of_two_plans_of_one_name_the_first_is_taken() {
    let tree = chart(&[("plans/1/meta.yaml", "{id: p1, name: big, description: d, displayName: D}")]);
    let bundle = ChartBundle::read(&tree).unwrap();
    assert_eq!((bundle.plans.len(), &bundle.plans[0].values), (1, &serde_json::json!({})));
    let warning = "plans/2: the plan is left out: plans/1 has the name \"big\", too";
    assert_eq!(lint(&tree).warnings[0].to_string(), warning);
}

#[test]
fn what_a_plan_lacks_is_asked_for_and_no_version() {
    let empty = problems(&chart(&[("plans/2/meta.yaml", "")]));
    let mut tree = chart(&[]);
    tree.remove("plans/2/meta.yaml");
    let missing = problems(&tree);
    let fields = "id, name, description and displayName";
    assert_eq!(missing, [format!("plans/2/meta.yaml: the file is missing: add it with {fields}")]);
    assert_eq!(empty, [format!("plans/2/meta.yaml: the file is empty: write {fields}")]);
}

#[test]
fn what_is_wrong_with_plans_is_found_when_they_are_read_too() {
    for (path, text, problem) in [
        ("plans/2/values.yaml", "[a]", "plans/2/values.yaml: the values have to be a mapping"),
        ("chart/other/a", "", "chart: there has to be one directory"),
    ] {
        let tree = chart(&[(path, text)]);
        let read = ChartBundle::read(&tree).unwrap_err();
        assert!(read.len() == 1 && read[0].to_string().starts_with(problem), "{read:?}");
        assert_eq!(problems(&tree), [read[0].to_string()]);
    }
}

#[test]
fn a_schema_of_a_plan_that_can_not_be_used_is_a_problem_of_its_file() {
    let create = "plans/2/create-instance-schema.json";
    for (text, problem) in [
        ("{\"type\": \"object\",\n\"type\": \"string\"}", "key"),
        ("{\"type\": \"objekt\"}", "the schema can't be used: "),
        ("{\"properties\": {\"a\": {\"pattern\": \"(\"}}}", "the schema can't be used: "),
        ("{\"$ref\": \"https://example.io/a.json\"}", "the schema can't be used: "),
        ("{\"$ref\": \"#/definitions/a\"}", "the schema can't be used: "),
        ("{", "the schema is no JSON: "),
    ] {
        let tree = chart(&[(create, text)]);
        let found = problems(&tree);
        let expected = format!("{create}: {problem}");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{text}: {found:?}");
        assert_eq!(ChartBundle::read(&tree).unwrap_err()[0].to_string(), found[0]);
    }
    let twice = problems(&chart(&[("plans/1/bind-instance-schema.json", "{\"a\": 1, \"a\": 2}")]));
    assert!(twice.len() == 1 && twice[0].starts_with("plans/1/bind-instance-schema.json: key"), "{twice:?}");
}

#[test]
fn a_bundle_is_compared_with_its_line_in_the_index() {
    let bundle = lint(&module(&[])).outcome.unwrap();
    for (name, fields, problem) in [
        ("web-app", "version: v1.2", None),
        ("web-app", "version: 1.2.0, id: i", None),
        ("web", "version: 1.2.0", Some("meta.yaml: name is \"web-app\" here and \"web\" in the index")),
        (
            "web-app",
            "version: 1.2.1",
            Some("meta.yaml: version is \"1.2.0\" here and \"1.2.1\" in the index"),
        ),
        ("web-app", "version: 1.2.0, id: j", Some("meta.yaml: id is \"i\" here and \"j\" in the index")),
    ] {
        let index = Index::parse(format!("entries: {{a: [{{{fields}}}]}}").as_bytes()).unwrap();
        let entry = index.lines()[0].outcome.as_ref().unwrap();
        let found = check_listed(&bundle, name, entry).map(|problem| problem.to_string());
        assert_eq!(found.is_some(), problem.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().starts_with(problem.unwrap_or_default()), "{fields}");
    }
}
