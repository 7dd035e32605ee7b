//! Names of releases.

/// The most characters that the name of a release may have.
pub const MAX_RELEASE_NAME: usize = 53;

/// A name that no release may have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is none.
    #[error("release name \"\": no name provided")]
    Missing,
    /// It is too long, or has characters that it may not have.
    #[error(
        "release name {0:?}: invalid release name, must match regex \
         ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ \
         and the length must not be longer than 53"
    )]
    Invalid(String),
}

/// Checks the name of a release.
pub fn release_name(name: &str) -> Result<(), NameError> {
    let is_label = |label: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        edge(label.chars().next())
            && edge(label.chars().next_back())
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    if name.is_empty() {
        return Err(NameError::Missing);
    }
    if name.len() <= MAX_RELEASE_NAME && name.split('.').all(is_label) {
        Ok(())
    } else {
        Err(NameError::Invalid(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::release_name;

    #[test]
    fn names_are_labels_with_dots() {
        for (name, valid) in [
            ("my-rel.x", true),
            ("a", true),
            ("", false),
            ("Bad_Name", false),
            ("-a", false),
            ("a..b", false),
            ("a.", false),
            (&"r".repeat(53), true),
            (&"r".repeat(54), false),
        ] {
            assert_eq!(release_name(name).is_ok(), valid, "{name}");
        }
    }
}
