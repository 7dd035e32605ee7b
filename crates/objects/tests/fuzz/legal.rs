//! What must hold for names and labels that are made of any text.

use objects::legal;
use objects::names;

/// Makes names of a text; they must be legal, short, the same each time, and stay as they are if they are legal.
pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let name = legal::object(&text);
    assert!(names::subdomain(&name).is_empty(), "{text:?}: {name:?}");
    assert_eq!(legal::object(&name), name);
    let apart = legal::told_apart(&text, &["a", "b"]);
    assert!(names::subdomain(&apart).is_empty() && apart != name, "{text:?}: {apart:?}");
    let label = legal::label(&text);
    assert!(names::label_value(&label).is_empty(), "{text:?}: {label:?}");
    assert_eq!(legal::label(&label), label);
    let key = legal::key(&text);
    assert!(names::config_key(&key).is_empty(), "{text:?}: {key:?}");
    assert_eq!(legal::key(&key), key);
}
