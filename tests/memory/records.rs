//! A namespace full of records of releases.

use std::collections::BTreeMap;
use std::time::Duration;

use addon_operator::cluster::Discovery;
use addon_operator::helm::{Helm, Settings};
use apiserver::ApiServer;
use http::{Request, StatusCode, header};
use kube::Client;
use serde_json::json;
use tower::ServiceExt as _;

use crate::{alone, grown_by};

const NAMESPACE: &str = "default";

/// How many records there are.
const RECORDS: usize = 6_000;

/// How long each is.
const RECORD: usize = 8 << 10;

/// The owner that labels of an operator in this namespace, with its usual ConfigMap, name.
const OWNER: &str = "b1b17aec2e6b1a09";

/// What may be held while they are listed, by the server too: a page has a thousand, and of each release the name is
/// kept. Whole records would be more than twice as much.
const MOST: usize = 17 << 20;

async fn fill(server: &ApiServer) {
    let data = "QUFB".repeat(RECORD / 4);
    for number in 0..RECORDS {
        let name = format!("sh.helm.release.v1.other-{}.v{}", number / 10, number % 10 + 1);
        let labels = json!({"name": format!("other-{}", number / 10), "owner": "helm", "status": "superseded",
            "addon-operator.io/owner": OWNER, "version": (number % 10 + 1).to_string()});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": {"name": name, "labels": labels}, "data": {"release": data}});
        let request = Request::post(format!("/api/v1/namespaces/{NAMESPACE}/secrets"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(kube::client::Body::from(secret.to_string().into_bytes()));
        let response = server.service().oneshot(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
    }
}

#[test]
fn f_a21_a_list_of_six_thousand_records_holds_a_page_of_their_labels() {
    let _alone = alone();
    let server = ApiServer::builder().build().unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(fill(&server));
    let grown = grown_by(async {
        let client = Client::new(server.service(), NAMESPACE);
        let settings = Settings {
            namespace: NAMESPACE.to_owned(),
            config_map: "addon-operator".to_owned(),
            extra_labels: BTreeMap::from([("heritage".to_owned(), "addon-operator".to_owned())]),
            history_max: 3,
            timeout: Duration::from_secs(5),
        };
        let helm = Helm::new(client.clone(), Discovery::new(client), settings);
        assert_eq!(helm.list().await.unwrap().len(), RECORDS / 10);
    });
    assert!(grown < MOST, "{grown} bytes were held, at most {MOST} are allowed");
}
