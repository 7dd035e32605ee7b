//! Plays one script against the server in process.

use apiserver::Endpoint;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::hook::Hook;
use super::normal::normalised;

fn content_type(short: &str) -> &str {
    match short {
        "" => "application/json",
        "json" => "application/json-patch+json",
        "merge" => "application/merge-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        "yaml" => "application/yaml",
        other => other,
    }
}

fn accept(short: &str) -> &str {
    match short {
        "" => "application/json",
        "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
        "partial" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "partials" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        other => other,
    }
}

/// A script: its name and its steps.
#[derive(Deserialize)]
pub(crate) struct Script {
    #[serde(rename = "n")]
    pub(crate) name: String,
    #[serde(rename = "s")]
    pub(crate) steps: Vec<Step>,
}

/// A request with the recorded answer.
#[derive(Deserialize)]
pub(crate) struct Step {
    #[serde(rename = "m")]
    method: String,
    #[serde(rename = "p")]
    path: String,
    #[serde(rename = "t", default)]
    content: String,
    #[serde(rename = "a", default)]
    accept: String,
    /// As it was written: the order of keys matters.
    #[serde(rename = "b", default)]
    body: Option<Box<RawValue>>,
    /// How mutating webhooks patch what they are shown.
    #[serde(rename = "j", default)]
    pub(crate) patch: Option<Value>,
    /// What validating webhooks refuse everything with.
    #[serde(rename = "d", default)]
    pub(crate) denial: Option<String>,
    /// Parts of the answer that are not compared.
    #[serde(rename = "o", default)]
    omitted: Vec<String>,
    #[serde(rename = "r")]
    pub(crate) answer: Value,
}

/// The names of one script.
struct Names<'a> {
    namespace: String,
    unique: String,
    hook: Option<&'a Hook>,
}

impl Names<'_> {
    /// Fills in names, letters and values of earlier answers.
    fn fill(&self, text: &str, answers: &[Value]) -> String {
        let text = text.replace("{ns}", &self.namespace).replace("{u}", &self.unique);
        let text = self.hook.map_or_else(|| text.clone(), |hook| hook.fill(&text));
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(start) = rest.find('{') {
            out.push_str(&rest[..start]);
            rest = &rest[start..];
            let end = rest.find('}').map_or(1, |end| end + 1);
            if let Some(value) = Self::placeholder(&rest[..end], answers) {
                out.push_str(&value);
                rest = &rest[end..];
            } else {
                out.push('{');
                rest = &rest[1..];
            }
        }
        out + rest
    }

    fn placeholder(text: &str, answers: &[Value]) -> Option<String> {
        let inner = text.strip_prefix('{')?.strip_suffix('}')?;
        if let Some(count) = inner.strip_prefix("x*") {
            return Some("x".repeat(count.parse().ok()?));
        }
        let (what, step) = inner.split_once(':')?;
        let field = match what {
            "rv" => "resourceVersion",
            "uid" | "continue" | "name" => what,
            _ => return None,
        };
        let answer = answers.get(step.parse::<usize>().ok()?)?;
        Some(answer["metadata"][field].as_str().unwrap_or_default().to_owned())
    }

    fn restore(&self, value: &Value) -> Value {
        let text = value.to_string().replace(&self.namespace, "{ns}").replace(&self.unique, "{u}");
        let text = self.hook.map_or_else(|| text.clone(), |hook| hook.restore(&text));
        serde_json::from_str(&text).unwrap()
    }
}

/// Asks until there is something that the server makes on its own: at most a thousand times.
async fn until_found(service: &Endpoint, path: &str) {
    for _ in 0..1000 {
        if send(service, "GET", path, ("", "application/json"), None).await.0 == 200 {
            return;
        }
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn send(
    service: &Endpoint,
    method: &str,
    path: &str,
    types: (&str, &str),
    body: Option<String>,
) -> (u16, String, Vec<String>) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/?&=%:,;()!+~*.@-_".contains(&byte);
    let path: String = path
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("accept", types.1)
        .header("user-agent", "recorder/1.0");
    if body.is_some() {
        request = request.header("content-type", types.0);
    }
    let request = request.body(Body::from(body.unwrap_or_default())).unwrap();
    let answer = service.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let warnings = answer.headers().get_all("warning").iter().map(|warning| {
        let text = warning.to_str().unwrap();
        let inner = text.split_once('"').unwrap().1.rsplit_once('"').unwrap().0;
        inner.replace("\\\"", "\"")
    });
    let mut warnings: Vec<String> = warnings.collect();
    warnings.sort();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned(), warnings)
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let values: Result<Vec<Value>, _> = lines.map(serde_json::from_str).collect();
        values.map_or_else(|_| Value::from(text), Value::Array)
    })
}

/// Returns the normalised answers of a script, with the reviews that `hook` noted.
pub(crate) async fn script(
    service: &Endpoint,
    script: &Script,
    number: usize,
    hook: Option<&Hook>,
) -> Vec<Value> {
    let names = Names { namespace: format!("nsx{number}y"), unique: format!("ux{number}y"), hook };
    hook.inspect(|hook| hook.begin(None, None));
    let namespace = json!({"metadata": {"name": names.namespace}}).to_string();
    send(service, "POST", "/api/v1/namespaces", ("application/json", "application/json"), Some(namespace))
        .await;
    let (mut raw, mut out) = (Vec::new(), Vec::new());
    for step in &script.steps {
        if step.method == "WAIT" {
            until_found(service, &names.fill(&step.path, &raw)).await;
            raw.push(Value::Null);
            out.push(json!({"s": 200}));
            continue;
        }
        let body = step.body.as_ref().map(|body| {
            let text: Result<String, _> = serde_json::from_str(body.get());
            names.fill(text.as_deref().unwrap_or(body.get()), &raw)
        });
        let types = (content_type(&step.content), accept(&step.accept));
        let path = names.fill(&step.path, &raw);
        hook.inspect(|hook| hook.begin(step.patch.as_ref(), step.denial.as_deref()));
        let (status, body, warnings) = send(service, &step.method, &path, types, body).await;
        let answer = read(&body);
        let mut shown = answer.clone();
        if let Some(fields) = shown.as_object_mut() {
            fields.retain(|name, _| !step.omitted.contains(name));
        }
        let mut clean = json!({"s": status, "b": names.restore(&normalised(&shown))});
        let reviews = hook.map(Hook::take).unwrap_or_default();
        if !reviews.is_empty() {
            clean["v"] = names.restore(&normalised(&Value::Array(reviews)));
        }
        if !warnings.is_empty() {
            clean["w"] = names.restore(&json!(warnings));
        }
        raw.push(answer);
        out.push(clean);
    }
    out
}
