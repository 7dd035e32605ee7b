//! What a hook answers to the API server: `VALIDATING_RESPONSE_PATH` and `CONVERSION_RESPONSE_PATH`.

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// How many bytes a response may have: as many as the objects of a large list.
pub const MAX_BYTES: usize = 64 << 20;

/// How many warnings are passed on, and how long each may be; the API server cuts off more.
const MOST_WARNINGS: usize = 64;
const LONGEST_WARNING: usize = 256;

/// How long a message may be, in bytes.
const LONGEST_MESSAGE: usize = 16 << 10;

/// Why a response can't be used.
#[derive(Debug, Error)]
pub enum ResponseError {
    /// It is no JSON, or has other fields than a response has.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The patch is no list of operations.
    #[error("`patch` has to be the base64 text of a JSON patch: {0}")]
    Patch(String),
}

/// The answer to a review of an object.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct AdmissionResponse {
    /// Whether the object may be written.
    #[serde(default)]
    pub allowed: bool,
    /// Why not.
    #[serde(default, deserialize_with = "null_as_default")]
    pub message: String,
    /// What the client is told all the same.
    #[serde(default, deserialize_with = "null_as_default")]
    pub warnings: Vec<String>,
    /// How the object is to be changed: a JSON patch in base64. Empty changes nothing.
    #[serde(default, deserialize_with = "null_as_default")]
    pub patch: String,
    /// The operations of that patch.
    #[serde(skip)]
    pub operations: Vec<Map<String, Value>>,
}

/// The answer to a review of a conversion.
#[derive(Clone, Default, Deserialize, PartialEq)]
pub struct ConversionResponse {
    /// Why the objects can't be converted; empty if they can.
    #[serde(default, rename = "failedMessage", deserialize_with = "null_as_default")]
    pub failed_message: String,
    /// The objects in the other version, in the order of the review.
    #[serde(default, rename = "convertedObjects", deserialize_with = "null_as_default")]
    pub objects: Vec<Value>,
}

// Objects can hold secrets.
impl std::fmt::Debug for ConversionResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConversionResponse").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}

/// Returns the response to a review of an object; `None` if the hook wrote none.
///
/// `read_patch` returns the operations of a JSON patch in base64, or why a text is none.
pub fn admission(
    bytes: &[u8],
    read_patch: impl Fn(&str) -> Result<Vec<Map<String, Value>>, String>,
) -> Result<Option<AdmissionResponse>, ResponseError> {
    let Some(mut response) = first::<AdmissionResponse>(bytes)? else { return Ok(None) };
    if !response.patch.is_empty() {
        response.operations = read_patch(&response.patch).map_err(ResponseError::Patch)?;
    }
    shorten(&mut response.message, LONGEST_MESSAGE);
    response.warnings.truncate(MOST_WARNINGS);
    response.warnings.iter_mut().for_each(|warning| shorten(warning, LONGEST_WARNING));
    Ok(Some(response))
}

/// Returns the response to a review of a conversion; `None` if the hook wrote none.
pub fn conversion(bytes: &[u8]) -> Result<Option<ConversionResponse>, ResponseError> {
    let mut response = first::<ConversionResponse>(bytes)?;
    if let Some(response) = &mut response {
        shorten(&mut response.failed_message, LONGEST_MESSAGE);
    }
    Ok(response)
}

/// Returns the first JSON document; what follows it does not count.
fn first<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<Option<T>, serde_json::Error> {
    // A list could be read as the fields of the response in their order.
    if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        return Err(serde::de::Error::custom("an object is expected"));
    }
    serde_json::Deserializer::from_slice(bytes).into_iter::<T>().next().transpose()
}

fn null_as_default<'de, T: Default + Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Cuts a text to so many bytes, at the end of a letter.
fn shorten(text: &mut String, longest: usize) {
    if text.len() > longest {
        let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<AdmissionResponse>, ResponseError> {
        admission(text.as_bytes(), |patch| if patch == "bad" { Err("no".to_owned()) } else { Ok(Vec::new()) })
    }

    #[test]
    fn the_first_document_counts_and_nothing_is_no_response() {
        let denied = read("{\"allowed\": false, \"message\": \"no\"} {\"allowed\": true}").unwrap().unwrap();
        assert!(!denied.allowed && denied.message == "no");
        assert_eq!(read(" \n").unwrap(), None);
        assert!(read("{\"allowed\": true, \"warnings\": null, \"other\": 1}").unwrap().unwrap().allowed);
        assert!(conversion(b"").unwrap().is_none());
    }

    #[test]
    fn garbage_and_a_patch_that_is_none_are_refused() {
        for text in
            ["{", "[]", "true", "{\"allowed\": \"yes\"}", "{\"warnings\": [1]}", "{\"patch\": \"bad\"}"]
        {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(conversion(b"{\"convertedObjects\": {}}").is_err());
    }

    #[test]
    fn long_texts_are_cut_at_a_letter() {
        let text =
            serde_json::json!({"message": "ä".repeat(20_000), "warnings": vec!["x".repeat(1_000); 100]});
        let response = read(&text.to_string()).unwrap().unwrap();
        assert_eq!(response.message.len(), LONGEST_MESSAGE);
        assert!(response.warnings.len() == MOST_WARNINGS && response.warnings[0].len() == LONGEST_WARNING);
    }

    #[test]
    fn a_response_to_a_conversion_shows_no_object_in_logs() {
        let response = conversion(b"{\"convertedObjects\": [{\"data\": \"secret\"}]}").unwrap().unwrap();
        assert_eq!(response.objects.len(), 1);
        assert!(!format!("{response:?}").contains("secret"));
    }
}
