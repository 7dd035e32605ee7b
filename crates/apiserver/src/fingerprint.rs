//! Numbers that change with the bytes they are computed from: entity tags, hashes of templates.

/// Returns the 64-bit FNV-1a hash of `bytes`.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
