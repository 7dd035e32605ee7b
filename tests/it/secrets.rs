//! Values of modules, printed by real hooks, charts and API errors in many ways: none is in a log line, on a page, in
//! an answer of the TCP port, in an Event or a metric, neither before nor after the values change.

use std::fmt::Write as _;

use addon_operator::telemetry::log;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Method;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::charts::{MAPS, World, alpha};
use crate::support::in_process::{Cluster, Operator};
use crate::support::pause::pause;
use crate::support::repository::{Reply, digest};
use crate::support::server::{get, ok};

/// How many values each module has. The last one may be in the name of a metric.
const VALUES: usize = 17;

/// What the port answers.
const ROUTES: [&str; 16] = [
    "/",
    "/?journal=all&graph=all",
    "/discovery",
    "/graph",
    "/healthz",
    "/journal",
    "/journal?output=json",
    "/metrics",
    "/metrics/hooks",
    "/queue",
    "/queue?output=json",
    "/readyz",
    "/status",
    "/status?output=json",
    "/status/converge",
    "/why/queue/main",
];

/// Modules, each of which fails in its own way with the first values. What a module prints are the values that it was
/// called with: a value that the operator was not told of yet is no secret of its.
const MODULES: [&str; 11] = [
    "badmetric",
    "badobject",
    "badpath",
    "chart",
    "hook",
    "metric",
    "object",
    "output",
    "patch",
    "reason",
    "schema",
];

/// Returns values that say in their halves whether they were seen.
fn values(seed: u64) -> Vec<String> {
    let mut random = StdRng::seed_from_u64(seed);
    let middles =
        ["&", "<b>", "\"", "'", "\\", "%", " ", "/", "+", "=", "ü", "\\n", "$x", "{{", "🦀", "\t", "_"];
    let mut half =
        || -> String { (0..12).map(|_| random.sample(rand::distr::Alphanumeric) as char).collect() };
    (0..VALUES).map(|n| format!("{}{}{}", half(), middles[n % middles.len()], half())).collect()
}

/// Returns lines that quote a value, each in its own way.
fn lines(value: &str) -> String {
    let json = Value::from(value).to_string();
    let go = json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
    let ways = [
        format!("plain {value} end"),
        format!("+ login -p '{}'", value.replace('\'', "'\\''")),
        json!({"level": "error", "msg": format!("login {value} failed"), "url": value, (value): [value]})
            .to_string(),
        format!("{{\"msg\": {go}, \"x\": {go}}}"),
        json!({"msg": json!({"inner": value}).to_string()}).to_string(),
        format!("{}{value}", "-".repeat(9_990)),
        format!("{value:?}"),
        format!(
            "https://user:{}@host",
            value.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat()
        ),
        format!("Authorization: Basic {}", STANDARD.encode(format!("user:{value}"))),
        URL_SAFE_NO_PAD.encode(value),
        format!("\u{1b}[2J\u{9b}1m\u{202e}{value}\u{7}"),
        format!("<b>{}</b>", value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")),
    ];
    ways.join("\n") + "\n"
}

/// Writes what modules print while the configuration has this generation.
fn write_files(world: &Cluster, generation: u8, secrets: &[String]) {
    let file = |name: &str, text: &str| world.write(&format!("{name}-{generation}"), text);
    file("lines", &secrets.iter().map(|value| lines(value)).collect::<String>());
    let object = json!({"operation": "CreateOrUpdate", "object": {"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "ops", "labels": {"x": secrets[0]}}}});
    file("object", &object.to_string());
    file("patch", &json!([{"op": "add", "path": "/schema/n", "value": secrets[1]}]).to_string());
    let name = format!("n{}", secrets[16]);
    let metrics = [
        json!({"name": "leak", "set": 1, "labels": {"x": secrets[2]}}),
        json!({"name": "x", "action": secrets[5]}),
        json!({"name": secrets[6], "action": "none", "group": secrets[7]}),
        json!({"name": name, "set": 1}),
        json!({"name": name, "add": 1}),
    ];
    file("metrics", &metrics.map(|metric| metric.to_string()).join("\n"));
    file(
        "badmetric",
        &json!({"name": secrets[8], "set": 1, "labels": {(secrets[9].as_str()): "x"}}).to_string(),
    );
    let object =
        json!({"operation": secrets[10], "kind": secrets[11], "name": secrets[12], "namespace": secrets[13]});
    file("badobject", &object.to_string());
    let steps =
        json!([{"op": secrets[14], "path": format!("/badpath/{}", secrets[15]), "value": secrets[0]}]);
    file("badpath", &steps.to_string());
    file("reason", &format!("no, because {}", secrets[3]));
}

fn config(generation: u8, secrets: &[String]) -> Value {
    let section = json!({"passwords": secrets, "generation": generation}).to_string();
    let mut data = serde_json::Map::new();
    for module in MODULES {
        data.insert(module.to_owned(), section.clone().into());
        data.insert(format!("{module}Enabled"), "true".into());
    }
    json!({ "data": data })
}

/// A line of bash that says which generation the values have.
const GENERATION: &str = "n=$(sed -n 's/.*\"generation\":\\([0-9]\\).*/\\1/p' \"$VALUES_PATH\")";

fn write_modules(world: &Cluster) {
    let hook = |module: &str, work: &str| {
        let script = format!(
            "#!/bin/bash\nif [[ $1 == --config ]]; then echo '{{\"configVersion\": \"v1\", \"beforeHelm\": 1}}'; exit; fi\n\
             {GENERATION}\n{work}\n"
        );
        world.write(&format!("modules/010-{module}/hooks/a.sh"), &script);
    };
    hook("hook", "cat \"$WORLD/lines-$n\"; cat \"$WORLD/lines-$n\" >&2; exit $((n == 1))");
    hook("badmetric", "[[ $n == 2 ]] || cp \"$WORLD/badmetric-$n\" \"$METRICS_PATH\"");
    hook("badobject", "[[ $n == 2 ]] || cp \"$WORLD/badobject-$n\" \"$KUBERNETES_PATCH_PATH\"");
    hook("badpath", "[[ $n == 2 ]] || cp \"$WORLD/badpath-$n\" \"$VALUES_JSON_PATCH_PATH\"");
    hook("metric", "cp \"$WORLD/metrics-$n\" \"$METRICS_PATH\"");
    hook("object", "[[ $n == 2 ]] || cp \"$WORLD/object-$n\" \"$KUBERNETES_PATCH_PATH\"");
    hook("output", "[[ $n == 2 ]] || cp \"$WORLD/lines-$n\" \"$VALUES_JSON_PATCH_PATH\"");
    hook("schema", "[[ $n == 2 ]] || cp \"$WORLD/patch-$n\" \"$VALUES_JSON_PATCH_PATH\"");
    let schema = "type: object\nproperties: {n: {type: string, enum: [one, two]}, generation: {type: integer}, passwords: {type: array, items: {type: string}}}\n";
    world.write("modules/010-schema/openapi/values.yaml", schema);
    world
        .write("modules/010-schema/openapi/config-values.yaml", "type: object\nadditionalProperties: true\n");
    world.write("modules/010-chart/Chart.yaml", "name: chart\nversion: 0.1.0\n");
    world.write("modules/010-chart/templates/a.yaml", "{{ fail (index .Values.chart.passwords 4) }}\n");
    world.write("modules/010-patch/Chart.yaml", "name: patch\nversion: 0.1.0\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {x: {{ index .Values.patch.passwords 0 | quote }}}}\n";
    world.write("modules/010-patch/templates/a.yaml", map);
    let enabled = format!(
        "#!/bin/bash\n{GENERATION}\ncat \"$WORLD/lines-$n\"\ncp \"$WORLD/reason-$n\" \"$MODULE_ENABLED_REASON\"\n\
         echo false > \"$MODULE_ENABLED_RESULT\"\n"
    );
    world.write("modules/010-reason/enabled", &enabled);
}

/// Returns the answer of the port.
pub(crate) async fn fetch(operator: &Operator, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", operator.port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Waits until the answer of the port fits.
pub(crate) async fn wait_for(operator: &Operator, path: &str, fits: impl Fn(&str) -> bool) {
    let until = async {
        while !fits(&fetch(operator, path).await) {
            pause().await;
        }
    };
    let in_time = tokio::time::timeout(crate::support::DEADLINE, until).await.is_ok();
    assert!(in_time, "{}", fetch(operator, path).await);
}

/// Returns all that everybody may read but the log.
async fn public(world: &Cluster, operator: &Operator) -> String {
    let mut all = String::new();
    let whys = MODULES.map(|module| format!("/why/module/{module}"));
    for route in ROUTES.into_iter().chain(whys.iter().map(String::as_str)) {
        let answer = fetch(operator, route).await;
        let obeyed = |char: char| (char.is_control() && !"\r\n\t".contains(char)) || char == '\u{202e}';
        assert!(!answer.contains(obeyed), "a terminal obeys {route}: {answer:?}");
        let _ = writeln!(all, "{route}: {answer}");
    }
    let events = get(&world.server, "/api/v1/namespaces/ops/events").await;
    let _ = writeln!(all, "events: {}", events.unwrap_or_default());
    all
}

/// Fails if a text has a part of a value that tells something.
fn check(what: &str, text: &str, secrets: &[String]) {
    let chunk = |text: &str, at: usize| text.get(at..).unwrap_or_default().to_owned();
    for value in secrets {
        let halves = [value.chars().take(12).collect::<String>(), chunk(value, value.len() - 12)];
        let encoded = [STANDARD.encode(value), STANDARD.encode(format!("user:{value}"))];
        let encoded = encoded.map(|text| text.get(8..24).unwrap_or_default().to_owned());
        for part in halves.iter().chain(&encoded) {
            let line = text.lines().find(|line| line.contains(part));
            assert!(line.is_none(), "{what}: {part} of {value:?}: {line:?}");
        }
    }
}

#[tokio::test]
async fn slip_03_no_log_page_route_event_or_metric_quotes_a_value() {
    let (captured, heard) = log::capture();
    let _log = tracing::subscriber::set_default(captured);
    let (old, new) = (values(1), values(2));
    let hidden = values(3);
    let world = Cluster::new().await;
    write_modules(&world);
    write_files(&world, 1, &old);
    write_files(&world, 2, &new);
    // What nobody told the operator: a filter that fails on a Secret.
    let watcher = "#!/bin/bash\nif [[ $1 == --config ]]; then echo '{\"configVersion\": \"v1\", \"kubernetes\": [{\"name\": \"s\", \
        \"kind\": \"Secret\", \"queue\": \"side\", \"waitForSynchronization\": false, \"jqFilter\": \".data.password | .x\"}]}'; fi\n";
    world.write("global-hooks/watch.sh", watcher);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ops"},
        "data": {"password": STANDARD.encode(&hidden[0])}});
    crate::support::server::ok(&world.server, http::Method::POST, "/api/v1/namespaces/ops/secrets", &secret)
        .await;
    world.put("addon-operator", config(1, &old)).await;
    let operator = world.start(&[("on-module-failure", "pass")]).await;
    let mut logged = String::new();
    let failing =
        ["badmetric", "badobject", "badpath", "chart", "hook", "object", "output", "patch", "schema"];
    // The name of a metric is shown where it is exported.
    let shown = VALUES - 1;
    wait_for(&operator, "/status?output=json", |status| {
        failing.iter().all(|module| status.contains(&format!("module {module}\"")))
            && status.contains("watch of Secret")
    })
    .await;
    wait_for(&operator, "/metrics/hooks", |metrics| metrics.contains("leak{")).await;
    let before = public(&world, &operator).await;
    assert!(before.contains("******") && before.contains(".data.password"), "{before}");
    check("before", &before, &old[..shown]);
    check("before", &before, &hidden);
    // The values change while the old failures are shown.
    world.put("addon-operator", config(2, &new)).await;
    wait_for(&operator, "/journal", |journal| {
        journal.lines().any(|line| line.contains("ModuleRun hook") && line.contains("  done"))
    })
    .await;
    let after = public(&world, &operator).await;
    logged.push_str(&heard.lines().join("\n"));
    assert!(logged.contains("login ****** failed"), "{logged}");
    for told in
        ["unknown action \"******\"", "metric n****** of hook metric/", "metric ****** of hook metric/"]
    {
        assert!(logged.contains(told), "{told}: {logged}");
    }
    for (what, text, count) in [("after", &after, shown), ("log", &logged, VALUES)] {
        check(what, text, &old[..count]);
        check(what, text, &hidden);
        check(what, text, &new[..count]);
    }
    operator.stop().await;
}

#[tokio::test]
async fn b15_the_password_of_a_chart_repository_is_told_nowhere() {
    let (captured, heard) = log::capture();
    let _log = tracing::subscriber::set_default(captured);
    let passwords = [values(4).remove(0), values(5).remove(0)];
    let world = World::new().await;
    world.write_module("alpha", "*");
    let packed = alpha("0.1.0");
    let entry = json!({"version": "0.1.0", "urls": ["alpha-0.1.0.tgz"], "digest": digest(&packed)});
    let index = json!({"entries": {"alpha": [entry]}}).to_string().into_bytes();
    let wanted = format!("Basic {}", STANDARD.encode(format!("user:{}", passwords[1])));
    for (path, file) in [("/index.yaml", index), ("/alpha-0.1.0.tgz", packed)] {
        let guarded = Box::new(Reply::File(file));
        world.repository.put(path, Reply::Guarded(wanted.clone(), "Basic realm=\"x\"".to_owned(), guarded));
    }
    let secrets = "/api/v1/namespaces/ops/secrets";
    let secret = |password: &str| json!({"metadata": {"name": "auth"}, "stringData": {"user": "user", "password": password}});
    ok(&world.cluster.server, Method::POST, secrets, &secret(&passwords[0])).await;
    let operator = world.start().await;
    let spec = json!({"name": "corp", "url": world.repository.url(""), "authSecret": "auth"});
    world.apply("Repository", "corp", spec).await;
    let said = world.failed("Repository", "corp", "fetchIndexFailed").await;
    assert!(said.contains("401"), "{said}");
    let mut all = public(&world.cluster, &operator).await;
    let right = format!("{secrets}/auth");
    ok(&world.cluster.server, Method::PATCH, &right, &secret(&passwords[1])).await;
    world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "1"})).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "hello").await;
    all.push_str(&public(&world.cluster, &operator).await);
    for path in [
        MAPS,
        "/api/v1/namespaces/default/events",
        "/apis/yaho.soer3n.dev/v1alpha1/charts",
        "/apis/yaho.soer3n.dev/v1alpha1/repositories",
    ] {
        let _ = writeln!(all, "{path}: {}", get(&world.cluster.server, path).await.unwrap());
    }
    operator.stop().await;
    let logged = heard.lines().join("\n");
    assert!(logged.contains("Repository corp is not synced") && all.contains("401"), "{logged}");
    for (what, text) in [("log", &logged), ("all", &all)] {
        check(what, text, &passwords);
    }
}
