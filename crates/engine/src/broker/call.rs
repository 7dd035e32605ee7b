//! Calls of platforms: what a request means, or which error of the specification it is.

use std::sync::Arc;

use golang::url::path_unescape;
use serde_json::{Map, Value};

use super::answer::Refusal;
use crate::event::BrokerRequest;

/// The oldest version that is spoken, and its header.
const MAJOR: u32 = 2;
const MINOR: u32 = 13;
const VERSION: &str = "X-Broker-API-Version";

/// How many characters the id of an instance or of a binding may have. It becomes a part of what is kept.
const MAX_ID: usize = 128;

/// How many bytes parameters may have.
const MAX_PARAMETERS: usize = 64 << 10;

/// Where a platform has an instance. Nobody reads it, and the specification wants it to be there.
const PLACE: [&str; 2] = ["organization_guid", "space_guid"];

/// What a platform knows about the maintenance of a plan. No plan here says anything about it.
const MAINTENANCE: &str = "maintenance_info";

/// What operations are called: an instance has one at a time.
pub(super) const PROVISION: &str = "provision";
pub(super) const DEPROVISION: &str = "deprovision";

/// A call of a platform.
#[derive(Clone, PartialEq)]
pub(super) struct Call {
    /// The namespace whose addons it is about; empty for those of the cluster.
    pub(super) namespace: Arc<str>,
    /// What is asked.
    pub(super) action: Action,
}

/// What a platform asks for.
#[derive(Clone, PartialEq)]
pub(super) enum Action {
    /// What there is.
    Catalog,
    /// Something about an instance.
    Instance(String, InstanceAction),
    /// Something about a binding of an instance.
    Binding(String, String, BindingAction),
}

/// What a platform asks for about an instance.
#[derive(Clone, PartialEq)]
pub(super) enum InstanceAction {
    /// Make it.
    Provision(Wanted),
    /// Remove it.
    Deprovision(Ids, bool),
    /// Show it.
    Fetch,
    /// Show how far its last operation is. Whether the platform says that it is its removal.
    LastOperation(bool),
}

/// What a platform asks for about a binding.
#[derive(Clone, PartialEq)]
pub(super) enum BindingAction {
    /// Make it; it returns the credentials.
    Bind(Ids),
    /// Remove it.
    Unbind(Ids),
    /// Show it.
    Fetch,
    /// Show how far its last operation is.
    LastOperation,
}

/// A service and a plan of it, as the platform names them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Ids {
    pub(super) service: String,
    pub(super) plan: String,
}

/// The instance that a platform wants. Its parameters can be secrets.
#[derive(Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) ids: Ids,
    /// An object.
    pub(super) parameters: Arc<Value>,
    pub(super) accepts_incomplete: bool,
}

impl Call {
    /// Returns what a request means.
    ///
    /// # Errors
    ///
    /// With what is answered if it means nothing.
    pub(super) fn read(request: &BrokerRequest) -> Result<Self, Refusal> {
        check_version(request.api_version.as_deref())?;
        let (namespace, segments) = place(&request.path)?;
        let action = match (request.method.as_str(), segments.as_slice()) {
            ("GET", ["catalog"]) => Action::Catalog,
            // What can't be an id is the id of nothing.
            ("GET", ["service_instances", instance]) if id("instance", instance).is_err() => {
                return Err(no_instance(Refusal::not_found));
            }
            ("GET", ["service_instances", instance, "service_bindings", binding])
                if id("instance", instance).is_err() || id("binding", binding).is_err() =>
            {
                return Err(no_binding(Refusal::not_found));
            }
            (method, ["service_instances", instance]) => {
                let instance = id("instance", instance)?;
                Action::Instance(instance, instance_action(method, request)?)
            }
            ("GET", ["service_instances", instance, "last_operation"]) => {
                let is_removal = query(request, "operation").as_deref() == Some(DEPROVISION);
                Action::Instance(id("instance", instance)?, InstanceAction::LastOperation(is_removal))
            }
            (method, ["service_instances", instance, "service_bindings", binding]) => {
                let (instance, binding) = (id("instance", instance)?, id("binding", binding)?);
                Action::Binding(instance, binding, binding_action(method, request)?)
            }
            ("GET", ["service_instances", instance, "service_bindings", binding, "last_operation"]) => {
                let (instance, binding) = (id("instance", instance)?, id("binding", binding)?);
                Action::Binding(instance, binding, BindingAction::LastOperation)
            }
            _ => return Err(unknown()),
        };
        Ok(Self { namespace, action })
    }

    /// Returns whether it changes something. Platforms ask again for a change that met another one.
    pub(super) fn is_change(&self) -> bool {
        match &self.action {
            Action::Catalog => false,
            Action::Instance(_, action) => {
                matches!(action, InstanceAction::Provision(_) | InstanceAction::Deprovision(..))
            }
            Action::Binding(_, _, action) => {
                matches!(action, BindingAction::Bind(_) | BindingAction::Unbind(_))
            }
        }
    }
}

fn unknown() -> Refusal {
    Refusal::unsupported(
        "there is no such call: below /cluster/v2 and /ns/NAMESPACE/v2 are catalog, service_instances and their \
         service_bindings",
    )
}

fn check_version(given: Option<&str>) -> Result<(), Refusal> {
    let Some(given) = given else {
        return Err(Refusal::version(format!(
            "the header {VERSION} is missing: send {MAJOR}.{MINOR} or a later {MAJOR}.x"
        )));
    };
    let read = |part: &str| part.trim().parse::<u32>().ok();
    let version = given.split_once('.').and_then(|(major, minor)| Some((read(major)?, read(minor)?)));
    if version.is_some_and(|(major, minor)| major == MAJOR && minor >= MINOR) {
        return Ok(());
    }
    Err(Refusal::version(format!(
        "{VERSION} is another version than this broker speaks: send {MAJOR}.{MINOR} or a later {MAJOR}.x"
    )))
}

pub(super) fn no_instance(refusal: fn(&'static str) -> Refusal) -> Refusal {
    refusal("there is no such instance")
}

pub(super) fn no_binding(refusal: fn(&'static str) -> Refusal) -> Refusal {
    refusal("there is no such binding")
}

/// Returns the namespace of a path, and its segments below the version.
fn place(path: &str) -> Result<(Arc<str>, Vec<&str>), Refusal> {
    let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    match segments.as_slice() {
        ["cluster", "v2", rest @ ..] => Ok(("".into(), rest.to_vec())),
        ["ns", namespace, "v2", rest @ ..] if is_label(namespace) => Ok(((*namespace).into(), rest.to_vec())),
        _ => Err(unknown()),
    }
}

/// Returns whether a text can be the name of a namespace.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn id(what: &str, text: &str) -> Result<String, Refusal> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    if text.is_empty() || text.len() > MAX_ID || !text.bytes().all(is_plain) {
        return Err(Refusal::bad_request(format!(
            "the id of the {what} has to be 1 to {MAX_ID} of the letters a-z and A-Z, digits, '-', '_', '.' and '~'"
        )));
    }
    Ok(text.to_owned())
}

fn instance_action(method: &str, request: &BrokerRequest) -> Result<InstanceAction, Refusal> {
    match method {
        "GET" => Ok(InstanceAction::Fetch),
        "PUT" => {
            let body = body(request)?;
            let ids = ids_of_body(body)?;
            for field in PLACE {
                text_of_body(body, field).ok_or_else(|| {
                    Refusal::bad_request(format!(
                        "{field} is missing: platforms say where an instance is for"
                    ))
                })?;
            }
            if body.get(MAINTENANCE).is_some_and(|given| !given.is_null()) {
                return Err(Refusal::maintenance());
            }
            let (parameters, accepts_incomplete) = (parameters(request)?, accepts_incomplete(request));
            Ok(InstanceAction::Provision(Wanted { ids, parameters, accepts_incomplete }))
        }
        "DELETE" => Ok(InstanceAction::Deprovision(ids_of_query(request)?, accepts_incomplete(request))),
        "PATCH" => Err(Refusal::unsupported(
            "an instance is not changed: remove it and make another one, or edit the module's section of the ConfigMap",
        )),
        _ => Err(unknown()),
    }
}

fn binding_action(method: &str, request: &BrokerRequest) -> Result<BindingAction, Refusal> {
    match method {
        "GET" => Ok(BindingAction::Fetch),
        "PUT" => {
            let ids = ids_of_body(body(request)?)?;
            if parameters(request)?.as_object().is_some_and(|given| !given.is_empty()) {
                return Err(Refusal::bad_request("a binding has no parameters: leave them out"));
            }
            Ok(BindingAction::Bind(ids))
        }
        "DELETE" => Ok(BindingAction::Unbind(ids_of_query(request)?)),
        _ => Err(unknown()),
    }
}

fn missing(field: &str) -> Refusal {
    Refusal::bad_request(format!("{field} is missing: name one of the catalog"))
}

fn body(request: &BrokerRequest) -> Result<&Map<String, Value>, Refusal> {
    let body = request.body.as_deref().and_then(Value::as_object);
    body.ok_or_else(|| Refusal::bad_request("the body has to be a JSON object"))
}

/// Returns a field of a body that is a text, and not empty.
fn text_of_body<'b>(body: &'b Map<String, Value>, field: &str) -> Option<&'b str> {
    body.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn ids_of_body(body: &Map<String, Value>) -> Result<Ids, Refusal> {
    let text = |field: &str| text_of_body(body, field).map(str::to_owned).ok_or_else(|| missing(field));
    Ok(Ids { service: text("service_id")?, plan: text("plan_id")? })
}

fn ids_of_query(request: &BrokerRequest) -> Result<Ids, Refusal> {
    let text = |field: &str| query(request, field).ok_or_else(|| missing(field));
    Ok(Ids { service: text("service_id")?, plan: text("plan_id")? })
}

/// Returns a parameter of the query that is not empty.
fn query(request: &BrokerRequest, name: &str) -> Option<String> {
    let mut pairs = request.query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, text) = pairs.find(|(key, _)| *key == name)?;
    path_unescape(text).ok().filter(|text| !text.is_empty())
}

fn accepts_incomplete(request: &BrokerRequest) -> bool {
    query(request, "accepts_incomplete").as_deref() == Some("true")
}

fn parameters(request: &BrokerRequest) -> Result<Arc<Value>, Refusal> {
    let given = request.body.as_deref().and_then(|body| body.get("parameters"));
    match given {
        None | Some(Value::Null) => Ok(Arc::new(Value::Object(Map::new()))),
        Some(object @ Value::Object(_)) => {
            let length = object.to_string().len();
            if length > MAX_PARAMETERS {
                return Err(Refusal::bad_request(format!(
                    "parameters have {length} bytes, and {MAX_PARAMETERS} are read: shorten them"
                )));
            }
            Ok(Arc::new(object.clone()))
        }
        Some(_) => Err(Refusal::bad_request("parameters have to be a JSON object")),
    }
}
