//! Values on the command line: `--set a.b[0]=c,d={x,y}` and its kin.

use serde_json::{Map, Value};

/// The highest index of a list.
const MAX_INDEX: i64 = 65_536;

/// How many names may stand in one path.
const MAX_LEVEL: usize = 30;

/// What the text behind `=` becomes.
pub enum Form<'a> {
    /// Booleans, null, whole numbers and texts: `--set`.
    Typed,
    /// Always a text: `--set-string`.
    Text,
    /// JSON: `--set-json`.
    Json,
    /// The content of a file: `--set-file`.
    File(&'a mut dyn FnMut(&str) -> Result<String, String>),
    /// All that follows, as it is: `--set-literal`.
    Literal,
}

/// Why a text could not be read; the message is Helm's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetError(String);

/// Sets in `values` what `text` says.
///
/// What comes before an error is set all the same.
pub fn set(text: &str, form: Form<'_>, values: &mut Map<String, Value>) -> Result<(), SetError> {
    let mut parser = Parser { text: text.chars().collect(), at: 0, form };
    loop {
        match parser.key(values, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Error(message)) => return Err(SetError(message)),
        }
    }
}

/// Reads the value of a `--set-json` flag.
pub fn set_json(text: &str, values: &mut Map<String, Value>) -> Result<(), SetError> {
    set(text, Form::Json, values).map_err(|_| SetError(format!("failed parsing --set-json data {text}")))
}

/// Why reading stopped.
#[derive(Debug)]
enum Stop {
    End,
    Error(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Error(message)
    }
}

struct Parser<'a> {
    text: Vec<char>,
    at: usize,
    form: Form<'a>,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.text.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    /// Returns the text up to one of `stop`, and which one it was; none at the end.
    fn until(&mut self, stop: &[char]) -> (String, Option<char>) {
        let escapes = !matches!(self.form, Form::Literal);
        let mut text = String::new();
        while let Some(c) = self.next() {
            if stop.contains(&c) {
                return (text, Some(c));
            }
            if c == '\\' && escapes {
                match self.next() {
                    Some(c) => text.push(c),
                    None => break,
                }
            } else {
                text.push(c);
            }
        }
        (text, None)
    }

    fn key(&mut self, data: &mut Map<String, Value>, level: usize) -> Result<(), Stop> {
        let stop: &[char] =
            if matches!(self.form, Form::Literal) { &['=', '[', '.'] } else { &['=', '[', '.', ','] };
        let (key, mark) = self.until(stop);
        match mark {
            None if key.is_empty() => Err(Stop::End),
            None => Err(format!("key {key:?} has no value").into()),
            Some('[') => {
                let index = self.index()?;
                let mut items = match data.get_mut(&key) {
                    None => Vec::new(),
                    Some(Value::Array(items)) => std::mem::take(items),
                    Some(other) => return Err(conversion(other, "[]interface {}")),
                };
                let outcome = self.item(&mut items, index, level);
                insert(data, key, Value::Array(items));
                outcome
            }
            Some('=') => {
                let value = self.value()?;
                let outcome = if value.is_some() { Ok(()) } else { Err(Stop::End) };
                insert(data, key, value.unwrap_or_else(|| self.nothing()));
                outcome
            }
            Some(',') => {
                insert(data, key.clone(), Value::String(String::new()));
                Err(format!("key {key:?} has no value (cannot end with ,)").into())
            }
            Some(_) => self.inner_key(data, key, level + 1),
        }
    }

    fn inner_key(&mut self, data: &mut Map<String, Value>, key: String, level: usize) -> Result<(), Stop> {
        if level > MAX_LEVEL {
            return Err(format!(
                "value name nested level is greater than maximum supported nested level of {MAX_LEVEL}"
            )
            .into());
        }
        let mut fresh = Map::new();
        let existing = match data.get_mut(&key) {
            None => None,
            Some(Value::Object(inner)) => Some(inner),
            Some(other) => return Err(conversion(other, "map[string]interface {}")),
        };
        let is_new = existing.is_none();
        let inner = existing.unwrap_or(&mut fresh);
        let outcome = self.key(inner, level);
        if outcome.is_ok() && inner.is_empty() {
            return Err(format!("key map {key:?} has no value").into());
        }
        if is_new && !fresh.is_empty() {
            insert(data, key, Value::Object(fresh));
        }
        outcome
    }

    fn index(&mut self) -> Result<i64, Stop> {
        let (digits, mark) = self.until(&[']']);
        if mark.is_none() {
            return Err("error parsing index: EOF".to_owned().into());
        }
        digits.parse().map_err(|error: std::num::ParseIntError| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let overflow = matches!(error.kind(), PosOverflow | NegOverflow);
            let problem = if overflow { "value out of range" } else { "invalid syntax" };
            Stop::Error(format!("error parsing index: strconv.Atoi: parsing {digits:?}: {problem}"))
        })
    }

    /// Sets what follows the index of a list.
    fn item(&mut self, list: &mut Vec<Value>, index: i64, level: usize) -> Result<(), Stop> {
        if index < 0 {
            return Err(format!("negative {index} index not allowed").into());
        }
        let (rest, mark) = self.until(&['[', '.', '=']);
        if !rest.is_empty() {
            let shown: Vec<String> = rest.chars().map(|c| format!("{c:?}")).collect();
            return Err(format!("unexpected data at end of array index: [{}]", shown.join(" ")).into());
        }
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        match mark {
            None => Err(Stop::End),
            Some('=') => {
                let value = self.value()?.unwrap_or_else(|| self.nothing());
                set_item(list, index, value)
            }
            Some('[') => {
                let next = self.index()?;
                let mut inner = match list.get_mut(at) {
                    None | Some(Value::Null) => Vec::new(),
                    Some(Value::Array(inner)) => std::mem::take(inner),
                    Some(other) => return Err(conversion(other, "[]interface {}")),
                };
                self.item(&mut inner, next, level)?;
                set_item(list, index, Value::Array(inner))
            }
            Some(_) => {
                let mut inner = match list.get_mut(at) {
                    Some(Value::Object(inner)) => std::mem::take(inner),
                    Some(_) | None => Map::new(),
                };
                self.key(&mut inner, level)?;
                set_item(list, index, Value::Object(inner))
            }
        }
    }

    /// Returns what an empty value is.
    fn nothing(&self) -> Value {
        if matches!(self.form, Form::Json) { Value::Null } else { Value::String(String::new()) }
    }

    /// Returns the value that begins here; none at the end of all.
    fn value(&mut self) -> Result<Option<Value>, Stop> {
        match self.form {
            Form::Json => return self.json().map(Some),
            Form::Literal => {
                let rest = self.text.get(self.at..).unwrap_or_default().iter().collect();
                self.at = self.text.len();
                return Ok(Some(Value::String(rest)));
            }
            Form::Typed | Form::Text | Form::File(_) => {}
        }
        match self.text.get(self.at) {
            None => Ok(None),
            Some('{') => {
                self.at += 1;
                self.list().map(Some)
            }
            Some(_) => {
                let (text, _) = self.until(&[',']);
                self.typed(text).map(Some)
            }
        }
    }

    fn list(&mut self) -> Result<Value, Stop> {
        let mut items = Vec::new();
        loop {
            let (text, mark) = self.until(&[',', '}']);
            match mark {
                None => return Err("list must terminate with '}'".to_owned().into()),
                Some('}') => {
                    if self.text.get(self.at) == Some(&',') {
                        self.at += 1;
                    }
                    items.push(self.typed(text)?);
                    return Ok(Value::Array(items));
                }
                Some(_) => items.push(self.typed(text)?),
            }
        }
    }

    fn json(&mut self) -> Result<Value, Stop> {
        if self.skip_empty() {
            return Ok(Value::Null);
        }
        let rest: String = self.text.get(self.at..).unwrap_or_default().iter().collect();
        let mut stream = serde_json::Deserializer::from_str(&rest).into_iter::<Value>();
        let mut value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => return Err(error.to_string().into()),
            None => return Err(Stop::End),
        };
        self.at += rest.get(..stream.byte_offset()).unwrap_or_default().chars().count();
        self.skip_empty();
        crate::yaml::floats(&mut value);
        Ok(value)
    }

    /// Skips spaces and a comma; returns whether there was nothing else.
    fn skip_empty(&mut self) -> bool {
        while let Some(c) = self.text.get(self.at) {
            if *c == ',' {
                self.at += 1;
                return true;
            }
            if !c.is_whitespace() {
                return false;
            }
            self.at += 1;
        }
        true
    }

    fn typed(&mut self, text: String) -> Result<Value, Stop> {
        match &mut self.form {
            Form::Typed => Ok(typed(text)),
            Form::File(read) => Ok(Value::String(read(&text)?)),
            Form::Text | Form::Json | Form::Literal => Ok(Value::String(text)),
        }
    }
}

fn typed(text: String) -> Value {
    if text.eq_ignore_ascii_case("true") {
        return true.into();
    }
    if text.eq_ignore_ascii_case("false") {
        return false.into();
    }
    if text.eq_ignore_ascii_case("null") {
        return Value::Null;
    }
    if text == "0" {
        return 0.into();
    }
    match text.parse::<i64>() {
        Ok(number) if !text.starts_with('0') => number.into(),
        Ok(_) | Err(_) => Value::String(text),
    }
}

fn insert(data: &mut Map<String, Value>, key: String, value: Value) {
    if !key.is_empty() {
        data.insert(key, value);
    }
}

fn set_item(list: &mut Vec<Value>, index: i64, value: Value) -> Result<(), Stop> {
    if index > MAX_INDEX {
        return Err(format!("index of {index} is greater than maximum supported index of {MAX_INDEX}").into());
    }
    let at = usize::try_from(index).unwrap_or_default();
    if list.len() <= at {
        list.resize(at + 1, Value::Null);
    }
    if let Some(slot) = list.get_mut(at) {
        *slot = value;
    }
    Ok(())
}

/// Returns the error of a value that is used as something else.
fn conversion(found: &Value, wanted: &str) -> Stop {
    let found = match found {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    Stop::Error(format!("unable to parse key: interface conversion: interface {{}} is {found}, not {wanted}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(text: &str, form: Form<'_>) -> String {
        let mut values = Map::new();
        values.insert("text".to_owned(), json!("x"));
        values.insert("map".to_owned(), json!({"k": 1}));
        match set(text, form, &mut values) {
            Ok(()) => {
                values.remove("text");
                values.remove("map");
                Value::Object(values).to_string()
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn set_reads_what_helm_reads() {
        for (text, expected) in [
            ("a.b.c=1,d={x,y}", r#"{"a":{"b":{"c":1}},"d":["x","y"]}"#),
            ("e[0].f=1,e[2].f=3", r#"{"e":[{"f":1},null,{"f":3}]}"#),
            ("n[0][1]=x", r#"{"n":[[null,"x"]]}"#),
            ("h\\.i.j=1", r#"{"h.i":{"j":1}}"#),
            ("k=a\\,b", r#"{"k":"a,b"}"#),
            ("l={}", r#"{"l":[""]}"#),
            ("m=", r#"{"m":""}"#),
            ("a=TRUE,b=null,c=007,d=+5,e=1.5,f=0", r#"{"a":true,"b":null,"c":"007","d":5,"e":"1.5","f":0}"#),
            ("r=a=b", r#"{"r":"a=b"}"#),
            ("", "{}"),
            ("a", "key \"a\" has no value"),
            ("a,b=1", "key \"a\" has no value (cannot end with ,)"),
            ("a.=1", "key map \"a\" has no value"),
            ("a={x", "list must terminate with '}'"),
            ("a[x]=1", "error parsing index: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("a[-1]=1", "negative -1 index not allowed"),
            ("a[99999]=1", "index of 99999 is greater than maximum supported index of 65536"),
            (
                "text.a=1",
                "unable to parse key: interface conversion: interface {} is string, not map[string]interface {}",
            ),
            (
                "map[0]=1",
                "unable to parse key: interface conversion: interface {} is map[string]interface {}, not []interface {}",
            ),
        ] {
            assert_eq!(parsed(text, Form::Typed), expected, "{text}");
        }
        let deep = format!("{}a=1", "a.".repeat(31));
        assert!(parsed(&deep, Form::Typed).contains("maximum supported nested level of 30"));
    }

    #[test]
    fn other_forms_read_their_values_their_way() {
        assert_eq!(parsed("a=1,b={2,x}", Form::Text), r#"{"a":"1","b":["2","x"]}"#);
        assert_eq!(parsed("a=1,b={c}.d\\e", Form::Literal), r#"{"a":"1,b={c}.d\\e"}"#);
        assert_eq!(
            parsed("a=[1, {\"b\":2}] ,c= ,d[1]=null,e=", Form::Json),
            r#"{"a":[1.0,{"b":2.0}],"c":null,"d":[null,null],"e":null}"#
        );
        let mut read = |name: &str| Ok(format!("<{name}>"));
        assert_eq!(parsed("a=x.txt", Form::File(&mut read)), r#"{"a":"<x.txt>"}"#);
    }
}
