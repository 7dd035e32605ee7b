//! The lines of git's protocol: four hexadecimal digits that say how long a line is, and the line.

/// The most bytes of a line with its length, as git has it.
pub const MAX_PACKET: usize = 65_520;

/// How many digits say how long a line is.
const DIGITS: usize = 4;

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'p> {
    /// Bytes.
    Data(&'p [u8]),
    /// The end of a message.
    Flush,
    /// The end of a section.
    Delimiter,
    /// The end of an answer.
    End,
}

/// A line that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line of the answer has no length, or is longer than {MAX_PACKET} bytes")]
pub struct PacketError;

/// Reads lines from an answer that comes in parts. It holds what there is of a line that is not complete.
#[derive(Debug, Default)]
pub struct Packets {
    begun: Vec<u8>,
}

impl Packets {
    /// Takes the next part of an answer, and hands each complete line to `take`.
    pub fn read<E: From<PacketError>>(
        &mut self,
        mut part: &[u8],
        mut take: impl FnMut(Packet<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !part.is_empty() {
            if self.begun.is_empty()
                && let Some((packet, rest)) = split(part)?
            {
                take(packet)?;
                part = rest;
                continue;
            }
            let wanted = length(&self.begun)?.unwrap_or(DIGITS).max(DIGITS);
            let missing = wanted.saturating_sub(self.begun.len()).min(part.len());
            let (head, rest) = part.split_at_checked(missing).unwrap_or((part, &[]));
            self.begun.extend_from_slice(head);
            part = rest;
            let begun = std::mem::take(&mut self.begun);
            match split(&begun)? {
                Some((packet, _)) => take(packet)?,
                None => self.begun = begun,
            }
        }
        Ok(())
    }

    /// Returns whether the last line was complete.
    pub fn is_complete(&self) -> bool {
        self.begun.is_empty()
    }
}

/// Returns what the digits at the beginning say; nothing if they are not all there.
fn length(bytes: &[u8]) -> Result<Option<usize>, PacketError> {
    let Some(digits) = bytes.get(..DIGITS) else { return Ok(None) };
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'));
    let length = text.and_then(|text| usize::from_str_radix(text, 16).ok()).ok_or(PacketError)?;
    if length == 3 || length > MAX_PACKET { Err(PacketError) } else { Ok(Some(length)) }
}

/// Returns the first line and what is behind it; nothing if it is not complete.
fn split(bytes: &[u8]) -> Result<Option<(Packet<'_>, &[u8])>, PacketError> {
    let Some(length) = length(bytes)? else { return Ok(None) };
    let end = length.max(DIGITS);
    let (Some(data), Some(rest)) = (bytes.get(DIGITS..end), bytes.get(end..)) else { return Ok(None) };
    let packet = match length {
        0 => Packet::Flush,
        1 => Packet::Delimiter,
        2 => Packet::End,
        _ => Packet::Data(data),
    };
    Ok(Some((packet, rest)))
}

/// A message in the making.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// Adds a line.
    #[must_use]
    pub fn line(mut self, text: &str) -> Self {
        self.0.extend(format!("{:04x}{text}\n", text.len() + DIGITS + 1).into_bytes());
        self
    }

    /// Ends a section.
    #[must_use]
    pub fn delimiter(mut self) -> Self {
        self.0.extend(b"0001");
        self
    }

    /// Ends the message.
    #[must_use]
    pub fn flush(mut self) -> Self {
        self.0.extend(b"0000");
        self
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
