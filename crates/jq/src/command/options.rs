//! The options of the `jq` command.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::super::print::Style;
use super::super::value::Val;

/// Where the text of the filter is.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Text(String),
    File(PathBuf),
}

/// What a variable is set to.
#[derive(Clone, Debug)]
pub(super) enum VariableSource {
    Value(Val),
    ValuesOf(PathBuf),
    TextOf(PathBuf),
}

impl VariableSource {
    /// Returns the value, or why it can't be read.
    pub(super) fn read(self) -> Result<Val, String> {
        let read = |path: &PathBuf| {
            fs::read(path).map_err(|error| format!("Could not open {}: {error}", path.display()))
        };
        match self {
            Self::Value(value) => Ok(value),
            Self::TextOf(path) => Ok(Val::from(String::from_utf8_lossy(&read(&path)?).into_owned())),
            Self::ValuesOf(path) => {
                let bytes = read(&path)?;
                let values: Result<Vec<Val>, _> =
                    serde_json::Deserializer::from_slice(&bytes).into_iter().collect();
                values.map(Val::arr).map_err(|error| format!("Bad JSON in {}: {error}", path.display()))
            }
        }
    }
}

/// The command line, parsed.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(super) struct Options {
    pub(super) filter: Source,
    pub(super) files: Vec<PathBuf>,
    pub(super) named: Vec<(String, VariableSource)>,
    pub(super) positional: Vec<Val>,
    pub(super) null_input: bool,
    pub(super) raw_input: bool,
    pub(super) slurp: bool,
    pub(super) raw: bool,
    pub(super) exit_status: bool,
    /// What is printed behind each result.
    pub(super) end: &'static str,
    /// `help` or `version`, when only that is to be printed.
    pub(super) information: Option<&'static str>,
    ascii: bool,
    indent: Option<String>,
    from_file: bool,
}

/// The meaning of arguments that are no options.
#[derive(Clone, Copy, PartialEq)]
enum Rest {
    Files,
    Texts,
    Values,
}

struct Reading {
    options: Options,
    arguments: std::vec::IntoIter<OsString>,
    filter: Option<OsString>,
    rest: Rest,
}

impl Options {
    /// Reads the command line, or returns what is wrong with it.
    pub(super) fn read(arguments: Vec<OsString>) -> Result<Self, String> {
        let options = Self {
            filter: Source::Text(".".to_owned()),
            files: Vec::new(),
            named: Vec::new(),
            positional: Vec::new(),
            null_input: false,
            raw_input: false,
            slurp: false,
            raw: false,
            exit_status: false,
            end: "\n",
            information: None,
            ascii: false,
            indent: Some("  ".to_owned()),
            from_file: false,
        };
        let mut reading =
            Reading { options, arguments: arguments.into_iter(), filter: None, rest: Rest::Files };
        reading.read()?;
        let Reading { mut options, filter, .. } = reading;
        match filter {
            Some(path) if options.from_file => options.filter = Source::File(path.into()),
            Some(text) => options.filter = Source::Text(text.to_string_lossy().into_owned()),
            None if options.from_file => return Err("-f takes the file of a filter".to_owned()),
            // Without a filter the inputs are printed as they are.
            None => {}
        }
        Ok(options)
    }

    /// Returns how results are printed.
    pub(super) fn style(&self) -> Style {
        Style { indent: self.indent.clone(), ascii: self.ascii }
    }
}

impl Reading {
    fn read(&mut self) -> Result<(), String> {
        while let Some(argument) = self.arguments.next() {
            let text = argument.to_string_lossy().into_owned();
            if text == "--" {
                while let Some(argument) = self.arguments.next() {
                    self.take(argument)?;
                }
            } else if let Some(long) = text.strip_prefix("--") {
                self.long(long)?;
            } else if text
                .strip_prefix('-')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
            {
                for letter in text.chars().skip(1) {
                    self.short(letter)?;
                }
            } else {
                self.take(argument)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, argument: OsString) -> Result<(), String> {
        if self.filter.is_none() {
            self.filter = Some(argument);
            return Ok(());
        }
        let text = argument.to_string_lossy().into_owned();
        match self.rest {
            Rest::Files => self.options.files.push(argument.into()),
            Rest::Texts => self.options.positional.push(Val::from(text)),
            Rest::Values => self.options.positional.push(json(&text, "--jsonargs")?),
        }
        Ok(())
    }

    fn short(&mut self, letter: char) -> Result<(), String> {
        let long = match letter {
            'n' => "null-input",
            's' => "slurp",
            'R' => "raw-input",
            'c' => "compact-output",
            'r' => "raw-output",
            'j' => "join-output",
            'a' => "ascii-output",
            'S' => "sort-keys",
            'C' => "color-output",
            'M' => "monochrome-output",
            'e' => "exit-status",
            'f' => "from-file",
            'h' => "help",
            'V' => "version",
            other => return Err(format!("Unknown arguments: -{other}")),
        };
        self.long(long)
    }

    fn long(&mut self, name: &str) -> Result<(), String> {
        let options = &mut self.options;
        match name {
            "null-input" => options.null_input = true,
            "slurp" => options.slurp = true,
            "raw-input" => options.raw_input = true,
            "compact-output" => options.indent = None,
            "raw-output" => options.raw = true,
            "join-output" => (options.raw, options.end) = (true, ""),
            "raw-output0" => (options.raw, options.end) = (true, "\0"),
            "ascii-output" => options.ascii = true,
            // Keys are always sorted, nothing is coloured, and each result is written at once.
            "sort-keys" | "color-output" | "monochrome-output" | "unbuffered" => {}
            "tab" => options.indent = Some("\t".to_owned()),
            "exit-status" => options.exit_status = true,
            "from-file" => options.from_file = true,
            "help" => options.information = Some("help"),
            "version" => options.information = Some("version"),
            "args" => self.rest = Rest::Texts,
            "jsonargs" => self.rest = Rest::Values,
            other => return self.with_value(other),
        }
        Ok(())
    }

    fn with_value(&mut self, name: &str) -> Result<(), String> {
        if name == "indent" {
            let count = self.next("--indent takes one parameter")?;
            let count: usize = count
                .parse()
                .ok()
                .filter(|count| *count <= 7)
                .ok_or("--indent takes a number between 0 and 7")?;
            self.options.indent = (count > 0).then(|| " ".repeat(count));
            return Ok(());
        }
        if !matches!(name, "arg" | "argjson" | "slurpfile" | "rawfile") {
            return Err(format!("Unknown arguments: --{name}"));
        }
        let wanted = format!("--{name} takes two parameters (e.g. --{name} name value)");
        let (variable, value) = (self.next(&wanted)?, self.next(&wanted)?);
        let given = match name {
            "arg" => VariableSource::Value(Val::from(value)),
            "argjson" => VariableSource::Value(json(&value, "--argjson")?),
            "slurpfile" => VariableSource::ValuesOf(value.into()),
            _ => VariableSource::TextOf(value.into()),
        };
        self.options.named.push((variable, given));
        Ok(())
    }

    fn next(&mut self, wanted: &str) -> Result<String, String> {
        self.arguments.next().map(|text| text.to_string_lossy().into_owned()).ok_or_else(|| wanted.to_owned())
    }
}

fn json(text: &str, option: &str) -> Result<Val, String> {
    super::super::value::from_json(text.as_bytes())
        .map_err(|error| format!("Invalid JSON text passed to {option}: {error}"))
}
