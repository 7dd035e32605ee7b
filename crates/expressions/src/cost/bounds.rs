//! The least and the most that something may be.

use super::scaled;

/// The least and the most: of a size, or of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: u64,
    pub(super) max: u64,
}

/// What nothing is known of.
pub(super) const UNKNOWN: Bounds = Bounds { min: 0, max: u64::MAX };

impl Bounds {
    pub(super) const fn exactly(count: u64) -> Self {
        Self { min: count, max: count }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    pub(super) fn either(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Returns the size of a text after a part of it is replaced.
pub(super) fn replaced(text: Bounds, part: Bounds, with: Bounds) -> Bounds {
    let parts = |length: u64, part: u64| length.div_ceil(part.max(1));
    let (most, kept_most) = if part.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if with.max <= part.min {
        (0, text.max)
    } else {
        (parts(text.max, part.min), 0)
    };
    let (least, kept_least) = if part.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if part.max <= with.min {
        (0, text.min)
    } else {
        (parts(text.min, part.max), 0)
    };
    let count = Bounds { min: least, max: most };
    count.times(with).plus(Bounds { min: kept_least, max: kept_most })
}
