//! The listener of webhooks as clients on the network meet it: what it refuses, and many reviews at once.
//!
//! `FIGURES_OPERATOR=target/release/addon-operator cargo test --test it a_review_takes -- --ignored --nocapture`

use std::fs;
use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::time::Instant;

use addon_operator::app::Outcome;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::DEADLINE;
use crate::support::in_process::{Cluster, Operator, ask_socket};
use crate::support::measured::Program;
use crate::support::pause::pause;
use crate::support::program::Workspace;
use crate::support::server::{get, ok, send, until};
use crate::webhooks::{CONFIGURATIONS, MAPS, ON};

pub(crate) const PATH: &str = "/validate/maps.example.com";

/// A global hook that lets every ConfigMap be written. `$WORLD/gate` holds it up as long as it is a pipe; in `$WORLD/now` is a
/// file for each process. It starts next to no other programs, so that many of it are through in a short time.
const ALLOWS: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetesValidating:
- name: maps.example.com
  timeoutSeconds: 30
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
CONFIG
  exit 0
fi
echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
if [[ -e "$WORLD/gate" ]]; then
  : > "$WORLD/now/$$"
  now=("$WORLD"/now/*)
  echo "${#now[@]}" >> "$WORLD/counts"
  IFS= read -r -d '' context < "$BINDING_CONTEXT_PATH"
  [[ "$context" =~ \"name\":\"c([0-9]+)\" ]]
  echo "${BASH_REMATCH[1]}" >> "$WORLD/order"
  read -r _ < "$WORLD/gate"
  rm "$WORLD/now/$$"
fi
"#;

/// What a client needs to ask.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) port: u16,
    /// The authorities that it trusts, in PEM.
    pub(crate) trusted: Vec<u8>,
    /// Its own certificate and key, in PEM.
    pub(crate) own: Option<(String, String)>,
}

impl Asked {
    pub(crate) async fn connect(&self) -> Result<TlsStream<TcpStream>, Error> {
        let mut roots = rustls::RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(&self.trusted) {
            roots.add(authority.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider);
        let tls = tls.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let tls = match &self.own {
            None => tls.with_no_client_auth(),
            Some((cert, key)) => {
                let chain =
                    CertificateDer::pem_slice_iter(cert.as_bytes()).collect::<Result<_, _>>().unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                tls.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(Arc::new(tls)).connect(name, stream).await
    }

    /// Sends a request and returns the status and the body of the answer.
    async fn ask(&self, head: &str, body: &[u8]) -> Result<(u16, String), Error> {
        let mut stream = self.connect().await?;
        let head = format!("{head}\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        // Who is refused early need not be able to send all.
        let _ = stream.write_all(body).await;
        let mut answer = Vec::new();
        let mut read = stream.read_to_end(&mut answer).await;
        if !answer.is_empty() {
            read = Ok(0);
        }
        read?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.ok_or(ErrorKind::InvalidData)?, body.to_owned()))
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Result<(u16, String), Error> {
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {length}");
        self.ask(&head, body.as_bytes()).await
    }

    /// Returns the certificate that the listener shows.
    pub(crate) async fn shown(&self) -> Vec<u8> {
        let stream = self.connect().await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }
}

pub(crate) fn review(name: &str) -> String {
    let object = json!({"metadata": {"name": name, "namespace": "shop"}});
    let request = json!({"uid": "u", "operation": "CREATE", "name": name, "object": object});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

pub(crate) async fn world() -> Cluster {
    let world = Cluster::new().await;
    ok(&world.server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await;
    world.write("global-hooks/allow.sh", ALLOWS);
    world
}

async fn configured(world: &Cluster) -> Option<Value> {
    let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations/addon-operator-ops");
    get(&world.server, &path).await?.pointer("/webhooks/0").cloned()
}

/// Returns how the listener is asked, as soon as the API server would, with a configuration that `fits`.
pub(crate) async fn asked(world: &Cluster, fits: impl Fn(&Value) -> bool) -> Asked {
    let begun = Instant::now();
    loop {
        if let Some(webhook) =
            configured(world).await.filter(|found| found["failurePolicy"] == "Fail" && fits(found))
        {
            let client = &webhook["clientConfig"];
            let url: http::Uri = client["url"].as_str().unwrap().parse().unwrap();
            let trusted = STANDARD.decode(client["caBundle"].as_str().unwrap()).unwrap();
            return Asked { port: url.port_u16().unwrap(), trusted, own: None };
        }
        assert!(begun.elapsed() < DEADLINE, "{:?}", configured(world).await);
        pause().await;
    }
}

pub(crate) async fn started(world: &Cluster, extra: &[(&str, &str)]) -> (Operator, Asked) {
    let operator = world.start(&[ON, extra].concat()).await;
    (operator, asked(world, |_| true).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_review_is_refused_with_the_reason() {
    let world = world().await;
    let (operator, at) = started(&world, &[]).await;
    let (ten, json) = ("x".repeat(10 << 20), "Content-Type: application/json");
    let head = |method: &str, path: &str, headers: &str| format!("{method} {path} HTTP/1.1\r\n{headers}");
    let sized = |kind: &str, body: &str| format!("{kind}\r\nContent-Length: {}", body.len());
    let chunked = format!("{:x}\r\n{ten}\r\n0\r\n\r\n", ten.len());
    let (good, without) = (review("a"), json!({"kind": "AdmissionReview"}).to_string());
    let cases = [
        (head("GET", "/healthz", "Accept: */*"), "", 200, ""),
        (head("GET", PATH, "Accept: */*"), "", 405, "POST"),
        (head("POST", PATH, &sized("Content-Type: text/plain", &good)), &good, 415, "application/json"),
        (head("POST", PATH, &sized("Accept: */*", &good)), &good, 415, "application/json"),
        (head("POST", PATH, &sized(json, "{\"a\": tr")), "{\"a\": tr", 400, "Invalid JSON payload"),
        (head("POST", PATH, &sized(json, "{}")), "{}", 400, "AdmissionReview is expected"),
        (head("POST", PATH, &sized(json, &without)), &without, 400, "Missing parameters: request"),
        (head("POST", "/validate/x.example.com", &sized(json, &good)), &good, 404, "no hook answers"),
        (head("POST", "/convert/x.example.com", &sized(json, &good)), &good, 404, "no hook answers"),
        (head("POST", PATH, &sized(json, &ten)), &ten, 413, "8388608 bytes at most"),
        (head("POST", PATH, &format!("{json}\r\nTransfer-Encoding: chunked")), &chunked, 413, "8388608"),
        (head("POST", "/convert/x", &format!("{json}\r\nContent-Length: 67108865")), "", 413, "67108864"),
        (
            head("POST", PATH, &sized(&format!("{json}; charset=utf-8"), &good)),
            &good,
            200,
            "\"allowed\":true",
        ),
    ];
    for (head, body, status, text) in cases {
        let (found, answer) = at.ask(&head, body.as_bytes()).await.unwrap();
        assert_eq!(found, status, "{head}: {answer}");
        assert!(answer.contains(text), "{head}: {answer}");
    }
    assert_eq!(operator.stop().await, Outcome::Done);
}

/// Sends many reviews at once while a gate holds hooks up, and opens it when all wait. A review waits for as long as its class
/// says. Returns the classes in the order in which hooks began, and how many processes there were at a time.
async fn crowd(cap: usize, reviews: usize) -> (Vec<u64>, Vec<usize>) {
    let world = world().await;
    fs::create_dir(world.path("now")).unwrap();
    let (gate, held) = (world.path("gate"), world.path("held"));
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    fs::hard_link(&gate, &held).unwrap();
    let (operator, at) = started(&world, &[("webhook-concurrency", &cap.to_string())]).await;
    let ask = |class: u64| {
        let (at, name, path) =
            (at.clone(), format!("c{class}"), format!("{PATH}?timeout={}s", 13 + class * 4));
        tokio::spawn(async move { at.post(&path, &review(&name)).await.unwrap() })
    };
    let first: Vec<_> = (0..cap).map(|_| ask(0)).collect();
    until("the first hooks", || fs::read_dir(world.path("now")).unwrap().count() == cap).await;
    let all: Vec<_> = (0..reviews).map(|place| ask([4, 2, 1, 3][place % 4])).collect();
    until("all reviews", || {
        let queues = ask_socket(&world, "/queue/list.text");
        queues.matches("kubernetesValidating maps.example.com").count() >= reviews + cap
    })
    .await;
    fs::write(world.path("open"), "").unwrap();
    fs::rename(world.path("open"), &gate).unwrap();
    drop(fs::OpenOptions::new().write(true).open(&held).unwrap());
    for answer in first.into_iter().chain(all) {
        let (status, answer) = answer.await.unwrap();
        assert!(status == 200 && answer.contains("\"allowed\":true"), "{status} {answer}");
    }
    assert_eq!(operator.stop().await, Outcome::Done);
    let numbers = |file: &str| fs::read_to_string(world.path(file)).unwrap();
    let order = numbers("order").lines().map(|line| line.trim().parse().unwrap()).collect();
    (order, numbers("counts").lines().map(|line| line.trim().parse().unwrap()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f4_two_hundred_reviews_at_once_are_answered_in_the_order_of_their_deadlines() {
    let (order, counts) = crowd(1, 200).await;
    assert!(order.is_sorted() && order.len() == 201, "{order:?}");
    assert!(counts.iter().all(|count| *count == 1), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f4_two_hundred_reviews_at_once_have_never_more_processes_than_allowed() {
    let (order, counts) = crowd(4, 200).await;
    assert_eq!(order.len(), 204);
    assert!(counts.iter().all(|count| *count <= 4), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn f_f3_webhooks_are_taken_back_without_an_operator_and_those_of_others_stay() {
    let world = Cluster::new().await;
    ok(&world.server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await;
    // This is what an operator left behind whose nodes are gone.
    let service = |name: &str| json!({"service": {"namespace": "ops", "name": name, "path": "/x", "port": 443}, "caBundle": "eA=="});
    let configuration = |name: &str, of: &str, resource: &str| {
        json!({"metadata": {"name": name}, "webhooks": [{
            "name": "maps.example.com", "clientConfig": service(of), "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"]}],
        }]})
    };
    let definition = |plural: &str, of: &str| {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": service(of), "conversionReviewVersions": ["v1"]}},
        }})
    };
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for plural in ["tabs", "tubs"] {
        let of = if plural == "tabs" { "addon-operator-webhooks" } else { "others" };
        ok(&world.server, Method::POST, definitions, &definition(plural, of)).await;
    }
    let kinds = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]
        .map(|kind| format!("{CONFIGURATIONS}/{kind}"));
    for kind in &kinds {
        let ours = configuration("addon-operator-ops", "addon-operator-webhooks", "configmaps");
        ok(&world.server, Method::POST, kind, &ours).await;
        ok(&world.server, Method::POST, kind, &configuration("others", "others", "pods")).await;
    }
    let map = json!({"metadata": {"name": "a"}});
    assert_eq!(send(&world.server, Method::POST, MAPS, &map).await.0, 500);
    let serving = world.server.serve(tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    let workspace = Workspace::new();
    workspace.write("kubeconfig", serving.kubeconfig());
    let mut command = workspace.command(&[
        "start",
        "--uninstall-webhooks",
        "--namespace",
        "ops",
        "--kube-config",
        "kubeconfig",
    ]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    ok(&world.server, Method::POST, MAPS, &map).await;
    for kind in &kinds {
        assert_eq!(get(&world.server, &format!("{kind}/addon-operator-ops")).await, None);
        assert!(get(&world.server, &format!("{kind}/others")).await.is_some());
    }
    for (plural, strategy) in [("tabs", "None"), ("tubs", "Webhook")] {
        let found = get(&world.server, &format!("{definitions}/{plural}.example.com")).await.unwrap();
        assert_eq!(found["spec"]["conversion"]["strategy"], strategy, "{plural}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time; docs/performance.md has the numbers"]
async fn a_review_takes_two_milliseconds_longer_than_its_hook_at_most() {
    const REVIEWS: u32 = 300;
    const HOOKS: &str = "addon_operator_global_hook_run_seconds";
    let world = world().await;
    let variables = [
        ("ADDON_OPERATOR_ADMISSION_SERVER_ENABLED", "true"),
        ("ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_ADDRESS", "127.0.0.1"),
        ("ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_PORT", "0"),
        ("ADDON_OPERATOR_WEBHOOK_URL", "https://127.0.0.1:0"),
    ];
    let program = Program::start(&world, &variables).await;
    let at = asked(&world, |_| true).await;
    let mut stream = at.connect().await.unwrap();
    let body = review("a");
    let request = format!(
        "POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let hooks_took = async || {
        let [sum, count] = ["sum", "count"].map(|part| format!("{HOOKS}_{part}"));
        (program.metric(&sum).await, program.metric(&count).await)
    };
    let (mut beside, mut all) = (Vec::new(), Vec::new());
    for number in 1..=REVIEWS {
        let before = hooks_took().await.0;
        let begun = Instant::now();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let read = stream.read(&mut answer).await.unwrap();
        let took = begun.elapsed().as_secs_f64() * 1e3;
        assert!(String::from_utf8_lossy(&answer[..read]).contains("\"allowed\":true"));
        let (after, runs) = hooks_took().await;
        assert!((runs - f64::from(number)).abs() < 0.5, "{runs} runs");
        beside.push(took - (after - before) * 1e3);
        all.push(took);
    }
    let [beside, all] = [beside, all].map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!("a review takes {all:.2} ms, {beside:.2} ms of them beside its hook (medians)");
    assert!(beside <= 2.0, "{beside}");
}
