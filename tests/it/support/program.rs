//! The program as a user runs it: a directory to work in, and a process with its log lines.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use tempfile::TempDir;

use super::DEADLINE;
use super::files::{copy, root};

/// A directory with modules and global hooks, in which the program runs.
pub(crate) struct Workspace {
    pub(crate) dir: TempDir,
}

/// A running `dev` and its log lines.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Workspace {
    /// Returns one without modules and hooks.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["modules", "global-hooks"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    /// Returns one with the samples of this repository.
    pub(crate) fn samples() -> Self {
        let workspace = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["modules", "global-hooks"] {
            copy(&root().join(name), workspace.path());
        }
        workspace
    }

    /// Returns the directory in which everything happens.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file; a script can be executed.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // As an editor does: the new file appears whole.
        let draft = path.with_extension("draft");
        fs::write(&draft, text).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::rename(draft, path).unwrap();
    }

    /// Returns the program with these arguments, in an environment that leads to no cluster.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_addon-operator"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("KUBECONFIG", "/nowhere/poisoned")
            .env("KUBERNETES_SERVICE_HOST", "192.0.2.1")
            .env("KUBERNETES_SERVICE_PORT", "443");
        command
    }

    /// Starts `dev` on a free port.
    pub(crate) fn dev(&self, arguments: &[&str]) -> Running {
        let mut all =
            vec!["dev", "--prometheus-listen-port", "0", "--prometheus-listen-address", "127.0.0.1"];
        all.extend(arguments);
        Running::start(self.command(&all))
    }

    /// Starts `dev`, waits until it is ready and returns it with its port.
    pub(crate) fn ready(&self) -> (Running, String) {
        let mut running = self.dev(&[]);
        let port = running.port();
        running.wait("Operator is ready now");
        (running, port)
    }

    /// Runs `dev --once` and returns what it printed.
    pub(crate) fn once(&self) -> Output {
        let arguments =
            ["dev", "--once", "--prometheus-listen-port", "0", "--prometheus-listen-address", "127.0.0.1"];
        self.command(&arguments).output().unwrap()
    }

    /// Runs a command and returns its exit code and what it printed.
    pub(crate) fn ask(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }
}

impl Running {
    /// Starts a program whose log lines are read.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits for a log line that contains `text`.
    pub(crate) fn wait(&mut self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            match self.lines.recv_timeout(DEADLINE.saturating_sub(begun.elapsed())) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(error) => panic!("no line with {text:?} came ({error}); seen:\n{}", self.seen.join("\n")),
            }
        }
    }

    /// Returns the port that the log names.
    pub(crate) fn port(&mut self) -> String {
        let line = self.wait("curl localhost:");
        line.split("localhost:").nth(1).unwrap().split('/').next().unwrap().to_owned()
    }

    /// Returns the log lines so far.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Forgets the log lines so far, of which a long test has many.
    pub(crate) fn forget_seen(&mut self) {
        self.seen.clear();
    }

    /// Waits until the program has written a file.
    pub(crate) fn wait_for_file(&mut self, path: &Path) {
        let begun = Instant::now();
        while fs::read_to_string(path).unwrap_or_default().is_empty() {
            assert!(
                begun.elapsed() < DEADLINE && self.child.try_wait().unwrap().is_none(),
                "no {}",
                path.display()
            );
            super::pause::pause_thread();
        }
    }

    /// Returns the number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
    }

    /// Waits for the end and returns the exit code and all log lines.
    pub(crate) fn end(mut self) -> (i32, Vec<String>) {
        let code = self.child.wait().unwrap().code().unwrap();
        self.seen.extend(self.lines.try_iter());
        (code, std::mem::take(&mut self.seen))
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) fn stop(self) -> i32 {
        self.terminate();
        self.end().0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a hook that asks for `config`, fields of JSON, and then does `what`.
pub(crate) fn hook(config: &str, what: &str) -> String {
    format!(
        "#!/bin/bash\nif [[ ${{1:-}} == --config ]]; then echo '{{\"configVersion\":\"v1\",{config}}}'; exit; fi\n{what}\n"
    )
}

/// Asks the port for a path and returns the whole answer.
pub(crate) fn get(port: &str, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
