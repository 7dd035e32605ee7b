//! TOML.

mod number;
mod problem;
mod writer;

use golang::time::{Time, Zone};

use super::args::{ANY, MAP, STRING, any, string};
use super::time_object::{TimeObject, time};
use crate::call::Function;
use crate::value::{Entries, List, ListType, Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("fromToml", &[STRING], MAP, |_, args| Ok(read(&string(args, 0)))),
    Function::new("toToml", &[ANY], STRING, |context, args| {
        let value = any(args, 0);
        if value.is_nil() {
            return Err("reflect: call of reflect.Value.Type on zero Value".into());
        }
        super::format::charge(context, value)?;
        let text = writer::write(value).unwrap_or_else(|error| error);
        context.charge(text.len())?;
        Ok(text.into())
    }),
];

fn read(text: &str) -> Value {
    // The parser takes things of TOML 1.1 that Helm refuses, so it is asked last.
    let parsed = match problem::find(text) {
        Some(problem) => Err(problem),
        None => text.parse::<toml::Table>().map_err(|error| explained(text, &error)),
    };
    match parsed {
        Ok(table) => Map::new(entries(table)).into(),
        Err(problem) => {
            let map = Map::new(Entries::new());
            map.insert("Error", problem.into());
            map.into()
        }
    }
}

/// Says what is wrong in the words of the parser.
fn explained(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(text.len(), |span| span.start);
    let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
    format!("toml: line {line}: {}", error.message())
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
            let class = if tables { &ListType::MAPS } else { &ListType::ANY };
            Value::List(List::of(class, items.into_iter().map(value).collect()))
        }
        toml::Value::Table(table) => Map::new(entries(table)).into(),
    }
}

/// Reads a date, a time of the day, or both, with an offset or without.
fn date(text: &str) -> Value {
    let whole = Time::parse(WHOLE, text.as_bytes(), &Zone::Utc).ok();
    let parsed = whole.or_else(|| {
        LOCAL.iter().find_map(|(layout, name)| {
            let zone = Zone::Fixed { name: (*name).to_owned(), offset: 0 };
            Time::parse(layout, text.as_bytes(), &zone).ok()
        })
    });
    TimeObject::value(parsed.unwrap_or_else(TimeObject::zero))
}

/// A time with its offset.
const WHOLE: &[u8] = b"2006-01-02T15:04:05.999999999Z07:00";

/// Times without one, and the names of the zones that stand for that.
const LOCAL: [(&[u8], &str); 3] = [
    (b"2006-01-02T15:04:05.999999999", "datetime-local"),
    (b"2006-01-02", "date-local"),
    (b"15:04:05.999999999", "time-local"),
];

/// Returns how TOML writes a time.
pub(super) fn written_time(value: &Value) -> Option<String> {
    let time = time(value)?;
    let local =
        LOCAL.iter().find(|(_, zone)| matches!(time.zone(), Zone::Fixed { name, .. } if name == zone));
    let text = time.format(local.map_or(WHOLE, |(layout, _)| layout));
    Some(String::from_utf8_lossy(&text).into_owned())
}
