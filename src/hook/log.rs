//! Turns what hooks and scripts print into log lines. See docs/hooks.md#output-and-exit-code.

use std::cell::OnceCell;
use std::sync::Arc;

use engine::hook::log::{Entry, Level, LineLog};
use engine::view::Secrets;
use engine::{Hook, HookId, RunLabels, Scope, ValuesInput};

use crate::process::Stream;
use crate::telemetry::log::MERGED;

/// Whose lines they are.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Those of a run of a hook.
    Hook(Arc<Hook>, RunLabels),
    /// Those of the enabled script of a module.
    Script(Scope),
}

impl Source {
    fn origin(&self) -> Origin {
        match self {
            Self::Hook(hook, labels) => Origin::of_hook(&hook.id, labels),
            Self::Script(scope) => Origin::of_script(scope),
        }
    }
}

/// What is told with each line about whose it is.
#[derive(Clone, Debug)]
struct Origin {
    scope: Scope,
    hook: String,
    binding_type: String,
    binding: String,
    queue: String,
    task: String,
    cause: String,
}

impl Origin {
    /// Returns the origin of a hook's lines.
    fn of_hook(id: &HookId, labels: &RunLabels) -> Self {
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
    fn of_script(scope: &Scope) -> Self {
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

/// The options for log lines of hooks.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogRules {
    /// Whether each JSON object that a hook prints becomes a log line of its own, with its fields.
    pub merge_json: bool,
    /// Whether values are shown where they are printed.
    pub show_values: bool,
}

/// Receives the output of one run and writes it as log lines, an incomplete last line too.
struct Sink {
    source: Source,
    /// What is told of it. It is made at the first output, since most runs print nothing.
    origin: OnceCell<Origin>,
    stdout: LineLog,
    stderr: LineLog,
    /// The values that the process could print.
    values: ValuesInput,
    /// Whether they are shown, but for those that are always secret.
    shows_values: bool,
    /// The texts to mask. They are computed at the first output, since most runs print nothing.
    secrets: OnceCell<Secrets<'static>>,
}

impl Sink {
    fn print(&mut self, stream: Stream, bytes: &[u8]) {
        let secrets = self.secrets.get_or_init(|| secrets(&self.values, self.shows_values));
        let log = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let entries = log.push(bytes, secrets);
        self.write(stream, &entries);
    }

    fn write(&self, stream: Stream, entries: &[Entry]) {
        for entry in entries {
            let origin = self.origin.get_or_init(|| self.source.origin());
            origin.write(stream, entry);
        }
    }
}

fn secrets(values: &ValuesInput, shows_values: bool) -> Secrets<'static> {
    let sections = values.sections().filter(|_| !shows_values);
    Secrets::default().with(Secrets::shared(sections)).with(Arc::clone(&values.secret))
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Nothing is left where nothing was printed.
        let Some(secrets) = self.secrets.take() else { return };
        let logs = [(Stream::Stdout, &mut self.stdout), (Stream::Stderr, &mut self.stderr)];
        let left = logs.map(|(stream, log)| (stream, std::mem::take(log).finish(&secrets)));
        for (stream, entries) in left {
            self.write(stream, &entries);
        }
    }
}

/// Returns the receiver for the output of one run whose input was `values`.
pub(super) fn sink(
    source: Source,
    rules: LogRules,
    values: &ValuesInput,
) -> impl FnMut(Stream, &[u8]) + Send + 'static {
    let log = || LineLog::new(rules.merge_json);
    let mut sink = Sink {
        source,
        origin: OnceCell::new(),
        stdout: log(),
        stderr: log(),
        values: values.clone(),
        shows_values: rules.show_values,
        secrets: OnceCell::new(),
    };
    move |stream, bytes| sink.print(stream, bytes)
}
