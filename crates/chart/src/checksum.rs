//! The checksum by which a release is seen to be unchanged.

/// Returns the MD5 sum of `text` in hexadecimal, which is what releases have always
/// been labelled with; nothing secret depends on it.
pub fn checksum(text: &str) -> String {
    use md5::{Digest as _, Md5};
    use std::fmt::Write as _;
    Md5::digest(text).iter().fold(String::new(), |mut sum, byte| {
        // Writing to a String can't fail.
        let _ = write!(sum, "{byte:02x}");
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn the_sum_is_that_of_other_programs() {
        assert_eq!(checksum("abc"), "900150983cd24fb0d6963f7d28e17f72");
    }
}
