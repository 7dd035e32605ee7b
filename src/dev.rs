//! `dev`: the operator with an embedded cluster. It never touches another cluster. See docs/operating.md#what-dev-keeps.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use apiserver::{ApiServer, Endpoint};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tower::Layer as _;

use crate::app::{self, Outcome, Surroundings};
use crate::cluster::connect_in_process;
use crate::config::{Environment, OptionSources, Settings};
use crate::directory_trust::{self, Refusal};
use crate::fence::Fence;
use crate::file_lock::{FileLock, HANDOVER};
use crate::hook::shell_framework;
use crate::source;

/// How long workloads take to become ready, since there are no nodes.
pub(crate) const SIMULATED: Duration = Duration::from_millis(500);

/// The namespace when nothing sets it.
pub const NAMESPACE: &str = "addon-operator";

/// The file that says that a directory belongs to `dev`. It is locked while one uses it.
const MARKER: &str = "addon-operator-dev";

/// What is in the marker.
const MARKED: &str =
    "This directory belongs to `addon-operator dev`. `dev --reset` deletes the cluster that is kept in it.\n";

/// The file with the cluster, and the one with the way to it.
const CLUSTER: &str = "cluster.json";
const KUBECONFIG: &str = "kubeconfig";

/// The directory with the bundles of module sources.
const SOURCES: &str = "sources";

/// All that `dev` makes in its directory, besides the marker. A reset removes this and nothing else.
const MADE: &[&str] = &[
    CLUSTER,
    "cluster.json.new",
    "cluster.json.log",
    "cluster.json.log.1",
    "cluster.json.lock",
    KUBECONFIG,
    "shell",
    "bin",
    "tmp",
    SOURCES,
    "debug.socket",
];

/// The options of `dev`.
pub struct Dev {
    /// The settings.
    pub settings: Settings,
    /// The environment of this process.
    pub environment: Environment,
    /// The directory for the state of the cluster.
    pub state_dir: PathBuf,
    /// Whether to delete the cluster of earlier runs first.
    pub reset: bool,
    /// Whether to end when all modules have converged.
    pub once: bool,
    /// Becomes true when the operator has to end.
    pub shutdown: watch::Receiver<bool>,
}

/// Returns the options with the defaults of `dev`.
pub fn with_defaults(given: OptionSources, state_dir: &Path) -> OptionSources {
    given
        .default_to("namespace", NAMESPACE)
        // Whoever sees this log is who wrote the values.
        .default_to("log-hook-values", "true")
        .default_to("tmp-dir", state_dir.join("tmp").to_string_lossy())
        // The API server is in this process.
        .default_to("admission-server-enabled", "true")
        .default_to("admission-server-listen-address", "127.0.0.1")
        .default_to("webhook-url", "https://127.0.0.1:0")
        .default_to("source-dir", state_dir.join(SOURCES).to_string_lossy())
        .default_to("debug-unix-socket", state_dir.join("debug.socket").to_string_lossy())
}

/// Runs the embedded API server and the operator on it.
///
/// # Errors
///
/// Whatever makes the start impossible, such as an unreadable state of the cluster.
pub async fn run(dev: Dev) -> anyhow::Result<Outcome> {
    let StateDir { path: dir, _lock } = StateDir::open(&dev.state_dir, dev.reset)
        .with_context(|| format!("can't use --state-dir {}", dev.state_dir.display()))?;
    let cluster = Cluster::start(dir.join(CLUSTER))?;
    let kubeconfig = dir.join(KUBECONFIG);
    write_private(&kubeconfig, &cluster.kubeconfig)
        .with_context(|| format!("can't write {}", kubeconfig.display()))?;
    let request_metrics = app::request_metrics();
    let [client, patcher] = request_metrics
        .each_ref()
        .map(|metrics| connect_in_process(metrics.layer(cluster.service.clone()), &dev.settings.namespace));
    create_namespace(&client, &dev.settings).await?;
    install_crds(&client).await?;
    let environment = hook_environment(&dev.environment, &dir, &kubeconfig);
    let environment = with_framework(environment, Path::new("/"), &dir.join("shell"))?;
    let around = Surroundings {
        environment,
        patcher,
        client,
        request_metrics,
        fence: Fence::none(),
        api_server: None,
        once: dev.once,
        any_port: true,
        shutdown: dev.shutdown,
        settings: dev.settings,
    };
    let wanted_port = around.settings.listen_port;
    let namespace = around.settings.namespace.clone();
    let outcome = app::run(around, |address| greet(address, wanted_port, &kubeconfig, &namespace)).await;
    cluster.stop().await;
    outcome
}

/// Logs which commands to try next.
fn greet(address: SocketAddr, wanted_port: u16, kubeconfig: &Path, namespace: &str) {
    // Port 0 means any port.
    if wanted_port != 0 && address.port() != wanted_port {
        tracing::warn!("port {wanted_port} is taken; this operator listens on port {}", address.port());
    }
    tracing::info!("try: curl localhost:{}/queue", address.port());
    tracing::info!("try: KUBECONFIG={} kubectl -n {namespace} get configmaps", kubeconfig.display());
    tracing::info!("try: addon-operator status");
}

/// The directory of a `dev`, which no other one uses at the same time.
struct StateDir {
    path: PathBuf,
    _lock: FileLock,
}

impl StateDir {
    /// Takes a directory that `dev` made before, an empty one or a new one. With `reset` what it holds is removed.
    fn open(path: &Path, reset: bool) -> anyhow::Result<Self> {
        directory_trust::make(path).map_err(|refusal| refused(path, &refusal))?;
        let path = fs::canonicalize(path)?;
        directory_trust::check_own(&path).map_err(|refusal| refused(&path, &refusal))?;
        if let Some(name) = foreign(&path)? {
            anyhow::bail!(
                "dev did not make it, and it holds {name:?}; name a new or an empty directory, which dev keeps its cluster in"
            );
        }
        let lock = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path.join(MARKER))?;
        let Ok(lock) = FileLock::new(lock, HANDOVER) else {
            anyhow::bail!("another dev uses it; end that one, or name another directory");
        };
        fs::write(path.join(MARKER), MARKED)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        for name in MADE.iter().filter(|_| reset) {
            remove(&path.join(name))?;
        }
        Ok(Self { path, _lock: lock })
    }
}

fn refused(path: &Path, refusal: &Refusal) -> anyhow::Error {
    anyhow::Error::msg(refusal.told(path, "the cluster of dev", "--state-dir"))
}

/// Returns something in a directory that shows that it is not for `dev`.
///
/// The state of another `dev` may lie in it. What an earlier version made has no marker, but a cluster and the way to it.
fn foreign(dir: &Path) -> io::Result<Option<String>> {
    let is_ours = |dir: &Path| {
        dir.join(MARKER).is_file() || (dir.join(CLUSTER).is_file() && dir.join(KUBECONFIG).is_file())
    };
    if is_ours(dir) {
        return Ok(None);
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if !is_ours(&entry.path()) {
            return Ok(Some(entry.file_name().to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

/// Removes a file or a directory with all that is in it, if it is there. A link is removed, not what it leads to.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let file = tempfile::NamedTempFile::new_in(parent)?;
    fs::write(file.path(), text)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Returns the environment of hooks. Its kubeconfig is that of the embedded cluster, variables that lead to others are removed, and `PATH` has a `jq`.
pub(crate) fn hook_environment(own: &Environment, dir: &Path, kubeconfig: &Path) -> Environment {
    let harmless = own.clone().without(|name| {
        name.starts_with("KUBERNETES_SERVICE_")
            || name.starts_with("KUBERNETES_PORT")
            || name.starts_with("HELM_KUBE")
    });
    let harmless = harmless.with("KUBECONFIG", kubeconfig);
    let path = own.text("PATH").unwrap_or("/usr/local/bin:/usr/bin:/bin").to_owned();
    match own_tools(dir, &path) {
        Some(tools) => harmless.with("PATH", format!("{path}:{}", tools.display())),
        None => harmless,
    }
}

/// Creates a directory with the tools that are not installed. Returns `None` when all are.
fn own_tools(dir: &Path, path: &str) -> Option<PathBuf> {
    if std::env::split_paths(path).any(|dir| dir.join("jq").is_file()) {
        return None;
    }
    let tools = dir.join("bin");
    fs::create_dir_all(&tools).ok()?;
    let jq = tools.join("jq");
    let _ = fs::remove_file(&jq);
    // Under the name `jq` this program is jq: see `cli::run`.
    symlink(std::env::current_exe().ok()?, jq).ok()?;
    Some(tools)
}

/// Returns the environment in which bash finds the shell framework even if it is not installed at `root`.
pub(crate) fn with_framework(
    environment: Environment,
    root: &Path,
    dir: &Path,
) -> anyhow::Result<Environment> {
    if root.join("shell_lib.sh").exists() && root.join("frameworks/shell").exists() {
        return Ok(environment);
    }
    let prelude =
        shell_framework::write_redirected(dir).with_context(|| format!("can't write {}", dir.display()))?;
    let environment = match environment.text("BASH_ENV").map(str::to_owned) {
        Some(next) if !next.is_empty() => environment.with("ADDON_OPERATOR_NEXT_BASH_ENV", next),
        Some(_) | None => environment,
    };
    Ok(environment.with("BASH_ENV", prelude))
}

pub(crate) async fn create_namespace(client: &kube::Client, settings: &Settings) -> anyhow::Result<()> {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    use kube::Api;
    use kube::api::{ObjectMeta, PostParams};

    let named = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata: named(&settings.namespace), ..Namespace::default() };
    let map = ConfigMap { metadata: named(&settings.config_map), ..ConfigMap::default() };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &settings.namespace);
    let created = [
        namespaces.create(&PostParams::default(), &namespace).await.err(),
        maps.create(&PostParams::default(), &map).await.err(),
    ];
    for error in created.into_iter().flatten() {
        // They exist from an earlier run.
        if !crate::cluster::is_conflict(&error) {
            return Err(error).context("the embedded cluster can't be prepared");
        }
    }
    Ok(())
}

/// Makes the kinds of module sources known, as `addon-operator crds` prints them.
async fn install_crds(client: &kube::Client) -> anyhow::Result<()> {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::Api;
    use kube::api::{Patch, PatchParams};

    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in source::crds()? {
        let name = crd.pointer("/metadata/name").and_then(serde_json::Value::as_str).unwrap_or_default();
        let params = PatchParams::apply("addon-operator").force();
        api.patch(name, &params, &Patch::Apply(&crd))
            .await
            .with_context(|| format!("the embedded cluster can't be prepared: CRD {name}"))?;
    }
    Ok(())
}

/// The embedded API server, with a thread and a runtime of its own.
struct Cluster {
    service: Endpoint,
    kubeconfig: String,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Cluster {
    fn start(state: PathBuf) -> anyhow::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (sender, started) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("apiserver".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(sender.send(Err(error.into()))),
            };
            runtime.block_on(serve(state, &sender, stopped));
        })?;
        let (service, kubeconfig) = started.recv().context("the embedded API server did not start")??;
        Ok(Self { service, kubeconfig, stop, thread })
    }

    /// Ends the server, which then writes its state.
    ///
    /// What follows from requests of this process is done by tasks of its runtime, and the server waits for them. So no thread
    /// of the runtime may wait for the server.
    async fn stop(self) {
        let Self { stop, thread, .. } = self;
        let _ = stop.send(());
        let _ = tokio::task::spawn_blocking(|| thread.join()).await;
    }
}

type Started = anyhow::Result<(Endpoint, String)>;

async fn serve(state: PathBuf, sender: &std::sync::mpsc::Sender<Started>, stopped: oneshot::Receiver<()>) {
    let start = async {
        let server = ApiServer::builder().impersonation().simulate(SIMULATED).state(state).build()?;
        let serving = server.serve(TcpListener::bind("127.0.0.1:0").await?)?;
        anyhow::Ok((server, serving))
    };
    match start.await {
        Ok((server, serving)) => {
            let _ = sender.send(Ok((server.service(), serving.kubeconfig().to_owned())));
            let _ = stopped.await;
            serving.shutdown().await;
            if let Err(error) = server.shutdown().await {
                tracing::error!(%error, "the state of the embedded cluster can't be written");
            }
        }
        Err(error) => drop(sender.send(Err(error.context("the embedded API server can't start")))),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use tower::ServiceExt as _;

    use super::*;

    #[test]
    fn the_server_ends_although_work_that_follows_from_the_last_request_waits_for_the_thread_that_ends_it() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let (sender, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let runtime = runtime.unwrap();
            let ending = runtime.spawn(async move {
                let cluster = Cluster::start(state).unwrap();
                let namespace = r#"{"metadata": {"name": "one"}}"#;
                let request = http::Request::post("/api/v1/namespaces")
                    .header("content-type", "application/json")
                    .body(Full::from(namespace))
                    .unwrap();
                let answer = cluster.service.clone().oneshot(request).await.unwrap();
                assert_eq!(answer.status(), 201);
                cluster.stop().await;
            });
            runtime.block_on(ending).unwrap();
            sender.send(()).unwrap();
        });
        ended.recv_timeout(std::time::Duration::from_mins(1)).unwrap();
    }

    #[test]
    fn slip_13_a_reset_removes_what_dev_made_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        drop(StateDir::open(&state, false).unwrap());
        for name in [CLUSTER, KUBECONFIG, "mine"] {
            fs::write(state.join(name), "").unwrap();
        }
        fs::create_dir_all(state.join("tmp/run-x")).unwrap();
        // Another state lies in this one, as those of the examples do.
        drop(StateDir::open(&state.join("301"), false).unwrap());
        drop(StateDir::open(&state, false).unwrap());
        assert!(state.join(CLUSTER).exists(), "without a reset all stays");
        drop(StateDir::open(&state, true).unwrap());
        let mut left: Vec<_> =
            fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["301", MARKER, "mine"]);
    }

    #[test]
    fn slip_13_a_directory_that_dev_did_not_make_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        for reset in [false, true] {
            let error = StateDir::open(dir.path(), reset).err().unwrap().to_string();
            assert!(error.contains("dev did not make it, and it holds \"bin\""), "{error}");
        }
        assert!(dir.path().join("bin").exists() && !dir.path().join(MARKER).exists());
        assert_eq!(fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o755);
        // What an earlier version made is known by its files, and marked.
        for name in [CLUSTER, KUBECONFIG] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        drop(StateDir::open(dir.path(), true).unwrap());
        assert!(dir.path().join(MARKER).exists() && !dir.path().join(CLUSTER).exists());
    }

    #[test]
    fn slip_13_a_state_is_used_by_one_dev_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = StateDir::open(dir.path(), false).unwrap();
        fs::write(dir.path().join(CLUSTER), "").unwrap();
        let error = StateDir::open(dir.path(), true).err().unwrap().to_string();
        assert!(error.contains("another dev uses it"), "{error}");
        assert!(dir.path().join(CLUSTER).exists());
        drop(first);
        StateDir::open(dir.path(), true).unwrap();
    }

    #[test]
    fn the_framework_is_written_only_where_none_is_installed() {
        let dir = tempfile::tempdir().unwrap();
        let (root, own) = (dir.path().join("root"), dir.path().join("own"));
        fs::create_dir_all(root.join("frameworks/shell")).unwrap();
        let environment = Environment::default().with("BASH_ENV", "/etc/mine");
        let redirected = with_framework(environment.clone(), &root, &own).unwrap();
        assert_eq!(redirected.text("BASH_ENV"), own.join("prelude.sh").to_str());
        assert_eq!(redirected.text("ADDON_OPERATOR_NEXT_BASH_ENV"), Some("/etc/mine"));
        assert!(own.join("frameworks/shell/hook.sh").exists());
        fs::write(root.join("shell_lib.sh"), "").unwrap();
        let installed = with_framework(environment, &root, &own).unwrap();
        assert_eq!(installed.text("BASH_ENV"), Some("/etc/mine"));
    }
}
