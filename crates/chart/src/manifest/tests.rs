//! Tests of manifests.

use super::*;

fn sorted(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>, Vec<String>) {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let mut warnings = Warnings::default();
    let sorted = sort(&files, &mut warnings).unwrap();
    (
        sorted.manifests.iter().map(|manifest| format!("{} {}", manifest.head.kind, manifest.path)).collect(),
        sorted.hooks.iter().map(|hook| format!("{} {:?} {}", hook.name, hook.events, hook.weight)).collect(),
        warnings.texts().to_vec(),
    )
}

#[test]
fn documents_are_sorted_by_kind_then_by_place() {
    let (manifests, hooks, warnings) = sorted(&[
        ("b.yaml", "kind: Zoo\n---\nkind: Secret\n---\nkind: Ant"),
        ("a.yaml", "kind: Service\n---\n# nothing"),
        ("_p.yaml", "kind: Partial"),
        ("e.yaml", " \n"),
    ]);
    assert_eq!(manifests, ["Secret b.yaml", "Service a.yaml", " a.yaml", "Ant b.yaml", "Zoo b.yaml"]);
    assert!(hooks.is_empty() && warnings.is_empty());
}

#[test]
fn hooks_are_taken_out_and_unknown_moments_dropped() {
    let hook = |name: &str, events: &str, weight: &str| {
        format!(
            "kind: Job\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: '{events}', helm.sh/hook-weight: '{weight}'}}"
        )
    };
    let (manifests, hooks, warnings) = sorted(&[
        ("a", &hook("one", "pre-install, POST-UPGRADE", "5")),
        ("b", &hook("two", "test-success", "x")),
        ("c", &hook("three", "crd-install", "1")),
    ]);
    assert!(manifests.is_empty());
    assert_eq!(hooks, ["one [PreInstall, PostUpgrade] 5", "two [Test] 0"]);
    assert_eq!(warnings, ["info: skipping unknown hook: \"crd-install\""]);
}

#[test]
fn a_document_that_is_no_map_is_refused() {
    let files = [("t".to_owned(), "- 1".to_owned())].into();
    let error = sort(&files, &mut Warnings::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "YAML parse error on t: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type releaseutil.SimpleHead"
    );
}

#[test]
fn uninstalling_goes_the_other_way_round() {
    let mut install: Vec<&str> = order::INSTALL.to_vec();
    let mut uninstall: Vec<&str> = order::UNINSTALL.to_vec();
    install.sort_unstable();
    uninstall.sort_unstable();
    assert_eq!(install, uninstall);
}
