//! Incidents, and what an administrator sees of each: status, why, `/queue`, the page, log and metrics.
//!
//! The engine, the driver, telemetry and HTTP are those of production; the outside is a stage, and time stands still.

#![expect(clippy::too_many_lines, reason = "what an incident looks like is one picture")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a stage answers what its incident is about")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::driver::{self, Effects, Inbox};
use addon_operator::http;
use addon_operator::telemetry::{Telemetry, log};
use axum::Router;
use axum::body::Body;
use engine::hook::response::AdmissionResponse;
use engine::hook::spec::FailurePolicy;
use engine::hook::{HookKind, config};
use engine::{
    Catalog, Config, ConfigData, ConfigObject, Drift, Effect, ElectionConfig, ElectionMode, EnabledFlag,
    Engine, Event, Failure, FailureKind, Global, Hook, HookId, HookOutput, Module, MonitorId, ReleaseAction,
    ReleaseOutcome, Requirement, ReviewId, RunId, Scope, Verdict, WebhookCertificate, WebhookClient,
    WebhookConfig,
};
use http_body_util::BodyExt;
use insta::assert_snapshot;
use regex::Regex;
use serde_json::json;
use tokio::sync::watch;
use tower::ServiceExt as _;
use tracing::subscriber::DefaultGuard;

/// What a stage answers to an effect; `None` for what goes well.
type Script = Box<dyn FnMut(&Effect) -> Option<Event> + Send>;

/// A pretend outside: everything goes well but what the script says.
struct Stage {
    telemetry: Arc<Telemetry>,
    script: Script,
    /// What is seen at the next look.
    unseen: Arc<Mutex<Option<Event>>>,
    revision: u32,
}

impl Effects for Stage {
    fn look(&mut self) -> Option<Event> {
        self.unseen.lock().unwrap().take()
    }

    fn begin(&mut self, effect: Effect, inbox: &Inbox) {
        if let Effect::Notify(notice) = effect {
            return self.telemetry.take(notice);
        }
        let event = (self.script)(&effect).or_else(|| self.usual(&effect));
        match event {
            Some(event @ (Event::Listed { .. } | Event::KindVanished { .. })) => {
                let inbox = inbox.clone();
                tokio::spawn(async move { inbox.event(event).await });
            }
            Some(event) => inbox.answer(event),
            None => {}
        }
    }
}

impl Stage {
    fn usual(&mut self, effect: &Effect) -> Option<Event> {
        Some(match effect {
            Effect::ListReleases { run, .. } => Event::ReleasesListed { run: *run, outcome: Ok(Vec::new()) },
            Effect::RunEnabledScript { run, .. } => {
                let outcome = Ok(Verdict { enabled: true, reason: None });
                Event::ScriptFinished { run: *run, outcome, usage: None }
            }
            Effect::RunHook { run, .. } => {
                Event::HookFinished { run: *run, outcome: Ok(HookOutput::default()), usage: None }
            }
            Effect::RegisterWebhooks { run, .. } => Event::WebhooksRegistered {
                run: *run,
                outcome: Ok(()),
                refusals: Vec::new(),
                versions: engine::WrittenVersions::default(),
            },
            Effect::ServeWebhooks { run } => {
                let valid_for = Duration::from_hours(3 * 24);
                let certificate = WebhookCertificate { ca_bundle: "Y2E=".into(), valid_for };
                Event::WebhooksServed { run: *run, outcome: Ok(certificate) }
            }
            Effect::StartMonitor { monitor, .. } => Event::Listed { lists: vec![(*monitor, Vec::new())] },
            Effect::UpgradeRelease { run, .. } => {
                self.revision += 1;
                released(
                    *run,
                    if self.revision > 2 { ReleaseAction::Upgraded } else { ReleaseAction::Installed },
                    self.revision,
                )
            }
            _ => return None,
        })
    }
}

/// Returns what a page says, a line for each paragraph, item and row; the way to the parts and the picture are left out.
fn reduced(page: &str) -> String {
    let (_, body) = page
        .split_once("</header>")
        .map_or(("", page), |(head, rest)| (head, rest.split_once("</nav>").map_or(rest, |(_, rest)| rest)));
    let (body, _) = body.split_once("<footer>").unwrap_or((body, ""));
    let state = page.split_once("<header>").and_then(|(_, rest)| rest.split_once("<p class=\"soft\">"));
    let body = format!("{}{body}", state.map_or("", |(state, _)| state));
    let rules = [
        (r"<section id=.order.*?</section>", ""),
        (r"</(h1|h2|h3|p|li|tr|caption|table)>", "\n"),
        (r"</(th|td)>", " | "),
        (r"<small\b[^>]*>", " — "),
        (r"<[^>]*>", ""),
        (r"[ \t]+", " "),
        (r" ?(?:\| )*\| ?\n", "\n"),
        (r"\n ", "\n"),
        (r"\n+", "\n"),
        ("&amp;", "&"),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
    ];
    let mut text = body.replace('\n', " ");
    for (pattern, with) in rules {
        text = Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text.trim().to_owned() + "\n"
}

fn released(run: engine::RunId, action: ReleaseAction, revision: u32) -> Event {
    Event::ReleaseFinished {
        run,
        outcome: Ok(ReleaseOutcome { action, revision, checksum: 7, changed: None, taken_over: Vec::new() }),
    }
}

/// Two modules, `web` with a hook and `api` behind it.
fn catalog(hook_config: &str) -> Catalog {
    let module = |order: u32, name: &str, hooks: Vec<Arc<Hook>>| {
        Arc::new(Module {
            name: name.into(),
            key: name.into(),
            chart_key: values::name::camel(name).as_str().into(),
            namespace: None,
            order,
            path: format!("/modules/{order:03}-{name}").into(),
            content: 1,
            origin: engine::Origin::Files,
            enabled: Some(EnabledFlag { value: true, source: "modules/values.yaml".into() }),
            enabled_script: None,
            static_values: Arc::new(json!({"password": "hunter22-hunter22"})),
            schemas: Arc::default(),
            hooks,
            layout: engine::ValuesLayout::Section,
            plans: engine::Plans::default(),
            has_unread_hooks: false,
            has_chart: true,
            chart: None,
            package: None,
            version: None,
            settings: engine::ModuleSettings::default(),
            dependencies: engine::ChartDependencies::default(),
            crds: Vec::new(),
            broken: None,
        })
    };
    let text = format!("configVersion: v1\n{hook_config}");
    let spec = config::parse("hooks/a.sh".into(), HookKind::Module, &text).unwrap();
    let id = HookId { scope: Scope::Module("web".into()), name: "hooks/a.sh".into() };
    let hook =
        Arc::new(Hook { id, path: "hooks/a.sh".into(), content: 1, launch: engine::Launch::default(), spec });
    let modules = vec![module(10, "web", vec![hook]), module(20, "api", Vec::new())];
    Catalog {
        global: Arc::new(Global::default()),
        modules: Arc::new(modules),
        complete: true,
        warnings: Vec::new(),
    }
}

fn data(pairs: &[(&str, &str)]) -> Event {
    let data = pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    Event::ConfigChanged {
        object: ConfigObject::ConfigMap,
        version: "101".to_owned(),
        data: Some(Arc::new(ConfigData(data))),
    }
}

/// A running operator on a stage.
struct Operator {
    inbox: Inbox,
    port: Router,
    heard: log::CapturedLines,
    unseen: Arc<Mutex<Option<Event>>>,
    stop: watch::Sender<bool>,
    _log: DefaultGuard,
}

impl Operator {
    fn start(hook_config: &str, script: impl FnMut(&Effect) -> Option<Event> + Send + 'static) -> Self {
        Self::with_config(Config::default(), hook_config, script)
    }

    fn with_config(
        config: Config,
        hook_config: &str,
        script: impl FnMut(&Effect) -> Option<Event> + Send + 'static,
    ) -> Self {
        Self::of(config, catalog(hook_config), script)
    }

    fn of(
        config: Config,
        catalog: Catalog,
        script: impl FnMut(&Effect) -> Option<Event> + Send + 'static,
    ) -> Self {
        let (log, heard) = log::capture();
        let guard = tracing::subscriber::set_default(log);
        let telemetry = Arc::new(Telemetry::new("addon_operator_").unwrap());
        let (inbox, questions, channels) = driver::channels();
        let (stop, shutdown) = watch::channel(false);
        let settings = Config { namespace: "ops".to_owned(), ..config };
        let engine = Engine::new(settings, catalog);
        let unseen = Arc::<Mutex<Option<Event>>>::default();
        let (telling, script) = (Arc::clone(&unseen), Box::new(script));
        let stage = Stage { telemetry: Arc::clone(&telemetry), script, unseen: telling, revision: 0 };
        let started = vec![
            Event::ConfigChanged { object: ConfigObject::ConfigMap, version: "100".to_owned(), data: None },
            Event::Started,
        ];
        let channels = (inbox.clone(), channels);
        tokio::spawn(driver::drive(engine, stage, channels, started, shutdown, Duration::from_secs(1)));
        let port = http::port(questions, telemetry);
        Self { inbox, port, heard, unseen, stop, _log: guard }
    }

    async fn after(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_millis(seconds * 1_000 + 500)).await;
    }

    async fn get(&self, path: &str) -> String {
        let request = ::http::Request::get(path).body(Body::empty()).unwrap();
        let answer = self.port.clone().oneshot(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    /// Returns what all that an administrator may look at says.
    async fn report(&self, metrics: &[&str]) -> String {
        let metrics_text = self.get("/metrics").await;
        let wanted =
            |line: &&str| metrics.iter().any(|name| line.starts_with(&format!("addon_operator_{name}")));
        let metrics: Vec<&str> = metrics_text.lines().filter(wanted).collect();
        let parts = [
            ("status", self.get("/status").await),
            ("why module web", self.get("/why/module/web?output=text").await),
            ("why queue main", self.get("/why/queue/main?output=text").await),
            ("/queue", self.get("/queue").await),
            ("the page", reduced(&self.get("/").await)),
            ("log (the last lines)", self.log()),
            ("metrics", metrics.join("\n") + "\n"),
        ];
        for (title, text) in &parts {
            assert!(!text.contains("hunter22"), "{title} shows a value: {text}");
        }
        let parts: Vec<String> = parts.iter().map(|(title, text)| format!("── {title}\n{text}\n")).collect();
        let text = parts.concat();
        let _ = self.stop.send_replace(true);
        let times = Regex::new(r"\d{4}-\d\d-\d\dT[0-9:.]+Z").unwrap();
        times.replace_all(&text, "TIME").into_owned()
    }

    /// Returns the last warnings and errors, and what became of modules.
    fn log(&self) -> String {
        let lines = self.heard.lines();
        let loud: Vec<&String> = lines
            .iter()
            // The module beside it ends its run when it does.
            .filter(|line| !line.starts_with("INFO  module api is running"))
            .filter(|line| {
                line.starts_with("ERROR")
                    || line.starts_with("WARN")
                    || line.contains("waits")
                    || line.contains("module.state")
            })
            .collect();
        let last = loud.iter().skip(loud.len().saturating_sub(3));
        last.map(|line| format!("{line}\n")).collect::<Vec<_>>().concat()
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_fails_for_ever() {
    let operator = Operator::start("beforeHelm: 1", |effect| match effect {
        Effect::RunHook { run, .. } => {
            let failure = Failure::new(
                FailureKind::HookExit,
                "hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with hunter22-hunter22",
            );
            Some(Event::HookFinished { run: *run, outcome: Err(failure), usage: None })
        }
        _ => None,
    });
    operator.after(22).await;
    assert_snapshot!(operator.report(&["module_run_errors", "module_phase", "tasks_queue_head_info", "tasks_queue_length"]).await, @r#"
    ── status
    Operator is not ready; a converge runs for 22 s, 3 tasks left (because: start → converge 1).

    Modules: 2, 2 on, 0 off
      NAME  PHASE     SINCE  RELEASE  NOTE
      web   failed    22 s   unknown  hook 'hooks/a.sh' of module web: exit status 1: curl: (7) c…
      api   starting  22 s   unknown

    Queues: 1, 3 tasks
      NAME  TASKS  STATE                                   FIRST TASK
      main  3      failing for 22 s, tried again in 2.5 s  t2 ModuleRun:main:web:doStartup:OperatorStartup

    Watches: 0, 0 objects

    Needs attention:
      ! module web fails for 22 s, in queue main 2 tasks wait behind it: hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ******
          do: read in the log what the hook or script printed (task.id=t2), and correct it or what it needs; it is tried again by itself; more: `addon-operator why module web`

    ── why module web
    Module web is on, but its last run failed: hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ******.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    failed for 22 s
      release:  unknown
      task:     t2 ModuleRun is the first in queue main, failed 5 times, tried again in 2.5 s

    What to do:
      - read in the log what the hook or script printed (task.id=t2), and correct it or what it needs; it is tried again by itself
      - `addon-operator module run web` tries it at once

    ── why queue main
    Queue main is blocked: its first task failed 5 times.

    Because:
      1.  start
      2.  converge 1
      3.  module web

      task:            t2 ModuleRun:main:web:doStartup:OperatorStartup
      blocked since:   TIME (22 s ago)
      error:           hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ******
      tried again in:  2.5 s
      behind it:       2 tasks

    Behind it:
      t3 ModuleRun:main:api:doStartup:OperatorStartup (because: start → converge 1 → module api)
      t1 ConvergeModules:main:::Operator-Startup (because: start → converge 1)

    What to do:
      - read in the log what the hook or script printed (task.id=t2), and correct it or what it needs; it is tried again by itself
      - `addon-operator module run web` tries it at once

    ── /queue
    Queue 'main': length 3, status: 'sleep after fail for 5s (2s left of 5s delay)'

     1. ModuleRun:main:web:doStartup:OperatorStartup:failures 5:hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ******
          t2, 2.5 s old, tried again in 2.5 s
          last error: hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ******
          because: start → converge 1 → module web
     2. ModuleRun:main:api:doStartup:OperatorStartup
          t3, 22 s old
          because: start → converge 1 → module api
     3. ConvergeModules:main:::Operator-Startup
          t1, 22 s old
          because: start → converge 1

    Summary:
    - 'main' queue: 3 tasks.
    - total 3 tasks to handle.
    ! module web fails for 22 s, in queue main 2 tasks wait behind it: hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ******
      do: read in the log what the hook or script printed (task.id=t2), and correct it or what it needs; it is tried again by itself; more: `addon-operator why module web`

    ── the page
    addon-operator
    First converge: 3 tasks to do. Because: start → converge 1. Up for 22 s.
    Needs a look (1)
    module web fails for 22 s, in queue main 2 tasks wait behind it: hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ****** — What to do: read in the log what the hook or script printed (task.id=t2), and correct it or what it needs; it is tried again by itself; more: addon-operator why module web
    Modules
    2 on, 0 off, in the order in which they run
    Modules 1 to 2 of 2
    Module | State | For | On or off because | Release | Last error
    web | failed | 22 s | modules/values.yaml says true | unknown | hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ******
    api | starting | 22 s | modules/values.yaml says true | unknown
    Queues
    main
    3 tasks, sleep after fail for 5s (2s left of 5s delay)
    Place | Task | Now | Failures | Because
    1 | ModuleRun:main:web:doStartup:OperatorStartup — task t2 | in the queue for 2.5 s — tried again in 2.5 s | 5 — hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ****** | start → converge 1 → module web
    2 | ModuleRun:main:api:doStartup:OperatorStartup — task t3 | in the queue for 22 s | | start → converge 1 → module api
    3 | ConvergeModules:main:::Operator-Startup — task t1 | in the queue for 22 s | | start → converge 1
    Watches
    No hook watches anything.
    Journal
    The last 5 ends of tasks, the newest first
    Task | Ended | Took | Outcome | Because
    ModuleRun web — task t2 in main | 2.5 s ago | 0.0 s | failed — hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ****** | start → converge 1 → module web
    ModuleRun web — task t2 in main | 7.5 s ago | 0.0 s | failed — hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ****** | start → converge 1 → module web
    ModuleRun web — task t2 in main | 12 s ago | 0.0 s | failed — hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ****** | start → converge 1 → module web
    ModuleRun web — task t2 in main | 18 s ago | 0.0 s | failed — hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ****** | start → converge 1 → module web
    ModuleRun web — task t2 in main | 22 s ago | 0.0 s | failed — hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ****** | start → converge 1 → module web

    ── log (the last lines)
    ERROR ModuleRun web failed; tried again in 5 s cause="start → converge 1 → module web" error="hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ****** (read in the log what the hook or script printed (task.id=t2), and correct it or what it needs; it is tried again by itself)" module=web queue=main seconds=0.0 task.flow=end task.id=t2 task_type=ModuleRun
    ERROR ModuleRun web failed; tried again in 5 s cause="start → converge 1 → module web" error="hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ****** (read in the log what the hook or script printed (task.id=t2), and correct it or what it needs; it is tried again by itself)" module=web queue=main seconds=0.0 task.flow=end task.id=t2 task_type=ModuleRun
    ERROR ModuleRun web failed; tried again in 5 s cause="start → converge 1 → module web" error="hook 'hooks/a.sh' of module web: exit status 1: curl: (7) can't connect with ****** (read in the log what the hook or script printed (task.id=t2), and correct it or what it needs; it is tried again by itself)" module=web queue=main seconds=0.0 task.flow=end task.id=t2 task_type=ModuleRun

    ── metrics
    addon_operator_module_phase{module="api",phase="starting"} 1
    addon_operator_module_phase{module="web",phase="failed"} 1
    addon_operator_module_run_errors_total{module="web"} 5
    addon_operator_tasks_queue_head_info{hook="",module="web",queue="main",task_type="ModuleRun"} 1
    addon_operator_tasks_queue_length{queue="main"} 3
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_crd_is_missing() {
    let operator =
        Operator::start("kubernetes: [{name: things, apiVersion: example.io/v1, kind: Thing}]", |effect| {
            match effect {
                Effect::StartMonitor { monitor, .. } => {
                    Some(Event::KindVanished { monitor: *monitor, kind: "example.io/v1/Thing".to_owned() })
                }
                _ => None,
            }
        });
    operator.after(60).await;
    assert_snapshot!(operator.report(&["watches_broken", "tasks_queue_head_info", "module_phase"]).await, @r#"
    ── status
    Operator is not ready; a converge runs for 60 s, 2 tasks left (because: start → converge 1).

    Modules: 2, 2 on, 0 off
      NAME  PHASE     SINCE  RELEASE     NOTE
      web   starting  60 s   unknown
      api   running   60 s   revision 1

    Queues: 1, 2 tasks
      NAME  TASKS  STATE                                                        FIRST TASK
      main  2      waits for 60 s: kind example.io/v1/Thing does not exist yet  t2 ModuleRun:main:web:doStartup:OperatorStartup

    Watches: 1, 0 objects, 1 for kinds that do not exist, 0 broken

    Needs attention:
      ! watch of Thing waits for 60 s for kind example.io/v1/Thing, which does not exist; hooks web/hooks/a.sh (things) can't run
          do: install the CustomResourceDefinition of example.io/v1/Thing, or switch the module on that brings it (for its own hooks in `crds/` of its chart, not in `templates/`)

    ── why module web
    Module web is on, but waits: kind example.io/v1/Thing does not exist yet.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    starting for 60 s
      release:  unknown
      task:     t2 ModuleRun is set aside in queue main, waits for 60 s: kind example.io/v1/Thing does not exist yet

    What to do:
      - install the CustomResourceDefinition of example.io/v1/Thing, or switch the module on that brings it (for its own hooks in `crds/` of its chart, not in `templates/`); the task goes on by itself

    ── why queue main
    Queue main waits: kind example.io/v1/Thing does not exist yet.

    Because:
      1.  start
      2.  converge 1
      3.  module web

      task:           t2 ModuleRun:main:web:doStartup:OperatorStartup
      blocked since:  TIME (60 s ago)
      watch:          waits for kind example.io/v1/Thing, which does not exist
      set aside:      2 tasks; all others pass

    What to do:
      - install the CustomResourceDefinition of example.io/v1/Thing, or switch the module on that brings it (for its own hooks in `crds/` of its chart, not in `templates/`); the task goes on by itself

    ── /queue
    Queue 'main': length 2, status: 'repeat head task'

     1. ModuleRun:main:web:doStartup:OperatorStartup
          t2, 60 s old, waits: kind example.io/v1/Thing does not exist yet
          because: start → converge 1 → module web
     2. ConvergeModules:main:::Operator-Startup
          t1, 60 s old, waits: modules web
          because: start → converge 1

    Summary:
    - 'main' queue: 2 tasks.
    - total 2 tasks to handle.
    ! watch of Thing waits for 60 s for kind example.io/v1/Thing, which does not exist; hooks web/hooks/a.sh (things) can't run
      do: install the CustomResourceDefinition of example.io/v1/Thing, or switch the module on that brings it (for its own hooks in `crds/` of its chart, not in `templates/`)

    ── the page
    addon-operator
    First converge: 2 tasks to do. Because: start → converge 1. Up for 60 s.
    Needs a look (1)
    watch of Thing waits for 60 s for kind example.io/v1/Thing, which does not exist; hooks web/hooks/a.sh (things) can't run — What to do: install the CustomResourceDefinition of example.io/v1/Thing, or switch the module on that brings it (for its own hooks in crds/ of its chart, not in templates/)
    Modules
    2 on, 0 off, in the order in which they run
    Modules 1 to 2 of 2
    Module | State | For | On or off because | Release | Last error
    web | starting | 60 s | modules/values.yaml says true | unknown
    api | running | 60 s | modules/values.yaml says true | deployed, revision 1
    Queues
    main
    2 tasks, repeat head task
    Place | Task | Now | Failures | Because
    1 | ModuleRun:main:web:doStartup:OperatorStartup — task t2 | in the queue for 60 s — waits: kind example.io/v1/Thing does not exist yet | | start → converge 1 → module web
    2 | ConvergeModules:main:::Operator-Startup — task t1 | in the queue for 60 s — waits: modules web | | start → converge 1
    Watches
    What hooks watch in the cluster; bindings that select alike share a watch
    Kind | State | Objects | For hooks
    Thing | waits for kind example.io/v1/Thing | 0 | web/hooks/a.sh (things)
    Journal
    The last 1 ends of tasks, the newest first
    Task | Ended | Took | Outcome | Because
    ModuleRun api — task t3 in main | 60 s ago | 0.0 s | done | start → converge 1 → module api

    ── log (the last lines)
    INFO  ModuleRun web waits: the first list of Thing for hook web/hooks/a.sh cause="start → converge 1 → module web" module=web queue=main task.flow=noop task.id=t2
    WARN  ModuleRun web waits: kind example.io/v1/Thing does not exist yet (install the CustomResourceDefinition of example.io/v1/Thing, or switch the module on that brings it (for its own hooks in `crds/` of its chart, not in `templates/`); the task goes on by itself) cause="start → converge 1 → module web" module=web queue=main task.flow=noop task.id=t2
    INFO  ConvergeModules waits: modules web cause="start → converge 1" queue=main task.flow=noop task.id=t1

    ── metrics
    addon_operator_module_phase{module="api",phase="running"} 1
    addon_operator_module_phase{module="web",phase="starting"} 1
    addon_operator_tasks_queue_head_info{hook="",module="web",queue="main",task_type="ModuleRun"} 1
    addon_operator_watches_broken{kind="Thing",reason="missing_kind"} 1
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_config_map_is_broken() {
    let operator = Operator::start("beforeHelm: 1", |_| None);
    operator.after(1).await;
    operator.inbox.event(data(&[("web", "replicas: [1"), ("api", "size: 2")])).await;
    operator.after(30).await;
    assert_snapshot!(operator.report(&["config_values_errors", "tasks_queue_length"]).await, @r#"
    ── status
    Operator is ready; the last converge ended 32 s ago.

    Modules: 2, 2 on, 0 off
      NAME  PHASE    SINCE  RELEASE     NOTE
      web   running  32 s   revision 1  its key of the ConfigMap is broken, see below
      api   running  32 s   revision 3

    Queues: 1, 0 tasks
      NAME  TASKS  STATE  FIRST TASK
      main  0      idle

    Watches: 0, 0 objects

    Needs attention:
      ! ConfigMap ops/addon-operator is wrong for 30 s: key web: bad yaml at key 'web': line 2, column 1: did not find expected ',' or ']' while parsing a flow sequence
          do: the last good values stay in force; correct the text of this key

    ── why module web
    Module web is on and its last run succeeded.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:      running for 32 s
      release:    deployed, revision 1
      ConfigMap:  ConfigMap key web: bad yaml at key 'web': line 2, column 1: did not find expected ',' or ']' while parsing a flow sequence; what was good before stays in force

    What to do:
      - the last good values stay in force; correct the text of this key

    ── why queue main
    Queue main is empty: nothing waits.

      last converge:  ended 32 s ago

    ── /queue
    last converge 32 s ago, 2 modules on, 0 off, nothing waits
    ! ConfigMap ops/addon-operator is wrong for 30 s: key web: bad yaml at key 'web': line 2, column 1: did not find expected ',' or ']' while parsing a flow sequence
      do: the last good values stay in force; correct the text of this key

    ── the page
    addon-operator
    Ready: all that was asked for is done. The last converge (2) ended 32 s ago. Up for 32 s.
    Needs a look (1)
    ConfigMap ops/addon-operator is wrong for 30 s: key web: bad yaml at key 'web': line 2, column 1: did not find expected ',' or ']' while parsing a flow sequence — What to do: the last good values stay in force; correct the text of this key
    Modules
    2 on, 0 off, in the order in which they run
    Modules 1 to 2 of 2
    Module | State | For | On or off because | Release | Last error
    web | running | 32 s | modules/values.yaml says true | deployed, revision 1 | — its key of the ConfigMap is broken, see above
    api | running | 32 s | modules/values.yaml says true | deployed, revision 3
    Queues
    Nothing waits and nothing runs.
    Empty: main.
    Watches
    No hook watches anything.
    Journal
    The last 6 ends of tasks, the newest first
    Task | Ended | Took | Outcome | Because
    ModuleRun api — task t6 in main | 30 s ago | 0.0 s | done | ConfigMap ops/addon-operator key api rv 101 → converge 2 → module api
    ConvergeModules — task t5 in main | 30 s ago | 0.0 s | done | ConfigMap ops/addon-operator key api rv 101 → converge 2
    DiscoverHelmReleases — task t4 in main | 32 s ago | 0.0 s | done | start → converge 1
    ConvergeModules — task t1 in main | 32 s ago | 0.0 s | done | start → converge 1
    ModuleRun api — task t3 in main | 32 s ago | 0.0 s | done | start → converge 1 → module api
    ModuleRun web — task t2 in main | 32 s ago | 0.0 s | done | start → converge 1 → module web

    ── log (the last lines)
    INFO  module api is starting module=api module.state=starting reason="modules/values.yaml says true"
    INFO  module web is running module=web module.state=running
    ERROR the ConfigMap has a problem; what was good before stays in force error="ConfigMap key web: bad yaml at key 'web': line 2, column 1: did not find expected ',' or ']' while parsing a flow sequence (the last good values stay in force; correct the text of this key)"

    ── metrics
    addon_operator_config_values_errors_total 7
    addon_operator_tasks_queue_length{queue="main"} 0
    "#);
}

#[tokio::test(start_paused = true)]
async fn the_api_server_is_away() {
    let mut upgrades = 0;
    let operator = Operator::start("kubernetes: [{name: pods, kind: Pod}]", move |effect| match effect {
        Effect::UpgradeRelease { run, .. } => {
            upgrades += 1;
            let failure = Failure::new(
                FailureKind::Cluster,
                "helm upgrade failed: GET /api/v1/secrets: no answer within 60 s",
            );
            (upgrades > 2).then(|| Event::ReleaseFinished { run: *run, outcome: Err(failure) })
        }
        _ => None,
    });
    operator.after(1).await;
    let failure = Failure::new(FailureKind::Cluster, "watch of pods: connection refused");
    operator.inbox.event(Event::WatchFailed { monitor: MonitorId::new(1), failure }).await;
    let drift = Drift::Absent("ops/ConfigMap/web".to_owned());
    operator.inbox.event(Event::ReleaseDrifted { module: "web".into(), drift }).await;
    operator.after(12).await;
    assert_snapshot!(operator.report(&["module_run_errors", "kubernetes_client_watch_errors", "watches_broken", "tasks_queue_head_info"]).await, @r#"
    ── status
    Operator is ready; the last converge ended 14 s ago.

    Modules: 2, 2 on, 0 off
      NAME  PHASE    SINCE  RELEASE     NOTE
      web   failed   12 s   failed      helm upgrade failed: GET /api/v1/secrets: no answer within …
      api   running  14 s   revision 2

    Queues: 1, 1 task
      NAME  TASKS  STATE                                   FIRST TASK
      main  1      failing for 12 s, tried again in 2.5 s  t6 ModuleRun:main:web:AbsentHelmResourcesDetected

    Watches: 1, 0 objects, 0 for kinds that do not exist, 1 broken

    Needs attention:
      ! module web fails for 12 s, in queue main nothing waits behind it: helm upgrade failed: GET /api/v1/secrets: no answer within 60 s
          do: look whether the API server answers and what it refuses; it is tried again by itself; more: `addon-operator why module web`
      ! watch of Pod is broken for 12 s, hooks web/hooks/a.sh (pods) see no changes: watch of pods: connection refused
          do: look whether the API server answers and whether the operator may list and watch it (RBAC); it is opened again by itself

    ── why module web
    Module web is on, but its last run failed: helm upgrade failed: GET /api/v1/secrets: no answer within 60 s.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    failed for 12 s
      release:  failed
      watch:    of Pod is broken for 12 s: watch of pods: connection refused
      task:     t6 ModuleRun is the first in queue main, failed 3 times, tried again in 2.5 s

    What to do:
      - look whether the API server answers and what it refuses; it is tried again by itself
      - `addon-operator module run web` tries it at once
      - look whether the API server answers and whether the operator may list and watch it (RBAC); it is opened again by itself

    ── why queue main
    Queue main is blocked: its first task failed 3 times.

    Because:
      1.  release web drifted: ops/ConfigMap/web is gone
      2.  module web

      task:            t6 ModuleRun:main:web:AbsentHelmResourcesDetected
      blocked since:   TIME (12 s ago)
      error:           helm upgrade failed: GET /api/v1/secrets: no answer within 60 s
      tried again in:  2.5 s

    What to do:
      - look whether the API server answers and what it refuses; it is tried again by itself
      - `addon-operator module run web` tries it at once

    ── /queue
    Queue 'main': length 1, status: 'sleep after fail for 5s (2s left of 5s delay)'

     1. ModuleRun:main:web:AbsentHelmResourcesDetected:failures 3:helm upgrade failed: GET /api/v1/secrets: no answer within 60 s
          t6, 2.5 s old, tried again in 2.5 s
          last error: helm upgrade failed: GET /api/v1/secrets: no answer within 60 s
          because: release web drifted: ops/ConfigMap/web is gone → module web

    Summary:
    - 'main' queue: 1 task.
    - total 1 task to handle.
    ! module web fails for 12 s, in queue main nothing waits behind it: helm upgrade failed: GET /api/v1/secrets: no answer within 60 s
      do: look whether the API server answers and what it refuses; it is tried again by itself; more: `addon-operator why module web`
    ! watch of Pod is broken for 12 s, hooks web/hooks/a.sh (pods) see no changes: watch of pods: connection refused
      do: look whether the API server answers and whether the operator may list and watch it (RBAC); it is opened again by itself

    ── the page
    addon-operator
    Ready: all that was asked for is done. The last converge (1) ended 14 s ago. Up for 14 s.
    Needs a look (2)
    module web fails for 12 s, in queue main nothing waits behind it: helm upgrade failed: GET /api/v1/secrets: no answer within 60 s — What to do: look whether the API server answers and what it refuses; it is tried again by itself; more: addon-operator why module web
    watch of Pod is broken for 12 s, hooks web/hooks/a.sh (pods) see no changes: watch of pods: connection refused — What to do: look whether the API server answers and whether the operator may list and watch it (RBAC); it is opened again by itself
    Modules
    2 on, 0 off, in the order in which they run
    Modules 1 to 2 of 2
    Module | State | For | On or off because | Release | Last error
    web | failed | 12 s | modules/values.yaml says true | failed | helm upgrade failed: GET /api/v1/secrets: no answer within 60 s
    api | running | 14 s | modules/values.yaml says true | deployed, revision 2
    Queues
    main
    1 task, sleep after fail for 5s (2s left of 5s delay)
    Place | Task | Now | Failures | Because
    1 | ModuleRun:main:web:AbsentHelmResourcesDetected — task t6 | in the queue for 2.5 s — tried again in 2.5 s | 3 — helm upgrade failed: GET /api/v1/secrets: no answer within 60 s | release web drifted: ops/ConfigMap/web is gone → module web
    Watches
    What hooks watch in the cluster; bindings that select alike share a watch
    Kind | State | Objects | For hooks
    Pod | broken — watch of pods: connection refused | 0 | web/hooks/a.sh (pods)
    Journal
    The last 8 ends of tasks, the newest first
    Task | Ended | Took | Outcome | Because
    ModuleRun web — task t6 in main | 2.5 s ago | 0.0 s | failed — helm upgrade failed: GET /api/v1/secrets: no answer within 60 s | release web drifted: ops/ConfigMap/web is gone → module web
    ModuleRun web — task t6 in main | 7.5 s ago | 0.0 s | failed — helm upgrade failed: GET /api/v1/secrets: no answer within 60 s | release web drifted: ops/ConfigMap/web is gone → module web
    ModuleRun web — task t6 in main | 12 s ago | 0.0 s | failed — helm upgrade failed: GET /api/v1/secrets: no answer within 60 s | release web drifted: ops/ConfigMap/web is gone → module web
    DiscoverHelmReleases — task t5 in main | 14 s ago | 0.0 s | done | start → converge 1
    ConvergeModules — task t1 in main | 14 s ago | 0.0 s | done | start → converge 1
    ModuleRun api — task t3 in main | 14 s ago | 0.0 s | done | start → converge 1 → module api
    ModuleRun web — task t2 in main | 14 s ago | 0.0 s | done | start → converge 1 → module web
    ModuleHookRun web/hooks/a.sh (pods) — task t4 in main | 14 s ago | 0.0 s | done | start → converge 1 → module web → Synchronization of pods

    ── log (the last lines)
    WARN  module web is failed module=web module.state=failed reason="helm upgrade failed: GET /api/v1/secrets: no answer within 60 s"
    ERROR ModuleRun web failed; tried again in 5 s cause="release web drifted: ops/ConfigMap/web is gone → module web" error="helm upgrade failed: GET /api/v1/secrets: no answer within 60 s (look whether the API server answers and what it refuses; it is tried again by itself)" module=web queue=main seconds=0.0 task.flow=end task.id=t6 task_type=ModuleRun
    ERROR ModuleRun web failed; tried again in 5 s cause="release web drifted: ops/ConfigMap/web is gone → module web" error="helm upgrade failed: GET /api/v1/secrets: no answer within 60 s (look whether the API server answers and what it refuses; it is tried again by itself)" module=web queue=main seconds=0.0 task.flow=end task.id=t6 task_type=ModuleRun

    ── metrics
    addon_operator_kubernetes_client_watch_errors_total{error_type="fail"} 1
    addon_operator_module_run_errors_total{module="web"} 3
    addon_operator_tasks_queue_head_info{hook="",module="web",queue="main",task_type="ModuleRun"} 1
    addon_operator_watches_broken{kind="Pod",reason="failure"} 1
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_release_is_stuck() {
    let operator = Operator::start("beforeHelm: 1", |effect| match effect {
        Effect::UpgradeRelease { run, module, .. } if module.name.as_str() == "web" => {
            let failure = Failure::new(
                FailureKind::Release,
                "helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m",
            );
            Some(Event::ReleaseFinished { run: *run, outcome: Err(failure) })
        }
        _ => None,
    });
    operator.after(9).await;
    assert_snapshot!(operator.report(&["module_run_errors", "tasks_queue_head_info"]).await, @r#"
    ── status
    Operator is not ready; a converge runs for 9.5 s, 3 tasks left (because: start → converge 1).

    Modules: 2, 2 on, 0 off
      NAME  PHASE     SINCE  RELEASE  NOTE
      web   failed    9.5 s  failed   helm upgrade failed: pre-upgrade hooks failed: Job ops/web-…
      api   starting  9.5 s  unknown

    Queues: 1, 3 tasks
      NAME  TASKS  STATE                                    FIRST TASK
      main  3      failing for 9.5 s, tried again in 0.5 s  t2 ModuleRun:main:web:doStartup:OperatorStartup

    Watches: 0, 0 objects

    Needs attention:
      ! module web fails for 9.5 s, in queue main 2 tasks wait behind it: helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m
          do: `addon-operator module history web` shows the revisions; correct the chart or the objects that are in its way; more: `addon-operator why module web`

    ── why module web
    Module web is on, but its last run failed: helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    failed for 9.5 s
      release:  failed
      task:     t2 ModuleRun is the first in queue main, failed 2 times, tried again in 0.5 s

    What to do:
      - `addon-operator module history web` shows the revisions; correct the chart or the objects that are in its way
      - `addon-operator module run web` tries it at once

    ── why queue main
    Queue main is blocked: its first task failed 2 times.

    Because:
      1.  start
      2.  converge 1
      3.  module web

      task:            t2 ModuleRun:main:web:doStartup:OperatorStartup
      blocked since:   TIME (9.5 s ago)
      error:           helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m
      tried again in:  0.5 s
      behind it:       2 tasks

    Behind it:
      t3 ModuleRun:main:api:doStartup:OperatorStartup (because: start → converge 1 → module api)
      t1 ConvergeModules:main:::Operator-Startup (because: start → converge 1)

    What to do:
      - `addon-operator module history web` shows the revisions; correct the chart or the objects that are in its way
      - `addon-operator module run web` tries it at once

    ── /queue
    Queue 'main': length 3, status: 'sleep after fail for 5s (0s left of 5s delay)'

     1. ModuleRun:main:web:doStartup:OperatorStartup:failures 2:helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m
          t2, 4.5 s old, tried again in 0.5 s
          last error: helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m
          because: start → converge 1 → module web
     2. ModuleRun:main:api:doStartup:OperatorStartup
          t3, 9.5 s old
          because: start → converge 1 → module api
     3. ConvergeModules:main:::Operator-Startup
          t1, 9.5 s old
          because: start → converge 1

    Summary:
    - 'main' queue: 3 tasks.
    - total 3 tasks to handle.
    ! module web fails for 9.5 s, in queue main 2 tasks wait behind it: helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m
      do: `addon-operator module history web` shows the revisions; correct the chart or the objects that are in its way; more: `addon-operator why module web`

    ── the page
    addon-operator
    First converge: 3 tasks to do. Because: start → converge 1. Up for 9.5 s.
    Needs a look (1)
    module web fails for 9.5 s, in queue main 2 tasks wait behind it: helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m — What to do: addon-operator module history web shows the revisions; correct the chart or the objects that are in its way; more: addon-operator why module web
    Modules
    2 on, 0 off, in the order in which they run
    Modules 1 to 2 of 2
    Module | State | For | On or off because | Release | Last error
    web | failed | 9.5 s | modules/values.yaml says true | failed | helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m
    api | starting | 9.5 s | modules/values.yaml says true | unknown
    Queues
    main
    3 tasks, sleep after fail for 5s (0s left of 5s delay)
    Place | Task | Now | Failures | Because
    1 | ModuleRun:main:web:doStartup:OperatorStartup — task t2 | in the queue for 4.5 s — tried again in 0.5 s | 2 — helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m | start → converge 1 → module web
    2 | ModuleRun:main:api:doStartup:OperatorStartup — task t3 | in the queue for 9.5 s | | start → converge 1 → module api
    3 | ConvergeModules:main:::Operator-Startup — task t1 | in the queue for 9.5 s | | start → converge 1
    Watches
    No hook watches anything.
    Journal
    The last 2 ends of tasks, the newest first
    Task | Ended | Took | Outcome | Because
    ModuleRun web — task t2 in main | 4.5 s ago | 0.0 s | failed — helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m | start → converge 1 → module web
    ModuleRun web — task t2 in main | 9.5 s ago | 0.0 s | failed — helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m | start → converge 1 → module web

    ── log (the last lines)
    ERROR ModuleRun web failed; tried again in 5 s cause="start → converge 1 → module web" error="helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m (`addon-operator module history web` shows the revisions; correct the chart or the objects that are in its way)" module=web queue=main seconds=0.0 task.flow=end task.id=t2 task_type=ModuleRun
    WARN  module web is failed module=web module.state=failed reason="helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m"
    ERROR ModuleRun web failed; tried again in 5 s cause="start → converge 1 → module web" error="helm upgrade failed: pre-upgrade hooks failed: Job ops/web-migrate did not complete within 20m (`addon-operator module history web` shows the revisions; correct the chart or the objects that are in its way)" module=web queue=main seconds=0.0 task.flow=end task.id=t2 task_type=ModuleRun

    ── metrics
    addon_operator_module_run_errors_total{module="web"} 2
    addon_operator_tasks_queue_head_info{hook="",module="web",queue="main",task_type="ModuleRun"} 1
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_module_is_parked() {
    let operator = Operator::start("beforeHelm: 1", |_| None);
    operator.after(1).await;
    for _ in 0..3 {
        let drift = Drift::Absent("ops/ConfigMap/web".to_owned());
        operator.inbox.event(Event::ReleaseDrifted { module: "web".into(), drift }).await;
        operator.after(5).await;
    }
    assert_snapshot!(operator.report(&["module_phase", "modules_absent_resources", "tasks_queue_length"]).await, @r#"
    ── status
    Operator is ready; the last converge ended 18 s ago.

    Modules: 2, 2 on, 0 off
      NAME  PHASE    SINCE  RELEASE     NOTE
      web   parked   5.5 s  revision 5  its release is left alone, see below
      api   running  18 s   revision 2

    Queues: 1, 0 tasks
      NAME  TASKS  STATE  FIRST TASK
      main  0      idle

    Watches: 0, 0 objects

    Needs attention:
      ! module web is parked for 5.5 s: its release was upgraded 3 times within 15 minutes with the same result, each time because of: release web drifted: ops/ConfigMap/web is gone; its release is left alone until its values or its chart change, or `module resume web`
          do: `addon-operator module render web --diff` shows what its chart changes each time; correct it, then `addon-operator module resume web`

    ── why module web
    Module web is on and parked: its release was upgraded 3 times within 15 minutes with the same result, each time because of: release web drifted: ops/ConfigMap/web is gone; its release is left alone until its values or its chart change, or `module resume web`.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    parked for 5.5 s
      release:  deployed, revision 5

    What to do:
      - `addon-operator module render web --diff` shows what the chart changes each time
      - correct the chart, then `addon-operator module resume web`

    ── why queue main
    Queue main is empty: nothing waits.

      last converge:  ended 18 s ago

    ── /queue
    last converge 18 s ago, 2 modules on, 0 off, nothing waits
    ! module web is parked for 5.5 s: its release was upgraded 3 times within 15 minutes with the same result, each time because of: release web drifted: ops/ConfigMap/web is gone; its release is left alone until its values or its chart change, or `module resume web`
      do: `addon-operator module render web --diff` shows what its chart changes each time; correct it, then `addon-operator module resume web`

    ── the page
    addon-operator
    Ready: all that was asked for is done. The last converge (1) ended 18 s ago. Up for 18 s.
    Needs a look (1)
    module web is parked for 5.5 s: its release was upgraded 3 times within 15 minutes with the same result, each time because of: release web drifted: ops/ConfigMap/web is gone; its release is left alone until its values or its chart change, or `module resume web` — What to do: addon-operator module render web --diff shows what its chart changes each time; correct it, then addon-operator module resume web
    Modules
    2 on, 0 off, in the order in which they run
    Modules 1 to 2 of 2
    Module | State | For | On or off because | Release | Last error
    web | parked | 5.5 s | modules/values.yaml says true | deployed, revision 5 | — its release is left alone, see above
    api | running | 18 s | modules/values.yaml says true | deployed, revision 2
    Queues
    Nothing waits and nothing runs.
    Empty: main.
    Watches
    No hook watches anything.
    Journal
    The last 7 ends of tasks, the newest first
    Task | Ended | Took | Outcome | Because
    ModuleRun web — task t7 in main | 5.5 s ago | 0.0 s | done | release web drifted: ops/ConfigMap/web is gone → module web
    ModuleRun web — task t6 in main | 11 s ago | 0.0 s | done | release web drifted: ops/ConfigMap/web is gone → module web
    ModuleRun web — task t5 in main | 16 s ago | 0.0 s | done | release web drifted: ops/ConfigMap/web is gone → module web
    DiscoverHelmReleases — task t4 in main | 18 s ago | 0.0 s | done | start → converge 1
    ConvergeModules — task t1 in main | 18 s ago | 0.0 s | done | start → converge 1
    ModuleRun api — task t3 in main | 18 s ago | 0.0 s | done | start → converge 1 → module api
    ModuleRun web — task t2 in main | 18 s ago | 0.0 s | done | start → converge 1 → module web

    ── log (the last lines)
    WARN  release of module web: ops/ConfigMap/web is gone module=web
    WARN  release of module web: ops/ConfigMap/web is gone module=web
    WARN  module web is parked module=web module.state=parked reason="its release was upgraded 3 times within 15 minutes with the same result, each time because of: release web drifted: ops/ConfigMap/web is gone; its release is left alone until its values or its chart change, or `module resume web`"

    ── metrics
    addon_operator_module_phase{module="api",phase="running"} 1
    addon_operator_module_phase{module="web",phase="parked"} 1
    addon_operator_modules_absent_resources_total{module="web",resource="ops/ConfigMap/web"} 3
    addon_operator_tasks_queue_length{queue="main"} 0
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_denies_everything_and_its_certificate_ends_soon() {
    let webhooks = WebhookConfig {
        name: "ours".to_owned(),
        client: WebhookClient::Service("hooks".to_owned()),
        failure_policy: FailurePolicy::Fail,
        concurrency: 2,
        waiting: 10,
    };
    let config = Config { webhooks: Some(webhooks), ..Config::default() };
    let denies = "kubernetesValidating: [{name: pods.example.com, rules: [{apiGroups: [''], apiVersions: [v1], \
                  resources: [pods], operations: [CREATE]}]}]";
    let operator = Operator::with_config(config, denies, |effect| match effect {
        Effect::RunHook { run, .. } => {
            let response =
                AdmissionResponse { message: "hunter22-hunter22".to_owned(), ..Default::default() };
            let output = HookOutput { admission: Some(Box::new(response)), ..HookOutput::default() };
            Some(Event::HookFinished { run: *run, outcome: Ok(output), usage: None })
        }
        _ => None,
    });
    operator.after(1).await;
    for id in 1..=12 {
        let request = json!({"uid": format!("u{id}"), "operation": "CREATE", "object": {}});
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let (id, webhook) = (ReviewId::new(id), "/validate/pods.example.com".to_owned());
        let review = Event::ReviewRequested { id, webhook, review: Arc::new(review), timeout: None };
        operator.inbox.event(review).await;
        operator.after(1).await;
    }
    let report = operator.report(&["webhook_review_seconds_count", "webhook_certificate"]).await;
    for expected in [
        // status and /queue
        "! webhook pods.example.com denies everything for 18 s, 12 requests in a row\n",
        "do: look whether hook web/hooks/a.sh means that; `start --uninstall-webhooks` lets writes go on",
        "! certificate of webhooks is valid for 2 d only\n",
        "do: write a new one into --admission-server-certs-dir;",
        // the page
        "Needs a look (2)",
        "webhook pods.example.com denies everything for 18 s, 12 requests in a row — What to do: look whether",
        // metrics, which alerts are made of
        "webhook_review_seconds_count{binding=\"kubernetesValidating\",outcome=\"denied\",webhook=\"pods.example.com\"} 12",
        "webhook_certificate_expires_seconds ",
    ] {
        assert!(report.contains(expected), "{expected}:\n{report}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_leads() {
    let seconds = Duration::from_secs;
    let election = ElectionConfig {
        mode: ElectionMode::Standby,
        lease: "leader".to_owned(),
        identity: "ao-1.10-0-0-1.ops.pod".to_owned(),
        lease_duration: seconds(35),
        renew_deadline: seconds(30),
        retry_period: seconds(10),
    };
    let config = Config { election: Some(election), ..Config::default() };
    let operator = Operator::with_config(config, "beforeHelm: 1", |effect| match effect {
        Effect::StartMonitor { monitor, .. } => {
            let failure = Failure::new(FailureKind::Forbidden, "leases.coordination.k8s.io is forbidden");
            Some(Event::WatchFailed { monitor: *monitor, failure })
        }
        _ => None,
    });
    operator.after(90).await;
    let shown = [
        ("/status", "Operator is standby of nobody; it waits for Lease ops/leader."),
        ("/status", "! Lease ops/leader can't be used, so that this replica can't lead: leases.coordination"),
        ("/queue", "standby of nobody; it waits for Lease ops/leader"),
        ("/queue", "! Lease ops/leader can't be used"),
        ("/", "Lease ops/leader"),
        ("/readyz", "HA mode is enabled but no leader is elected"),
        ("/metrics", "addon_operator_leader 0\n"),
    ];
    for (path, text) in shown {
        let answer = operator.get(path).await;
        // The page escapes quotes.
        assert!(answer.contains(text), "{path} does not say {text:?}: {answer}");
    }
    let log = operator.log();
    assert!(log.contains("WARN  Lease ops/leader can't be used, and nobody leads without it"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_module_waits_for_another() {
    let mut catalog = catalog("beforeHelm: 1");
    let modules = Arc::make_mut(&mut catalog.modules);
    for module in modules.iter_mut().filter(|module| module.name.as_str() == "web") {
        Arc::make_mut(module).settings.requires = vec![Requirement { module: "db".into(), version: None }];
    }
    let operator = Operator::of(Config::default(), catalog, |_| None);
    operator.after(60).await;
    let lacks = "it requires module db, which does not exist";
    let shown = [
        ("/status", "Operator is ready".to_owned()),
        ("/status", "! module web waits for ".to_owned()),
        ("/status", format!("{lacks}\n      do: bring module db")),
        ("/why/module/web?output=text", format!("Module web is on, and waits: {lacks}")),
        ("/queue", lacks.to_owned()),
        ("/", lacks.to_owned()),
        // The alert AddonOperatorModuleWaits is made of it.
        ("/metrics", "addon_operator_module_phase{module=\"web\",phase=\"waiting\"} 1\n".to_owned()),
        ("/metrics", "addon_operator_module_phase{module=\"api\",phase=\"running\"} 1\n".to_owned()),
    ];
    for (path, text) in shown {
        let answer = operator.get(path).await;
        assert!(answer.contains(&text), "{path} does not say {text:?}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn f_h6_a_hook_needs_more_than_it_may_use() {
    let operator = Operator::start("beforeHelm: 1", |effect| match effect {
        Effect::RunHook { run, .. } => {
            let limit =
                "it needs more memory than the 268435456 bytes that it may use (settings.limits.memory)";
            let message = format!("module hook 'hooks/a.sh' failed: {limit}");
            let failure = Failure::new(FailureKind::HookLimit, message).advise("give it more");
            Some(Event::HookFinished { run: *run, outcome: Err(failure), usage: None })
        }
        _ => None,
    });
    operator.after(22).await;
    let limit = "it needs more memory than the 268435456 bytes that it may use (settings.limits.memory)";
    for path in ["/status", "/why/module/web?output=text", "/why/queue/main?output=text", "/queue", "/"] {
        let answer = operator.get(path).await;
        assert!(answer.contains(limit), "{path} does not name the limit: {answer}");
    }
    let status = operator.get("/status").await;
    assert!(status.contains("! module web fails for 22 s"), "{status}");
    // The alert AddonOperatorModuleFails is made of it.
    let metrics = operator.get("/metrics").await;
    let errors = metrics.lines().find(|line| line.starts_with("addon_operator_module_run_errors_total{"));
    assert!(errors.is_some_and(|line| !line.ends_with(" 0")), "{metrics}");
    assert!(operator.log().contains(limit), "{}", operator.log());
}

#[tokio::test(start_paused = true)]
async fn f_h6_what_is_seen_of_the_memory_holds_for_the_hooks_that_the_next_event_begins() {
    // They take their time: nobody answers them.
    let begun: Arc<Mutex<usize>> = Arc::default();
    let counting = Arc::clone(&begun);
    let schedule = |n: u32| format!("{{name: s{n}, crontab: '0 * * * *', queue: q{n}}}");
    let schedules = format!("schedule: [{}]", (0..5).map(schedule).collect::<Vec<_>>().join(", "));
    let operator = Operator::start(&schedules, move |effect| {
        *counting.lock().unwrap() += usize::from(matches!(effect, Effect::RunHook { .. }));
        // That does nothing, and is no answer.
        matches!(effect, Effect::RunHook { .. }).then_some(Event::TimerFired)
    });
    operator.after(1).await;
    *operator.unseen.lock().unwrap() = Some(Event::MemoryChanged { used: 500 << 20, limit: 512 << 20 });
    assert!(operator.inbox.event(Event::CronFired { line: "0 * * * *".into() }).await);
    operator.after(60).await;
    assert_eq!(*begun.lock().unwrap(), 1, "one goes on, so that anything changes");
    *operator.unseen.lock().unwrap() = Some(Event::MemoryChanged { used: 100 << 20, limit: 512 << 20 });
    operator.inbox.answer(Event::TimerFired);
    operator.after(1).await;
    assert_eq!(*begun.lock().unwrap(), 5, "the others wait for nothing but memory");
}

#[tokio::test(start_paused = true)]
async fn f_d7_the_metric_of_stuck_queues_is_small_for_schedules_and_grows_for_a_hook_that_hangs() {
    // Runs that take their time: the test answers them.
    let held: Arc<Mutex<Vec<RunId>>> = Arc::default();
    let holding = Arc::clone(&held);
    let schedules = "schedule: [{name: often, crontab: '*/15 * * * * *', queue: side}, {name: hangs, crontab: '0 * * * *', queue: slow}]";
    let operator = Operator::start(schedules, move |effect| match effect {
        Effect::RunHook { run, .. } => {
            holding.lock().unwrap().push(*run);
            // That does nothing, and is no answer.
            Some(Event::TimerFired)
        }
        _ => None,
    });
    operator.after(1).await;
    let fire = async |line: &str| {
        assert!(operator.inbox.event(Event::CronFired { line: line.into() }).await);
    };
    let seconds = async |queue: &str| -> Option<f64> {
        let series = format!("addon_operator_tasks_queue_head_seconds{{queue=\"{queue}\"}} ");
        operator.get("/metrics").await.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok())
    };
    assert_eq!((seconds("side").await, seconds("slow").await), (None, None));
    fire("0 * * * *").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(held.lock().unwrap().drain(..).count(), 1, "it hangs from now on");
    for round in 0..130 {
        fire("*/15 * * * * *").await;
        tokio::time::sleep(Duration::from_secs(14)).await;
        let side = seconds("side").await.unwrap();
        assert!((13.0..15.0).contains(&side), "round {round}: {side} s");
        let runs: Vec<RunId> = held.lock().unwrap().drain(..).collect();
        let [run] = runs.as_slice() else { unreachable!("{runs:?}") };
        operator.inbox.answer(Event::HookFinished {
            run: *run,
            outcome: Ok(HookOutput::default()),
            usage: None,
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(seconds("side").await, None, "nothing is there any more");
    }
    // The alert AddonOperatorQueueStuck compares it with half an hour.
    let slow = seconds("slow").await.unwrap();
    assert!((1_949.0..1_952.0).contains(&slow), "{slow} s");
}
