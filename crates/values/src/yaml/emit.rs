//! From a JSON tree to YAML text, byte for byte as Go writes it.

use golang::strconv::format_float;
use serde_json::{Map, Number, Value};

use super::order::{self, Letters};
use super::scalar::is_plain_text;
use super::write::{Writer, analyze};

/// How many columns are filled before long texts are folded.
const WIDTH: usize = 80;

/// How long a key may be before it is written behind a `?`.
const LONGEST_SIMPLE_KEY: usize = 128;

/// Writes `value` as `toYaml` does in templates: two columns of indentation,
/// lists not indented, long texts folded, keys sorted.
///
/// Returns text that ends with a line break. It is read back by
/// [`parse`](super::parse) as the same value.
pub fn emit(value: &Value) -> String {
    write(value, Style::V2, Writer::new(2, WIDTH), Floats::Normal)
}

/// Writes `value` as sections of a ConfigMap are written: four columns of
/// indentation, lists indented, nothing folded, keys sorted.
///
/// Returns text that ends with a line break.
pub fn emit_v3(value: &Value) -> String {
    write(value, Style::V3, Writer::new(4, usize::MAX), Floats::Normal)
}

/// Writes `value` as `toYamlPretty` does in templates: two columns of
/// indentation, lists indented, nothing folded, keys sorted, and numbers that
/// were floats shown as such (`1e+06`).
///
/// Returns text that ends with a line break.
pub fn emit_pretty(value: &Value) -> String {
    write(value, Style::V3, Writer::new(2, usize::MAX), Floats::Shown)
}

fn write(value: &Value, style: Style, writer: Writer, floats: Floats) -> String {
    let mut emitter = Emitter { style, writer, floats };
    emitter.node(value, None, Context::Root);
    emitter.writer.end_line();
    emitter.writer.into_text()
}

/// Which of the two writers in the field is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    V2,
    V3,
}

/// How floating-point numbers are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Floats {
    /// Whole ones as integers.
    Normal,
    /// All with the rules of `%v`.
    Shown,
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Root,
    Item,
    SimpleKey,
    LongKey,
    Value,
}

/// How a text is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Plain,
    Single,
    Double,
    Literal,
}

struct Emitter {
    style: Style,
    writer: Writer,
    floats: Floats,
}

impl Emitter {
    /// Writes a node; `indent` is that of the list or mapping around it.
    fn node(&mut self, value: &Value, indent: Option<usize>, place: Context) {
        match value {
            Value::Null => self.writer.plain("null", false, 0),
            Value::Bool(flag) => {
                let text = if *flag { "true" } else { "false" };
                self.writer.plain(text, false, 0);
            }
            Value::Number(number) => {
                let text = number_text(number, self.floats);
                self.writer.plain(&text, false, 0);
            }
            Value::String(text) => self.text(text, indent, place),
            Value::Array(items) if items.is_empty() => self.empty("[", "]"),
            Value::Object(map) if map.is_empty() => self.empty("{", "}"),
            Value::Array(items) => self.list(items, indent, place),
            Value::Object(map) => self.mapping(map, indent, place),
        }
    }

    /// Returns the indentation of what stands at `place` of something at `indent`.
    fn deeper(&self, indent: usize, place: Context) -> usize {
        match self.style {
            Style::V2 => indent + self.writer.step(),
            // What follows a dash stands right behind it; the rest is aligned.
            Style::V3 if place == Context::Item => indent + 2,
            Style::V3 => {
                let step = self.writer.step();
                (indent + step) / step * step
            }
        }
    }

    fn empty(&mut self, open: &str, close: &str) {
        self.writer.indicator(open, true, true, false);
        self.writer.indicator(close, false, false, false);
    }

    fn list(&mut self, items: &[Value], indent: Option<usize>, place: Context) {
        let inner = match (self.style, indent) {
            (_, None) => 0,
            (Style::V2, Some(indent))
                if matches!(place, Context::Value | Context::LongKey) && !self.writer.is_indention() =>
            {
                indent
            }
            (_, Some(indent)) => self.deeper(indent, place),
        };
        for item in items {
            self.writer.indent(inner);
            self.writer.indicator("-", true, false, true);
            self.node(item, Some(inner), Context::Item);
        }
    }

    fn mapping(&mut self, map: &Map<String, Value>, indent: Option<usize>, place: Context) {
        let inner = indent.map_or(0, |indent| self.deeper(indent, place));
        let mut entries: Vec<(&String, &Value)> = map.iter().collect();
        let letters = match self.style {
            Style::V2 => Letters::Last,
            Style::V3 => Letters::FirstBehindDigits,
        };
        order::sort(&mut entries, letters, |(key, _)| key.as_str());
        for (key, value) in entries {
            self.writer.indent(inner);
            let is_simple = key.len() <= LONGEST_SIMPLE_KEY && !analyze(key).multiline;
            if is_simple {
                self.text(key, Some(inner), Context::SimpleKey);
                self.writer.indicator(":", false, false, false);
            } else {
                self.writer.indicator("?", true, false, true);
                self.text(key, Some(inner), Context::LongKey);
                self.writer.indent(inner);
                self.writer.indicator(":", true, false, true);
            }
            self.node(value, Some(inner), Context::Value);
        }
    }

    fn text(&mut self, text: &str, indent: Option<usize>, place: Context) {
        let is_key = place == Context::SimpleKey;
        let folds = !is_key;
        let outer = indent.unwrap_or(0);
        let indent = match indent {
            Some(indent) => self.deeper(indent, place),
            None => self.writer.step(),
        };
        match self.quoting(text, is_key) {
            Quoting::Plain => self.writer.plain(text, folds, indent),
            Quoting::Single => self.writer.single_quoted(text, folds, indent),
            Quoting::Double => self.writer.double_quoted(text, folds, indent),
            Quoting::Literal => self.writer.literal(text, indent, indent - outer),
        }
    }

    /// Returns how `text` is written so that it is read back as itself.
    fn quoting(&self, text: &str, is_key: bool) -> Quoting {
        // As a key, and only there, this text would be read back as a merge.
        let is_merge_key = is_key && text == "<<";
        let wanted = if text.contains('\n') {
            Quoting::Literal
        } else if is_plain_text(text) && !is_merge_key {
            Quoting::Plain
        } else {
            Quoting::Double
        };
        let analysis = analyze(text);
        match wanted {
            Quoting::Plain | Quoting::Single => {
                if analysis.plain_allowed && !(is_key && (analysis.multiline || text.is_empty())) {
                    Quoting::Plain
                } else if analysis.single_allowed && !(is_key && analysis.multiline) {
                    Quoting::Single
                } else {
                    Quoting::Double
                }
            }
            Quoting::Literal
                if analysis.block_allowed
                    && !is_key
                    && !(analysis.tabs && (self.style == Style::V2 || text.starts_with('\t'))) =>
            {
                Quoting::Literal
            }
            Quoting::Literal | Quoting::Double => Quoting::Double,
        }
    }
}

/// Writes a number: integers in full, others in the shortest form.
fn number_text(number: &Number, floats: Floats) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && floats == Floats::Shown => format_float(float, 'g', None),
        Some(float) if number.is_f64() => match golang::json::number(float) {
            Some(whole) if !whole.is_f64() => whole.to_string(),
            _ if float == 0.0 => "0".to_owned(),
            _ => format_float(float, 'g', None),
        },
        _ => number.to_string(),
    }
}
