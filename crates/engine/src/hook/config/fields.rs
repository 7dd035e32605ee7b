//! Reads the properties of one mapping and notes everything that does not fit.

use serde_json::{Map, Value};
use values::json_type;

use super::report::{Path, Report};

/// A mapping that is being read.
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: Path,
    report: &'a Report,
    known: Vec<&'static str>,
    /// Whether a property that is null counts as one that is missing.
    passes_nulls: bool,
}

impl<'a> Fields<'a> {
    /// Returns a reader of `map`, which is at `path`.
    pub(super) fn new(map: &'a Map<String, Value>, path: Path, report: &'a Report) -> Self {
        Self { map, path, report, known: Vec::new(), passes_nulls: false }
    }

    /// Returns a reader to which null is as good as nothing, here and in what is inside.
    pub(super) fn without_nulls(self) -> Self {
        Self { passes_nulls: true, ..self }
    }

    /// Returns where the mapping is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the mapping has this property.
    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Notes a property that is missing.
    pub(super) fn require(&self, keys: &[&str]) {
        for key in keys.iter().filter(|key| !self.has(key)) {
            self.report.note(&self.path, format!("{} is required", self.path.key(key)));
        }
    }

    /// Notes a mapping that has too few properties.
    pub(super) fn require_some(&self, least: usize) {
        if self.map.len() < least {
            self.report.note(&self.path, format!("{} should have at least {least} properties", self.path));
        }
    }

    /// Notes all properties that were not asked for, with the name that was probably meant.
    pub(super) fn finish(self) {
        for key in self.map.keys().filter(|key| !self.known.contains(&key.as_str())) {
            let path = self.path.key(key);
            // The version counts as known everywhere: without it, everything else looks wrong.
            let known = self.known.iter().copied().chain(["configVersion"]);
            let hint = match known.min_by_key(|known| distance(known, key)) {
                Some(known) if known != key && distance(known, key) <= 2 => {
                    format!(", did you mean '{known}'?")
                }
                Some(_) | None => String::new(),
            };
            self.report.note(&path, format!("{path} is a forbidden property{hint}"));
        }
    }

    /// Returns a text.
    pub(super) fn string(&mut self, key: &'static str) -> Option<String> {
        let (value, path) = self.value(key)?;
        let text = value.as_str().map(ToOwned::to_owned);
        self.expect(&path, text, "string", value)
    }

    /// Returns a text that is one of `allowed`.
    pub(super) fn word(&mut self, key: &'static str, allowed: &[&'static str]) -> Option<&'static str> {
        let text = self.string(key)?;
        let path = self.path.key(key);
        self.one_of(&path, &text, allowed)
    }

    /// Returns a boolean.
    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let (value, path) = self.value(key)?;
        self.expect(&path, value.as_bool(), "boolean", value)
    }

    /// Asks for an amount: a text or a number.
    pub(super) fn quantity(&mut self, key: &'static str) {
        let Some((value, path)) = self.value(key) else { return };
        let amount = (value.is_string() || value.is_number()).then_some(());
        self.expect(&path, amount, "string", value);
    }

    /// Returns a whole number, however it is written.
    pub(super) fn integer(&mut self, key: &'static str) -> Option<i64> {
        let (value, path) = self.value(key)?;
        self.expect(&path, whole(value), "integer", value)
    }

    /// Returns a mapping.
    pub(super) fn object(&mut self, key: &'static str) -> Option<Fields<'a>> {
        let (value, path) = self.value(key)?;
        self.as_fields(value, path)
    }

    /// Returns a list of at least `least` mappings.
    pub(super) fn objects(&mut self, key: &'static str, least: usize) -> Option<Vec<Fields<'a>>> {
        let items = self.items(key, least)?;
        Some(items.into_iter().filter_map(|(value, path)| self.as_fields(value, path)).collect())
    }

    /// Returns a list of at least `least` texts.
    pub(super) fn strings(&mut self, key: &'static str, least: usize) -> Option<Vec<String>> {
        let items = self.items(key, least)?;
        let text = |(value, path): (&Value, Path)| {
            self.expect(&path, value.as_str().map(ToOwned::to_owned), "string", value)
        };
        Some(items.into_iter().filter_map(text).collect())
    }

    /// Returns a list of texts, each one of `allowed`.
    pub(super) fn words(
        &mut self,
        key: &'static str,
        least: usize,
        allowed: &[&'static str],
    ) -> Option<Vec<&'static str>> {
        let items = self.items(key, least)?;
        let word = |(value, path): (&Value, Path)| {
            let text = self.expect(&path, value.as_str(), "string", value)?;
            self.one_of(&path, text, allowed)
        };
        Some(items.into_iter().filter_map(word).collect())
    }

    /// Returns a mapping from any key to a text.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<(String, String)>> {
        let (value, path) = self.value(key)?;
        let map = self.expect(&path, value.as_object(), "object", value)?;
        let text = |(key, value): (&String, &Value)| {
            let text = self.expect(&path.key(key), value.as_str(), "string", value)?;
            Some((key.clone(), text.to_owned()))
        };
        Some(map.iter().filter_map(text).collect())
    }

    fn value(&mut self, key: &'static str) -> Option<(&'a Value, Path)> {
        self.known.push(key);
        let value = self.map.get(key).filter(|value| !(self.passes_nulls && value.is_null()))?;
        Some((value, self.path.key(key)))
    }

    fn items(&mut self, key: &'static str, least: usize) -> Option<Vec<(&'a Value, Path)>> {
        let (value, path) = self.value(key)?;
        let items = self.expect(&path, value.as_array(), "array", value)?;
        if items.len() < least {
            self.report.note(&path, format!("{path} should have at least {least} items"));
        }
        Some(items.iter().enumerate().map(|(index, item)| (item, path.item(index))).collect())
    }

    fn as_fields(&self, value: &'a Value, path: Path) -> Option<Fields<'a>> {
        let map = self.expect(&path, value.as_object(), "object", value)?;
        let fields = Fields::new(map, path, self.report);
        Some(Fields { passes_nulls: self.passes_nulls, ..fields })
    }

    fn one_of(&self, path: &Path, text: &str, allowed: &[&'static str]) -> Option<&'static str> {
        let found = allowed.iter().copied().find(|word| *word == text);
        if found.is_none() {
            self.report.note(path, format!("{path} should be one of [{}]", allowed.join(" ")));
        }
        found
    }

    fn expect<T>(&self, path: &Path, read: Option<T>, wanted: &str, found: &Value) -> Option<T> {
        if read.is_none() {
            let found = json_type(found);
            self.report.note(path, format!("{path} must be of type {wanted}: \"{found}\""));
        }
        read
    }
}

/// Returns a number without a fraction; huge ones are cut to what fits.
fn whole(value: &Value) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
    #[expect(clippy::cast_possible_truncation, reason = "the cast keeps to the nearest number that fits")]
    Some(number as i64)
}

/// Returns how many bytes must be added, left out or replaced to make one name the other; case does not count.
pub fn distance(a: &str, b: &str) -> usize {
    let bytes = |text: &str| text.to_ascii_lowercase().into_bytes();
    strsim::generic_levenshtein(&bytes(a), &bytes(b))
}
