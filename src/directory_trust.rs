//! Whether others can replace what is in a directory, by its owner and mode.

/// The bits of a mode that let others write into a directory.
const OTHERS_WRITE: u32 = 0o022;

/// The bit that lets those replace only what is theirs.
pub(crate) const STICKY: u32 = 0o1000;

/// Whether files can be kept below a directory.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Trust {
    /// Nobody else can.
    Safe,
    /// Nobody else can once it has the sticky bit.
    NeedsSticky,
    /// Somebody else can: who, in words.
    Never(String),
}

/// Judges a directory by its owner and mode, for the user `own`.
pub(crate) fn judge(owner: u32, mode: u32, own: u32) -> Trust {
    let is_open = mode & OTHERS_WRITE != 0 && mode & STICKY == 0;
    if owner != own && owner != 0 {
        return Trust::Never(format!("user {owner} owns it, this is user {own}"));
    }
    match (is_open, owner == own) {
        (false, _) => Trust::Safe,
        (true, true) => Trust::NeedsSticky,
        (true, false) => Trust::Never(format!(
            "others may replace what is in it (mode {:o}, no sticky bit)",
            mode & 0o7777
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slip_12_a_directory_is_judged_by_its_owner_and_mode() {
        let (root, own, other) = (0, 1000, 1001);
        for (owner, mode, trusted) in [
            (own, 0o755, Trust::Safe),
            (own, 0o1777, Trust::Safe),
            (own, 0o770, Trust::NeedsSticky),
            (root, 0o755, Trust::Safe),
            (root, 0o1777, Trust::Safe),
        ] {
            assert_eq!(judge(owner, mode, own), trusted, "{owner} {mode:o}");
        }
        for (owner, mode) in [(root, 0o777), (root, 0o2775), (other, 0o755), (other, 0o1777)] {
            assert!(matches!(judge(owner, mode, own), Trust::Never(_)), "{owner} {mode:o}");
        }
    }
}
