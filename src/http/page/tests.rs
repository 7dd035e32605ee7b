//! The page as text: nothing that others wrote is markup, nothing secret is in it.

use std::sync::Arc;

use engine::hook::{HookKind, config};
use engine::view::{ModuleOriginView, SourceView, View};
use engine::{
    Catalog, Config, Effect, EnabledFlag, Engine, Event, FailureKind, Hook, HookId, Module, Scope, SourceKey,
    Time,
};
use serde_json::json;

use super::*;

const HOSTILE: &str = "\"><script>alert('x')</script><!--\u{202e}\u{0}&lt;";

/// A catalog with modules whose names and hooks are `word` and a number.
fn catalog(word: &str, count: u32) -> Catalog {
    let modules = (0..count).map(|number| {
        let name = ModuleName::from(format!("{word}{number}"));
        let scope = Scope::Module(name.clone());
        let text = "configVersion: v1\nbeforeHelm: 1\nkubernetes: [{name: \"<b>pods\", kind: Pod}]";
        let spec = config::parse("a.sh".into(), HookKind::Module, text).unwrap();
        let hook = Hook {
            id: HookId { scope, name: format!("{word}.sh").into() },
            path: "a".into(),
            content: 1,
            launch: engine::Launch::default(),
            spec,
        };
        Arc::new(Module {
            key: values::name::camel(name.as_str()).into(),
            chart_key: values::name::camel(name.as_str()).into(),
            name,
            order: number,
            namespace: None,
            path: "/m".into(),
            content: 1,
            origin: engine::Origin::Files,
            enabled: Some(EnabledFlag { value: true, source: word.into() }),
            enabled_script: None,
            static_values: Arc::new(json!({"password": "hunter2hunter2"})),
            schemas: Arc::default(),
            hooks: vec![Arc::new(hook)],
            layout: engine::ValuesLayout::Section,
            plans: engine::Plans::default(),
            has_unread_hooks: false,
            has_chart: false,
            chart: None,
            package: None,
            version: None,
            settings: engine::ModuleSettings::default(),
            dependencies: engine::ChartDependencies::default(),
            crds: Vec::new(),
            broken: None,
        })
    });
    let warnings = vec![format!("file {word} is left out")];
    Catalog { modules: Arc::new(modules.collect()), complete: true, warnings, ..Catalog::default() }
}

/// Returns the picture of an operator whose first module has failed with `word` and the password in its message.
fn failed(word: &str, count: u32) -> View {
    let mut engine = Engine::new(Config::default(), catalog(word, count));
    let mut effects = engine.handle(Time::START, Event::Started);
    while let Some(effect) = effects.pop() {
        let event = if let Effect::RunHook { run, .. } = effect {
            let failure = Failure::new(FailureKind::HookExit, format!("{word}: hunter2hunter2"));
            Event::HookFinished { run, outcome: Err(failure), usage: None }
        } else if let Effect::ListReleases { run, .. } = effect {
            Event::ReleasesListed { run, outcome: Ok(Vec::new()) }
        } else if let Effect::StartMonitor { monitor, .. } = effect {
            Event::Listed { lists: vec![(monitor, Vec::new())] }
        } else {
            continue;
        };
        effects.extend(engine.handle(Time::START, event));
    }
    engine.view()
}

fn shown(view: &View, options: PageOptions) -> String {
    let secret = json!(["hunter2hunter2"]);
    layout::page(view, options, &|failure, _| engine::view::masked(failure, &[&secret]))
}

fn page_options(query: &[(&str, &str)]) -> PageOptions {
    PageOptions::of(&query.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

/// Checks that each element ends where it should, and that attributes are in quotes.
fn check(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let (_, body) = page.split_once("</style>").unwrap();
    let mut rest = body.trim_end();
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        let name = tag.split(' ').next().unwrap();
        match name.strip_prefix('/') {
            Some("head" | "html") => {}
            Some(name) => assert_eq!(open.pop(), Some(name), "before {:?}", rest.get(..80)),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn hostile_names_and_messages_stay_text() {
    let view = with_source(failed(HOSTILE, 2), HOSTILE);
    assert!(view.journal.iter().any(|end| end.failure.is_some()) && !view.watches.is_empty());
    for query in [&[][..], &[("journal", "all"), ("graph", "all"), ("refresh", "off")]] {
        let page = shown(&view, page_options(query));
        check(&page);
        assert!(!page.contains("<script") && !page.contains("<!--") && !page.contains("<b>"), "{page}");
        assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)"), "{page}");
        assert!(!page.contains('\u{202e}') && !page.contains('\0'));
    }
}

/// Adds a module source to a picture, from which its first module comes.
fn with_source(mut view: View, word: &str) -> View {
    let key = SourceKey::cluster(word);
    let digest = format!("sha256:{:064x}", 1).parse().unwrap();
    view.modules[0].origin = Some(ModuleOriginView {
        source: key.clone(),
        url: format!("https://{word}/index.yaml"),
        version: "1.2.3".to_owned(),
        digest,
        is_retained: true,
        held_back: Some(format!("version 1.3.0 waits for {word}")),
    });
    view.sources.push(SourceView {
        key,
        phase: "Failed",
        message: format!("{word}: hunter2hunter2"),
        modules: "1/2".to_owned(),
        generation: 2,
        observed_generation: 2,
        is_deleting: false,
        waits_for: None,
        is_suspended: false,
        is_left_alone: false,
        processed_at: String::new(),
        processed_in: Some(std::time::Duration::from_mins(5)),
        work: None,
        repositories: Vec::new(),
    });
    view
}

#[test]
fn module_sources_are_a_table_if_there_are_any() {
    let view = failed("web", 1);
    let page = shown(&view, page_options(&[]));
    assert!(!page.contains("source"), "{page}");
    let page = shown(&with_source(view, "platform"), page_options(&[]));
    check(&page);
    for part in [
        "<a href=\"#sources\">Module sources (1)</a>",
        "<th scope=\"row\">web0<small>1.2.3 of cac/platform, registered no more</small><small>version 1.3.0 waits for platform</small></th>",
        "<th scope=\"row\">cac/platform</th><td class=\"short bad\">Failed</td><td class=\"number\">1/2</td>",
        "<td class=\"short\">in 5 min</td><td>platform: ******</td>",
        "addon-operator why source cac/platform",
    ] {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
    assert!(!page.contains("hunter2"), "{page}");
}

#[test]
fn all_parts_are_there_and_no_value_is() {
    let page = shown(&failed("web", 2), page_options(&[]));
    check(&page);
    for part in [
        "<html lang=\"en\">",
        "2 problems · addon-operator</title>",
        "2 on, 0 off, in the order in which they run",
        "<caption>Modules 1 to 2 of 2</caption>",
        "<th scope=\"row\">web0</th>",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"",
        "id=\"queues\"",
        "ModuleRun:main:web0",
        "tried again in 5.0 s",
        "id=\"watches\"",
        "Pod</th>",
        "id=\"journal\"",
        "<span class=\"bad\">failed</span>",
        "start → converge 1",
        "href=\"/metrics\"",
        "file web is left out",
        "******",
    ] {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
    assert!(!page.contains("hunter2"), "{page}");
}

#[test]
fn the_reader_chooses_how_often_the_page_loads_itself_again() {
    for (query, refresh, link) in [
        (&[][..], Some(5), "?refresh=off"),
        (&[("refresh", "off")], None, "?refresh=60"),
        (&[("refresh", "60")], Some(60), "?refresh=15"),
        (&[("refresh", "1")], Some(5), "?refresh=off"),
        (&[("refresh", "<script>")], Some(5), "?refresh=off"),
    ] {
        let options = page_options(query);
        assert_eq!(options.refresh, refresh, "{query:?}");
        assert!(shown(&failed("web", 1), options).contains(link));
        let answer = answer(StatusCode::OK, options, Bytes::new());
        let header = answer.headers().get("refresh").map(|value| value.to_str().unwrap().parse().unwrap());
        assert_eq!(header, refresh);
    }
    assert_eq!(page_options(&[("refresh", "off"), ("journal", "all")]).query(), "?refresh=off&journal=all");
    assert_eq!(page_options(&[("journal", "all")]).query(), "?journal=all");
    assert_eq!(page_options(&[]).query(), "/");
}

#[test]
fn long_lists_are_cut_and_say_so() {
    let mut view = failed("web", 1);
    let end = view.journal.first().cloned().unwrap();
    view.journal = vec![end; 1000];
    view.warnings = vec!["a file".to_owned(); 10_000];
    view = with_source(view, "platform");
    view.sources = vec![view.sources[0].clone(); 10_000];
    let page = shown(&view, page_options(&[]));
    assert!(page.contains("Show all 1000 that are remembered") && page.contains("more"), "{page}");
    assert!(page.len() < 100_000, "{} bytes", page.len());
    assert!(shown(&view, page_options(&[("journal", "all")])).contains("The last 1000 ends"));
}

#[test]
fn the_policy_lets_nothing_but_our_style_in() {
    let policy = layout::policy();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_has_not_begun_says_so_at_once() {
    let (_inbox, questions, channels) = crate::driver::channels();
    let pages = PageCache::default();
    let page = pages.page(&questions, page_options(&[])).await;
    assert_eq!(page.status(), StatusCode::OK);
    let body = axum::body::to_bytes(page.into_body(), 100_000).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    check(&body);
    assert!(body.contains("The operator starts: it begins"), "{body}");
    channels.say("it waits for the API server".to_owned());
    let page = pages.page(&questions, page_options(&[])).await;
    let body = axum::body::to_bytes(page.into_body(), 100_000).await.unwrap();
    assert!(String::from_utf8_lossy(&body).contains("it waits for the API server"));
    drop(channels);
    assert_eq!(pages.page(&questions, page_options(&[])).await.status(), StatusCode::SERVICE_UNAVAILABLE);
}
