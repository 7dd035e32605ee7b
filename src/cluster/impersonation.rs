//! Acting as a `ServiceAccount`: requests that have its rights and no others.

use http::HeaderValue;
use kube::Client;
use tower::service_fn;

/// The header that says as whom a request is made. The groups of a `ServiceAccount` follow from its name: the API server fills
/// them in, and who names them needs the right to impersonate groups, too.
const USER: &str = "impersonate-user";

/// Who acts if a name fits no header: nobody, and never the operator itself.
const NOBODY: HeaderValue = HeaderValue::from_static("system:anonymous");

/// Returns a client that makes its requests as the `ServiceAccount` `account` of `namespace`, over the connections of `client`.
///
/// Has to be called within a runtime.
pub fn impersonating(client: &Client, namespace: &str, account: &str) -> Client {
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let user = HeaderValue::from_str(&user).unwrap_or(NOBODY);
    let client = client.clone();
    let service = service_fn(move |mut request: http::Request<kube::client::Body>| {
        let client = client.clone();
        request.headers_mut().insert(USER, user.clone());
        async move { client.send(request).await }
    });
    Client::new(service, namespace)
}
