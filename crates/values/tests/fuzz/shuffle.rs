//! Random texts for fuzz targets, without a fuzzer. The crates share this file.

/// A small generator of numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// Runs the target on texts made of words between blanks; `_` is a blank, `~` a line break.
pub(crate) fn shuffle(words: &str, rounds: usize, target: fn(&[u8])) {
    let words: Vec<String> = words.split(' ').map(|word| word.replace('_', " ").replace('~', "\n")).collect();
    let mut dice = Dice(7);
    for _ in 0..rounds {
        let mut text = String::new();
        for _ in 0..dice.roll(24) {
            if let Some(word) = words.get(dice.roll(words.len())) {
                text.push_str(word);
            }
        }
        target(text.as_bytes());
    }
}
