//! Rights of users in whose name somebody else acts: those that roles give them, as RBAC has it.
//!
//! Every client with a known token may do everything here. Who acts in the name of another user may do what that user may.

use std::collections::BTreeMap;

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use crate::authentication::User;
use crate::cluster::Cluster;
use crate::fields::{get, list, text, texts};
use crate::request::{Path, Query, RequestContext, percent_decode};
use crate::status::{ApiError, Details, Outcome};
use crate::store::table_name;

/// The group whose members may do everything.
const MASTERS: &str = "system:masters";

/// The group of all users that are known.
const AUTHENTICATED: &str = "system:authenticated";

/// The group of all others.
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// What the names of headers begin with that say more of a user, in small letters.
const EXTRA: &str = "impersonate-extra-";

/// The API group of roles and bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// What a request does, as roles see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The path, if it leads to no objects.
    pub(crate) path: Option<String>,
}

/// Returns the user in whose name a request is made; nothing if that is the one who makes it.
///
/// # Errors
///
/// If groups or anything else are named and no user is.
pub(crate) fn impersonated(headers: &HeaderMap) -> Outcome<Option<User>> {
    let texts = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let name = texts("impersonate-user").into_iter().next().unwrap_or_default();
    let mut groups = texts("impersonate-group");
    if name.is_empty() {
        let other = headers.keys().find(|name| name.as_str().starts_with("impersonate-"));
        return match other {
            None => Ok(None),
            Some(other) => {
                let message = format!("{other} was requested without impersonating a user");
                Err(ApiError::new(500, "InternalError", format!("Internal error occurred: {message}")))
            }
        };
    }
    if groups.is_empty()
        && let Some(account) = name.strip_prefix("system:serviceaccount:")
        && let Some((namespace, _)) = account.split_once(':')
    {
        groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let has = |wanted: &str| groups.iter().any(|group| group == wanted);
    let is_anonymous = name == "system:anonymous";
    if !has(UNAUTHENTICATED) && (is_anonymous || !has(AUTHENTICATED)) {
        groups.push((if is_anonymous { UNAUTHENTICATED } else { AUTHENTICATED }).to_owned());
    }
    let uid = texts("impersonate-uid").into_iter().next().unwrap_or_default();
    let keys = headers.keys().map(http::HeaderName::as_str);
    let extra = keys.filter_map(|header| Some((percent_decode(header.strip_prefix(EXTRA)?), texts(header))));
    let extra = extra.collect();
    Ok(Some(User { name, uid, groups, extra, is_impersonated: true }))
}

/// Refuses what the roles of a user do not allow. Who acts in its own name may do everything.
pub(crate) fn check(
    cluster: &Cluster,
    user: &User,
    (method, path, query): (&Method, &str, &Query),
) -> Outcome<()> {
    if !user.is_impersonated {
        return Ok(());
    }
    let asked = Attributes::of(method, path, query);
    if is_allowed(cluster, user, &asked) { Ok(()) } else { Err(asked.refusal(&user.name)) }
}

/// Refuses a change that makes a new object, unless the roles of the user allow that, too.
pub(crate) fn check_creation(request: &RequestContext, name: &str) -> Outcome<()> {
    let kind = &request.resource.kind;
    let asked = Attributes {
        verb: "create".to_owned(),
        group: kind.group.to_string(),
        resource: kind.plural.to_string(),
        namespace: request.namespace.clone().unwrap_or_default(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    let user = &request.user;
    if is_allowed(&request.cluster, user, &asked) { Ok(()) } else { Err(asked.refusal(&user.name)) }
}

/// Returns whether the user that a review names may do what it asks about. Where nobody acts in the name of others, everybody may.
pub(crate) fn reviewed(cluster: &Cluster, spec: &Value) -> bool {
    let groups = texts(spec, "groups").map(str::to_owned).collect();
    let name = text(spec, "user").to_owned();
    let user = User { name, uid: String::new(), groups, extra: BTreeMap::new(), is_impersonated: true };
    !cluster.config.impersonation || is_allowed(cluster, &user, &Attributes::of_review(spec))
}

/// Returns whether the roles of a user allow something.
pub(crate) fn is_allowed(cluster: &Cluster, user: &User, asked: &Attributes) -> bool {
    !user.is_impersonated
        || user.groups.iter().any(|group| group == MASTERS)
        || rules(cluster, user, &asked.namespace).iter().any(|rule| asked.is_covered_by(rule))
}

/// Returns the rules that hold for a user in a namespace, which is empty for what is in none.
pub(crate) fn rules(cluster: &Cluster, user: &User, namespace: &str) -> Vec<Value> {
    let mut rules = Vec::new();
    if user.groups.iter().any(|group| group == AUTHENTICATED) {
        rules.extend(rules_of_known());
    }
    if user.groups.iter().any(|group| [AUTHENTICATED, UNAUTHENTICATED].contains(&&**group)) {
        let paths = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
        rules.push(json!({"verbs": ["get"], "nonResourceURLs": paths}));
    }
    let all = |plural: &str, namespace: Option<&str>| {
        cluster.storage.all(&table_name(GROUP, plural), namespace).into_iter().map(|stored| stored.value())
    };
    let mut bindings: Vec<Value> = all("clusterrolebindings", None).collect();
    if !namespace.is_empty() {
        bindings.extend(all("rolebindings", Some(namespace)));
    }
    for binding in bindings {
        let subjects = list(&binding, "subjects");
        if !subjects.iter().any(|subject| is_subject(user, subject, namespace)) {
            continue;
        }
        let role = get(&binding, "roleRef");
        let (kind, name) = (text(role, "kind"), text(role, "name"));
        let (plural, place) =
            if kind == "Role" { ("roles", Some(namespace)) } else { ("clusterroles", None) };
        let stored = cluster.storage.find(&table_name(GROUP, plural), place, name);
        match stored {
            Some(stored) => rules.extend(list(&stored.value(), "rules").iter().cloned()),
            None if kind == "ClusterRole" && name == "cluster-admin" => {
                rules.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
                rules.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
            }
            None => {}
        }
    }
    rules
}

/// Returns what the roles `system:basic-user` and `system:discovery` give to all users that are known. Beside these,
/// `system:public-info-viewer` has something for everybody.
fn rules_of_known() -> [Value; 3] {
    let paths = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ];
    let access = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
    [
        json!({"verbs": ["get"], "nonResourceURLs": paths}),
        json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": access}),
        json!({"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}),
    ]
}

fn is_subject(user: &User, subject: &Value, namespace: &str) -> bool {
    let name = text(subject, "name");
    match text(subject, "kind") {
        "User" => user.name == name,
        "Group" => user.groups.iter().any(|group| group == name),
        "ServiceAccount" => {
            let given = text(subject, "namespace");
            let of = if given.is_empty() { namespace } else { given };
            user.name == format!("system:serviceaccount:{of}:{name}")
        }
        _ => false,
    }
}

impl Attributes {
    fn of(method: &Method, path: &str, query: &Query) -> Self {
        let Path::Resource(found) = Path::parse(path) else {
            let (verb, path) = (method.as_str().to_lowercase(), Some(path.to_owned()));
            return Self { verb, path, ..Self::default() };
        };
        let selected = query
            .get("fieldSelector")
            .and_then(|selector| selector.split(',').find_map(|part| part.strip_prefix("metadata.name=")));
        let is_watch = found.watch || query.flag("watch");
        let verb = match (method.as_str(), &found.name) {
            _ if found.watch => "watch",
            ("GET" | "HEAD", Some(_)) => "get",
            ("GET" | "HEAD", _) if is_watch => "watch",
            ("GET" | "HEAD", _) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", Some(_)) => "delete",
            ("DELETE", None) => "deletecollection",
            (other, _) => &other.to_lowercase(),
        };
        let name = found.name.as_deref().or(selected).unwrap_or_default();
        let is_namespace = found.resource == "namespaces" && !found.group_version.contains('/');
        let namespace = if is_namespace { found.name.clone() } else { found.namespace };
        Self {
            verb: verb.to_owned(),
            group: found.group_version.split_once('/').map_or("", |(group, _)| group).to_owned(),
            resource: found.resource,
            subresource: found.subresource.unwrap_or_default(),
            namespace: namespace.unwrap_or_default(),
            name: name.to_owned(),
            path: None,
        }
    }

    /// Returns what a review asks about.
    pub(crate) fn of_review(spec: &Value) -> Self {
        let other = get(spec, "nonResourceAttributes");
        if !other.is_null() {
            let (verb, path) = (text(other, "verb").to_owned(), Some(text(other, "path").to_owned()));
            return Self { verb, path, ..Self::default() };
        }
        let asked = get(spec, "resourceAttributes");
        let of = |field: &str| text(asked, field).to_owned();
        Self {
            verb: of("verb"),
            group: of("group"),
            resource: of("resource"),
            subresource: of("subresource"),
            namespace: of("namespace"),
            name: of("name"),
            path: None,
        }
    }

    fn is_covered_by(&self, rule: &Value) -> bool {
        let has =
            |field: &str, wanted: &str| list(rule, field).iter().any(|item| item == "*" || item == wanted);
        if !has("verbs", &self.verb) {
            return false;
        }
        if let Some(path) = &self.path {
            return list(rule, "nonResourceURLs").iter().filter_map(Value::as_str).any(|url| {
                url == path || url.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix))
            });
        }
        let names = list(rule, "resourceNames");
        has("apiGroups", &self.group)
            && (names.is_empty() || names.iter().any(|name| *name == *self.name))
            && list(rule, "resources").iter().filter_map(Value::as_str).any(|resource| self.is_of(resource))
    }

    /// Returns whether a rule for `resource` is about this: `*`, `pods`, `pods/log`, `*/log`.
    fn is_of(&self, resource: &str) -> bool {
        match (resource.split_once('/'), self.subresource.as_str()) {
            _ if resource == "*" => true,
            (None, "") => resource == self.resource,
            (Some((of, part)), wanted) => part == wanted && (of == "*" || of == self.resource),
            (None, _) => false,
        }
    }

    fn refusal(&self, user: &str) -> ApiError {
        let Self { verb, group, resource, subresource, namespace, name, path } = self;
        if let Some(path) = path {
            let message = format!("forbidden: User {user:?} cannot {verb} path {path:?}");
            return ApiError::new(403, "Forbidden", message).with_details(Details::default());
        }
        let qualified = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        let about = if name.is_empty() { qualified } else { format!("{qualified} {name:?}") };
        let part =
            if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
        let place = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {namespace:?}")
        };
        let message = format!(
            "{about} is forbidden: User {user:?} cannot {verb} resource {part:?} in API group {group:?} {place}"
        );
        let details = Details {
            name: name.clone(),
            group: group.clone(),
            kind: resource.clone(),
            ..Details::default()
        };
        ApiError::new(403, "Forbidden", message).with_details(details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(verb: &str, path: &str) -> Attributes {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        Attributes::of(&verb.parse().unwrap(), path, &Query::parse(query))
    }

    #[test]
    fn what_a_request_does_is_read_from_method_and_path() {
        for (method, path, expected) in [
            ("GET", "/api/v1/namespaces/a/pods", "list  pods  a "),
            ("GET", "/api/v1/namespaces/a/pods/b", "get  pods  a b"),
            ("GET", "/api/v1/pods?watch=true&fieldSelector=metadata.name%3Db", "watch  pods   b"),
            ("GET", "/api/v1/watch/namespaces/a/pods/b", "watch  pods  a b"),
            ("POST", "/apis/apps/v1/namespaces/a/deployments", "create apps deployments  a "),
            ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", "patch apps deployments status a b"),
            ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection  pods  a "),
            ("GET", "/api/v1/namespaces/a", "get  namespaces  a a"),
            ("GET", "/api/v1/namespaces", "list  namespaces   "),
        ] {
            let Attributes { verb, group, resource, subresource, namespace, name, .. } = asked(method, path);
            assert_eq!(
                format!("{verb} {group} {resource} {subresource} {namespace} {name}"),
                expected,
                "{path}"
            );
        }
        assert_eq!(asked("GET", "/version").path.as_deref(), Some("/version"));
    }

    #[test]
    fn a_rule_covers_what_it_names_and_nothing_else() {
        let rule = |resources: &[&str], names: &[&str]| json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": resources, "resourceNames": names});
        let pod = "/api/v1/namespaces/a/pods/b";
        let log = "/api/v1/namespaces/a/pods/b/log";
        for (method, path, rule, expected) in [
            ("GET", pod, rule(&["pods"], &[]), true),
            ("GET", pod, rule(&["*"], &[]), true),
            ("GET", pod, rule(&["secrets"], &[]), false),
            ("GET", pod, rule(&["pods/log"], &[]), false),
            ("GET", log, rule(&["pods"], &[]), false),
            ("GET", log, rule(&["pods/log"], &[]), true),
            ("GET", log, rule(&["*/log"], &[]), true),
            ("GET", log, rule(&["*"], &[]), true),
            ("GET", pod, rule(&["pods"], &["b"]), true),
            ("GET", pod, rule(&["pods"], &["c"]), false),
            ("GET", "/api/v1/namespaces/a/pods", rule(&["pods"], &["b"]), false),
            ("DELETE", pod, rule(&["pods"], &[]), false),
            ("GET", "/apis/apps/v1/namespaces/a/pods/b", rule(&["pods"], &[]), false),
            ("GET", "/version", rule(&["*"], &[]), false),
            ("GET", "/api/v1", json!({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}), true),
            ("GET", "/metrics", json!({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}), false),
        ] {
            assert_eq!(asked(method, path).is_covered_by(&rule), expected, "{method} {path} {rule}");
        }
    }

    #[test]
    fn a_service_account_has_the_groups_that_follow_from_its_name() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().unwrap());
            }
            impersonated(&headers)
        };
        let user = of(&[("impersonate-user", "system:serviceaccount:a:b")]).unwrap().unwrap();
        assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:a", AUTHENTICATED]);
        let user = of(&[("impersonate-user", "jane"), ("impersonate-group", "x")]).unwrap().unwrap();
        assert_eq!(user.groups, ["x", AUTHENTICATED]);
        assert_eq!(of(&[]).unwrap(), None);
        assert!(of(&[("impersonate-group", "x")]).is_err());
    }
}
