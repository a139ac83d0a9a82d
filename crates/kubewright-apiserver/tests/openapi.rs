//! Tests of `/openapi/v3` and `/openapi/v2` over HTTP, including caching.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kubewright_apiserver::{ApiServer, authn::User};
use serde_json::Value;
use tower::ServiceExt;

/// Status, headers and body of a response.
struct Answer {
    status: StatusCode,
    headers: http::HeaderMap,
    body: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|v| v.to_str().expect("plain text")).unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

async fn get(server: &ApiServer, path: &str, headers: &[(&str, &str)]) -> Answer {
    let groups = vec!["system:masters".into()];
    let service = server.service().for_peer(User { name: "admin".into(), groups, ..User::default() });
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::new())).expect("a request");
    let (parts, body) = service.oneshot(request).await.expect("an answer").into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    Answer { status: parts.status, headers: parts.headers, body }
}

#[tokio::test]
async fn the_index_links_to_immutable_documents() {
    let server = ApiServer::builder().in_process().unwrap();
    let index = get(&server, "/openapi/v3", &[]).await.json();
    for (path, entry) in index["paths"].as_object().unwrap() {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let found = get(&server, url, &[]).await;
        assert_eq!(found.status, StatusCode::OK, "{path}");
        assert_eq!(found.json()["openapi"], "3.0.0");
        assert!(found.header("cache-control").contains("immutable"));
        assert!(url.contains(found.header("etag").trim_matches('"')));
    }
}

#[tokio::test]
async fn a_matching_etag_gets_304() {
    let server = ApiServer::builder().in_process().unwrap();
    for path in ["/openapi/v3/apis/apps/v1", "/openapi/v2"] {
        let found = get(&server, path, &[]).await;
        assert_eq!((found.status, found.header("cache-control")), (StatusCode::OK, ""));
        let again = get(&server, path, &[("if-none-match", found.header("etag"))]).await;
        assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
        let other = get(&server, path, &[("if-none-match", "\"other\"")]).await;
        assert_eq!(other.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn an_old_hash_redirects_to_the_new_one() {
    let server = ApiServer::builder().in_process().unwrap();
    let moved = get(&server, "/openapi/v3/api/v1?hash=OLD", &[]).await;
    assert_eq!(moved.status, StatusCode::MOVED_PERMANENTLY);
    assert_eq!(get(&server, moved.header("location"), &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn unknown_documents_are_not_found_and_other_media_types_are_rejected() {
    let server = ApiServer::builder().in_process().unwrap();
    assert_eq!(get(&server, "/openapi/v3/apis/nobody/v1", &[]).await.status, StatusCode::NOT_FOUND);
    let protobuf = [("accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")];
    assert_eq!(get(&server, "/openapi/v2", &protobuf).await.status, StatusCode::NOT_ACCEPTABLE);
}
