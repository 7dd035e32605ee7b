//! Errors as clients see them: `Status` objects with a reason, a code and a text.

use serde::Serialize;
use serde_json::Value;

use crate::kind::Kind;

/// Why a request was refused.
#[derive(Clone, Debug)]
pub struct ApiError(Box<Status>);

/// The answer to a request, or its refusal.
pub(crate) type Outcome<T> = Result<T, ApiError>;

/// The `Status` object of a refusal.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Status {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: ListMeta,
    #[serde(rename = "status")]
    outcome: &'static str,
    message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    code: u16,
}

#[derive(Clone, Debug, Default, Serialize)]
struct ListMeta {
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    next: String,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_seconds: Option<u32>,
}

/// One of several reasons of one refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// A machine-readable reason, for example `FieldValueRequired`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The text for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field, for example `spec.containers[0].name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ApiError {}

impl ApiError {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        ApiError(Box::new(Status {
            kind: "Status",
            api_version: "v1",
            metadata: ListMeta::default(),
            outcome: "Failure",
            message: message.into(),
            reason,
            details: None,
            code,
        }))
    }

    pub(crate) fn with_details(mut self, details: Details) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Says another code and reason.
    pub(crate) fn with_reason(mut self, code: u16, reason: &'static str) -> Self {
        self.0.code = code;
        self.0.reason = reason;
        self
    }

    /// Adds the token with which a list can be continued nevertheless.
    pub(crate) fn with_continue(mut self, token: String) -> Self {
        self.0.metadata.next = token;
        self
    }

    pub(crate) fn with_causes(mut self, causes: Vec<Cause>) -> Self {
        self.0.details.get_or_insert_default().causes = causes;
        self
    }

    pub(crate) fn with_retry_after(mut self, seconds: u32) -> Self {
        self.0.details.get_or_insert_default().retry_after_seconds = Some(seconds);
        self
    }

    /// Returns the HTTP status.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// Returns the machine-readable reason, for example `NotFound`.
    pub fn reason(&self) -> &str {
        self.0.reason
    }

    /// Returns how many seconds a client should wait before it tries again.
    pub fn retry_after(&self) -> Option<u32> {
        self.0.details.as_ref()?.retry_after_seconds
    }

    /// Returns the `Status` object.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(&*self.0).unwrap_or(Value::Null)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&*self.0).unwrap_or_default()
    }
}

/// The refusals that are about one object of a kind.
impl ApiError {
    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified_resource());
        ApiError::new(404, "NotFound", message).about(kind, name)
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.qualified_resource());
        ApiError::new(409, "AlreadyExists", message).about(kind, name)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let resource = kind.qualified_resource();
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        ApiError::new(409, "Conflict", message).about(kind, name)
    }

    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        ApiError::conflict(kind, name, why)
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", kind.qualified_resource())
        } else {
            format!("{} \"{name}\" is forbidden: {why}", kind.qualified_resource())
        };
        ApiError::new(403, "Forbidden", message).about(kind, name)
    }

    /// A refusal by validation. `causes` is not empty.
    pub(crate) fn invalid(kind: &Kind, name: &str, causes: Vec<Cause>) -> Self {
        let mut texts = Vec::with_capacity(causes.len());
        for cause in &causes {
            let text = if cause.field.is_empty() {
                cause.message.clone()
            } else {
                format!("{}: {}", cause.field, cause.message)
            };
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let listed = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {listed}", kind.qualified_kind());
        ApiError::new(422, "Invalid", message).with_details(Details {
            name: name.to_owned(),
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            causes,
            retry_after_seconds: None,
        })
    }

    fn about(self, kind: &Kind, name: &str) -> Self {
        self.with_details(Details {
            name: name.to_owned(),
            group: kind.group.to_string(),
            kind: kind.plural.to_string(),
            ..Details::default()
        })
    }
}

/// The refusals that are about the request.
impl ApiError {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        ApiError::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        ApiError::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn unknown_resource() -> Self {
        ApiError::new(404, "NotFound", "the server could not find the requested resource")
            .with_details(Details::default())
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        ApiError::new(405, "MethodNotAllowed", message).with_details(Details::default())
    }

    /// The refusal of a resource, here of one that anybody may define, to do what is asked for.
    pub(crate) fn not_supported(kind: &Kind, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", kind.qualified_resource());
        ApiError::new(405, "MethodNotAllowed", message).about(kind, "")
    }

    /// None of the media types that a client takes is one of those that there are.
    pub(crate) fn not_acceptable(available: &[&str]) -> Self {
        let available = available.join(", ");
        let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
        ApiError::new(406, "NotAcceptable", message).with_details(Details::default())
    }

    /// The media types that a client takes are known, and not in the way that it asks for.
    pub(crate) fn accepts_only(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        let message = format!("only the following media types are accepted: {accepted}");
        ApiError::new(406, "NotAcceptable", message)
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        ApiError::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        ApiError::new(413, "RequestEntityTooLarge", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        ApiError::new(410, "Expired", message)
    }

    pub(crate) fn too_many_requests(seconds: u32) -> Self {
        let message = "The apiserver is too busy to handle the request; please try again later";
        ApiError::new(429, "TooManyRequests", message).with_retry_after(seconds)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        ApiError::new(500, "InternalError", format!("Internal error occurred: {}", message.into()))
    }

    /// The asked revision lies in the future.
    pub(crate) fn revision_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        ApiError::new(504, "Timeout", message).with_causes(vec![cause]).with_retry_after(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_object_is_told_with_its_resource_and_group() {
        let kind = crate::kind::find("apps", "v1", "deployments").unwrap();
        let status = ApiError::not_found(kind, "web").to_value();
        insta::assert_snapshot!(status, @r#"{"apiVersion":"v1","code":404,"details":{"group":"apps","kind":"deployments","name":"web"},"kind":"Status","message":"deployments.apps \"web\" not found","metadata":{},"reason":"NotFound","status":"Failure"}"#);
    }

    #[test]
    fn several_causes_are_listed_in_brackets() {
        let kind = crate::kind::find("", "v1", "pods").unwrap();
        let cause =
            |field: &str| Cause { message: "Required value".into(), field: field.into(), ..Cause::default() };
        let error = ApiError::invalid(kind, "a", vec![cause("spec.x"), cause("spec.y")]);
        assert_eq!(
            error.to_string(),
            "Pod \"a\" is invalid: [spec.x: Required value, spec.y: Required value]"
        );
    }
}
