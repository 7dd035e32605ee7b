//! A real API server, used as tests use the embedded one: what a scenario finds there is gone before the next one.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use addon_operator::source::crds;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::Service;

use super::DEADLINE;

/// The kinds of the operator whose objects have finalizers.
const HELD: [(&str, &str); 3] = [
    ("/apis/addons.kyma-project.io/v1alpha1", "clusteraddonsconfigurations"),
    ("/apis/addons.kyma-project.io/v1alpha1", "addonsconfigurations"),
    ("/apis/yaho.soer3n.dev/v1alpha1", "repositories"),
];
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1";

/// What scenarios make, all of which is deleted before each.
const NAMESPACES: [&str; 8] = ["ops", "shop", "late", "red", "blue", "a", "b", "helm"];

/// Kinds of theirs, beside those of the operator.
const KIND: &str = "tabs.example.com";
const KIND_OF_A_CHART: &str = "widgets.example.io";

/// Who has to say that a cluster may lose what scenarios would find in their way.
const CONSENT: &str = "DISPOSABLE_CLUSTER";

/// How long an API server may take to notice what was registered: it tells nobody when it has.
const NOTICED: Duration = Duration::from_secs(2);

/// A client of the cluster, in the shape of the embedded server.
pub(crate) struct ApiServer {
    client: Client,
}

/// What makes one; a real server has what the embedded one is asked for.
pub(crate) struct Builder;

impl Builder {
    pub(crate) fn impersonation(self) -> Self {
        self
    }

    /// Returns the server of the cluster, without anything of another scenario.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the embedded server has it so")]
    pub(crate) fn build(self) -> Result<ApiServer, Infallible> {
        assert!(
            std::env::var_os(CONSENT).is_some(),
            "scenarios delete the namespaces {NAMESPACES:?} and all kinds of the operator: set {CONSENT}=yes if the cluster may lose them"
        );
        let ready = async {
            let server = ApiServer { client: crate::client().await };
            server.clear().await;
            server
        };
        Ok(tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(ready)))
    }
}

impl ApiServer {
    pub(crate) fn builder() -> Builder {
        Builder
    }

    /// Returns what answers requests.
    pub(crate) fn service(
        &self,
    ) -> impl Service<
        Request<Body>,
        Response = Response<Body>,
        Error = kube::Error,
        Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>,
    >
    + Clone
    + Send
    + 'static
    + use<> {
        let client = self.client.clone();
        tower::service_fn(move |request| {
            let client = client.clone();
            let answer: BoxFuture<'static, _> = Box::pin(async move { client.send(request).await });
            answer
        })
    }

    /// Waits until the server has noticed what was written.
    pub(crate) async fn settled(&self) {
        tokio::time::sleep(NOTICED).await;
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, kind);
        let response = self.client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Removes what scenarios make, and waits until it is gone. Webhooks go first: their operator is dead.
    async fn clear(&self) {
        for kind in ["validating", "mutating"] {
            let path = format!("{WEBHOOKS}/{kind}webhookconfigurations/addon-operator-ops");
            self.send(Method::DELETE, &path, &Value::Null).await;
        }
        let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        self.send(Method::PATCH, &format!("{DEFINITIONS}/{KIND}"), &none).await;
        for (group, plural) in HELD {
            let (_, list) = self.send(Method::GET, &format!("{group}/{plural}"), &Value::Null).await;
            for object in list["items"].as_array().into_iter().flatten() {
                let name = object["metadata"]["name"].as_str().unwrap();
                let namespace = object["metadata"]["namespace"].as_str();
                let within = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
                let free = json!({"metadata": {"finalizers": null}});
                self.send(Method::PATCH, &format!("{group}/{within}{plural}/{name}"), &free).await;
            }
        }
        let own = crds().unwrap();
        let own = own.iter().filter_map(|crd| crd["metadata"]["name"].as_str());
        let kinds = own.chain([KIND, KIND_OF_A_CHART]).map(|name| format!("{DEFINITIONS}/{name}"));
        let namespaces = NAMESPACES.map(|name| format!("/api/v1/namespaces/{name}"));
        // A scenario writes it beside its namespaces.
        let beside = ["/api/v1/namespaces/default/configmaps/b".to_owned()];
        let all: Vec<String> = kinds.chain(namespaces).chain(beside).collect();
        for path in &all {
            self.send(Method::DELETE, path, &Value::Null).await;
        }
        // Events about objects without a namespace are in this one.
        self.send(Method::DELETE, "/api/v1/namespaces/default/events", &Value::Null).await;
        let begun = Instant::now();
        for path in &all {
            while self.send(Method::GET, path, &Value::Null).await.0 != 404 {
                assert!(
                    begun.elapsed() < DEADLINE,
                    "{path} does not go; a controller of namespaces is needed"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
