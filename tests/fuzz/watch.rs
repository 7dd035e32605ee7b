//! What must hold for every stream of a watch: where the network cuts it makes no difference.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use addon_operator::cluster::{Discovery, connect_in_process};
use addon_operator::driver;
use addon_operator::kube::Monitors;
use bytes::Bytes;
use engine::hook::selection::{MonitorSpec, Selection};
use engine::{Event, MonitorId};
use futures::StreamExt as _;
use futures::future::Either;
use futures::stream::{self, BoxStream};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use kube::client::Body;

const KINDS: &str = r#"{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
"items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [{"resource": "configmaps",
"responseKind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "scope": "Namespaced",
"singularResource": "configmap", "verbs": ["list", "watch"]}]}]}]}"#;
const NO_KINDS: &str = r#"{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": []}"#;
const LIST: &str = r#"{"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "a",
"namespace": "default", "resourceVersion": "4"}}]}"#;

/// How many changes that come together are passed on one by one.
const UNMERGED: usize = 64;

/// How long the operator is listened to. No time passes while it works.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a monitor was told, and how often the watch was opened.
struct Told {
    changes: Vec<Event>,
    opened: usize,
}

/// Lets a monitor read the bytes behind the first one in one piece, and in pieces that the first one chooses.
pub(crate) fn run(bytes: &[u8]) {
    let Some((dice, stream)) = bytes.split_first() else { return };
    let whole = tell(vec![Bytes::copy_from_slice(stream)], *dice);
    let cut = tell(pieces(stream, *dice), *dice);
    let lines = stream.split(|byte| *byte == b'\n').count();
    if lines > UNMERGED {
        return;
    }
    // What stands before a broken line may get lost with it, and is listed again.
    if whole.opened == 1 && cut.opened == 1 {
        assert_eq!(whole.changes, cut.changes);
    } else {
        assert!(cut.changes.starts_with(&whole.changes), "{:?}\n{:?}", whole.changes, cut.changes);
    }
}

fn pieces(mut stream: &[u8], dice: u8) -> Vec<Bytes> {
    let (mut pieces, mut state) = (Vec::new(), u32::from(dice) + 1);
    while !stream.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = ((state >> 16) as usize % 97 + 1).min(stream.len());
        let (piece, rest) = stream.split_at(length);
        pieces.push(Bytes::copy_from_slice(piece));
        stream = rest;
    }
    pieces
}

/// Returns what a monitor is told when the first watch brings these pieces. Nothing is answered after that.
fn tell(pieces: Vec<Bytes>, dice: u8) -> Told {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let opened = Arc::new(AtomicUsize::new(0));
    let listed = Arc::new(AtomicUsize::new(0));
    let (opened_there, listed_there) = (Arc::clone(&opened), Arc::clone(&listed));
    let service = tower::service_fn(move |request: Request<Body>| {
        let uri = request.uri();
        let is_watch = uri.query().is_some_and(|query| query.contains("watch=true"));
        let body = match uri.path() {
            "/api" => Some(text(KINDS)),
            "/apis" => Some(text(NO_KINDS)),
            _ if is_watch && opened_there.fetch_add(1, Ordering::Relaxed) == 0 => {
                Some(lasting(pieces.clone(), dice.is_multiple_of(2)))
            }
            _ if !is_watch && listed_there.fetch_add(1, Ordering::Relaxed) == 0 => Some(text(LIST)),
            _ => None,
        };
        match body {
            Some(body) => Either::Left(std::future::ready(Ok::<_, Infallible>(Response::new(body)))),
            None => Either::Right(std::future::pending()),
        }
    });
    let changes = runtime.unwrap().block_on(async {
        let client = connect_in_process(service, "default");
        let mut monitors = Monitors::new(client.clone(), Discovery::new(client));
        let (inbox, _questions, mut channels) = driver::channels();
        let selection =
            Selection { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned(), ..Selection::default() };
        let spec = MonitorSpec { selection, jq_filter: None, keep_objects: true };
        monitors.start(MonitorId::new(1), &spec, &inbox);
        let end = tokio::time::Instant::now() + PATIENCE;
        let mut changes = Vec::new();
        while let Ok(Some(event)) = tokio::time::timeout_at(end, channels.next_event()).await {
            if let Event::WatchFailed { failure, .. } = &event {
                assert!(!failure.to_string().is_empty());
                assert!(!failure.to_string().contains("panicked"), "{failure}");
            }
            if matches!(event, Event::ObjectChanged { .. } | Event::Listed { .. }) {
                changes.push(event);
            }
        }
        changes
    });
    assert!(matches!(changes.first(), Some(Event::Listed { .. })), "{changes:?}");
    Told { changes, opened: opened.load(Ordering::Relaxed) }
}

type Answer = UnsyncBoxBody<Bytes, Infallible>;

fn text(text: &'static str) -> Answer {
    http_body_util::Full::new(Bytes::from_static(text.as_bytes())).boxed_unsync()
}

/// Returns a body of these pieces, which then ends or says nothing any more.
fn lasting(pieces: Vec<Bytes>, ends: bool) -> Answer {
    let pieces = stream::iter(pieces).map(|piece| Ok(Frame::data(piece)));
    let all: BoxStream<'static, _> =
        if ends { pieces.boxed() } else { pieces.chain(stream::pending()).boxed() };
    StreamBody::new(all).boxed_unsync()
}
