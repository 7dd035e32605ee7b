//! Makes names of objects, keys and values of labels from texts that others wrote. They are legal whatever the text is.

use crate::names;

/// The longest name of an object, in bytes.
const MAX_NAME: usize = 253;

/// The longest value of a label, in bytes.
const MAX_LABEL: usize = 63;

/// How many digits of a hash tell names apart.
const HASH: usize = 8;

/// The numbers of the hash FNV-1a. It is no secret and protects nothing: whose an object is, its labels say.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Returns a text as the name of an object: what can't stand there becomes `-`, and then a hash of the text follows. One that is
/// too long is cut and has the hash, too.
pub fn object(text: &str) -> String {
    if names::subdomain(text).is_empty() {
        return text.to_owned();
    }
    let legal = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let name: String = text.chars().map(|c| if c == '.' { c } else { legal(c) }).collect();
    let name = name.trim_matches(['-', '.']);
    let is_legal = names::subdomain(name.get(..name.len().min(MAX_NAME)).unwrap_or_default()).is_empty();
    let name = if is_legal { name.to_owned() } else { name.replace('.', "-") };
    hashed(name.trim_matches('-'), text, MAX_NAME)
}

/// Returns the name that an object has where another one has the name `text` already.
pub fn told_apart(text: &str, by: &[&str]) -> String {
    hashed(&object(text), &by.join("\n"), MAX_NAME)
}

/// Returns a text as the value of a label: `+` becomes `_`. One that is not legal otherwise, or too long, is cut and has a hash.
pub fn label(text: &str) -> String {
    let plain = text.replace('+', "_");
    if names::label_value(&plain).is_empty() {
        return plain;
    }
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = plain.chars().map(|c| if is_legal(c) { c } else { '_' }).collect();
    hashed(name.trim_matches(|c: char| !c.is_ascii_alphanumeric()), text, MAX_LABEL)
}

/// Returns the name of a file as a key of a `ConfigMap`. One that is not legal, or too long, has a hash.
pub fn key(file: &str) -> String {
    if names::config_key(file).is_empty() {
        return file.to_owned();
    }
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let key: String = file.chars().map(|c| if is_legal(c) { c } else { '-' }).collect();
    hashed(key.trim_start_matches('.'), file, MAX_NAME)
}

/// Returns a name with a hash of `of` behind it, both together at most `most` bytes. `name` is ASCII.
fn hashed(name: &str, of: &str, most: usize) -> String {
    let hash = of.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    let hash = format!("{:0HASH$x}", (hash ^ (hash >> 32)) & 0xffff_ffff);
    let cut = name.get(..name.len().min(most - HASH - 1)).unwrap_or_default();
    let cut = cut.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    if cut.is_empty() { hash } else { format!("{cut}-{hash}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_legal_stays() {
        for name in
            ["helm-corp-alpha-index", "helm-tmpl-corp-alpha-0.1.1", "helm-pkg-corp-alpha-1.0.0-rc.1-1"]
        {
            assert_eq!(object(name), name);
        }
        assert_eq!(label("alpha-1.0.0+3"), "alpha-1.0.0_3");
        assert_eq!(key("_helpers.tpl"), "_helpers.tpl");
    }

    #[test]
    fn b16_what_is_not_legal_is_replaced_and_told_apart_by_a_hash() {
        let [plus, dash] = ["helm-crds-corp-a-1.0.0+3", "helm-crds-corp-a-1.0.0-3"].map(object);
        assert_eq!(dash, "helm-crds-corp-a-1.0.0-3");
        assert!(plus.starts_with("helm-crds-corp-a-1.0.0-3-") && plus.len() == dash.len() + 9, "{plus}");
        assert_ne!(object("Web"), object("web"));
        assert!(object("a__b").starts_with("a--b-"));
        for odd in
            ["", "-", ".", "a..b", "a.-b", "\u{fc}", &"x".repeat(300), &"a.".repeat(200), "..", "../../x"]
        {
            let (name, label, key) = (object(odd), label(odd), key(odd));
            assert!(names::subdomain(&name).is_empty(), "{odd:?}: {name:?}");
            assert!(names::label_value(&label).is_empty(), "{odd:?}: {label:?}");
            assert!(names::config_key(&key).is_empty(), "{odd:?}: {key:?}");
        }
    }

    #[test]
    fn equal_names_of_different_things_are_told_apart() {
        let [a, b] = [["a-b", "c"], ["a", "b-c"]].map(|by| told_apart("helm-a-b-c-index", &by));
        assert_ne!(a, b);
        assert!(a.starts_with("helm-a-b-c-index-"));
    }
}
