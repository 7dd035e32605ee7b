//! What an API server says of data that an operation took from an object, without anything that it quotes of them.
//!
//! A jq filter can put the value of a Secret anywhere: into a name, a kind, or the key of a label. The API server quotes
//! these where it refuses them, and no mask knows them. So its own words are left out, and what is shown is from lists
//! that are known: codes, reasons, names of fields, and what the hook wrote itself.

use std::fmt::Write as _;

use kube::core::Status;
use kube::core::response::StatusDetails;

use crate::cluster::is_made_here;

/// How many fields are named.
const NAMED: usize = 10;

/// How many steps of a path to a field are shown.
const STEPS: usize = 32;

/// How many digits the number of an item of a list has at most. A longer one may be a key.
const LONGEST_NUMBER: usize = 3;

/// What stands where something was.
const LEFT_OUT: &str = "…";

/// Fields that all objects have, or many.
const FIELDS: [&str; 23] = [
    "annotations",
    "apiVersion",
    "binaryData",
    "creationTimestamp",
    "data",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "immutable",
    "kind",
    "labels",
    "managedFields",
    "metadata",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "spec",
    "status",
    "stringData",
    "uid",
];

/// Reasons of refusals that Kubernetes knows. A webhook can write any other.
const REASONS: [&str; 18] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// What can be wrong with a field, as far as Kubernetes knows it.
const CAUSES: [&str; 10] = [
    "FieldManagerConflict",
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueNotFound",
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

/// Returns what a refusal tells: code, reason, and the fields with what is wrong with each. `written` is what the hook wrote:
/// a step of a path that stands in it tells nothing of the object.
pub(super) fn told(status: &Status, written: &str) -> String {
    if is_made_here(status) {
        return status.message.clone();
    }
    let mut text = match known(&REASONS, &status.reason) {
        Some(reason) => format!("{reason} (code {})", status.code),
        None => format!("code {}", status.code),
    };
    let fields = fields(status.details.as_ref(), written);
    if !fields.is_empty() {
        let _ = write!(text, " at {}", fields.join(", "));
    }
    text + "; what it says of it is left out, as it may quote the object"
}

fn fields(details: Option<&StatusDetails>, written: &str) -> Vec<String> {
    let causes = details.map_or(&[] as &[_], |details| &details.causes);
    let mut fields: Vec<String> = Vec::new();
    for cause in causes.iter().filter(|cause| !cause.field.is_empty()).take(NAMED) {
        let path = path(&cause.field, written);
        let field = match known(&CAUSES, &cause.reason) {
            Some(reason) => format!("{path} ({reason})"),
            None => path,
        };
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    if causes.len() > NAMED {
        fields.push(format!("{} more", causes.len() - NAMED));
    }
    fields
}

fn known(all: &[&'static str], text: &str) -> Option<&'static str> {
    all.iter().copied().find(|known| *known == text)
}

/// Returns the path of a field, in which only those steps stand that are known or written. Others may be keys of data.
fn path(field: &str, written: &str) -> String {
    let mut path = String::new();
    let is_end = |char: char| matches!(char, '.' | '[' | ']');
    for (count, part) in field.split_inclusive(is_end).enumerate() {
        if count >= STEPS {
            path.push_str(LEFT_OUT);
            break;
        }
        let step = part.strip_suffix(is_end).unwrap_or(part);
        let is_number = step.len() <= LONGEST_NUMBER && step.bytes().all(|byte| byte.is_ascii_digit());
        let is_shown = is_number || FIELDS.contains(&step) || written.contains(step);
        path.push_str(if is_shown { step } else { LEFT_OUT });
        path.push_str(part.get(step.len()..).unwrap_or_default());
    }
    path
}

#[cfg(test)]
mod tests {
    use kube::core::response::StatusCause;

    use super::*;

    fn refused(code: u16, reason: &str, causes: &[(&str, &str)]) -> Status {
        let causes = causes.iter().map(|(reason, field)| StatusCause {
            reason: (*reason).to_owned(),
            message: format!("Invalid value: \"hunter22\": {field}"),
            field: (*field).to_owned(),
        });
        let details = StatusDetails {
            name: "hunter22".to_owned(),
            causes: causes.collect(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            retry_after_seconds: 0,
        };
        let message = "Secret \"hunter22\" is invalid".to_owned();
        Status { code, message, reason: reason.to_owned(), details: Some(details), ..Status::default() }
    }

    #[test]
    fn slip_03_a_refusal_is_told_by_code_reason_and_fields_and_quotes_nothing() {
        let left_out = "; what it says of it is left out, as it may quote the object";
        for (status, expected) in [
            (
                refused(422, "Invalid", &[("FieldValueInvalid", "metadata.name")]),
                "Invalid (code 422) at metadata.name (FieldValueInvalid)",
            ),
            (
                refused(
                    422,
                    "Invalid",
                    &[("FieldValueInvalid", "data[hunter22.hunter23]"), ("hunter22", "data[1234]")],
                ),
                "Invalid (code 422) at data[….…] (FieldValueInvalid), data[…]",
            ),
            (
                refused(422, "Invalid", &[("FieldValueRequired", "spec.containers[0].hunter22")]),
                "Invalid (code 422) at spec.containers[0].… (FieldValueRequired)",
            ),
            (refused(400, "BadRequest", &[("FieldValueInvalid", "")]), "BadRequest (code 400)"),
            (refused(403, "hunter22", &[]), "code 403"),
        ] {
            assert_eq!(told(&status, ".spec.containers[0].image = .data.x"), expected.to_owned() + left_out);
        }
    }

    #[test]
    fn a_refusal_with_many_causes_names_few_of_them() {
        let fields: Vec<String> = (0..40).map(|n| format!("spec[{n}]")).collect();
        let causes: Vec<(&str, &str)> =
            fields.iter().map(|field| ("FieldValueInvalid", field.as_str())).collect();
        let text = told(&refused(422, "Invalid", &causes), "");
        assert!(
            text.contains("spec[9] (FieldValueInvalid), 30 more;") && !text.contains("spec[10]"),
            "{text}"
        );
        let deep = format!("spec{}", ".spec".repeat(1_000));
        assert!(told(&refused(422, "Invalid", &[("", &deep)]), "").len() < 400);
    }
}
