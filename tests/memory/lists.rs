//! The first list of a binding to many objects.

use addon_operator::cluster::Discovery;
use addon_operator::driver;
use addon_operator::kube::Monitors;
use apiserver::ApiServer;
use engine::hook::selection::{MonitorSpec, Selection};
use engine::{Event, MonitorId};
use http::{Request, StatusCode, header};
use kube::Client;
use serde_json::json;
use tower::ServiceExt as _;

use crate::{alone, counting, grown_by};

/// How many objects there are.
const OBJECTS: usize = 4_000;

/// How long the data of each is.
const DATA: usize = 4 << 10;

async fn fill(server: &ApiServer) {
    let data = "x".repeat(DATA);
    for number in 0..OBJECTS {
        let map = json!({"metadata": {"name": format!("object-{number}")}, "data": {"is": data}});
        let request = Request::post("/api/v1/namespaces/default/configmaps")
            .header(header::CONTENT_TYPE, "application/json")
            .body(kube::client::Body::from(map.to_string().into_bytes()));
        let response = server.service().oneshot(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
    }
}

#[test]
fn f_c10_the_first_list_of_thousands_of_objects_needs_little_more_than_what_is_kept() {
    let _alone = alone();
    let server = ApiServer::builder().build().unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(fill(&server));
    let mut kept = 0;
    let grown = grown_by(async {
        let before = counting::live();
        let client = Client::new(server.service(), "default");
        let mut monitors = Monitors::new(client.clone(), Discovery::new(client));
        let (inbox, _questions, mut channels) = driver::channels();
        let selection =
            Selection { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned(), ..Selection::default() };
        let spec = MonitorSpec { selection, jq_filter: None, keep_objects: true };
        monitors.start(MonitorId::new(1), &spec, &inbox);
        let Some(Event::Listed { lists }) = channels.next_event().await else {
            unreachable!("the list comes first");
        };
        assert!(lists.iter().all(|(_, objects)| objects.len() >= OBJECTS));
        kept = counting::live() - before;
    });
    let [kept_kib, most_kib] = [kept, grown].map(|bytes| bytes >> 10);
    assert!(kept >= OBJECTS * DATA, "{kept_kib} KiB are kept");
    assert!(most_kib * 10 <= kept_kib * 13, "{most_kib} KiB for a list of which {kept_kib} KiB are kept");
}
