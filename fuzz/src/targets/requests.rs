//! Requests, separated by zero bytes into method, path, headers and body: continue tokens, selectors,
//! queries, bodies, all verbs.

use crate::{escaped, parts, report_outcome, send, service, wait};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const MEDIA: [&str; 6] = [
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
const PATHS: [&str; 8] = [
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/a",
    "/apis/apps/v1/namespaces/default/deployments/a",
    "/apis/apps/v1/namespaces/default/deployments/a/scale",
    "/api/v1/namespaces/default/pods/a/status",
    "/api/v1/pods",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
];

/// Runs the target.
pub fn run(input: &[u8]) {
    let [head, query, accept, body] = parts::<4>(input);
    let pick = |n: usize, of: usize| usize::from(head.get(n).copied().unwrap_or_default()) % of;
    let accept: String = accept.iter().filter(|b| b.is_ascii_graphic()).map(|b| char::from(*b)).collect();
    let names =
        ["continue", "labelSelector", "fieldSelector", "resourceVersion", "fieldManager", "dryRun", "limit"];
    let named = format!(
        "{}={}&limit=1&force=true&timeoutSeconds=1&{}",
        names[pick(3, names.len())],
        escaped(query),
        ["watch=true", "fieldManager=f", "allowWatchBookmarks=true", "sendInitialEvents=true"][pick(4, 4)]
    );
    let request = Request::builder()
        .method(METHODS[pick(0, METHODS.len())])
        .uri(format!("{}?{named}", PATHS[pick(1, PATHS.len())]))
        .header("content-type", MEDIA[pick(2, MEDIA.len())])
        .header("accept", accept)
        .body(Full::new(Bytes::copy_from_slice(body)))
        .expect("everything in it is escaped");
    wait(async {
        let service = service();
        let (code, said) = send(&service, request).await;
        assert!((200..600).contains(&code));
        report_outcome(&format!("{code} {}", String::from_utf8_lossy(&said[..said.len().min(300)])));
        // Stored objects can be read and deleted again.
        for path in &PATHS[1..3] {
            for method in ["GET", "DELETE"] {
                let request = Request::builder().method(method).uri(*path).body(Full::default());
                let (code, _) = send(&service, request.expect("the path is one")).await;
                assert!(matches!(code, 200 | 404), "{method} {path}: {code}");
            }
        }
    });
}
