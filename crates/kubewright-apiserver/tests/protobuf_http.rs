//! Tests of protobuf over HTTP, as Go's typed clients use it.

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, BodyStream, Full};
use kubewright_apiserver::{
    ApiServer,
    authn::User,
    http::{ApiBody, ApiService},
};
use kubewright_schema::protobuf;
use serde_json::{Value, json};
use tower::ServiceExt;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const GO: &str = "application/vnd.kubernetes.protobuf,application/json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn service(server: &ApiServer) -> ApiService {
    let groups = vec!["system:masters".into()];
    server.service().for_peer(User { name: "admin".into(), groups, ..User::default() })
}

async fn send(service: &ApiService, method: &str, path: &str, body: Vec<u8>) -> Response<ApiBody> {
    let request =
        Request::builder().method(method).uri(path).header("accept", GO).header("content-type", PROTOBUF);
    service
        .clone()
        .oneshot(request.body(Full::new(Bytes::from(body))).expect("a request"))
        .await
        .expect("an answer")
}

async fn answer(service: &ApiService, method: &str, path: &str, body: Vec<u8>) -> (StatusCode, Value) {
    let response = send(service, method, path, body).await;
    assert_eq!(response.headers()["content-type"], PROTOBUF);
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, protobuf::decode(&bytes).expect("a document"))
}

fn config_map(name: &str) -> Vec<u8> {
    protobuf::encode(&json!({
        "kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"a": "1"},
        "binaryData": {"b": "AP8="},
    }))
    .expect("a built-in kind")
}

#[tokio::test]
async fn objects_lists_and_errors_are_sent_as_protobuf() {
    let server = ApiServer::builder().in_process().unwrap();
    let service = service(&server);
    let (status, created) = answer(&service, "POST", MAPS, config_map("a")).await;
    assert_eq!((status, &created["binaryData"]["b"]), (StatusCode::CREATED, &json!("AP8=")));
    let (_, found) = answer(&service, "GET", &format!("{MAPS}/a"), Vec::new()).await;
    assert_eq!(found, created);
    let (_, list) = answer(&service, "GET", MAPS, Vec::new()).await;
    assert_eq!(
        (&list["kind"], &list["items"][0]["metadata"]),
        (&json!("ConfigMapList"), &created["metadata"])
    );
    let (status, refusal) = answer(&service, "POST", MAPS, config_map("a")).await;
    assert_eq!((status, &refusal["reason"]), (StatusCode::CONFLICT, &json!("AlreadyExists")));
}

#[tokio::test]
async fn json_and_protobuf_requests_give_equal_objects() {
    let server = ApiServer::builder().in_process().unwrap();
    let service = service(&server);
    let mut deployment = json!({
        "kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "a"},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": {"app": "a"}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {
                "containers": [{
                    "name": "c", "image": "i", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
                    "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
                    "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}],
                }],
                "volumes": [{"name": "v", "emptyDir": {}}],
            }},
        },
    });
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let (status, first) = answer(&service, "POST", path, protobuf::encode(&deployment).unwrap()).await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    deployment["metadata"]["name"] = "b".into();
    let request = Request::post(path).body(Full::new(Bytes::from(deployment.to_string()))).unwrap();
    let second =
        service.clone().oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let second: Value = serde_json::from_slice(&second).unwrap();
    assert_eq!(first["spec"], second["spec"]);
    assert_eq!(
        first["metadata"]["managedFields"][0]["fieldsV1"],
        second["metadata"]["managedFields"][0]["fieldsV1"]
    );
}

#[tokio::test]
async fn delete_options_can_be_protobuf() {
    let server = ApiServer::builder().in_process().unwrap();
    let service = service(&server);
    answer(&service, "POST", MAPS, config_map("a")).await;
    let options = |uid: &str| {
        protobuf::encode(&json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}))
            .unwrap()
    };
    let (status, _) = answer(&service, "DELETE", &format!("{MAPS}/a"), options("other")).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let (status, _) = answer(&service, "DELETE", &format!("{MAPS}/a"), Vec::new()).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let server = ApiServer::builder().in_process().unwrap();
    let service = service(&server);
    let message = async |body: &[u8]| {
        let (status, refusal) = answer(&service, "POST", MAPS, body.to_vec()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        refusal["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        message(b"").await,
        "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"
    );
    assert!(message(b"{}").await.contains("expected prefix [107 56 115 0] (7b7d)"));
    let cut = config_map("a");
    assert!(message(&cut[..cut.len() / 2]).await.contains("unexpected EOF (6b387300"));
}

#[tokio::test]
async fn a_watch_is_a_sequence_of_frames() {
    let server = ApiServer::builder().in_process().unwrap();
    let service = service(&server);
    answer(&service, "POST", MAPS, config_map("a")).await;
    let path = format!(
        "{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let response = send(&service, "GET", &path, Vec::new()).await;
    assert_eq!(response.headers()["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
    let mut frames = BodyStream::new(response.into_body());
    for expected in [&b"ADDED"[..], b"BOOKMARK"] {
        let frame = frames.next().await.unwrap().unwrap().into_data().unwrap();
        let (length, event) = frame.split_at(4);
        assert_eq!(u32::from_be_bytes(length.try_into().unwrap()) as usize, event.len());
        assert_eq!(&event[2..2 + expected.len()], expected);
        // After the type: an object field with a RawExtension with a document.
        let at = event.windows(4).position(|four| four == b"k8s\0").unwrap();
        assert_eq!(protobuf::decode(&event[at..]).unwrap()["kind"], "ConfigMap");
    }
}

#[tokio::test]
async fn partial_objects_are_sent_as_protobuf_and_tables_as_json() {
    let server = ApiServer::builder().in_process().unwrap();
    let service = service(&server);
    answer(&service, "POST", MAPS, config_map("a")).await;
    let get = async |accept: &str, path: String| {
        let request = Request::get(path).header("accept", accept).body(Full::new(Bytes::new())).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        let media = response.headers()["content-type"].to_str().unwrap().to_owned();
        (media, response.into_body().collect().await.unwrap().to_bytes())
    };
    let partial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let (media, body) = get(partial, format!("{MAPS}/a")).await;
    assert_eq!(
        (media.as_str(), &protobuf::decode(&body).unwrap()["metadata"]["name"]),
        (PROTOBUF, &json!("a"))
    );
    let table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1";
    assert_eq!(get(table, MAPS.to_owned()).await.0, "application/json");
}
