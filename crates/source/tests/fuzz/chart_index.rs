//! What must hold for every index of a chart repository.

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde_json::Value;
use source::chart_repository::choice::{Listing, choose};
use source::chart_repository::entry::Entry;
use source::chart_repository::index::{ChartIndex, MAX_CHART_BYTES, Wanted};

/// The most bytes of an index.
const MOST: u64 = 1 << 20;

/// Hands out one byte at a time.
struct Torn<'b>(&'b [u8]);

impl Read for Torn<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(1);
        buffer.get_mut(..most).map_or(Ok(0), |buffer| self.0.read(buffer))
    }
}

/// Returns what is kept of each chart, and whether that is all; or why nothing can be read.
fn read(text: impl Read, wanted: Wanted) -> Result<(BTreeMap<String, Vec<u8>>, bool), String> {
    let mut store = Vec::new();
    let index = ChartIndex::read(text, MOST, wanted, &mut store).map_err(|error| error.to_string())?;
    let at = |start: u64, length: usize| {
        let start = usize::try_from(start).expect("it is in the store");
        store.get(start..start + length).expect("it is in the store").to_vec()
    };
    let charts = index.charts.iter().map(|(name, extent)| (name.clone(), at(extent.start, extent.length)));
    Ok((charts.collect(), index.is_truncated))
}

/// Reads an index; it must say the same however it comes and whichever charts are wanted, and be sorted and small.
pub(crate) fn run(bytes: &[u8]) {
    let first = |count| Wanted { first: count, ..Wanted::default() };
    let whole = read(bytes, first(3));
    let torn = read(Torn(bytes), first(3));
    // Which of its problems is found first depends on how many bytes came at once: those that may not be in a text are looked for
    // as soon as they come.
    let are_refused = whole.is_err() && torn.is_err();
    assert!(whole == torn || are_refused, "{whole:?} is not {torn:?}");
    let Ok((charts, is_truncated)) = whole else { return };
    assert!(charts.len() <= 3);
    let all = read(bytes, first(usize::MAX)).expect("it was read before").0;
    assert!(is_truncated == (all.len() > charts.len()));
    assert!(all.iter().take(charts.len()).eq(&charts), "the first by name");
    for (name, list) in &all {
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{name:?}");
        assert!(!name.is_empty() && !name.starts_with('.') && list.len() <= MAX_CHART_BYTES);
        let kept: Vec<Value> = serde_json::from_slice(list).expect("it is a list");
        let entries: Vec<Entry> = kept.iter().filter_map(Entry::read).collect();
        assert_eq!(entries.len(), kept.len());
        assert!(entries.is_sorted_by(|a, b| b.parsed.precedence(&a.parsed).is_le()));
        for entry in &entries {
            let chosen =
                choose(Listing::Index, &entries, &entry.version, |_| false).expect("it is named exactly");
            assert_eq!(chosen.version, entry.version);
        }
        let one = Wanted { named: [name.clone()].into(), first: 0 };
        assert_eq!(read(bytes, one).expect("it was read before").0.get(name), Some(list));
    }
}
