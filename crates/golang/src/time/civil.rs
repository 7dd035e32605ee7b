//! Days of the proleptic Gregorian calendar, for any year that fits.

/// A date of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

impl Date {
    /// Returns the date that is `days` after 1970-01-01.
    pub(super) fn from_days(days: i64) -> Self {
        // Years begin in March here, so that the leap day is the last one.
        let shifted = days.saturating_add(719_468);
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Self { year, month, day }
    }

    /// Returns the days since 1970-01-01; the day may lie outside of its month.
    pub(super) fn to_days(self) -> i64 {
        let months = self.month - 1;
        let year = self.year.saturating_add(months.div_euclid(12));
        let month = months.rem_euclid(12) + 1;
        let year = if month <= 2 { year.saturating_sub(1) } else { year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let march_month = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * march_month + 2) / 5;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era.saturating_mul(146_097).saturating_add(day_of_era - 719_468).saturating_add(self.day - 1)
    }

    /// Returns the day of the year, beginning with 1.
    pub(super) fn day_of_year(self) -> i64 {
        let first = Self { year: self.year, month: 1, day: 1 };
        self.to_days() - first.to_days() + 1
    }
}

pub(super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns how many days the month has.
pub(super) fn days_in(month: i64, year: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-1_000_000..1_000_000).step_by(137) {
            assert_eq!(Date::from_days(days).to_days(), days);
        }
        assert_eq!(Date::from_days(0), Date { year: 1970, month: 1, day: 1 });
        assert_eq!(Date::from_days(11_016), Date { year: 2000, month: 2, day: 29 });
        assert_eq!(Date { year: 2020, month: 12, day: 31 }.day_of_year(), 366);
    }
}
