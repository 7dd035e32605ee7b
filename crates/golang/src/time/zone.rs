//! Time zones.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time zone: UTC, a fixed offset with a name, or one of the tz database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zone {
    /// UTC.
    Utc,
    /// An offset in seconds east of UTC; the name may be empty.
    Fixed {
        /// The abbreviation.
        name: String,
        /// Seconds east of UTC.
        offset: i64,
    },
    /// A zone with rules.
    Ruled(TimeZone),
}

impl Zone {
    /// Returns the zone that the tz database knows under this very name.
    pub fn named(name: &str) -> Option<Self> {
        if matches!(name, "" | "UTC") {
            return Some(Self::Utc);
        }
        let zone = TimeZone::get(name).ok()?;
        (zone.iana_name() == Some(name)).then(|| Self::ruled(&zone))
    }

    /// Returns the zone of the machine or of a database.
    pub fn ruled(zone: &TimeZone) -> Self {
        if zone.iana_name().is_some_and(|name| matches!(name, "UTC" | "Etc/UTC")) || *zone == TimeZone::UTC {
            Self::Utc
        } else {
            Self::Ruled(zone.clone())
        }
    }

    /// Returns the offset in seconds east of UTC and the abbreviation at this instant.
    pub fn at(&self, seconds: i64) -> (i64, String) {
        match self {
            Self::Utc => (0, "UTC".to_owned()),
            Self::Fixed { name, offset } => (*offset, name.clone()),
            Self::Ruled(zone) => {
                let info = zone.to_offset_info(instant(seconds));
                (i64::from(info.offset().seconds()), info.abbreviation().to_owned())
            }
        }
    }

    /// Returns the offset for a time of the clock. Where the clock is turned, the answer is
    /// that of the rules some hours off, which is what Go takes.
    pub(super) fn offset_of_clock(&self, clock: i64) -> i64 {
        let guess = self.at(clock).0;
        self.at(clock.saturating_sub(guess)).0
    }

    /// Returns the offset that the abbreviation stands for around this time of the clock.
    pub(super) fn offset_of_name(&self, name: &str, clock: i64) -> Option<i64> {
        const HALF_YEAR: i64 = 182 * 86_400;
        [clock, clock.saturating_add(HALF_YEAR), clock.saturating_sub(HALF_YEAR)]
            .into_iter()
            .map(|seconds| self.at(seconds))
            .find(|(_, abbreviation)| abbreviation == name)
            .map(|(offset, _)| offset)
    }
}

/// Returns the instant, or the nearest one that the database can be asked for.
fn instant(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX })
}
