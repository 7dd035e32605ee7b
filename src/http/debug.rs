//! The debugging socket: values, patches and snapshots. Only the operator's user can open it. See docs/operating.md#http.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use engine::view::{self, ModuleView, TaskView};
use engine::{Command, Failure, ModuleName, ScopeInspection, SourceKey, Tally};
use serde_json::{Map, Value, json};
use values::patch::Operation;

use super::chart_test;
use super::charts;
use super::debug_state::DebugState;
use super::explain::{self, OutputFormat};
use super::response::{
    after_start, ended, formatted, is_true, not_allowed, not_found, split, text, text_or_failure, unknown,
    with_advice,
};
use super::routes::SOCKET;
use super::secret_values::SecretValues;
use super::{parameters, queue, source_plan};

/// Returns the routes of the socket.
pub(super) fn router(debug: DebugState) -> Router {
    Router::new()
        .route("/queue/{file}", get(queues))
        .route("/global/{file}", get(global))
        .route("/module/{file}", get(modules))
        .route("/module/{name}/test", post(chart_test::run))
        .route("/module/{name}/{file}", get(module).post(command))
        .route("/chart/{file}", get(charts::asked))
        .route("/source/plan.json", post(source_plan::json))
        .route("/source/plan.text", post(source_plan::text))
        .route("/source/{file}", get(sources))
        .route("/source/{name}/pause", post(pause))
        .route("/source/{name}/resume", post(resume))
        .route("/source/{name}/sync", post(sync))
        .route("/converge", post(converge))
        .route("/why/{what}/{name}", get(why))
        .route("/{file}", get(explained))
        .route_layer(from_fn_with_state(debug.questions.clone(), after_start))
        .route("/", get(|| async { "debug endpoint is alive" }))
        .route("/discovery", get(|| async { SOCKET }))
        .route("/config/{file}", get(parameters::list).post(parameters::set))
        .fallback(|| async { not_found() })
        .method_not_allowed_fallback(|| async { not_allowed() })
        .with_state(debug)
}

async fn queues(
    State(debug): State<DebugState>,
    Path(file): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let Some(view) = debug.questions.view().await else { return ended() };
    let secret = SecretValues::of(view.secrets.clone(), debug.may_show(&query));
    let show = |task: &TaskView| {
        task.last_failure.as_ref().map(|failure| secret.hide(&failure.to_string())).unwrap_or_default()
    };
    let show_empty = is_true(query.get("showEmpty"));
    match split(&file) {
        ("main", "text") => text(queue::queue_text(&view, "main", &show)),
        ("main", format) => formatted(format, &queue::queue_json(&view, "main", &show)),
        ("list", "text") => text(queue::list_text(&view, show_empty, &show)),
        ("list", format) => formatted(format, &queue::list_json(&view, show_empty, &show)),
        _ => not_found(),
    }
}

async fn global(
    State(debug): State<DebugState>,
    Path(file): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let (Some(inspection), Some(view)) = (debug.questions.inspect().await, debug.questions.view().await)
    else {
        return ended();
    };
    let (name, format) = split(&file);
    match name {
        "list" => formatted(format, &json!({"globalHooks": view.global_hooks})),
        name => {
            let secret = SecretValues::of(inspection.secrets, debug.may_show(&query));
            scope_part(&inspection.global, name, &secret)
                .map_or_else(not_found, |data| formatted(format, &data))
        }
    }
}

async fn modules(
    State(debug): State<DebugState>,
    Path(file): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let Some(view) = debug.questions.view().await else { return ended() };
    let secret = SecretValues::of(view.secrets.clone(), debug.may_show(&query));
    let (name, format) = split(&file);
    match name {
        "releases" => {
            let Some(inspection) = debug.questions.inspect().await else { return ended() };
            text_or_failure(debug.releases.list(inspection.targets).await)
        }
        "list" => {
            let mut enabled: Vec<&str> = view
                .modules
                .iter()
                .filter(|module| module.enabled == Some(true))
                .map(|module| module.name.as_str())
                .collect();
            enabled.sort_unstable();
            let mut list = Map::from_iter([("enabledModules".to_owned(), json!(enabled))]);
            let mut add = |key: &str, of: &dyn Fn(&ModuleView) -> Option<String>| {
                let modules = view.modules.iter();
                let entries: Map<String, Value> = modules
                    .filter_map(|module| Some((module.name.to_string(), of(module)?.into())))
                    .collect();
                // The reference operator has no such key, so it is left out when it would be empty.
                if !entries.is_empty() {
                    list.insert(key.to_owned(), entries.into());
                }
            };
            add("parkedModules", &|module| module.parked.as_deref().map(|why| secret.hide(why)));
            add("configErrors", &|module| {
                module.config_problem.as_ref().map(|problem| secret.hide(&problem.failure.to_string()))
            });
            formatted(format, &list.into())
        }
        "resource-monitor" => {
            let mut watched = debug.releases.watched();
            let enabled = view.modules.iter().filter(|module| module.enabled == Some(true));
            let mut monitor =
                |name: &str| watched.remove(name).map_or_else(|| Value::from("No monitor"), Value::from);
            let data: Map<String, Value> =
                enabled.map(|module| (module.name.to_string(), monitor(module.name.as_str()))).collect();
            formatted(format, &data.into())
        }
        _ => not_found(),
    }
}

async fn module(
    State(debug): State<DebugState>,
    Path((name, file)): Path<(String, String)>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let Some(inspection) = debug.questions.inspect().await else { return ended() };
    let Some(scope) = inspection.modules.get(name.as_str()) else { return unknown(&inspection, &name) };
    let (part, format) = split(&file);
    match part {
        "history" => {
            let Some(target) = inspection.places.get(name.as_str()).cloned() else { return not_found() };
            return text_or_failure(debug.releases.history(name, target).await);
        }
        "render" => return render(&debug, name, &query).await,
        "status" => {
            let Some(view) = debug.questions.view().await else { return ended() };
            let output = OutputFormat::named(format, OutputFormat::Text);
            return SecretValues::of(view.secrets.clone(), debug.may_show(&query))
                .telling(|telling| explain::why(&view, "module", &name, output, telling));
        }
        _ => {}
    }
    let secret = SecretValues::of(inspection.secrets.clone(), debug.may_show(&query));
    let Some(data) = scope_part(scope, part, &secret) else { return not_found() };
    if is_true(query.get("global"))
        && let Some(global) = scope_part(&inspection.global, part, &secret)
    {
        let both = Map::from_iter([("global".to_owned(), global), (scope.key.clone(), data)]);
        return formatted(format, &both.into());
    }
    formatted(format, &data)
}

async fn sources(
    State(debug): State<DebugState>,
    Path(file): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let Some(view) = debug.questions.view().await else { return ended() };
    if let Some(refusal) = view.refusal() {
        return text_or_failure(Err(refusal));
    }
    let secret = SecretValues::of(view.secrets.clone(), debug.may_show(&query));
    match split(&file) {
        ("list", "text") => text(secret.telling(|telling| view::sources::text(&view, telling))),
        ("list", format) => formatted(format, &secret.telling(|telling| view::sources::data(&view, telling))),
        _ => not_found(),
    }
}

async fn sync(State(debug): State<DebugState>, Path(name): Path<String>) -> Response {
    ask_of_source(&debug, &name, Command::SyncSource).await
}

async fn pause(State(debug): State<DebugState>, Path(name): Path<String>) -> Response {
    ask_of_source(&debug, &name, |key| Command::SuspendSource(key, true)).await
}

async fn resume(State(debug): State<DebugState>, Path(name): Path<String>) -> Response {
    ask_of_source(&debug, &name, |key| Command::SuspendSource(key, false)).await
}

/// Gives a command about the module source that a person means.
async fn ask_of_source(
    debug: &DebugState,
    name: &str,
    command: impl FnOnce(SourceKey) -> Command,
) -> Response {
    let Some(view) = debug.questions.view().await else { return ended() };
    if let Some(refusal) = view.refusal() {
        return text_or_failure(Err(refusal));
    }
    match view::sources::find(&view, name) {
        Ok(source) => answer(debug, command(source.key.clone())).await,
        Err(unknown) => (StatusCode::NOT_FOUND, format!("{unknown}\n")).into_response(),
    }
}

/// Renders a module. With `diff` the answer is how the cluster differs from that.
async fn render(debug: &DebugState, name: String, query: &BTreeMap<String, String>) -> Response {
    let Some((module, values)) = debug.questions.chart_input(ModuleName::from(name)).await else {
        return ended();
    };
    let Some(view) = debug.questions.view().await else { return ended() };
    let secret = SecretValues::of(view.secrets, debug.may_show(query));
    let shown = |outcome: Result<String, Failure>| {
        text_or_failure(
            outcome.map(|text| secret.hide(&text)).map_err(|failure| secret.hide_failure(&failure)),
        )
    };
    if is_true(query.get("diff")) {
        return shown(debug.releases.diff(module, values, secret.are_shown()).await);
    }
    match debug.releases.render(module, values).await {
        // To debug a chart, all causes of the error are needed, one line each.
        Err(failure) if is_true(query.get("debug")) => {
            let text = [vec![failure.message], failure.chain, failure.advice.into_iter().collect()]
                .concat()
                .join("\n");
            (StatusCode::INTERNAL_SERVER_ERROR, secret.hide(&text) + "\n").into_response()
        }
        outcome => shown(outcome),
    }
}

async fn why(
    State(debug): State<DebugState>,
    Path((what, name)): Path<(String, String)>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let Some(view) = debug.questions.view().await else { return ended() };
    let output = OutputFormat::of(&query, OutputFormat::Text);
    SecretValues::of(view.secrets.clone(), debug.may_show(&query))
        .telling(|telling| explain::why(&view, &what, &name, output, telling))
}

async fn explained(
    State(debug): State<DebugState>,
    Path(file): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let Some(view) = debug.questions.view().await else { return ended() };
    let (name, format) = split(&file);
    let output = OutputFormat::of(&query, OutputFormat::named(format, OutputFormat::Text));
    SecretValues::of(view.secrets.clone(), debug.may_show(&query)).telling(|telling| match name {
        "status" => explain::status(&view, output, telling),
        "journal" => explain::journal(&view, &query, output, telling),
        "graph" => explain::graph(&view, &query),
        _ => not_found(),
    })
}

fn scope_part(scope: &ScopeInspection, part: &str, secret: &SecretValues) -> Option<Value> {
    Some(match part {
        "values" => secret.hide_part(scope, &scope.values),
        "config" => secret.hide_part(scope, &scope.config),
        "patches" if scope.patches.is_empty() => json!([]),
        "patches" => {
            let operations: Vec<Value> = scope.patches.iter().map(operation).collect();
            secret.hide_in(json!([{"Operations": operations}]))
        }
        "snapshots" => secret.hide_in(snapshots(scope)),
        _ => return None,
    })
}

fn operation(operation: &Operation) -> Value {
    match operation {
        Operation::Add { path, value } => json!({"op": "add", "path": path.as_str(), "value": value}),
        Operation::Remove { path } => json!({"op": "remove", "path": path.as_str()}),
        Operation::Test { path, value } => json!({"op": "test", "path": path.as_str(), "value": value}),
    }
}

fn snapshots(scope: &ScopeInspection) -> Value {
    let part = |bytes: Option<&[u8]>| bytes.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let hooks = scope.snapshots.iter().map(|(hook, bindings)| {
        let bindings: Map<String, Value> = bindings
            .iter()
            .map(|(binding, watched)| {
                let items = watched.snapshot.iter().map(|(_, item)| {
                    let fields =
                        [("object", part(item.object())), ("filterResult", part(item.filter_result()))];
                    Value::Object(
                        fields
                            .into_iter()
                            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                            .collect(),
                    )
                });
                let operations = json!({
                    "sinceStart": tally(watched.since_start, watched.snapshot.len()),
                    // In the reference operator this count is always 0.
                    "sinceLastExecution": tally(watched.since_run, 0),
                });
                let data = json!({"snapshot": items.collect::<Vec<_>>(), "operations": operations});
                (binding.clone(), data)
            })
            .collect();
        (hook.clone(), Value::Object(bindings))
    });
    Value::Object(hooks.collect())
}

fn tally(tally: Tally, count: usize) -> Value {
    let Tally { added, modified, deleted, cleaned } = tally;
    json!({"count": count, "added": added, "deleted": deleted, "modified": modified, "cleaned": cleaned})
}

async fn command(State(debug): State<DebugState>, Path((name, what)): Path<(String, String)>) -> Response {
    let module = ModuleName::from(name.as_str());
    let Some(inspection) = debug.questions.inspect().await else { return ended() };
    if !inspection.modules.contains_key(name.as_str()) {
        // A module that is gone can still have a release to purge. If the releases can't be listed, the command itself reports that.
        let releases = if what == "purge" {
            debug.releases.list(inspection.targets.clone()).await.ok()
        } else {
            Some(String::new())
        };
        if releases.is_some_and(|releases| releases.lines().all(|release| release != name)) {
            return unknown(&inspection, &name);
        }
    }
    let command = match what.as_str() {
        "enable" => Command::SetEnabled(module, true),
        "disable" => Command::SetEnabled(module, false),
        "run" => Command::RunModule(module),
        "resume" => Command::ResumeModule(module),
        "purge" => Command::PurgeModule(module),
        _ => return not_found(),
    };
    answer(&debug, command).await
}

async fn converge(State(debug): State<DebugState>) -> Response {
    answer(&debug, Command::Converge).await
}

async fn answer(debug: &DebugState, command: Command) -> Response {
    match debug.questions.command(command).await {
        Some(Ok(text)) => format!("{text}\n").into_response(),
        Some(Err(failure)) => (StatusCode::CONFLICT, format!("{}\n", with_advice(&failure))).into_response(),
        None => ended(),
    }
}
