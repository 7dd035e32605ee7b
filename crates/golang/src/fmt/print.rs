//! Values under a verb: what `%v` and its kin print.

use crate::unicode::decode_rune;

use super::flags::Flags;
use super::number::{Integer, float, integer};
use super::operand::{Operand, Shape};
use crate::MAX_NESTING;
use crate::reflect::Kind;

/// How many bytes one print makes at most: a value may hold another one a
/// thousand times, and so on at each level.
const MAX_BYTES: usize = 16 << 20;

/// Why a value can't be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrintError {
    /// The value is nested too deeply, or holds itself.
    #[error("value is nested more than {MAX_NESTING} levels deep or holds itself")]
    Nesting,
    /// The text grew too long.
    #[error("printing makes more than {MAX_BYTES} bytes")]
    Size,
}

/// Returns what `fmt.Sprint` prints: spaces only between operands that are no strings.
pub fn sprint<V: Operand>(values: &[V]) -> Result<Vec<u8>, PrintError> {
    operands(values, |printer, value| printer.argument(value, 'v'))
}

/// Returns the same with what pointers point to in place of the pointers.
pub fn sprint_dereferenced<V: Operand>(values: &[V]) -> Result<Vec<u8>, PrintError> {
    operands(values, Printer::dereferenced)
}

fn operands<V: Operand>(
    values: &[V],
    print: impl Fn(&mut Printer, &V) -> Result<(), PrintError>,
) -> Result<Vec<u8>, PrintError> {
    let mut printer = Printer::new(Vec::new());
    let mut before_is_text = true;
    for (index, value) in values.iter().enumerate() {
        let is_text = value.kind() == Kind::String;
        if index > 0 && !is_text && !before_is_text {
            printer.out.push(b' ');
        }
        print(&mut printer, value)?;
        before_is_text = is_text;
    }
    Ok(printer.out)
}

/// Returns what `fmt.Sprintln` prints.
pub fn sprintln<V: Operand>(values: &[V]) -> Result<Vec<u8>, PrintError> {
    let mut printer = Printer::new(Vec::new());
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            printer.out.push(b' ');
        }
        printer.argument(value, 'v')?;
    }
    printer.out.push(b'\n');
    Ok(printer.out)
}

/// Appends what `%v` prints for `value`.
pub fn print<V: Operand>(out: &mut Vec<u8>, value: &V) -> Result<(), PrintError> {
    if let Shape::Text(text) = value.shape() {
        out.extend_from_slice(text);
        return Ok(());
    }
    let mut printer = Printer::new(std::mem::take(out));
    let result = printer.argument(value, 'v');
    *out = printer.out;
    result
}

/// Appends what an action of a template prints for `value`, which looks behind pointers.
pub fn print_dereferenced<V: Operand>(out: &mut Vec<u8>, value: &V) -> Result<(), PrintError> {
    let mut printer = Printer::new(std::mem::take(out));
    let result = printer.dereferenced(value);
    *out = printer.out;
    result
}

/// The state of printing: where to, and under which flags.
pub(super) struct Printer {
    pub(super) out: Vec<u8>,
    /// How long the output may become.
    limit: usize,
    pub(super) flags: Flags,
    /// Whether the value is shown because its verb was wrong; methods are not used then.
    erroring: bool,
}

impl Printer {
    /// Returns a printer that appends to `out`.
    pub(super) fn new(out: Vec<u8>) -> Self {
        let limit = out.len().saturating_add(MAX_BYTES);
        Self { out, limit, flags: Flags::default(), erroring: false }
    }

    /// Prints an operand.
    pub(super) fn argument<V: Operand>(&mut self, value: &V, verb: char) -> Result<(), PrintError> {
        match (value.shape(), verb) {
            (Shape::Nil, 'T' | 'v') => self.flags.pad(&mut self.out, b"<nil>"),
            (Shape::Nil, _) => self.bad_verb(value, verb)?,
            (_, 'T') => self.flags.string(&mut self.out, value.type_name().as_bytes()),
            (_, 'p') => self.pointer(value, verb)?,
            _ => self.value(value, verb, 0)?,
        }
        Ok(())
    }

    /// Prints what `value` points to, if it is a pointer.
    fn dereferenced<V: Operand>(&mut self, value: &V) -> Result<(), PrintError> {
        if !matches!(value.shape(), Shape::Object) {
            return self.argument(value, 'v');
        }
        if let Some(text) = value.display_of_pointer() {
            self.out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        if value.kind() == Kind::Ptr && value.display().is_none() && value.underlying().is_none() {
            return self.fields(value, 'v', 0);
        }
        self.argument(value, 'v')
    }

    /// Prints `%!verb(type=value)`.
    pub(super) fn bad_verb<V: Operand>(&mut self, value: &V, verb: char) -> Result<(), PrintError> {
        if matches!(value.shape(), Shape::Nil) {
            self.out.extend_from_slice(format!("%!{verb}(<nil>)").as_bytes());
            return Ok(());
        }
        self.bad_verb_with(value.type_name(), verb, |printer| printer.value(value, 'v', 0))
    }

    /// Prints the same for what `print` prints, which is of the type `name`.
    fn bad_verb_with(
        &mut self,
        name: &str,
        verb: char,
        print: impl FnOnce(&mut Self) -> Result<(), PrintError>,
    ) -> Result<(), PrintError> {
        self.erroring = true;
        self.out.extend_from_slice(format!("%!{verb}({name}=").as_bytes());
        print(self)?;
        self.out.push(b')');
        self.erroring = false;
        Ok(())
    }

    pub(super) fn check_size(&self) -> Result<(), PrintError> {
        if self.out.len() > self.limit { Err(PrintError::Size) } else { Ok(()) }
    }

    pub(super) fn push(&mut self, rune: char) {
        let mut buffer = [0; 4];
        self.out.extend_from_slice(rune.encode_utf8(&mut buffer).as_bytes());
    }

    fn value<V: Operand>(&mut self, value: &V, verb: char, depth: usize) -> Result<(), PrintError> {
        if depth > MAX_NESTING {
            return Err(PrintError::Nesting);
        }
        self.check_size()?;
        let printed = match value.shape() {
            Shape::Nil => {
                let nil: &[u8] = if self.flags.sharp_v { b"interface {}(nil)" } else { b"<nil>" };
                self.out.extend_from_slice(nil);
                true
            }
            Shape::Bool(truth) => {
                let right = matches!(verb, 't' | 'v');
                if right {
                    self.flags.pad(&mut self.out, if truth { b"true" } else { b"false" });
                }
                right
            }
            Shape::Int(n) => integer(&self.flags, &mut self.out, Integer::signed(n), verb),
            Shape::Uint(n) => integer(&self.flags, &mut self.out, Integer::unsigned(n), verb),
            Shape::Float(n) => float(&self.flags, &mut self.out, n, verb),
            Shape::Complex(re, im) => self.complex(re, im, verb),
            Shape::Text(text) => self.text(text, verb),
            Shape::Bytes(bytes) => self.bytes(bytes, verb, depth)?,
            Shape::Slice { nil } | Shape::Map { nil } if nil && self.flags.sharp_v => {
                self.out.extend_from_slice(value.type_name().as_bytes());
                self.out.extend_from_slice(b"(nil)");
                true
            }
            Shape::Slice { .. } => {
                self.slice(value, verb, depth)?;
                true
            }
            Shape::Map { .. } => {
                self.map(value, verb, depth)?;
                true
            }
            Shape::Object => self.object(value, verb, depth)?,
        };
        if printed { Ok(()) } else { self.bad_verb(value, verb) }
    }

    fn complex(&mut self, re: f64, im: f64, verb: char) -> bool {
        if !"vbgGxXfFeE".contains(verb) {
            return false;
        }
        self.out.push(b'(');
        float(&self.flags, &mut self.out, re, verb);
        let with_plus = Flags { plus: true, ..self.flags };
        float(&with_plus, &mut self.out, im, verb);
        self.out.extend_from_slice(b"i)");
        true
    }

    fn text(&mut self, text: &[u8], verb: char) -> bool {
        match verb {
            'v' if self.flags.sharp_v => self.flags.quoted(&mut self.out, text),
            'v' | 's' => self.flags.string(&mut self.out, text),
            'q' => self.flags.quoted(&mut self.out, text),
            'x' => self.flags.hex_bytes(&mut self.out, text, false),
            'X' => self.flags.hex_bytes(&mut self.out, text, true),
            _ => return false,
        }
        true
    }

    fn bytes(&mut self, bytes: &[u8], verb: char, depth: usize) -> Result<bool, PrintError> {
        match verb {
            's' => self.flags.string(&mut self.out, bytes),
            'q' => self.flags.quoted(&mut self.out, bytes),
            'x' => self.flags.hex_bytes(&mut self.out, bytes, false),
            'X' => self.flags.hex_bytes(&mut self.out, bytes, true),
            _ => {
                let name: &str = if depth == 0 { "[]byte" } else { "[]uint8" };
                self.open(name, b'[');
                for (index, byte) in bytes.iter().enumerate() {
                    self.separate(index);
                    self.byte(*byte, verb, depth + 1)?;
                }
                self.close(b']');
            }
        }
        Ok(true)
    }

    fn byte(&mut self, byte: u8, verb: char, depth: usize) -> Result<(), PrintError> {
        if depth > MAX_NESTING {
            return Err(PrintError::Nesting);
        }
        self.check_size()?;
        let byte = Integer::unsigned(u64::from(byte));
        if integer(&self.flags, &mut self.out, byte, verb) {
            return Ok(());
        }
        self.bad_verb_with("uint8", verb, |printer| {
            integer(&printer.flags, &mut printer.out, byte, 'v');
            Ok(())
        })
    }

    fn open(&mut self, name: &str, bracket: u8) {
        if self.flags.sharp_v {
            self.out.extend_from_slice(name.as_bytes());
            self.out.push(b'{');
        } else {
            self.out.push(bracket);
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.out.extend_from_slice(if self.flags.sharp_v { b", " } else { b" " });
        }
    }

    fn close(&mut self, bracket: u8) {
        self.out.push(if self.flags.sharp_v { b'}' } else { bracket });
    }

    fn slice<V: Operand>(&mut self, slice: &V, verb: char, depth: usize) -> Result<(), PrintError> {
        self.open(slice.type_name(), b'[');
        let mut index = 0;
        slice.each_item(&mut |item| {
            self.separate(index);
            index += 1;
            self.value(item, verb, depth + 1)
        })?;
        self.close(b']');
        Ok(())
    }

    fn map<V: Operand>(&mut self, map: &V, verb: char, depth: usize) -> Result<(), PrintError> {
        if !self.flags.sharp_v {
            self.out.extend_from_slice(b"map");
        }
        self.open(map.type_name(), b'[');
        let mut index = 0;
        map.each_entry(&mut |key, value| {
            self.separate(index);
            index += 1;
            if !self.text(key.as_bytes(), verb) {
                self.bad_verb_with("string", verb, |printer| {
                    printer.text(key.as_bytes(), 'v');
                    Ok(())
                })?;
            }
            self.out.push(b':');
            self.value(value, verb, depth + 1)
        })?;
        self.close(b']');
        Ok(())
    }

    /// Prints a struct or what points to one; reports whether the verb is one for it.
    fn object<V: Operand>(&mut self, object: &V, verb: char, depth: usize) -> Result<bool, PrintError> {
        if !self.erroring
            && !self.flags.sharp_v
            && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
            && let Some(text) = object.display()
        {
            self.text(text.as_bytes(), verb);
            return Ok(true);
        }
        if let Some(value) = object.underlying() {
            self.value(&value, verb, depth)?;
            return Ok(true);
        }
        if object.kind() == Kind::Ptr {
            if depth > 0 {
                let is_for_pointers = matches!(verb, 'v' | 'p' | 'b' | 'o' | 'd' | 'x' | 'X');
                if is_for_pointers {
                    self.out.extend_from_slice(POINTER);
                }
                return Ok(is_for_pointers);
            }
            self.out.push(b'&');
        }
        self.fields(object, verb, depth)?;
        Ok(true)
    }

    /// Prints a struct.
    fn fields<V: Operand>(&mut self, object: &V, verb: char, depth: usize) -> Result<(), PrintError> {
        let name = object.type_name();
        self.open(name.strip_prefix('*').unwrap_or(name), b'{');
        for (index, (field, value)) in object.fields().into_iter().enumerate() {
            self.separate(index);
            if self.flags.plus_v || self.flags.sharp_v {
                self.out.extend_from_slice(field.as_bytes());
                self.out.push(b':');
            }
            self.value(&value, verb, depth + 1)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Prints an address, which is always the same one here.
    fn pointer<V: Operand>(&mut self, value: &V, verb: char) -> Result<(), PrintError> {
        if matches!(value.kind(), Kind::Map | Kind::Slice | Kind::Ptr | Kind::Func) {
            self.out.extend_from_slice(POINTER);
            return Ok(());
        }
        self.bad_verb(value, verb)
    }

    /// Returns the character at the start of `text`.
    pub(super) fn verb_at(text: &[u8]) -> (char, usize) {
        decode_rune(text).unwrap_or((char::REPLACEMENT_CHARACTER, 1))
    }
}

/// What stands for the address of a value.
const POINTER: &[u8] = b"0xc000000000";
