//! Values under a verb: what `%v` and its kin print.

use golang::unicode::decode_rune;

use super::number::{Integer, float, integer};
use super::pad::Flags;
use crate::value::{Kind, List, MAX_NESTING, Map, Object, Value};

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
pub fn sprint(values: &[Value]) -> Result<Vec<u8>, PrintError> {
    operands(values, Printer::argument)
}

/// Returns the same with what pointers point to in place of the pointers.
pub(crate) fn sprint_pointed(values: &[Value]) -> Result<Vec<u8>, PrintError> {
    operands(values, |printer, value, _| printer.pointed(value))
}

fn operands(
    values: &[Value],
    print: impl Fn(&mut Printer, &Value, char) -> Result<(), PrintError>,
) -> Result<Vec<u8>, PrintError> {
    let mut printer = Printer::new(Vec::new());
    let mut before_is_text = true;
    for (index, value) in values.iter().enumerate() {
        let is_text = value.kind() == Kind::String;
        if index > 0 && !is_text && !before_is_text {
            printer.out.push(b' ');
        }
        print(&mut printer, value, 'v')?;
        before_is_text = is_text;
    }
    Ok(printer.out)
}

/// Returns what `fmt.Sprintln` prints.
pub fn sprintln(values: &[Value]) -> Result<Vec<u8>, PrintError> {
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
pub(crate) fn print_value(out: &mut Vec<u8>, value: &Value) -> Result<(), PrintError> {
    if let Value::Text(text) = value {
        out.extend_from_slice(text);
        return Ok(());
    }
    let mut printer = Printer::new(std::mem::take(out));
    let result = printer.argument(value, 'v');
    *out = printer.out;
    result
}

/// Appends what an action of a template prints for `value`, which looks behind pointers.
pub(crate) fn print_pointed(out: &mut Vec<u8>, value: &Value) -> Result<(), PrintError> {
    let mut printer = Printer::new(std::mem::take(out));
    let result = printer.pointed(value);
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
    pub(super) fn argument(&mut self, value: &Value, verb: char) -> Result<(), PrintError> {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.flags.pad(&mut self.out, b"<nil>"),
            (Value::Nil, _) => self.bad_verb(value, verb)?,
            (_, 'T') => self.flags.string(&mut self.out, value.type_name().as_bytes()),
            (_, 'p') => self.pointer(value, verb)?,
            _ => self.value(value, verb, 0)?,
        }
        Ok(())
    }

    /// Prints what `value` points to, if it is a pointer.
    fn pointed(&mut self, value: &Value) -> Result<(), PrintError> {
        let Value::Object(object) = value else {
            return self.argument(value, 'v');
        };
        if let Some(text) = object.display_of_pointer() {
            self.out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        if object.kind() == Kind::Ptr && object.display().is_none() && object.underlying().is_none() {
            return self.fields(object.as_ref(), 'v', 0);
        }
        self.argument(value, 'v')
    }

    /// Prints `%!verb(type=value)`.
    pub(super) fn bad_verb(&mut self, value: &Value, verb: char) -> Result<(), PrintError> {
        self.erroring = true;
        self.out.extend_from_slice(b"%!");
        self.push(verb);
        self.out.push(b'(');
        if value.is_nil() {
            self.out.extend_from_slice(b"<nil>");
        } else {
            self.out.extend_from_slice(value.type_name().as_bytes());
            self.out.push(b'=');
            self.value(value, 'v', 0)?;
        }
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

    fn value(&mut self, value: &Value, verb: char, depth: usize) -> Result<(), PrintError> {
        if depth > MAX_NESTING {
            return Err(PrintError::Nesting);
        }
        self.check_size()?;
        let printed = match value {
            Value::Nil => {
                let nil: &[u8] = if self.flags.sharp_v { b"interface {}(nil)" } else { b"<nil>" };
                self.out.extend_from_slice(nil);
                true
            }
            Value::Bool(truth) => {
                let right = matches!(verb, 't' | 'v');
                if right {
                    self.flags.pad(&mut self.out, if *truth { b"true" } else { b"false" });
                }
                right
            }
            Value::Int(n) | Value::Int64(n) | Value::Small(_, n) => {
                integer(&self.flags, &mut self.out, Integer::signed(*n), verb)
            }
            Value::Uint(_, n) => integer(&self.flags, &mut self.out, Integer::unsigned(*n), verb),
            Value::Float(n) => float(&self.flags, &mut self.out, *n, verb),
            Value::Complex(re, im) => self.complex(*re, *im, verb),
            Value::Text(text) => self.text(text, verb),
            Value::Bytes(bytes) => self.bytes(bytes, verb, depth)?,
            Value::List(list) => {
                self.list(list, verb, depth)?;
                true
            }
            Value::Map(map) => {
                self.map(map, verb, depth)?;
                true
            }
            Value::Object(object) => self.object(object.as_ref(), verb, depth)?,
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
                self.open(name, b'[', verb);
                for (index, byte) in bytes.iter().enumerate() {
                    self.separate(index);
                    let byte = Value::Uint(crate::value::UintType::Uint8, u64::from(*byte));
                    self.value(&byte, verb, depth + 1)?;
                }
                self.close(b']');
            }
        }
        Ok(true)
    }

    fn open(&mut self, name: &str, bracket: u8, _verb: char) {
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

    fn nil_of(&mut self, name: &str) {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"(nil)");
    }

    fn list(&mut self, list: &List, verb: char, depth: usize) -> Result<(), PrintError> {
        if self.flags.sharp_v && list.is_nil() {
            self.nil_of(list.class().name);
            return Ok(());
        }
        self.open(list.class().name, b'[', verb);
        for (index, item) in list.items().iter().enumerate() {
            self.separate(index);
            self.value(item, verb, depth + 1)?;
        }
        self.close(b']');
        Ok(())
    }

    fn map(&mut self, map: &Map, verb: char, depth: usize) -> Result<(), PrintError> {
        if self.flags.sharp_v && map.is_nil() {
            self.nil_of(map.class().name);
            return Ok(());
        }
        if !self.flags.sharp_v {
            self.out.extend_from_slice(b"map");
        }
        self.open(map.class().name, b'[', verb);
        for (index, (key, value)) in map.entries().iter().enumerate() {
            self.separate(index);
            if !self.text(key.as_bytes(), verb) {
                self.bad_verb(&Value::text(&**key), verb)?;
            }
            self.out.push(b':');
            self.value(value, verb, depth + 1)?;
        }
        self.close(b']');
        Ok(())
    }

    /// Prints a struct or what points to one; reports whether the verb is one for it.
    fn object(&mut self, object: &dyn Object, verb: char, depth: usize) -> Result<bool, PrintError> {
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
    fn fields(&mut self, object: &dyn Object, verb: char, depth: usize) -> Result<(), PrintError> {
        let name = object.type_name();
        self.open(name.strip_prefix('*').unwrap_or(name), b'{', verb);
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
    fn pointer(&mut self, value: &Value, verb: char) -> Result<(), PrintError> {
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

#[cfg(test)]
mod tests {
    use super::{print_pointed, sprint, sprint_pointed};
    use crate::value::{Kind, Object, Value};

    /// A pointer to a struct, with or without a `String` method.
    struct Pointer(Option<&'static str>);

    impl Object for Pointer {
        fn type_name(&self) -> &'static str {
            "*a.B"
        }

        fn kind(&self) -> Kind {
            Kind::Ptr
        }

        fn fields(&self) -> Vec<(&'static str, Value)> {
            vec![("X", Value::Int(1)), ("Y", Value::Nil)]
        }

        fn display(&self) -> Option<String> {
            self.0.map(str::to_owned)
        }
    }

    #[test]
    fn actions_look_behind_pointers_and_functions_do_not() {
        for (pointer, of_action, of_function) in
            [(Pointer(None), "{1 <nil>}", "&{1 <nil>}"), (Pointer(Some("b")), "b", "b")]
        {
            let value = Value::object(pointer);
            let mut out = b"> ".to_vec();
            print_pointed(&mut out, &value).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("> {of_action}"));
            assert_eq!(sprint_pointed(std::slice::from_ref(&value)).unwrap(), of_action.as_bytes());
            assert_eq!(sprint(std::slice::from_ref(&value)).unwrap(), of_function.as_bytes());
        }
    }
}
