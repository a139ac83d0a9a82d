//! Requests as they are sent, answers as they are taken.

use std::{convert::Infallible, error::Error as _, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{client::Body, core::WatchEvent};
use serde_json::{Value, json};

use super::*;
use crate::{Refusal as _, testing};

fn rest(
    answer: impl Fn(&testing::Seen) -> Response<Body> + Clone + Send + Sync + 'static,
) -> (testing::Log, RestClient) {
    let (log, client) = testing::client(answer);
    (log, RestClient::new(client))
}

/// A client whose server sends these frames, and then breaks off if `broken`.
fn framed(code: u16, frames: &'static [&'static str], broken: bool) -> RestClient {
    let service = tower::service_fn(move |_: Request<Body>| async move {
        let frames = stream::iter(frames).map(|text| Ok(Frame::data(Bytes::from_static(text.as_bytes()))));
        let end = stream::iter(broken.then(|| Err(std::io::Error::other("connection reset"))));
        let response = Response::builder().status(code).header("content-type", "application/json");
        Ok::<_, Infallible>(response.body(StreamBody::new(frames.chain(end))).unwrap())
    });
    RestClient::new(Client::new(service, "default"))
}

#[tokio::test]
async fn a_request_reads_as_it_is_put_together() {
    let (log, rest) = rest(|_| testing::json(200, &json!({})));
    let apps = rest.group_version("apps/v1");
    apps.get().namespace("shop").resource("deployments").bytes().await.unwrap();
    apps.get()
        .resource("deployments")
        .query("labelSelector", "a in (b, c),d!=e")
        .query("limit", "5")
        .bytes()
        .await
        .unwrap();
    apps.put()
        .namespace("shop")
        .resource("deployments")
        .name("web")
        .subresource("status")
        .bytes()
        .await
        .unwrap();
    rest.group_version("v1").delete().resource("nodes").name("n1").bytes().await.unwrap();
    rest.get().path("/healthz").bytes().await.unwrap();
    rest.get().path("api/v1/pods?limit=1").query("continue", "x+/=").bytes().await.unwrap();
    rest.get().bytes().await.unwrap();
    let raw = rest.verb(http::Method::OPTIONS).path("/api/v1").namespace("").resource("pods");
    raw.timeout(Duration::from_millis(1500)).bytes().await.unwrap();
    let rbac = rest.group_version("rbac.authorization.k8s.io/v1").get().resource("clusterroles");
    rbac.name("system:node é?#").bytes().await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "GET /apis/apps/v1/namespaces/shop/deployments",
            "GET /apis/apps/v1/deployments?labelSelector=a%20in%20%28b%2C%20c%29%2Cd%21%3De&limit=5",
            "PUT /apis/apps/v1/namespaces/shop/deployments/web/status",
            "DELETE /api/v1/nodes/n1",
            "GET /healthz",
            "GET /api/v1/pods?limit=1&continue=x%2B%2F%3D",
            "GET /",
            "OPTIONS /api/v1/pods?timeout=1.5s",
            "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system:node%20%C3%A9%3F%23",
        ]
    );
}

#[tokio::test]
async fn bodies_and_media_types_are_said_once() {
    let (log, rest) = rest(|_| testing::json(200, &json!({})));
    let core = rest.group_version("v1");
    core.post().resource("namespaces").json_body(&json!({ "a": 1 })).json::<Value>().await.unwrap();
    for (patch, _) in
        [(PatchType::Json, ""), (PatchType::Merge, ""), (PatchType::Strategic, ""), (PatchType::Apply, "")]
    {
        core.patch(patch).resource("nodes").name("n").json_body(&json!({})).bytes().await.unwrap();
    }
    core.get().resource("nodes").accept("application/vnd.kubernetes.protobuf").bytes().await.unwrap();
    let seen = log.all();
    let types: Vec<_> =
        seen.iter().filter_map(|seen| seen.headers.get("content-type")?.to_str().ok()).collect();
    assert_eq!(
        types,
        [
            "application/json",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml"
        ]
    );
    assert_eq!(seen[0].body, r#"{"a":1}"#);
    assert_eq!(seen[0].headers["accept"], "application/json");
    assert_eq!(seen[5].headers["accept"], "application/vnd.kubernetes.protobuf");
}

#[tokio::test]
async fn mistakes_are_told_and_nothing_is_sent() {
    let (log, rest) = rest(|_| testing::json(200, &json!({})));
    let core = rest.group_version("v1");
    let pods = || core.get().namespace("shop").resource("pods");
    for (request, word) in [
        (pods().name(""), "name is empty"),
        (pods().name("../secrets"), "may not contain"),
        (pods().name("a%2fb"), "may not contain"),
        (pods().name(".."), "may not be"),
        (core.get().namespace("a/b").resource("pods"), "namespace"),
        (core.get().namespace("shop"), "no resource"),
        (core.get().resource("pods").subresource("log"), "no name"),
        (core.get().resource("pods").header("bad header", "x"), "HTTP header"),
        (rest.get().path("/with space"), "URL"),
    ] {
        let error = request.bytes().await.unwrap_err();
        assert!(matches!(error, ApiError::Request { .. }), "{error}");
        assert!(error.to_string().contains(word), "{word}: {error}");
    }
    assert!(log.lines().is_empty());
}

#[tokio::test]
async fn refusals_carry_the_status_of_the_server() {
    let (_, rest) = rest(|seen| match seen.line.as_str() {
        "GET /forbidden" => {
            testing::refusal(403, "Forbidden", "nodes is forbidden: User \"bob\" cannot list")
        }
        "GET /missing" => testing::refusal(404, "NotFound", "pods \"web\" not found"),
        "POST /taken" => testing::refusal(409, "AlreadyExists", "pods \"web\" already exists"),
        "PUT /changed" => testing::refusal(409, "Conflict", "the object has been modified"),
        "GET /old" => testing::refusal(410, "Expired", "too old resource version: 1 (7)"),
        "GET /busy?watch=true" => {
            let mut busy = testing::refusal(429, "TooManyRequests", "please try again later");
            busy.headers_mut().insert("retry-after", "3".parse().unwrap());
            busy
        }
        line => panic!("{line}"),
    });
    let forbidden = rest.get().path("/forbidden").bytes().await.unwrap_err();
    assert!(forbidden.is_forbidden());
    assert_eq!(
        forbidden.to_string(),
        "GET /forbidden: nodes is forbidden: User \"bob\" cannot list (403 Forbidden)"
    );
    let missing = rest.get().path("/missing").json::<Pod>().await.unwrap_err();
    assert!(missing.is_not_found());
    assert_eq!(missing.status().unwrap().message, "pods \"web\" not found");
    assert!(rest.post().path("/taken").bytes().await.unwrap_err().is_already_exists());
    assert!(rest.put().path("/changed").bytes().await.unwrap_err().is_conflict());
    assert!(rest.get().path("/old").stream().await.unwrap_err().is_gone());
    let busy = rest.get().path("/busy").watch::<Pod>().await.unwrap_err();
    assert!(busy.is_too_many_requests());
    assert_eq!(busy.retry_after(), Some(Duration::from_secs(3)));
}

#[tokio::test]
async fn error_pages_become_a_status_without_their_text() {
    let (_, rest) = rest(|seen| {
        let (method, code) = seen.line.split_once(" /").unwrap();
        let code = code.parse().unwrap();
        let mut page = testing::text(code, "text/html", "<html>hunter2</html>");
        if method == "GET" {
            page.headers_mut().insert("retry-after", "7".parse().unwrap());
        }
        page
    });
    let get = |code: u16| rest.get().path(format!("/{code}")).bytes();
    let error = get(500).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "GET /500: the server answered with 20 bytes of text/html instead of a Status (500 Internal Server Error)"
    );
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(get(404).await.unwrap_err().is_not_found());
    assert!(get(401).await.unwrap_err().is_unauthorized());
    assert!(get(503).await.unwrap_err().is_service_unavailable());
    assert!(get(504).await.unwrap_err().is_timeout());
    assert!(get(302).await.unwrap_err().status().is_some(), "a redirect is no success");
    assert!(rest.post().path("/409").bytes().await.unwrap_err().is_already_exists());
    assert!(rest.put().path("/409").bytes().await.unwrap_err().is_conflict());
}

#[tokio::test]
async fn json_that_merely_looks_like_a_status_is_none() {
    let (_, rest) =
        rest(|_| testing::json(500, &json!({ "message": "hunter2", "reason": "hunter2", "code": 404 })));
    let error = rest.get().path("/x").bytes().await.unwrap_err();
    assert_eq!(error.status().unwrap().code, 500);
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn answers_of_the_wrong_shape_name_type_and_place() {
    let (_, rest) = rest(|seen| match seen.line.as_str() {
        "GET /broken" => testing::text(200, "application/json", "{\"metadata\": {\n \"name\": hunter2}}"),
        "GET /wrong" => testing::json(200, &json!({ "data": "hunter2" })),
        _ => testing::text(200, "application/json", ""),
    });
    for (path, place) in
        [("/broken", "line 2, column"), ("/wrong", "line 1, column"), ("/empty", "ends too early")]
    {
        let error = rest.get().path(path).json::<ConfigMap>().await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, ApiError::Decode { .. }), "{text}");
        assert!(text.contains(place) && text.contains("ConfigMap") && text.contains(path), "{text}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_told_with_how_much_came() {
    let rest = framed(200, &["{\"meta", "data\":"], true);
    let error = rest.get().path("/x").json::<Pod>().await.unwrap_err();
    assert!(matches!(error, ApiError::Interrupted { received: 12, .. }), "{error:?}");
    let mut source = error.source();
    let mut chain = String::new();
    while let Some(error) = source {
        chain.push_str(&error.to_string());
        source = error.source();
    }
    assert!(chain.contains("connection reset"), "{chain}");
    // A refusal that breaks off is still a refusal.
    let error = framed(403, &["{\"kind\":\"Sta"], true).get().path("/x").bytes().await.unwrap_err();
    assert!(error.is_forbidden(), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_transport_error_that_keeps_its_cause() {
    let service = tower::service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, _>(std::io::Error::new(
            std::io::ErrorKind::ConnectionRefused,
            "connection refused",
        ))
    });
    let rest = RestClient::new(Client::new(service, "default"));
    let error = rest.get().path("/x").bytes().await.unwrap_err();
    assert!(matches!(error, ApiError::Transport { .. }), "{error:?}");
    assert!(error.to_string().contains("connection refused"), "{error}");
    let fault = error.source().unwrap();
    let io = fault.source().and_then(|source| source.downcast_ref::<std::io::Error>()).unwrap();
    assert_eq!(io.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let service =
        tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>());
    let rest = RestClient::new(Client::new(service, "default"));
    let error = rest.get().path("/x").timeout(Duration::from_secs(5)).bytes().await.unwrap_err();
    assert!(error.to_string().contains("gave up after 5 seconds"), "{error}");
}

#[tokio::test]
async fn a_body_can_be_had_as_it_comes() {
    let rest = framed(200, &["one ", "two ", "three"], false);
    let frames: Vec<Bytes> = rest.get().path("/log").stream().await.unwrap().try_collect().await.unwrap();
    assert_eq!(frames, ["one ", "two ", "three"]);
    assert_eq!(rest.get().path("/log").bytes().await.unwrap(), "one two three");

    let rest = framed(200, &["one "], true);
    let mut frames = rest.get().path("/log").stream().await.unwrap();
    assert_eq!(frames.next().await.unwrap().unwrap(), "one ");
    assert!(matches!(frames.next().await, Some(Err(ApiError::Interrupted { received: 4, .. }))));
    assert!(frames.next().await.is_none(), "after an error there is nothing");
}

#[tokio::test]
async fn a_watch_yields_events_across_frames_and_ends_between_two() {
    let rest = framed(
        200,
        &[
            "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n{\"type\":\"MODI",
            "FIED\",\"object\":{\"metadata\":{\"name\":\"b\"}}}\n\n",
            "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"}}}\n",
        ],
        false,
    );
    let events = rest.group_version("v1").get().resource("pods").watch::<Pod>().await.unwrap();
    let events: Vec<_> = events.map_ok(|event| format!("{event:?}")).try_collect().await.unwrap();
    assert_eq!(events, ["Added event", "Modified event", "Bookmark event"]);
}

#[tokio::test]
async fn one_event_that_does_not_fit_does_not_stop_the_watch() {
    let rest = framed(
        200,
        &[
            "{\"type\":\"ADDED\",\"object\":{\"spec\":\"hunter2\"}}\n",
            "{\"type\":\"DELETED\",\"object\":{}}\n",
        ],
        false,
    );
    let mut events = rest.group_version("v1").get().resource("pods").watch::<Pod>().await.unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert!(
        matches!(error, ApiError::Decode { .. }) && !format!("{error:?}").contains("hunter2"),
        "{error:?}"
    );
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Deleted(_)))));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn an_error_event_ends_the_watch_as_a_refusal() {
    let rest = framed(
        200,
        &[
            "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"old\"}}\n{\"type\":\"ADDED\",\"object\":{}}\n",
        ],
        false,
    );
    let mut events = rest.group_version("v1").get().resource("pods").watch::<Pod>().await.unwrap();
    assert!(events.next().await.unwrap().unwrap_err().is_gone());
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_watch_that_breaks_off_inside_an_event_says_so() {
    for broken in [false, true] {
        let rest = framed(200, &["{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"ADD"], broken);
        let mut events = rest.group_version("v1").get().resource("pods").watch::<Pod>().await.unwrap();
        assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
        assert!(matches!(events.next().await, Some(Err(ApiError::Interrupted { .. }))), "broken: {broken}");
        assert!(events.next().await.is_none());
    }
}

#[tokio::test]
async fn watches_and_streams_ask_not_to_be_compressed() {
    let (log, rest) = rest(|_| testing::text(200, "application/json", ""));
    rest.get().path("/log").stream().await.unwrap();
    rest.group_version("v1")
        .get()
        .resource("pods")
        .query("resourceVersion", "5")
        .watch::<Pod>()
        .await
        .unwrap();
    for seen in log.all() {
        assert_eq!(seen.headers["accept-encoding"], "identity", "{}", seen.line);
    }
    assert_eq!(log.lines()[1], "GET /api/v1/pods?resourceVersion=5&watch=true");
}
