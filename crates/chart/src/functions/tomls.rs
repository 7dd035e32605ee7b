//! TOML.

use super::args::{ANY, MAP, STRING, any, string};
use super::times::{TimeObject, time};
use crate::call::Function;
use crate::gotime::{Time, Zone};
use crate::value::{Entries, List, ListClass, Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("fromToml", &[STRING], MAP, |_, args| Ok(read(&string(args, 0)))),
    Function::new("toToml", &[ANY], STRING, |context, args| {
        let value = any(args, 0);
        if value.is_nil() {
            return Err("reflect: call of reflect.Value.Type on zero Value".into());
        }
        super::shown::charge(context, value)?;
        let text = super::toml_writer::write(value).unwrap_or_else(|error| error);
        context.charge(text.len())?;
        Ok(text.into())
    }),
];

fn read(text: &str) -> Value {
    match text.parse::<toml::Table>() {
        Ok(table) => Map::new(entries(table)).into(),
        Err(error) => {
            let map = Map::new(Entries::new());
            map.insert("Error", explained(text, &error).into());
            map.into()
        }
    }
}

/// Says what is wrong as Helm does; where that is not known, in the words of the parser.
fn explained(text: &str, error: &toml::de::Error) -> String {
    super::toml_problem::find(text).unwrap_or_else(|| {
        let at = error.span().map_or(text.len(), |span| span.start);
        let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
        format!("toml: line {line}: {}", error.message())
    })
}

fn entries(table: toml::Table) -> Entries {
    table.into_iter().map(|(key, item)| (key.into(), value(item))).collect()
}

fn value(item: toml::Value) -> Value {
    match item {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => Value::Int64(number),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(truth) => truth.into(),
        toml::Value::Datetime(datetime) => date(&datetime.to_string()),
        toml::Value::Array(items) => {
            let tables = !items.is_empty() && items.iter().all(toml::Value::is_table);
            let class = if tables { &ListClass::MAPS } else { &ListClass::ANY };
            Value::List(List::of(class, items.into_iter().map(value).collect()))
        }
        toml::Value::Table(table) => Map::new(entries(table)).into(),
    }
}

/// Reads a date, a time of the day, or both, with an offset or without.
fn date(text: &str) -> Value {
    let layouts: [&[u8]; 4] = [
        b"2006-01-02T15:04:05.999999999Z07:00",
        b"2006-01-02T15:04:05.999999999",
        b"2006-01-02",
        b"15:04:05.999999999",
    ];
    let parsed = layouts.iter().find_map(|layout| Time::parse(layout, text.as_bytes(), &Zone::Utc).ok());
    TimeObject::value(parsed.unwrap_or_else(TimeObject::zero))
}

/// Returns how TOML writes a time.
pub(super) fn written_time(value: &Value) -> Option<String> {
    let text = time(value)?.format(b"2006-01-02T15:04:05.999999999Z07:00");
    Some(String::from_utf8_lossy(&text).into_owned())
}
