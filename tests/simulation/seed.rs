//! What is drawn from a seed: a question has the same answer whenever it is asked, whatever was asked before.
//!
//! So a trace stays as it was when a new question comes up elsewhere, and when two requests of one moment change places.

/// The number of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    /// Returns how large the run is: most are small, so that many fit into little time.
    pub(crate) fn scale(self) -> u64 {
        self.pick("scale", 0, &[1, 1, 1, 1, 1, 2, 4])
    }

    /// Returns for how many seconds requests meet faults and people work.
    pub(crate) fn faults_end(self) -> u64 {
        40 * self.scale()
    }

    /// Returns whether nothing goes wrong in the run: what fails then fails without faults.
    pub(crate) fn is_calm(self) -> bool {
        self.0.is_multiple_of(8)
    }

    /// Returns the answer to the `nth` time that `question` is asked.
    pub(crate) fn draw(self, question: &str, nth: u64) -> u64 {
        // FNV-1a over the question, then the end of splitmix64.
        let mut state = 0xcbf2_9ce4_8422_2325_u64;
        let numbers = [self.0.to_le_bytes(), nth.to_le_bytes()].concat();
        for byte in numbers.iter().chain(question.as_bytes()) {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ (state >> 31)
    }

    /// Returns a number from `low` to below `high`.
    pub(crate) fn between(self, question: &str, nth: u64, low: u64, high: u64) -> u64 {
        low + self.draw(question, nth) % (high - low).max(1)
    }

    /// Returns whether something happens that happens so often in a hundred times.
    pub(crate) fn chance(self, question: &str, nth: u64, percent: u64) -> bool {
        self.draw(question, nth) % 100 < percent
    }

    /// Returns one of several.
    pub(crate) fn pick<T: Copy>(self, question: &str, nth: u64, from: &[T]) -> T {
        let place = usize::try_from(self.draw(question, nth) % from.len() as u64).unwrap();
        from[place]
    }
}
