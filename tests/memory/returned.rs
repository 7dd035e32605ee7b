//! What is free goes back to the system. Nothing else may take or give memory meanwhile.

use addon_operator::process::memory::{self, give_back};

use crate::alone;

/// Returns how many bytes of this process are in memory, besides those of files.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn what_is_free_goes_back_to_the_system_though_something_lies_behind_it() {
    const PIECES: usize = 60_000;
    let _alone = alone();
    let pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; 1_000]).collect();
    let behind = vec![1_u8; 1_000];
    let before = resident();
    drop(pieces);
    give_back();
    let after = resident();
    assert!(memory::resident() >= after as u64, "files of the program count, too");
    assert!(before.saturating_sub(after) > PIECES * 1_000 / 2, "{before} bytes, then {after}");
    drop(behind);
}
