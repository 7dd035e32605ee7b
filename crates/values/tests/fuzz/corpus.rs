//! Replays the corpora of fuzz targets. The crates share this file.

use std::fs;
use std::path::Path;

/// Runs the target on every file of its corpus in this crate; returns how many there are.
pub(crate) fn replay(corpus: &str, target: fn(&[u8])) -> usize {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(corpus);
    let mut count = 0;
    for entry in fs::read_dir(directory).unwrap() {
        target(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    count
}
