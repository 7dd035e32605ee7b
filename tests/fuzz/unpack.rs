//! What must hold for every packed bundle.

use std::io::Write as _;

use addon_operator::source::inspect;

/// Unpacks and lints what the bytes hold: as they are, and as the content of a gzip file, which random changes would hardly
/// ever leave intact. Twice the same is said, and whoever is refused hears why.
pub(crate) fn run(bytes: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web-1.0.0.tgz");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    for content in [bytes, &packed.finish().unwrap()] {
        std::fs::write(&path, content).unwrap();
        let [first, second] = [inspect(&path), inspect(&path)].map(|said| said.outcome);
        assert_eq!(format!("{first:?}"), format!("{second:?}"));
        assert!(first.err().is_none_or(|problems| !problems.is_empty()));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "something was left beside the archive");
}
