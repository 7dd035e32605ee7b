//! Months and days of the week, and their names.

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A month, beginning with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Month(pub i64);

/// A day of the week, beginning with 0 for Sunday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weekday(pub i64);

impl std::fmt::Display for Month {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&name(&MONTHS, self.0 - 1, true))
    }
}

impl std::fmt::Display for Weekday {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&name(&WEEKDAYS, self.0, true))
    }
}

/// Returns one of `names`, or its first three letters.
pub(super) fn name(names: &[&str], index: i64, long: bool) -> String {
    let name = usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or_default();
    let len = if long { name.len() } else { 3 };
    name.chars().take(len).collect()
}
