//! Names of modules: directory names, kebab-case, camelCase, file names. See docs/modules.md#names-and-order.

use std::fmt;

use serde::{Serialize, Serializer};
use thiserror::Error;

/// The key of the global section in every document of values.
pub const GLOBAL: &str = "global";

/// How large the order number of a module may be.
const MAX_ORDER: u32 = (1 << 31) - 1;

/// What the keys end in that say something about a module beside its section.
const SUFFIXES: [&str; 2] = ["Enabled", "Maintenance"];

/// The name of a module in kebab-case, such as `cert-manager`.
///
/// It can be restored from its camelCase form; every other name is refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleName(String);

/// Why a directory or key does not name a module.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModuleNameError {
    /// The name changes on the way to camelCase and back.
    #[error(
        "'{name}' name should be in kebab-case and be restorable from camelCase: \
         consider renaming to '{restored}'"
    )]
    NotKebab {
        /// The name.
        name: String,
        /// What the way to camelCase and back makes of it.
        restored: String,
    },
    /// The key changes on the way to kebab-case and back.
    #[error("bad module name '{key}': should be camelCased, such as '{restored}'")]
    NotCamel {
        /// The key.
        key: String,
        /// What the way to kebab-case and back makes of it.
        restored: String,
    },
}

impl ModuleName {
    /// Returns `name` as a module's name, if it can be one.
    pub fn new(name: &str) -> Result<Self, ModuleNameError> {
        let restored = kebab(&camel(name));
        if name.is_empty() || restored != name {
            return Err(ModuleNameError::NotKebab { name: name.to_owned(), restored });
        }
        Ok(Self(restored))
    }

    /// Returns the module whose values key is `key`.
    pub fn from_key(key: &str) -> Result<Self, ModuleNameError> {
        let name = kebab(key);
        let restored = camel(&name);
        if key.is_empty() || restored != key {
            return Err(ModuleNameError::NotCamel { key: key.to_owned(), restored });
        }
        Ok(Self(name))
    }

    /// Returns order and name of the module in the directory `directory`.
    ///
    /// `010-foo` is the module `foo` with the order 10; without a number, or
    /// with one that needs more than 31 bits, the order is `unnumbered`.
    pub fn from_directory(directory: &str, unnumbered: u32) -> Result<(u32, Self), ModuleNameError> {
        let (order, name) = split_order(directory);
        Ok((order.unwrap_or(unnumbered), Self::new(name)?))
    }

    /// Returns the name in kebab-case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the key of the module's section, in camelCase.
    pub fn key(&self) -> String {
        camel(&self.0)
    }

    /// Returns the key of the module whose flag has the key of this module's section, if there can be such a module: `foo-enabled`
    /// has the key `fooEnabled`, which switches `foo`.
    pub fn flagged_key(&self) -> Option<String> {
        flagged_key(&self.key()).map(str::to_owned)
    }

    /// Returns the key of the flag that turns the module on or off.
    pub fn enabled_key(&self) -> String {
        format!("{}Enabled", self.key())
    }

    /// Returns the key of the flag that leaves the module alone.
    pub fn maintenance_key(&self) -> String {
        format!("{}Maintenance", self.key())
    }
}

/// Returns the key of the section of which this key is a flag, if it can be one.
pub fn flagged_key(key: &str) -> Option<&str> {
    SUFFIXES.iter().find_map(|suffix| key.strip_suffix(suffix)).filter(|section| !section.is_empty())
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for ModuleName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Serialize for ModuleName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Splits a directory's name into the number in front and the rest.
fn split_order(directory: &str) -> (Option<u32>, &str) {
    match directory.split_once('-') {
        Some((digits, name))
            if !digits.is_empty() && !name.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            let order = digits.parse().ok().filter(|order| *order <= MAX_ORDER);
            (order, name)
        }
        _ => (None, directory),
    }
}

/// Returns `text` in camelCase.
pub fn camel(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, word) in words(text).iter().enumerate() {
        let mut characters = word.chars();
        if index > 0
            && let Some(first) = characters.next()
        {
            out.extend(first.to_uppercase());
        }
        out.extend(characters.flat_map(char::to_lowercase));
    }
    out
}

/// Returns `text` in kebab-case.
pub fn kebab(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    for (index, word) in words(text).iter().enumerate() {
        if index > 0 {
            out.push('-');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    out
}

/// What a character does to the word it stands in.
enum Boundary {
    /// It belongs to the word.
    None,
    /// It ends the word and is dropped.
    Drop,
    /// A new word begins with it.
    Before,
}

/// Splits `text` into words; no word is empty.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous = None;
    let mut characters = text.trim().chars().peekable();
    while let Some(current) = characters.next() {
        let next = characters.peek().copied();
        match boundary(previous, current, next) {
            Boundary::None => word.push(current),
            Boundary::Drop => words.push(std::mem::take(&mut word)),
            Boundary::Before => {
                words.push(std::mem::take(&mut word));
                word.push(current);
            }
        }
        previous = Some(current);
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn boundary(previous: Option<char>, current: char, next: Option<char>) -> Boundary {
    if current.is_lowercase() {
        return Boundary::None;
    }
    if matches!(current, '_' | '-') || current.is_whitespace() {
        return Boundary::Drop;
    }
    if current.is_uppercase()
        && previous.is_some_and(|previous| {
            // The last capital of an acronym begins the next word.
            previous.is_lowercase() || (previous.is_uppercase() && next.is_some_and(char::is_lowercase))
        })
    {
        return Boundary::Before;
    }
    if previous.is_some_and(char::is_numeric) {
        if matches!(current, '.' | ',') && next.is_some_and(char::is_numeric) {
            return Boundary::None;
        }
        if !current.is_numeric() && current != '.' {
            return Boundary::Before;
        }
    }
    if current == '.' {
        return Boundary::Drop;
    }
    Boundary::None
}

/// Returns `text` as a part of a file's name: letters, digits, dashes.
pub fn safe_name(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.replace(['.', '/'], "-").trim().chars() {
        match character {
            ' ' | '&' | '_' | '=' | '+' | ':' | '-' => {
                if !out.ends_with('-') {
                    out.push('-');
                }
            }
            _ if character.is_ascii_alphanumeric() => out.push(character),
            _ => out.push_str(without_accent(character)),
        }
    }
    out
}

/// Returns the plain letters for a letter with an accent.
fn without_accent(character: char) -> &'static str {
    match character {
        'À'..='Å' => "A",
        'Æ' | 'Ǽ' => "AE",
        'Ç' => "C",
        'È'..='Ë' => "E",
        'Ì'..='Ï' => "I",
        'Ð' => "D",
        'Ñ' => "N",
        'Ò'..='Ö' => "O",
        'Ø' | 'Œ' => "OE",
        'Ù'..='Ü' => "U",
        'Ý' | 'Ÿ' => "Y",
        'ß' => "ss",
        'à'..='å' => "a",
        'æ' => "ae",
        'ç' => "c",
        'è'..='ë' => "e",
        'ì'..='ï' => "i",
        'ð' => "d",
        'ñ' => "n",
        'ò'..='ö' => "o",
        'ø' | 'œ' => "oe",
        'ù'..='ü' => "u",
        'ý' | 'ÿ' => "y",
        'Š' => "S",
        'š' => "s",
        'Ž' => "Z",
        'ž' => "z",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_survive_the_way_to_camel_case_and_back_are_accepted() {
        for (name, key) in [
            ("cert-manager", "certManager"),
            ("l2-load-balancer", "l2LoadBalancer"),
            ("2-module-name", "2ModuleName"),
            ("008-x", "008X"),
            ("x-y", "xY"),
            ("a1b", "a1b"),
            ("metallb2", "metallb2"),
            ("123", "123"),
            ("v1.2-foo", "v1.2Foo"),
        ] {
            let module = ModuleName::new(name).unwrap();
            assert_eq!(module.key(), key, "{name}");
            assert_eq!(kebab(key), name);
            assert_eq!(ModuleName::from_key(key).unwrap(), module);
        }
    }

    #[test]
    fn names_that_change_on_the_way_are_refused_with_a_proposal() {
        for (name, restored) in [
            ("module-2", "module2"),
            ("node-8", "node8"),
            ("module-2b", "module2b"),
            ("foo-2-bar", "foo2-bar"),
            ("a-b-c", "a-bc"),
            ("foo_bar", "foo-bar"),
            ("foo.bar", "foo-bar"),
            ("Foo", "foo"),
            ("a--b", "a-b"),
            ("foo-", "foo"),
            (".git", "git"),
            ("", ""),
        ] {
            let error = ModuleName::new(name).unwrap_err();
            let expected = ModuleNameError::NotKebab { name: name.to_owned(), restored: restored.to_owned() };
            assert_eq!(error, expected, "{name}");
        }
    }

    #[test]
    fn the_refusal_is_worded_like_the_reference() {
        insta::assert_snapshot!(
            ModuleName::new("module-2").unwrap_err(),
            @"'module-2' name should be in kebab-case and be restorable from camelCase: consider renaming to 'module2'"
        );
    }

    #[test]
    fn a_number_in_front_is_the_order() {
        for (directory, order, name) in [
            ("001-foo", 1, "foo"),
            ("foo", 7, "foo"),
            ("007-008-x", 7, "008-x"),
            ("123", 7, "123"),
            ("2147483647-a", 2_147_483_647, "a"),
            ("2147483648-a", 7, "a"),
            ("99999999999999999999-a", 7, "a"),
        ] {
            let (found, module) = ModuleName::from_directory(directory, 7).unwrap();
            assert_eq!((found, module.as_str()), (order, name), "{directory}");
        }
        assert!(ModuleName::from_directory("001-", 1).is_err());
    }

    #[test]
    fn keys_that_are_not_camel_case_are_refused() {
        for key in ["cert-manager", "Foo", "foo_bar", "aB-c", "", "fooBAR"] {
            assert!(ModuleName::from_key(key).is_err(), "{key}");
        }
        assert_eq!(
            ModuleName::from_key("aBC").unwrap_err().to_string(),
            "bad module name 'aBC': should be camelCased, such as 'aBc'"
        );
    }

    #[test]
    fn flags_have_keys_of_their_own() {
        let module = ModuleName::new("cert-manager").unwrap();
        assert_eq!(module.enabled_key(), "certManagerEnabled");
        assert_eq!(module.maintenance_key(), "certManagerMaintenance");
    }

    #[test]
    fn a_key_of_a_section_can_be_the_flag_of_another_one() {
        for (name, expected) in [
            ("foo-enabled", Some("foo")),
            ("a-b2-maintenance", Some("aB2")),
            ("foo-enabled-maintenance", Some("fooEnabled")),
            ("enabled", None),
            ("foo-disabled", None),
            ("enabled-foo", None),
            ("unmaintenance", None),
        ] {
            assert_eq!(ModuleName::new(name).unwrap().flagged_key().as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn acronyms_are_words() {
        assert_eq!(kebab("HTTPServer"), "http-server");
        assert_eq!(kebab("getHTTP"), "get-http");
        assert_eq!(camel("foo bar"), "fooBar");
        assert_eq!(kebab("1,5X"), "1,5-x");
    }

    #[test]
    fn safe_names_hold_letters_digits_and_dashes() {
        for (text, safe) in [
            ("001-foo/hooks/a_b.sh", "001-foo-hooks-a-b-sh"),
            ("cert-manager", "cert-manager"),
            ("a  b", "a-b"),
            ("Größe?", "Grosse"),
            ("../../etc/passwd", "-etc-passwd"),
        ] {
            assert_eq!(safe_name(text), safe, "{text}");
        }
    }
}
