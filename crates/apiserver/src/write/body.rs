//! Bodies of requests: JSON or YAML into a tree, with the texts that clients know.

use objects::decode::{self, Decoded, Node};
use serde_json::Value;

use crate::kind::Kind;
use crate::protobuf;
use crate::status::{ApiError, Outcome};

/// How the refusal of what is no JSON begins.
const NO_JSON: &str = "error decoding JSON: ";

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const ACCEPTED: [&str; 3] = ["application/json", "application/yaml", PROTOBUF];

pub(crate) fn object(body: &[u8], content_type: &str, kind: &Kind) -> Outcome<Node> {
    let unrecognised = |why: &str| {
        let (kind, summary) = (&kind.kind, summary(body));
        let message =
            format!("the object provided is unrecognized (must be of type {kind}): {why} ({summary})");
        ApiError::bad_request(message)
    };
    let no_header = |why: &str| unrecognised(&format!("couldn't get version/kind; json parse error: {why}"));
    let node = match media_type(content_type) {
        "" | "application/json" | "*/*" => {
            decode::parse(body).map_err(|error| no_header(&error.to_string()))?
        }
        "application/yaml" => crate::yaml::read(body)?,
        PROTOBUF => protobuf::read(body, &kind.api_version(), &kind.kind)
            .map_err(|error| unrecognised(&error.to_string()))?,
        _ => return Err(ApiError::unsupported_media_type(&ACCEPTED)),
    };
    match decode::header_error(&node) {
        Some(why) => Err(no_header(&why)),
        None => Ok(node),
    }
}

/// Reads the options of a deletion. What is no JSON, or no object, is a failure of the server.
pub(crate) fn options(body: &[u8], content_type: &str, kind: (&str, &str)) -> Outcome<Value> {
    let failure =
        |why: &str| ApiError::new(500, "", format!("couldn't get version/kind; json parse error: {why}"));
    let node = node(body, content_type, kind).map_err(|error| {
        let text = error.to_string();
        text.strip_prefix(NO_JSON).map_or_else(|| error.clone(), failure)
    })?;
    match decode::header_error(&node) {
        Some(why) => Err(failure(&why)),
        None => Ok(decode::untyped(node).value),
    }
}

fn node(body: &[u8], content_type: &str, kind: (&str, &str)) -> Outcome<Node> {
    Ok(match media_type(content_type) {
        "" | "application/json" | "*/*" => json(body)?,
        "application/yaml" => crate::yaml::read(body)?,
        PROTOBUF => {
            protobuf::read(body, kind.0, kind.1).map_err(|error| ApiError::bad_request(error.to_string()))?
        }
        _ => return Err(ApiError::unsupported_media_type(&ACCEPTED)),
    })
}

/// Reads the body of a patch; duplicate keys are reported in `strict`.
pub(crate) fn patch(body: &[u8]) -> Outcome<Decoded> {
    decode::parse(body)
        .map(decode::untyped)
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))
}

fn json(body: &[u8]) -> Outcome<Node> {
    decode::parse(body).map_err(|error| ApiError::bad_request(format!("{NO_JSON}{error}")))
}

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Shows the beginning of a body: as it is if it looks like JSON, else in hexadecimal digits.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let shown = body.get(..SHOWN).unwrap_or(body);
    let more = if body.len() > SHOWN { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => {
            let digits = shown.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
            format!("{digits}{more}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_refused() {
        let kind = crate::kind::find("", "v1", "configmaps").unwrap();
        for body in
            ["", "{", "nul", "[1,]", "{}{}", "{\"a\":1e999}", "{\"kind\":3}", "[]", &"[".repeat(100_000)]
        {
            assert_eq!(object(body.as_bytes(), "", kind).unwrap_err().code(), 400, "{body}");
        }
        assert_eq!(object(b"{}", "application/cbor", kind).unwrap_err().code(), 415);
        assert_eq!(object(b"{}", PROTOBUF, kind).unwrap_err().code(), 400);
        let error = object(b"{", "application/json", kind).unwrap_err().to_string();
        assert_eq!(
            error,
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({)"
        );
    }
}
