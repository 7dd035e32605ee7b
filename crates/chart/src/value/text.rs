//! A Go string: shared bytes that are UTF-8 by custom only.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// A string of a template; cutting one or decoding base64 may leave bytes that are not UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(Arc<[u8]>);

impl Text {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text, if it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Returns the text with U+FFFD in place of what is not UTF-8.
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::from("")
    }
}

impl std::ops::Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Makes conversions of what dereferences to bytes or to a string, which are copied.
macro_rules! from {
    ($($source:ty),*) => {
        $(impl From<$source> for Text {
            fn from(source: $source) -> Self {
                Self(Arc::from(AsRef::<[u8]>::as_ref(&*source)))
            }
        })*
    };
}

from!(&str, String, &String, &[u8], Vec<u8>, Rc<str>, Cow<'_, str>);

impl From<&Text> for Text {
    fn from(text: &Text) -> Self {
        text.clone()
    }
}

/// Prints the length only: a text may be a secret.
impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Text({} bytes)", self.len())
    }
}

impl From<&Arc<[u8]>> for Text {
    fn from(bytes: &Arc<[u8]>) -> Self {
        Self(Arc::clone(bytes))
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}
