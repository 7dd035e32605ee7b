//! Paths of the Kubernetes API.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    GroupVersion(String),
    Resource(ResourcePath),
    /// Everything else, for example `/version`.
    Other,
}

/// A path that leads to objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// `v1` or `apps/v1`.
    pub(crate) group_version: String,
    /// The namespace, which is empty where a client forgot to fill it in.
    pub(crate) namespace: Option<String>,
    /// The resource in the plural.
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    /// The subresource, with what follows it in the path.
    pub(crate) subresource: Option<String>,
    /// Whether the path has the old prefix that asks for a watch.
    pub(crate) watch: bool,
}

impl Path {
    /// Takes a path apart. Slashes at its end mean nothing, any other makes an element, which may be empty.
    pub(crate) fn parse(path: &str) -> Path {
        let path = percent_decode(path);
        let path = path.strip_prefix('/').unwrap_or(&path).trim_end_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        match parts.as_slice() {
            ["api"] => Path::CoreVersions,
            ["api", version] => Path::GroupVersion((*version).to_owned()),
            ["api", version, rest @ ..] => resource((*version).to_owned(), rest),
            ["apis"] => Path::Groups,
            ["apis", "", ..] => Path::Other,
            ["apis", group] => Path::Group((*group).to_owned()),
            ["apis", group, version] => Path::GroupVersion(format!("{group}/{version}")),
            ["apis", group, version, rest @ ..] => resource(format!("{group}/{version}"), rest),
            _ => Path::Other,
        }
    }
}

fn resource(group_version: String, parts: &[&str]) -> Path {
    let (watch, parts) = match parts {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let owned = |text: &str| Some(text.to_owned());
    let (namespace, resource, name, subresource) = match parts {
        ["namespaces", name, part @ ("status" | "finalize")] => {
            (None, "namespaces", owned(name), owned(part))
        }
        ["namespaces", namespace, resource, rest @ ..] => match rest {
            [] => (owned(namespace), *resource, None, None),
            [name] => (owned(namespace), *resource, owned(name), None),
            [name, part] => (owned(namespace), *resource, owned(name), owned(part)),
            [name, part @ ..] => (owned(namespace), *resource, owned(name), Some(part.join("/"))),
        },
        [resource] => (None, *resource, None, None),
        [resource, name] => (None, *resource, owned(name), None),
        [resource, name, part @ ..] => (None, *resource, owned(name), Some(part.join("/"))),
        [] => return Path::GroupVersion(group_version),
    };
    let resource = resource.to_owned();
    Path::Resource(ResourcePath { group_version, namespace, resource, name, subresource, watch })
}

/// Decodes `%2F` and its like; bytes that are no UTF-8 become the replacement character.
pub(crate) fn percent_decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|d| std::str::from_utf8(d).ok());
        let decoded = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
        match (*first, decoded) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            (byte, _) => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(path: &str) -> String {
        match Path::parse(path) {
            Path::Resource(r) => format!(
                "{} {} {} {} {}{}",
                r.group_version,
                r.namespace.as_deref().unwrap_or("-"),
                r.resource,
                r.name.as_deref().unwrap_or("-"),
                r.subresource.as_deref().unwrap_or("-"),
                if r.watch { " watch" } else { "" },
            ),
            other @ (Path::CoreVersions
            | Path::Groups
            | Path::Group(_)
            | Path::GroupVersion(_)
            | Path::Other) => format!("{other:?}"),
        }
    }

    #[test]
    fn paths_are_taken_apart() {
        for (path, expected) in [
            ("/api", "CoreVersions"),
            ("/api/v1", "GroupVersion(\"v1\")"),
            ("/api/v1/pods", "v1 - pods - -"),
            ("/api/v1/namespaces", "v1 - namespaces - -"),
            ("/api/v1/namespaces/a", "v1 - namespaces a -"),
            ("/api/v1/namespaces/a/status", "v1 - namespaces a status"),
            ("/api/v1/namespaces/a/finalize", "v1 - namespaces a finalize"),
            ("/api/v1/namespaces/a/pods", "v1 a pods - -"),
            ("/api/v1/namespaces/a/pods/b", "v1 a pods b -"),
            ("/api/v1/namespaces/a/pods/b/log", "v1 a pods b log"),
            ("/api/v1/watch/namespaces/a/pods", "v1 a pods - - watch"),
            ("/api/v1/nodes/n/status", "v1 - nodes n status"),
            ("/apis/apps", "Group(\"apps\")"),
            ("/apis/apps/v1", "GroupVersion(\"apps/v1\")"),
            ("/apis/apps/v1/namespaces/a/deployments/b/scale", "apps/v1 a deployments b scale"),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                "rbac.authorization.k8s.io/v1 - clusterroles system:node -",
            ),
            ("/version", "Other"),
            ("/", "Other"),
            // Slashes at the end mean nothing; an empty element inside is one.
            ("/api/v1/", "GroupVersion(\"v1\")"),
            ("/api/v1//", "GroupVersion(\"v1\")"),
            ("/api/v1/namespaces/a//", "v1 - namespaces a -"),
            ("/api/v1/namespaces/a/pods/b/", "v1 a pods b -"),
            ("/api/v1/namespaces//pods", "v1  pods - -"),
            ("/api/v1/namespaces//pods/b", "v1  pods b -"),
            ("/api/v1/namespaces/a/pods//log", "v1 a pods  log"),
            ("/api/v1/namespaces/a//b", "v1 a  b -"),
            ("/api/v1//pods", "v1 -  pods -"),
            ("/api//v1", " - v1 - -"),
            ("/apis/apps//v1", "apps/ - v1 - -"),
            ("/apis//apps", "Other"),
            ("//api/v1", "Other"),
            // An escaped slash is a slash.
            ("/api/v1/namespaces/a%2Fpods/b", "v1 a pods b -"),
        ] {
            assert_eq!(show(path), expected, "{path}");
        }
    }

    #[test]
    fn broken_escapes_stay_as_they_are() {
        assert_eq!(percent_decode("a%2Fb%zz%4"), "a/b%zz%4");
        assert_eq!(percent_decode("%ff"), "\u{fffd}");
    }
}
