//! Which versions people have approved for an object, by the annotation that names them.

use std::collections::BTreeMap;

use chart::semver::Version;

use super::Digest;

/// The versions that may come: what an annotation says, `1.2.0`, `web=1.2.0`, or the digest of a bundle, between commas.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Approvals {
    entries: Vec<ApprovalEntry>,
    /// What the names of modules have in front of those of their addons.
    prefix: String,
    /// The versions in force, by the names of their addons, if they are known.
    in_force: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct ApprovalEntry {
    /// Whose version it is; `None` for all.
    name: Option<String>,
    /// A version, or a digest.
    what: String,
}

impl Approvals {
    /// Reads the annotation of an object in a namespace, which is empty for one of the cluster.
    pub fn parse(annotation: &str, namespace: &str) -> Self {
        let entry = |text: &str| match text.split_once('=') {
            Some((name, what)) => ApprovalEntry { name: Some(name.to_owned()), what: what.to_owned() },
            None => ApprovalEntry { name: None, what: text.to_owned() },
        };
        let texts = annotation.split([',', ' ']).map(str::trim).filter(|text| !text.is_empty());
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}-") };
        Self { entries: texts.map(entry).collect(), prefix, in_force: None }
    }

    /// Records which versions are in force, by the names of their addons.
    #[must_use]
    pub fn above<'v>(self, versions: impl Iterator<Item = (&'v str, &'v str)>) -> Self {
        let owned = |(addon, version): (&str, &str)| (addon.to_owned(), version.to_owned());
        Self { in_force: Some(versions.map(owned).collect()), ..self }
    }

    /// Returns whether a version of an addon may take the place of the version `running`. Other bytes under that version are approved
    /// by their digest only.
    pub fn has(&self, addon: &str, running: &str, version: &str, digest: Option<&Digest>) -> bool {
        let bare = |text: &str| text.strip_prefix('v').unwrap_or(text).to_owned();
        let is_other = bare(version) != bare(running);
        self.entries.iter().any(|ApprovalEntry { name, what }| {
            let own = |name: &str| name.strip_prefix(&*self.prefix).unwrap_or(name) == addon;
            let is_its = name.as_deref().is_none_or(|name| name == addon || own(name));
            let is_digest = digest.is_some_and(|digest| *what == digest.as_str());
            is_its && (is_digest || (is_other && bare(what) == bare(version)))
        })
    }

    /// Returns whether a version that is not the highest one has to be fetched: it is approved, and higher than the one in force, if
    /// that is known.
    pub fn call_for(&self, addon: &str, version: &str, digest: Option<&Digest>) -> bool {
        match self.in_force.as_ref().map(|in_force| in_force.get(addon)) {
            None => self.has(addon, "", version, digest),
            // What is new waits for nothing.
            Some(None) => false,
            Some(Some(running)) => is_higher(version, running) && self.has(addon, running, version, digest),
        }
    }
}

/// Returns whether a version is higher than another one.
pub(crate) fn is_higher(version: &str, than: &str) -> bool {
    let (Ok(version), Ok(than)) = (Version::parse(version), Version::parse(than)) else { return false };
    version.precedence(&than).is_gt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_approved_by_its_name_for_one_or_for_all_or_by_its_digest() {
        let digest: Digest = format!("sha256:{}", "1".repeat(64)).parse().unwrap();
        let other: Digest = format!("sha256:{}", "2".repeat(64)).parse().unwrap();
        for (annotation, is_approved) in [
            ("1.2.0", true),
            ("v1.2.0", true),
            ("1.1.0, 1.2.0", true),
            ("web=1.2.0", true),
            ("team-web=1.2.0", true),
            ("db=1.2.0", false),
            ("1.2", false),
            ("", false),
            (digest.as_str(), true),
            (other.as_str(), false),
        ] {
            let approvals = Approvals::parse(annotation, "team");
            assert_eq!(approvals.has("web", "1.0.0", "1.2.0", Some(&digest)), is_approved, "{annotation}");
        }
        let same = Approvals::parse("1.2.0", "");
        assert!(!same.has("web", "v1.2.0", "1.2.0", Some(&digest)), "other bytes are another thing");
    }

    #[test]
    fn only_what_is_above_the_version_in_force_is_called_for() {
        let any = Approvals::parse("1.1.0,1.3.0", "");
        let approvals = any.clone().above([("web", "1.2.0")].into_iter());
        let called: Vec<&str> = ["1.1.0", "1.2.0", "1.3.0", "1.4.0"]
            .into_iter()
            .filter(|version| approvals.call_for("web", version, None))
            .collect();
        assert_eq!(called, ["1.3.0"]);
        assert!(!approvals.call_for("db", "1.3.0", None), "a new module waits for nothing");
        assert!(any.call_for("db", "1.1.0", None) && !any.call_for("db", "1.2.0", None));
    }
}
