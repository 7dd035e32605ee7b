//! The query of a request.

use super::path::percent_decode;
use crate::status::{ApiError, Outcome};

/// The parameters of a request, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=b&c=d`.
    pub(crate) fn parse(text: &str) -> Query {
        let decode = |text: &str| percent_decode(&text.replace('+', " "));
        Query(
            text.split('&')
                .filter(|pair| !pair.is_empty())
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
        self.get(name).is_some_and(|value| !matches!(value, "false" | "0"))
    }

    pub(crate) fn number(&self, name: &str) -> Outcome<Option<i64>> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        text.parse()
            .map(Some)
            .map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
    }
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
        assert!(Query::parse("limit=x").number("limit").is_err());
    }
}
