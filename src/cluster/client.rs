//! Clients of the API server, and what the errors of their requests mean.

use std::path::PathBuf;

use engine::{Failure, FailureKind};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use thiserror::Error;
use tower::{Layer as _, ServiceExt as _};

use super::body_limit::BodyLimit;
use super::deadline::Deadline;
use super::rate_limit::RateLimit;
use super::refusal::without_values;
use super::request::{ALREADY_THERE, RequestError, says_terminating};
use super::transport::transport;
use crate::fence::Fence;

/// The user agent. The API server derives the field manager from it where none is named.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("addon-operator/", env!("CARGO_PKG_VERSION")));

/// Where the API server is looked for.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// A kubeconfig; `None` for the usual places, then for the cluster that we run in.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; `None` for its current one.
    pub context: Option<String>,
    /// The address of the API server, instead of that in the kubeconfig.
    pub server: Option<String>,
}

/// Why no API server is known. The program exits with 2: waiting would not help.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The kubeconfig can't be used.
    #[error("kubeconfig {path} can't be used: {source}")]
    Kubeconfig {
        /// The path of the kubeconfig.
        path: PathBuf,
        /// What is wrong.
        source: kube::config::KubeconfigError,
    },
    /// Nothing says where a cluster is.
    #[error(
        "no cluster: there is no kubeconfig and this is not a Pod ({0}); \
         name one with --kube-config, or run `addon-operator dev`, which brings its own cluster"
    )]
    Nowhere(kube::config::InferConfigError),
    /// A proxy stands before it. Its address can hold a password.
    #[error(
        "the API server is to be asked through the proxy {host}, which is not possible: take `proxy-url` out of the kubeconfig and \
         HTTPS_PROXY out of the environment, or name a server that can be reached without it"
    )]
    Proxy {
        /// The host of the proxy.
        host: String,
    },
    /// The client can't be built from what is known.
    #[error("the client of the API server can't be made: {0}")]
    Client(kube::Error),
    /// The address of the API server is not one.
    #[error("--kube-server {given:?} is not an address: {source}")]
    Server {
        /// What was given.
        given: String,
        /// What is wrong.
        source: http::uri::InvalidUri,
    },
}

/// Returns a client of the API server that `access` leads to. Nothing is sent yet.
/// `fence` says until when anything may be written.
pub async fn connect(access: &Access, limit: &RateLimit, fence: &Fence) -> Result<Client, ConnectError> {
    let mut config = config(access).await?;
    // A watch is quiet for as long as nothing happens; `Deadline` knows which request is one.
    config.read_timeout = None;
    config.headers.push((USER_AGENT, AGENT));
    if let Some(proxy) = &config.proxy_url {
        return Err(ConnectError::Proxy { host: proxy.host().unwrap_or_default().to_owned() });
    }
    let builder = transport(config).map_err(ConnectError::Client)?;
    let limited =
        builder.with_layer(fence).with_layer(&Deadline).with_layer(limit.metrics()).with_layer(limit);
    Ok(limited.with_layer(&BodyLimit).build())
}

/// Returns the host of the API server that [`connect`] leads to.
///
/// # Errors
///
/// Those of [`connect`].
pub async fn server_host(access: &Access) -> Result<Option<String>, ConnectError> {
    Ok(config(access).await?.cluster_url.host().map(str::to_owned))
}

async fn config(access: &Access) -> Result<Config, ConnectError> {
    let mut config = match &access.kubeconfig {
        Some(path) => {
            let wrong = |source| ConnectError::Kubeconfig { path: path.clone(), source };
            let kubeconfig = Kubeconfig::read_from(path).map_err(wrong)?;
            let options =
                KubeConfigOptions { context: access.context.clone(), ..KubeConfigOptions::default() };
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(wrong)?
        }
        None if access.context.is_some() => {
            let options =
                KubeConfigOptions { context: access.context.clone(), ..KubeConfigOptions::default() };
            let wrong = |source| ConnectError::Kubeconfig { path: PathBuf::from("~/.kube/config"), source };
            Config::from_kubeconfig(&options).await.map_err(wrong)?
        }
        None => Config::infer().await.map_err(ConnectError::Nowhere)?,
    };
    if let Some(server) = &access.server {
        let wrong = |source| ConnectError::Server { given: server.clone(), source };
        config.cluster_url = server.parse().map_err(wrong)?;
    }
    Ok(config)
}

/// Returns a client of an API server in this process.
pub fn connect_in_process<S, B>(service: S, namespace: &str) -> Client
where
    S: tower::Service<http::Request<kube::client::Body>, Response = http::Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<tower::BoxError>,
    B: hyper::body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    let named = service.map_request(|mut request: http::Request<kube::client::Body>| {
        request.headers_mut().insert(USER_AGENT, AGENT);
        request
    });
    Client::new(BodyLimit.layer(Deadline.layer(named)), namespace)
}

/// Returns what an error of a request means, in one line without the noise of the client.
pub fn failure(what: &str, error: &kube::Error) -> Failure {
    if let kube::Error::Api(status) = error {
        let failure = refused(what, status.code, &status.message);
        if is_terminating(error) {
            let kind = FailureKind::Terminating;
            return Failure { kind, ..failure }
                .advise("nothing, unless its namespace stays: it is tried again by itself");
        }
        return failure;
    }
    let mut failure = Failure::of(FailureKind::Cluster, error);
    let cause = std::mem::replace(&mut failure.message, what.to_owned());
    failure.chain.insert(0, cause);
    failure
}

/// Returns what an error of one of our own requests means, as [`failure`] does.
pub(crate) fn request_failure(what: &str, error: &RequestError) -> Failure {
    refused(what, error.code(), &error.cause().to_string())
}

/// What to do when a quota is used up.
pub(crate) const QUOTA: &str = "raise the ResourceQuota, or make room in it";

/// Returns whether the API server refused something because of a quota. It has the code of a missing right.
pub(crate) fn is_of_quota(said: &str) -> bool {
    said.contains("exceeded quota")
}

fn refused(what: &str, code: u16, said: &str) -> Failure {
    let failure = Failure::new(FailureKind::Cluster, format!("{what}: {}", without_values(said)));
    match code {
        403 if is_of_quota(said) => failure.advise(QUOTA),
        403 => failure.advise("the operator's ServiceAccount needs a role that allows this"),
        401 => failure.advise("the credentials are not accepted (any more)"),
        _ => failure,
    }
}

/// Returns whether the API server refused an object because its namespace is being deleted.
fn is_terminating(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.details.iter().any(|details| says_terminating(&details.causes))
}

/// Returns whether the API server says that there is no such object.
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Returns whether the API server says that the object was changed in between, or exists already.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Returns whether the API server says that there is such an object already. Other conflicts, as with a quota, say
/// nothing of the object.
pub fn is_already_there(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == ALREADY_THERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_proxy_before_the_api_server_is_named_and_its_password_is_not() {
        let kubeconfig = tempfile::NamedTempFile::new().unwrap();
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\nusers: [{name: a, user: {}}]\n\
            clusters: [{name: a, cluster: {server: 'https://10.0.0.1', proxy-url: 'http://me:pass-word@proxy.example:3128'}}]\n\
            contexts: [{name: a, context: {cluster: a, user: a}}]\n";
        std::fs::write(&kubeconfig, text).unwrap();
        let access = Access { kubeconfig: Some(kubeconfig.path().to_owned()), ..Access::default() };
        let error =
            connect(&access, &RateLimit::new(0.0, 1), &Fence::none()).await.err().unwrap().to_string();
        assert!(error.contains("the proxy proxy.example,") && error.contains("HTTPS_PROXY"), "{error}");
        assert!(!error.contains("pass-word"), "{error}");
    }
}
