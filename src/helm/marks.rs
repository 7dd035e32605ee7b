//! What is written on the records of a release besides the labels that helm writes: where its module and its chart come from.

use std::collections::BTreeMap;

use engine::{Package, SourceKey};
use serde_json::{Map, Value};

use super::package_mark::{self, PackageMark};
use super::source_mark::{SOURCE, SourceMark};

/// The labels of an origin.
pub(super) const ORIGIN: [&str; 3] = [SOURCE, package_mark::PACKAGE, package_mark::VERSION];

/// Where the module and the chart of a release come from.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Origin {
    /// Its module comes from a source.
    pub(super) source: Option<SourceMark>,
    /// Its module names a chart.
    pub(super) package: Option<PackageMark>,
}

/// The labels of an origin that a record has. An empty one is none.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct OriginLabels(BTreeMap<&'static str, String>);

/// What we write on the record of a revision, besides the labels that helm writes.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) origin: Origin,
}

impl Origin {
    /// Returns that of a module from this source that is installed from this package.
    pub(super) fn of(source: Option<&SourceKey>, package: Option<&Package>) -> Self {
        Self { source: source.map(SourceMark::of), package: package.map(PackageMark::of) }
    }

    /// Returns the labels that the record has to have.
    pub(super) fn labels(&self) -> OriginLabels {
        let mut labels = BTreeMap::new();
        labels.extend(self.source.as_ref().map(|mark| (SOURCE, mark.label().to_owned())));
        if let Some(PackageMark { digest, version, .. }) = &self.package {
            labels
                .extend([(package_mark::PACKAGE, digest.clone()), (package_mark::VERSION, version.clone())]);
        }
        OriginLabels(labels)
    }

    fn annotations(&self) -> BTreeMap<&'static str, &str> {
        let source = self.source.as_ref().map(|mark| (SOURCE, mark.annotation()));
        let package = self.package.as_ref().map(|mark| (package_mark::PACKAGE, mark.annotation.as_str()));
        source.into_iter().chain(package).collect()
    }

    /// Returns the labels and annotations that mark a record so; what is null takes a mark away.
    pub(super) fn change(&self) -> (Value, Value) {
        let labels = self.labels().0;
        let annotations = self.annotations();
        let change = |value: &dyn Fn(&str) -> Option<Value>| {
            let fields = ORIGIN.map(|name| (name.to_owned(), value(name).unwrap_or_default()));
            Value::Object(Map::from_iter(fields))
        };
        (
            change(&|name| labels.get(name).map(|label| label.as_str().into())),
            change(&|name| annotations.get(name).map(|text| (*text).into())),
        )
    }
}

impl OriginLabels {
    /// Returns those of a record with these labels.
    pub(super) fn of(labels: &BTreeMap<String, String>) -> Self {
        let label = |name: &'static str| Some((name, labels.get(name).filter(|it| !it.is_empty())?.clone()));
        Self(ORIGIN.into_iter().filter_map(label).collect())
    }
}

impl Marks {
    /// Returns all labels.
    pub(super) fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.extend(self.origin.labels().0.into_iter().map(|(name, label)| (name.to_owned(), label)));
        labels
    }

    /// Returns the annotations.
    pub(super) fn annotations(&self) -> BTreeMap<&'static str, &str> {
        self.origin.annotations()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn packaged() -> Origin {
        let package = Package {
            repository: "corp".into(),
            chart: "alpha".into(),
            version: "1.0".into(),
            digest: format!("sha256:{}", "ab".repeat(32)).parse().unwrap(),
        };
        Origin { source: None, package: Some(PackageMark::of(&package)) }
    }

    #[test]
    fn a_change_of_marks_takes_away_those_that_are_not_wanted() {
        let (labels, annotations) = packaged().change();
        assert_eq!((&labels[SOURCE], &labels[package_mark::VERSION]), (&Value::Null, &json!("1.0")));
        assert_eq!(annotations[SOURCE], Value::Null);
        assert!(annotations[package_mark::PACKAGE].as_str().unwrap().starts_with("corp/alpha 1.0 sha256:ab"));
        let (labels, _) = Origin::default().change();
        assert!(labels.as_object().unwrap().values().all(Value::is_null) && labels[SOURCE].is_null());
    }

    #[test]
    fn the_labels_that_are_read_are_those_that_are_written() {
        let source = Some(SourceMark::of(&SourceKey::cluster("a")));
        for origin in [Origin::default(), packaged(), Origin { source, ..packaged() }] {
            let marks = Marks { origin: origin.clone(), ..Marks::default() };
            assert_eq!(OriginLabels::of(&marks.all_labels()), origin.labels());
        }
        let emptied = [(SOURCE.to_owned(), String::new())].into();
        assert_eq!(OriginLabels::of(&emptied), OriginLabels::default());
    }
}
