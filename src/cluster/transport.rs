//! The way of a request to the API server: the layers of the client library, on connections that hold nothing back.

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt as _, DynBody};
use tower::retry::RetryLayer;
use tower::util::BoxService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};
use tower_http::decompression::DecompressionLayer;

/// What sends requests.
pub(super) type Transport = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// Returns the way to the API server of a configuration.
///
/// The library's own one has connections on which the system holds back what is small until all before it has arrived
/// (Nagle's algorithm). The other side acknowledges late, so that the first request of each connection waited for 40 ms. Its
/// connector can't be told otherwise, so these are its layers with another one.
pub(super) fn transport(config: Config) -> kube::Result<ClientBuilder<Transport>> {
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector())?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    let client: legacy::Client<_, Body> = legacy::Builder::new(TokioExecutor::new()).build(connector);
    let decompression =
        DecompressionLayer::new().no_br().no_deflate().no_zstd().gzip(!config.disable_compression);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(decompression)
        .option_layer(config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry())))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client)
        .map_response(|answer: Response<_>| {
            answer.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>)
        });
    Ok(ClientBuilder::new(service.boxed(), config.default_namespace))
}

/// Returns what makes connections without TLS.
fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector
}

#[cfg(test)]
mod tests {
    use tower::Service as _;

    use super::*;

    #[tokio::test]
    async fn a_connection_holds_nothing_back() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("https://{}", listener.local_addr().unwrap()).parse().unwrap();
        let stream = connector().call(uri).await.unwrap();
        assert!(stream.inner().nodelay().unwrap());
    }
}
