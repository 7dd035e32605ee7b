//! TOML.

mod number;
mod problem;
mod time;
mod writer;

use super::args::{ANY, MAP, STRING, any, string};
use crate::value::{Entries, Function, List, ListType, Map, Value};

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

/// Returns what is wrong in the words of the parser.
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
        toml::Value::Datetime(datetime) => time::read(&datetime.to_string()),
        toml::Value::Array(items) => {
            let tables = !items.is_empty() && items.iter().all(toml::Value::is_table);
            let class = if tables { &ListType::MAPS } else { &ListType::ANY };
            Value::List(List::of(class, items.into_iter().map(value).collect()))
        }
        toml::Value::Table(table) => Map::new(entries(table)).into(),
    }
}
