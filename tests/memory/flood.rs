//! A minute with ten thousand changes a second, as fast as they are taken.

#![expect(clippy::wildcard_enum_match_arm, clippy::panic, reason = "watches tell few of all events")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use addon_operator::cluster::Discovery;
use addon_operator::driver;
use addon_operator::kube::Monitors;
use apiserver::ApiServer;
use bytes::Bytes;
use engine::hook::WatchEvent;
use engine::hook::selection::{MonitorSpec, Namespaces, Selection};
use engine::snapshot::{Change, Key, Snapshot};
use engine::{Event, MonitorId};
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use kube::Client;
use kube::client::Body;
use tower::Service as _;

use crate::{alone, grown_by};

/// All changes: ten thousand a second, for a minute.
const EVENTS: usize = 600_000;

/// How many objects change, one after the other.
const OBJECTS: usize = 20;

/// How many changes come in one piece.
const PIECE: usize = 500;

/// How many times each object changes.
const ROUNDS: usize = EVENTS / OBJECTS;

/// Returns one line of the watch. In every hundredth round the objects go, and come back in the next.
fn line(text: &mut String, n: usize) {
    let (name, round) = (n % OBJECTS, n / OBJECTS);
    let event = match round % 100 {
        98 => "DELETED",
        99 => "ADDED",
        // The list was empty.
        _ if round == 0 => "ADDED",
        _ => "MODIFIED",
    };
    let version = 1_000_000 + n;
    let padding = "x".repeat(50);
    let _ = writeln!(
        text,
        r#"{{"type":"{event}","object":{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"o{name}","namespace":"flooded","resourceVersion":"{version}"}},"data":{{"round":"{round}","padding":"{padding}"}}}}}}"#
    );
}

fn piece(number: usize) -> Bytes {
    let mut text = String::new();
    for n in number * PIECE..(number + 1) * PIECE {
        line(&mut text, n);
    }
    text.into()
}

/// Returns a client whose watch of config maps tells all changes as fast as anybody takes them.
fn flooding(server: &ApiServer) -> Client {
    let server = server.service();
    let service = tower::service_fn(move |request: Request<Body>| {
        let mut server = server.clone();
        async move {
            let uri = request.uri().to_string();
            let is_flood = uri.contains("configmaps") && uri.contains("watch=true");
            if !is_flood {
                let response = server.call(request).await?;
                return Ok::<_, tower::BoxError>(
                    response.map(|body| body.map_err(tower::BoxError::from).boxed_unsync()),
                );
            }
            let pieces = (0..EVENTS / PIECE)
                .map(|number| Ok::<_, tower::BoxError>(hyper::body::Frame::data(piece(number))));
            let all = futures::stream::iter(pieces).chain(futures::stream::pending());
            Ok(Response::new(StreamBody::new(all).boxed_unsync()))
        }
    });
    Client::new(service, "default")
}

/// What a hook would have heard.
#[derive(Default)]
struct Heard {
    snapshot: Snapshot,
    /// The last round that was told of each object, and whether it was gone then.
    last: BTreeMap<Key, (usize, bool)>,
    deletions: usize,
    changes: usize,
}

impl Heard {
    fn take(&mut self, event: Event) {
        let (key, is_gone, items) = match event {
            Event::Listed { lists } => {
                assert!(lists.iter().all(|(_, objects)| objects.is_empty()));
                return;
            }
            Event::ObjectChanged { key, is_gone, items } => (key, is_gone, items),
            other => panic!("the watch told {other:?}"),
        };
        for (_, item) in items {
            let change = if is_gone {
                self.snapshot.remove(&key, Some(item))
            } else {
                self.snapshot.put(key.clone(), item)
            };
            if let Some(change) = change {
                self.note(change);
            }
        }
    }

    fn note(&mut self, change: Change) {
        let round = std::str::from_utf8(change.item.filter_result().unwrap()).unwrap().parse().unwrap();
        let is_gone = change.event == WatchEvent::Deleted;
        let is_new = change.event == WatchEvent::Added;
        let (before, was_gone) = self.last.insert(change.key, (round, is_gone)).unwrap_or((0, true));
        assert!(round >= before, "round {round} after round {before}");
        assert_eq!(is_new, was_gone, "an object is new once it was gone, and only then");
        self.deletions += usize::from(is_gone);
        self.changes += 1;
    }

    fn is_complete(&self) -> bool {
        let last = (ROUNDS - 1).to_string();
        let is_last = |(_, item): (&Key, &std::sync::Arc<engine::snapshot::Item>)| {
            item.filter_result() == Some(last.as_bytes())
        };
        self.snapshot.len() == OBJECTS && self.snapshot.iter().all(is_last)
    }
}

#[test]
fn ten_thousand_changes_a_second_for_a_minute_are_taken_in_bounded_memory() {
    let _alone = alone();
    let mut heard = Heard::default();
    let grown = grown_by(async {
        let server = ApiServer::builder().seed(1).simulate(Duration::ZERO).build().unwrap();
        let client = flooding(&server);
        let mut monitors = Monitors::new(client.clone(), Discovery::new(client));
        let (inbox, _, mut channels) = driver::channels();
        let selection = Selection {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespaces: Namespaces::Named(["flooded".to_owned()].into()),
            ..Selection::default()
        };
        let filter = Some(".data.round | tonumber".to_owned());
        let spec = MonitorSpec { selection, jq_filter: filter, keep_objects: false };
        monitors.start(MonitorId::new(1), &spec, &inbox);
        let hearing = async {
            while !heard.is_complete() {
                heard.take(channels.next_event().await.unwrap());
            }
        };
        tokio::time::timeout(Duration::from_mins(5), hearing).await.unwrap();
    });
    assert_eq!(heard.deletions, EVENTS / 100, "no deletion is lost");
    assert!(heard.changes >= 3 * heard.deletions, "{} changes", heard.changes);
    // The embedded API server is a part of it.
    assert!(grown < 16 << 20, "{grown} bytes were held");
}
