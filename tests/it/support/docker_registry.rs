//! A registry that we did not write (Debian: `docker-registry`) on loopback, with TLS and a password.

use std::fs;
use std::os::unix::net::UnixStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tempfile::TempDir;

use super::peer::{Running, forward, start};
use super::repository::issue;
use super::server;

/// Who may use the registry, as `htpasswd -B` writes it: joe, hunter2.
const USERS: &str = "joe:$2y$04$cq84ZdHBGHINkn1j117Z0OJDe8Xe2ZeNKxcR0e9rbWt7uIeR7LADC\n";

pub(crate) struct DockerRegistry {
    pub(crate) dir: TempDir,
    /// The certificate of its authority, in PEM.
    pub(crate) authority: String,
    pub(crate) port: u16,
    _program: Running,
}

impl DockerRegistry {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().display();
        let issued = issue(&[]);
        for (name, text) in [
            ("certificate.pem", issued.certificate.pem()),
            ("key.pem", issued.key.serialize_pem()),
            ("authority.pem", issued.authority.clone()),
            ("users", USERS.to_owned()),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let config = format!(
            "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {root}/data}}, maintenance: {{uploadpurging: {{enabled: false}}}}}}\n\
             auth: {{htpasswd: {{realm: test, path: {root}/users}}}}\n\
             http: {{net: unix, addr: {root}/https.sock, relativeurls: true, secret: x,\n\
             tls: {{certificate: {root}/certificate.pem, key: {root}/key.pem}}}}\n"
        );
        let file = dir.path().join("config.yml");
        fs::write(&file, config).unwrap();
        let program = start("docker-registry", "docker-registry", &["serve", &file.display().to_string()]);
        let socket = dir.path().join("https.sock");
        server::until("docker-registry", || UnixStream::connect(&socket).is_ok()).await;
        let port = forward(socket).await;
        Self { authority: issued.authority, dir, port, _program: program }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("oci://localhost:{}{path}", self.port)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Writes who may use it, as `docker login` does.
    pub(crate) fn docker_config(&self) -> String {
        let auth = STANDARD.encode("joe:hunter2");
        let config = json!({"auths": {format!("localhost:{}", self.port): {"auth": auth}}}).to_string();
        fs::write(self.dir.path().join("config.json"), &config).unwrap();
        config
    }
}
