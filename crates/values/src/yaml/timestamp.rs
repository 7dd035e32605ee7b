//! Which plain scalars are dates, and so are quoted when they are strings.

/// Returns whether `text` is a date, or a date and a time of day.
///
/// Years have four digits; the other fields one or two.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let year = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if year != 4 || bytes.get(4) != Some(&b'-') {
        return false;
    }
    let mut cursor = Cursor { rest: text };
    cursor.date().is_some() && cursor.clock().is_some()
}

/// The text that is still to be read.
struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    /// Takes `wanted` off the front, if it is there.
    fn take(&mut self, wanted: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    /// Takes `min` to `max` digits off the front.
    fn number(&mut self, min: usize, max: usize) -> Option<u32> {
        let length = self.rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if length < min {
            return None;
        }
        let (digits, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        digits.parse().ok()
    }

    /// Takes `YYYY-M-D`; the day must exist in the calendar.
    fn date(&mut self) -> Option<()> {
        let year = self.number(4, 4)?;
        self.take('-')?;
        let month = self.number(1, 2)?;
        self.take('-')?;
        let day = self.number(1, 2)?;
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return None,
        };
        (1..=days).contains(&day).then_some(())
    }

    /// Takes the rest: nothing, ` h:m:s` without a zone or `Th:m:s` with one.
    fn clock(&mut self) -> Option<()> {
        if self.rest.is_empty() {
            return Some(());
        }
        let zoned = self.take('T').is_some() || self.take('t').is_some();
        if !zoned {
            self.take(' ')?;
            self.rest = self.rest.trim_start_matches(' ');
        }
        let hour = self.number(1, 2)?;
        self.take(':')?;
        let minute = self.number(1, 2)?;
        self.take(':')?;
        let second = self.number(1, 2)?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        if self.take('.').is_some() || self.take(',').is_some() {
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            self.rest = self.rest.split_at_checked(digits)?.1;
        }
        if zoned {
            self.zone()?;
        }
        self.rest.is_empty().then_some(())
    }

    /// Takes `Z` or `±hh:mm`.
    fn zone(&mut self) -> Option<()> {
        if self.take('Z').is_some() {
            return Some(());
        }
        if self.take('+').is_none() {
            self.take('-')?;
        }
        let hours = self.number(2, 2)?;
        self.take(':')?;
        let minutes = self.number(2, 2)?;
        (hours <= 24 && minutes <= 60).then_some(())
    }
}
