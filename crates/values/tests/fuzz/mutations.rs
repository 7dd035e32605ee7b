//! Changes inputs of a corpus as fuzzers do, without one. The crates share this file.

use std::fs;
use std::path::Path;

/// The most changes that are made to an input.
const MOST_CHANGES: usize = 6;

/// How large an input may become, in bytes.
const LARGEST: usize = 4_096;

/// Runs the target on `rounds` inputs, the same in each run: those of its corpus, put together and changed, with pieces of
/// its dictionary.
pub(crate) fn mutate(corpus: &str, rounds: usize, target: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let mut files: Vec<_> =
        fs::read_dir(root.join("corpus").join(corpus)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let inputs: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let pieces = dictionary(&fs::read_to_string(root.join(format!("{corpus}.dict"))).unwrap());
    let mut dice = Dice::new(7);
    for _ in 0..rounds {
        let mut input = inputs.get(dice.roll(inputs.len())).cloned().unwrap_or_default();
        for _ in 0..=dice.roll(MOST_CHANGES) {
            change(&mut input, &inputs, &pieces, &mut dice);
        }
        input.truncate(LARGEST);
        target(&input);
    }
}

fn change(input: &mut Vec<u8>, inputs: &[Vec<u8>], pieces: &[Vec<u8>], dice: &mut Dice) {
    let (a, b) = (dice.roll(input.len() + 1), dice.roll(input.len() + 1));
    let (start, end) = (a.min(b), a.max(b));
    let end = end.min(start + 64);
    match dice.roll(6) {
        0 => drop(input.drain(start..end)),
        1 => {
            let part = input.get(start..end).map(<[u8]>::to_vec).unwrap_or_default();
            input.splice(b..b, part);
        }
        2 => {
            let other = inputs.get(dice.roll(inputs.len())).map(Vec::as_slice).unwrap_or_default();
            let part = other.get(dice.roll(other.len() + 1)..).map(<[u8]>::to_vec).unwrap_or_default();
            input.splice(a.., part);
        }
        3 => {
            if let Some(byte) = input.get_mut(a) {
                *byte = u8::try_from(dice.roll(256)).unwrap();
            }
        }
        _ => {
            let piece = pieces.get(dice.roll(pieces.len())).cloned().unwrap_or_default();
            // In place of something else as often as between two things.
            let end = if dice.roll(2) == 0 { start } else { end.min(start + piece.len()) };
            input.splice(start..end, piece);
        }
    }
}

/// Reads a dictionary of libFuzzer: a quoted text in each line, with escapes.
fn dictionary(text: &str) -> Vec<Vec<u8>> {
    let quoted = text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(unescape).collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some((before, escape)) = rest.split_once('\\') {
        out.extend(before.bytes());
        let hex = escape.strip_prefix('x').and_then(|digits| u8::from_str_radix(digits.get(..2)?, 16).ok());
        let length = hex.map_or(1, |_| 3);
        out.push(hex.or_else(|| escape.bytes().next()).unwrap_or(b'\\'));
        rest = escape.get(length..).unwrap_or_default();
    }
    out.extend(rest.bytes());
    out
}

/// A small generator of numbers, the same in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }
}
