//! Sessions of kubectl and helm print the same as with a real server. `tests/kubectl/play.py` plays them; see there.
use std::path::Path;
use std::process::{Command, Stdio};

use apiserver::ApiServer;
use tokio::net::TcpListener;

fn runs(program: &str, argument: &str) -> bool {
    let status = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_kubectl_and_helm_print_what_was_recorded() {
    for (program, argument) in [("kubectl", "options"), ("python3", "--version"), ("bash", "--version")] {
        if !runs(program, argument) {
            println!("skipped: there is no {program}");
            return;
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let server = ApiServer::builder().build().unwrap();
    let serving = server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    std::fs::write(&kubeconfig, serving.kubeconfig()).unwrap();
    let played = tokio::task::spawn_blocking(move || {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl/play.py");
        let mut command = Command::new("python3");
        command.arg(script).args(["compare", "--keep", "--kubeconfig"]).arg(&kubeconfig);
        // Nothing here lives long enough for collecting garbage to be worth it: that is a quarter of the time.
        command.env("GOGC", "off").env("GOMEMLIMIT", "1GiB").output().unwrap()
    });
    let played = played.await.unwrap();
    let (out, err) = (String::from_utf8_lossy(&played.stdout), String::from_utf8_lossy(&played.stderr));
    assert!(played.status.success(), "{out}{err}");
    println!("{out}");
    serving.shutdown().await;
}
