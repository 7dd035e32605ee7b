//! File name patterns as Go's `path/filepath` matches them.

/// The pattern is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct BadPattern;

/// Reports whether all of `name` fits `pattern`: `*` and `?` stop at a slash, `[a-z]`
/// and `[^a-z]` are one character, a backslash takes away a meaning.
pub fn matches(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    // Most patterns are a name, or a star and how a name ends.
    let is_literal = |text: &str| !text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'));
    if is_literal(pattern) {
        return Ok(pattern == name);
    }
    if let Some(end) = pattern.strip_prefix('*').filter(|end| is_literal(end)) {
        return Ok(name.strip_suffix(end).is_some_and(|begin| !begin.contains('/')));
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    match_rest(&pattern, &name)
}

/// Follows one way through the pattern; on a mismatch the last star takes one character more.
fn match_rest(pattern: &[char], name: &[char]) -> Result<bool, BadPattern> {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let stepped = match pattern.get(p) {
            None if n == name.len() => return Ok(true),
            None => None,
            Some('*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some(_) => match_one(pattern, p, name.get(n))?,
        };
        if let Some(next) = stepped {
            p = next;
            n += 1;
            continue;
        }
        // What is left of the pattern is checked even where the name is too short.
        check(pattern, p)?;
        match star {
            Some((at, from)) if name.get(from).is_some_and(|c| *c != '/') => {
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
            Some(_) | None => return Ok(false),
        }
    }
}

/// Matches one character; returns the place in the pattern behind it.
fn match_one(pattern: &[char], at: usize, c: Option<&char>) -> Result<Option<usize>, BadPattern> {
    let Some(first) = pattern.get(at) else { return Ok(None) };
    match (first, c) {
        ('?', Some(c)) => Ok((*c != '/').then_some(at + 1)),
        ('[', c) => match_class(pattern, at + 1, c),
        ('\\', c) => {
            let literal = pattern.get(at + 1).ok_or(BadPattern)?;
            Ok((c == Some(literal)).then_some(at + 2))
        }
        (literal, Some(c)) => Ok((literal == c).then_some(at + 1)),
        (_, None) => Ok(None),
    }
}

/// Matches a bracket expression whose inside begins at `at`.
fn match_class(pattern: &[char], mut at: usize, c: Option<&char>) -> Result<Option<usize>, BadPattern> {
    let negated = pattern.get(at) == Some(&'^');
    if negated {
        at += 1;
    }
    let (mut found, mut ranges) = (false, 0);
    loop {
        if ranges > 0 && pattern.get(at) == Some(&']') {
            at += 1;
            break;
        }
        let (low, next) = bound(pattern, at)?;
        let (high, next) = match pattern.get(next) {
            Some('-') => bound(pattern, next + 1)?,
            Some(_) => (low, next),
            None => return Err(BadPattern),
        };
        found |= c.is_some_and(|c| (low..=high).contains(c));
        at = next;
        ranges += 1;
    }
    Ok((c.is_some() && found != negated).then_some(at))
}

fn bound(pattern: &[char], at: usize) -> Result<(char, usize), BadPattern> {
    let (c, next) = match pattern.get(at) {
        None | Some('-' | ']') => return Err(BadPattern),
        Some('\\') => (pattern.get(at + 1).ok_or(BadPattern)?, at + 2),
        Some(c) => (c, at + 1),
    };
    if next >= pattern.len() { Err(BadPattern) } else { Ok((*c, next)) }
}

fn check(pattern: &[char], mut at: usize) -> Result<(), BadPattern> {
    while let Some(c) = pattern.get(at) {
        at = match c {
            '[' => {
                // A character that is in no class still walks over all of it.
                let mut end = at + 1;
                if pattern.get(end) == Some(&'^') {
                    end += 1;
                }
                let mut ranges = 0;
                loop {
                    if ranges > 0 && pattern.get(end) == Some(&']') {
                        break end + 1;
                    }
                    let (_, next) = bound(pattern, end)?;
                    end = if pattern.get(next) == Some(&'-') { bound(pattern, next + 1)?.1 } else { next };
                    ranges += 1;
                }
            }
            '\\' => {
                if at + 1 >= pattern.len() {
                    return Err(BadPattern);
                }
                at + 2
            }
            _ => at + 1,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_go_does() {
        for (pattern, name, expected) in [
            ("abc", "abc", Ok(true)),
            ("*", "abc", Ok(true)),
            ("*c", "abc", Ok(true)),
            ("*bc", "bc", Ok(true)),
            ("*bc", "c", Ok(false)),
            ("*bc", "a/bc", Ok(false)),
            ("*b/c", "ab/c", Ok(true)),
            ("ab", "abc", Ok(false)),
            ("a*", "ab/c", Ok(false)),
            ("a*/b", "abc/b", Ok(true)),
            ("a*b*c*d*e*/f", "axbxcxdxe/f", Ok(true)),
            ("a*b?c*x", "abxbbxdbxebxczzy", Ok(false)),
            ("ab[c]", "abc", Ok(true)),
            ("ab[^b-d]", "abc", Ok(false)),
            ("ab[^e-g]", "abc", Ok(true)),
            ("a\\*b", "a*b", Ok(true)),
            ("[a-ζ]*", "α", Ok(true)),
            ("*x", "xxx", Ok(true)),
            ("", "", Ok(true)),
            ("?", "/", Ok(false)),
            ("[]a]", "]", Err(BadPattern)),
            ("[-]", "-", Err(BadPattern)),
            ("[a-b-c]", "a", Err(BadPattern)),
            ("[", "a", Err(BadPattern)),
            ("a[", "a", Err(BadPattern)),
            ("a\\", "a", Err(BadPattern)),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
