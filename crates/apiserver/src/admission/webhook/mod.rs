//! Admission by webhooks: who is asked about a write, and what comes of the answers.
//!
//! ```text
//! write ─▶ matching (rules, selectors) ─▶ review ─▶ call (HTTPS) ─▶ patch, warnings or refusal
//! ```
//!
//! A request that webhooks may be asked about runs on a thread of its own, where waiting for them holds up nobody.

mod asked;
pub(crate) mod matching;
pub(crate) mod review;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use objects::patch::json;
use serde_json::Value;

pub(crate) use self::asked::{Asked, Named, Operation};
use self::matching::{Webhook, matching};
use self::review::{Verdict, request, verdict};
use crate::admission::configured::{MUTATING, VALIDATING, items};
use crate::fields::{get, int, text};
use crate::registry::Resource;
use crate::status::{ApiError, Outcome};
use crate::strategy::{self, conversion};
use crate::webhooks::conversion::convert;
use crate::webhooks::{call, wait};

/// How long a webhook has that does not say so itself.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the object as mutating webhooks change it; `None` if none of them changed it.
pub(crate) fn mutate(asked: Asked<'_>, object: &Value, warnings: &mut Vec<String>) -> Outcome<Option<Value>> {
    let asked = Asked { object: (asked.operation != Operation::Delete).then_some(object), ..asked };
    let mut now = object.clone();
    let mut called: Vec<(Webhook, Value)> = Vec::new();
    let webhooks = configured(asked, MUTATING);
    for webhook in &webhooks {
        if let Some(changed) = mutate_by(asked, webhook, &now, warnings)? {
            now = changed;
        }
        called.push((webhook.clone(), now.clone()));
    }
    // Those that want to see what later ones changed are asked once more.
    for (webhook, seen) in called {
        if text(&webhook.spec, "reinvocationPolicy") == "IfNeeded"
            && seen != now
            && let Some(changed) = mutate_by(asked, &webhook, &now, warnings)?
        {
            now = changed;
        }
    }
    Ok((now != *object).then_some(now))
}

fn mutate_by(
    asked: Asked<'_>,
    webhook: &Webhook,
    object: &Value,
    warnings: &mut Vec<String>,
) -> Outcome<Option<Value>> {
    let is_deletion = asked.operation == Operation::Delete;
    let Some(version) = matching(asked, webhook, (!is_deletion).then_some(object))? else { return Ok(None) };
    let question = Question::new(asked, &version, (!is_deletion).then_some(object))?;
    let answer = wait(ask(asked, webhook, &question));
    let Some(verdict) = judged(webhook, answer, warnings)? else { return Ok(None) };
    let Some(patch) = verdict.patch.filter(|_| !is_deletion) else { return Ok(None) };
    let failed = strategy::internal;
    let bytes = STANDARD.decode(patch).map_err(|error| failed(error.to_string()))?;
    let operations = json::parse(&bytes).map_err(|error| failed(error.to_string()))?;
    let before = question.object.map_or(Value::Null, Cow::into_owned);
    let changed = json::apply(before, &operations).map_err(|error| failed(error.to_string()))?;
    if !is_converted(asked, &question.version, &changed) {
        return Ok(Some(changed));
    }
    in_version(asked, &asked.request.resource, changed).map(Some)
}

/// Refuses a write that a validating webhook does not allow. All of them are asked at the same time.
pub(crate) fn validate(asked: Asked<'_>, object: Option<&Value>, warnings: &mut Vec<String>) -> Outcome<()> {
    let asked = Asked { object, ..asked };
    let mut webhooks = Vec::new();
    for webhook in configured(asked, VALIDATING) {
        if let Some(version) = matching(asked, &webhook, object)? {
            webhooks.push((Question::new(asked, &version, object)?, webhook));
        }
    }
    if webhooks.is_empty() {
        return Ok(());
    }
    let answers = wait(join_all(webhooks.iter().map(|(question, webhook)| ask(asked, webhook, question))));
    for ((_, webhook), answer) in webhooks.iter().zip(answers) {
        judged(webhook, answer, warnings)?;
    }
    Ok(())
}

/// Returns the webhooks of a kind in the order in which they are asked: by configuration, then as they are written.
fn configured(asked: Asked<'_>, table: &str) -> Vec<Webhook> {
    items(asked, table).iter().flat_map(Webhook::all_of).collect()
}

/// What a webhook is shown: the object before and after the write, in the version that it asks for.
struct Question<'a> {
    version: Arc<Resource>,
    old: Option<Cow<'a, Value>>,
    object: Option<Cow<'a, Value>>,
}

impl<'a> Question<'a> {
    fn new(asked: Asked<'a>, version: &Arc<Resource>, object: Option<&'a Value>) -> Outcome<Self> {
        let shown = |object: Option<&'a Value>| match object {
            Some(object) if is_converted(asked, version, object) => {
                in_version(asked, version, object.clone()).map(|object| Some(Cow::Owned(object)))
            }
            _ => Ok(object.map(Cow::Borrowed)),
        };
        Ok(Self { version: Arc::clone(version), old: shown(asked.old)?, object: shown(object)? })
    }
}

/// Returns whether an object is shown in another version than it has. What asks for a part, as a scale, has one version.
pub(crate) fn is_converted(asked: Asked<'_>, version: &Resource, object: &Value) -> bool {
    let own = &asked.request.resource;
    version.api_version != own.api_version && text(object, "kind") == own.kind.kind
}

/// Returns an object in another version of its kind.
pub(crate) fn in_version(asked: Asked<'_>, version: &Resource, mut object: Value) -> Outcome<Value> {
    if version.custom.is_none() {
        let given = text(&object, "apiVersion").to_owned();
        let resources = asked.request.cluster.registry.resources();
        if let Some(given) = resources.find(&given, &version.kind.plural) {
            conversion::to_stored(&mut object, given);
        }
        return Ok(conversion::from_stored(object, version));
    }
    let converted = convert(&asked.request.cluster, version, vec![object], &version.api_version);
    let mut object = wait(converted)?.pop().unwrap_or_default();
    // Without a webhook for conversions, versions differ in their name only.
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), version.api_version.as_str().into());
    }
    Ok(object)
}

async fn ask(asked: Asked<'_>, webhook: &Webhook, question: &Question<'_>) -> Result<Value, String> {
    let uid = asked.request.cluster.random.uid();
    let review =
        request(asked, &uid, &question.version.kind, (question.old.as_deref(), question.object.as_deref()));
    let timeout = int(&webhook.spec, "timeoutSeconds").and_then(|seconds| u64::try_from(seconds).ok());
    let timeout = timeout.map_or(TIMEOUT, Duration::from_secs);
    call(&asked.request.cluster, get(&webhook.spec, "clientConfig"), timeout, &review).await
}

/// Returns what a webhook says; nothing if it does not answer and that is no reason to refuse.
fn judged(
    webhook: &Webhook,
    answer: Result<Value, String>,
    warnings: &mut Vec<String>,
) -> Outcome<Option<Verdict>> {
    let answer = answer.and_then(|answer| verdict(&answer));
    match answer {
        Ok(verdict) => {
            for warning in &verdict.warnings {
                if !warnings.contains(warning) {
                    warnings.push(warning.clone());
                }
            }
            match &verdict.refusal {
                Some((code, why)) => Err(ApiError::new(*code, "", refusal(webhook.name(), why))),
                None => Ok(Some(verdict)),
            }
        }
        Err(error) if text(&webhook.spec, "failurePolicy") == "Ignore" => {
            tracing::warn!(webhook = webhook.name(), error, "a webhook does not answer; the request goes on");
            Ok(None)
        }
        Err(error) => {
            let name = webhook.name();
            let message = format!("failed calling webhook {name:?}: failed to call webhook: {error}");
            Err(ApiError::internal(message))
        }
    }
}

fn refusal(name: &str, why: &str) -> String {
    if why.is_empty() {
        return format!("admission webhook {name:?} denied the request without explanation");
    }
    format!("admission webhook {name:?} denied the request: {why}")
}
