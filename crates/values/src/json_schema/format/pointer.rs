//! Addresses within JSON documents.

use super::text::{digits, failed};

pub(super) fn absolute(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let Some(rest) = text.strip_prefix('/') else { return failed("not starting with /") };
    let mut characters = rest.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '~' && characters.next_if(|next| matches!(next, '0' | '1')).is_none() {
            return failed("~ must be followed by 0 or 1");
        }
    }
    Ok(())
}

pub(super) fn relative(text: &str) -> Result<(), String> {
    let length = digits(text);
    if length == 0 {
        return failed("must start with non-negative integer");
    }
    if length > 1 && text.starts_with('0') {
        return failed("starts with zero");
    }
    match text.get(length..).unwrap_or_default() {
        "#" => Ok(()),
        rest => absolute(rest),
    }
}
