//! What people do meanwhile: they change items, secrets and the ConfigMap, and disturb what modules brought.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiserver::{ApiServer, Endpoint};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::Service as _;

use crate::scenario::{Extra, Kinds, Scenario, definition};
use crate::seed::Seed;
use crate::trace::Trace;

/// A change of an item.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) at: Duration,
    pub(crate) name: String,
    /// The version that it made.
    pub(crate) version: u64,
    pub(crate) is_deletion: bool,
}

/// What people want in the end.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    /// The items and their texts.
    pub(crate) items: BTreeMap<String, String>,
    /// All changes of items. Nobody else makes any.
    pub(crate) changes: Vec<Change>,
    pub(crate) web_enabled: bool,
    pub(crate) db_enabled: bool,
    pub(crate) text: String,
    pub(crate) password: String,
    pub(crate) token: Option<String>,
    /// The things and their texts; `None` while there is no such kind.
    pub(crate) things: Option<BTreeMap<String, String>>,
    /// When modules were switched off.
    pub(crate) switched_off: Vec<(Duration, &'static str)>,
    /// What of modules was deleted, and how often.
    disturbed: BTreeMap<&'static str, u32>,
    /// How often the namespace of the items has left its team or come back: its objects do so without events.
    pub(crate) moves: usize,
    /// All that must not be seen anywhere, in each form that it had.
    pub(crate) secrets: Vec<Secret>,
}

/// A text that must not be seen anywhere.
#[derive(Clone, Debug)]
pub(crate) struct Secret {
    /// What it is for. Of each purpose there is one at a time.
    what: &'static str,
    pub(crate) text: String,
    /// When another took its place.
    pub(crate) replaced: Option<Duration>,
}

/// Those who change the cluster.
#[derive(Clone)]
pub(crate) struct People {
    pub(crate) server: ApiServer,
    pub(crate) seed: Seed,
    pub(crate) trace: Trace,
    begun: Instant,
    pub(crate) intent: Arc<Mutex<Intent>>,
}

/// Sends a request past the network. Returns the status and the answer.
pub(crate) async fn ask(server: &ApiServer, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let kind = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let mut endpoint: Endpoint = server.service();
    let answer = endpoint.call(request.body(Body::from(body)).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

const ITEMS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The ConfigMap of the operator.
const CONFIG: &str = "/api/v1/namespaces/ops/configmaps/addon-operator";

impl People {
    pub(crate) fn new(server: ApiServer, seed: Seed, trace: Trace) -> Self {
        let intent = Intent {
            items: BTreeMap::new(),
            changes: Vec::new(),
            web_enabled: true,
            db_enabled: true,
            text: "first".to_owned(),
            password: "none".to_owned(),
            token: None,
            things: None,
            switched_off: Vec::new(),
            disturbed: BTreeMap::new(),
            moves: 0,
            secrets: Vec::new(),
        };
        Self { server, seed, trace, begun: Instant::now(), intent: Arc::new(Mutex::new(intent)) }
    }

    /// Returns what people want by now.
    pub(crate) fn intent(&self) -> Intent {
        self.intent.lock().unwrap().clone()
    }

    /// Makes what is there before the operator starts.
    pub(crate) async fn prepare(&self) {
        for (name, labels) in [("ops", json!({})), ("work", json!({"team": "yes"}))] {
            let body = json!({"metadata": {"name": name, "labels": labels}});
            assert_eq!(ask(&self.server, Method::POST, "/api/v1/namespaces", &body).await.0, 201);
        }
        for nth in 0..self.seed.between("items before", 0, 0, 4) {
            self.put_item(1000 + nth).await;
        }
        if self.seed.chance("config before", 0, 70) {
            self.set_password(1000).await;
        }
        if self.seed.chance("token before", 0, 70) {
            self.set_token(1000).await;
        }
    }

    /// Does what the seed says, until faults end.
    pub(crate) async fn work(self) {
        tokio::join!(self.do_deeds(), self.bring_kind(), self.edit());
    }

    /// Edits a field that a chart renders, once or twice: the third time would be a quarrel.
    async fn edit(&self) {
        if Scenario::of(self.seed).extra != Extra::Edits {
            return;
        }
        for nth in 0..self.seed.between("edits", 0, 1, 3) {
            let after = self.seed.between("edit after", nth, 0, self.seed.faults_end() * 500);
            sleep(Duration::from_millis(after)).await;
            let (path, body) = ("/api/v1/namespaces/ops/configmaps/db", json!({"data": {"text": "edited"}}));
            let status = ask(&self.server, Method::PATCH, path, &body).await.0;
            self.trace.note(|| format!("person: edits {path}: {status}"));
        }
    }

    /// Runs Jobs as nodes do, for ever. They take their time, and fail now and then while people work.
    pub(crate) async fn run_jobs(self) {
        const JOBS: &str = "/apis/batch/v1/namespaces/ops/jobs";
        for nth in 0.. {
            sleep(Duration::from_millis(self.seed.between("job takes", nth, 500, 20_000))).await;
            let (_, jobs) = ask(&self.server, Method::GET, JOBS, &Value::Null).await;
            for job in jobs["items"].as_array().into_iter().flatten() {
                if job["status"]["conditions"].is_array() {
                    continue;
                }
                let may_fail = self.begun.elapsed() < Duration::from_secs(self.seed.faults_end());
                let fails = may_fail && self.seed.chance("job fails", nth, 25);
                let (kinds, reason) = if fails {
                    (["FailureTarget", "Failed"], "BackoffLimitExceeded")
                } else {
                    (["SuccessCriteriaMet", "Complete"], "CompletionsReached")
                };
                let noon = "2027-01-15T12:00:00Z";
                let conditions = kinds.map(|kind| json!({"type": kind, "status": "True", "reason": reason}));
                let end = if fails { Value::Null } else { noon.into() };
                let status =
                    json!({"status": {"conditions": conditions, "startTime": noon, "completionTime": end}});
                let name = job["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{JOBS}/{name}/status");
                let code = ask(&self.server, Method::PATCH, &path, &status).await.0;
                self.trace.note(|| format!("node: Job {name} has {}: {code}", kinds[1]));
            }
        }
    }

    /// Brings the kind that a hook waits for, and objects of it, unless it never comes.
    async fn bring_kind(&self) {
        if Scenario::of(self.seed).kinds != Kinds::Awaited || self.seed.chance("never comes", 0, 30) {
            return;
        }
        let at = self.seed.between("kind comes", 0, 0, self.seed.faults_end() * 1000);
        sleep(Duration::from_millis(at)).await;
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (status, answer) = ask(&self.server, Method::POST, path, &definition("Thing")).await;
        assert_eq!(status, 201, "{answer}");
        self.trace.note(|| "person: there are things".to_owned());
        self.intent.lock().unwrap().things = Some(BTreeMap::new());
        for nth in 0..self.seed.between("things", 0, 0, 4) {
            sleep(Duration::from_millis(self.seed.between("thing after", nth, 100, 9_000))).await;
            self.put_thing(nth).await;
        }
    }

    async fn put_thing(&self, nth: u64) {
        let (name, text) = (self.seed.pick("thing", nth, &["one", "two"]), format!("thing-{nth}"));
        let things = "/apis/example.com/v1/namespaces/work/things";
        let metadata = json!({"name": name});
        let body = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": {"text": text}});
        let (mut status, mut answer) =
            ask(&self.server, Method::PATCH, &format!("{things}/{name}"), &json!({"spec": {"text": text}}))
                .await;
        if status == 404 {
            (status, answer) = ask(&self.server, Method::POST, things, &body).await;
        }
        assert!(status < 300, "{answer}");
        self.intent.lock().unwrap().things.get_or_insert_default().insert(name.to_owned(), text);
        self.trace.note(|| format!("person: thing {name}"));
    }

    async fn do_deeds(&self) {
        let deeds = self.seed.between("deeds", 0, 0, 6 * self.seed.scale());
        let mut times: Vec<u64> = (0..deeds)
            .map(|nth| self.seed.between("deed at", nth, 0, self.seed.faults_end() * 1000))
            .collect();
        times.sort_unstable();
        let mut now = 0;
        for (nth, at) in (0..).zip(times) {
            // Some come in bursts.
            let at = if self.seed.chance("burst", nth, 30) {
                now.max(at.saturating_sub(5000))
            } else {
                at.max(now)
            };
            sleep(Duration::from_millis(at - now)).await;
            now = at;
            self.act(nth).await;
        }
    }

    async fn act(&self, nth: u64) {
        match self.seed.between("deed", nth, 0, 20) {
            0..7 => self.put_item(nth).await,
            7..10 => self.delete_item(nth).await,
            10 => self.set_text(nth).await,
            11 => self.set_password(nth).await,
            12 => self.set_token(nth).await,
            13 => self.switch(nth).await,
            14 => self.disturb(nth).await,
            15 => self.label_namespace().await,
            16 => {
                self.trace.note(|| "person: the history is forgotten".to_owned());
                self.server.faults().expire_revisions();
                self.server.faults().drop_watches();
            }
            17 => {
                self.trace.note(|| "person: all watches end".to_owned());
                self.server.faults().drop_watches();
            }
            _ => self.put_item(nth + 500).await,
        }
    }

    async fn put_item(&self, nth: u64) {
        let name = self.seed.pick("item", nth, &ITEMS);
        let text = format!("text-{nth}");
        let known = self.intent.lock().unwrap().items.insert(name.to_owned(), text.clone());
        let path = "/api/v1/namespaces/work/configmaps";
        let (status, answer) = if known.is_some() {
            ask(&self.server, Method::PATCH, &format!("{path}/{name}"), &json!({"data": {"text": text}}))
                .await
        } else {
            let body = json!({"metadata": {"name": name, "labels": {"item": "yes"}}, "data": {"text": text}});
            ask(&self.server, Method::POST, path, &body).await
        };
        assert!(status < 300, "{answer}");
        let version = self.record(name, &answer["metadata"]["resourceVersion"], false);
        self.trace.note(|| format!("person: item {name} is {text} @{version}"));
    }

    async fn delete_item(&self, nth: u64) {
        let name = self.seed.pick("deleted item", nth, &ITEMS);
        if self.intent.lock().unwrap().items.remove(name).is_some() {
            let path = format!("/api/v1/namespaces/work/configmaps/{name}");
            let (status, _) = ask(&self.server, Method::DELETE, &path, &Value::Null).await;
            assert!(status < 300);
            // A deletion has a version of its own, which no answer tells.
            let version = self.record(name, &Value::Null, true);
            self.trace.note(|| format!("person: item {name} is deleted behind @{version}"));
        }
    }

    /// Records a change of an item. Returns its version: that of the change before, when it has none.
    fn record(&self, name: &str, version: &Value, is_deletion: bool) -> u64 {
        let mut intent = self.intent.lock().unwrap();
        let last = intent.changes.last().map_or(0, |change| change.version);
        let version = version.as_str().map_or(last, |version| version.parse().unwrap());
        let name = name.to_owned();
        intent.changes.push(Change { at: self.begun.elapsed(), name, version, is_deletion });
        version
    }

    async fn configure(&self) {
        let intent = self.intent();
        let web = json!({"text": intent.text, "password": intent.password});
        let data = json!({
            "web": web.to_string(),
            "webEnabled": intent.web_enabled.to_string(),
            "dbEnabled": intent.db_enabled.to_string(),
        });
        let body = json!({"metadata": {"name": "addon-operator"}, "data": data});
        let (status, _) = ask(&self.server, Method::PATCH, CONFIG, &json!({"data": data})).await;
        if status == 404 {
            let path = "/api/v1/namespaces/ops/configmaps";
            assert_eq!(ask(&self.server, Method::POST, path, &body).await.0, 201);
        } else {
            assert_eq!(status, 200);
        }
        self.trace.note(|| {
            format!("person: web {} {:?}, db {}", intent.web_enabled, intent.text, intent.db_enabled)
        });
    }

    async fn set_text(&self, nth: u64) {
        self.intent.lock().unwrap().text = format!("text of {nth}");
        self.configure().await;
    }

    /// A secret in the values of a module. It holds characters that encodings change.
    async fn set_password(&self, nth: u64) {
        let password = self.secret("password", nth);
        self.intent.lock().unwrap().password = password;
        self.configure().await;
    }

    /// A secret in a Secret.
    async fn set_token(&self, nth: u64) {
        let token = self.secret("token", nth);
        let is_new = self.intent.lock().unwrap().token.replace(token.clone()).is_none();
        let body = json!({"metadata": {"name": "credentials"}, "data": {"token": STANDARD.encode(&token)}});
        let path = "/api/v1/namespaces/work/secrets";
        let (status, answer) = if is_new {
            ask(&self.server, Method::POST, path, &body).await
        } else {
            ask(&self.server, Method::PATCH, &format!("{path}/credentials"), &body).await
        };
        assert!(status < 300, "{answer}");
        self.trace.note(|| "person: another token".to_owned());
    }

    fn secret(&self, what: &'static str, nth: u64) -> String {
        let long = self.seed.between(&format!("{what} long"), nth, 1, 12);
        let middle = self.seed.pick(&format!("{what} middle"), nth, &["", "&", "<b>", "\"q\"", "\\n", "ä"]);
        let words: Vec<String> =
            (0..long).map(|part| format!("{:x}", self.seed.draw(what, nth * 100 + part))).collect();
        let secret = format!("{}{middle}{:x}", words.concat(), self.seed.draw(what, nth * 100 + 99));
        let mut intent = self.intent.lock().unwrap();
        let now = self.begun.elapsed();
        for old in intent.secrets.iter_mut().filter(|old| old.what == what && old.replaced.is_none()) {
            old.replaced = Some(now);
        }
        // A part of it gives it away as well.
        let part = words.concat().chars().take(12).collect();
        let forms = [secret.clone(), STANDARD.encode(&secret), part];
        intent.secrets.extend(forms.map(|text| Secret { what, text, replaced: None }));
        secret
    }

    async fn switch(&self, nth: u64) {
        {
            let mut intent = self.intent.lock().unwrap();
            if self.seed.chance("switch", nth, 50) {
                intent.web_enabled = !intent.web_enabled;
            } else {
                intent.db_enabled = !intent.db_enabled;
            }
            let off = [("web", intent.web_enabled), ("db", intent.db_enabled)];
            let now = self.begun.elapsed();
            intent.switched_off.extend(off.iter().filter(|(_, on)| !on).map(|(name, _)| (now, *name)));
        }
        self.configure().await;
    }

    /// Deletes or changes something that a module brought.
    async fn disturb(&self, nth: u64) {
        let paths = [
            "/api/v1/namespaces/ops/configmaps/web",
            "/api/v1/namespaces/ops/configmaps/db",
            "/api/v1/namespaces/ops/secrets/web",
            "/apis/example.com/v1/namespaces/ops/gadgets/g",
        ];
        let brought = usize::from(Scenario::of(self.seed).kinds == Kinds::Brought);
        let path = self.seed.pick("disturb", nth, &paths[..3 + brought]);
        {
            // The third time within a quarter of an hour is a quarrel, which parks the module.
            let mut intent = self.intent.lock().unwrap();
            let times = intent.disturbed.entry(path).or_default();
            if *times >= 2 {
                return;
            }
            *times += 1;
        }
        let status = ask(&self.server, Method::DELETE, path, &Value::Null).await.0;
        self.trace.note(|| format!("person: deletes {path}: {status}"));
    }

    async fn label_namespace(&self) {
        let is_team = {
            let mut intent = self.intent.lock().unwrap();
            intent.moves += 1;
            intent.moves.is_multiple_of(2)
        };
        let label = if is_team { json!("yes") } else { Value::Null };
        let body = json!({"metadata": {"labels": {"team": label}}});
        let (status, answer) = ask(&self.server, Method::PATCH, "/api/v1/namespaces/work", &body).await;
        assert!(status < 300, "{answer}");
        self.trace.note(|| format!("person: the namespace is one of a team: {is_team}"));
    }
}
