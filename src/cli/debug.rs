//! One request to the debugging socket of a running operator.

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
    /// The socket does not let us in.
    #[error("debug socket '{path}' can't be opened: {source} (is the operator running, and is it yours?)")]
    Refused {
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
}

/// What a debugging command asks for.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct DebugRequest {
    /// `GET` or `POST`.
    pub(super) method: &'static str,
    /// The path with its query.
    pub(super) path: String,
}

/// Returns what the command line asks the socket for; `None` when it is no debugging command.
pub(super) fn debug_request(name: &str, matches: &ArgMatches) -> Option<DebugRequest> {
    let get = |path: String| Some(DebugRequest { method: "GET", path });
    if name == "raw" {
        let path: &String = matches.get_one("path")?;
        return get(if path.starts_with('/') { path.clone() } else { format!("/{path}") });
    }
    let (command, inner) = matches.subcommand()?;
    let text = |id: &str| inner.try_get_one::<String>(id).ok().flatten().cloned().unwrap_or_default();
    let on = |id: &str| inner.try_get_one::<bool>(id).ok().flatten().copied().unwrap_or(false);
    let (format, module) = (text("output"), text("name"));
    match (name, command) {
        ("queue", "list") => get(format!("/queue/list.{format}?showEmpty={}", on("show-empty"))),
        ("queue" | "global" | "module", "main" | "list") => get(format!("/{name}/{command}.{format}")),
        ("global", "patches") => get("/global/patches.json".to_owned()),
        ("global", _) => get(format!("/global/{command}.{format}")),
        ("module", "values" | "config") => {
            get(format!("/module/{module}/{command}.{format}?global={}", on("global")))
        }
        ("module", "patches") => get(format!("/module/{module}/patches.json")),
        ("module", "snapshots") => get(format!("/module/{module}/snapshots.{format}")),
        ("module", "releases") => get("/module/releases".to_owned()),
        ("module", "render" | "history") => get(format!("/module/{module}/{command}")),
        ("module", _) => Some(DebugRequest { method: "POST", path: format!("/module/{module}/{command}") }),
        _ => None,
    }
}

impl DebugRequest {
    /// Sends the request to the operator behind `socket`. Returns the status and the body.
    pub(super) async fn send(&self, socket: &Path) -> Result<(u16, Vec<u8>), DebugError> {
        let path = socket.to_owned();
        if !socket.exists() {
            return Err(DebugError::Missing(path));
        }
        let stream = UnixStream::connect(socket);
        let stream = stream.await.map_err(|source| DebugError::Refused { path: path.clone(), source })?;
        let silent =
            |error: hyper::Error| DebugError::Silent { path: path.clone(), message: error.to_string() };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(silent)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header("host", "unix")
            .body(Full::<bytes::Bytes>::default())
            .map_err(|error| DebugError::Silent { path: path.clone(), message: error.to_string() })?;
        let answer = sender.send_request(request).await.map_err(silent)?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(silent)?.to_bytes();
        Ok((status, body.to_vec()))
    }
}
