//! The mark of a release whose module names a chart: which version it is installed from, and which bytes.
//!
//! The label with the digest is that of the package's parts, so one selector finds both.

use engine::Package;
use objects::legal;

/// The name of the label with the beginning of the digest, and of the annotation with all of it.
pub(super) const PACKAGE: &str = "addon-operator.io/package";

/// The name of the label with the version.
pub(super) const VERSION: &str = "addon-operator.io/chart-version";

/// How many digits of the digest the label has.
const DIGITS: usize = 40;

/// What the records of a release are marked with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct PackageMark {
    /// The beginning of the digest: all of it fits no label.
    pub(super) digest: String,
    /// The version, as far as it is legal.
    pub(super) version: String,
    /// For people: Repository, chart, version and digest.
    pub(super) annotation: String,
}

impl PackageMark {
    pub(super) fn of(package: &Package) -> Self {
        let Package { repository, chart, version, digest } = package;
        Self {
            digest: digest.hex().chars().take(DIGITS).collect(),
            version: legal::label(version),
            annotation: format!("{repository}/{chart} {version} {digest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_legal_whatever_the_version_is_called() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let package = Package {
            repository: "corp".into(),
            chart: "alpha".into(),
            version: "1.0.0+3".into(),
            digest: digest.parse().unwrap(),
        };
        let mark = PackageMark::of(&package);
        assert_eq!(mark.annotation, format!("corp/alpha 1.0.0+3 {digest}"));
        assert_eq!(mark.digest, "ab".repeat(20));
        assert!(!mark.version.contains('+') && mark.version.starts_with("1.0.0"), "{}", mark.version);
    }
}
