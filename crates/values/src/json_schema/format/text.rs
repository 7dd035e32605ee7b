//! What the checks of formats share: errors and digits.

/// Returns the error `why`.
pub(super) fn failed<T>(why: &str) -> Result<T, String> {
    Err(why.to_owned())
}

/// Returns a character as Go quotes it.
pub(super) fn quoted(character: char) -> String {
    golang::strconv::quote_rune(character, false)
}

/// Returns how many bytes of digits `text` begins with.
pub(super) fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}
