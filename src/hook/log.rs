//! What hooks and scripts print, as log lines of the operator.

use engine::hook::log::{Entry, Level, LineLog};
use engine::{HookId, RunLabels, Scope};

use crate::process::Stream;
use crate::telemetry::log::MERGED;

/// Whose lines they are.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) scope: Scope,
    pub(super) hook: String,
    pub(super) binding_type: String,
    pub(super) binding: String,
    pub(super) queue: String,
    pub(super) task: String,
    pub(super) cause: String,
}

impl Origin {
    /// Returns the origin of a hook's lines.
    pub(super) fn of_hook(id: &HookId, labels: &RunLabels) -> Self {
        Self {
            scope: id.scope.clone(),
            hook: id.name.to_string(),
            binding_type: labels.binding_type.to_owned(),
            binding: labels.binding.to_string(),
            queue: labels.queue.to_string(),
            task: labels.task.to_string(),
            cause: labels.cause.to_string(),
        }
    }

    /// Returns the origin of an enabled script's lines.
    pub(super) fn of_script(scope: &Scope) -> Self {
        let enabled = || "enabled".to_owned();
        Self {
            scope: scope.clone(),
            hook: enabled(),
            binding_type: enabled(),
            binding: enabled(),
            queue: String::new(),
            task: String::new(),
            cause: String::new(),
        }
    }

    fn write(&self, stream: Stream, entry: &Entry) {
        let output = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let (hook_type, module) = match &self.scope {
            Scope::Global => ("global", ""),
            Scope::Module(module) => ("module", module.as_str()),
        };
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    target: "addon_operator::hook",
                    hook = self.hook.as_str(),
                    "hook.type" = hook_type,
                    module,
                    binding = self.binding_type.as_str(),
                    "binding.name" = self.binding.as_str(),
                    queue = self.queue.as_str(),
                    "task.id" = self.task.as_str(),
                    cause = self.cause.as_str(),
                    output,
                    { MERGED } = entry.fields.as_str(),
                    "{}",
                    entry.message
                )
            };
        }
        match entry.level {
            Level::Trace => log!(trace),
            Level::Debug => log!(debug),
            Level::Info => log!(info),
            Level::Warn => log!(warn),
            Level::Error | Level::Fatal => log!(error),
        }
    }
}

/// Takes what one run prints and writes it as log lines; what is incomplete at the end, too.
struct Sink {
    origin: Origin,
    stdout: LineLog,
    stderr: LineLog,
}

impl Sink {
    fn print(&mut self, stream: Stream, bytes: &[u8]) {
        let log = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        for entry in log.push(bytes) {
            self.origin.write(stream, &entry);
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        for (stream, log) in [(Stream::Stdout, &mut self.stdout), (Stream::Stderr, &mut self.stderr)] {
            for entry in std::mem::take(log).finish() {
                self.origin.write(stream, &entry);
            }
        }
    }
}

/// Returns what takes the output of one run.
pub(super) fn sink(origin: Origin, merge_json: bool) -> impl FnMut(Stream, &[u8]) + Send + 'static {
    let mut sink = Sink { origin, stdout: LineLog::new(merge_json), stderr: LineLog::new(merge_json) };
    move |stream, bytes| sink.print(stream, bytes)
}
