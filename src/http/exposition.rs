//! Answers with metrics in the text format of Prometheus, compressed with gzip where the client accepts it.

use std::io::Write as _;

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Returns metrics as an answer to a request with these headers.
pub(super) fn answer(metrics: String, request: &HeaderMap) -> Response {
    let head = [
        (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8"),
        (header::VARY, "accept-encoding"),
    ];
    match accepts_gzip(request).then(|| packed(metrics.as_bytes())) {
        Some(Ok(packed)) => (head, [(header::CONTENT_ENCODING, "gzip")], packed).into_response(),
        Some(Err(_)) | None => (head, metrics).into_response(),
    }
}

fn packed(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text)?;
    encoder.finish()
}

fn accepts_gzip(request: &HeaderMap) -> bool {
    let values = request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut codings = values.flat_map(|value| value.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_ok_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_packed_for_those_who_ask_for_it() {
        for (accepted, expected) in [
            (None, false),
            (Some("gzip"), true),
            (Some("deflate, GZIP;q=0.5"), true),
            (Some("br, gzip; q=1.0, *;q=0"), true),
            (Some("gzip;q=0"), false),
            (Some("gzip;q=0.0, identity"), false),
            (Some("identity"), false),
            (Some("gzip;q=many"), false),
            (Some(""), false),
        ] {
            let mut request = HeaderMap::new();
            if let Some(accepted) = accepted {
                request.insert(header::ACCEPT_ENCODING, accepted.parse().unwrap());
            }
            let answer = answer("a 1\n".repeat(100), &request);
            let coding = answer.headers().get(header::CONTENT_ENCODING);
            assert_eq!(coding.map(|coding| coding == "gzip"), expected.then_some(true), "{accepted:?}");
            assert_eq!(answer.headers()[header::VARY], "accept-encoding");
        }
    }
}
