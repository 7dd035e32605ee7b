//! What a request asks of a resource, by its path and method: whether there is such a thing is asked before all else.

use http::Method;

use crate::kind::Verb;
use crate::registry::Resource;
use crate::request::{LISTS, LOGS, OBJECTS, Offer, ResourcePath};
use crate::status::{ApiError, Outcome};

/// What a request asks of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Get,
    Watch,
    List,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// Something of a subresource.
    Part(Verb),
}

impl Call {
    /// Returns what a request asks for, before anything else of it is looked at.
    pub(super) fn of(
        path: &ResourcePath,
        resource: &Resource,
        method: &Method,
        watches: bool,
        everywhere: bool,
    ) -> Outcome<Call> {
        match (&path.name, &path.subresource) {
            (Some(name), Some(part)) => Call::of_part(resource, name, part, method),
            // The switch that makes a watch of a list means nothing here.
            (Some(_), None) => Call::of_one(resource, method, path.watch),
            (None, _) => Call::of_many(resource, method, path.watch || watches, everywhere),
        }
    }

    fn of_one(resource: &Resource, method: &Method, watches: bool) -> Outcome<Call> {
        let (call, verb) = match *method {
            Method::GET if watches => (Call::Watch, Verb::Watch),
            Method::GET => (Call::Get, Verb::Get),
            // Who defines a resource has another router, which takes more.
            Method::HEAD if resource.custom.is_some() => (Call::Get, Verb::Get),
            Method::POST if resource.custom.is_some() => (Call::Create, Verb::Create),
            Method::PUT => (Call::Update, Verb::Update),
            Method::PATCH => (Call::Patch, Verb::Patch),
            Method::DELETE => (Call::Delete, Verb::Delete),
            _ => return Err(refused(resource, method)),
        };
        if resource.kind.allows(verb) { Ok(call) } else { Err(refused(resource, method)) }
    }

    fn of_many(resource: &Resource, method: &Method, watches: bool, everywhere: bool) -> Outcome<Call> {
        let is_custom = resource.custom.is_some();
        let is_read = *method == Method::GET || (*method == Method::HEAD && is_custom);
        let (call, verb) = match *method {
            _ if is_read && watches => (Call::Watch, Verb::Watch),
            _ if is_read => (Call::List, Verb::List),
            Method::POST if !everywhere => (Call::Create, Verb::Create),
            Method::DELETE if !everywhere => (Call::DeleteCollection, Verb::DeleteCollection),
            Method::PUT | Method::PATCH if is_custom => {
                return Err(ApiError::bad_request("name must be provided"));
            }
            _ => return Err(refused(resource, method)),
        };
        if resource.kind.allows(verb) { Ok(call) } else { Err(refused(resource, method)) }
    }

    fn of_part(resource: &Resource, name: &str, part: &str, method: &Method) -> Outcome<Call> {
        let kind = &resource.kind;
        let is_custom = resource.custom.is_some();
        let unknown =
            || if is_custom { ApiError::not_found(kind, name) } else { ApiError::unknown_resource() };
        let offered = kind.subresource(first_of(part)).ok_or_else(unknown)?;
        if name.is_empty() {
            return Err(ApiError::bad_request("name must be provided"));
        }
        let verb = match *method {
            Method::GET => Verb::Get,
            Method::HEAD if is_custom => Verb::Get,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::POST => Verb::Create,
            Method::DELETE => Verb::Delete,
            _ => return Err(refused(resource, method)),
        };
        if offered.verbs.contains(&verb) { Ok(Call::Part(verb)) } else { Err(refused(resource, method)) }
    }

    /// Returns in which forms this is answered; nothing if a container answers.
    pub(super) fn offer(self, path: &ResourcePath, is_custom: bool) -> Option<Offer> {
        let part = first_of(path.subresource.as_deref().unwrap_or_default());
        let listed: &[&str] = match (self, part) {
            (_, "attach" | "exec" | "portforward" | "proxy") => return None,
            (_, "log") => &LOGS,
            (Call::List | Call::Watch, _) => &LISTS,
            _ => &OBJECTS,
        };
        let has_rows = !["binding", "eviction", "token"].contains(&part);
        Some(Offer { listed: (!is_custom).then_some(listed), has_rows })
    }
}

/// Returns the refusal of a method.
fn refused(resource: &Resource, method: &Method) -> ApiError {
    if resource.custom.is_none() {
        return ApiError::method_not_allowed();
    }
    let verb = match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    };
    ApiError::not_supported(&resource.kind, verb)
}

/// Returns the name of a subresource, without what follows it in the path.
pub(super) fn first_of(part: &str) -> &str {
    part.split('/').next().unwrap_or_default()
}
