//! Clusters that outlive their server.

use apiserver::{ApiServer, StartError, StateError};
use serde_json::json;

use crate::{delete, get, post, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn kept_in(path: &std::path::Path) -> Result<ApiServer, StartError> {
    ApiServer::builder().state(path).build()
}

#[tokio::test]
async fn a_cluster_comes_back_with_its_revisions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let server = kept_in(&path).unwrap();
    let (_, created) = post(&server, MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    server.shutdown().await.unwrap();
    let server = kept_in(&path).unwrap();
    assert_eq!(get(&server, &format!("{MAPS}/a")).await.1, created);
    let (_, next) = post(&server, MAPS, json!({"metadata": {"name": "b"}})).await;
    let revision = |object: &serde_json::Value| -> u64 {
        object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    };
    assert!(revision(&next) > revision(&created));
}

#[tokio::test]
async fn a_deletion_that_the_end_of_the_server_cut_off_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let server = kept_in(&path).unwrap();
    post(&server, "/api/v1/namespaces", json!({"metadata": {"name": "going"}})).await;
    post(&server, "/api/v1/namespaces/going/configmaps", json!({"metadata": {"name": "a"}})).await;
    server.shutdown().await.unwrap();
    let kept = std::fs::read_to_string(&path).unwrap();
    let begun =
        kept.replacen(r#""name":"going""#, r#""name":"going","deletionTimestamp":"2026-01-01T00:00:00Z""#, 1);
    assert_ne!(kept, begun);
    std::fs::write(&path, begun).unwrap();
    let server = kept_in(&path).unwrap();
    get(&server, "/version").await;
    server.settled().await;
    assert_eq!(get(&server, "/api/v1/namespaces/going").await.0, 404);
    assert_eq!(get(&server, "/api/v1/namespaces/going/configmaps/a").await.0, 404);
}

#[tokio::test]
async fn a_broken_file_is_told_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let server = kept_in(&path).unwrap();
    server.shutdown().await.unwrap();
    let whole = std::fs::read_to_string(&path).unwrap();
    let cut = whole.lines().take(3).collect::<Vec<_>>().join("\n");
    for text in ["", "{}", "not JSON", &cut, &whole.replacen("/namespaces", "\u{7}", 1)] {
        std::fs::write(&path, text).unwrap();
        let error = kept_in(&path).unwrap_err().to_string();
        assert!(error.contains("is broken at line"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

fn make_pipe(path: &std::path::Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
}

#[tokio::test]
async fn slip_12_a_pipe_in_place_of_the_file_does_not_hang_the_start() {
    for name in ["state", "state.lock", "state.log", "state.log.1", "state.new"] {
        let directory = tempfile::tempdir().unwrap();
        make_pipe(&directory.path().join(name));
        let error = kept_in(&directory.path().join("state")).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("it is no regular file"), "{name}: {error}");
    }
}

#[tokio::test]
async fn slip_12_a_pipe_as_another_output_does_not_hang_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let (pipe, file) = (directory.path().join("pipe"), directory.path().join("file"));
    make_pipe(&pipe);
    for (option, kubeconfig, audit) in [("--kubeconfig-out", &pipe, &file), ("--audit", &file, &pipe)] {
        let options = apiserver::Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            kubeconfig_out: kubeconfig.clone(),
            simulate: None,
            state: None,
            audit: Some(audit.clone()),
        };
        let error = apiserver::run(options).await.unwrap_err().to_string();
        assert!(error.starts_with(option) && error.contains("pipe: it is no regular file"), "{error}");
    }
}

#[tokio::test]
async fn a_revision_that_the_cluster_cannot_have_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let file = |cluster: u64, object: u64| {
        let head = json!({"format": "addon-operator apiserver state 1", "revision": cluster});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}});
        let line = json!({"table": "/configmaps", "key": "default/a", "revision": object, "object": map});
        format!("{head}\n{line}\n{{\"objects\":1}}\n")
    };
    for (cluster, object, line) in [(u64::MAX, 7, "line 1"), (8, 9, "line 2"), (8, u64::MAX, "line 2")] {
        std::fs::write(&path, file(cluster, object)).unwrap();
        let error = kept_in(&path).unwrap_err().to_string();
        assert!(error.contains("the revision is") && error.contains(line), "{error}");
    }
    std::fs::write(&path, file(8, 8)).unwrap();
    kept_in(&path).unwrap().shutdown().await.unwrap();
}

#[tokio::test]
async fn slip_38_a_watch_that_goes_on_after_a_restart_is_told_that_its_revision_is_gone() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let server = kept_in(&path).unwrap();
    let revision =
        |object: &serde_json::Value| object["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    // Secrets come and go, so that the table is empty when the server starts again.
    let (_, secret) = post(&server, SECRETS, json!({"metadata": {"name": "a"}})).await;
    assert_eq!(delete(&server, &format!("{SECRETS}/a"), json!({})).await.0, 200);
    let (_, map) = post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    let before = revision(&map);
    post(&server, MAPS, json!({"metadata": {"name": "b"}})).await;
    server.shutdown().await.unwrap();
    let server = kept_in(&path).unwrap();
    for (path, old) in [(SECRETS, revision(&secret)), (MAPS, before)] {
        let path = format!("{path}?watch=1&timeoutSeconds=1&resourceVersion={old}");
        let events = watch(&server, &path, 1).await;
        assert_eq!(events[0]["object"]["code"], 410, "{events:?}");
    }
    let (_, list) = get(&server, SECRETS).await;
    post(&server, SECRETS, json!({"metadata": {"name": "b"}})).await;
    let path = format!("{SECRETS}?watch=1&timeoutSeconds=1&resourceVersion={}", revision(&list));
    assert_eq!(watch(&server, &path, 1).await[0]["object"]["metadata"]["name"], "b");
}

/// Defines a kind whose objects can be selected by their color; returns the status of the answer.
async fn define_things(server: &ApiServer) -> u16 {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "selectableFields": [{"jsonPath": ".spec.color"}], "schema": {"openAPIV3Schema": {"type": "object",
        "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}}}}]}});
    post(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await.0
}

#[tokio::test]
async fn a_definition_whose_verdict_the_end_of_the_server_cut_off_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let server = kept_in(&path).unwrap();
    assert_eq!(define_things(&server).await, 201);
    server.shutdown().await.unwrap();
    let kept = std::fs::read_to_string(&path).unwrap();
    let begun: Vec<String> = kept
        .lines()
        .map(|line| {
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            if let Some(object) = line.get_mut("object").and_then(serde_json::Value::as_object_mut)
                && object["metadata"]["name"] == "things.example.com"
            {
                assert!(object.remove("status").is_some());
            }
            line.to_string()
        })
        .collect();
    std::fs::write(&path, begun.join("\n")).unwrap();
    let server = kept_in(&path).unwrap();
    assert_eq!(get(&server, "/apis/example.com/v1/things").await.0, 200);
}

/// Starts a server on the state of another one that ended without an orderly end.
fn started_after_the_end_of(server: ApiServer, path: &std::path::Path) -> ApiServer {
    drop(server);
    loop {
        // A snapshot that had begun is written to its end first.
        match kept_in(path) {
            Err(StartError::State(StateError::InUse(_))) => std::thread::yield_now(),
            started => return started.unwrap(),
        }
    }
}

#[tokio::test]
async fn slip_38_a_server_without_an_orderly_end_comes_back_as_a_whole_cluster() {
    const SERVICES: &str = "/api/v1/namespaces/default/services";
    const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let server = kept_in(&path).unwrap();
    define_things(&server).await;
    let thing = |name: &str, color: &str| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"color": color}});
    for (name, color) in [("a", "red"), ("b", "blue")] {
        assert_eq!(post(&server, THINGS, thing(name, color)).await.0, 201);
    }
    let service = |name: &str| json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    let (_, first) = post(&server, SERVICES, service("first")).await;
    for name in ["kept", "gone"] {
        post(&server, MAPS, json!({"metadata": {"name": name}})).await;
    }
    let (_, page) = get(&server, &format!("{MAPS}?limit=1")).await;
    assert_eq!(delete(&server, &format!("{MAPS}/gone"), json!({})).await.0, 200);
    let (_, before) = get(&server, MAPS).await;

    let server = started_after_the_end_of(server, &path);
    assert_eq!(get(&server, MAPS).await.1["items"], before["items"]);
    let (_, red) = get(&server, &format!("{THINGS}?fieldSelector=spec.color%3Dred")).await;
    assert_eq!(red["items"].as_array().unwrap().len(), 1, "{red}");
    assert_eq!(red["items"][0]["metadata"]["name"], "a");
    assert_eq!(get(&server, &format!("{SERVICES}/first")).await.1, first);
    let (_, second) = post(&server, SERVICES, service("second")).await;
    assert_ne!(first["spec"]["clusterIP"], second["spec"]["clusterIP"]);
    let revision = |object: &serde_json::Value| -> u64 {
        object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    };
    assert!(revision(&second) > revision(&before), "{second} {before}");
    let more = page["metadata"]["continue"].as_str().unwrap();
    assert_eq!(get(&server, &format!("{MAPS}?limit=1&continue={more}")).await.0, 410);
}
