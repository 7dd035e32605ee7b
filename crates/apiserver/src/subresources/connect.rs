//! Connections to containers and nodes: what is asked for goes through admission first.

use serde_json::{Map, Value, json};

use crate::admission;
use crate::admission::configured::is_reviewed;
use crate::admission::webhook::{self, Asked, Named, Operation};
use crate::request::RequestContext;
use crate::status::Outcome;

/// Returns what a connection is asked for with, as mutating webhooks leave it; nothing if nobody is asked about it.
///
/// # Errors
///
/// When a webhook or a policy says so.
pub(super) fn admitted(
    request: &RequestContext,
    name: &str,
    warnings: &mut Vec<String>,
) -> Outcome<Option<Value>> {
    let Some(options) = options(request).filter(|_| is_reviewed(request)) else { return Ok(None) };
    let asked = Asked {
        request,
        operation: Operation::Connect,
        named: Named::Path(name),
        object: None,
        old: None,
        is_dry_run: false,
        options: &Value::Null,
    };
    let options = webhook::mutate(asked, &options, warnings)?.unwrap_or(options);
    admission::validate(Asked { object: Some(&options), ..asked }, warnings)?;
    Ok(Some(options))
}

/// Returns the options of a connection, read from the query; nothing for what is no connection, as a log.
fn options(request: &RequestContext) -> Option<Value> {
    let (part, rest) = {
        let part = request.subresource.as_deref().unwrap_or_default();
        part.split_once('/').map_or((part, None), |(part, rest)| (part, Some(rest)))
    };
    let query = &request.query;
    let mut fields = Map::new();
    match part {
        "exec" | "attach" => {
            for name in ["stdin", "stdout", "stderr", "tty"] {
                fields.extend(query.flag(name).then(|| (name.to_owned(), json!(true))));
            }
            fields.extend(query.text("container").map(|name| ("container".to_owned(), json!(name))));
            let command: Vec<&str> = query.all("command").collect();
            if part == "exec" && !command.is_empty() {
                fields.insert("command".into(), json!(command));
            }
        }
        "portforward" => {
            let ports: Vec<i64> = query.all("ports").filter_map(|port| port.parse().ok()).collect();
            if !ports.is_empty() {
                fields.insert("ports".into(), json!(ports));
            }
        }
        "proxy" => {
            let path = rest.map(|rest| format!("/{rest}")).or_else(|| query.text("path").map(str::to_owned));
            fields.extend(path.map(|path| ("path".to_owned(), json!(path))));
        }
        _ => return None,
    }
    let spoken = request.resource.kind.subresource(part)?;
    fields.insert("kind".into(), json!(*spoken.kind));
    fields
        .insert("apiVersion".into(), json!(crate::kind::join_group_version(&spoken.group, &spoken.version)));
    Some(Value::Object(fields))
}
