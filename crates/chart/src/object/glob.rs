//! Patterns of `.Files.Glob`.

use regex::Regex;

/// Returns a test for paths that fit `pattern`; a malformed pattern fits all.
///
/// `*` and `?` stop at slashes, `**` does not, `{a,b}` are alternatives, `[a-z]` and
/// `[!a-z]` one character.
pub(super) fn compile(pattern: &str) -> impl Fn(&str) -> bool + use<> {
    let regex = translate(pattern).and_then(|text| Regex::new(&text).ok());
    move |path| regex.as_ref().is_none_or(|regex| regex.is_match(path))
}

/// Returns the regular expression for a pattern, if it is well formed.
fn translate(pattern: &str) -> Option<String> {
    let mut regex = String::from("^(?s:");
    let mut chars = pattern.chars().peekable();
    let mut open = 0_u32;
    while let Some(c) = chars.next() {
        match c {
            '*' => {
                let mut deep = false;
                while chars.next_if_eq(&'*').is_some() {
                    deep = true;
                }
                regex.push_str(if deep { ".*" } else { "[^/]*" });
            }
            '?' => regex.push_str("[^/]"),
            '[' => class(&mut chars, &mut regex)?,
            '{' => {
                open += 1;
                regex.push_str("(?:");
            }
            '}' => {
                open = open.checked_sub(1)?;
                regex.push(')');
            }
            ',' if open > 0 => regex.push('|'),
            '\\' => literal(chars.next()?, &mut regex),
            c => literal(c, &mut regex),
        }
    }
    regex.push_str(")$");
    (open == 0).then_some(regex)
}

fn literal(c: char, regex: &mut String) {
    regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, regex: &mut String) -> Option<()> {
    regex.push('[');
    if chars.next_if_eq(&'!').is_some() {
        regex.push('^');
    }
    let mut content: Vec<char> = Vec::new();
    loop {
        match chars.next()? {
            ']' if !content.is_empty() => break,
            '\\' => content.push(chars.next()?),
            c => content.push(c),
        }
    }
    if let [low, '-', high] = content.as_slice() {
        if low > high {
            return None;
        }
        literal(*low, regex);
        regex.push('-');
        literal(*high, regex);
    } else {
        for c in content {
            literal(c, regex);
        }
    }
    regex.push(']');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn patterns_fit_paths() {
        for (pattern, path, fits) in [
            ("conf/*", "conf/a.yaml", true),
            ("conf/*", "conf/deep/a.yaml", false),
            ("conf/**", "conf/deep/a.yaml", true),
            ("**.yaml", "a/b.yaml", true),
            ("{a,lines}.txt", "lines.txt", true),
            ("{a,{b,c}}", "c", true),
            ("[a-c].x", "b.x", true),
            ("[!a-c].x", "b.x", false),
            ("?.txt", "/.txt", false),
            ("a\\*", "a*", true),
            ("a.c", "abc", false),
            ("[", "anything", true),
        ] {
            assert_eq!(compile(pattern)(path), fits, "{pattern} {path}");
        }
    }
}
