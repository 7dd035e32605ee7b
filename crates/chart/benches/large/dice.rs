//! Random numbers that are the same each time.

/// A source of numbers.
pub(crate) struct Dice(u64);

impl Dice {
    /// Returns the source of the numbers that `seed` stands for.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.next() % u64::from(end.max(1))).unwrap_or_default()
    }

    /// Returns one of `choices`.
    pub(crate) fn pick<'c>(&mut self, choices: &[&'c str]) -> &'c str {
        let index =
            usize::try_from(self.below(u32::try_from(choices.len()).unwrap_or(1))).unwrap_or_default();
        choices.get(index).copied().unwrap_or_default()
    }

    /// Returns a float with a few digits behind the point.
    pub(crate) fn float(&mut self) -> f64 {
        f64::from(self.below(1_000_000)) / 1_000.0
    }

    /// Returns words with spaces between them.
    pub(crate) fn words(&mut self, count: usize) -> String {
        const WORDS: &[&str] = &[
            "the",
            "request",
            "of",
            "a",
            "client",
            "waits",
            "for",
            "pool",
            "with",
            "timeout",
            "seconds",
            "and",
            "retries",
            "until",
            "backend",
            "answers",
            "or",
            "fails",
            "limit",
            "is",
            "reached",
            "namespace",
            "metric",
            "rate",
            "sum",
            "by",
            "instance",
            "job",
            "error",
            "latency",
        ];
        let words: Vec<&str> = (0..count).map(|_| self.pick(WORDS)).collect();
        words.join(" ")
    }

    /// Returns text of about so many bytes in lines.
    pub(crate) fn lines(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 80);
        while text.len() < bytes {
            let words = 4 + usize::try_from(self.below(10)).unwrap_or_default();
            text.push_str(&self.words(words));
            text.push('\n');
        }
        text
    }
}
