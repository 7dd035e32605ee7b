//! Formats: `fmt.Sprintf`.

use super::flags::Flags;
use super::operand::{Operand, Shape};
use super::print::{PrintError, Printer};

/// Widths and precisions above this are not numbers to Go.
const TOO_LARGE: usize = 1_000_000;

/// Returns what `fmt.Sprintf` prints; mistakes of the format are part of the text.
pub fn sprintf<V: Operand>(format: &[u8], values: &[V]) -> Result<Vec<u8>, PrintError> {
    let mut format = Format {
        text: format,
        at: 0,
        values,
        next: 0,
        reordered: false,
        good_index: true,
        printer: Printer::new(Vec::new()),
    };
    format.run()?;
    Ok(format.printer.out)
}

struct Format<'f, V> {
    text: &'f [u8],
    at: usize,
    values: &'f [V],
    /// Which value is next.
    next: usize,
    /// Whether values were picked by number.
    reordered: bool,
    good_index: bool,
    printer: Printer,
}

impl<V: Operand> Format<'_, V> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn run(&mut self) -> Result<(), PrintError> {
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'%' {
                if !self.directive()? {
                    break;
                }
            } else {
                self.printer.out.push(byte);
            }
        }
        if self.reordered {
            return Ok(());
        }
        let Some(extra) = self.values.get(self.next..).filter(|extra| !extra.is_empty()) else {
            return Ok(());
        };
        self.printer.flags = Flags::default();
        self.printer.out.extend_from_slice(b"%!(EXTRA ");
        for (index, value) in extra.iter().enumerate() {
            if index > 0 {
                self.printer.out.extend_from_slice(b", ");
            }
            if !matches!(value.shape(), Shape::Nil) {
                self.printer.out.extend_from_slice(value.type_name().as_bytes());
                self.printer.out.push(b'=');
            }
            self.printer.argument(value, 'v')?;
        }
        self.printer.out.push(b')');
        Ok(())
    }

    /// Runs what follows a `%`; returns `false` if the format ends there.
    fn directive(&mut self) -> Result<bool, PrintError> {
        self.printer.check_size()?;
        self.good_index = true;
        self.printer.flags = Flags::default();
        self.flags();
        let after_index = self.index();
        let after_index = self.width(after_index);
        let after_index = self.precision(after_index);
        if !after_index {
            self.index();
        }
        let Some(rest) = self.text.get(self.at..).filter(|rest| !rest.is_empty()) else {
            self.printer.out.extend_from_slice(b"%!(NOVERB)");
            return Ok(false);
        };
        let (verb, width) = Printer::verb_at(rest);
        self.at += width;
        self.verb(verb)?;
        Ok(true)
    }

    fn verb(&mut self, verb: char) -> Result<(), PrintError> {
        if verb == '%' {
            self.printer.out.push(b'%');
            return Ok(());
        }
        let problem: &[u8] = if !self.good_index {
            b"(BADINDEX)"
        } else if self.next >= self.values.len() {
            b"(MISSING)"
        } else {
            b""
        };
        if !problem.is_empty() {
            self.printer.out.extend_from_slice(b"%!");
            self.printer.push(verb);
            self.printer.out.extend_from_slice(problem);
            return Ok(());
        }
        if matches!(verb, 'v' | 'w') {
            let flags = &mut self.printer.flags;
            (flags.sharp_v, flags.plus_v) = (flags.sharp, flags.plus);
            (flags.sharp, flags.plus) = (false, false);
        }
        if let Some(value) = self.values.get(self.next) {
            self.next += 1;
            // Bytes are printed one by one before the verb is found to be wrong.
            if verb == 'w' && !matches!(value.shape(), Shape::Bytes(_)) {
                self.printer.bad_verb(value, verb)?;
            } else {
                self.printer.argument(value, verb)?;
            }
        }
        Ok(())
    }

    fn flags(&mut self) {
        while let Some(byte) = self.peek() {
            let flags = &mut self.printer.flags;
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Reads a number; `None` if there is none or it is too large.
    fn number(&mut self) -> Option<usize> {
        let mut number: Option<usize> = None;
        while let Some(byte) = self.peek().filter(u8::is_ascii_digit) {
            if number.unwrap_or(0) > TOO_LARGE {
                self.at = self.text.len();
                return None;
            }
            number = Some(number.unwrap_or(0) * 10 + usize::from(byte - b'0'));
            self.at += 1;
        }
        number
    }

    /// Reads `[3]`; returns whether there was a well-formed one.
    fn index(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(close) = rest.iter().position(|byte| *byte == b']').filter(|_| rest.len() >= 3) else {
            self.good_index = false;
            self.at += 1;
            return false;
        };
        let inner = rest.get(1..close).unwrap_or_default();
        self.at += close + 1;
        let number = std::str::from_utf8(inner)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse::<usize>().ok())
            .filter(|number| *number <= 10 * TOO_LARGE);
        match number {
            Some(number) if (1..=self.values.len()).contains(&number) => {
                self.next = number - 1;
                true
            }
            Some(_) => {
                self.good_index = false;
                true
            }
            None => {
                self.good_index = false;
                false
            }
        }
    }

    /// Takes the next value as a width or precision.
    fn star(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        whole(value).filter(|number| number.unsigned_abs() <= TOO_LARGE as u64)
    }

    /// Reads a width; returns whether an index was read last.
    fn width(&mut self, after_index: bool) -> bool {
        if self.peek() != Some(b'*') {
            self.printer.flags.width = self.number();
            if after_index && self.printer.flags.width.is_some() {
                self.good_index = false;
            }
            return after_index;
        }
        self.at += 1;
        let Some(width) = self.star() else {
            self.printer.out.extend_from_slice(b"%!(BADWIDTH)");
            return false;
        };
        if width < 0 {
            self.printer.flags.minus = true;
            self.printer.flags.zero = false;
        }
        self.printer.flags.width = usize::try_from(width.unsigned_abs()).ok();
        false
    }

    /// Reads `.3`; returns whether an index was read last.
    fn precision(&mut self, mut after_index: bool) -> bool {
        if self.peek() != Some(b'.') || self.at + 1 >= self.text.len() {
            return after_index;
        }
        self.at += 1;
        if after_index {
            self.good_index = false;
        }
        after_index = self.index();
        if self.peek() != Some(b'*') {
            self.printer.flags.precision = Some(self.number().unwrap_or(0));
            return after_index;
        }
        self.at += 1;
        match self.star().map(usize::try_from) {
            Some(Ok(precision)) => self.printer.flags.precision = Some(precision),
            Some(Err(_)) | None => self.printer.out.extend_from_slice(b"%!(BADPREC)"),
        }
        false
    }
}

/// Returns the integer that `value` is, if it is of an integer kind and fits.
pub fn whole<V: Operand>(value: &V) -> Option<i64> {
    match value.shape() {
        Shape::Int(n) => Some(n),
        Shape::Uint(n) => i64::try_from(n).ok(),
        Shape::Object => whole(&value.underlying()?),
        Shape::Nil
        | Shape::Bool(_)
        | Shape::Float(_)
        | Shape::Complex(..)
        | Shape::Text(_)
        | Shape::Bytes(_)
        | Shape::Slice { .. }
        | Shape::Map { .. } => None,
    }
}
