//! nginx on loopback, with TLS and a password: a server of files and programs that we did not write.

use std::fs;
use std::os::unix::net::UnixStream;

use tempfile::TempDir;

use super::peer::{Running, forward, start};
use super::repository::issue;
use super::server;

/// Who may ask it, as nginx knows it.
const USERS: &str = "joe:{PLAIN}hunter2\n";

pub(crate) struct Nginx {
    /// Where its files are.
    pub(crate) dir: TempDir,
    /// The certificate of its authority, in PEM; it is in the file `authority.pem`, too.
    pub(crate) authority: String,
    pub(crate) port: u16,
    _program: Running,
}

impl Nginx {
    /// Starts it in a directory. `location` says what it does with requests; `install` what has to be installed.
    pub(crate) async fn start(install: &str, dir: TempDir, location: &str) -> Self {
        let root = dir.path().display();
        let issued = issue(&[]);
        fs::write(dir.path().join("certificate.pem"), issued.certificate.pem()).unwrap();
        fs::write(dir.path().join("key.pem"), issued.key.serialize_pem()).unwrap();
        fs::write(dir.path().join("authority.pem"), &issued.authority).unwrap();
        fs::write(dir.path().join("users"), USERS).unwrap();
        let temporary = ["client_body", "fastcgi", "proxy", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {root}/{name};"))
            .concat();
        let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
        let config = format!(
            "daemon off; {user} worker_processes 1; pid {root}/pid; error_log {root}/errors;\n\
             events {{ }}\n\
             http {{ log_format answers '$request_method $uri $status'; access_log {root}/answers answers; {temporary}\n\
             server {{ listen unix:{root}/https.sock ssl; client_max_body_size 0;\n\
             ssl_certificate {root}/certificate.pem; ssl_certificate_key {root}/key.pem;\n\
             location / {{ auth_basic here; auth_basic_user_file {root}/users; {location} }} }} }}\n"
        );
        let file = dir.path().join("nginx.conf");
        fs::write(&file, config).unwrap();
        let file = file.display().to_string();
        let program =
            start(install, "nginx", &["-c", &file, "-e", &format!("{root}/errors"), "-p", &root.to_string()]);
        let socket = dir.path().join("https.sock");
        server::until("nginx", || UnixStream::connect(&socket).is_ok()).await;
        // nginx can't say which port it got, so it has none.
        let port = forward(socket).await;
        Self { authority: issued.authority, dir, port, _program: program }
    }

    /// Returns the method, the path and the status of each request so far.
    pub(crate) fn answers(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("answers")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
