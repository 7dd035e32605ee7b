//! Reviews of the API server: what is asked, and how the answer is written.

use std::sync::Arc;

use objects::patch::json::{PatchError, apply};
use serde_json::{Map, Value, json};

use super::conversion::text;
use crate::hook::response::AdmissionResponse;

/// How many objects one review of a conversion may have.
const MOST_OBJECTS: usize = 100_000;

/// A review of an object.
#[derive(Clone, Debug)]
pub(super) struct AdmissionReview {
    head: Head,
    /// Whether nothing is to be changed by it.
    pub(super) is_dry_run: bool,
    /// What the hook is shown.
    pub(super) shown: Arc<Value>,
}

/// A review of a conversion.
#[derive(Debug)]
pub(super) struct ConversionReview {
    head: Head,
    /// The version that is asked for.
    pub(super) desired: Arc<str>,
    /// The objects as they are now.
    pub(super) objects: Vec<Value>,
}

/// What the answer repeats.
#[derive(Clone, Debug)]
struct Head {
    api_version: String,
    uid: String,
}

/// Reads what both reviews have. `None` if there is no request.
fn head<'r>(review: &'r Value, kind: &str) -> Result<(Head, &'r Map<String, Value>), String> {
    let found = text(review, "/kind");
    if found != kind {
        return Err(format!("an {kind} is expected in `kind`"));
    }
    let request = review.get("request").and_then(Value::as_object);
    let request = request.ok_or_else(|| "Missing parameters: request".to_owned())?;
    let uid = text(review, "/request/uid").to_owned();
    if uid.is_empty() {
        return Err("request.uid is missing".to_owned());
    }
    Ok((Head { api_version: text(review, "/apiVersion").to_owned(), uid }, request))
}

impl AdmissionReview {
    /// Reads a review, or returns what is wrong with it.
    pub(super) fn read(review: &Value) -> Result<Self, String> {
        let (head, request) = head(review, "AdmissionReview")?;
        let mut request = request.clone();
        // Hooks find the fields there, whatever is asked.
        for field in ["object", "oldObject", "options"] {
            request.entry(field).or_insert(Value::Null);
        }
        let is_dry_run = request.get("dryRun") == Some(&Value::Bool(true));
        let shown = json!({"apiVersion": head.api_version, "kind": "AdmissionReview", "request": request});
        Ok(Self { head, is_dry_run, shown: Arc::new(shown) })
    }

    /// Returns why the operations of a patch can't be applied to the object, if so. The API server would say so to whoever
    /// writes the object, and not to us.
    pub(super) fn check(&self, operations: &[Map<String, Value>]) -> Result<(), PatchError> {
        if operations.is_empty() {
            return Ok(());
        }
        let object = self.shown.pointer("/request/object").cloned().unwrap_or_default();
        apply(object, operations).map(drop)
    }

    /// Returns the review with the response of a hook.
    pub(super) fn answer(&self, response: &AdmissionResponse, may_patch: bool) -> Arc<Value> {
        let AdmissionResponse { allowed, message, warnings, patch, operations: _ } = response;
        let mut fields = json!({"uid": self.head.uid, "allowed": allowed});
        if !allowed {
            put(&mut fields, "status", json!({"code": 403, "message": message}));
        }
        if !warnings.is_empty() {
            put(&mut fields, "warnings", json!(warnings));
        }
        if *allowed && may_patch && !patch.is_empty() {
            put(&mut fields, "patchType", json!("JSONPatch"));
            put(&mut fields, "patch", json!(patch));
        }
        self.head.review("AdmissionReview", &fields)
    }

    /// Returns the review with a refusal, because there is no response that could be used.
    pub(super) fn refuse(&self, code: u16, message: &str) -> Arc<Value> {
        let status = json!({"code": code, "message": message});
        let response = json!({"uid": self.head.uid, "allowed": false, "status": status});
        self.head.review("AdmissionReview", &response)
    }
}

impl ConversionReview {
    /// Reads a review, or returns what is wrong with it.
    pub(super) fn read(review: &Value) -> Result<Self, String> {
        let (head, request) = head(review, "ConversionReview")?;
        let desired = text(review, "/request/desiredAPIVersion");
        if desired.is_empty() {
            return Err("request.desiredAPIVersion is missing".to_owned());
        }
        let objects = request.get("objects").and_then(Value::as_array);
        let objects = objects.ok_or_else(|| "request.objects is no list".to_owned())?;
        if objects.len() > MOST_OBJECTS {
            return Err(format!("request.objects has {} objects, more than {MOST_OBJECTS}", objects.len()));
        }
        Ok(Self { head, desired: desired.into(), objects: objects.clone() })
    }

    /// Returns what a hook is shown that converts these objects.
    pub(super) fn shown(&self, objects: &[Value]) -> Arc<Value> {
        let Head { api_version, uid } = &self.head;
        let request = json!({"uid": uid, "desiredAPIVersion": *self.desired, "objects": objects});
        Arc::new(json!({"apiVersion": api_version, "kind": "ConversionReview", "request": request}))
    }

    /// Returns the review with the converted objects.
    pub(super) fn answer(&self) -> Arc<Value> {
        let result = json!({"status": "Success"});
        let response = json!({"uid": self.head.uid, "convertedObjects": self.objects, "result": result});
        self.head.review("ConversionReview", &response)
    }

    /// Returns the review with the reason why the objects are not converted. None is returned then.
    pub(super) fn refuse(&self, message: &str) -> Arc<Value> {
        let result = json!({"status": "Failure", "message": message});
        let response = json!({"uid": self.head.uid, "convertedObjects": [], "result": result});
        self.head.review("ConversionReview", &response)
    }
}

impl Head {
    fn review(&self, kind: &str, response: &Value) -> Arc<Value> {
        Arc::new(json!({"apiVersion": self.api_version, "kind": kind, "response": response}))
    }
}

fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_review_is_told_what_is_missing() {
        let cases = [
            (json!(null), "an AdmissionReview is expected in `kind`"),
            (json!({"kind": "ConversionReview"}), "an AdmissionReview is expected in `kind`"),
            (json!({"kind": "AdmissionReview"}), "Missing parameters: request"),
            (json!({"kind": "AdmissionReview", "request": {}}), "request.uid is missing"),
        ];
        for (review, problem) in cases {
            assert_eq!(AdmissionReview::read(&review).unwrap_err(), problem);
        }
        let review =
            json!({"kind": "ConversionReview", "request": {"uid": "u", "desiredAPIVersion": "g/v1"}});
        assert_eq!(ConversionReview::read(&review).unwrap_err(), "request.objects is no list");
        let objects = |count: usize| {
            let objects = vec![Value::Null; count];
            let request = json!({"uid": "u", "desiredAPIVersion": "g/v1", "objects": objects});
            let review = json!({"kind": "ConversionReview", "request": request});
            ConversionReview::read(&review).map(|read| read.objects.len())
        };
        assert_eq!(objects(MOST_OBJECTS), Ok(MOST_OBJECTS));
        let problem = "request.objects has 100001 objects, more than 100000";
        assert_eq!(objects(MOST_OBJECTS + 1).unwrap_err(), problem);
    }

    #[test]
    fn a_hook_sees_the_request_as_it_was_with_nulls_for_what_is_absent() {
        let request = json!({"uid": "u", "operation": "DELETE", "oldObject": {"a": 1}, "later": true});
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let shown = AdmissionReview::read(&review).unwrap().shown;
        let request = json!({"uid": "u", "operation": "DELETE", "oldObject": {"a": 1}, "later": true,
            "object": null, "options": null});
        assert_eq!(
            *shown,
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        );
    }

    #[test]
    fn a_message_counts_for_a_refusal_and_a_patch_for_a_mutation_only() {
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}});
        let review = AdmissionReview::read(&review).unwrap();
        let response = AdmissionResponse {
            allowed: true,
            message: "m".to_owned(),
            warnings: vec!["w".to_owned()],
            patch: "W10=".to_owned(),
            operations: Vec::new(),
        };
        let answer =
            |response: &AdmissionResponse, may_patch| review.answer(response, may_patch)["response"].clone();
        assert_eq!(answer(&response, false), json!({"uid": "u", "allowed": true, "warnings": ["w"]}));
        let patched = json!({"uid": "u", "allowed": true, "warnings": ["w"], "patchType": "JSONPatch", "patch": "W10="});
        assert_eq!(answer(&response, true), patched);
        let denied = AdmissionResponse { allowed: false, ..response };
        let refused =
            json!({"uid": "u", "allowed": false, "warnings": ["w"], "status": {"code": 403, "message": "m"}});
        assert_eq!(answer(&denied, true), refused);
    }
}
