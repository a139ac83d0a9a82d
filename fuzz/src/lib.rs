//! Fuzz targets for all external input: arbitrary bytes must cause no panic, no hang and no excessive memory
//! use.
//!
//! `make fuzz` runs all targets on the stable compiler for a while: the program `fuzz` mutates the inputs in
//! `corpus/` and keeps those with a new outcome ([`report_outcome`]). `cargo fuzz` runs the same functions
//! with coverage, on a nightly compiler. Failing inputs become files in `corpus/`, which the tests run.

pub mod driver;
pub mod targets;

use std::{
    cell::Cell,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::{
    ApiServer,
    authn::{MASTERS, User},
    http::ApiService,
};
use kubewright_schema::{Gvk, Schemas, TypeRef};
use tower::ServiceExt as _;

/// A built-in type.
#[expect(clippy::missing_panics_doc, reason = "only asked for types that are built in")]
pub fn builtin(group: &str, version: &str, kind: &str) -> (Gvk, TypeRef) {
    let gvk = Gvk::new(group, version, kind);
    let schema = Schemas::builtin().lookup(&gvk).expect("it is built in");
    (gvk, schema)
}

/// Splits the input at its zero bytes into `N` parts; missing ones are empty.
pub fn parts<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    let mut parts = input.splitn(N, |b| *b == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

thread_local! {
    static OUTCOME: Cell<u64> = const { Cell::new(0) };
}

/// Reports the outcome of an input, so that the driver can recognise new ones. Numbers and quoted text are
/// ignored.
pub fn report_outcome(what: &str) {
    let mut hasher = DefaultHasher::new();
    let first = what.lines().next().unwrap_or_default();
    for (n, part) in first.split('"').enumerate() {
        if n % 2 == 0 {
            part.bytes().filter(|b| !b.is_ascii_digit()).for_each(|b| b.hash(&mut hasher));
        }
    }
    OUTCOME.with(|seen| seen.set(seen.get().rotate_left(5) ^ hasher.finish()));
}

/// Returns and resets the reported outcomes.
pub fn take_outcome() -> u64 {
    OUTCOME.with(|seen| seen.replace(0))
}

/// Runs a future to completion in paused time.
#[expect(clippy::missing_panics_doc, reason = "a runtime needs nothing")]
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing")
        .block_on(future)
}

/// The service of an administrator on a server that inputs share.
#[expect(clippy::missing_panics_doc, reason = "a server in memory needs nothing")]
pub fn service() -> ApiService {
    /// Number of inputs per server, so that stored objects do not accumulate.
    const INPUTS: usize = 2000;
    static SERVER: Mutex<Option<(usize, ApiServer)>> = Mutex::new(None);
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let fresh = || (0, ApiServer::builder().seed(1).in_process().expect("nothing can be missing"));
    if server.as_ref().is_some_and(|(used, _)| *used >= INPUTS) {
        *server = None;
    }
    let (used, server) = server.get_or_insert_with(fresh);
    *used += 1;
    server.service().for_peer(User { name: "a".into(), groups: vec![MASTERS.into()], ..User::default() })
}

/// Sends a request; returns its status code and body.
pub async fn send(service: &ApiService, request: Request<Full<Bytes>>) -> (u16, Bytes) {
    let response = service.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap_or_else(|never| match never {});
    (code, body.to_bytes())
}

/// Escapes the value of a query parameter.
pub fn escaped(input: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(input.len() * 3);
    for byte in input {
        // Writing to a String does not fail.
        let _ = write!(text, "%{byte:02X}");
    }
    text
}
