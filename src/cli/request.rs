//! One request to the debugging socket of a running operator.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::UnixStream;

/// Why a debugging command got no answer.
#[derive(Debug, Error)]
pub(super) enum DebugError {
    /// There is no socket.
    #[error(
        "debug socket '{0}' is not exists: is the operator running? --debug-unix-socket names its socket"
    )]
    Missing(PathBuf),
    /// We may not use the socket.
    #[error(
        "debug socket '{0}' does not let you in: it is open to the user who runs the operator only; run this as that user"
    )]
    Denied(PathBuf),
    /// Nobody listens.
    #[error(
        "nobody answers at debug socket '{0}': the operator is not running, it left the socket when it was killed"
    )]
    Dead(PathBuf),
    /// The socket can't be used.
    #[error("debug socket '{path}' can't be opened: {source}")]
    Broken {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The operator did not answer.
    #[error("the operator at '{path}' did not answer: {message}")]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What happened.
        message: String,
    },
    /// The operator knows no such path.
    #[error(
        "the operator at '{path}' does not know {route}: it is another version than this command ({version}); use the command of its own version",
        version = env!("CARGO_PKG_VERSION")
    )]
    Older {
        /// The socket.
        path: PathBuf,
        /// What it was asked for.
        route: String,
    },
}

/// What a debugging command asks for.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct DebugRequest {
    /// `GET` or `POST`.
    pub(super) method: &'static str,
    /// The path with its query.
    pub(super) path: String,
    /// The form that is sent.
    pub(super) form: String,
    /// Whether a path that nobody knows is an answer like any other.
    pub(super) verbatim: bool,
}

fn get(path: String) -> DebugRequest {
    DebugRequest { method: "GET", path, form: String::new(), verbatim: false }
}

pub(super) fn post(path: String) -> DebugRequest {
    DebugRequest { method: "POST", path, form: String::new(), verbatim: false }
}

/// Returns the request of a command line; `None` when it is no debugging command.
pub(super) fn debug_request(name: &str, matches: &ArgMatches) -> Option<DebugRequest> {
    let text =
        |of: &ArgMatches, id: &str| of.try_get_one::<String>(id).ok().flatten().cloned().unwrap_or_default();
    let format = text(matches, "output");
    match name {
        "raw" => {
            let path: &String = matches.get_one("path")?;
            let path = if path.starts_with('/') { path.clone() } else { format!("/{path}") };
            return Some(DebugRequest { verbatim: true, ..get(path) });
        }
        "status" => return Some(get(format!("/status.{format}"))),
        "graph" => {
            return Some(get(if format == "svg" {
                "/graph".to_owned()
            } else {
                "/graph?format=text".to_owned()
            }));
        }
        "converge" => return Some(post("/converge".to_owned())),
        _ => {}
    }
    let (command, inner) = matches.subcommand()?;
    let on = |id: &str| inner.try_get_one::<bool>(id).ok().flatten().copied().unwrap_or(false);
    let (format, module) = (text(inner, "output"), encoded(&text(inner, "name")));
    let show_secrets = on("show-secrets");
    let secrets = if show_secrets { "?showSecrets=true" } else { "" };
    Some(match (name, command) {
        ("why", what) => get(format!("/why/{what}/{module}?output={format}")),
        ("config", "set") => {
            let fields =
                ["name", "value", "duration"].map(|id| format!("{id}={}", encoded(&text(inner, id))));
            DebugRequest { form: fields.join("&"), ..post("/config/set".to_owned()) }
        }
        ("queue", "list") => get(format!("/queue/list.{format}?showEmpty={}", on("show-empty"))),
        ("queue" | "global" | "module" | "config", "main" | "list") => {
            get(format!("/{name}/{command}.{format}"))
        }
        ("global", "patches") => get(format!("/global/patches.json{secrets}")),
        ("global", _) => get(format!("/global/{command}.{format}{secrets}")),
        ("module", "values" | "config") => {
            let global = on("global");
            get(format!("/module/{module}/{command}.{format}?global={global}&showSecrets={show_secrets}"))
        }
        ("module", "patches") => get(format!("/module/{module}/patches.json{secrets}")),
        ("module", "snapshots" | "status") => get(format!("/module/{module}/{command}.{format}{secrets}")),
        ("module", "releases") => get("/module/releases".to_owned()),
        ("module", "resource-monitor") => get(format!("/module/resource-monitor.{format}")),
        ("module", "render") => {
            let (debug, diff) = (on("debug"), on("diff"));
            get(format!("/module/{module}/render?debug={debug}&diff={diff}&showSecrets={show_secrets}"))
        }
        ("module", "history") => get(format!("/module/{module}/history")),
        ("source", "list") => get(format!("/source/list.{format}")),
        ("source", "pause" | "resume" | "sync") => post(format!("/source/{module}/{command}")),
        ("chart", "list" | "outdated") => get(format!("/chart/{command}.{format}")),
        ("chart", "versions") => get(format!("/chart/versions.{format}?name={module}")),
        ("chart", _) => {
            let version = encoded(&text(inner, "version"));
            get(format!("/chart/{command}?name={module}&version={version}&showSecrets={show_secrets}"))
        }
        ("module", _) => post(format!("/module/{module}/{command}")),
        _ => return None,
    })
}

/// Returns `text` as a part of a path or a form.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Returns the error for a socket that can't be opened.
fn closed(path: PathBuf, source: std::io::Error) -> DebugError {
    let kind = source.kind();
    if kind == ErrorKind::NotFound {
        DebugError::Missing(path)
    } else if kind == ErrorKind::PermissionDenied {
        DebugError::Denied(path)
    } else if kind == ErrorKind::ConnectionRefused {
        DebugError::Dead(path)
    } else {
        DebugError::Broken { path, source }
    }
}

impl DebugRequest {
    /// Sends the request to the operator behind `socket`. Returns the status and the body.
    pub(super) async fn send(&self, socket: &Path) -> Result<(u16, Vec<u8>), DebugError> {
        let path = socket.to_owned();
        let stream = UnixStream::connect(socket).await.map_err(|error| closed(path.clone(), error))?;
        let silent =
            |error: hyper::Error| DebugError::Silent { path: path.clone(), message: error.to_string() };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(silent)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header("host", "unix")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::new(bytes::Bytes::from(self.form.clone())))
            .map_err(|error| DebugError::Silent { path: path.clone(), message: error.to_string() })?;
        let answer = sender.send_request(request).await.map_err(silent)?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(silent)?.to_bytes().to_vec();
        // An operator that knows the path says what it misses behind it.
        let is_unknown =
            status == 405 || (status == 404 && (body.is_empty() || body.starts_with(b"404 page not found")));
        if is_unknown && !self.verbatim {
            let route = self.path.split('?').next().unwrap_or_default().to_owned();
            return Err(DebugError::Older { path, route });
        }
        Ok((status, body))
    }
}
