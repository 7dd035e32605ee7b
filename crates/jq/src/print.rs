//! Prints values for the `jq` command: compact or indented, in UTF-8 or ASCII.

use std::fmt::Write as _;

use super::value::Val;

/// How values are printed.
#[derive(Clone, Debug, Default)]
pub(super) struct Style {
    /// The indentation of one level; `None` for everything in one line.
    pub(super) indent: Option<String>,
    /// Whether letters beyond ASCII are escaped.
    pub(super) ascii: bool,
}

impl Style {
    /// Returns a value as this style prints it.
    pub(super) fn text(&self, value: &Val) -> String {
        let mut out = String::new();
        self.write(&mut out, value, 0);
        if self.ascii { in_ascii(&out) } else { out }
    }

    fn write(&self, out: &mut String, value: &Val, level: usize) {
        if !super::limits::go_deeper() {
            return;
        }
        match value {
            Val::Arr(items) if !items.is_empty() => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    self.start(out, position, level);
                    self.write(out, item, level + 1);
                }
                self.line(out, level);
                out.push(']');
            }
            Val::Obj(object) if !object.is_empty() => {
                out.push('{');
                for (position, (key, value)) in object.iter().enumerate() {
                    self.start(out, position, level);
                    out.push_str(&super::value::quoted(key));
                    out.push_str(if self.indent.is_some() { ": " } else { ":" });
                    self.write(out, value, level + 1);
                }
                self.line(out, level);
                out.push('}');
            }
            Val::Null
            | Val::Bool(_)
            | Val::Int(_)
            | Val::Float(_)
            | Val::Str(_)
            | Val::Arr(_)
            | Val::Obj(_) => {
                // Writing into a string does not fail.
                let _ = write!(out, "{value}");
            }
        }
    }

    fn start(&self, out: &mut String, position: usize, level: usize) {
        if position > 0 {
            out.push(',');
        }
        self.line(out, level + 1);
    }

    fn line(&self, out: &mut String, level: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            (0..level).for_each(|_| out.push_str(indent));
        }
    }
}

/// Returns JSON with escapes for all characters beyond ASCII. They occur only in strings.
fn in_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_ascii() {
            out.push(char);
        } else {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}
