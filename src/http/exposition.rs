//! Answers with metrics in the text format of Prometheus, compressed with gzip where the client accepts it.

use std::convert::Infallible;
use std::io::Write as _;
use std::{iter, mem};

use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;

/// Returns metrics as an answer to a request with these headers. A piece of them is made when there is room for it in
/// the connection.
pub(super) fn answer(pieces: impl Iterator<Item = String> + Send + 'static, request: &HeaderMap) -> Response {
    let head = [
        (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8"),
        (header::VARY, "accept-encoding"),
    ];
    if accepts_gzip(request) {
        return (head, [(header::CONTENT_ENCODING, "gzip")], body(packed(pieces))).into_response();
    }
    (head, body(pieces.map(String::into_bytes))).into_response()
}

fn body(pieces: impl Iterator<Item = Vec<u8>> + Send + 'static) -> Body {
    Body::from_stream(stream::iter(pieces.map(Ok::<_, Infallible>)))
}

/// Returns the pieces compressed as one whole.
fn packed(mut pieces: impl Iterator<Item = String>) -> impl Iterator<Item = Vec<u8>> {
    let mut encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
    iter::from_fn(move || {
        // What goes into memory can't fail to be written.
        while let Some(piece) = encoder.as_ref().and_then(|_| pieces.next()) {
            let encoder = encoder.as_mut()?;
            encoder.write_all(piece.as_bytes()).ok()?;
            if !encoder.get_ref().is_empty() {
                return Some(mem::take(encoder.get_mut()));
            }
        }
        encoder.take()?.finish().ok()
    })
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
            let answer = answer(iter::once("a 1\n".repeat(100)), &request);
            let coding = answer.headers().get(header::CONTENT_ENCODING);
            assert_eq!(coding.map(|coding| coding == "gzip"), expected.then_some(true), "{accepted:?}");
            assert_eq!(answer.headers()[header::VARY], "accept-encoding");
        }
    }

    #[test]
    fn packed_pieces_are_one_text_and_none_waits_for_all_others() {
        let line = |number: usize| format!("{number} {:x}\n", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let text = |piece: usize| (piece * 1000..(piece + 1) * 1000).map(line).collect::<String>();
        let made = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = std::sync::Arc::clone(&made);
        let pieces = (0..100).map(text).inspect(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        });
        let mut packed = packed(pieces);
        let mut all = packed.next().unwrap();
        assert!(made.load(std::sync::atomic::Ordering::SeqCst) < 10);
        all.extend(packed.flatten());
        let mut read = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(all.as_slice()), &mut read).unwrap();
        assert_eq!(read, (0..100).map(text).collect::<String>());
        assert_eq!(packed_of_nothing(), "");
    }

    fn packed_of_nothing() -> String {
        let all: Vec<u8> = packed(iter::empty()).flatten().collect();
        let mut read = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(all.as_slice()), &mut read).unwrap();
        read
    }
}
