//! Kubernetes Events about modules, as the API server keeps them.

use std::time::Duration;

use addon_operator::kube::EventRecorder;
use apiserver::ApiServer;
use engine::Announcement;
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};

#[tokio::test]
async fn a_module_that_fails_is_told_on_the_config_map() {
    let server = ApiServer::builder().build().unwrap();
    let client = Client::new(server.service(), "default");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let metadata = ObjectMeta { name: Some("addon-operator".to_owned()), ..ObjectMeta::default() };
    let map =
        maps.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
    let events = EventRecorder::start(client.clone(), "default", "addon-operator");
    let message = format!("module web is failed: {}", "x".repeat(3_000));
    events.record(Announcement { module: "web".into(), warning: true, reason: "ModuleFailed", message });
    let written: Api<Event> = Api::namespaced(client, "default");
    let seen = watcher(written, watcher::Config::default()).applied_objects();
    let mut seen = std::pin::pin!(seen);
    let event =
        tokio::time::timeout(Duration::from_secs(30), seen.try_next()).await.unwrap().unwrap().unwrap();
    let about = event.involved_object;
    assert_eq!((about.kind.as_deref(), about.name.as_deref()), (Some("ConfigMap"), Some("addon-operator")));
    assert_eq!(about.uid, map.metadata.uid, "kubectl describe looks for the identity");
    assert_eq!((event.type_.as_deref(), event.reason.as_deref()), (Some("Warning"), Some("ModuleFailed")));
    let message = event.message.unwrap();
    assert!(message.starts_with("module web is failed: xxx") && message.len() <= 1024, "{message}");
}
