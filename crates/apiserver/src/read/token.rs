//! Continue tokens: where the next part of a list begins.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::status::{ApiError, Outcome};

/// The contents of a token. `rv` is -1 when the rest may be newer than the first part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Token {
    v: String,
    rv: i64,
    start: String,
}

const VERSION: &str = "meta.k8s.io/v1";

/// Bits of the last character that stand for nothing are not looked at.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

impl Token {
    /// Returns the token of the list at `revision` after the key `last`.
    pub(super) fn new(revision: Option<u64>, last: &str) -> Token {
        let rv = revision.and_then(|revision| i64::try_from(revision).ok()).unwrap_or(-1);
        Token { v: VERSION.to_owned(), rv, start: format!("{last}\0") }
    }

    /// Returns the revision of the list, nothing when the rest is read as it is now.
    pub(super) fn revision(&self) -> Option<u64> {
        u64::try_from(self.rv).ok()
    }

    /// Returns the last key that the client has.
    pub(super) fn last(&self) -> &str {
        self.start.trim_end_matches('\0')
    }

    pub(super) fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(text: &str) -> Outcome<Token> {
        let refuse = |why: &str| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = LENIENT.decode(text.trim_end_matches('=')).map_err(|_| {
            let at = objects::decode::base64_error_offset(text);
            refuse(&format!("illegal base64 data at input byte {at}"))
        })?;
        let token = objects::decode::parse(&bytes).map_err(|error| refuse(&error.to_string()))?;
        let token: Token =
            serde_json::from_value(token.into()).map_err(|error| refuse(&error.to_string()))?;
        if token.v != VERSION {
            return Err(refuse(&format!("server does not recognize this encoded version {}", token.v)));
        }
        if token.rv == 0 || token.rv < -1 || token.start.is_empty() || token.start.contains("..") {
            return Err(refuse("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_were() {
        let token = Token::new(Some(7), "ns/a");
        assert_eq!(Token::decode(&token.encode()).unwrap(), token);
        assert_eq!((token.revision(), token.last()), (Some(7), "ns/a"));
        assert_eq!(Token::new(None, "a").revision(), None);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "x", "!!!", "e30", "eyJ2IjoieCIsInJ2IjoxLCJzdGFydCI6ImEifQ"] {
            assert_eq!(Token::decode(text).unwrap_err().code(), 400, "{text}");
        }
    }
}
