//! A packed bundle in parts that fit into Secrets.

/// The most bytes of a bundle in one Secret. A Secret may hold 1 MiB with everything; this leaves room for the rest.
pub const MAX_CHUNK_BYTES: usize = 900 << 10;

/// The most bytes of a packed bundle.
pub const MAX_PACKED_BYTES: usize = 8 << 20;

/// The most parts of a packed bundle.
pub const MAX_CHUNKS: usize = MAX_PACKED_BYTES.div_ceil(MAX_CHUNK_BYTES);

/// Returns the parts of a packed bundle in their order, at most [`MAX_CHUNK_BYTES`] each. An empty bundle has none.
pub fn split(packed: &[u8]) -> impl ExactSizeIterator<Item = &[u8]> {
    packed.chunks(MAX_CHUNK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns bytes none of whose chunks is like another.
    fn bytes(count: usize) -> Vec<u8> {
        (0_u32..).flat_map(u32::to_le_bytes).take(count).collect()
    }

    #[test]
    fn parts_are_small_enough_and_are_all_of_it() {
        for (size, parts) in
            [(0, 0), (1, 1), (MAX_CHUNK_BYTES, 1), (MAX_CHUNK_BYTES + 1, 2), (MAX_PACKED_BYTES, MAX_CHUNKS)]
        {
            let packed = bytes(size);
            assert_eq!(split(&packed).len(), parts, "{size}");
            assert!(split(&packed).all(|part| part.len() <= MAX_CHUNK_BYTES));
            assert_eq!(split(&packed).collect::<Vec<_>>().concat(), packed);
        }
    }
}
