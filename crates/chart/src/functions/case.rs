//! Strings: upper and lower case, and the cases of names.

use golang::unicode::{is_lower, is_title, is_upper, to_lower, to_title, to_upper};

use super::args::{STRING, string};
use super::name_case;
use crate::value::Function;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("camelcase", &[STRING], STRING, |_, args| Ok(name_case::pascal(&string(args, 0)).into())),
    Function::new("initials", &[STRING], STRING, |_, args| Ok(initials(&string(args, 0)).into())),
    Function::new("kebabcase", &[STRING], STRING, |_, args| {
        Ok(name_case::separated(&string(args, 0), '-').into())
    }),
    Function::new("lower", &[STRING], STRING, |_, args| Ok(mapped(&string(args, 0), to_lower).into())),
    Function::new("snakecase", &[STRING], STRING, |_, args| {
        Ok(name_case::separated(&string(args, 0), '_').into())
    }),
    Function::new("swapcase", &[STRING], STRING, |_, args| Ok(swapped(&string(args, 0)).into())),
    Function::new("title", &[STRING], STRING, |_, args| Ok(titled(&string(args, 0)).into())),
    Function::new("untitle", &[STRING], STRING, |_, args| Ok(untitled(&string(args, 0)).into())),
    Function::new("upper", &[STRING], STRING, |_, args| Ok(mapped(&string(args, 0), to_upper).into())),
];

fn mapped(text: &str, map: fn(char) -> char) -> String {
    text.chars().map(map).collect()
}

/// Returns the first letter of each word. Letters are looked at byte by byte.
fn initials(text: &str) -> String {
    let mut initials = String::new();
    let mut after_space = true;
    for c in text.bytes().map(char::from) {
        if c.is_whitespace() {
            after_space = true;
        } else if std::mem::take(&mut after_space) {
            initials.push(c);
        }
    }
    initials
}

/// Swaps the case of each letter; one that begins a word gets title case.
fn swapped(text: &str) -> String {
    let mut after_space = true;
    text.chars()
        .map(|c| {
            let starts_word = std::mem::replace(&mut after_space, c.is_whitespace());
            if is_upper(c) || is_title(c) {
                to_lower(c)
            } else if !is_lower(c) {
                c
            } else if starts_word {
                to_title(c)
            } else {
                to_upper(c)
            }
        })
        .collect()
}

/// Puts the first letter of each word into title case.
fn titled(text: &str) -> String {
    let mut before = ' ';
    text.chars()
        .map(|c| {
            let starts_word = is_separator(before);
            before = c;
            if starts_word { to_title(c) } else { c }
        })
        .collect()
}

fn is_separator(c: char) -> bool {
    if c.is_ascii() { !c.is_ascii_alphanumeric() && c != '_' } else { c.is_whitespace() }
}

fn untitled(text: &str) -> String {
    let mut starts_word = true;
    text.chars()
        .map(|c| {
            if c.is_whitespace() {
                starts_word = true;
                c
            } else if std::mem::take(&mut starts_word) {
                to_lower(c)
            } else {
                c
            }
        })
        .collect()
}
