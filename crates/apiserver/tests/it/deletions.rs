//! Deletions of many objects, and of objects that are ending already.

use apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};

use crate::{delete, get, merge, post, send, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// A server with five objects that have a label, and one that has none.
async fn filled() -> ApiServer {
    let server = server();
    for name in ["a", "b", "c", "d", "e"] {
        let map = json!({"metadata": {"name": name, "labels": {"l": "1"}}});
        assert_eq!(post(&server, MAPS, map).await.0, 201);
    }
    assert_eq!(post(&server, MAPS, json!({"metadata": {"name": "other"}})).await.0, 201);
    server
}

async fn delete_all(server: &ApiServer, query: &str) -> (u16, Value) {
    let path = format!("{MAPS}?labelSelector=l{query}");
    send(server.service(), Method::DELETE, &path, "", "").await
}

async fn left(server: &ApiServer) -> usize {
    names(&get(server, &format!("{MAPS}?labelSelector=l")).await.1).len()
}

#[tokio::test]
async fn slip_27_a_deletion_of_a_collection_deletes_as_many_as_its_limit_says() {
    let server = filled().await;
    let (status, dry) = delete_all(&server, "&limit=2&dryRun=All").await;
    assert_eq!((status, names(&dry), left(&server).await), (200, vec!["a", "b"], 5));
    let (status, first) = delete_all(&server, "&limit=2").await;
    assert_eq!((status, names(&first), left(&server).await), (200, vec!["a", "b"], 3));
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (status, rest) = delete_all(&server, &format!("&limit=2&continue={token}")).await;
    assert_eq!((status, names(&rest), left(&server).await), (200, vec!["c", "d"], 1));
    let (status, rest) = delete_all(&server, "&limit=0").await;
    assert_eq!((status, names(&rest), left(&server).await), (200, vec!["e"], 0));
    assert_eq!(names(&get(&server, MAPS).await.1), ["other"]);
}

#[tokio::test]
async fn slip_27_a_deletion_of_a_collection_whose_list_is_refused_deletes_nothing() {
    let server = filled().await;
    let modified = "the ResourceVersion in the precondition (0) does not match the ResourceVersion in record";
    for (query, status, message) in [
        ("&continue=zzz", 400, "invalid continue token"),
        ("&limit=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
        ("&resourceVersion=x", 400, "invalid resource version"),
        ("&resourceVersion=999999999", 504, "Too large resource version"),
        ("&resourceVersion=0", 409, modified),
        ("&resourceVersion=0&limit=1", 409, modified),
        ("&resourceVersionMatch=NotOlderThan", 422, "forbidden unless resourceVersion is provided"),
        ("&resourceVersion=0&resourceVersionMatch=Nope", 422, "Unsupported value: \"Nope\""),
        ("&sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
        ("&uid=nope", 409, "the UID in the precondition (nope) does not match"),
    ] {
        let (code, answer) = delete_all(&server, query).await;
        let told = answer["message"].as_str().unwrap_or_default();
        assert!(code == status && told.contains(message), "{query}: {answer}");
        assert_eq!(left(&server).await, 5, "{query}");
    }
    // What is not there in that version is not there to be deleted.
    let (status, none) = delete_all(&server, "&resourceVersion=1&resourceVersionMatch=Exact").await;
    assert_eq!((status, names(&none).len(), left(&server).await), (200, 0, 5));
}

#[tokio::test]
async fn slip_27_preconditions_can_be_in_the_query() {
    let server = filled().await;
    let revision = get(&server, &format!("{MAPS}/a")).await.1["metadata"]["resourceVersion"].clone();
    merge(&server, &format!("{MAPS}/a"), json!({"data": {"k": "v"}})).await;
    for query in ["uid=nope".to_owned(), format!("resourceVersion={}", revision.as_str().unwrap())] {
        let path = format!("{MAPS}/a?{query}");
        assert_eq!(send(server.service(), Method::DELETE, &path, "", "").await.0, 409, "{query}");
        assert_eq!(get(&server, &format!("{MAPS}/a")).await.0, 200, "{query}");
    }
    let (_, map) = get(&server, &format!("{MAPS}/a")).await;
    let uid = map["metadata"]["uid"].as_str().unwrap();
    assert_eq!(send(server.service(), Method::DELETE, &format!("{MAPS}/a?uid={uid}"), "", "").await.0, 200);
}

#[tokio::test]
async fn slip_27_a_pod_that_is_ending_ends_as_it_was_told_first() {
    let server = server();
    let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    assert_eq!(post(&server, PODS, json!({"metadata": {"name": "p"}, "spec": spec})).await.0, 201);
    let pod = format!("{PODS}/p");
    let (_, first) = delete(&server, &pod, json!({})).await;
    assert_eq!(first["metadata"]["deletionGracePeriodSeconds"], 30);
    for options in [
        json!({}),
        json!({"propagationPolicy": "Foreground"}),
        json!({"propagationPolicy": "Orphan"}),
        json!({"gracePeriodSeconds": 30, "propagationPolicy": "Foreground"}),
        json!({"gracePeriodSeconds": 50}),
    ] {
        let (status, answer) = delete(&server, &pod, options.clone()).await;
        assert_eq!((status, &answer["metadata"]), (200, &first["metadata"]), "{options}");
    }
    // Less time is possible. It begins when the pod was told.
    let (_, sooner) = delete(&server, &pod, json!({"gracePeriodSeconds": 5})).await;
    let time = |pod: &Value| pod["metadata"]["deletionTimestamp"].as_str().unwrap().parse().unwrap();
    let (first, last): (jiff::Timestamp, jiff::Timestamp) = (time(&first), time(&sooner));
    assert_eq!((first - last).get_seconds(), 25);
    assert_eq!(sooner["metadata"]["deletionGracePeriodSeconds"], 5);
    assert_eq!(sooner["metadata"]["finalizers"], Value::Null);
    assert_eq!(delete(&server, &pod, json!({"gracePeriodSeconds": 0})).await.0, 200);
    assert_eq!(get(&server, &pod).await.0, 404);
}
