//! Bodies of requests: JSON or YAML into a tree, with the texts that clients know.

use objects::decode::{self, Decoded, Node};
use objects::types::{self, Shape};
use serde_json::Value;

use crate::kind::Kind;
use crate::protobuf;
use crate::request::OBJECTS;
use crate::request::options::{FieldValidation, WriteOptions};
use crate::status::{ApiError, Outcome};
use crate::strategy::PatchKind;

/// How the refusal of what is no JSON begins.
const NO_JSON: &str = "error decoding JSON: ";

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

pub(crate) fn object(body: &[u8], content_type: &str, kind: &Kind) -> Outcome<Node> {
    let unrecognised = |why: &str| {
        let (kind, summary) = (&kind.kind, summary(body));
        let message =
            format!("the object provided is unrecognized (must be of type {kind}): {why} ({summary})");
        ApiError::bad_request(message)
    };
    let no_header = |why: &str| unrecognised(&format!("couldn't get version/kind; json parse error: {why}"));
    let node = match form(content_type)? {
        Form::Json => decode::parse(body).map_err(|error| no_header(&error.to_string()))?,
        Form::Yaml => crate::yaml::read(body)?,
        Form::Protobuf => protobuf::read(body, &kind.api_version(), &kind.kind)
            .map_err(|error| unrecognised(&error.to_string()))?,
    };
    if let Some(why) = decode::header_error(&node) {
        return Err(no_header(&why));
    }
    match check_version(&node) {
        Some(why) => Err(unrecognised(&why)),
        None => Ok(node),
    }
}

/// Returns what is wrong with a version that can be none of any kind.
fn check_version(node: &Node) -> Option<String> {
    let version = node.get("apiVersion").and_then(Node::as_str)?;
    (version.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {version}"))
}

/// The full name of the type of the options of a deletion.
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Reads the options of a deletion by their type. Whatever is wrong with them is a failure of the server.
pub(crate) fn delete_options(body: &[u8], content_type: &str) -> Outcome<Value> {
    let node = options(body, content_type, ("v1", "DeleteOptions"))?;
    let failure = |why: String| ApiError::new(500, "", why);
    let text = |name: &str| node.get(name).and_then(Node::as_str).filter(|text| !text.is_empty());
    if let Some(why) = check_version(&node) {
        return Err(failure(why));
    }
    if let Some(kind) = text("kind").filter(|kind| *kind != "DeleteOptions") {
        let version = text("apiVersion").unwrap_or("meta.k8s.io/v1");
        return Err(failure(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:110\""
        )));
    }
    let shape = types::name_of(DELETE_OPTIONS).map_or(Shape::Any, Shape::Named);
    let decoded = decode::typed(node, &shape).map_err(|error| failure(error.to_string()))?;
    Ok(decoded.value)
}

fn options(body: &[u8], content_type: &str, kind: (&str, &str)) -> Outcome<Node> {
    let failure =
        |why: &str| ApiError::new(500, "", format!("couldn't get version/kind; json parse error: {why}"));
    let node = node(body, content_type, kind).map_err(|error| {
        let text = error.to_string();
        text.strip_prefix(NO_JSON).map_or_else(|| error.clone(), failure)
    })?;
    match decode::header_error(&node) {
        Some(why) => Err(failure(&why)),
        None => Ok(node),
    }
}

fn node(body: &[u8], content_type: &str, kind: (&str, &str)) -> Outcome<Node> {
    Ok(match form(content_type)? {
        Form::Json => json(body)?,
        Form::Yaml => crate::yaml::read(body)?,
        Form::Protobuf => {
            protobuf::read(body, kind.0, kind.1).map_err(|error| ApiError::bad_request(error.to_string()))?
        }
    })
}

/// Reads the body of a patch; duplicate keys are reported in `strict`.
pub(crate) fn patch(body: &[u8], kind: PatchKind) -> Outcome<Decoded> {
    // Who reads strategic patches says no more than what is wrong.
    let what = if kind == PatchKind::Strategic { "" } else { "error decoding patch: " };
    let node = decode::parse(body).map_err(|error| ApiError::bad_request(format!("{what}{error}")))?;
    let mut decoded = decode::untyped(node);
    if kind == PatchKind::Json {
        decoded.strict.extend(unknown_in_operations(&decoded.value));
        for text in &mut decoded.strict {
            text.insert_str(0, "json patch ");
        }
    }
    Ok(decoded)
}

/// Returns what operations have that no operation has.
fn unknown_in_operations(operations: &Value) -> Vec<String> {
    let is_known = |field: &str| matches!(field, "op" | "path" | "from" | "value");
    let operations = operations.as_array().into_iter().flatten().enumerate();
    let fields = operations.flat_map(|(index, operation)| {
        operation.as_object().into_iter().flat_map(|fields| fields.keys()).map(move |field| (index, field))
    });
    let unknown = fields.filter(|(_, field)| !is_known(field));
    unknown.map(|(index, field)| format!("unknown field \"[{index}].{field}\"")).collect()
}

fn json(body: &[u8]) -> Outcome<Node> {
    decode::parse(body).map_err(|error| ApiError::bad_request(format!("{NO_JSON}{error}")))
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Yaml,
    Protobuf,
}

/// Returns how a body is written that has this `Content-Type`. Without one it is JSON.
pub(crate) fn form(content_type: &str) -> Outcome<Form> {
    let mut parts = content_type.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_right = |part: &str| part.is_empty() || part.find('=').is_some_and(|at| at > 0);
    match &*name {
        "" if content_type.is_empty() => Ok(Form::Json),
        "application/json" if parts.all(is_right) => Ok(Form::Json),
        "application/yaml" if parts.all(is_right) => Ok(Form::Yaml),
        PROTOBUF if parts.all(is_right) => Ok(Form::Protobuf),
        _ => Err(ApiError::unsupported_media_type(&OBJECTS)),
    }
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

/// Refuses a body that says that it is of another kind or version.
pub(crate) fn check_kind(kind: &Kind, given: &str, version: &str) -> Outcome<()> {
    let own = kind.api_version();
    let given = if given.is_empty() { &*kind.kind } else { given };
    let version = if version.is_empty() { &*own } else { version };
    if given == &*kind.kind && version == own {
        return Ok(());
    }
    let (group, number) = version.split_once('/').unwrap_or(("", version));
    let why = if crate::kind::find_kind(group, number, given).is_some() {
        let package =
            if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() };
        format!("converting ({number}.{given}) to ({package}.{}): unknown conversion", kind.kind)
    } else {
        format!(
            "no kind {given:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:110\""
        )
    };
    let message = format!("{given} in version {number:?} cannot be handled as a {}: {why}", kind.kind);
    Err(ApiError::bad_request(message))
}

/// Warns of fields that are dropped from a body of this kind, or refuses them.
pub(crate) fn report_dropped(
    kind: &Kind,
    options: &WriteOptions,
    found: Vec<String>,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    if found.is_empty() {
        return Ok(());
    }
    match options.validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => {
            for text in found {
                if !warnings.contains(&text) {
                    warnings.push(text);
                }
            }
        }
        FieldValidation::Strict => {
            let message = format!(
                "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                kind.kind,
                kind.version,
                kind.kind,
                found.join(", ")
            );
            return Err(ApiError::bad_request(message));
        }
    }
    Ok(())
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
        for other in ["application/cbor", "*/*", "json", ";", "application/json;charset"] {
            assert_eq!(object(b"{}", other, kind).unwrap_err().code(), 415, "{other}");
        }
        for json in ["", "APPLICATION/JSON", "application/json; charset=utf-8", "application/json;"] {
            assert!(object(b"{}", json, kind).is_ok(), "{json}");
        }
        assert_eq!(object(b"{}", PROTOBUF, kind).unwrap_err().code(), 400);
        let error = object(b"{", "application/json", kind).unwrap_err().to_string();
        assert_eq!(
            error,
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({)"
        );
    }
}
