//! The order in which the keys of a mapping are written.

use std::iter::Peekable;
use std::str::Chars;

/// How letters stand to other characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Letters {
    /// Behind all others.
    Last,
    /// Behind all others, but right behind a digit they come first.
    FirstBehindDigits,
}

/// Sorts `entries` by the keys that `key` returns, as Go's YAML writers do: runs
/// of digits by their number.
///
/// That order is not a total one for some keys with leading zeros, so the sort
/// is one that gives some order even then.
pub(super) fn sort<T: Copy>(entries: &mut Vec<T>, letters: Letters, key: impl Fn(&T) -> &str) {
    let is_less = |left: &T, right: &T| is_less(key(left), key(right), letters);
    let mut width = 1;
    while width < entries.len() {
        let mut sorted = Vec::with_capacity(entries.len());
        for pair in entries.chunks(width * 2) {
            let (left, right) = pair.split_at_checked(width).unwrap_or((pair, &[]));
            let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
            while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
                let next = if is_less(b, a) { right.next() } else { left.next() };
                sorted.extend(next);
            }
            sorted.extend(left.chain(right));
        }
        *entries = sorted;
        width *= 2;
    }
}

/// Returns whether the key `left` is written before the key `right`.
fn is_less(left: &str, right: &str, letters: Letters) -> bool {
    let mut left = left.chars().peekable();
    let mut right = right.chars().peekable();
    // What both keys share so far: whether it ends with a digit, and whether
    // the digits it ends with are not only zeros.
    let mut digits = false;
    let mut counting = false;
    loop {
        let (a, b) = match (left.peek().copied(), right.peek().copied()) {
            (Some(a), Some(b)) => (a, b),
            (a, _) => return a.is_none() && right.peek().is_some(),
        };
        if a == b {
            digits = is_digit(a);
            counting = digits && (counting || a != '0');
            left.next();
            right.next();
            continue;
        }
        return match (a.is_alphabetic(), b.is_alphabetic()) {
            (true, true) => a < b,
            (false, false) => {
                // A zero inside a number counts as a digit of it.
                let start = i64::from((a == '0' || b == '0') && counting);
                let left = number(&mut left, start);
                let right = number(&mut right, start);
                (left, a) < (right, b)
            }
            (a_is_letter, b_is_letter) => {
                if digits && letters == Letters::FirstBehindDigits {
                    a_is_letter
                } else {
                    b_is_letter
                }
            }
        };
    }
}

/// Reads the digits at the front: their number, continued from `start`, and
/// how many there are.
fn number(rest: &mut Peekable<Chars<'_>>, start: i64) -> (i64, usize) {
    let mut number = start;
    let mut length = 0;
    while let Some(digit) = rest.next_if(|next| is_digit(*next)) {
        let value = i64::from(u32::from(digit)) - i64::from(u32::from('0'));
        number = number.wrapping_mul(10).wrapping_add(value);
        length += 1;
    }
    (number, length)
}

/// Returns whether `character` is a digit of any script.
fn is_digit(character: char) -> bool {
    character.is_ascii_digit() || (!character.is_ascii() && character.is_numeric())
}
