//! The audit log: one JSON object a line for each request.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use http::{HeaderMap, Method};
use jiff::Timestamp;
use serde_json::json;

use crate::regular_file;
use crate::request::Path as ApiPath;
use crate::sync::lock;

/// A file that requests are written to.
#[derive(Debug)]
pub(crate) struct Audit(Mutex<File>);

/// What is known of a request before it is carried out.
#[derive(Debug)]
pub(crate) struct Entry {
    time: Timestamp,
    method: Method,
    path: String,
    query: String,
    agent: String,
}

impl Entry {
    pub(crate) fn new(
        time: Timestamp,
        method: &Method,
        path: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Entry {
        let agent = headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
        Entry {
            time,
            method: method.clone(),
            path: path.to_owned(),
            query: query.to_owned(),
            agent: agent.unwrap_or_default().to_owned(),
        }
    }

    fn verb(&self, named: bool) -> &'static str {
        let watch = self.query.split('&').any(|pair| matches!(pair, "watch" | "watch=1" | "watch=true"));
        match self.method.as_str() {
            "GET" if watch => "watch",
            "GET" if named => "get",
            "GET" => "list",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if named => "delete",
            "DELETE" => "deletecollection",
            _ => "other",
        }
    }
}

impl Audit {
    /// Opens the file; lines are added to what is there.
    pub(crate) fn open(path: &Path) -> std::io::Result<Audit> {
        Ok(Audit(Mutex::new(regular_file::open(File::options().create(true).append(true), path)?)))
    }

    /// Writes a request down, with the status of its answer (0 if there was none) and how long it took.
    pub(crate) fn write(&self, entry: &Entry, user: &str, status: u16, now: Timestamp) {
        let mut line = json!({
            "time": entry.time.to_string(),
            "method": entry.method.as_str(),
            "path": entry.path,
            "query": entry.query,
            "user": user,
            "userAgent": entry.agent,
            "status": status,
            "microseconds": now.duration_since(entry.time).as_micros(),
        });
        if let (ApiPath::Resource(path), Some(fields)) = (ApiPath::parse(&entry.path), line.as_object_mut()) {
            fields.insert("verb".into(), json!(entry.verb(path.name.is_some())));
            let (group, version) = path.group_version.split_once('/').unwrap_or(("", &path.group_version));
            fields.insert("group".into(), json!(group));
            fields.insert("version".into(), json!(version));
            fields.insert("resource".into(), json!(path.resource));
            for (name, value) in
                [("namespace", path.namespace), ("name", path.name), ("subresource", path.subresource)]
            {
                if let Some(value) = value {
                    fields.insert(name.into(), json!(value));
                }
            }
        }
        let line = format!("{line}\n");
        // A full disk must not stop the server: the missing lines show it.
        let _ = lock(&self.0).write_all(line.as_bytes());
    }
}
