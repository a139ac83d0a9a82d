//! What the fuzz targets share.

use std::sync::LazyLock;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::{
    ApiServer,
    authn::{MASTERS, User},
    http::ApiService,
    schema::{Gvk, Schemas, TypeRef},
};
use tower::ServiceExt as _;

/// A built-in type.
pub fn builtin(group: &str, version: &str, kind: &str) -> (Gvk, TypeRef) {
    let gvk = Gvk::new(group, version, kind);
    let schema = Schemas::builtin().lookup(&gvk).expect("it is built in");
    (gvk, schema)
}

/// Cuts the input at its zero bytes, into so many parts; those that are not there are empty.
pub fn parts<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    let mut parts = input.splitn(N, |b| *b == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Runs a future to its end, with time that moves only when everybody waits.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing")
        .block_on(future)
}

/// The service of an administrator on a server that all inputs share.
pub fn service() -> ApiService {
    static SERVER: LazyLock<ApiServer> =
        LazyLock::new(|| ApiServer::builder().seed(1).in_process().expect("nothing can be missing"));
    SERVER.service().for_peer(User { name: "a".into(), groups: vec![MASTERS.into()], ..User::default() })
}

/// Sends a request; its code and what it says.
pub async fn send(service: &ApiService, request: Request<Full<Bytes>>) -> (u16, Bytes) {
    let response = service.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap_or_else(|never| match never {});
    (code, body.to_bytes())
}

/// Text for the value of a query parameter.
pub fn escaped(input: &[u8]) -> String {
    input.iter().map(|b| format!("%{b:02X}")).collect()
}
