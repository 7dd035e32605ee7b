//! The order in which the keys of a mapping are written.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::str::Chars;

/// Compares two keys the way Go's YAML writer sorts them: runs of digits by
/// their number, letters behind everything else.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    let mut left = left.chars().peekable();
    let mut right = right.chars().peekable();
    // What both keys share so far: whether it ends with a digit, and whether
    // the digits it ends with begin a number (they are not only zeros).
    let mut digits = false;
    let mut counting = false;
    loop {
        let (a, b) = match (left.peek().copied(), right.peek().copied()) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return a.is_some().cmp(&b.is_some()),
        };
        if a != b {
            return differ(&mut left, &mut right, a, b, digits, counting);
        }
        digits = is_digit(a);
        counting = digits && (counting || a != '0');
        left.next();
        right.next();
    }
}

/// Compares what is left of two keys whose next characters differ.
fn differ(
    left: &mut Peekable<Chars<'_>>,
    right: &mut Peekable<Chars<'_>>,
    a: char,
    b: char,
    digits: bool,
    counting: bool,
) -> Ordering {
    match (a.is_alphabetic(), b.is_alphabetic()) {
        (true, true) => return a.cmp(&b),
        // Behind digits a letter comes first, so that `a1b` precedes `a10`.
        (true, false) if digits => return Ordering::Less,
        (true, false) => return Ordering::Greater,
        (false, true) if digits => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero inside a number counts as a digit of it.
    let start = i64::from((a == '0' || b == '0') && counting);
    let (left_number, left_length) = number(left, start);
    let (right_number, right_length) = number(right, start);
    left_number.cmp(&right_number).then(left_length.cmp(&right_length)).then(a.cmp(&b))
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

/// Returns whether `character` is a decimal digit.
fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}
