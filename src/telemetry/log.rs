//! Log lines: JSON for machines, text for people.
//!
//! Lines are written by a thread of their own, so that a reader who is slow or
//! stuck never stops the operator. Lines that do not fit are dropped and counted.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::view::escaped;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Dispatch, Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::progress_bar;
use crate::config::LogType;

/// How long the last lines may take to be written when the log is closed, if their reader is slow or stuck.
const CLOSING: Duration = Duration::from_secs(2);

/// How many lines wait for a slow reader before lines are dropped.
const WAITING_LINES: usize = 16 * 1024;

/// How long lines are gathered behind one that was written at once. Each time that the thread has nothing to do, the next line
/// wakes it, which takes longer than to write the line. While lines come all the time, they are gathered for up to [`LONGEST`].
const GATHERING: Duration = Duration::from_millis(10);

/// How long lines are gathered at most.
const LONGEST: Duration = Duration::from_millis(40);

/// From how many bytes on lines are written without a pause: they come in masses.
const MASSES: usize = 64 * 1024;

/// Where the client of the API server quotes answers that it can't read, as those that were cut off: a Secret may be among them.
const ANSWERS: &str = "kube_client::client";

/// The name of the field whose JSON object is merged into the line.
pub const MERGED: &str = "merged";

/// The least severe level that is written. There is one log in a process.
static LEVEL: AtomicU8 = AtomicU8::new(3);

/// Changes the least severe level that is written.
pub fn set_level(level: Level) {
    LEVEL.store(rank(level), Ordering::Relaxed);
    // Callsites cache whether they are enabled.
    tracing::callsite::rebuild_interest_cache();
}

/// The open log. It ends when it is closed, with all lines written that its reader takes in time.
#[derive(Debug)]
pub struct Log(Mutex<Option<Writer>>);

/// The thread that writes lines.
#[derive(Debug)]
struct Writer {
    lines: SyncSender<Line>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
enum Line {
    Text(String),
    Stop,
}

impl Log {
    /// Opens the log of this process on standard output.
    pub fn open(form: LogType, level: Level, no_time: bool) -> Arc<Self> {
        let (sender, receiver) = sync_channel(WAITING_LINES);
        let layer = Lines { form, no_time, sender: sender.clone(), dropped: AtomicU64::new(0) };
        let writer = Writer::start(sender, receiver, |text: &[u8]| {
            progress_bar::aside(|| {
                let mut stdout = std::io::stdout().lock();
                let _ = stdout.write_all(text).and_then(|()| stdout.flush());
            });
        });
        set_level(level);
        // A second log, as in tests, does not replace the first.
        let _ = tracing_subscriber::registry().with(layer).try_init();
        Arc::new(Self(Mutex::new(writer)))
    }

    /// Writes all lines that wait and ends the log. A reader that is stuck can't stop that for longer than a moment.
    pub fn close(&self) {
        if let Ok(mut writer) = self.0.lock()
            && let Some(writer) = writer.take()
        {
            writer.close(CLOSING);
        }
    }
}

impl Writer {
    /// Starts a thread that gives the lines of `receiver` to `write`.
    fn start(
        lines: SyncSender<Line>,
        receiver: Receiver<Line>,
        write: impl FnMut(&[u8]) + Send + 'static,
    ) -> Option<Self> {
        let thread = std::thread::Builder::new().name("log".to_owned());
        let thread = thread.spawn(move || write_lines(&receiver, write)).ok()?;
        Some(Self { lines, thread })
    }

    /// Ends the thread when all lines are written, or leaves it alone after `patience`.
    fn close(self, patience: Duration) {
        let (done, ended) = sync_channel(1);
        // There may be no room for the last line, and a thread can't be waited for with a limit. This one can be left alone.
        let end = std::thread::Builder::new().name("log end".to_owned()).spawn(move || {
            let _ = self.lines.send(Line::Stop);
            let _ = self.thread.join();
            let _ = done.send(());
        });
        if end.is_ok() {
            let _ = ended.recv_timeout(patience);
        }
    }
}

fn write_lines(lines: &Receiver<Line>, mut write: impl FnMut(&[u8])) {
    let mut gathering = GATHERING;
    loop {
        let (first, is_waiting) = match lines.try_recv() {
            Ok(line) => (line, true),
            Err(TryRecvError::Empty) => match lines.recv() {
                Ok(line) => (line, false),
                Err(_) => return,
            },
            Err(TryRecvError::Disconnected) => return,
        };
        let Line::Text(mut out) = first else { return };
        gathering = if is_waiting { LONGEST.min(gathering * 2) } else { GATHERING };
        let mut stopped = false;
        // All waiting lines are written with one call.
        while let Ok(line) = lines.try_recv() {
            match line {
                Line::Text(text) => out.push_str(&text),
                Line::Stop => stopped = true,
            }
            if stopped || out.len() > 256 * 1024 {
                break;
            }
        }
        write(out.as_bytes());
        if stopped {
            return;
        }
        if out.len() < MASSES {
            std::thread::sleep(gathering);
        }
    }
}

/// The lines of a log that is kept in memory.
#[derive(Debug)]
pub struct CapturedLines(Receiver<Line>);

impl CapturedLines {
    /// Returns the lines since the last call.
    pub fn lines(&self) -> Vec<String> {
        let text = |line| match line {
            Line::Text(text) => Some(text.trim_end().to_owned()),
            Line::Stop => None,
        };
        self.0.try_iter().filter_map(text).collect()
    }
}

/// Returns a log that keeps its lines, as text without time, and the receiver of the lines.
pub fn capture() -> (impl Subscriber + Send + Sync, CapturedLines) {
    // While there is only one dispatcher, each callsite asks the log of its thread, once, whether it is
    // enabled. On a thread without a log the answer is no, for all threads. With two more dispatchers that never
    // end, all of them are asked.
    static ALSO: LazyLock<[Dispatch; 2]> = LazyLock::new(|| {
        let all = || Dispatch::new(tracing_subscriber::registry());
        [all(), all()]
    });
    LazyLock::force(&ALSO);
    let (sender, receiver) = sync_channel(WAITING_LINES);
    let layer = Lines { form: LogType::Text, no_time: true, sender, dropped: AtomicU64::new(0) };
    (tracing_subscriber::registry().with(layer), CapturedLines(receiver))
}

struct Lines {
    form: LogType,
    no_time: bool,
    sender: SyncSender<Line>,
    dropped: AtomicU64,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        let least = LEVEL.load(Ordering::Relaxed);
        let rank = rank(*metadata.level());
        // Libraries are logged at warn and above, or at level trace.
        let ours = metadata.target().starts_with("addon") || metadata.target() == "apiserver";
        rank <= least && metadata.target() != ANSWERS && (ours || rank <= 2 || least >= 5)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut record = Record::default();
        event.record(&mut record);
        let metadata = event.metadata();
        let mut text = match self.form {
            LogType::Json => json(&record, *metadata.level(), metadata.target(), self.no_time),
            LogType::Text => plain(&record, *metadata.level(), self.no_time, false),
            LogType::Color => plain(&record, *metadata.level(), self.no_time, true),
        };
        text.push('\n');
        let lost = self.dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _ = writeln!(text, "{lost} log lines were dropped because their reader is too slow");
        }
        if let Err(TrySendError::Full(_)) = self.sender.try_send(Line::Text(text)) {
            self.dropped.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

#[derive(Default)]
struct Record {
    message: String,
    fields: Map<String, Value>,
}

impl Record {
    fn put(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for Record {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else if field.name() == MERGED {
            if let Ok(Value::Object(merged)) = serde_json::from_str(value) {
                self.fields.extend(merged);
            }
        } else if !value.is_empty() {
            self.put(field, value.into());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message.clear();
            let _ = write!(self.message, "{value:?}");
            return;
        }
        let text = format!("{value:?}");
        if field.name() == MERGED {
            self.record_str(field, &text);
        } else if !text.is_empty() {
            self.put(field, Value::String(text));
        }
    }
}

/// Returns a line with the keys of the reference operator: level, logger, msg, the fields by name, time.
fn json(record: &Record, level: Level, target: &str, no_time: bool) -> String {
    let mut line = Vec::with_capacity(512);
    line.extend_from_slice(b"{\"level\":");
    write_json(&mut line, name(level));
    line.extend_from_slice(b",\"logger\":\"");
    for (index, part) in target.split("::").enumerate() {
        line.extend_from_slice(if index == 0 { b"" } else { b"." });
        let part = if part == "addon_operator" { "addon-operator" } else { part };
        line.extend_from_slice(part.as_bytes());
    }
    line.extend_from_slice(b"\",\"msg\":");
    write_json(&mut line, record.message.as_str());
    for (key, value) in &record.fields {
        line.push(b',');
        write_json(&mut line, key.as_str());
        line.push(b':');
        write_json(&mut line, value);
    }
    if !no_time {
        line.extend_from_slice(b",\"time\":");
        write_json(&mut line, &now());
    }
    line.push(b'}');
    // The bytes are those of texts and of JSON.
    String::from_utf8(line).map_or_else(|_| String::new(), readable)
}

fn write_json(line: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // A buffer takes all, and no key is anything but text.
    let _ = serde_json::to_writer(line, value);
}

fn name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

/// Returns a line without what a terminal would obey. The escapes are those of JSON, where such letters are in texts only.
fn readable(line: String) -> String {
    match escaped(&line) {
        Cow::Borrowed(_) => line,
        Cow::Owned(escaped) => escaped,
    }
}

fn plain(record: &Record, level: Level, no_time: bool, color: bool) -> String {
    let (on, off) = match (color, level) {
        (false, _) => ("", ""),
        (true, Level::ERROR) => ("\u{1b}[31m", "\u{1b}[0m"),
        (true, Level::WARN) => ("\u{1b}[33m", "\u{1b}[0m"),
        (true, Level::INFO) => ("\u{1b}[36m", "\u{1b}[0m"),
        (true, _) => ("\u{1b}[2m", "\u{1b}[0m"),
    };
    let (dim, undim) = if color { ("\u{1b}[2m", "\u{1b}[0m") } else { ("", "") };
    let mut line = String::with_capacity(256);
    if !no_time {
        let _ = write!(line, "{dim}{}{undim} ", now());
    }
    let _ = write!(line, "{on}{:5}{off} {}", level.as_str(), escaped(&record.message));
    for (key, value) in &record.fields {
        let is_bare = |char: char| !matches!(char, ' ' | '"' | '=') && !char.is_control();
        let bare = value.as_str().filter(|text| text.chars().all(is_bare));
        let text = bare.map_or_else(|| value.to_string(), ToOwned::to_owned);
        let _ = write!(line, " {dim}{}={undim}{}", escaped(key), escaped(&text));
    }
    line
}

fn now() -> String {
    format!("{:.3}", Timestamp::now())
}

fn rank(level: Level) -> u8 {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let fields = serde_json::json!({"queue": "main", "took": 0.5, "error": "a b"});
        Record { message: "task done".into(), fields: fields.as_object().cloned().unwrap() }
    }

    #[test]
    fn json_lines_have_the_keys_that_people_grep_for() {
        assert_eq!(
            json(&record(), Level::INFO, "addon_operator::telemetry", true),
            r#"{"level":"info","logger":"addon-operator.telemetry","msg":"task done","error":"a b","queue":"main","took":0.5}"#
        );
    }

    #[test]
    fn text_lines_quote_what_has_spaces() {
        assert_eq!(
            plain(&record(), Level::WARN, true, false),
            r#"WARN  task done error="a b" queue=main took=0.5"#
        );
    }

    #[test]
    fn slip_12_a_reader_that_is_stuck_does_not_keep_the_log_open() {
        let (reader, mut pipe) = std::io::pipe().unwrap();
        let (sender, receiver) = sync_channel(4);
        let writer = Writer::start(sender.clone(), receiver, move |text: &[u8]| {
            let _ = pipe.write_all(text);
        });
        // More than the pipe and the channel hold: the thread is stuck, and there is no room for a last line.
        while sender.try_send(Line::Text("x".repeat(64 * 1024))).is_ok() {}
        writer.unwrap().close(Duration::from_millis(50));
        drop(reader);
    }

    #[test]
    fn slip_14_terminals_are_shown_no_escapes_of_others() {
        let fields = serde_json::json!({"a": "\u{1b}[2J", "b": "\u{9b}1m", "c\u{7f}": "x \u{202e}y"});
        let record = || Record {
            message: "printed \u{1b}]0;title\u{7}".into(),
            fields: fields.as_object().cloned().unwrap(),
        };
        assert_eq!(
            plain(&record(), Level::INFO, true, false),
            r#"INFO  printed \u001b]0;title\u0007 a="\u001b[2J" b="\u009b1m" c\u007f="x \u202ey""#
        );
        let line = json(&record(), Level::INFO, "hook", true);
        assert!(!line.contains(|char: char| char.is_control() || char == '\u{202e}'), "{line}");
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&read["b"], &read["c\u{7f}"]), (&fields["b"], &fields["c\u{7f}"]));
    }

    #[test]
    fn a_thread_without_a_log_makes_nobody_deaf() {
        let place = || tracing::info!("said here");
        let (log, captured) = capture();
        let log = Dispatch::new(log);
        std::thread::spawn(place).join().unwrap();
        tracing::dispatcher::with_default(&log, place);
        assert_eq!(captured.lines(), ["INFO  said here"]);
    }

    #[test]
    fn what_a_library_quotes_of_an_answer_is_not_written() {
        let (log, captured) = capture();
        tracing::dispatcher::with_default(&Dispatch::new(log), || {
            tracing::warn!(target: ANSWERS, "{{\"data\": {{\"password\": \"UHIw, EOF while parsing");
            tracing::warn!(target: "kube_client::client::auth", "said by a library");
        });
        assert_eq!(captured.lines(), ["WARN  said by a library"]);
    }
}
