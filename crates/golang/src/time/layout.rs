//! Layouts, taken apart.

/// A piece of a layout that stands for a part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Day(Pad),
    DayOfYear(Pad),
    /// A fraction of a second; trailing zeros are written or not.
    Fraction {
        digits: usize,
        zeros: bool,
        comma: bool,
    },
    Hour,
    Hour12(Pad),
    HalfDay {
        upper: bool,
    },
    Minute(Pad),
    Month(Pad),
    MonthName {
        long: bool,
    },
    Second(Pad),
    Weekday {
        long: bool,
    },
    Year,
    YearOfCentury,
    ZoneName,
    Offset {
        z: bool,
        colon: bool,
        fields: Fields,
    },
}

/// What a number of one digit is preceded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pad {
    Nothing,
    Space,
    Zero,
}

/// How much of an offset is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fields {
    Hours,
    Minutes,
    Seconds,
}

/// The first item of a layout with what stands around it.
pub(super) struct Found<'a> {
    pub(super) before: &'a [u8],
    pub(super) item: Item,
    pub(super) written: &'a [u8],
    pub(super) after: &'a [u8],
}

/// Items that are recognised by their text alone; longer texts come first.
const FIXED: &[(&[u8], Item)] = &[
    (b"January", Item::MonthName { long: true }),
    (b"Monday", Item::Weekday { long: true }),
    (b"MST", Item::ZoneName),
    (b"01", Item::Month(Pad::Zero)),
    (b"002", Item::DayOfYear(Pad::Zero)),
    (b"02", Item::Day(Pad::Zero)),
    (b"03", Item::Hour12(Pad::Zero)),
    (b"04", Item::Minute(Pad::Zero)),
    (b"05", Item::Second(Pad::Zero)),
    (b"06", Item::YearOfCentury),
    (b"15", Item::Hour),
    (b"1", Item::Month(Pad::Nothing)),
    (b"2006", Item::Year),
    (b"2", Item::Day(Pad::Nothing)),
    (b"__2", Item::DayOfYear(Pad::Space)),
    (b"3", Item::Hour12(Pad::Nothing)),
    (b"4", Item::Minute(Pad::Nothing)),
    (b"5", Item::Second(Pad::Nothing)),
    (b"PM", Item::HalfDay { upper: true }),
    (b"pm", Item::HalfDay { upper: false }),
    (b"-070000", offset(false, false, Fields::Seconds)),
    (b"-07:00:00", offset(false, true, Fields::Seconds)),
    (b"-0700", offset(false, false, Fields::Minutes)),
    (b"-07:00", offset(false, true, Fields::Minutes)),
    (b"-07", offset(false, false, Fields::Hours)),
    (b"Z070000", offset(true, false, Fields::Seconds)),
    (b"Z07:00:00", offset(true, true, Fields::Seconds)),
    (b"Z0700", offset(true, false, Fields::Minutes)),
    (b"Z07:00", offset(true, true, Fields::Minutes)),
    (b"Z07", offset(true, false, Fields::Hours)),
];

const fn offset(z: bool, colon: bool, fields: Fields) -> Item {
    Item::Offset { z, colon, fields }
}

/// Returns the first item of the layout; without one all of it is literal.
pub(super) fn next_item(layout: &[u8]) -> Option<Found<'_>> {
    (0..layout.len()).find_map(|start| {
        let (before, rest) = layout.split_at_checked(start)?;
        let (item, len) = item_at(rest)?;
        let (written, after) = rest.split_at_checked(len)?;
        Some(Found { before, item, written, after })
    })
}

/// Returns the item that begins here, and its length.
fn item_at(rest: &[u8]) -> Option<(Item, usize)> {
    match rest.first()? {
        b'.' | b',' => return fraction_at(rest),
        // `_2006` is an underscore before a year.
        b'_' if rest.starts_with(b"_2") && !rest.starts_with(b"_2006") => {
            return Some((Item::Day(Pad::Space), 2));
        }
        _ => {}
    }
    if let Some((text, item)) = FIXED.iter().find(|(text, _)| rest.starts_with(text)) {
        return Some((*item, text.len()));
    }
    let item = match rest.get(..3)? {
        b"Jan" => Item::MonthName { long: false },
        b"Mon" => Item::Weekday { long: false },
        _ => return None,
    };
    let ends_word = !rest.get(3).is_some_and(u8::is_ascii_lowercase);
    ends_word.then_some((item, 3))
}

/// A separator with zeros or nines behind it, and no digit after those.
fn fraction_at(rest: &[u8]) -> Option<(Item, usize)> {
    let comma = rest.first() == Some(&b',');
    let digit = *rest.get(1).filter(|d| matches!(d, b'0' | b'9'))?;
    let digits = rest.iter().skip(1).take_while(|d| **d == digit).count();
    if rest.get(digits + 1).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    Some((Item::Fraction { digits, zeros: digit == b'0', comma }, digits + 1))
}
