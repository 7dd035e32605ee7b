//! Writing TOML: simple keys first, then tables, nested ones indented.

use std::fmt::Write as _;
use std::rc::Rc;

use super::time;
use crate::value::{MAX_NESTING, Value};

const NIL_ELEMENT: &str = "toml: cannot encode array with nil element";

type Written = Result<(), String>;

/// Returns the TOML of a value, or the text that says why it has none.
pub(super) fn write(value: &Value) -> Result<String, String> {
    let mut writer = Writer { out: String::new(), path: Vec::new() };
    if is_tables(value)? {
        return Err("toml: top-level values must be Go maps or structs".to_owned());
    }
    match fields(value) {
        Some(fields) => writer.table_body(&fields)?,
        None => writer.inline(value, 0)?,
    }
    Ok(writer.out)
}

type Fields = Vec<(Rc<str>, Value)>;

/// Returns the entries of a map or a struct; times and versions are not tables.
fn fields(value: &Value) -> Option<Fields> {
    if let Value::Map(map) = value {
        return Some(map.entries().iter().map(|(k, v)| (k.clone(), v.clone())).collect());
    }
    let Value::Object(object) = value else {
        return None;
    };
    let is_struct = object.json().is_none() && object.underlying().is_none();
    is_struct.then(|| {
        let mut found = Fields::new();
        for (name, value) in object.fields() {
            // The fields of an embedded struct are those of the one around it.
            match self::fields(&value) {
                Some(inner) if object.embedded().contains(&name) => found.extend(inner),
                Some(_) | None => found.push((name.into(), value)),
            }
        }
        found
    })
}

/// Reports whether this is a list of nothing but tables. A nil among the elements is an error.
fn is_tables(value: &Value) -> Result<bool, String> {
    let Value::List(list) = value else {
        return Ok(false);
    };
    let items = list.items();
    if items.iter().any(Value::is_nil) {
        return Err(NIL_ELEMENT.to_owned());
    }
    Ok(!items.is_empty() && items.iter().all(|item| fields(item).is_some()))
}

/// Reports whether a value is left out: a nil, or a list or a map that was never made.
fn is_absent(value: &Value) -> bool {
    value.is_nil()
        || value.as_list().is_some_and(crate::value::List::is_nil)
        || value.as_map().is_some_and(crate::value::Map::is_nil)
}

struct Writer {
    out: String,
    path: Vec<String>,
}

impl Writer {
    fn newline(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn indent(&mut self) {
        let depth = self.path.len().saturating_sub(1);
        self.out.extend(std::iter::repeat_n("  ", depth));
    }

    /// Writes the entries of the table whose path is set.
    fn table_body(&mut self, fields: &Fields) -> Written {
        if self.path.len() > MAX_NESTING {
            return Err(format!("toml: value is nested more than {MAX_NESTING} levels deep or holds itself"));
        }
        let mut tables = Vec::new();
        for (key, value) in fields.iter().filter(|(_, value)| !is_absent(value)) {
            if fields_or_tables(value)? {
                tables.push((key, value));
                continue;
            }
            self.path.push(quoted_key(key));
            self.indent();
            self.out.push_str(&quoted_key(key));
            self.out.push_str(" = ");
            self.inline(value, 0)?;
            self.out.push('\n');
            self.path.pop();
        }
        for (key, value) in tables {
            self.path.push(quoted_key(key));
            self.table(value)?;
            self.path.pop();
        }
        Ok(())
    }

    fn table(&mut self, value: &Value) -> Written {
        let Some(fields) = fields(value) else {
            let Value::List(list) = value else {
                return Ok(());
            };
            for item in list.items().iter() {
                self.newline();
                self.header("[[", "]]");
                self.table_body(&self::fields(item).unwrap_or_default())?;
            }
            return Ok(());
        };
        if self.path.len() == 1 {
            self.newline();
        }
        self.header("[", "]");
        self.table_body(&fields)
    }

    fn header(&mut self, open: &str, close: &str) {
        self.indent();
        let path = self.path.join(".");
        for part in [open, &path, close, "\n"] {
            self.out.push_str(part);
        }
    }

    fn inline(&mut self, value: &Value, depth: usize) -> Written {
        if depth > MAX_NESTING {
            return Err(format!("toml: value is nested more than {MAX_NESTING} levels deep or holds itself"));
        }
        if let Some(fields) = fields(value) {
            self.out.push('{');
            let mut simple = Vec::new();
            let mut tables = Vec::new();
            for (key, value) in &fields {
                if fields_or_tables(value)? { tables.push((key, value)) } else { simple.push((key, value)) }
            }
            let more = !tables.is_empty();
            self.inline_entries(&simple, more, depth)?;
            self.inline_entries(&tables, false, depth)?;
            self.out.push('}');
            return Ok(());
        }
        match value {
            Value::Nil => return Err(NIL_ELEMENT.to_owned()),
            Value::Bool(truth) => self.out.push_str(if *truth { "true" } else { "false" }),
            Value::Int(n) | Value::Int64(n) | Value::Small(_, n) => self.out.push_str(&n.to_string()),
            Value::Uint(_, n) => self.out.push_str(&n.to_string()),
            Value::Float(n) => self.out.push_str(&float(*n)),
            Value::Text(text) => quote(&mut self.out, &text.lossy()),
            Value::Bytes(bytes) => {
                let texts: Vec<String> = bytes.iter().map(u8::to_string).collect();
                self.out.push('[');
                self.out.push_str(&texts.join(", "));
                self.out.push(']');
            }
            Value::List(list) => {
                self.out.push('[');
                for (index, item) in list.items().iter().enumerate() {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.inline(item, depth + 1)?;
                }
                self.out.push(']');
            }
            Value::Object(object) => match (time::written(value), object.display(), object.underlying()) {
                (Some(time), _, _) => self.out.push_str(&time),
                // Other numbers with names are written as numbers.
                (None, Some(text), None) => quote(&mut self.out, &text),
                (None, Some(text), Some(_)) if object.type_name() == "time.Duration" => {
                    quote(&mut self.out, &text);
                }
                (None, _, underlying) => self.inline(&underlying.unwrap_or_default(), depth + 1)?,
            },
            Value::Complex(..) | Value::Map(_) => {
                let key = if self.path.is_empty() { " for key ''" } else { "" };
                return Err(format!("unsupported type{key}: {}", value.type_name()));
            }
        }
        Ok(())
    }
}

impl Writer {
    /// Writes entries of an inline table, of which `more` follow. A nil is left out, but not
    /// the comma before it.
    fn inline_entries(&mut self, entries: &[(&Rc<str>, &Value)], more: bool, depth: usize) -> Written {
        for (index, (key, value)) in entries.iter().enumerate() {
            if is_absent(value) {
                continue;
            }
            self.out.push_str(&quoted_key(key));
            self.out.push_str(" = ");
            self.inline(value, depth + 1)?;
            if more || index + 1 != entries.len() {
                self.out.push_str(", ");
            }
        }
        Ok(())
    }
}

fn fields_or_tables(value: &Value) -> Result<bool, String> {
    Ok(is_tables(value)? || fields(value).is_some())
}

fn float(number: f64) -> String {
    if !number.is_finite() {
        let sign = if number.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if number.is_nan() { "nan" } else { "inf" });
    }
    let text = golang::strconv::format_float(number, 'f', None);
    if text.contains('.') { text } else { format!("{text}.0") }
}

fn quoted_key(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if bare {
        return key.to_owned();
    }
    let mut quoted = String::new();
    quote(&mut quoted, key);
    quoted
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\x1f' | '\x7f' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
