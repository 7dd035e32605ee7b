//! What expressions cost, in the units of Kubernetes: counted while they run, and estimated before.

pub(crate) mod actual;
mod bounds;
pub(crate) mod estimate;

/// How much one run of an expression may cost.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// What it costs to look at one character of a text.
const TRAVERSAL: f64 = 0.1;

/// What it costs to have one character in an expression of a regular language.
const REGULAR: f64 = 0.25;

/// Returns a number of items times the cost of one, rounded up. What is too large counts as the largest number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "costs are rounded in the same way as in the real server, and conversions saturate"
)]
fn scaled(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).ceil() as u64
}
