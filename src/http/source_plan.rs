//! What the socket answers about configurations of module sources that were not applied yet. See docs/source-updates.md#plan.

use std::collections::BTreeMap;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use engine::view::source_plan::{self, Diffs};
use engine::{Approval, Approvals, Failure, PlannedChange, SourceKey, SourcePlan, SourceSpec};
use serde_json::Value;

use super::debug_state::DebugState;
use super::response::{self, ended, formatted, is_true, text_or_failure};
use super::secret_values::SecretValues;
use super::source_plans::SourcePlans;

/// How many bytes a configuration may have, as etcd has it.
const MAX_BYTES: usize = 1_500_000;

/// How many diffs a plan has: each is rendered while somebody waits.
const MAX_DIFFS: usize = 100;

/// What a file asks for.
struct Asked {
    source: SourceKey,
    spec: SourceSpec,
    approved: Option<String>,
}

impl Asked {
    fn read(body: &[u8], sources: &dyn SourcePlans) -> Result<Self, String> {
        let expected = "a ClusterAddonsConfiguration or an AddonsConfiguration";
        if body.len() > MAX_BYTES {
            return Err(format!("it has {} bytes, an object may have {MAX_BYTES}", body.len()));
        }
        let body = std::str::from_utf8(body).map_err(|error| format!("it is no text: {error}"))?;
        let documents = values::yaml::parse_all(body).map_err(|error| error.to_string())?;
        let documents: Vec<Value> = documents.into_iter().filter(|document| !document.is_null()).collect();
        let object = match <[Value; 1]>::try_from(documents) {
            Ok([object]) => object,
            Err(documents) => {
                let count = documents.len();
                return Err(format!("it has {count} objects: a plan is of one, {expected}"));
            }
        };
        let at = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let version = at("/apiVersion");
        if version != SourceKey::API_VERSION {
            let wanted = SourceKey::API_VERSION;
            return Err(format!("apiVersion is {version:?}, {expected} has {wanted:?}"));
        }
        let kind =
            at("/kind").parse().map_err(|_| format!("kind is {:?}, expected {expected}", at("/kind")))?;
        let is_namespaced = kind == engine::SourceKind::Namespaced;
        let (name, namespace) = (at("/metadata/name"), at("/metadata/namespace"));
        if name.is_empty() {
            return Err("metadata.name is empty: write the name of the object".to_owned());
        }
        if is_namespaced && namespace.is_empty() {
            return Err(
                "metadata.namespace is empty: write the namespace of the AddonsConfiguration".to_owned()
            );
        }
        let namespace = if is_namespaced { namespace } else { "" };
        let source = SourceKey { kind, namespace: namespace.into(), name: name.into() };
        let unknown = sources.unknown_fields(kind, &object);
        if !unknown.is_empty() {
            return Err(format!("the API server does not know these fields: {}", unknown.join(", ")));
        }
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let spec = SourceSpec::read(kind, namespace, spec).map_err(|error| error.to_string())?;
        let approved = object.pointer("/metadata/annotations").and_then(|all| all.get(SourceKey::APPROVED));
        Ok(Self { source, spec, approved: approved.and_then(Value::as_str).map(str::to_owned) })
    }
}

pub(super) async fn text(
    State(debug): State<DebugState>,
    Query(query): Query<BTreeMap<String, String>>,
    body: axum::body::Bytes,
) -> Response {
    answer(&debug, &query, &body, "text").await
}

pub(super) async fn json(
    State(debug): State<DebugState>,
    Query(query): Query<BTreeMap<String, String>>,
    body: axum::body::Bytes,
) -> Response {
    answer(&debug, &query, &body, "json").await
}

async fn answer(debug: &DebugState, query: &BTreeMap<String, String>, body: &[u8], format: &str) -> Response {
    let asked = match Asked::read(body, &*debug.sources) {
        Ok(asked) => asked,
        Err(problem) => return (StatusCode::BAD_REQUEST, format!("{problem}\n")).into_response(),
    };
    let Asked { source, spec, approved } = asked;
    // A standby would fetch everything, and compare it with nothing.
    match debug.questions.view().await.map(|view| view.refusal()) {
        None => return ended(),
        Some(Some(refusal)) => return text_or_failure(Err(refusal)),
        Some(None) => {}
    }
    // What was fetched stays until the answer is made.
    let approvals = match spec.approval {
        Approval::Manual => Approvals::parse(approved.as_deref().unwrap_or_default(), &source.namespace),
        Approval::Auto => Approvals::default(),
    };
    let (fetched, _kept) = match debug.sources.fetch(source.clone(), spec.clone(), approvals).await {
        Ok(fetched) => fetched,
        Err(failure) => return text_or_failure(Err(failure)),
    };
    let Some(plan) = debug.questions.source_plan((source, approved), spec, fetched).await else {
        return ended();
    };
    let Some(view) = debug.questions.view().await else { return ended() };
    let secret = SecretValues::of(view.secrets.clone(), debug.may_show(query));
    let Some(diffs) = diffs(debug, &plan, &secret).await else { return ended() };
    if format == "json" {
        let mut data = secret.telling(|telling| source_plan::data(&plan, &diffs, telling));
        // One request has both: a second one would fetch again.
        if let Some(fields) = data.as_object_mut().filter(|_| is_true(query.get("text"))) {
            let text = secret.telling(|telling| source_plan::text(&plan, &diffs, telling));
            fields.insert("text".to_owned(), text.into());
        }
        return formatted("json", &data);
    }
    response::text(secret.telling(|telling| source_plan::text(&plan, &diffs, telling)))
}

/// Returns how the cluster differs from what modules that change would render to; `None` when the operator has ended.
async fn diffs(debug: &DebugState, plan: &SourcePlan, secret: &SecretValues) -> Option<Diffs> {
    let mut diffs = Diffs::new();
    // Of what comes, all is shown also while it is off: somebody is about to switch it on.
    let is_rendered = |change: PlannedChange, is_on: bool| match change {
        PlannedChange::Come => true,
        PlannedChange::Change => is_on,
        PlannedChange::Go | PlannedChange::Stay => false,
    };
    let modules = plan.modules.iter().filter(|module| is_rendered(module.change, module.is_on));
    for planned in modules.take(MAX_DIFFS) {
        let Some(bundle) = planned.to.clone() else { continue };
        let outcome = match debug.sources.module(bundle).await {
            Err(failure) => Err(failure),
            Ok(module) => match debug.questions.planned_input(plan.source.clone(), module).await? {
                Err(failure) => Err(failure),
                Ok((module, values)) => debug.releases.diff(module, values, secret.are_shown()).await,
            },
        };
        let outcome = outcome.map(|diff| secret.hide(&diff));
        let told = |failure: Failure| secret.hide_failure(&failure).to_string();
        diffs.insert(planned.name.clone(), outcome.map_err(told));
    }
    Some(diffs)
}
