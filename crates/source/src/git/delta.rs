//! The instructions by which an object is made of another one.

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Bytes of the other object.
    Copy { from: u64, count: u64 },
    /// Bytes that follow the instruction.
    Insert { count: u64 },
}

/// What a count of zero means in an instruction that copies.
const WHOLE: u64 = 0x1_0000;

/// Reads what follows `first`. Nothing is returned for an instruction that nobody knows.
pub(super) fn instruction<E>(
    first: u8,
    mut next: impl FnMut() -> Result<u8, E>,
) -> Result<Option<Instruction>, E> {
    if first & 0x80 == 0 {
        return Ok((first != 0).then_some(Instruction::Insert { count: first.into() }));
    }
    let mut number = |bits: std::ops::Range<u8>| -> Result<u64, E> {
        let mut number = 0;
        for (place, bit) in bits.enumerate() {
            if first >> bit & 1 == 1 {
                number |= u64::from(next()?) << (8 * place);
            }
        }
        Ok(number)
    };
    let from = number(0..4)?;
    let count = number(4..7)?;
    Ok(Some(Instruction::Copy { from, count: if count == 0 { WHOLE } else { count } }))
}

/// Adds a byte to a number whose lower bits came before. Returns whether more follow; nothing if it is too large.
pub(super) fn extend(number: &mut u64, shift: &mut u32, byte: u8) -> Option<bool> {
    let bits = u64::from(byte & 0x7f);
    if *shift > 56 {
        return None;
    }
    *number |= bits << *shift;
    *shift += 7;
    Some(byte & 0x80 != 0)
}
