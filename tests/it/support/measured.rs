//! An operator in a process of its own, which is measured from outside.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::in_process::Cluster;

/// An operator in a process of its own.
pub(crate) struct Program {
    child: Child,
    port: u16,
    _serving: apiserver::Serving,
}

impl Program {
    #[expect(clippy::disallowed_methods, reason = "which program is measured is said from outside")]
    pub(crate) async fn start(cluster: &Cluster, more: &[(&str, &str)]) -> Self {
        let operator = std::env::var("FIGURES_OPERATOR")
            .unwrap_or_else(|_| env!("CARGO_BIN_EXE_addon-operator").to_owned());
        let serving = cluster.server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
        fs::write(cluster.path("kubeconfig"), serving.kubeconfig()).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let child = Command::new(operator)
            .arg("start")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("KUBECONFIG", cluster.path("kubeconfig"))
            .env("MODULES_DIR", cluster.path("modules"))
            .env("GLOBAL_HOOKS_DIR", cluster.path("global-hooks"))
            .env("ADDON_OPERATOR_NAMESPACE", "ops")
            .env("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1")
            .env("ADDON_OPERATOR_LISTEN_PORT", port.to_string())
            .env("ADDON_OPERATOR_TMP_DIR", cluster.path("tmp"))
            .envs(more.iter().copied())
            .current_dir(cluster.dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, port, _serving: serving }
    }

    /// Returns a line of the process's status, in KiB.
    pub(crate) fn kib(&self, name: &str) -> u64 {
        kib_of(self.child.id(), name)
    }

    /// Returns how much time of a processor it took by itself, without its hooks.
    pub(crate) fn own(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }

    /// Returns how often threads of it were woken, but for the first one, which does the work, and that of the log.
    pub(crate) fn woken(&self) -> u64 {
        let pid = self.child.id().to_string();
        let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let others = threads.filter(|thread| *thread.file_name() != *pid.as_str());
        let woken = |thread: fs::DirEntry| {
            // It may end meanwhile.
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let is_log = line("Name:") == Some("log");
            let switches = line("voluntary_ctxt_switches:").and_then(|count| count.parse::<u64>().ok());
            switches.filter(|_| !is_log).unwrap_or(0)
        };
        others.map(woken).sum()
    }

    /// Returns how often it asked the system to read or to write.
    pub(crate) fn reads_and_writes(&self) -> u64 {
        let counts = fs::read_to_string(format!("/proc/{}/io", self.child.id())).unwrap();
        let count =
            |name: &str| counts.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        count("syscr:").unwrap() + count("syscw:").unwrap()
    }

    /// Returns the sum of all metrics whose line begins with `name`.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        self.metric_of(name, "").await
    }

    /// Returns the sum of those of them that have a label.
    pub(crate) async fn metric_of(&self, name: &str, label: &str) -> f64 {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)).await else { return 0.0 };
        let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let mut answer = String::new();
        if stream.write_all(request).await.is_err() || stream.read_to_string(&mut answer).await.is_err() {
            return 0.0;
        }
        let lines = answer.lines().filter(|line| line.starts_with(name) && line.contains(label));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }
}

/// Returns a line of a process's status, in KiB.
pub(crate) fn kib_of(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
