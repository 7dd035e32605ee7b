//! A packed bundle in parts that fit into Secrets.

use crate::digest::Digest;

/// The most bytes of a bundle in one Secret. A Secret may hold 1 MiB with everything; this leaves room for the rest.
pub const MAX_CHUNK_BYTES: usize = 900 << 10;

/// The most bytes of a packed bundle.
pub const MAX_PACKED_BYTES: usize = 8 << 20;

/// The most parts of a packed bundle.
pub const MAX_CHUNKS: usize = MAX_PACKED_BYTES.div_ceil(MAX_CHUNK_BYTES);

/// Why parts are no bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The parts have more bytes together than a bundle may have.
    #[error("the parts of {digest} are larger than {} MiB together", MAX_PACKED_BYTES >> 20)]
    Large {
        /// The digest of the bundle.
        digest: Digest,
    },
    /// A part is missing or changed.
    #[error("the {count} parts of {digest} have the digest {found}: a part is missing, or was changed")]
    Digest {
        /// The digest of the bundle.
        digest: Digest,
        /// How many parts there were.
        count: usize,
        /// The digest of what they hold together.
        found: Digest,
    },
}

/// Returns the parts of a packed bundle in their order, at most [`MAX_CHUNK_BYTES`] each. An empty bundle has none.
pub fn split(packed: &[u8]) -> impl ExactSizeIterator<Item = &[u8]> {
    packed.chunks(MAX_CHUNK_BYTES)
}

/// Returns the bundle that these parts are, in their order, if its digest is the right one.
pub fn join<'p>(parts: impl IntoIterator<Item = &'p [u8]>, digest: &Digest) -> Result<Vec<u8>, JoinError> {
    let (mut packed, mut count) = (Vec::new(), 0);
    for part in parts {
        if packed.len() + part.len() > MAX_PACKED_BYTES {
            return Err(JoinError::Large { digest: digest.clone() });
        }
        packed.extend_from_slice(part);
        count += 1;
    }
    let found = Digest::of(&packed);
    if found == *digest {
        Ok(packed)
    } else {
        Err(JoinError::Digest { digest: digest.clone(), count, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns bytes none of whose chunks is like another.
    fn bytes(count: usize) -> Vec<u8> {
        (0_u32..).flat_map(u32::to_le_bytes).take(count).collect()
    }

    #[test]
    fn parts_are_put_together_again() {
        for (size, parts) in
            [(0, 0), (1, 1), (MAX_CHUNK_BYTES, 1), (MAX_CHUNK_BYTES + 1, 2), (MAX_PACKED_BYTES, MAX_CHUNKS)]
        {
            let packed = bytes(size);
            assert_eq!(split(&packed).len(), parts, "{size}");
            assert!(split(&packed).all(|part| part.len() <= MAX_CHUNK_BYTES));
            assert_eq!(join(split(&packed), &Digest::of(&packed)), Ok(packed));
        }
    }

    #[test]
    fn a_part_that_is_missing_changed_or_elsewhere_is_noticed() {
        let packed = bytes(3 * MAX_CHUNK_BYTES);
        let digest = Digest::of(&packed);
        let parts: Vec<&[u8]> = split(&packed).collect();
        let mut changed = parts[1].to_vec();
        changed[7] ^= 1;
        for wrong in
            [vec![parts[0], parts[1]], vec![parts[1], parts[0], parts[2]], vec![parts[0], &changed, parts[2]]]
        {
            assert!(matches!(join(wrong, &digest), Err(JoinError::Digest { .. })));
        }
    }

    #[test]
    fn parts_that_are_too_large_together_are_refused() {
        let part = bytes(MAX_PACKED_BYTES);
        let digest = Digest::of(&part);
        assert_eq!(join([part.as_slice(), b"x"], &digest), Err(JoinError::Large { digest }));
    }
}
