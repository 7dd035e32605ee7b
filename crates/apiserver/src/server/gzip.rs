//! Compression of large answers.

use std::io::{Read, Write};

use axum::body::Body;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures::StreamExt;
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue, VARY};
use http_body::Body as _;

use crate::response::Endless;
use crate::status::{ApiError, Outcome};

/// Answers below this size are sent as they are.
const SMALLEST: u64 = 128 * 1024;

/// Returns the answer, compressed if it is large and the client can read that.
pub(crate) fn compressed(answer: Response<Body>, accepted: bool) -> Response<Body> {
    let small = answer.body().size_hint().upper().is_some_and(|size| size < SMALLEST);
    if !accepted || small || answer.extensions().get::<Endless>().is_some() {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    head.headers.remove(CONTENT_LENGTH);
    let chunks = body.into_data_stream();
    let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
    let stream = futures::stream::unfold((chunks, encoder), |(mut chunks, encoder)| async move {
        let mut encoder = encoder?;
        loop {
            match chunks.next().await {
                Some(Ok(chunk)) => {
                    // Writing into memory cannot fail.
                    let _ = encoder.write_all(&chunk);
                    if encoder.get_ref().len() > 16 * 1024 {
                        let ready = std::mem::take(encoder.get_mut());
                        return Some((Ok::<_, axum::Error>(Bytes::from(ready)), (chunks, Some(encoder))));
                    }
                }
                Some(Err(error)) => return Some((Err(error), (chunks, None))),
                None => {
                    let rest = encoder.finish().unwrap_or_default();
                    return Some((Ok(Bytes::from(rest)), (chunks, None)));
                }
            }
        }
    });
    Response::from_parts(head, Body::from_stream(stream))
}

/// Returns a compressed body as it was, up to `limit` bytes.
pub(crate) fn decompressed(body: &[u8], limit: usize) -> Outcome<Bytes> {
    let mut plain = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    GzDecoder::new(body)
        .take(most)
        .read_to_end(&mut plain)
        .map_err(|error| ApiError::bad_request(format!("the body could not be decompressed: {error}")))?;
    if plain.len() > limit {
        return Err(ApiError::too_large(limit));
    }
    Ok(plain.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn large_answers_come_back_as_they_were() {
        let text = "0123456789".repeat(40_000);
        let answer = compressed(Response::new(Body::from(text.clone())), true);
        assert_eq!(answer.headers()["content-encoding"], "gzip");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(body.len() < 10_000);
        assert_eq!(decompressed(&body, 1 << 20).unwrap(), text);
        assert_eq!(decompressed(&body, 1_000).unwrap_err().code(), 413);
        let answer = compressed(Response::new(Body::from("small")), true);
        assert!(!answer.headers().contains_key("content-encoding"));
    }
}
