//! The Secret over the ConfigMap, with the whole operator: what it says counts, and only who asks sees it.

use std::fs;

use addon_operator::app::Outcome;
use addon_operator::telemetry::log;
use apiserver::FaultPlan;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use crate::secrets::{fetch, wait_for};
use crate::support::in_process::{Cluster, ask_socket};
use crate::support::program::get;
use crate::support::server::{self, until};

const SECRETS: &str = "/api/v1/namespaces/ops/secrets";
const SECRET: &str = "/api/v1/namespaces/ops/secrets/addon-operator";
const MAP: &str = "/api/v1/namespaces/ops/configmaps/addon-operator";

/// A hook that does `what` once its module was told to by a value.
fn hook(what: &str) -> String {
    format!(
        "#!/usr/bin/env bash\nif [[ \"${{1:-}}\" == --config ]]; then\n\
         echo '{{\"configVersion\":\"v1\",\"beforeHelm\":1}}'\nexit\nfi\n{what}\n"
    )
}

fn module(world: &Cluster, what: &str) {
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/001-web/values.yaml", "web: {size: 0}\n");
    world.write("modules/001-web/hooks/run.sh", &hook(what));
    world.write("modules/001-web/chart/Chart.yaml", "name: web\nversion: 1.0.0\n");
    fs::create_dir_all(world.path("modules/001-web/templates")).unwrap();
    world.write("modules/001-web/Chart.yaml", "name: web\nversion: 1.0.0\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {login: {{ .Values.web.db | toJson | quote }}}\n";
    world.write("modules/001-web/templates/map.yaml", map);
}

async fn configure(world: &Cluster, plain: &str, secret: &str) {
    world.put("addon-operator", json!({"data": {"web": plain}})).await;
    let secret = json!({
        "metadata": {"name": "addon-operator"},
        "data": {"web": STANDARD.encode(secret)},
    });
    server::ok(&world.server, Method::POST, SECRETS, &secret).await;
}

/// Returns the key `web` of the Secret as text.
async fn secret_text(world: &Cluster) -> String {
    let secret = server::get(&world.server, SECRET).await.unwrap();
    let bytes = STANDARD.decode(secret["data"]["web"].as_str().unwrap_or_default()).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_values_reach_hooks_and_charts_and_are_shown_to_who_asks() {
    let world = Cluster::new().await;
    module(&world, "cat \"$VALUES_PATH\" > \"$WORLD/values\"; cp \"$CONFIG_VALUES_PATH\" \"$WORLD/config\"");
    configure(&world, "db: {host: h}\nsize: 2", "db: {password: hunter22, pin: 1234}").await;
    let operator = world.start(&[]).await;
    let port = operator.port.to_string();
    until("the first converge", || get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    let read = |path: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(world.path(path)).unwrap()).unwrap()
    };
    let db = json!({"host": "h", "password": "hunter22", "pin": 1234});
    assert_eq!((&read("values")["web"]["db"], &read("config")["web"]["db"]), (&db, &db));
    let masked = json!({"host": "h", "password": "******", "pin": "******"});
    for part in ["values", "config"] {
        let answer = ask_socket(&world, &format!("/module/web/{part}.json"));
        assert!(answer.contains(&masked.to_string()) && !answer.contains("hunter22"), "{part}: {answer}");
        let answer = ask_socket(&world, &format!("/module/web/{part}.json?showSecrets=true"));
        assert!(answer.contains(&db.to_string()), "{part}: {answer}");
    }
    let rendered = ask_socket(&world, "/module/web/render");
    assert!(rendered.contains("shown") && !rendered.contains("hunter22"), "{rendered}");
    assert!(ask_socket(&world, "/module/web/render?showSecrets=true").contains("hunter22"));
    let values = "/module/web/values.json?showSecrets=true";
    for path in ["/", "/queue", "/status", "/metrics", "/why/module/web?showSecrets=true", values] {
        assert!(!get(&port, path).contains("hunter22"), "{path}");
    }
    assert_eq!(operator.stop().await, Outcome::Done);
}

#[tokio::test]
async fn slip_03_what_another_module_prints_of_a_secret_value_is_masked_numbers_too() {
    let (captured, heard) = log::capture();
    let _log = tracing::subscriber::set_default(captured);
    let world = Cluster::new().await;
    module(&world, "echo \"own pin $(jq .web.db.pin \"$VALUES_PATH\")\"");
    world.write("modules/values.yaml", "webEnabled: true\notherEnabled: true\n");
    // It reads what the chart of `web` rendered: a password in quotes, a number as charts write it.
    let binding = r"{name: m, apiVersion: v1, kind: ConfigMap, queue: side, nameSelector: {matchNames: [shown]}, allowFailure: true}";
    let other = format!(
        "#!/usr/bin/env bash\nif [[ \"${{1:-}}\" == --config ]]; then\necho '{{configVersion: v1, kubernetes: [{binding}]}}'\nexit\nfi\n\
         if grep -q login \"$BINDING_CONTEXT_PATH\"; then\n\
         echo \"other got $(jq -c . \"$BINDING_CONTEXT_PATH\")\"\n\
         echo '{{\"name\": \"got\", \"set\": 1, \"labels\": {{\"pin\": \"918273645\", \"what\": \"hunter22\"}}}}' > \"$METRICS_PATH\"\n\
         : > \"$WORLD/got\"\n\
         echo 'other failed with hunter22 and 9.18273645e+08' >&2; [[ -e \"$WORLD/failed\" ]] || {{ : > \"$WORLD/failed\"; exit 1; }}\nfi\n"
    );
    world.write("modules/002-other/hooks/run.sh", &other);
    configure(&world, "size: 2", "db: {password: hunter22, pin: 918273645}").await;
    let operator = world.start(&[]).await;
    // The log is heard on this thread only, so nothing may hold it up.
    wait_for(&operator, "/readyz", |answer| answer.starts_with("HTTP/1.1 200")).await;
    wait_for(&operator, "/journal", |journal| journal.contains("other failed")).await;
    let edit = json!({"data": {"web": STANDARD.encode("db: {password: hunter22, pin: 918273645, more: 1}")}});
    server::ok(&world.server, Method::PATCH, SECRET, &edit).await;
    wait_for(&operator, "/metrics/hooks", |metrics| metrics.contains("got{")).await;
    let mut told = String::new();
    for path in ["/", "/queue", "/status", "/journal", "/metrics", "/metrics/hooks"] {
        told += &fetch(&operator, path).await;
    }
    let (asked, world) = tokio::task::spawn_blocking(move || {
        let paths = ["/status.text", "/journal.text", "/module/other/snapshots.json", "/module/web/render"];
        (paths.map(|path| ask_socket(&world, path)).concat(), world)
    })
    .await
    .unwrap();
    told += &asked;
    assert_eq!(operator.stop().await, Outcome::Done);
    told += &heard.lines().join("\n");
    for part in ["own pin ******", "other got [", "other failed with ****** and ******", "pin=\"******\""] {
        assert!(told.contains(part), "{part}: {told}");
    }
    for part in ["hunter22", "918273645", "9.18273645e+08"] {
        let line = told.lines().find(|line| line.contains(part));
        assert_eq!(line, None, "{part}");
    }
    drop(world);
}

#[tokio::test]
async fn slip_03_a_name_that_a_chart_makes_of_a_secret_value_is_masked_in_the_log() {
    let (captured, heard) = log::capture();
    let _log = tracing::subscriber::set_default(captured);
    let world = Cluster::new().await;
    module(&world, "true");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: for-{{ .Values.web.db.password }}}\n";
    world.write("modules/001-web/templates/map.yaml", map);
    configure(&world, "size: 2", "db: {password: hunter22}").await;
    let operator = world.start(&[]).await;
    wait_for(&operator, "/readyz", |answer| answer.starts_with("HTTP/1.1 200")).await;
    let edit = json!({"data": {"web": STANDARD.encode("db: {password: hunter33}")}});
    server::ok(&world.server, Method::PATCH, SECRET, &edit).await;
    let told = std::cell::RefCell::new(String::new());
    wait_for(&operator, "/status", |_| {
        *told.borrow_mut() += &heard.lines().join("\n");
        told.borrow().contains("the release changes")
    })
    .await;
    assert_eq!(operator.stop().await, Outcome::Done);
    let told = told.into_inner() + &heard.lines().join("\n");
    let line = told.lines().find(|line| line.contains("the release changes")).unwrap();
    assert!(line.contains("for-******"), "{line}");
    assert!(!told.contains("hunter"), "{told}");
    drop(world);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_hook_changes_of_secret_values_goes_back_to_the_secret() {
    let world = Cluster::new().await;
    let patch = r#"echo '{"op":"add","path":"/web/db/password","value":"hunter33"}{"op":"add","path":"/web/size","value":3}' > "$CONFIG_VALUES_JSON_PATCH_PATH""#;
    module(&world, patch);
    configure(&world, "size: 2", "db: {password: hunter22}").await;
    let operator = world.start(&[]).await;
    let port = operator.port.to_string();
    until("the first converge", || get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    assert_eq!(secret_text(&world).await, "db:\n    password: hunter33\n");
    let map = server::get(&world.server, MAP).await.unwrap();
    assert_eq!(map["data"], json!({"web": "size: 3\n"}));
    // A person's edit takes effect, without a restart.
    let edit = json!({"data": {"web": STANDARD.encode("db: {password: hunter44}"), "webEnabled": STANDARD.encode("false")}});
    server::ok(&world.server, Method::PATCH, SECRET, &edit).await;
    let why = || ask_socket(&world, "/why/module/web");
    let key = "key webEnabled of Secret ops/addon-operator says so";
    until("the module to be off", || why().contains(key)).await;
    assert!(!why().contains("hunter"), "{}", why());
    // What the ConfigMap says counts again when there is no Secret any more.
    server::ok(&world.server, Method::DELETE, SECRET, &json!({})).await;
    until("the module to be on", || why().contains("Module web is on")).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_may_not_be_read_hinders_no_start_and_is_told() {
    let world = Cluster::new().await;
    module(&world, "true");
    world.put("addon-operator", json!({"data": {"web": "db: {}"}})).await;
    // Lists of Secrets by name are refused, those of releases are not.
    let refused = FaultPlan::on(Method::GET, "/api/v1/namespaces/ops/secrets").times(1).fail(403);
    world.server.faults().add(refused);
    let operator = world.start(&[]).await;
    let port = operator.port.to_string();
    until("the first converge", || get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    let status = ask_socket(&world, "/status.text");
    assert!(status.contains("Secret ops/addon-operator"), "{status}");
    assert_eq!(operator.stop().await, Outcome::Done);
}
