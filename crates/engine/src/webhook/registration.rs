//! What the API server is told: configurations of webhooks, and conversions of definitions.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::index::{Admission, WebhookIndex, conversion_path};
use super::refused::Refused;
use crate::config::{Config, WebhookClient, WebhookConfig};
use crate::effect::Narrowing;
use crate::hook::AdmissionKind;
use crate::hook::selection::{LabelOperator, LabelRequirement, LabelSelector};
use crate::hook::spec::{AdmissionBinding, AdmissionRule, FailurePolicy, SideEffects};

/// The label that each namespace has, with its name.
const NAME_OF_NAMESPACE: &str = "kubernetes.io/metadata.name";

/// What everything is told with.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) config: Arc<Config>,
    /// The certificates that the API server has to trust: PEM in base64.
    pub(super) ca_bundle: Arc<str>,
    /// Whether requests go on whose webhook does not answer, whatever the binding says.
    pub(super) is_ignoring: bool,
}

impl Terms {
    /// Returns the configuration of all webhooks of a kind but those that were refused; `None` if there are none.
    pub(super) fn configuration(
        &self,
        webhooks: &WebhookConfig,
        index: &WebhookIndex,
        refused: &Refused,
        kind: AdmissionKind,
    ) -> Option<Value> {
        let one = |admission: &Admission| Some(self.webhook(webhooks, admission, admission.binding()?));
        let wanted = index.admissions(kind).filter(|admission| !refused.has(admission));
        let list: Vec<Value> = wanted.filter_map(one).collect();
        (!list.is_empty()).then(|| configuration(webhooks, kind, &list))
    }

    fn webhook(&self, webhooks: &WebhookConfig, admission: &Admission, binding: &AdmissionBinding) -> Value {
        let policy = binding.failure_policy.unwrap_or(match admission.kind {
            AdmissionKind::Mutating => FailurePolicy::Fail,
            AdmissionKind::Validating => webhooks.failure_policy,
        });
        let policy = if self.is_ignoring { FailurePolicy::Ignore } else { policy };
        let mut webhook = json!({
            "name": *admission.name,
            "clientConfig": self.client(&webhooks.client, &admission.path()),
            "rules": binding.rules.iter().map(rule).collect::<Vec<_>>(),
            "failurePolicy": match policy {
                FailurePolicy::Fail => "Fail",
                FailurePolicy::Ignore => "Ignore",
            },
            "matchPolicy": "Equivalent",
            "namespaceSelector": selector(&self.namespaces(binding)),
            "objectSelector": binding.object_selector.as_ref().map_or_else(|| json!({}), selector),
            "sideEffects": match binding.side_effects {
                SideEffects::None => "None",
                SideEffects::NoneOnDryRun => "NoneOnDryRun",
            },
            "timeoutSeconds": binding.timeout_seconds,
            "admissionReviewVersions": ["v1", "v1beta1"],
        });
        if let Some(fields) = webhook.as_object_mut() {
            if admission.kind == AdmissionKind::Mutating {
                let again = if binding.reinvoked { "IfNeeded" } else { "Never" };
                fields.insert("reinvocationPolicy".to_owned(), json!(again));
            }
            if !binding.match_conditions.is_empty() {
                let condition =
                    |(name, expression): &(String, String)| json!({"name": name, "expression": expression});
                let conditions = binding.match_conditions.iter().map(condition).collect::<Vec<_>>();
                fields.insert("matchConditions".to_owned(), Value::Array(conditions));
            }
        }
        webhook
    }

    /// Returns the namespaces that a webhook is asked about. A webhook that does not answer must not keep the system or the
    /// operator itself from being repaired.
    fn namespaces(&self, binding: &AdmissionBinding) -> LabelSelector {
        let mut selector = binding.namespace_selector.clone().unwrap_or_default();
        if !binding.include_system_namespaces {
            let values = ["kube-system".to_owned(), self.config.namespace.clone()].into();
            let key = NAME_OF_NAMESPACE.to_owned();
            selector.match_expressions.push(LabelRequirement { key, operator: LabelOperator::NotIn, values });
        }
        selector
    }

    /// Returns the `spec.conversion` of a definition.
    pub(super) fn conversion(&self, webhooks: &WebhookConfig, crd: &str) -> Value {
        let client = self.client(&webhooks.client, &conversion_path(crd));
        json!({
            "strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1", "v1beta1"]},
        })
    }

    fn client(&self, client: &WebhookClient, path: &str) -> Value {
        match client {
            WebhookClient::Service(name) => json!({
                "service": {"namespace": self.config.namespace, "name": name, "path": path, "port": 443},
                "caBundle": *self.ca_bundle,
            }),
            WebhookClient::Url(url) => {
                json!({"url": format!("{}{path}", url.trim_end_matches('/')), "caBundle": *self.ca_bundle})
            }
        }
    }
}

/// Returns a configuration with these webhooks.
fn configuration(webhooks: &WebhookConfig, kind: AdmissionKind, list: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {
            "name": webhooks.name,
            "labels": {"app.kubernetes.io/managed-by": "addon-operator"},
        },
        "webhooks": list,
    })
}

/// Returns how a configuration is made harmless. Of its webhooks those of `index` stay, or all.
pub(super) fn narrowing(
    webhooks: &WebhookConfig,
    kind: AdmissionKind,
    index: Option<&WebhookIndex>,
) -> Narrowing {
    let names = |index: &WebhookIndex| index.admissions(kind).map(|one| one.name.to_string()).collect();
    Narrowing { head: configuration(webhooks, kind, &[]), stay: index.map(names) }
}

/// Returns whether all webhooks of a configuration let requests go on if they do not answer.
pub(super) fn is_harmless(configuration: Option<&Value>) -> bool {
    let webhooks = configuration.and_then(|object| object.get("webhooks")?.as_array());
    let policy = |webhook: &Value| webhook.get("failurePolicy").and_then(Value::as_str) == Some("Ignore");
    webhooks.into_iter().flatten().all(policy)
}

fn rule(rule: &AdmissionRule) -> Value {
    json!({
        "apiGroups": rule.api_groups,
        "apiVersions": rule.api_versions,
        "operations": rule.operations,
        "resources": rule.resources,
        "scope": rule.scope.as_deref().unwrap_or("*"),
    })
}

fn selector(selector: &LabelSelector) -> Value {
    let mut fields = Map::new();
    if !selector.match_labels.is_empty() {
        fields.insert("matchLabels".to_owned(), json!(selector.match_labels));
    }
    if !selector.match_expressions.is_empty() {
        let expression = |requirement: &LabelRequirement| {
            let LabelRequirement { key, operator, values } = requirement;
            let operator: &'static str = operator.into();
            let mut fields = json!({"key": key, "operator": operator});
            if !values.is_empty()
                && let Some(fields) = fields.as_object_mut()
            {
                fields.insert("values".to_owned(), json!(values));
            }
            fields
        };
        let list = selector.match_expressions.iter().map(expression).collect();
        fields.insert("matchExpressions".to_owned(), Value::Array(list));
    }
    Value::Object(fields)
}

/// Returns whether `actual` says all that `wanted` says. The API server adds defaults.
pub(super) fn says(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            actual.get(name).map_or_else(|| is_empty(wanted), |actual| says(actual, wanted))
        }),
        (Value::Array(actual), Value::Array(wanted)) => {
            actual.len() == wanted.len()
                && actual.iter().zip(wanted).all(|(actual, wanted)| says(actual, wanted))
        }
        _ => actual == wanted,
    }
}

/// Returns whether a value is an empty list or mapping, which the API server need not keep.
fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}
