//! Words that say nothing, and private ones that were replaced by the field's terms, do not come back.

use super::{code, is_test, shown, sources, those};

/// Words that fit any type and so name none.
const EMPTY: &[&str] = &["Common", "Handler", "Helper", "Manager", "Misc", "Service", "Util", "Utils"];

/// Private words for which the field has terms.
const PRIVATE: &[&str] = &[
    "Aim",
    "Announce",
    "Apart",
    "Chore",
    "Chores",
    "Discreet",
    "Fed",
    "Held",
    "Kept",
    "Meter",
    "Natives",
    "Near",
    "News",
    "Outside",
    "Place",
    "Sieve",
    "Stillness",
    "Take",
    "Takeover",
    "Tape",
    "Told",
    "Wave",
    "Wish",
    "World",
];

/// Names that a library asks for, and the kind Service.
const REQUIRED: &[&str] = &["type Service", "struct ServiceAllocator"];

/// Returns the words of a name in camel or snake case, each with a capital.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for char in name.chars() {
        match words.last_mut() {
            Some(word) if char.is_lowercase() || char.is_ascii_digit() => word.push(char),
            _ if char == '_' => words.push(String::new()),
            Some(word) if word.is_empty() => word.push(char.to_ascii_uppercase()),
            _ => words.push(char.to_ascii_uppercase().to_string()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_forbidden(name: &str) -> bool {
    words(name).iter().any(|word| EMPTY.contains(&word.as_str()) || PRIVATE.contains(&word.as_str()))
}

#[test]
fn files_are_named_in_the_terms_of_the_field() {
    let forbidden = those(&["src", "crates"], |path| {
        !is_test(path) && path.file_stem().and_then(|stem| stem.to_str()).is_some_and(is_forbidden)
    });
    assert_eq!(forbidden, Vec::<String>::new(), "name them after the field's term");
}

#[test]
fn types_are_named_in_the_terms_of_the_field() {
    let mut forbidden = Vec::new();
    for path in sources(&["src", "crates"]).iter().filter(|path| !is_test(path)) {
        for line in code(path).lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let declares = |pair: &&[&str]| matches!(pair[0], "struct" | "enum" | "trait" | "type");
            let Some(pair) = words.windows(2).find(declares) else { continue };
            let name: String =
                pair[1].chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect();
            let is_required = REQUIRED.contains(&format!("{} {name}", pair[0]).as_str());
            if !line.trim_start().starts_with("//") && !is_required && is_forbidden(&name) {
                forbidden.push(format!("{}: {name}", shown(path)));
            }
        }
    }
    assert_eq!(forbidden, Vec::<String>::new(), "name them after the field's term");
}
