//! A webhook for everything, which notes what it is shown.

use std::sync::{Arc, Mutex};

use apiserver::Endpoint;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::play::send;

/// What is known of one step of a script.
#[derive(Default)]
struct Step {
    patch: Option<Value>,
    denial: Option<String>,
    notes: Vec<(String, Value)>,
}

impl Step {
    fn answer(&mut self, webhook: &str, review: &Value) -> Value {
        let request = &review["request"];
        self.notes.push((webhook.to_owned(), request.clone()));
        let mut response = json!({"uid": request["uid"], "allowed": true});
        if let (Some(patch), true) = (&self.patch, webhook.starts_with("mutating")) {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(patch.to_string()));
        }
        if let (Some(message), true) = (&self.denial, webhook.starts_with("validating")) {
            response["allowed"] = json!(false);
            response["status"] = json!({"message": message, "code": 403});
        }
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    }
}

pub(crate) struct Hook {
    url: String,
    authority: String,
    step: Arc<Mutex<Step>>,
}

impl Hook {
    /// Listens on a free port of this machine.
    pub(crate) async fn listen() -> Hook {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let step = Arc::new(Mutex::new(Step::default()));
        tokio::spawn(serve(listener, acceptor, Arc::clone(&step)));
        Hook { url, authority: STANDARD.encode(made.cert.pem()), step }
    }

    /// Makes the server ask this webhook about everything.
    pub(crate) async fn register(&self, service: &Endpoint) {
        for kind in ["mutating", "validating"] {
            let rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"], "scope": "*"});
            let client = json!({"url": format!("{}/{kind}", self.url), "caBundle": self.authority});
            let webhook = json!({
                "name": format!("{kind}.x.io"), "clientConfig": client, "rules": [rule],
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 20,
            });
            let body =
                json!({"metadata": {"name": format!("all-{kind}")}, "webhooks": [webhook]}).to_string();
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
            let json = ("application/json", "application/json");
            assert_eq!(send(service, "POST", &path, json, Some(body)).await.0, 201);
        }
    }

    /// Forgets what was noted, and says how the next reviews are answered.
    pub(crate) fn begin(&self, patch: Option<&Value>, denial: Option<&str>) {
        *self.step.lock().unwrap() =
            Step { patch: patch.cloned(), denial: denial.map(str::to_owned), notes: Vec::new() };
    }

    /// Returns what was noted, by webhook, and forgets it.
    pub(crate) fn take(&self) -> Vec<Value> {
        let mut notes = std::mem::take(&mut self.step.lock().unwrap().notes);
        notes.sort_by(|a, b| a.0.cmp(&b.0));
        notes.into_iter().map(|(webhook, request)| shown(&webhook, request)).collect()
    }

    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{hook}", &self.url).replace("{ca}", &self.authority)
    }

    pub(crate) fn restore(&self, text: &str) -> String {
        // A port may look like one of a node.
        let text = text.replace(&self.url, "{hook}").replace("https://127.0.0.1:NODEPORT", "{hook}");
        text.replace(&self.authority, "{ca}")
    }
}

/// Returns a review as recordings have it: of its user, only the fields that it has.
fn shown(webhook: &str, mut request: Value) -> Value {
    request["webhook"] = json!(webhook);
    request["uid"] = json!("");
    let mut user: Vec<&String> = request["userInfo"].as_object().unwrap().keys().collect();
    user.sort();
    request["userInfo"] = json!(user);
    let object = if request["object"].is_null() { &request["oldObject"] } else { &request["object"] };
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    let (prefix, made) = (text("generateName"), text("name"));
    if !prefix.is_empty() && !made.is_empty() && made.starts_with(&prefix) {
        let text = request.to_string().replace(&made, &format!("{prefix}*"));
        return serde_json::from_str(&text).unwrap();
    }
    request
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, step: Arc<Mutex<Step>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, step) = (acceptor.clone(), Arc::clone(&step));
        tokio::spawn(async move {
            stream.set_nodelay(true).unwrap();
            let stream = acceptor.accept(stream).await.unwrap();
            let answer = service_fn(move |request| answer(request, Arc::clone(&step)));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    step: Arc<Mutex<Step>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let webhook = request.uri().path().trim_matches('/').to_owned();
    let review = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&review).unwrap();
    let answer = step.lock().unwrap().answer(&webhook, &review);
    Ok(Response::new(Full::new(Bytes::from(answer.to_string()))))
}
