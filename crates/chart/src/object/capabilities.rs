//! `.Capabilities`: what the cluster can do.

#![expect(clippy::unnecessary_wraps, reason = "all methods have the signature that templates call")]

use crate::value::{CallError, Context, List, ListType, Method, Object, Type, Value};

/// The version of Helm whose behaviour templates find.
const HELM_VERSION: &str = "v3.19.0";

/// The version of Go that it was built with.
const GO_VERSION: &str = "go1.26.8";

/// Groups and their versions that templates find where no cluster is asked; the core group has no name.
const KNOWN_VERSIONS: &[(&str, &[&str])] = &[
    ("", &["v1"]),
    ("admissionregistration.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("internal.apiserver.k8s.io", &["v1alpha1"]),
    ("apps", &["v1", "v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1", "v1beta1"]),
    ("autoscaling", &["v1", "v2", "v2beta1", "v2beta2"]),
    ("batch", &["v1", "v1beta1"]),
    ("certificates.k8s.io", &["v1", "v1beta1", "v1alpha1"]),
    ("coordination.k8s.io", &["v1alpha2", "v1beta1", "v1"]),
    ("discovery.k8s.io", &["v1", "v1beta1"]),
    ("events.k8s.io", &["v1", "v1beta1"]),
    ("extensions", &["v1beta1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1", "v1beta1", "v1beta2", "v1beta3"]),
    ("networking.k8s.io", &["v1", "v1beta1"]),
    ("node.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("policy", &["v1", "v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1", "v1beta1", "v1alpha1"]),
    ("resource.k8s.io", &["v1", "v1beta2", "v1beta1", "v1alpha3"]),
    ("scheduling.k8s.io", &["v1alpha1", "v1beta1", "v1"]),
    ("storage.k8s.io", &["v1beta1", "v1", "v1alpha1"]),
    ("storagemigration.k8s.io", &["v1alpha1"]),
    ("apiextensions.k8s.io", &["v1beta1", "v1"]),
];

/// What a cluster can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The version of Kubernetes.
    pub kube_version: KubeVersion,
    /// Group versions, and kinds as `group/version/Kind`.
    pub api_versions: Vec<String>,
}

/// A version of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeVersion {
    /// The whole: `v1.34.2`.
    pub version: String,
    /// The first number.
    pub major: String,
    /// The second number; some clusters append a plus sign.
    pub minor: String,
}

/// Why a text is no version of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeVersionError {
    /// It does not begin with a number.
    #[error("could not parse {} as version", quote(.0))]
    Text(String),
    /// There is only one number.
    #[error("illegal version string {}", quote(.0))]
    Short(String),
    /// The first number begins with a zero.
    #[error("illegal zero-prefixed version component {} in {}", quote(.component), quote(.text))]
    Zero {
        /// The number.
        component: String,
        /// The whole.
        text: String,
    },
    /// A number is too great.
    #[error(
        "illegal non-numeric version component {component} in {}: strconv.ParseUint: parsing {component}: value out of range",
        quote(.text), component = quote(.component)
    )]
    Great {
        /// The number.
        component: String,
        /// The whole.
        text: String,
    },
}

fn quote(text: &str) -> String {
    golang::strconv::quote(text.as_bytes())
}

impl KubeVersion {
    /// Reads a version: two numbers or more with dots between them; what follows is dropped.
    pub fn parse(text: &str) -> Result<Self, KubeVersionError> {
        let trimmed = text.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let numbers = trimmed.strip_prefix('v').unwrap_or(trimmed);
        let mut components: Vec<&str> = Vec::new();
        for part in numbers.split('.') {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            components.extend(part.get(..digits).filter(|component| !component.is_empty()));
            if digits == 0 || digits < part.len() {
                break;
            }
        }
        let (Some(first), false) = (components.first(), numbers.contains('\n')) else {
            return Err(KubeVersionError::Text(text.to_owned()));
        };
        if components.len() < 2 {
            return Err(KubeVersionError::Short(text.to_owned()));
        }
        if first.starts_with('0') && *first != "0" {
            return Err(KubeVersionError::Zero { component: (*first).to_owned(), text: text.to_owned() });
        }
        let mut shown = Vec::new();
        for component in components {
            let number: u64 = component.parse().map_err(|_| KubeVersionError::Great {
                component: component.to_owned(),
                text: text.to_owned(),
            })?;
            shown.push(number.to_string());
        }
        let number = |index: usize| shown.get(index).cloned().unwrap_or_default();
        Ok(Self { version: format!("v{}", shown.join(".")), major: number(0), minor: number(1) })
    }
}

impl Default for KubeVersion {
    fn default() -> Self {
        Self { version: "v1.34.0".to_owned(), major: "1".to_owned(), minor: "34".to_owned() }
    }
}

impl Capabilities {
    /// Returns what templates find where no cluster is asked.
    pub fn without_cluster(kube_version: KubeVersion) -> Self {
        let known = KNOWN_VERSIONS.iter().flat_map(|(group, versions)| {
            let slash = if group.is_empty() { "" } else { "/" };
            versions.iter().map(move |version| format!("{group}{slash}{version}"))
        });
        Self { kube_version, api_versions: known.collect() }
    }

    /// Returns the object for templates.
    pub(crate) fn object(&self) -> Value {
        let versions = self.api_versions.iter().map(|version| Value::text(version.as_str())).collect();
        Value::object(CapabilitiesObject {
            kube_version: self.kube_version.clone(),
            api_versions: Value::List(List::of(&VERSION_SET, versions)),
        })
    }
}

struct CapabilitiesObject {
    kube_version: KubeVersion,
    api_versions: Value,
}

impl Object for CapabilitiesObject {
    fn type_name(&self) -> &'static str {
        "*chartutil.Capabilities"
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("KubeVersion", Value::object(KubeVersionObject(self.kube_version.clone()))),
            ("APIVersions", self.api_versions.clone()),
            ("HelmVersion", Value::object(BuildInfo)),
        ]
    }
}

/// `chartutil.VersionSet`
static VERSION_SET: ListType = ListType {
    name: "chartutil.VersionSet",
    element: Type::String,
    named: true,
    methods: &[Method::new("Has", &[Type::String], Type::Bool, |_, this, args| {
        let wanted = args.first().and_then(Value::as_text);
        let is_known = |list: &List| list.items().iter().any(|item| item.as_text() == wanted);
        Ok(this.as_list().is_some_and(is_known).into())
    })],
};

struct KubeVersionObject(KubeVersion);

impl Object for KubeVersionObject {
    fn type_name(&self) -> &'static str {
        "chartutil.KubeVersion"
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let KubeVersion { version, major, minor } = &self.0;
        vec![
            ("Version", version.as_str().into()),
            ("Major", major.as_str().into()),
            ("Minor", minor.as_str().into()),
        ]
    }

    fn methods(&self) -> &'static [Method] {
        const {
            &[
                Method::new("GitVersion", &[], Type::String, text),
                Method::new("String", &[], Type::String, text),
            ]
        }
    }

    fn display_of_pointer(&self) -> Option<String> {
        Some(self.0.version.clone())
    }
}

fn text(_: &mut dyn Context, this: &Value, _: &[Value]) -> Result<Value, CallError> {
    Ok(this
        .as_object::<KubeVersionObject>()
        .map(|object| object.0.version.as_str().into())
        .unwrap_or_default())
}

/// `version.BuildInfo`
struct BuildInfo;

impl Object for BuildInfo {
    fn type_name(&self) -> &'static str {
        "version.BuildInfo"
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Version", HELM_VERSION.into()),
            ("GitCommit", "".into()),
            ("GitTreeState", "".into()),
            ("GoVersion", GO_VERSION.into()),
        ]
    }

    fn json_members(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(vec![("version", HELM_VERSION.into()), ("go_version", GO_VERSION.into())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_kubernetes_reads_them() {
        for (text, expected) in [
            ("1.20", "v1.20 1 20"),
            ("v1.30.5-gke.100", "v1.30.5 1 30"),
            ("1.02", "v1.2 1 2"),
            ("1.2.3.4-x", "v1.2.3.4 1 2"),
            ("1", "illegal version string \"1\""),
            ("abc", "could not parse \"abc\" as version"),
            ("", "could not parse \"\" as version"),
            ("01.2.3", "illegal zero-prefixed version component \"01\" in \"01.2.3\""),
            (
                "1.99999999999999999999",
                "illegal non-numeric version component \"99999999999999999999\" in \"1.99999999999999999999\": \
                 strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
            ),
        ] {
            let found = match KubeVersion::parse(text) {
                Ok(KubeVersion { version, major, minor }) => format!("{version} {major} {minor}"),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}
