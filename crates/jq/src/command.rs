//! The `jq` command, for hooks in images without jq. See docs/hooks.md#without-jq-and-without-bash.

mod options;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};

use serde_json::de::{IoRead, StreamDeserializer};

use super::limits::Limits;
use super::print::Style;
use super::runtime::{Inputs, NoInputs};
use super::threads::LARGE_STACKS;
use super::value::{Object, Val};
use super::{End, Filter, builtins};
use options::{Options, Source};

/// The exit code when a filter ends with an error.
const FILTER_FAILED: u8 = 5;
/// The exit code of `-e` when there was no result.
const NO_RESULT: u8 = 4;
/// The exit code when the filter does not compile.
const NOT_A_FILTER: u8 = 3;
/// The exit code for wrong options and unreadable files.
const UNUSABLE: u8 = 2;
/// The exit code of `-e` when the last result was null or false.
const NOT_TRUE: u8 = 1;

/// The text of `--help`.
const HELP: &str = "\
Usage: jq [OPTIONS] FILTER [FILE...]
       jq [OPTIONS] -f FILE [FILE...]
       jq [OPTIONS] -n --args FILTER [TEXT...]

The filter engine of addon-operator, for hooks in images without jq.

  -n, --null-input         run the filter once, on null
  -s, --slurp              run the filter once, on an array of all inputs
  -R, --raw-input          each line is an input, as a string
  -c, --compact-output     print each result on one line
  -r, --raw-output         print strings without quotes
  -j, --join-output        the same, without line ends
      --raw-output0        the same, with NUL behind each result
  -a, --ascii-output       print letters beyond ASCII as escapes
  -S, --sort-keys          sort keys (they always are)
      --tab, --indent N    indent with a tab or N blanks
  -e, --exit-status        exit with 1 if the last result is null or false, with 4 if there is none
  -f, --from-file          the filter is in a file
      --arg NAME TEXT      set $NAME to a text
      --argjson NAME JSON  set $NAME to a value
      --slurpfile NAME F   set $NAME to an array of the values in a file
      --rawfile NAME F     set $NAME to the text of a file
      --args, --jsonargs   what follows are $ARGS.positional, as texts or values
  -h, --help               print this
  -V, --version            print the version
";

/// Runs the command with these arguments, without the command's name. Returns its exit code.
///
/// `environment` is the content of `env` and `$ENV`.
pub fn run(arguments: &[OsString], environment: impl IntoIterator<Item = (String, String)>) -> u8 {
    let environment: Object =
        environment.into_iter().map(|(name, value)| (name.as_str().into(), Val::from(value))).collect();
    let start = |stack: usize| {
        let (arguments, environment) = (arguments.to_vec(), environment.clone());
        std::thread::Builder::new().name("jq".to_owned()).stack_size(stack).spawn(move || {
            super::limits::use_stack(stack - stack / 4);
            work(arguments, environment)
        })
    };
    let mut problem = String::new();
    for stack in LARGE_STACKS {
        match start(stack).map(std::thread::JoinHandle::join) {
            Ok(Ok(code)) => return code,
            Ok(Err(_)) => return complain("a defect of the filter engine", FILTER_FAILED),
            Err(error) => problem = error.to_string(),
        }
    }
    complain(&problem, UNUSABLE)
}

fn work(arguments: Vec<OsString>, environment: Object) -> u8 {
    let options = match Options::read(arguments) {
        Ok(options) => options,
        Err(problem) => {
            return complain(
                &format!("{problem}\nUse jq --help for help with command-line options"),
                UNUSABLE,
            );
        }
    };
    if let Some(text) = options.information {
        let text = if text == "help" { HELP.to_owned() } else { "jq-1.7.1\n".to_owned() };
        let _ = io::stdout().lock().write_all(text.as_bytes());
        return 0;
    }
    match Program::new(options, environment) {
        Ok(program) => program.run(),
        Err((problem, code)) => complain(&problem, code),
    }
}

fn complain(problem: &str, code: u8) -> u8 {
    let _ = writeln!(io::stderr().lock(), "jq: error: {problem}");
    code
}

/// A compiled filter with its inputs and options.
struct Program {
    options: Options,
    filter: Filter,
    globals: [Val; 2],
    variables: Vec<Val>,
}

impl Program {
    fn new(mut options: Options, environment: Object) -> Result<Self, (String, u8)> {
        let text = match &options.filter {
            Source::Text(text) => text.clone(),
            Source::File(path) => fs::read_to_string(path)
                .map_err(|error| (format!("Could not open {}: {error}", path.display()), UNUSABLE))?,
        };
        let mut given = Object::new();
        for (name, source) in std::mem::take(&mut options.named) {
            let value = source.read().map_err(|problem| (problem, UNUSABLE))?;
            // The first variable of a name counts.
            given.entry(name.into()).or_insert(value);
        }
        let arguments = Object::from([
            ("positional".into(), Val::arr(std::mem::take(&mut options.positional))),
            ("named".into(), Val::obj(given.clone())),
        ]);
        let dollars: Vec<String> = given.keys().map(|name| format!("${name}")).collect();
        let names: Vec<&str> =
            ["$ARGS", "$__prog_args"].into_iter().chain(dollars.iter().map(String::as_str)).collect();
        let variables = [Val::obj(arguments.clone()), Val::obj(arguments)]
            .into_iter()
            .chain(given.into_values())
            .collect();
        let filter = Filter::of_program(&text, &names)
            .map_err(|error| (format!("{error}\njq: 1 compile error"), NOT_A_FILTER))?;
        let line = text.split("$__loc__").next().map_or(1, |before| before.matches('\n').count() + 1);
        Ok(Self { options, filter, globals: [Val::obj(environment), builtins::location(line)], variables })
    }

    fn run(&self) -> u8 {
        let inputs = Files::new(&self.options);
        let mut printer =
            Printer { options: &self.options, style: self.options.style(), last: None, broken: false };
        let mut code = 0;
        if self.options.null_input {
            code = self.once(Val::Null, &inputs, &mut printer).unwrap_or_else(|code| code);
        } else if self.options.slurp {
            match inputs.slurped(self.options.raw_input) {
                Ok(all) => code = self.once(all, &NoInputs, &mut printer).unwrap_or_else(|code| code),
                Err(problem) => return complain_input(&problem),
            }
        } else {
            while let Some(input) = inputs.next() {
                let input = match input {
                    Ok(input) => input,
                    Err(problem) => return complain_input(&problem),
                };
                match self.once(input, &inputs, &mut printer) {
                    Ok(0) => {}
                    // The next input is tried, but the exit code reports this failure.
                    Ok(failed) => code = failed,
                    Err(end) => return end,
                }
                if printer.broken {
                    break;
                }
            }
        }
        if code == 0 && inputs.missing.get() {
            code = UNUSABLE;
        }
        match (&printer.last, code) {
            (None, 0) if self.options.exit_status => NO_RESULT,
            (Some(false), 0) if self.options.exit_status => NOT_TRUE,
            (_, code) => code,
        }
    }

    /// Runs the filter on one input. Returns its code, or as an error the code to end with at once.
    fn once(&self, input: Val, inputs: &dyn Inputs, printer: &mut Printer<'_>) -> Result<u8, u8> {
        let end =
            self.filter.each(input, self.globals.clone(), &self.variables, inputs, Limits::NONE, |value| {
                printer.print(&value)
            });
        match end {
            End::Limit(limit) => Ok(complain(&limit.to_string(), FILTER_FAILED)),
            End::Done | End::Stopped => Ok(0),
            End::Halted(code) => Err(u8::try_from(code & 0xff).unwrap_or(FILTER_FAILED)),
            End::Failed(Val::Str(error)) => Ok(complain(&error, FILTER_FAILED)),
            End::Failed(error @ (Val::Arr(_) | Val::Obj(_))) => {
                Ok(complain(&format!("{error} (not a string)"), FILTER_FAILED))
            }
            End::Failed(error) => Ok(complain(&error.to_string(), FILTER_FAILED)),
        }
    }
}

fn complain_input(problem: &str) -> u8 {
    let _ = writeln!(io::stderr().lock(), "jq: parse error: {problem}");
    UNUSABLE
}

/// Prints results.
struct Printer<'a> {
    options: &'a Options,
    style: Style,
    /// Whether the last result was something else than null and false.
    last: Option<bool>,
    broken: bool,
}

impl Printer<'_> {
    /// Prints a result. Returns false when the reader has gone.
    fn print(&mut self, value: &Val) -> bool {
        self.last = Some(!matches!(value, Val::Null | Val::Bool(false)));
        let mut text = match value {
            Val::Str(text) if self.options.raw => text.as_ref().to_owned(),
            other => self.style.text(other),
        };
        text.push_str(self.options.end);
        self.broken = io::stdout().lock().write_all(text.as_bytes()).is_err();
        !self.broken
    }
}

type Stream = StreamDeserializer<'static, IoRead<Box<dyn Read>>, Val>;

/// The inputs of the program, one after the other from all its files.
struct Files {
    raw: bool,
    paths: RefCell<Vec<std::path::PathBuf>>,
    stdin: Cell<bool>,
    current: RefCell<Option<Stream>>,
    lines: RefCell<Option<std::collections::VecDeque<Val>>>,
    missing: Cell<bool>,
}

impl Files {
    fn new(options: &Options) -> Self {
        let mut files = options.files.clone();
        files.reverse();
        Self {
            raw: options.raw_input && !options.slurp,
            stdin: Cell::new(files.is_empty()),
            paths: RefCell::new(files),
            current: RefCell::default(),
            lines: RefCell::default(),
            missing: Cell::new(false),
        }
    }

    /// Returns the next source that can be opened.
    fn open(&self) -> Option<Box<dyn Read>> {
        if self.stdin.replace(false) {
            return Some(Box::new(BufReader::with_capacity(64 * 1024, io::stdin())));
        }
        loop {
            let path = self.paths.borrow_mut().pop()?;
            if path.as_os_str() == "-" {
                return Some(Box::new(BufReader::with_capacity(64 * 1024, io::stdin())));
            }
            match File::open(&path) {
                Ok(file) => return Some(Box::new(BufReader::with_capacity(64 * 1024, file))),
                Err(error) => {
                    complain(&format!("Could not open {}: {error}", path.display()), UNUSABLE);
                    self.missing.set(true);
                }
            }
        }
    }

    /// Returns all inputs as one array, or with `raw` all text as one string.
    fn slurped(&self, raw: bool) -> Result<Val, String> {
        if raw {
            let mut bytes = Vec::new();
            while let Some(mut source) = self.open() {
                source.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            }
            return Ok(Val::from(String::from_utf8_lossy(&bytes).into_owned()));
        }
        std::iter::from_fn(|| self.next()).collect()
    }

    fn next_line(&self) -> Option<Result<Val, String>> {
        let mut lines = self.lines.borrow_mut();
        if lines.is_none() {
            let mut bytes = Vec::new();
            while let Some(mut source) = self.open() {
                if let Err(error) = source.read_to_end(&mut bytes) {
                    return Some(Err(error.to_string()));
                }
            }
            let text = String::from_utf8_lossy(&bytes);
            // A carriage return is part of the line.
            let all = text.strip_suffix('\n').unwrap_or(&text);
            let count = if text.is_empty() { 0 } else { usize::MAX };
            *lines = Some(all.split('\n').take(count).map(Val::str).collect());
        }
        lines.as_mut()?.pop_front().map(Ok)
    }
}

impl Inputs for Files {
    fn next(&self) -> Option<Result<Val, String>> {
        if self.raw {
            return self.next_line();
        }
        loop {
            let mut current = self.current.borrow_mut();
            if let Some(stream) = current.as_mut() {
                match stream.next() {
                    Some(Ok(value)) => return Some(Ok(value)),
                    Some(Err(error)) => {
                        *current = None;
                        return Some(Err(error.to_string()));
                    }
                    None => *current = None,
                }
            }
            *current = Some(serde_json::Deserializer::from_reader(self.open()?).into_iter());
        }
    }
}
