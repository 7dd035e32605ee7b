//! Requests that are refused: in the order and with the words of the real server.

use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::requests::{MAPS, with_accept};
use crate::{get, post, send, server};

#[tokio::test]
async fn slip_37_the_options_of_a_deletion_are_read_by_their_type() {
    let server = server();
    post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    let map = format!("{MAPS}/a");
    for (body, status, message) in [
        (
            r#"{"dryRun":"All"}"#,
            500,
            "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string",
        ),
        (
            r#"{"preconditions":{"uid":1}}"#,
            500,
            "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID",
        ),
        (
            r#"{"kind":"Nope"}"#,
            500,
            "no kind \"Nope\" is registered for version \"meta.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:110\"",
        ),
        (r#"{"apiVersion":"x/y/z"}"#, 500, "unexpected GroupVersion string: x/y/z"),
    ] {
        for path in [&map, MAPS] {
            let (code, answer) = send(server.service(), Method::DELETE, path, "application/json", body).await;
            assert_eq!((code, answer["message"].as_str()), (status, Some(message)), "{path} {body}");
        }
    }
    assert_eq!(get(&server, &map).await.0, 200, "nothing of that deletes");
    let options = r#"{"kind":"DeleteOptions","apiVersion":"apps/v1","bogus":1}"#;
    let (code, answer) = send(server.service(), Method::DELETE, &map, "application/json", options).await;
    assert_eq!(code, 200, "{answer}");
}

const FOOS: &str = "/apis/h.io/v1/namespaces/default/foos";

async fn define_foos(server: &apiserver::ApiServer) {
    let definition = json!({
        "metadata": {"name": "foos.h.io"},
        "spec": {
            "group": "h.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    let (status, answer) =
        post(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test]
async fn slip_37_a_method_that_is_not_there_is_refused_before_forms_are_compared() {
    let server = server();
    define_foos(&server).await;
    let not_allowed = "the server does not allow this method on the requested resource";
    let unknown = "the server could not find the requested resource";
    for (method, path, status, message) in [
        (Method::TRACE, format!("{MAPS}/a"), 405, not_allowed),
        (Method::PATCH, MAPS.to_owned(), 405, not_allowed),
        (Method::POST, format!("{MAPS}/a"), 405, not_allowed),
        (Method::GET, format!("{MAPS}/a/binding"), 404, unknown),
        (Method::OPTIONS, format!("{FOOS}/a"), 405, " is not supported on resources of kind \"foos.h.io\""),
        (
            Method::DELETE,
            format!("{FOOS}/a/status"),
            405,
            "delete is not supported on resources of kind \"foos.h.io\"",
        ),
        (Method::PUT, FOOS.to_owned(), 400, "name must be provided"),
        (Method::GET, format!("{FOOS}/a/nope"), 404, "foos.h.io \"a\" not found"),
    ] {
        let request = Request::builder().method(method.clone()).uri(&path).header("accept", "text/html");
        let answer = server.service().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((code, body["message"].as_str()), (status, Some(message)), "{method} {path}");
    }
    for (method, path, status) in [
        (Method::HEAD, MAPS, 405),
        (Method::HEAD, "/version", 405),
        (Method::HEAD, FOOS, 200),
        (Method::HEAD, "/healthz", 200),
        (Method::DELETE, "/apis/h.io/v1/foos", 404),
        (Method::PUT, "/apis/h.io/v1/foos/a", 404),
    ] {
        assert_eq!(send(server.service(), method.clone(), path, "", "").await.0, status, "{method} {path}");
    }
}

#[tokio::test]
async fn slip_37_a_client_that_takes_none_of_the_forms_is_told_which_there_are() {
    let server = server();
    define_foos(&server).await;
    post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    let listed = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let known = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let watched =
        format!("{listed}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch");
    for (path, accept, message) in [
        (format!("{MAPS}/a"), "application/*", listed),
        (MAPS.to_owned(), "text/html", &watched),
        (format!("{MAPS}/a"), "application/json;as=Nope;v=v1;g=meta.k8s.io", known),
        (FOOS.to_owned(), "text/html", known),
    ] {
        let (code, answer) = with_accept(&server, &path, accept).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((code, answer["message"].as_str()), (406, Some(message)), "{path} {accept}");
    }
    let (code, answer) = with_accept(&server, &format!("{MAPS}?watch=1"), "application/yaml").await;
    assert_eq!(code, 406);
    assert!(answer.starts_with("apiVersion: v1\ncode: 406\nkind: Status\nmessage: "), "{answer}");
    let (code, answer) =
        with_accept(&server, &format!("{MAPS}/b"), "text/plain,application/yaml;q=0.5").await;
    assert_eq!(code, 404);
    assert_eq!(
        answer,
        "apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n  name: b\nkind: Status\nmessage: configmaps \"b\" not found\nmetadata: {}\nreason: NotFound\nstatus: Failure\n"
    );
}

#[tokio::test]
async fn slip_37_names_and_bodies_are_refused_in_the_order_of_the_real_server() {
    let server = server();
    let undetermined = "the name of the object (a based on URL) was undeterminable: name must be provided";
    for (method, path, media_type, body, status, message) in [
        (Method::GET, format!("{MAPS}/.."), "", "", 400, "Name parameter invalid: \"..\": may not be '..'"),
        (
            Method::DELETE,
            format!("{MAPS}/%25"),
            "",
            "",
            400,
            "Name parameter invalid: \"%\": may not contain '%'",
        ),
        (
            Method::PATCH,
            format!("{MAPS}/nope"),
            "application/strategic-merge-patch+json",
            "{",
            404,
            "configmaps \"nope\" not found",
        ),
        (
            Method::PUT,
            "/apis/coordination.k8s.io/v1/namespaces/default/leases/a".to_owned(),
            "application/json",
            r#"{"spec":{"holderIdentity":"x"}}"#,
            400,
            undetermined,
        ),
        (
            Method::PUT,
            format!("{MAPS}/nope"),
            "application/json",
            r#"{"data":{"k":1}}"#,
            400,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            Method::POST,
            format!("{MAPS}?fieldValidation=all"),
            "*/*",
            "{}",
            415,
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ),
        (
            Method::GET,
            format!("{MAPS}/nope?export=1"),
            "",
            "",
            400,
            "the export parameter, deprecated since v1.14, is no longer supported",
        ),
        (
            Method::GET,
            "/version?timeout=x".to_owned(),
            "",
            "",
            400,
            "invalid timeout specified in the request URL - time: invalid duration \"x\"",
        ),
    ] {
        let (code, answer) = send(server.service(), method.clone(), &path, media_type, body).await;
        assert_eq!((code, answer["message"].as_str()), (status, Some(message)), "{method} {path}");
    }
    let map = r#"{"metadata":{"name":"a"}}"#;
    let (code, answer) =
        send(server.service(), Method::POST, MAPS, "APPLICATION/JSON; charset=utf-8", map).await;
    assert_eq!(code, 201, "{answer}");
}

#[tokio::test]
async fn slip_37_what_is_deprecated_is_warned_of_first_and_a_job_that_is_not_there_as_well() {
    let server = server();
    let warnings = async |method: Method, path: &str, body: &'static str| -> Vec<String> {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let answer = server.service().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let texts = answer.headers().get_all("warning").iter();
        texts.map(|text| text.to_str().unwrap().to_owned()).collect()
    };
    let endpoints = "/api/v1/namespaces/default/endpoints";
    let told = warnings(Method::POST, endpoints, r#"{"metadata":{"name":"a"},"bogus":1}"#).await;
    assert!(told[0].contains("v1 Endpoints is deprecated") && told[1].contains("bogus"), "{told:?}");
    assert!(warnings(Method::PATCH, endpoints, "{}").await.is_empty(), "no such method, no warning");
    let told = warnings(Method::DELETE, "/apis/batch/v1/namespaces/default/jobs/nope", "").await;
    assert!(told[0].contains("child pods are preserved by default"), "{told:?}");
}

#[tokio::test]
async fn slip_37_what_cannot_be_read_of_selectors_pages_and_patches_is_told_as_by_the_real_server() {
    let server = server();
    define_foos(&server).await;
    post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    let foo = json!({"apiVersion": "h.io/v1", "kind": "Foo", "metadata": {"name": "a"}});
    post(&server, FOOS, foo).await;
    for (query, status, message) in [
        ("labelSelector=a===b", 400, "unable to parse requirement: found '=', expected: identifier"),
        ("fieldSelector=a===b", 400, "invalid field selector: unescaped character in value: 61"),
        (
            "continue=x&resourceVersion=1",
            400,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 0",
        ),
        (
            "resourceVersion=%2B1",
            400,
            "invalid resource version: resourceVersion: Invalid value: \"+1\": strconv.ParseUint: parsing \"+1\": invalid syntax",
        ),
    ] {
        let (code, answer) = get(&server, &format!("{MAPS}?{query}")).await;
        assert_eq!((code, answer["message"].as_str()), (status, Some(message)), "{query}");
    }
    assert_eq!(get(&server, &format!("{MAPS}?labelSelector=A.b%2Fc")).await.0, 400);
    let map = format!("{MAPS}/a");
    let foo = format!("{FOOS}/a");
    for (path, media_type, body, status, end) in [
        (&map, "application/strategic-merge-patch+json", "{", 400, "unexpected end of JSON input"),
        (
            &map,
            "application/merge-patch+json",
            "{",
            400,
            "error decoding patch: unexpected end of JSON input",
        ),
        (
            &foo,
            "application/merge-patch+json",
            r#"{"metadata":{"ownerReferences":[{"kind":1}]}}"#,
            422,
            "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.kind of type string",
        ),
        (
            &foo,
            "application/merge-patch+json",
            r#"{"metadata":[]}"#,
            422,
            "json: cannot unmarshal array into Go value of type v1.ObjectMeta",
        ),
    ] {
        let (code, answer) = send(server.service(), Method::PATCH, path, media_type, body).await;
        let message = answer["message"].as_str().unwrap();
        let is_so = if status == 400 { message == end } else { message.ends_with(end) };
        assert!(code == status && is_so, "{path} {body}: {answer}");
    }
    let (code, answer) =
        send(server.service(), Method::POST, MAPS, "application/json", r#"{"apiVersion":"a/b/c"}"#).await;
    assert_eq!(code, 400);
    assert!(
        answer["message"].as_str().unwrap().contains("unexpected GroupVersion string: a/b/c ("),
        "{answer}"
    );
}
