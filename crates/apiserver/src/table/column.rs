//! The columns of each kind, as data: what they are called and where their values come from.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use objects::time;
use objects::types::Name;
use serde_json::Value;

use super::age::since;
use super::cells;
use super::jsonpath::JsonPath;
use super::text::{Cell, number};
use crate::fields::{get, list, map, text};
use crate::kind::Kind;

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading.
    pub name: Name,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: Name,
    /// `name` for the column that names the object.
    pub format: Name,
    /// What the column shows; empty for built-in kinds.
    pub description: Name,
    /// 0 is always shown, more only in wide output.
    pub priority: i64,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Age,
    Text(&'static str, &'static str),
    Int(&'static str),
    Bool(&'static str, bool),
    Length(&'static str),
    Raw(&'static str, &'static str),
    Function(Option<Cell>),
    Path(JsonPath),
}

static COLUMNS: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| {
    let lines = include_str!("../../data/columns.tsv").lines();
    lines.filter_map(|line| line.split_once('\t')).collect()
});

/// Returns the columns of a built-in kind; name and age for one without its own.
pub fn columns(kind: &Kind) -> Arc<[Column]> {
    let key = format!("{}/{}", kind.group, kind.plural);
    match COLUMNS.get(key.as_str()) {
        Some(line) => line.split('\t').filter_map(parse).collect(),
        None => custom_columns(&Value::Null),
    }
}

fn parse(field: &'static str) -> Option<Column> {
    let mut parts = field.split('|');
    Some(Column {
        name: parts.next()?.into(),
        kind: parts.next()?.into(),
        format: parts.next()?.into(),
        description: "".into(),
        priority: parts.next()?.parse().ok()?,
        source: source(parts.next()?),
    })
}

fn source(text: &'static str) -> Source {
    if text == "age" {
        return Source::Age;
    }
    if let Some(function) = text.strip_prefix('=') {
        return Source::Function(cells::find(function));
    }
    let (kind, path) = text.split_once(' ').unwrap_or(("", text));
    let (path, default) = path.split_once('?').unwrap_or((path, ""));
    let path = path.strip_prefix('.').unwrap_or(path);
    match kind {
        "int" => Source::Int(path),
        "bool" => Source::Bool(path, default == "true"),
        "len" => Source::Length(path),
        "raw" => Source::Raw(path, default),
        _ => Source::Text(path, default),
    }
}

/// Returns the columns that a custom resource definition asks for in `additionalPrinterColumns`, the name first.
pub fn custom_columns(additional: &Value) -> Arc<[Column]> {
    let name = Column {
        name: "Name".into(),
        kind: "string".into(),
        format: "name".into(),
        description: "".into(),
        priority: 0,
        source: Source::Text("metadata.name", ""),
    };
    let own = additional.as_array().map(Vec::as_slice).unwrap_or_default();
    if own.is_empty() {
        let age = Column {
            name: "Age".into(),
            kind: "date".into(),
            format: "".into(),
            source: Source::Path(JsonPath::parse(".metadata.creationTimestamp")),
            ..name.clone()
        };
        return [name, age].into();
    }
    let column = |column: &Value| Column {
        name: text(column, "name").to_owned().into(),
        kind: text(column, "type").to_owned().into(),
        format: text(column, "format").to_owned().into(),
        description: text(column, "description").to_owned().into(),
        priority: number(column, "priority"),
        source: Source::Path(JsonPath::parse(text(column, "jsonPath"))),
    };
    std::iter::once(name).chain(own.iter().map(column)).collect()
}

impl Column {
    /// Returns whether the value of the column can be computed.
    #[cfg(test)]
    pub(super) fn is_known(&self) -> bool {
        !matches!(self.source, Source::Function(None))
    }

    pub(super) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match &self.source {
            Source::Age => Value::from(since(get(object, "metadata.creationTimestamp").as_str(), now)),
            Source::Text(path, default) => match get(object, path) {
                Value::String(text) if !text.is_empty() => Value::from(text.as_str()),
                Value::Number(number) => Value::from(number.to_string()),
                _ => Value::from(*default),
            },
            Source::Int(path) => Value::from(number(object, path)),
            Source::Bool(path, default) => Value::from(get(object, path).as_bool().unwrap_or(*default)),
            Source::Length(path) => {
                let length = list(object, path).len() + map(object, path).len();
                Value::from(length)
            }
            Source::Raw(path, default) => match get(object, path) {
                Value::Null => Value::from(*default),
                value => value.clone(),
            },
            Source::Function(cell) => cell.map_or(Value::Null, |cell| cell(object, now)),
            Source::Path(path) => self.custom_cell(path, object, now),
        }
    }

    fn custom_cell(&self, path: &JsonPath, object: &Value, now: Timestamp) -> Value {
        let Some(value) = path.first(object) else {
            return Value::Null;
        };
        match (&*self.kind, value) {
            ("integer", Value::Number(number)) => match number.as_i64() {
                Some(integer) => Value::from(integer),
                #[expect(clippy::cast_possible_truncation, reason = "whole numbers are asked for")]
                None => Value::from(number.as_f64().unwrap_or_default() as i64),
            },
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) | ("string", Value::String(_)) => {
                value.clone()
            }
            ("date", Value::String(text)) => match time::parse(text) {
                Some(_) => Value::from(since(Some(text), now)),
                None => Value::from("<invalid>"),
            },
            ("string", value) => Value::from(value.to_string()),
            (_, _) => Value::Null,
        }
    }
}
