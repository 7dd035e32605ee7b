//! `module.yaml`: what a module says about itself beside its chart. See docs/modules.md#moduleyaml.
//!
//! It is strict: a key that nobody knows is an error, since a typing error must not go unnoticed.

use std::path::Path;
use std::sync::Arc;

use engine::{Failure, FailureKind};
use serde_json::{Map, Value};

use super::mapping::read_mapping;

/// The name of the file.
const FILE: &str = "module.yaml";

/// All keys that there are.
const KEYS: [&str; 1] = ["namespace"];

/// What `module.yaml` says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct ModuleFile {
    /// The namespace of the release.
    pub(super) namespace: Option<Arc<str>>,
}

impl ModuleFile {
    /// Reads the file of the module in a directory. Without a file it says nothing.
    pub(super) fn read(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join(FILE);
        let wrong =
            |message: String| Failure::new(FailureKind::Files, format!("{}: {message}", path.display()));
        match read_mapping(&path).map_err(wrong)? {
            None => Ok(Self::default()),
            Some(fields) => Self::of(&fields).map_err(wrong),
        }
    }

    fn of(fields: &Map<String, Value>) -> Result<Self, String> {
        if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let shown: String = unknown.chars().take(100).collect();
            return Err(match engine::view::nearest(&shown, KEYS) {
                Some(near) => format!("there is no key {shown:?}; did you mean {near}?"),
                None => format!("there is no key {shown:?}; the keys are {}", KEYS.join(", ")),
            });
        }
        Ok(Self { namespace: fields.get("namespace").map(namespace).transpose()? })
    }
}

fn namespace(value: &Value) -> Result<Arc<str>, String> {
    let wrong = || {
        "namespace: should be the name of a namespace: at most 63 small letters, digits and dashes between them"
            .to_owned()
    };
    let name = value.as_str().ok_or_else(wrong)?;
    if objects::names::label(name).is_empty() { Ok(name.into()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ModuleFile, String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), text).unwrap();
        ModuleFile::read(directory.path()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_is_not_known_or_no_name_is_an_error_that_names_file_and_key() {
        let named = ModuleFile { namespace: Some("web-1".into()) };
        assert_eq!(read("namespace: web-1"), Ok(named));
        for nothing in ["", "{}", "# c"] {
            assert_eq!(read(nothing), Ok(ModuleFile::default()), "{nothing:?}");
        }
        assert_eq!(ModuleFile::read(Path::new("/nowhere")), Ok(ModuleFile::default()));
        for (text, problem) in [
            ("namspace: web", r#"module.yaml: there is no key "namspace"; did you mean namespace?"#),
            ("colour: red", r#"module.yaml: there is no key "colour"; the keys are namespace"#),
            ("namespace: Web", "module.yaml: namespace: should be the name of a namespace"),
            ("namespace: a.b", "module.yaml: namespace: should be"),
            ("namespace: ''", "module.yaml: namespace: should be"),
            ("namespace: 7", "module.yaml: namespace: should be"),
            ("namespace:", "module.yaml: namespace: should be"),
            ("- a", "module.yaml: should be a mapping"),
            ("a: [b", "module.yaml: "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
