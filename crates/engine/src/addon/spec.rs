//! What a configuration of sources asks for. See docs/sources.md.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;

use super::{Approval, Digest, SourceKey, SourceKind, UpdateWindow, update};
use crate::duration;

/// How many repositories a configuration may have.
pub const MAX_REPOSITORIES: usize = 100;
/// How many addons a repository may name in `include`.
pub const MAX_INCLUDES: usize = 500;
/// How many bytes a URL may have.
pub const MAX_URL: usize = 4096;
/// How many configurations one may depend on.
const MAX_DEPENDENCIES: usize = 50;
/// How many texts with public keys a configuration may have, and how many bytes each.
const MAX_PUBLIC_KEYS: usize = 20;
const MAX_PUBLIC_KEY: usize = 64 << 10;

/// What a configuration asks for, read from the object's spec.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SourceSpec {
    /// The repositories, in their order.
    pub repositories: Vec<RepositorySpec>,
    /// A counter that people raise to have everything fetched again.
    pub reprocess_request: i64,
    /// What becomes of modules that run when the configuration fails.
    pub failure_policy: FailurePolicy,
    /// What becomes of modules when the configuration is deleted.
    pub deletion_policy: DeletionPolicy,
    /// Whether what a bundle says about `<key>Enabled` counts. Always false in a namespace.
    pub auto_enable: bool,
    /// How often it is fetched again by itself; `None` means never.
    pub update_interval: Option<Duration>,
    /// Whether nothing is done for it until it is deleted.
    pub is_suspended: bool,
    /// The configurations that have to be ready before it is processed.
    pub depends_on: Vec<SourceKey>,
    /// When bundles of its modules may be replaced; empty means always.
    pub windows: Vec<UpdateWindow>,
    /// Who says that bundles of its modules may be replaced.
    pub approval: Approval,
    /// Whose signatures bundles must have; `None` if they need none.
    pub verify: Option<Verification>,
}

/// The keys of which one must have signed each bundle.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Verification {
    /// Texts with public keys in PEM.
    pub public_keys: Vec<String>,
    /// A Secret with more of them.
    pub secret: Option<SecretName>,
}

/// A repository.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RepositorySpec {
    /// The URL of its index, with placeholders. It can hold credentials that somebody wrote into it.
    pub url: String,
    /// What fills the placeholders.
    pub secret: Option<SecretName>,
    /// The addons that are wanted; empty means all.
    pub include: Vec<Include>,
}

/// The name of a Secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SecretName {
    /// Its namespace: that of the configuration if none is written; empty if that has none, too.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// An addon that is wanted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Include {
    /// Its name.
    pub name: String,
    /// Exactly this version, or the highest in this range; `None` means the highest of all.
    pub version: Option<String>,
    /// The digest that the bundle of the version which becomes the module must have.
    pub digest: Option<Digest>,
}

/// What becomes of modules that run when their configuration fails.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, strum::EnumString)]
pub enum FailurePolicy {
    /// They go on.
    #[default]
    Retain,
    /// They are removed, unless it failed because something could not be fetched.
    Remove,
}

/// What becomes of modules when their configuration is deleted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, strum::EnumString)]
pub enum DeletionPolicy {
    /// They are removed.
    #[default]
    Delete,
    /// They go on.
    Retain,
}

/// Why a spec can't be used. The API server lets no such spec in while the CRD is ours.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum SpecError {
    /// Something has another type or value.
    #[error("{path} must be {expected}; correct the spec")]
    Wrong {
        /// Where, as `spec.repositories[0].url`.
        path: String,
        /// What is expected there.
        expected: &'static str,
    },
    /// Something has the right type, and can't be read.
    #[error("{path}: {why}; correct the spec")]
    Unreadable {
        /// Where.
        path: String,
        /// Why, in a few words.
        why: String,
    },
    /// A list or a text is too long.
    #[error("{path} is longer than {limit}; split the configuration")]
    TooLong {
        /// Where.
        path: String,
        /// How long it may be.
        limit: usize,
    },
}

impl SourceSpec {
    /// Returns what of a spec counts although the rest of it can't be read: no repositories, but the counter and what becomes
    /// of modules. A policy that can't be read itself keeps them.
    pub fn read_policies(spec: &Value) -> Self {
        let text = |name: &str| spec.get(name).filter(|value| !value.is_null()).map(Value::as_str);
        let deletion = text("deletionPolicy").map(|text| text.and_then(|text| text.parse().ok()));
        let failure = text("failurePolicy").flatten().and_then(|text| text.parse().ok());
        Self {
            reprocess_request: spec.get("reprocessRequest").and_then(Value::as_i64).unwrap_or(0),
            failure_policy: failure.unwrap_or(FailurePolicy::Retain),
            deletion_policy: deletion
                .map_or_else(DeletionPolicy::default, |policy| policy.unwrap_or(DeletionPolicy::Retain)),
            is_suspended: spec.get("suspend").and_then(Value::as_bool).unwrap_or(false),
            ..Self::default()
        }
    }

    /// Returns what the `spec` of an object in `namespace` asks for. What is not known is ignored.
    ///
    /// # Errors
    ///
    /// The first field that is wrong. URLs are not quoted.
    pub fn read(kind: SourceKind, namespace: &str, spec: &Value) -> Result<Self, SpecError> {
        let fields = Fields::of("spec", spec)?;
        let list = fields.list("repositories", MAX_REPOSITORIES)?;
        let read = |(n, value)| RepositorySpec::read(namespace, &format!("spec.repositories[{n}]"), value);
        let policies = "Retain or Remove";
        let dependencies = fields.list("dependsOn", MAX_DEPENDENCIES)?.iter().enumerate();
        let windows = fields.list("windows", update::MAX_WINDOWS)?.iter().enumerate();
        let flag = |name| fields.parsed(name, "true or false", Value::as_bool).map(Option::unwrap_or_default);
        Ok(Self {
            repositories: list.iter().enumerate().map(read).collect::<Result<_, _>>()?,
            reprocess_request: fields.parsed("reprocessRequest", "a number", Value::as_i64)?.unwrap_or(0),
            failure_policy: fields
                .parsed("failurePolicy", policies, |value| value.as_str()?.parse().ok())?
                .unwrap_or_default(),
            deletion_policy: fields
                .parsed("deletionPolicy", "Delete or Retain", |value| value.as_str()?.parse().ok())?
                .unwrap_or_default(),
            auto_enable: flag("autoEnable")? && kind == SourceKind::Cluster,
            update_interval: fields.duration(
                "updateInterval",
                update::MIN_UPDATE_INTERVAL..=update::MAX_UPDATE_INTERVAL,
                "a duration from 10s to 8760h, such as 10m",
            )?,
            is_suspended: flag("suspend")?,
            depends_on: dependencies
                .map(|(n, value)| dependency(kind, namespace, &format!("spec.dependsOn[{n}]"), value))
                .collect::<Result<_, _>>()?,
            windows: windows
                .map(|(n, value)| window(&format!("spec.windows[{n}]"), value))
                .collect::<Result<_, _>>()?,
            approval: fields
                .parsed("approval", "auto or manual", |value| value.as_str()?.parse().ok())?
                .unwrap_or_default(),
            verify: fields
                .get("verify")
                .map(|(path, value)| Verification::read(namespace, &path, value))
                .transpose()?,
        })
    }
}

/// Returns the configuration that one of this kind and namespace depends on.
fn dependency(kind: SourceKind, namespace: &str, path: &str, value: &Value) -> Result<SourceKey, SpecError> {
    let fields = Fields::of(path, value)?;
    let name = fields.text("name")?.unwrap_or_default();
    let kinds = "ClusterAddonsConfiguration or AddonsConfiguration";
    let its_kind = fields.parsed("kind", kinds, |value| value.as_str()?.parse().ok())?.unwrap_or(kind);
    let its = fields.text("namespace")?.filter(|its| !its.is_empty());
    let wrong = |field: &str, expected| Err(SpecError::Wrong { path: format!("{path}.{field}"), expected });
    if name.is_empty() {
        return wrong("name", "the name of an object");
    }
    let its = match (its_kind, kind) {
        (SourceKind::Cluster, _) if its.is_some() => {
            return wrong("namespace", "absent: a ClusterAddonsConfiguration is in none");
        }
        (SourceKind::Cluster, _) => String::new(),
        // Who may write in one namespace is not to learn what is in others.
        (SourceKind::Namespaced, SourceKind::Namespaced)
            if its.as_ref().is_some_and(|its| its != namespace) =>
        {
            return wrong("namespace", "that of the object, or absent");
        }
        (SourceKind::Namespaced, SourceKind::Namespaced) => namespace.to_owned(),
        (SourceKind::Namespaced, SourceKind::Cluster) => match its {
            Some(its) => its,
            None => return wrong("namespace", "the namespace of the AddonsConfiguration"),
        },
    };
    Ok(SourceKey { kind: its_kind, namespace: its.into(), name: name.into() })
}

fn window(path: &str, value: &Value) -> Result<UpdateWindow, SpecError> {
    let fields = Fields::of(path, value)?;
    let cron = fields.text("cron")?.unwrap_or_default();
    let expected = "a duration up to 168h, such as 2h";
    let length = fields.duration("length", Duration::from_secs(1)..=update::MAX_WINDOW, expected)?;
    let length = length.ok_or_else(|| SpecError::Wrong { path: format!("{path}.length"), expected })?;
    UpdateWindow::new(&cron, length)
        .map_err(|error| SpecError::Unreadable { path: format!("{path}.cron"), why: error.to_string() })
}

impl Verification {
    /// Reads what is wanted of signatures. Nothing wrong in it is ignored: nobody who wants signatures does without.
    fn read(namespace: &str, path: &str, value: &Value) -> Result<Self, SpecError> {
        let fields = Fields::of(path, value)?;
        let provider = |value: &Value| (value == "cosign").then_some(());
        fields.parsed("provider", "cosign", provider)?;
        let keys = fields.list("publicKeys", MAX_PUBLIC_KEYS)?.iter().enumerate();
        let keys = keys.map(|(n, key)| {
            let path = format!("{path}.publicKeys[{n}]");
            let expected = "a text with a public key in PEM";
            match key.as_str() {
                Some(key) if key.len() > MAX_PUBLIC_KEY => {
                    Err(SpecError::TooLong { path, limit: MAX_PUBLIC_KEY })
                }
                Some(key) => Ok(key.to_owned()),
                None => Err(SpecError::Wrong { path, expected }),
            }
        });
        Ok(Self {
            public_keys: keys.collect::<Result<_, _>>()?,
            secret: SecretName::read(namespace, &fields)?,
        })
    }
}

impl SecretName {
    /// Reads the field `secretRef`.
    fn read(namespace: &str, fields: &Fields<'_>) -> Result<Option<Self>, SpecError> {
        let secret = fields.get("secretRef").map(|(path, value)| {
            let fields = Fields::of(&path, value)?;
            let its = fields.text("namespace")?.unwrap_or_else(|| namespace.to_owned());
            let name = fields.text("name")?.unwrap_or_default();
            Ok(Self { namespace: its, name })
        });
        secret.transpose()
    }
}

impl RepositorySpec {
    fn read(namespace: &str, path: &str, value: &Value) -> Result<Self, SpecError> {
        let fields = Fields::of(path, value)?;
        let include = fields.list("include", MAX_INCLUDES)?;
        let included = |(n, value)| {
            let fields = Fields::of(&format!("{path}.include[{n}]"), value)?;
            let name = fields.text("name")?.unwrap_or_default();
            let digest = |value: &Value| value.as_str()?.to_ascii_lowercase().parse().ok();
            let digest = fields.parsed("digest", "sha256: and 64 digits of 0-9 and a-f", digest)?;
            Ok(Include { name, version: fields.text("version")?, digest })
        };
        Ok(Self {
            url: fields.text("url")?.unwrap_or_default(),
            secret: SecretName::read(namespace, &fields)?,
            include: include.iter().enumerate().map(included).collect::<Result<_, _>>()?,
        })
    }
}

/// The fields of an object, with the path where it is.
struct Fields<'a> {
    path: Arc<str>,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn of(path: &str, value: &'a Value) -> Result<Self, SpecError> {
        let wrong = || SpecError::Wrong { path: path.to_owned(), expected: "an object" };
        Ok(Self { path: path.into(), map: value.as_object().ok_or_else(wrong)? })
    }

    /// Returns a field with its path, unless it is absent or null.
    fn get(&self, name: &str) -> Option<(String, &'a Value)> {
        let value = self.map.get(name).filter(|value| !value.is_null())?;
        Some((format!("{}.{name}", self.path), value))
    }

    fn parsed<T>(
        &self,
        name: &str,
        expected: &'static str,
        parse: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, SpecError> {
        let Some((path, value)) = self.get(name) else { return Ok(None) };
        parse(value).map(Some).ok_or(SpecError::Wrong { path, expected })
    }

    fn text(&self, name: &str) -> Result<Option<String>, SpecError> {
        let text = self.parsed(name, "a text", Value::as_str)?;
        match text {
            Some(text) if text.len() > MAX_URL => {
                Err(SpecError::TooLong { path: format!("{}.{name}", self.path), limit: MAX_URL })
            }
            text => Ok(text.map(str::to_owned)),
        }
    }

    fn duration(
        &self,
        name: &str,
        allowed: RangeInclusive<Duration>,
        expected: &'static str,
    ) -> Result<Option<Duration>, SpecError> {
        let read =
            |value: &Value| duration::parse(value.as_str()?).ok().filter(|time| allowed.contains(time));
        self.parsed(name, expected, read)
    }

    fn list(&self, name: &str, limit: usize) -> Result<&'a [Value], SpecError> {
        let list = self.parsed(name, "a list", Value::as_array)?.map(Vec::as_slice).unwrap_or_default();
        if list.len() > limit {
            return Err(SpecError::TooLong { path: format!("{}.{name}", self.path), limit });
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(spec: &Value) -> Result<SourceSpec, SpecError> {
        SourceSpec::read(SourceKind::Namespaced, "team", spec)
    }

    #[test]
    fn a_secret_is_looked_for_in_the_namespace_of_the_configuration() {
        let spec = json!({"repositories": [
            {"url": "https://{k}@a/index.yaml", "secretRef": {"name": "s"}, "include": [{"name": "web", "version": "1.0.0"}]},
            {"url": "", "secretRef": {"name": "s", "namespace": "other"}},
        ], "reprocessRequest": 3, "failurePolicy": "Remove", "deletionPolicy": "Retain"});
        let spec = read(&spec).unwrap();
        let spaces: Vec<_> =
            spec.repositories.iter().map(|its| &*its.secret.as_ref().unwrap().namespace).collect();
        assert_eq!(spaces, ["team", "other"]);
        assert_eq!(spec.repositories[0].include[0].version.as_deref(), Some("1.0.0"));
        let rest = (spec.reprocess_request, spec.failure_policy, spec.deletion_policy);
        assert_eq!(rest, (3, FailurePolicy::Remove, DeletionPolicy::Retain));
    }

    #[test]
    fn keys_are_texts_or_in_a_secret_and_nothing_wrong_in_them_is_ignored() {
        let verify = json!({"provider": "cosign", "publicKeys": ["a", "b"], "secretRef": {"name": "keys"}});
        let secret = SecretName { namespace: "team".to_owned(), name: "keys".to_owned() };
        let wanted = Verification { public_keys: vec!["a".to_owned(), "b".to_owned()], secret: Some(secret) };
        let of = |verify: Value| read(&json!({"repositories": [], "verify": verify}));
        assert_eq!(of(verify).unwrap().verify, Some(wanted));
        assert_eq!(of(json!({})).unwrap().verify, Some(Verification::default()));
        assert_eq!(of(Value::Null).unwrap().verify, None);
        for (verify, says) in [
            (json!("x"), "spec.verify must be an object"),
            (json!({"provider": "notation"}), "spec.verify.provider must be cosign"),
            (json!({"publicKeys": [7]}), "spec.verify.publicKeys[0] must be a text"),
            (
                json!({"publicKeys": ["x".repeat(MAX_PUBLIC_KEY + 1)]}),
                "spec.verify.publicKeys[0] is longer than",
            ),
            (
                json!({"publicKeys": vec!["x"; MAX_PUBLIC_KEYS + 1]}),
                "spec.verify.publicKeys is longer than 20",
            ),
            (json!({"secretRef": []}), "spec.verify.secretRef must be an object"),
        ] {
            let error = of(verify).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }

    #[test]
    fn bundles_never_switch_themselves_on_in_a_namespace() {
        let spec = json!({"repositories": [], "autoEnable": true});
        assert!(!read(&spec).unwrap().auto_enable);
        assert!(SourceSpec::read(SourceKind::Cluster, "", &spec).unwrap().auto_enable);
    }

    #[test]
    fn policies_count_also_in_a_spec_that_can_not_be_read() {
        let policies = |spec: &Value| {
            assert!(read(spec).is_err(), "{spec}");
            let read = SourceSpec::read_policies(spec);
            assert!(read.repositories.is_empty());
            (read.reprocess_request, read.failure_policy, read.deletion_policy)
        };
        let spec = json!({"repositories": 1, "reprocessRequest": 3, "failurePolicy": "Remove", "deletionPolicy": "Retain"});
        assert_eq!(policies(&spec), (3, FailurePolicy::Remove, DeletionPolicy::Retain));
        let nothing = (0, FailurePolicy::Retain, DeletionPolicy::Delete);
        assert_eq!(policies(&json!({"repositories": 1, "deletionPolicy": null})), nothing);
        assert_eq!(policies(&json!("text")), nothing);
        let odd = json!({"failurePolicy": "Maybe", "deletionPolicy": "Retian"});
        assert_eq!(policies(&odd), (0, FailurePolicy::Retain, DeletionPolicy::Retain));
        assert_eq!(policies(&json!({"deletionPolicy": 1})).2, DeletionPolicy::Retain);
    }

    #[test]
    fn updates_are_read_with_their_limits() {
        let spec = json!({"repositories": [], "updateInterval": "1m", "suspend": true, "approval": "manual",
            "windows": [{"cron": "TZ=Europe/Berlin 0 2 * * 1-5", "length": "2h30m"}],
            "dependsOn": [{"name": "a"}, {"kind": "ClusterAddonsConfiguration", "name": "b"}]});
        let spec = read(&spec).unwrap();
        assert_eq!((spec.update_interval, spec.is_suspended), (Some(Duration::from_mins(1)), true));
        assert_eq!((spec.approval, spec.windows.len()), (Approval::Manual, 1));
        let names: Vec<String> = spec.depends_on.iter().map(SourceKey::address).collect();
        assert_eq!(names, ["ac/team/a", "cac/b"]);
        for interval in ["10s", "8760h"] {
            assert!(read(&json!({"updateInterval": interval})).is_ok(), "{interval}");
        }
        let of_cluster = |depends: &Value| {
            let spec = json!({"dependsOn": [depends]});
            SourceSpec::read(SourceKind::Cluster, "", &spec).map(|spec| spec.depends_on[0].address())
        };
        let other = json!({"kind": "AddonsConfiguration", "namespace": "shop", "name": "a"});
        assert_eq!(of_cluster(&other).unwrap(), "ac/shop/a");
        assert!(of_cluster(&json!({"kind": "AddonsConfiguration", "name": "a"})).is_err());
    }

    #[test]
    fn what_is_wrong_or_too_long_is_named_by_its_path() {
        let many = vec![json!({"url": "x"}); MAX_REPOSITORIES + 1];
        let names = vec![json!({"name": "x"}); MAX_INCLUDES + 1];
        let cases = [
            (json!([]), "spec must be an object"),
            (json!({"repositories": [{"url": 1}]}), "spec.repositories[0].url must be a text"),
            (
                json!({"repositories": [{"url": "x", "include": [{"name": "web", "digest": "sha256:0"}]}]}),
                "spec.repositories[0].include[0].digest must be sha256: and 64 digits",
            ),
            (json!({"failurePolicy": "Maybe"}), "spec.failurePolicy must be Retain or Remove"),
            (json!({"updateInterval": "9s"}), "spec.updateInterval must be a duration from 10s to 8760h"),
            (json!({"updateInterval": "8761h"}), "spec.updateInterval must be a duration from 10s to 8760h"),
            (json!({"updateInterval": 60}), "spec.updateInterval must be a duration"),
            (json!({"approval": "Maybe"}), "spec.approval must be auto or manual"),
            (json!({"windows": [{"cron": "0 2 * *", "length": "1h"}]}), "spec.windows[0].cron: "),
            (json!({"windows": [{"cron": "0 2 * * *"}]}), "spec.windows[0].length must be a duration up to"),
            (
                json!({"windows": [{"cron": "0 2 * * *", "length": "169h"}]}),
                "spec.windows[0].length must be a duration up to 168h",
            ),
            (
                json!({"windows": vec![json!({"cron": "@daily", "length": "1h"}); 51]}),
                "spec.windows is longer than 50",
            ),
            (json!({"dependsOn": vec![json!({"name": "a"}); 51]}), "spec.dependsOn is longer than 50"),
            (
                json!({"dependsOn": [{"name": "a", "namespace": "other"}]}),
                "spec.dependsOn[0].namespace must be that of the object, or absent",
            ),
            (json!({"dependsOn": [{"kind": "Repository", "name": "a"}]}), "spec.dependsOn[0].kind must be"),
            (json!({"repositories": many}), "spec.repositories is longer than 100"),
            (
                json!({"repositories": [{"include": names}]}),
                "spec.repositories[0].include is longer than 500",
            ),
            (
                json!({"repositories": [{"url": "x".repeat(MAX_URL + 1)}]}),
                "spec.repositories[0].url is longer than 4096",
            ),
        ];
        for (spec, begin) in cases {
            let error = read(&spec).unwrap_err().to_string();
            assert!(error.starts_with(begin), "{error}");
        }
    }
}
