//! A value of a test file with its position, so that every error names file, line and key.

use std::cell::RefCell;
use std::path::Path;

use engine::hook::config::distance;
use serde_json::{Map, Value};
use values::yaml::locate;

/// Everything that is wrong with a file.
#[derive(Debug)]
pub(super) struct Problems<'a> {
    path: &'a Path,
    text: &'a str,
    found: RefCell<Vec<(String, String)>>,
}

/// A value and its pointer in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    pointer: &'a Pointer<'a>,
    problems: &'a Problems<'a>,
}

/// The path from the root of the file to a value.
#[derive(Debug)]
pub(super) enum Pointer<'a> {
    Root,
    Below(&'a Pointer<'a>, String),
}

impl Pointer<'_> {
    /// Returns it as a JSON pointer.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Below(parent, token) => {
                format!("{}/{}", parent.text(), token.replace('~', "~0").replace('/', "~1"))
            }
        }
    }

    /// Returns it for people: `tests[0].expect.log`.
    fn shown(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Below(parent, token) => {
                let before = parent.shown();
                match (before.is_empty(), token.parse::<usize>()) {
                    (_, Ok(index)) => format!("{before}[{index}]"),
                    (true, Err(_)) => token.clone(),
                    (false, Err(_)) => format!("{before}.{token}"),
                }
            }
        }
    }
}

impl<'a> Problems<'a> {
    pub(super) fn new(path: &'a Path, text: &'a str) -> Self {
        Self { path, text, found: RefCell::default() }
    }

    /// Returns all problems in the order of their lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let found = self.found.take();
        let mut placed: Vec<_> =
            found.into_iter().map(|(pointer, message)| (locate(self.text, &pointer), message)).collect();
        placed.sort();
        let line = |(position, message): (Option<values::yaml::Position>, String)| match position {
            Some(position) => {
                format!("{}:{}:{}: {message}", self.path.display(), position.line, position.column)
            }
            None => format!("{}: {message}", self.path.display()),
        };
        placed.into_iter().map(line).collect()
    }
}

/// Returns the known word that is probably meant by `word`.
pub(super) fn nearest<'k>(known: impl IntoIterator<Item = &'k str>, word: &str) -> Option<&'k str> {
    known.into_iter().min_by_key(|known| distance(known, word)).filter(|known| distance(known, word) <= 2)
}

impl<'a> Node<'a> {
    pub(super) fn new(value: &'a Value, pointer: &'a Pointer<'a>, problems: &'a Problems<'a>) -> Self {
        Self { value, pointer, problems }
    }

    /// Returns where it is, as a JSON pointer.
    pub(super) fn pointer(&self) -> String {
        self.pointer.text()
    }

    /// Records a problem of this value.
    pub(super) fn wrong(&self, message: &str) {
        let shown = self.pointer.shown();
        let message = if shown.is_empty() { message.to_owned() } else { format!("{shown}: {message}") };
        self.problems.found.borrow_mut().push((self.pointer.text(), message));
    }

    /// Calls `read` with the value of a key, unless it is missing or null.
    pub(super) fn key<T>(&self, key: &str, read: impl FnOnce(Node<'_>) -> T) -> Option<T> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        let pointer = Pointer::Below(self.pointer, key.to_owned());
        Some(read(Node { value, pointer: &pointer, problems: self.problems }))
    }

    /// Checks that it is a mapping with known keys only; returns whether it is a mapping.
    pub(super) fn knows(&self, known: &[&str]) -> bool {
        let Some(map) = self.value.as_object() else {
            self.wrong(&format!("should be a mapping with the keys {}", known.join(", ")));
            return false;
        };
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let hint = match nearest(known.iter().copied(), key) {
                Some(name) => format!("did you mean {name}?"),
                None => format!("known are {}", known.join(", ")),
            };
            let pointer = Pointer::Below(self.pointer, key.clone());
            Node { value: self.value, pointer: &pointer, problems: self.problems }
                .wrong(&format!("unknown key; {hint}"));
        }
        true
    }

    /// Calls `read` with each item of a list.
    pub(super) fn each<T>(&self, mut read: impl FnMut(Node<'_>) -> T) -> Vec<T> {
        let Some(items) = self.value.as_array() else {
            self.wrong("should be a list");
            return Vec::new();
        };
        let item = |(index, value): (usize, &Value)| {
            let pointer = Pointer::Below(self.pointer, index.to_string());
            read(Node { value, pointer: &pointer, problems: self.problems })
        };
        items.iter().enumerate().map(item).collect()
    }

    pub(super) fn text(&self) -> String {
        match self.value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => self.value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                self.wrong("should be a text");
                String::new()
            }
        }
    }

    pub(super) fn map(&self) -> Map<String, Value> {
        self.value.as_object().cloned().unwrap_or_else(|| {
            self.wrong("should be a mapping");
            Map::new()
        })
    }

    pub(super) fn texts(&self) -> Vec<String> {
        self.each(|item| item.text())
    }

    /// Returns a list of objects; each must say its kind and name.
    pub(super) fn objects(&self) -> Vec<Value> {
        self.each(|item| item.object())
    }

    /// Returns an object of Kubernetes.
    pub(super) fn object(&self) -> Value {
        let text = |pointer: &str| self.value.pointer(pointer).and_then(Value::as_str).is_some();
        if !self.value.is_object() {
            self.wrong("should be an object with apiVersion, kind and metadata.name");
        } else if !text("/kind") {
            self.wrong("its kind is missing");
        } else if !text("/metadata/name") {
            self.wrong("its metadata.name is missing");
        }
        self.value.clone()
    }

    /// Returns a list of the names of objects: kind, name, and maybe apiVersion and namespace.
    pub(super) fn references(&self) -> Vec<Value> {
        self.each(|item| {
            if item.knows(&["apiVersion", "kind", "namespace", "name"]) {
                for key in ["kind", "name"] {
                    if item.value.get(key).and_then(Value::as_str).is_none() {
                        item.wrong(&format!("{key} is missing"));
                    }
                }
            }
            item.value.clone()
        })
    }
}
