//! Webhooks of hooks, from the request of a client to the process of a hook and back, on the embedded API server,
//! and in `tests/cluster` on a real one.

use std::fs;

use addon_operator::app::Outcome;
use addon_operator::webhook;
use http::Method;
use serde_json::{Value, json};

use crate::support::DEADLINE;
use crate::support::in_process::{Cluster, Operator};
use crate::support::pause::pause;
use crate::support::program::hook;
use crate::support::server::{get, ok, send, until};

pub(crate) const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
pub(crate) const MAPS: &str = "/api/v1/namespaces/shop/configmaps";

/// The options of an operator whose hooks the API server may ask.
pub(crate) const ON: &[(&str, &str)] = &[
    ("admission-server-enabled", "true"),
    ("admission-server-listen-address", "127.0.0.1"),
    ("admission-server-listen-port", "0"),
    ("webhook-url", "https://127.0.0.1:0"),
];

/// A hook of a module that lets no ConfigMap be written whose `word` is `bad`. It writes what it sees to `$WORLD/seen`.
const VALIDATES: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetesValidating:
- name: words.shop.example.com
  timeoutSeconds: 3
  namespace: {labelSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE, DELETE], scope: Namespaced}]
CONFIG
  exit 0
fi
cp "$BINDING_CONTEXT_PATH" "$WORLD/seen"
if grep -q '"word":"slow"' "$BINDING_CONTEXT_PATH"; then
  echo $$ > "$WORLD/slow.pid"; sleep 60
elif grep -q '"word":"broken"' "$BINDING_CONTEXT_PATH"; then
  echo "hunter2" >&2; exit 1
elif grep -q '"word":"silent"' "$BINDING_CONTEXT_PATH"; then
  :
elif grep -q '"word":"garbage"' "$BINDING_CONTEXT_PATH"; then
  echo '{"allowed": tr' > "$VALIDATING_RESPONSE_PATH"
elif grep -q '"word":"bad"' "$BINDING_CONTEXT_PATH"; then
  echo '{"allowed": false, "message": "this word is bad"}' > "$VALIDATING_RESPONSE_PATH"
else
  echo '{"allowed": true, "warnings": ["fine so far"]}' > "$VALIDATING_RESPONSE_PATH"
fi
"#;

/// A global hook that adds a label to each ConfigMap. The patch is `[{"op":"add","path":"/metadata/labels","value":{"by":"hook"}}]`.
const MUTATES: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetesMutating:
- name: label
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
CONFIG
  exit 0
fi
patch=$(echo -n '[{"op":"add","path":"/metadata/labels","value":{"by":"hook"}}]' | base64 -w0)
echo "{\"allowed\": true, \"patch\": \"$patch\"}" > "$ADMISSION_RESPONSE_PATH"
"#;

async fn shop() -> Cluster {
    let world = Cluster::new().await;
    let namespace = json!({"metadata": {"name": "shop"}});
    ok(&world.server, Method::POST, "/api/v1/namespaces", &namespace).await;
    world
}

fn map(name: &str, word: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"word": word}})
}

/// Starts an operator and waits until the API server asks it, with the failure policies of the hooks.
async fn started(world: &Cluster, extra: &[(&str, &str)]) -> Operator {
    let operator = world.start(&[ON, extra].concat()).await;
    registered(world, "validating", "Fail").await;
    operator
}

/// Waits until the webhooks of a configuration have this failure policy.
async fn registered(world: &Cluster, kind: &str, policy: &str) {
    let path = format!("{CONFIGURATIONS}/{kind}webhookconfigurations/addon-operator-ops");
    let begun = std::time::Instant::now();
    loop {
        let object = get(&world.server, &path).await.unwrap_or_default();
        if object.pointer("/webhooks/0/failurePolicy").is_some_and(|found| found == policy) {
            world.server.settled().await;
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "{kind}: {object}");
        pause().await;
    }
}

async fn a_hook_says_which_objects_may_be_written() {
    let world = shop().await;
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/hooks/check.sh", VALIDATES);
    let operator = started(&world, &[]).await;
    ok(&world.server, Method::POST, MAPS, &map("a", "good")).await;
    let seen: Value = serde_json::from_str(&fs::read_to_string(world.path("seen")).unwrap()).unwrap();
    let context = &seen[0];
    assert_eq!(
        (&context["type"], &context["binding"]),
        (&json!("Validating"), &json!("words.shop.example.com"))
    );
    let request = &context["review"]["request"];
    assert_eq!(
        (&request["operation"], &request["object"]["data"]["word"]),
        (&json!("CREATE"), &json!("good"))
    );
    assert_eq!((&request["namespace"], &request["oldObject"]), (&json!("shop"), &json!(null)));
    let (status, answer) = send(&world.server, Method::POST, MAPS, &map("b", "bad")).await;
    let message = "admission webhook \"words.shop.example.com\" denied the request: this word is bad";
    assert_eq!((status, &answer["message"]), (403, &json!(message)));
    let path = format!("{MAPS}/a");
    let (status, _) = send(&world.server, Method::PATCH, &path, &json!({"data": {"word": "bad"}})).await;
    assert_eq!(status, 403);
    // The hook sees the object that is deleted.
    ok(&world.server, Method::DELETE, &path, &Value::Null).await;
    let seen: Value = serde_json::from_str(&fs::read_to_string(world.path("seen")).unwrap()).unwrap();
    let request = &seen[0]["review"]["request"];
    assert_eq!(
        (&request["operation"], &request["oldObject"]["data"]["word"]),
        (&json!("DELETE"), &json!("good"))
    );
    // Elsewhere nobody is asked.
    ok(&world.server, Method::POST, "/api/v1/namespaces/default/configmaps", &map("b", "bad")).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn f_f4_a_hook_that_has_no_answer_refuses_quotes_nothing_and_ends_with_its_request() {
    let world = shop().await;
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/hooks/check.sh", VALIDATES);
    let operator = started(&world, &[]).await;
    for (word, status) in [("broken", 403), ("garbage", 403), ("silent", 500)] {
        let (found, answer) = send(&world.server, Method::POST, MAPS, &map("x", word)).await;
        let message = answer["message"].as_str().unwrap();
        assert_eq!(found, status, "{message}");
        assert!(message.contains("Hook failed") && !message.contains("hunter2"), "{message}");
    }
    let (status, answer) = send(&world.server, Method::POST, MAPS, &map("x", "slow")).await;
    assert_eq!(status, 500, "{answer}");
    let process = fs::read_to_string(world.path("slow.pid")).unwrap();
    let process = std::path::Path::new("/proc").join(process.trim());
    until("the end of the hook", || !process.exists()).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn f_f1_at_an_orderly_end_the_cluster_goes_on_and_everything_can_be_taken_back() {
    let world = shop().await;
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/hooks/check.sh", VALIDATES);
    let operator = started(&world, &[]).await;
    assert_eq!(operator.stop().await, Outcome::Done);
    registered(&world, "validating", "Ignore").await;
    ok(&world.server, Method::POST, MAPS, &map("b", "bad")).await;
    let options = webhook::Options {
        address: ("127.0.0.1".to_owned(), 0),
        certificates: None,
        client_authorities: Vec::new(),
        clock: webhook::Clock::default(),
        namespace: "ops".to_owned(),
        name: "addon-operator-ops".to_owned(),
        client: engine::WebhookClient::Url("https://127.0.0.1:0".to_owned()),
    };
    webhook::uninstall(world.client(), &options).await.unwrap();
    let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations/addon-operator-ops");
    assert_eq!(get(&world.server, &path).await, None);
    assert_eq!(get(&world.server, "/api/v1/namespaces/ops/secrets/addon-operator-ops-tls").await, None);
}

async fn a_global_hook_changes_objects_before_they_are_written() {
    let world = shop().await;
    world.write("global-hooks/label.sh", MUTATES);
    let operator = world.start(ON).await;
    registered(&world, "mutating", "Fail").await;
    let made = ok(&world.server, Method::POST, MAPS, &map("a", "good")).await;
    assert_eq!(made["metadata"]["labels"], json!({"by": "hook"}));
    let stored = get(&world.server, &format!("{MAPS}/a")).await.unwrap();
    assert_eq!(stored["metadata"]["labels"], json!({"by": "hook"}));
    // The namespace of the operator itself is left alone.
    let own = ok(&world.server, Method::POST, "/api/v1/namespaces/ops/configmaps", &map("a", "good")).await;
    assert_eq!(own["metadata"]["labels"], json!(null));
    assert_eq!(operator.stop().await, Outcome::Done);
}

/// Prints which labels of hooks a hook is shown.
const SHOWN: &str = r#"grep -oE '"(first|second|third)":"hook"' "$BINDING_CONTEXT_PATH""#;

async fn a_webhook_is_asked_once_more_when_a_later_one_changed_the_object_and_it_wants_to_know() {
    let world = shop().await;
    // Each writes down how many of them it was shown, and adds one.
    for (name, policy) in [("first", "IfNeeded"), ("second", "Never"), ("third", "IfNeeded")] {
        let text = MUTATES
            .replace("name: label", &format!("name: {name}\n  reinvocationPolicy: {policy}"))
            .replace("/metadata/labels\"", &format!("/metadata/labels/{name}\""))
            .replace("{\"by\":\"hook\"}", "\"hook\"")
            .replace(
                "patch=",
                &format!("echo \"{name} $({SHOWN} | sort -u | wc -l)\" >> \"$WORLD/asked\"\npatch="),
            );
        world.write(&format!("global-hooks/{name}.sh"), &text);
    }
    let operator = world.start(ON).await;
    registered(&world, "mutating", "Fail").await;
    let mut object = map("a", "good");
    object["metadata"]["labels"] = json!({"by": "user"});
    let made = ok(&world.server, Method::POST, MAPS, &object).await;
    let labels = json!({"by": "user", "first": "hook", "second": "hook", "third": "hook"});
    assert_eq!(made["metadata"]["labels"], labels);
    let asked = fs::read_to_string(world.path("asked")).unwrap();
    // The last one has seen all that was changed, and who did not ask for it is not asked again.
    assert_eq!(asked, "first 0\nsecond 1\nthird 2\nfirst 3\n");
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a_patch_that_can_not_be_applied_is_the_failure_of_its_hook() {
    let world = shop().await;
    world.write("global-hooks/label.sh", &MUTATES.replace("/metadata/labels", "/metadata/labels/by"));
    let operator = world.start(ON).await;
    registered(&world, "mutating", "Fail").await;
    let (status, answer) = send(&world.server, Method::POST, MAPS, &map("a", "good")).await;
    let message = answer["message"].as_str().unwrap();
    assert_eq!(status, 500, "{message}");
    assert!(
        message.contains("the patch of hook global/label.sh") && message.contains("/metadata/labels/by"),
        "{message}"
    );
    assert_eq!(get(&world.server, &format!("{MAPS}/a")).await, None);
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn an_operator_whose_webhooks_are_off_asks_for_nothing() {
    let world = shop().await;
    world.write("global-hooks/label.sh", MUTATES);
    let operator = world.start(&[]).await;
    world.put("addon-operator", json!({"data": {}})).await;
    ok(&world.server, Method::POST, MAPS, &map("a", "good")).await;
    assert_eq!(operator.stop().await, Outcome::Done);
    let list = format!("{CONFIGURATIONS}/mutatingwebhookconfigurations");
    assert_eq!(get(&world.server, &list).await.unwrap()["items"], json!([]));
    assert_eq!(get(&world.server, "/api/v1/namespaces/ops/secrets").await.unwrap()["items"], json!([]));
}

/// A hook that converts between `schedule` and `hour`, and renames objects whose text is `bad`.
const CONVERTS: &str = r##"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetesCustomResourceConversion:
- {name: up, crdName: tabs.example.com, conversions: [{fromVersion: v1alpha1, toVersion: v1}]}
- {name: down, crdName: tabs.example.com, conversions: [{fromVersion: v1, toVersion: v1alpha1}]}
CONFIG
  exit 0
fi
objects=$(sed -E 's/.*"objects":(\[.*\]),"uid":"[^"]*"\}\}.*/\1/' "$BINDING_CONTEXT_PATH")
if grep -q '"binding":"up"' "$BINDING_CONTEXT_PATH"; then
  objects=$(sed -E 's#example.com/v1alpha1#example.com/v1#g; s/"spec":\{"schedule":/"spec":{"hour":/g' <<< "$objects")
else
  objects=$(sed -E 's#example.com/v1"#example.com/v1alpha1"#g; s/"spec":\{"hour":/"spec":{"schedule":/g' <<< "$objects")
fi
if grep -q '"bad"' <<< "$objects"; then objects=$(sed -E 's/"name":"[^"]*"/"name":"other"/g' <<< "$objects"); fi
echo "{\"convertedObjects\": $objects}" > "$CONVERSION_RESPONSE_PATH"
"##;

/// Returns the definition of a kind with two versions.
fn tabs_definition() -> Value {
    let schema = |field: &str| {
        let spec = json!({"type": "object", "properties": {field: {"type": "string"}}});
        json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tabs.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "tabs", "singular": "tab", "kind": "Tab", "listKind": "TabList"},
            "versions": [
                {"name": "v1alpha1", "served": true, "storage": false, "schema": schema("schedule")},
                {"name": "v1", "served": true, "storage": true, "schema": schema("hour")},
            ],
        },
    })
}

async fn custom_resources_are_converted_when_they_are_written_read_listed_and_watched() {
    let world = shop().await;
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/hooks/convert.sh", CONVERTS);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    ok(&world.server, Method::POST, definitions, &tabs_definition()).await;
    let operator = world.start(ON).await;
    let path = format!("{definitions}/tabs.example.com");
    converted_by(&world, &path, "Webhook").await;
    let tabs = |version: &str| format!("/apis/example.com/{version}/namespaces/shop/tabs");
    let tab = |name: &str, schedule: &str| {
        json!({"apiVersion": "example.com/v1alpha1", "kind": "Tab", "metadata": {"name": name},
            "spec": {"schedule": schedule}})
    };
    // The kinds that are served follow the definition a moment later, as in a real API server.
    loop {
        ok(&world.server, Method::POST, &tabs("v1alpha1"), &tab("probe", "1")).await;
        let probe = format!("{}/probe", tabs("v1"));
        let stored = get(&world.server, &probe).await.unwrap();
        ok(&world.server, Method::DELETE, &probe, &Value::Null).await;
        if stored["spec"] == json!({"hour": "1"}) {
            break;
        }
    }
    let made = ok(&world.server, Method::POST, &tabs("v1alpha1"), &tab("a", "5")).await;
    assert_eq!(made["spec"], json!({"schedule": "5"}));
    let read = |version: &str| format!("{}/a", tabs(version));
    assert_eq!(get(&world.server, &read("v1")).await.unwrap()["spec"], json!({"hour": "5"}));
    assert_eq!(get(&world.server, &read("v1alpha1")).await.unwrap()["spec"], json!({"schedule": "5"}));
    let change = json!({"spec": {"schedule": "6"}});
    let changed = ok(&world.server, Method::PATCH, &read("v1alpha1"), &change).await;
    assert_eq!(changed["spec"], json!({"schedule": "6"}));
    let list = get(&world.server, &tabs("v1alpha1")).await.unwrap();
    assert_eq!(list["items"][0]["spec"], json!({"schedule": "6"}));
    let gvk = kube::core::GroupVersionKind::gvk("example.com", "v1alpha1", "Tab");
    let kind = kube::core::ApiResource::from_gvk(&gvk);
    let api: kube::Api<kube::api::DynamicObject> = kube::Api::namespaced_with(world.client(), "shop", &kind);
    let watched = kube::runtime::wait::await_condition(api, "a", |tab: Option<&kube::api::DynamicObject>| {
        tab.is_some_and(|tab| tab.data["spec"]["schedule"] == "6")
    });
    tokio::time::timeout(DEADLINE, watched).await.unwrap().unwrap();
    // One object that is not converted: the request fails, and nothing is stored.
    let (status, answer) = send(&world.server, Method::POST, &tabs("v1alpha1"), &tab("b", "bad")).await;
    assert_eq!(status, 500, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("has another /metadata/name"), "{answer}");
    assert_eq!(get(&world.server, &format!("{}/b", tabs("v1"))).await, None);
    // Somebody overwrites the definition, as an upgrade of a chart does.
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    ok(&world.server, Method::PATCH, &path, &none).await;
    converted_by(&world, &path, "Webhook").await;
    // The module goes, and with it the conversion.
    world.put("addon-operator", json!({"data": {"webEnabled": "false"}})).await;
    converted_by(&world, &path, "None").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn objects_are_converted_while_an_operator_that_was_started_again_is_not_ready() {
    let world = shop().await;
    world.write("modules/values.yaml", "slowEnabled: true\nwebEnabled: true\n");
    let waits = "while [[ ! -e $WORLD/gate ]]; do sleep 0.1; done; touch $WORLD/ready";
    world.write("modules/005-slow/hooks/a.sh", &hook("\"onStartup\":1", waits));
    world.write("modules/010-web/hooks/convert.sh", CONVERTS);
    world.write("gate", "");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    ok(&world.server, Method::POST, definitions, &tabs_definition()).await;
    let path = format!("{definitions}/tabs.example.com");
    let operator = world.start(ON).await;
    converted_by(&world, &path, "Webhook").await;
    let old = "/apis/example.com/v1alpha1/namespaces/shop/tabs";
    let tab = json!({"apiVersion": "example.com/v1alpha1", "kind": "Tab", "metadata": {"name": "a"}, "spec": {"schedule": "5"}});
    // The kinds that are served follow the definition a moment later.
    let stored = "/apis/example.com/v1/namespaces/shop/tabs/a";
    loop {
        ok(&world.server, Method::POST, old, &tab).await;
        if get(&world.server, stored).await.unwrap()["spec"] == json!({"hour": "5"}) {
            break;
        }
        ok(&world.server, Method::DELETE, stored, &Value::Null).await;
    }
    assert_eq!(operator.stop().await, Outcome::Done);
    fs::remove_file(world.path("gate")).unwrap();
    fs::remove_file(world.path("ready")).unwrap();
    let operator = world.start(ON).await;
    let path_of_old = format!("{old}/a");
    let read = || get(&world.server, &path_of_old);
    // Nobody answers for a moment, and then the hook does. Never is an object shown in the form of another version.
    let begun = std::time::Instant::now();
    let mut count = 0;
    while count < 20 {
        if let Some(found) = read().await {
            assert_eq!(found["spec"], json!({"schedule": "5"}));
            count += 1;
        }
        assert!(begun.elapsed() < DEADLINE, "{:?}", get(&world.server, &path).await);
    }
    assert!(!world.path("ready").exists(), "its module has not run yet");
    world.write("gate", "");
    until("the end of the wait", || world.path("ready").exists()).await;
    assert_eq!(read().await.unwrap()["spec"], json!({"schedule": "5"}));
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn webhooks_are_asked_while_an_operator_that_was_started_again_is_not_ready() {
    let world = shop().await;
    world.write("modules/values.yaml", "slowEnabled: true\nwebEnabled: true\n");
    let waits = "while [[ ! -e $WORLD/gate ]]; do touch $WORLD/waits; sleep 0.1; done; touch $WORLD/ready";
    world.write("modules/005-slow/hooks/a.sh", &hook("\"onStartup\":1", waits));
    world.write("modules/010-web/hooks/check.sh", VALIDATES);
    // At first the API server knows nothing of a module that has not run.
    let operator = world.start(ON).await;
    until("the first module", || world.path("waits").exists()).await;
    ok(&world.server, Method::POST, MAPS, &map("a", "bad")).await;
    world.write("gate", "");
    registered(&world, "validating", "Fail").await;
    assert_eq!(operator.stop().await, Outcome::Done);
    for name in ["gate", "ready", "waits"] {
        fs::remove_file(world.path(name)).unwrap();
    }
    let operator = world.start(ON).await;
    until("the first module", || world.path("waits").exists()).await;
    registered(&world, "validating", "Ignore").await;
    // Nobody listens where the operator before it did, so that requests pass until this one is known.
    let begun = std::time::Instant::now();
    let mut count = 0;
    while send(&world.server, Method::POST, MAPS, &map(&format!("b{count}"), "bad")).await.0 != 403 {
        count += 1;
        assert!(begun.elapsed() < DEADLINE);
        pause().await;
    }
    // A hook that fails has perhaps not got what its module brings.
    ok(&world.server, Method::POST, MAPS, &map("c", "broken")).await;
    assert!(!world.path("ready").exists(), "its module has not run yet");
    world.write("gate", "");
    registered(&world, "validating", "Fail").await;
    let (status, _) = send(&world.server, Method::POST, MAPS, &map("d", "broken")).await;
    assert_eq!(status, 403);
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn configurations_that_somebody_edits_or_deletes_are_put_right() {
    let world = shop().await;
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/hooks/check.sh", VALIDATES);
    world.write("global-hooks/label.sh", MUTATES);
    let operator = started(&world, &[]).await;
    registered(&world, "mutating", "Fail").await;
    for kind in ["validating", "mutating"] {
        let path = format!("{CONFIGURATIONS}/{kind}webhookconfigurations/addon-operator-ops");
        let mut edited = get(&world.server, &path).await.unwrap();
        edited["webhooks"][0]["failurePolicy"] = json!("Ignore");
        edited["metadata"]["labels"] = json!({});
        ok(&world.server, Method::PUT, &path, &edited).await;
        registered(&world, kind, "Fail").await;
        ok(&world.server, Method::DELETE, &path, &Value::Null).await;
        registered(&world, kind, "Fail").await;
    }
    let (status, _) = send(&world.server, Method::POST, MAPS, &map("b", "bad")).await;
    assert_eq!(status, 403);
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn the_api_server_judges_the_conditions_of_a_webhook_before_it_asks() {
    let world = shop().await;
    let conditions = "matchConditions: [{name: by-people, expression: \"!has(object.metadata.labels)\"}]";
    let hook =
        VALIDATES.replace("timeoutSeconds: 3", conditions).replace("[CREATE, UPDATE, DELETE]", "[CREATE]");
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/hooks/check.sh", &hook);
    let operator = started(&world, &[]).await;
    let (status, _) = send(&world.server, Method::POST, MAPS, &map("a", "bad")).await;
    assert_eq!(status, 403);
    fs::remove_file(world.path("seen")).unwrap();
    let mut by_robot = map("a", "bad");
    by_robot["metadata"]["labels"] = json!({"by": "robot"});
    ok(&world.server, Method::POST, MAPS, &by_robot).await;
    assert!(!world.path("seen").exists(), "the hook was not asked");
    assert_eq!(operator.stop().await, Outcome::Done);
}

/// Waits until the objects of a definition are converted in this way.
async fn converted_by(world: &Cluster, path: &str, strategy: &str) {
    let begun = std::time::Instant::now();
    loop {
        let definition = get(&world.server, path).await.unwrap_or_default();
        if definition.pointer("/spec/conversion/strategy").is_some_and(|found| found == strategy) {
            world.server.settled().await;
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "{definition}");
        pause().await;
    }
}

/// A global hook that adds a label and quotes what it saw. `VERSION` is the version that its rule names.
const LABELS: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetesMutating:
- name: label
  rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [tabs], operations: [CREATE]}]
CONFIG
  exit 0
fi
cp "$BINDING_CONTEXT_PATH" "$WORLD/seen"
patch=$(echo -n '[{"op":"add","path":"/metadata/labels","value":{"by":"hook"}},{"op":"add","path":"/spec/hour","value":"7"}]' | base64 -w0)
echo "{\"allowed\": true, \"patch\": \"$patch\"}" > "$ADMISSION_RESPONSE_PATH"
"#;

async fn a_hook_is_asked_in_the_version_that_its_rule_names() {
    let world = shop().await;
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/hooks/convert.sh", CONVERTS);
    world.write("global-hooks/label.sh", LABELS);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    ok(&world.server, Method::POST, definitions, &tabs_definition()).await;
    let operator = world.start(ON).await;
    converted_by(&world, &format!("{definitions}/tabs.example.com"), "Webhook").await;
    registered(&world, "mutating", "Fail").await;
    world.server.settled().await;
    let path = "/apis/example.com/v1alpha1/namespaces/shop/tabs";
    let tab = json!({"apiVersion": "example.com/v1alpha1", "kind": "Tab", "metadata": {"name": "a"},
        "spec": {"schedule": "5"}});
    // The kinds that are served follow the definition a moment later, as in a real API server.
    let begun = std::time::Instant::now();
    let made = loop {
        let made = ok(&world.server, Method::POST, path, &tab).await;
        if made["spec"] != tab["spec"] || begun.elapsed() > DEADLINE {
            break made;
        }
        ok(&world.server, Method::DELETE, &format!("{path}/a"), &Value::Null).await;
    };
    // The hook saw and changed `v1`; the client sees the version that it wrote.
    assert_eq!(
        (&made["apiVersion"], &made["spec"]),
        (&json!("example.com/v1alpha1"), &json!({"schedule": "7"}))
    );
    assert_eq!(made["metadata"]["labels"], json!({"by": "hook"}));
    let seen: Value = serde_json::from_str(&fs::read_to_string(world.path("seen")).unwrap()).unwrap();
    let request = &seen[0]["review"]["request"];
    assert_eq!(
        (&request["kind"]["version"], &request["requestKind"]["version"]),
        (&json!("v1"), &json!("v1alpha1"))
    );
    assert_eq!(request["object"]["spec"], json!({"hour": "5"}));
    assert_eq!(operator.stop().await, Outcome::Done);
}

/// A hook that notes each review of a ConfigMap or a Namespace, and lets it pass.
const NOTES: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetesValidating:
- name: notes
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps, namespaces], operations: ["*"]}]
kubernetesMutating:
- name: notes
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps, namespaces], operations: ["*"]}]
CONFIG
  exit 0
fi
# One write: two reviews may be noted at the same time.
printf '%s\n' "$(tr -d '\n' < "$BINDING_CONTEXT_PATH")" >> "$WORLD/notes"
echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
"#;

async fn a_review_says_how_its_write_is_done_and_where() {
    let world = shop().await;
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/hooks/notes.sh", NOTES);
    let operator = started(&world, &[]).await;
    registered(&world, "mutating", "Fail").await;
    // Returns the parts of the reviews of one request: of the mutating webhook, and of the validating one.
    let reviews = async |method: Method, path: &str, body: Value| {
        let _ = fs::remove_file(world.path("notes"));
        ok(&world.server, method, path, &body).await;
        let notes = fs::read_to_string(world.path("notes")).unwrap();
        let request = |line: &str| {
            let contexts: Value = serde_json::from_str(line).unwrap();
            contexts[0]["review"]["request"].clone()
        };
        // Controllers put this one into every namespace, also into the one that was just made.
        let is_asked_for = |review: &Value| review["name"] != "kube-root-ca.crt";
        notes.lines().map(request).filter(is_asked_for).collect::<Vec<_>>()
    };
    let made =
        reviews(Method::POST, &format!("{MAPS}?fieldManager=me&fieldValidation=Strict"), map("a", "x")).await;
    let options = json!({"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions", "fieldManager": "me", "fieldValidation": "Strict"});
    assert_eq!(made.iter().map(|review| &review["options"]).collect::<Vec<_>>(), [&options, &options]);
    let tried = reviews(Method::PATCH, &format!("{MAPS}/a?dryRun=All"), json!({"data": {"word": "y"}})).await;
    let options = json!({"apiVersion": "meta.k8s.io/v1", "kind": "UpdateOptions", "dryRun": ["All"]});
    assert_eq!((&tried[1]["dryRun"], &tried[1]["options"]), (&json!(true), &options));
    let propagation = json!({"propagationPolicy": "Background", "gracePeriodSeconds": 5});
    let gone = reviews(Method::DELETE, &format!("{MAPS}/a"), propagation).await;
    let options = json!({"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "gracePeriodSeconds": 5});
    assert_eq!(gone[1]["options"], options);
    // A name that is made later is not there yet.
    let generated = reviews(Method::POST, MAPS, json!({"metadata": {"generateName": "b-"}})).await;
    assert_eq!(generated[0].get("name"), None);
    assert!(generated[1]["name"].as_str().unwrap().starts_with("b-"));
    let namespaces = "/api/v1/namespaces";
    let namespace = reviews(Method::POST, namespaces, json!({"metadata": {"name": "late"}})).await;
    assert_eq!((&namespace[1]["name"], &namespace[1]["namespace"]), (&json!("late"), &json!("late")));
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let namespace = reviews(Method::PATCH, &format!("{namespaces}/late"), labels).await;
    assert_eq!((&namespace[1]["name"], &namespace[1]["namespace"]), (&json!("late"), &json!("late")));
    assert_eq!(operator.stop().await, Outcome::Done);
}

scenarios! {
    a_review_says_how_its_write_is_done_and_where,
    a_hook_says_which_objects_may_be_written,
    f_f4_a_hook_that_has_no_answer_refuses_quotes_nothing_and_ends_with_its_request,
    f_f1_at_an_orderly_end_the_cluster_goes_on_and_everything_can_be_taken_back,
    a_global_hook_changes_objects_before_they_are_written,
    a_webhook_is_asked_once_more_when_a_later_one_changed_the_object_and_it_wants_to_know,
    a_patch_that_can_not_be_applied_is_the_failure_of_its_hook,
    an_operator_whose_webhooks_are_off_asks_for_nothing,
    custom_resources_are_converted_when_they_are_written_read_listed_and_watched,
    objects_are_converted_while_an_operator_that_was_started_again_is_not_ready,
    webhooks_are_asked_while_an_operator_that_was_started_again_is_not_ready,
    configurations_that_somebody_edits_or_deletes_are_put_right,
    a_hook_is_asked_in_the_version_that_its_rule_names,
    the_api_server_judges_the_conditions_of_a_webhook_before_it_asks,
}
