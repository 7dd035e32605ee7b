//! Requests as targets write them. The crates share this file.

use axum::body::Body;
use http::{Method, Request};

/// The line between two requests.
const BETWEEN: &[u8] = b"\n%\n";

/// Returns the requests in `bytes`. What is none is left out.
pub(crate) fn requests(bytes: &[u8]) -> Vec<Request<Body>> {
    let (mut requests, mut rest) = (Vec::new(), bytes);
    while let Some(at) = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        requests.extend(rest.get(..at).and_then(request));
        rest = rest.get(at + BETWEEN.len()..).unwrap_or_default();
    }
    requests.extend(request(rest));
    requests
}

/// Reads a method and a path, a line for each header, and behind an empty line the body.
fn request(bytes: &[u8]) -> Option<Request<Body>> {
    let (head, body) = match bytes.windows(2).position(|window| window == b"\n\n") {
        Some(at) => (bytes.get(..at)?, bytes.get(at + 2..)?),
        None => (bytes, &[][..]),
    };
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).ok()?).uri(path);
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        request = request.header(name, value);
    }
    request.body(Body::from(body.to_vec())).ok()
}
