//! Regular expressions in Go's dialect.

use regex::Regex;

/// Compiles `pattern`, which is written in the dialect of Go's `regexp`.
///
/// `\d`, `\w` and `\s` mean ASCII there, a brace that repeats nothing is a
/// brace, and a bracket inside brackets is a bracket.
pub fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    Regex::new(&translate(pattern))
}

/// Returns `pattern` in the dialect of the `regex` crate.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    let mut in_class = false;
    // A bracket that closes at once is an item of the class.
    let mut at_start = false;
    while let Some(character) = rest.chars().next() {
        let after = rest.get(character.len_utf8()..).unwrap_or_default();
        let was_start = std::mem::take(&mut at_start);
        rest = match character {
            '\\' => escape(after, &mut out),
            '[' if !in_class => {
                in_class = true;
                at_start = true;
                out.push('[');
                match after.strip_prefix('^') {
                    Some(after) => {
                        out.push('^');
                        after
                    }
                    None => after,
                }
            }
            '[' if after.starts_with(':') => posix_class(rest, after, &mut out),
            ']' if in_class && !was_start => {
                in_class = false;
                out.push(']');
                after
            }
            '[' | ']' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(character);
                after
            }
            '{' if !in_class && !repeats(after) => {
                out.push_str("\\{");
                after
            }
            _ => {
                out.push(character);
                after
            }
        };
    }
    out
}

/// Copies a class such as `[:alpha:]`, or one bracket; returns what follows.
fn posix_class<'p>(rest: &'p str, after: &'p str, out: &mut String) -> &'p str {
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'^');
    if let Some((name, following)) = after.get(1..).and_then(|after| after.split_once(":]"))
        && is_name(name)
        && let Some(class) = rest.strip_suffix(following)
    {
        out.push_str(class);
        return following;
    }
    out.push_str("\\[");
    after
}

/// Returns whether a brace before `after` repeats what stands before it.
fn repeats(after: &str) -> bool {
    let Some((counts, _)) = after.split_once('}') else {
        return false;
    };
    let (least, most) = counts.split_once(',').unwrap_or((counts, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

/// Writes what stands behind a backslash; returns what follows.
fn escape<'p>(after: &'p str, out: &mut String) -> &'p str {
    let Some(character) = after.chars().next() else {
        out.push('\\');
        return after;
    };
    let rest = after.get(character.len_utf8()..).unwrap_or_default();
    match character {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str("[\\t\\n\\f\\r ]"),
        'S' => out.push_str("[^\\t\\n\\f\\r ]"),
        'b' => out.push_str("(?-u:\\b)"),
        'B' => out.push_str("(?-u:\\B)"),
        'Q' => {
            let (quoted, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
            out.push_str(&regex::escape(quoted));
            return rest;
        }
        _ => {
            out.push('\\');
            out.push(character);
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w-]+$", "a_b-c", true),
            (r"^[\w-]+$", "é", false),
            (r"^[^\d]$", "a", true),
            (r"^[^\D]$", "1", true),
            (r"^\s$", "\u{a0}", false),
            (r"^{{.*}}$", "{{x}}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{2,}$", "aaa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^[a[b]$", "[", true),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^[]a]+$", "]a", true),
            (r"^[[:]+$", "[:", true),
            (r"^[^]a]$", "b", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^\Qa.b\E+$", "a.bb", true),
            (r"^(?i)abc$", "ABC", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^\/x$", "/x", true),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
        ] {
            assert_eq!(compile(pattern).unwrap().is_match(text), matches, "{pattern} {text}");
        }
        assert!(compile("(").is_err());
        assert!(compile("\\").is_err());
    }
}
