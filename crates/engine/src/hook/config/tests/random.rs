//! Texts and trees put together at random.

use super::*;

proptest::proptest! {
    #[test]
    fn any_text_gets_an_answer(text in "(configVersion: v1\n)?[ -~\n]{0,200}") {
        drop(parse("h".into(), HookKind::Module, &text));
    }

    #[test]
    fn any_tree_of_known_words_gets_an_answer(tree in tree()) {
        let text = tree.to_string();
        drop(parse("h".into(), HookKind::Module, &text));
        drop(parse("h".into(), HookKind::Global, &text));
    }
}

/// Returns mappings whose keys and texts are those of configurations, put together at random.
fn tree() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let words = || {
        prop::sample::select(vec![
            "configVersion",
            "v1",
            "v0",
            "kubernetes",
            "schedule",
            "settings",
            "kind",
            "crontab",
            "* * * * *",
            "@every 1s",
            "name",
            "group",
            "includeSnapshotsFrom",
            "namespace",
            "nameSelector",
            "labelSelector",
            "matchLabels",
            "matchNames",
            "matchExpressions",
            "key",
            "operator",
            "values",
            "In",
            "fieldSelector",
            "field",
            "value",
            "executeHookOnEvent",
            "Added",
            "onKubernetesEvent",
            "event",
            "add",
            "selector",
            "kubernetesValidating",
            "rules",
            "timeout",
            "executionMinInterval",
            "executionBurst",
            "30s",
            "onStartup",
            "beforeHelm",
            "",
        ])
    };
    let leaf = prop_oneof![
        words().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let inner = leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(words().prop_map(String::from), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    (inner, any::<bool>()).prop_map(|(mut tree, versioned)| {
        if let (Value::Object(map), true) = (&mut tree, versioned) {
            map.insert("configVersion".into(), "v1".into());
        }
        tree
    })
}
