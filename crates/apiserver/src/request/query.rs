//! The query of a request.

use std::num::{IntErrorKind, ParseIntError};

use golang::strconv;

use super::path::percent_decode;
use crate::status::{ApiError, Outcome};

/// The parameters of a request, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=b&c=d`; pairs that are not encoded as they should are left out.
    pub(crate) fn parse(text: &str) -> Query {
        let decode = |text: &str| percent_decode(&text.replace('+', " "));
        Query(
            text.split('&')
                // Go drops what it cannot read, and what is written with the old separator.
                .filter(|pair| !pair.is_empty() && !pair.contains(';') && is_encoded(pair))
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decode(name), decode(value)))
                .collect(),
        )
    }

    /// Returns the first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a parameter unless it is empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether a switch is on: present, and neither `false` nor `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.switch(name).unwrap_or(false)
    }

    /// Returns how a switch is set; nothing if it is absent.
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Returns a number; nothing if it is absent.
    pub(crate) fn number(&self, name: &str) -> Outcome<Option<i64>> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|error: ParseIntError| {
            let overflows = matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
            let why = if overflows { "value out of range" } else { "invalid syntax" };
            let shown = strconv::quote(text.as_bytes());
            ApiError::bad_request(format!("strconv.ParseInt: parsing {shown}: {why}"))
        })
    }
}

/// Returns whether two hexadecimal digits follow each percent sign.
fn is_encoded(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|part| part.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("labelSelector=a+in+%28b%2Cc%29&watch&limit=5&force=false");
        assert_eq!(query.get("labelSelector"), Some("a in (b,c)"));
        assert!(query.flag("watch") && !query.flag("force") && !query.flag("other"));
        assert_eq!(query.number("limit").unwrap(), Some(5));
        assert_eq!(query.switch("other"), None);
        let query = Query::parse("limit=%zz&limit=1;x=2&continue=%4&timeout=5");
        assert_eq!(
            (query.get("limit"), query.get("continue"), query.get("timeout")),
            (None, None, Some("5"))
        );
        assert!(!Query::parse("watch=FALSE").flag("watch"));
        for (text, why) in [
            ("x", "parsing \"x\": invalid syntax"),
            ("", "parsing \"\": invalid syntax"),
            ("99999999999999999999", "parsing \"99999999999999999999\": value out of range"),
        ] {
            let error = Query::parse(&format!("limit={text}")).number("limit").unwrap_err();
            assert_eq!(error.to_string(), format!("strconv.ParseInt: {why}"));
        }
    }
}
