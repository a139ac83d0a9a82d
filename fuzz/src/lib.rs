//! Targets for whatever comes from outside: each takes any bytes and must neither panic nor hang nor eat memory.
//!
//! `make fuzz` runs all of them on the stable compiler, for a while each: the program `fuzz` mutates the inputs in
//! `corpus/` and keeps those that make a target say something new ([`saw`]). `cargo fuzz` runs the same functions with
//! coverage where a nightly compiler is at hand. What either finds becomes a file in `corpus/`, which the tests run.

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

/// Cuts the input at its zero bytes, into so many parts; those that are not there are empty.
pub fn parts<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    let mut parts = input.splitn(N, |b| *b == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

thread_local! {
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// Notes how a target took its input, so that the driver can tell a new way from a known one. Numbers and what is quoted
/// make no difference.
pub fn saw(what: &str) {
    let mut hasher = DefaultHasher::new();
    let first = what.lines().next().unwrap_or_default();
    for (n, part) in first.split('"').enumerate() {
        if n % 2 == 0 {
            part.bytes().filter(|b| !b.is_ascii_digit()).for_each(|b| b.hash(&mut hasher));
        }
    }
    SEEN.with(|seen| seen.set(seen.get().rotate_left(5) ^ hasher.finish()));
}

/// What was noted since the last call.
pub fn take_seen() -> u64 {
    SEEN.with(|seen| seen.replace(0))
}

/// Runs a future to its end, with time that moves only when everybody waits.
#[expect(clippy::missing_panics_doc, reason = "a runtime needs nothing")]
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing")
        .block_on(future)
}

/// The service of an administrator on a server that all inputs share.
#[expect(clippy::missing_panics_doc, reason = "a server in memory needs nothing")]
pub fn service() -> ApiService {
    /// Inputs after which a new server begins: what they leave behind must not add up.
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

/// Sends a request; its code and what it says.
pub async fn send(service: &ApiService, request: Request<Full<Bytes>>) -> (u16, Bytes) {
    let response = service.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap_or_else(|never| match never {});
    (code, body.to_bytes())
}

/// Text for the value of a query parameter.
pub fn escaped(input: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(input.len() * 3);
    for byte in input {
        // Writing into a string cannot fail.
        let _ = write!(text, "%{byte:02X}");
    }
    text
}
