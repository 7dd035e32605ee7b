//! Reads arbitrary bytes as a packed chart and as a release record.

use std::io::Write as _;

use chart::load;
use chart::record;
use chart::warnings::Warnings;

/// Loads what the bytes hold: as they are, and as the content of a gzip file, which
/// random changes would hardly ever leave intact.
pub(crate) fn run(bytes: &[u8]) {
    let _ = load::from_archive(bytes, &mut Warnings::default());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    if packed.write_all(bytes).is_ok()
        && let Ok(packed) = packed.finish()
    {
        let _ = load::from_archive(&packed, &mut Warnings::default());
    }
    let _ = record::decode(bytes);
}
