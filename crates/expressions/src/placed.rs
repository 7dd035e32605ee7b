//! Errors with their place in the text of an expression.

/// Returns an error with its place in the text; the column counts from 0.
pub(crate) fn shown(text: &str, line: usize, column: usize, message: &str) -> String {
    if text.is_empty() {
        return format!("ERROR: <input>:{line}:{column}: {message}");
    }
    let source = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    // Wide characters have wide signs below them.
    let dots: String =
        source.chars().take(column).map(|character| if character.is_ascii() { '.' } else { '．' }).collect();
    let dots = dots + &".".repeat(column.saturating_sub(source.chars().count()));
    let mark =
        if source.chars().nth(column).is_none_or(|character| character.is_ascii()) { '^' } else { '＾' };
    format!("ERROR: <input>:{line}:{}: {message}\n | {source}\n | {dots}{mark}", column + 1)
}
