//! What hooks do in a run: no process is started, but they read what a hook would read and return what it would write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::hook::{HookRun, HookRunner, Ran, ScriptRun};
use engine::{Failure, FailureKind, Hook, HookId, HookOutput, QueueName, Verdict};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use values::patch::{Patch, Root, Target};

use crate::seed::Seed;
use crate::trace::Trace;

/// An event that a hook saw in a run that succeeded.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// When its run began.
    pub(crate) at: Duration,
    pub(crate) hook: String,
    /// `Added`, `Modified` or `Deleted`; `Synchronization`, behind which each object of the first list is `Listed`.
    pub(crate) event: String,
    pub(crate) name: String,
    /// The version of the object.
    pub(crate) version: u64,
}

/// The hooks of one run. Clones are the same hooks.
#[derive(Clone)]
pub(crate) struct Hooks(Arc<Inner>);

struct Inner {
    seed: Seed,
    begun: Instant,
    trace: Trace,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    counts: BTreeMap<String, u64>,
    /// What the runs that are not finished were shown.
    shown: BTreeMap<(HookId, QueueName), Vec<Seen>>,
    seen: Vec<Seen>,
    runs: Vec<(Duration, String)>,
}

impl Hooks {
    pub(crate) fn new(seed: Seed, trace: Trace) -> Self {
        Self(Arc::new(Inner { seed, begun: Instant::now(), trace, state: Mutex::default() }))
    }

    /// Returns the events that hooks saw in runs that succeeded, in their order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.state.lock().unwrap().seen.clone()
    }

    /// Returns when runs began, and of which hooks.
    pub(crate) fn runs(&self) -> Vec<(Duration, String)> {
        self.0.state.lock().unwrap().runs.clone()
    }

    /// Records that the operator was killed: what its runs were shown was not taken in.
    pub(crate) fn killed(&self) {
        self.0.state.lock().unwrap().shown.clear();
    }

    /// Records that the engine took note of the end of a run.
    pub(crate) fn ended(&self, hook: &HookId, queue: &QueueName, is_success: bool) {
        let mut state = self.0.state.lock().unwrap();
        let shown = state.shown.remove(&(hook.clone(), queue.clone()));
        if is_success {
            state.seen.extend(shown.unwrap_or_default());
        }
    }

    /// Runs a hook: it takes its time, and fails now and then.
    async fn carry_out(&self, run: &HookRun) -> Result<HookOutput, Failure> {
        let HookRun { hook, contexts, values, labels, .. } = run;
        let Inner { seed, begun, trace, state } = &*self.0;
        let name = hook.id.to_string();
        let mut file = Vec::new();
        contexts.write(&mut file).unwrap();
        let contexts: Value = serde_json::from_slice(&file).unwrap();
        let shown = shown(&name, begun.elapsed(), &contexts);
        let nth = {
            let mut state = state.lock().unwrap();
            state.runs.push((begun.elapsed(), name.clone()));
            state.shown.insert((hook.id.clone(), labels.queue.clone()), shown.clone());
            let count = state.counts.entry(name.clone()).or_default();
            *count += 1;
            *count
        };
        let long = seed.pick(&format!("run {name}"), nth, &[0, 1, 5, 80, 300, 1500, 9000]);
        let may_fail = !seed.is_calm() && begun.elapsed() < Duration::from_secs(seed.faults_end());
        let fails = may_fail && seed.chance(&format!("fails {name}"), nth, 15);
        trace.note(|| {
            let events: Vec<String> =
                shown.iter().map(|seen| format!("{} {}@{}", seen.event, seen.name, seen.version)).collect();
            format!(
                "hook {name}#{nth} {} ms {}{}",
                long,
                events.join(", "),
                if fails { " fails" } else { "" }
            )
        });
        sleep(Duration::from_millis(long)).await;
        if fails {
            let module = values.module.as_ref().map(|module| module.values.to_string()).unwrap_or_default();
            return Err(Failure::new(FailureKind::HookExit, format!("can't log in with {module}")));
        }
        Ok(output(hook, &contexts))
    }
}

impl HookRunner for Hooks {
    fn run(&self, run: HookRun, cancel: oneshot::Receiver<()>) -> BoxFuture<'_, Ran<HookOutput>> {
        let timeout = run.timeout.unwrap_or(Duration::from_hours(24));
        let running = async move {
            let outcome = tokio::select! {
                biased;
                Ok(()) = cancel => Err(Failure::new(FailureKind::Cancelled, "cancelled")),
                outcome = self.carry_out(&run) => outcome,
                () = sleep(timeout) => Err(Failure::new(FailureKind::HookTimeout, "too slow")),
            };
            (outcome, None)
        };
        running.boxed()
    }

    fn run_script(&self, _: ScriptRun, _: oneshot::Receiver<()>) -> BoxFuture<'_, Ran<Verdict>> {
        // No module of the scenario has a script.
        std::future::ready((Ok(Verdict { enabled: true, reason: None }), None)).boxed()
    }
}

/// Returns what the contexts of a run show of objects.
fn shown(hook: &str, at: Duration, contexts: &Value) -> Vec<Seen> {
    let seen = |event: &str, object: &Value| Seen {
        at,
        hook: hook.to_owned(),
        event: event.to_owned(),
        name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        version: object["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse().unwrap_or(0),
    };
    let mut all = Vec::new();
    for context in contexts.as_array().into_iter().flatten() {
        match context["type"].as_str() {
            Some("Event") => all.push(seen(context["watchEvent"].as_str().unwrap(), &context["object"])),
            Some("Synchronization") => {
                all.push(seen("Synchronization", &Value::Null));
                let objects = context["objects"].as_array().into_iter().flatten();
                all.extend(objects.map(|item| seen("Listed", &item["object"])));
            }
            _ => {}
        }
    }
    all
}

/// Returns the objects of the last snapshot with this name that the contexts carry.
fn snapshot<'c>(contexts: &'c Value, name: &str) -> Option<Vec<&'c Value>> {
    let contexts = contexts.as_array()?.iter();
    let objects = contexts.filter_map(|context| context["snapshots"][name].as_array()).next_back()?;
    Some(objects.iter().map(|item| &item["object"]).collect())
}

/// Returns the names of what a snapshot holds, each with what its filter returned.
fn filtered(contexts: &Value, name: &str) -> Option<Map<String, Value>> {
    let contexts = contexts.as_array()?.iter();
    let objects = contexts.filter_map(|context| context["snapshots"][name].as_array()).next_back()?;
    let entry = |item: &Value| {
        Some((item["object"]["metadata"]["name"].as_str()?.to_owned(), item["filterResult"].clone()))
    };
    Some(objects.iter().filter_map(entry).collect())
}

/// Returns what a hook writes that was shown these contexts.
fn output(hook: &Hook, contexts: &Value) -> HookOutput {
    let items = |objects: Vec<&Value>| {
        let entry = |object: &Value| {
            let text = ["data", "spec"].iter().find_map(|part| object[part].get("text"));
            Some((object["metadata"]["name"].as_str()?.to_owned(), text.cloned().unwrap_or_default()))
        };
        objects.into_iter().filter_map(entry).collect::<Map<String, Value>>()
    };
    match hook.id.name.as_str() {
        name if name.ends_with("items.sh") => match snapshot(contexts, "items") {
            Some(objects) => {
                let items = items(objects);
                HookOutput {
                    values_patch: patch(Target::Values, "web", "/web/internal/items", &json!(items.len())),
                    object_patches: mirror("seen-items", items),
                    ..HookOutput::default()
                }
            }
            None => HookOutput::default(),
        },
        name if name.ends_with("credentials.sh") => match snapshot(contexts, "credentials") {
            Some(objects) => {
                let token = objects.first().map_or(json!("none"), |object| object["data"]["token"].clone());
                let length = token.as_str().map_or(0, str::len);
                HookOutput {
                    // The operator writes this into the ConfigMap, beside what people write.
                    config_patch: patch(Target::ConfigValues, "db", "/db/rotation", &json!(length)),
                    values_patch: patch(Target::Values, "db", "/db/internal/token", &token),
                    ..HookOutput::default()
                }
            }
            None => HookOutput::default(),
        },
        name => {
            let seen = match name {
                "gadgets.sh" => {
                    snapshot(contexts, "gadgets").map(|objects| mirror("seen-gadgets", items(objects)))
                }
                "pair.sh" => {
                    snapshot(contexts, "things").map(|objects| mirror("seen-things", items(objects)))
                }
                // A run of `beforeAll` is in another queue: it may end later, and has seen less.
                "teams.sh" if contexts[0]["binding"] != "beforeAll" => {
                    filtered(contexts, "items").map(|items| mirror("seen-teams", items))
                }
                _ => None,
            };
            HookOutput { object_patches: seen.unwrap_or_default(), ..HookOutput::default() }
        }
    }
}

fn patch(target: Target, key: &str, path: &str, value: &Value) -> Patch {
    let text = json!([{"op": "add", "path": path, "value": value}]).to_string();
    Patch::read(text.as_bytes(), target, &Root::Module(key.to_owned())).unwrap()
}

/// Returns the change that makes a ConfigMap hold this, in one key.
fn mirror(name: &str, data: Map<String, Value>) -> Vec<engine::object_patch::ObjectPatch> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ops"}, "data": {"items": Value::Object(data).to_string()}});
    let text = json!({"operation": "CreateOrUpdate", "object": object}).to_string();
    engine::object_patch::parse(text.as_bytes()).unwrap()
}
