//! A constraint: alternatives (`||`) of clauses that must all hold.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{Version, VersionError};

/// Why a text is not a constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// An alternative does not have the shape of a list of clauses.
    #[error("improper constraint: {0}")]
    Improper(String),
    /// A clause has a version with a number that does not fit, or with a leading zero.
    #[error("constraint parser error")]
    Version(#[from] VersionError),
}

/// A constraint on versions, such as `>=1.19-0 <2 || ^3.1`.
#[derive(Clone, Debug)]
pub struct Constraint {
    alternatives: Vec<Vec<Clause>>,
}

impl Constraint {
    /// Reads a constraint.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        if let Some(parts) = ClauseParts::plain(text) {
            return Ok(Self { alternatives: vec![vec![Clause::read(parts)?]] });
        }
        let alternatives = without_hyphens(text)
            .split("||")
            .map(|alternative| {
                if !SHAPES.list.is_match(alternative) {
                    return Err(ConstraintError::Improper(alternative.to_owned()));
                }
                SHAPES
                    .clause
                    .captures_iter(alternative)
                    .map(|found| Clause::read(ClauseParts::found(&found)))
                    .collect()
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { alternatives })
    }

    /// Reports whether the version fits.
    ///
    /// A pre-release fits only an alternative that itself names a pre-release.
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|clauses| {
            let mentions = clauses.iter().any(|c| !c.version.prerelease().is_empty());
            (mentions || version.prerelease().is_empty())
                && clauses.iter().all(|clause| clause.matches(version))
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Caret,
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
    Tilde,
}

/// From which number on a clause leaves the version open (`1.x` from the minor on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Patch,
    Minor,
    All,
}

#[derive(Clone, Debug)]
struct Clause {
    operator: Operator,
    version: Version,
    open: Open,
}

/// A clause as it is written. Of the numbers, all but the first have their dot, and the pre-release has its hyphen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClauseParts<'t> {
    operator: &'t str,
    written: &'t str,
    major: &'t str,
    minor: &'t str,
    patch: &'t str,
    prerelease: &'t str,
}

impl<'t> ClauseParts<'t> {
    fn found(found: &Captures<'t>) -> Self {
        let part = |index| found.get(index).map_or("", |part| part.as_str());
        let (operator, written, major) = (part(1), part(2), part(3));
        Self { operator, written, major, minor: part(4), patch: part(5), prerelease: part(6) }
    }

    /// Returns the parts of a constraint that is nothing but a plain clause, as almost all are: they are found without the
    /// shapes, which take long to make.
    fn plain(text: &'t str) -> Option<Self> {
        let text = text.trim_matches(SPACES);
        let (operator, rest) = cut(text, |byte| b"=!<>~^".contains(&byte));
        if !matches!(operator, "" | "=" | "!=" | ">" | "<" | ">=" | "=>" | "<=" | "=<" | "~" | "~>" | "^") {
            return None;
        }
        let written = rest.trim_start_matches(SPACES);
        let (major, rest) = plain_number(written)?;
        let (minor, rest) = plain_number_behind_dot(rest)?;
        let (patch, prerelease) = plain_number_behind_dot(rest)?;
        let is_plain = match prerelease.strip_prefix('-') {
            None => prerelease.is_empty(),
            Some(words) => words
                .split('.')
                .all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')),
        };
        is_plain.then_some(Self { operator, written, major, minor, patch, prerelease })
    }
}

/// White space between the parts of a constraint.
const SPACES: [char; 5] = ['\t', '\n', '\x0c', '\r', ' '];

/// Returns the bytes at the start that are `wanted`, which are ASCII, and the rest.
fn cut(text: &str, wanted: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !wanted(byte)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Returns the number at the start, or the one sign in place of it, and the rest.
fn plain_number(text: &str) -> Option<(&str, &str)> {
    let (number, rest) = cut(text, |byte| byte.is_ascii_digit() || b"|xX*".contains(&byte));
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number || matches!(number, "x" | "X" | "*")).then_some((number, rest))
}

/// Does the same with a dot before the number; without a dot there is none.
fn plain_number_behind_dot(text: &str) -> Option<(&str, &str)> {
    let Some(behind) = text.strip_prefix('.') else { return Some(("", text)) };
    let (number, _) = plain_number(behind)?;
    text.split_at_checked(1 + number.len())
}

impl Clause {
    fn read(parts: ClauseParts<'_>) -> Result<Self, ConstraintError> {
        let operator = match parts.operator {
            "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            ">=" | "=>" => Operator::GreaterEqual,
            "<=" | "=<" => Operator::LessEqual,
            "~" | "~>" => Operator::Tilde,
            "^" => Operator::Caret,
            _ => Operator::Equal,
        };
        let ClauseParts { operator: _, written, major, minor, patch, prerelease } = parts;
        let (open, text) = if is_wild(major) {
            (Open::All, format!("0.0.0{prerelease}"))
        } else if is_wild(minor) {
            (Open::Minor, format!("{major}.0.0{prerelease}"))
        } else if is_wild(patch) {
            (Open::Patch, format!("{major}{minor}.0{prerelease}"))
        } else {
            (Open::Nothing, written.to_owned())
        };
        Ok(Self { operator, version: Version::parse(&text)?, open })
    }

    fn matches(&self, version: &Version) -> bool {
        let order = version.precedence(&self.version);
        match self.operator {
            Operator::Caret => order.is_ge() && self.is_same_up_to_first_nonzero(version),
            Operator::Equal if self.open == Open::Nothing => order.is_eq(),
            Operator::Equal | Operator::Tilde => order.is_ge() && self.is_within(version),
            Operator::Greater => self.is_above(version, order),
            Operator::GreaterEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessEqual => self.is_not_above(version, order),
            Operator::NotEqual => self.differs(version, order),
        }
    }

    /// The rule of `~`: the same major and minor, as far as they are given.
    fn is_within(&self, version: &Version) -> bool {
        let any = matches!(self.open, Open::All | Open::Nothing) && self.numbers() == (0, 0, 0);
        any || (version.major() == self.version.major()
            && (version.minor() == self.version.minor() || self.open == Open::Minor))
    }

    /// The rule of `^`: no number up to the first one that is not zero changes.
    fn is_same_up_to_first_nonzero(&self, version: &Version) -> bool {
        let (major, minor, patch) = self.numbers();
        if version.major() != major {
            return false;
        }
        if major > 0 || self.open == Open::Minor {
            return true;
        }
        if version.minor() != minor {
            return false;
        }
        minor > 0 || self.open == Open::Patch || version.patch() == patch
    }

    /// The rule of `>`: above everything that the open numbers stand for.
    fn is_above(&self, version: &Version, order: Ordering) -> bool {
        let major = version.major().cmp(&self.version.major());
        match (self.open, major) {
            (Open::Nothing, _) | (Open::All, Ordering::Equal) => order.is_gt(),
            (_, Ordering::Greater) => true,
            (_, Ordering::Less) | (Open::Minor, Ordering::Equal) => false,
            (Open::Patch, Ordering::Equal) => version.minor() > self.version.minor(),
        }
    }

    /// The rule of `<=`: not above everything that the open numbers stand for.
    fn is_not_above(&self, version: &Version, order: Ordering) -> bool {
        if self.open == Open::Nothing {
            return order.is_le();
        }
        match version.major().cmp(&self.version.major()) {
            Ordering::Greater => false,
            Ordering::Less => true,
            Ordering::Equal => version.minor() <= self.version.minor() || self.open == Open::Minor,
        }
    }

    /// The rule of `!=`: outside of everything that the open numbers stand for.
    fn differs(&self, version: &Version, order: Ordering) -> bool {
        let major = version.major() != self.version.major();
        let minor = version.minor() != self.version.minor();
        match self.open {
            Open::Nothing => order.is_ne(),
            Open::Minor => major,
            Open::Patch => major || minor || version.prerelease() != self.version.prerelease(),
            Open::All => major || minor || version.patch() != self.version.patch() || order.is_ne(),
        }
    }

    fn numbers(&self) -> (u64, u64, u64) {
        let version = &self.version;
        (version.major(), version.minor(), version.patch())
    }
}

/// Is the number, with a dot before it perhaps, missing or a wildcard?
fn is_wild(number: &str) -> bool {
    matches!(number.trim_start_matches('.'), "" | "x" | "X" | "*")
}

/// The shapes that a constraint is taken apart with.
struct Shapes {
    clause: Regex,
    list: Regex,
}

/// White space as charts' language knows it, which is ASCII's only.
const SPACE: &str = r"[\t\n\f\r ]";
/// The operators, in the order in which they are tried.
const OPERATOR: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
/// A version with wildcards. That `|` may stand in a number is true to the original.
const NUMBERS: &str = r"v?([0-9|xX*]+)(\.[0-9|xX*]+)?(\.[0-9|xX*]+)?(-(?:[0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?(?:\+(?:[0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?";

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let clause = format!("({OPERATOR}){SPACE}*({NUMBERS})");
    let list = format!(
        "^(?:{SPACE}*(?:{OPERATOR}){SPACE}*(?:{NUMBERS}){SPACE}*)(?:(?:{SPACE}+|,{SPACE}*)(?:{OPERATOR}){SPACE}*(?:{NUMBERS}){SPACE}*)*$"
    );
    Shapes { clause: constant(&clause), list: constant(&list) }
});

/// A range, which few constraints have: to compile its shape takes longer than to read them.
static HYPHEN: LazyLock<Regex> =
    LazyLock::new(|| constant(&format!("{SPACE}*({NUMBERS}){SPACE}+-{SPACE}+({NUMBERS}){SPACE}*")));

#[expect(clippy::expect_used, reason = "the patterns are constants, compiled by every test")]
fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// Writes `1.2 - 1.4` as `>= 1.2, <= 1.4`.
fn without_hyphens(text: &str) -> String {
    let mut rewritten = text.to_owned();
    let is_space_and_hyphen = |pair: &[u8]| matches!(pair, [b'\t' | b'\n' | 0x0c | b'\r' | b' ', b'-']);
    if !text.as_bytes().windows(2).any(is_space_and_hyphen) {
        return rewritten;
    }
    for found in HYPHEN.captures_iter(text) {
        let part = |index| found.get(index).map_or("", |m| m.as_str());
        let range = format!(">= {}, <= {} ", part(1), part(6));
        rewritten = rewritten.replacen(part(0), &range, 1);
    }
    rewritten
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ClauseParts, SHAPES, without_hyphens};

    proptest! {
        /// What is found without the shapes is what they find.
        #[test]
        fn a_plain_clause_is_what_the_shapes_say(
            text in "[ ]{0,2}[=!<>~^]{0,2}[ ]{0,2}[v]?([0-9xX*|]{1,2}[.]?){0,4}[-+]?[a-z0-9.-]{0,4}[ ,|]{0,2}[0-9]?"
        ) {
            let Some(parts) = ClauseParts::plain(&text) else { return Ok(()) };
            prop_assert_eq!(&without_hyphens(&text), &text);
            prop_assert!(!text.contains('|') && SHAPES.list.is_match(&text));
            let found: Vec<_> = SHAPES.clause.captures_iter(&text).map(|found| ClauseParts::found(&found)).collect();
            prop_assert_eq!(found, vec![parts]);
        }
    }

    #[test]
    fn most_constraints_are_plain() {
        for text in ["2.x.x", "*", ">=1.23-0", " >= 1.19.0-0 ", "^1.2.3", "~>4", "1.2.3-beta.1"] {
            assert!(ClauseParts::plain(text).is_some(), "{text}");
        }
        for text in [
            "",
            "1.2 - 1.4",
            ">=1 <2",
            ">1,<2",
            "1 || 2",
            "v1",
            "1+a",
            "1.2.3.4",
            "1.|",
            "><1",
            "1..2",
            "1-",
            "1é",
        ] {
            assert!(ClauseParts::plain(text).is_none(), "{text}");
        }
    }
}
