//! Files without a name: the pack as it comes, and the objects that were in it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use ::source::git::Spool;

/// How much is written at a time, in bytes.
const TAIL: usize = 256 << 10;

/// Unpacked objects in a file that has no name. Its last bytes are in memory until there are enough of them.
#[derive(Debug)]
pub(super) struct FileSpool {
    file: File,
    /// How much is in the file.
    written: u64,
    tail: Vec<u8>,
}

impl FileSpool {
    /// Returns one that is kept in an empty file.
    pub(super) fn new(file: File) -> Self {
        Self { file, written: 0, tail: Vec::with_capacity(TAIL) }
    }
}

impl Spool for FileSpool {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tail.extend_from_slice(bytes);
        if self.tail.len() >= TAIL {
            self.file.write_all_at(&self.tail, self.written)?;
            self.written += self.tail.len() as u64;
            self.tail.clear();
        }
        Ok(())
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let in_file = self.written.saturating_sub(at).min(into.len() as u64);
        let in_file = usize::try_from(in_file).unwrap_or(usize::MAX);
        let (from_file, from_tail) = into.split_at_mut_checked(in_file).unwrap_or_default();
        self.file.read_exact_at(from_file, at)?;
        let start = usize::try_from((at + in_file as u64).saturating_sub(self.written)).unwrap_or(usize::MAX);
        let found = self.tail.get(start..).and_then(|tail| tail.get(..from_tail.len()));
        from_tail.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_read_wherever_it_is() {
        let mut spool = FileSpool::new(tempfile::tempfile().unwrap());
        let part: Vec<u8> = (0..100_003).map(|number: u32| (number % 251) as u8).collect();
        let mut all = Vec::new();
        for _ in 0..10 {
            spool.append(&part).unwrap();
            all.extend_from_slice(&part);
        }
        assert!(spool.written > 0 && !spool.tail.is_empty(), "some is in the file, and some is not");
        let end = all.len();
        let border = usize::try_from(spool.written).unwrap();
        for (at, count) in
            [(0, end), (0, 1), (end - 1, 1), (border - 5, 10), (border, 7), (border - 7, 7), (end, 0)]
        {
            let mut found = vec![0; count];
            spool.read_at(at as u64, &mut found).unwrap();
            assert_eq!(found, all[at..at + count], "{at} {count}");
        }
        for (at, count) in [(end - 1, 2), (end + 1, 1), (end * 2, 1)] {
            spool.read_at(at as u64, &mut vec![0; count]).unwrap_err();
        }
    }
}
