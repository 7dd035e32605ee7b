//! Reads JSON in which no key occurs twice in one object: otherwise the last one would win, and nobody be told.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Returns the one value of a text.
///
/// # Errors
///
/// If it is no JSON, or ([`Category::Data`](serde_json::error::Category::Data)) if a key occurs twice in one object.
pub fn from_json(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Reader.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

struct Reader;

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Reader)? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if all.contains_key(&key) {
                return Err(A::Error::custom(format!("key {key:?} occurs twice")));
            }
            all.insert(key, entries.next_value_seed(Reader)?);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::error::Category;

    use super::*;

    #[test]
    fn what_has_no_key_twice_is_read_as_it_is() {
        let text =
            r#"{"a": [1, -2, 1.5, 18446744073709551615, null, true, "x\n", {}], "b": {"a": {"a": 1}}}"#;
        assert_eq!(from_json(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_key_that_occurs_twice_is_named_wherever_it_is() {
        for text in [r#"{"a": 1, "b": 2, "a": 1}"#, r#"[{"x": {"a": 1, "\u0061": 2}}]"#] {
            let error = from_json(text.as_bytes()).unwrap_err();
            assert_eq!(error.classify(), Category::Data);
            assert!(error.to_string().starts_with("key \"a\" occurs twice at line 1 column "), "{error}");
        }
    }

    #[test]
    fn what_is_no_json_is_no_repeated_key() {
        let deep = "[".repeat(100_000);
        for text in ["", "{", "{} {}", "{\"a\": 1e999}", "nul", "{\"a\" 1}", &deep] {
            assert_ne!(from_json(text.as_bytes()).unwrap_err().classify(), Category::Data, "{text:.20}");
        }
    }
}
