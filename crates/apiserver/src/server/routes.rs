//! From a path and a method to what answers it.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::json;

use super::call::{Call, first_of};
use crate::admission::configured::are_configured;
use crate::authentication::User;
use crate::authorization;
use crate::cluster::Cluster;
use crate::kind::Verb;
use crate::registry::Resource;
use crate::request::RequestContext;
use crate::request::{
    Encoding, Path, Query, Representation, ResourcePath, STREAMS, Shape, check_accepted, media_type_of,
};
use crate::status::{ApiError, Outcome};
use crate::subresources::scale_requests;
use crate::{discovery, read, response, reviews, subresources, write};

/// A request whose body has been read.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) user: User,
}

pub(crate) fn dispatch(cluster: &Arc<Cluster>, incoming: Incoming) -> Response<Body> {
    let path = Path::parse(&incoming.path);
    if let Err(refusal) = check_timeout(&path, &incoming) {
        return response::refusal(&refusal);
    }
    let asked = (&incoming.method, &*incoming.path, &incoming.query);
    if let Err(refusal) = authorization::check(cluster, &incoming.user, asked) {
        return response::refusal(&refusal);
    }
    let form = (&incoming.headers, &incoming.query);
    let answer = match path {
        Path::CoreVersions => only_get(&incoming).and_then(|()| {
            let host =
                incoming.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("localhost");
            cluster.discovery.core_versions(&cluster.registry.resources(), form, host)
        }),
        // Groups are told whatever the method is, versions are not.
        Path::Groups => cluster.discovery.groups(&cluster.registry.resources(), form),
        Path::Group(name) => {
            let found = discovery::group(&cluster.registry.resources(), form, &name);
            found.map(|found| found.unwrap_or_else(not_found))
        }
        Path::GroupVersion(name) => discovery::group_version(&cluster.registry.resources(), form, &name)
            .and_then(|found| {
                found.map_or_else(|| Ok(not_found()), |found| only_get(&incoming).map(|()| found))
            }),
        Path::Resource(path) => {
            let registry = cluster.registry.resources();
            match registry.find(&path.group_version, &path.resource) {
                Some(resource) => resource_call(cluster, resource, path, incoming),
                None if registry.has_group(group_of(&path.group_version)) => {
                    Err(ApiError::unknown_resource())
                }
                None => Ok(not_found()),
            }
        }
        Path::Other => other(cluster, &incoming),
    };
    answer.unwrap_or_else(|error| response::refusal(&error))
}

/// Returns whether webhooks may be asked about a request, which takes time.
pub(crate) fn may_wait(cluster: &Cluster, incoming: &Incoming) -> bool {
    let is_write = incoming.method != Method::GET && incoming.method != Method::HEAD;
    if is_write && are_configured(cluster) {
        return true;
    }
    let Path::Resource(path) = Path::parse(&incoming.path) else { return false };
    let part = first_of(path.subresource.as_deref().unwrap_or_default());
    if ["attach", "exec", "portforward", "proxy"].contains(&part) && are_configured(cluster) {
        return true;
    }
    let registry = cluster.registry.resources();
    registry.find(&path.group_version, &path.resource).is_some_and(|found| found.converter().is_some())
}

fn group_of(group_version: &str) -> &str {
    group_version.split_once('/').map_or("", |(group, _)| group)
}

fn not_found() -> Response<Body> {
    response::text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn only_get(incoming: &Incoming) -> Outcome<()> {
    if incoming.method == Method::GET { Ok(()) } else { Err(ApiError::method_not_allowed()) }
}

fn other(cluster: &Arc<Cluster>, incoming: &Incoming) -> Outcome<Response<Body>> {
    Ok(match incoming.path.trim_end_matches('/') {
        "" if incoming.path.len() <= 1 => {
            let registry = cluster.registry.resources();
            let groups = registry.groups().iter().filter(|(group, _)| !group.is_empty());
            let mut paths: Vec<String> = [
                "/.well-known/openid-configuration",
                "/api",
                "/api/v1",
                "/apis",
                "/healthz",
                "/livez",
                "/metrics",
                "/metrics/slis",
                "/openapi/v3",
                "/openid/v1/jwks",
                "/readyz",
                "/version",
            ]
            .map(str::to_owned)
            .to_vec();
            for (group, versions) in groups {
                paths.push(format!("/apis/{group}"));
                paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
            }
            paths.sort();
            let body = serde_json::to_vec_pretty(&json!({"paths": paths})).unwrap_or_default();
            response::json(StatusCode::OK, body)
        }
        "/version" => {
            only_get(incoming)?;
            check_accepted(&incoming.headers, &["application/json"])?;
            response::json(StatusCode::OK, version())
        }
        "/.well-known/openid-configuration" => {
            only_get(incoming).map(|()| response::json(StatusCode::OK, issuer(incoming)))?
        }
        "/openid/v1/jwks" => {
            only_get(incoming)?;
            response::with_type(StatusCode::OK, "application/jwk-set+json", r#"{"keys":[]}"#)
        }
        "/metrics" => response::with_type(StatusCode::OK, METRICS, metrics(cluster)),
        "/metrics/slis" => response::with_type(StatusCode::OK, METRICS, checks()),
        path if is_health(path) && !incoming.path.ends_with('/') => health(path, incoming),
        path if path.starts_with("/openapi/") => {
            cluster.openapi.answer(&cluster.registry.resources(), path, &incoming.headers)
        }
        _ => not_found(),
    })
}

/// Returns what Go calls the architecture of this machine.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn version() -> Vec<u8> {
    let version = json!({
        "major": "1",
        "minor": "34",
        "emulationMajor": "1",
        "emulationMinor": "34",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "33",
        "gitVersion": "v1.34.2",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    });
    serde_json::to_vec_pretty(&version).unwrap_or_default()
}

/// Returns who issues the tokens of service accounts, in the form of `OpenID` Connect.
///
/// Tokens are known to this server and not signed, so that the list of its keys is empty.
fn issuer(incoming: &Incoming) -> String {
    let host = incoming.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let document = json!({
        "issuer": subresources::ISSUER,
        "jwks_uri": format!("https://{host}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    });
    document.to_string()
}

/// The text format of Prometheus.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns what is counted: the objects of each resource.
fn metrics(cluster: &Cluster) -> String {
    let store = cluster.storage.read();
    let mut text = String::from(
        "# HELP apiserver_resource_objects Number of stored objects of a resource.\n# TYPE apiserver_resource_objects gauge\n",
    );
    for table in store.tables() {
        let (group, resource) = table.rsplit_once('/').unwrap_or_default();
        let count = store.count(table);
        // Writing into a string cannot fail.
        let _ = writeln!(text, "apiserver_resource_objects{{group={group:?},resource={resource:?}}} {count}");
    }
    text
}

/// Returns what each check of the health says.
fn checks() -> String {
    let mut text = String::from(
        "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n# TYPE kubernetes_healthcheck gauge\n",
    );
    for check in CHECKS {
        for kind in ["healthz", "livez", "readyz"] {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "kubernetes_healthcheck{{name={check:?},type={kind:?}}} 1");
        }
    }
    text
}

/// The checks that the health of the server is made of.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

fn is_health(path: &str) -> bool {
    ["/healthz", "/livez", "/readyz"].iter().any(|name| {
        path.strip_prefix(name).is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix('/').is_some_and(|check| CHECKS.contains(&check))
        })
    })
}

fn health(path: &str, incoming: &Incoming) -> Response<Body> {
    let name = path.trim_start_matches('/');
    let text = if incoming.query.get("verbose").is_some() && !name.contains('/') {
        let checks = CHECKS.map(|check| format!("[+]{check} ok\n")).concat();
        format!("{checks}{name} check passed\n")
    } else {
        "ok".to_owned()
    };
    response::text(StatusCode::OK, text)
}

fn resource_call(
    cluster: &Arc<Cluster>,
    resource: &Arc<Resource>,
    path: ResourcePath,
    incoming: Incoming,
) -> Outcome<Response<Body>> {
    let is_custom = resource.custom.is_some();
    if path.namespace.is_some() != resource.kind.namespaced
        && (path.name.is_some() || path.namespace.is_some())
    {
        return if is_custom { Ok(not_found()) } else { Err(ApiError::unknown_resource()) };
    }
    check_watch(&path, resource, &incoming.method)?;
    // Without a namespace, the objects of all are read, and nothing else is done.
    let is_read_alone = reads(&incoming.method) && path.name.is_none();
    let namespace = match path.namespace.clone() {
        Some(namespace) if namespace.is_empty() && !is_read_alone => {
            let refusal = ApiError::bad_request("Namespace parameter required.");
            return if is_custom { Ok(not_found()) } else { Err(refusal) };
        }
        namespace => namespace.filter(|namespace| !namespace.is_empty()),
    };
    let everywhere = resource.kind.namespaced && namespace.is_none();
    if everywhere && is_custom && !is_read_alone {
        return Ok(not_found());
    }
    let call = Call::of(&path, resource, &incoming.method, incoming.query.flag("watch"), everywhere)?;
    if call == Call::Part(Verb::Patch) || call == Call::Patch {
        let media_type = incoming.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        write::patch_kind(media_type_of(media_type.unwrap_or_default()), is_custom)?;
    }
    let offer = call.offer(&path, is_custom);
    let representation = match &offer {
        Some(offer) => Representation::of(&incoming.headers, &incoming.query, offer)?,
        None => Representation::plain(),
    };
    if call == Call::Watch && representation.encoding == Encoding::Yaml {
        return Err(ApiError::accepts_only(&STREAMS));
    }
    check_include(&representation, &incoming.query)?;
    let request = RequestContext {
        cluster: Arc::clone(cluster),
        resource: Arc::clone(resource),
        namespace,
        subresource: path.subresource,
        query: incoming.query,
        representation,
        headers: incoming.headers,
        body: incoming.body,
        user: incoming.user,
        now: cluster.now(),
        is_internal: false,
    };
    let answered = carry_out(&request, call, path.name.as_deref());
    // Refusals carry the warning as well.
    let mut answer = answered.unwrap_or_else(|error| response::refusal(&error));
    if let Some(warning) = deprecation(resource) {
        response::warn_first(&mut answer, warning);
    }
    Ok(answer)
}

/// Refuses a path that watches what is not watched, or does something else.
fn check_watch(path: &ResourcePath, resource: &Resource, method: &Method) -> Outcome<()> {
    if !path.watch {
        return Ok(());
    }
    if path.subresource.is_some() || !resource.kind.allows(Verb::Watch) {
        return Err(ApiError::unknown_resource());
    }
    if reads(method) { Ok(()) } else { Err(ApiError::method_not_allowed()) }
}

fn reads(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// Refuses a time for the request that cannot be read. No request here lasts so long that it is needed.
fn check_timeout(path: &Path, incoming: &Incoming) -> Outcome<()> {
    // What may last as long as it likes has no such time.
    let is_long = matches!(path, Path::Resource(path) if lasts(path, incoming));
    let Some(text) = incoming.query.text("timeout").filter(|_| !is_long) else {
        return Ok(());
    };
    let read = golang::time::Duration::parse(text.as_bytes());
    read.map(|_| ()).map_err(|error| {
        ApiError::bad_request(format!("invalid timeout specified in the request URL - {error}"))
    })
}

/// Returns whether a request watches, or talks with a container.
fn lasts(path: &ResourcePath, incoming: &Incoming) -> bool {
    let watches = path.name.is_none() && reads(&incoming.method) && incoming.query.flag("watch");
    let part = path.subresource.as_deref().unwrap_or_default();
    path.watch || watches || ["attach", "exec", "log", "portforward", "proxy"].contains(&first_of(part))
}

/// Refuses tables whose rows shall carry something unknown.
fn check_include(representation: &Representation, query: &Query) -> Outcome<()> {
    let include = query.get("includeObject").unwrap_or_default();
    let known = ["", "Metadata", "Object", "None"].contains(&include);
    if known || !matches!(representation.shape, Shape::Table(_)) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "Unable to convert to Table as requested: includeObject: Invalid value: {include:?}: must be 'Metadata', 'Object', 'None', or empty"
    )))
}

fn deprecation(resource: &Resource) -> Option<String> {
    if let Some(version) = resource.version() {
        return version.warning.clone();
    }
    let text = match (&*resource.kind.group, &*resource.kind.plural) {
        ("", "endpoints") => "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ("", "componentstatuses") => "v1 ComponentStatus is deprecated in v1.19+",
        _ => return None,
    };
    Some(text.to_owned())
}

fn carry_out(request: &RequestContext, call: Call, name: Option<&str>) -> Outcome<Response<Body>> {
    let one = name.unwrap_or_default();
    match call {
        Call::Get => read::get(request, one),
        Call::Watch => read::watch(request, name),
        Call::List => read::list(request),
        Call::Create => {
            if let Some(answer) = reviews::answer(request)? {
                return Ok(answer);
            }
            if request.resource.custom.as_ref().is_some_and(|(definition, _)| definition.terminating) {
                let message = "create not allowed while custom resource definition is terminating";
                return Err(ApiError::new(405, "MethodNotAllowed", message));
            }
            write::create(request, None)
        }
        Call::Update => write::update(request, one),
        Call::Patch => write::patch(request, one),
        Call::Delete => write::delete(request, one),
        Call::DeleteCollection => write::delete_collection(request),
        Call::Part(verb) => part(request, one, verb),
    }
}

fn part(request: &RequestContext, name: &str, verb: Verb) -> Outcome<Response<Body>> {
    let part = request.subresource.as_deref().unwrap_or_default();
    match (part, verb) {
        ("scale", _) => scale_requests::answer(request, name, verb),
        ("status" | "finalize" | "approval" | "resize" | "ephemeralcontainers", Verb::Get) => {
            read::get(request, name)
        }
        ("status" | "finalize" | "approval" | "resize" | "ephemeralcontainers", Verb::Update) => {
            write::update(request, name)
        }
        ("status" | "finalize" | "approval" | "resize" | "ephemeralcontainers", Verb::Patch) => {
            write::patch(request, name)
        }
        _ => subresources::answer(request, name, part),
    }
}
