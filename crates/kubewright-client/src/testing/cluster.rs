//! The discovery half of an API server, in every form that real ones have.
//!
//! The shapes are those of recorded answers: empty group and version in `responseKind` for "the same as
//! here", no name for the core group, `pods/log` among the resources in the old form.

use std::sync::Arc;

use http::Response;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Seen, json as answer_json, refusal, text};

/// How the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Aggregated, with tags.
    Aggregated,
    /// Only the old form, whatever it is asked for.
    Old,
    /// Refuses the new media types with this code.
    Refusing(u16),
}

/// A resource of the double.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    namespaced: bool,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    parts: &'static [(&'static str, [&'static str; 3])],
}

impl Served {
    pub(crate) fn new(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self { group, version, plural, kind, namespaced: true, short: &[], categories: &[], parts: &[] }
    }

    fn cluster(mut self) -> Self {
        self.namespaced = false;
        self
    }

    pub(crate) fn short(mut self, short: &'static [&'static str]) -> Self {
        self.short = short;
        self
    }

    fn all(mut self) -> Self {
        self.categories = &["all"];
        self
    }

    fn parts(mut self, parts: &'static [(&'static str, [&'static str; 3])]) -> Self {
        self.parts = parts;
        self
    }

    fn singular(&self) -> String {
        self.kind.to_lowercase()
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) form: Form,
    pub(crate) served: Vec<Served>,
    /// Group versions that are stale, or fail in the old form.
    pub(crate) down: Vec<&'static str>,
    /// Answers everything with this code.
    pub(crate) broken: Option<u16>,
    /// Endpoints that do not exist.
    pub(crate) absent: Vec<&'static str>,
}

/// The server. Change its [`State`] between requests as the test needs it.
#[derive(Debug, Clone)]
pub(crate) struct Cluster(pub(crate) Arc<Mutex<State>>);

impl Cluster {
    pub(crate) fn new(form: Form) -> Self {
        let served = vec![
            Served::new("", "v1", "pods", "Pod").short(&["po"]).all().parts(&[
                ("eviction", ["policy", "v1", "Eviction"]),
                ("log", ["", "", "Pod"]),
                ("status", ["", "", "Pod"]),
            ]),
            Served::new("", "v1", "services", "Service").short(&["svc"]).all(),
            Served::new("", "v1", "namespaces", "Namespace").short(&["ns"]).cluster(),
            Served::new("", "v1", "events", "Event").short(&["ev"]),
            Served::new("apps", "v1", "deployments", "Deployment")
                .short(&["deploy"])
                .all()
                .parts(&[("scale", ["autoscaling", "v1", "Scale"]), ("status", ["", "", "Deployment"])]),
            Served::new("events.k8s.io", "v1", "events", "Event").short(&["ev"]),
            Served::new("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
                .short(&["hpa"])
                .all(),
            Served::new("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
                .short(&["hpa"])
                .all(),
            Served::new("metrics.k8s.io", "v1beta1", "pods", "PodMetrics"),
            Served::new("a.example.com", "v1", "widgets", "Widget").short(&["wd"]),
            Served::new("b.example.com", "v1", "widgets", "Widget").short(&["wd"]),
            Served::new("old.example.com", "v1", "gadgets", "Gadget"),
            Served::new("old.example.com", "v1beta1", "gadgets", "Gadget"),
            Served::new("old.example.com", "v1beta1", "gizmos", "Gizmo"),
        ];
        let state = State { form, served, down: Vec::new(), broken: None, absent: Vec::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock());
    }

    pub(crate) fn answer(&self, seen: &Seen) -> Response<Body> {
        let state = self.0.lock();
        if let Some(code) = state.broken {
            return refusal(code, "", "the server is down");
        }
        let path = seen.line.split(' ').nth(1).unwrap_or_default();
        if state.absent.contains(&path) {
            return refusal(404, "NotFound", "the server could not find the requested resource");
        }
        let aggregated = seen
            .headers
            .get("accept")
            .is_some_and(|accept| accept.as_bytes().windows(4).any(|w| w == b"v=v2"));
        match (path, state.form) {
            ("/api" | "/apis", Form::Refusing(code)) if aggregated => {
                text(code, "text/plain", "no such media type")
            }
            ("/api" | "/apis", Form::Aggregated) if aggregated => state.aggregated(path == "/api", seen),
            ("/api", _) => answer_json(200, &json!({ "kind": "APIVersions", "versions": ["v1"] })),
            ("/apis", _) => state.old_groups(),
            _ => {
                let version =
                    path.strip_prefix("/api/").or_else(|| path.strip_prefix("/apis/")).unwrap_or_default();
                state.old_resources(version)
            }
        }
    }
}

impl State {
    /// Group and versions in the order in which they were first mentioned.
    fn groups(&self, core: bool) -> Vec<(&'static str, Vec<&'static str>)> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for served in self.served.iter().filter(|served| served.group.is_empty() == core) {
            if !groups.iter().any(|(group, _)| *group == served.group) {
                groups.push((served.group, Vec::new()));
            }
            for (group, versions) in &mut groups {
                if *group == served.group && !versions.contains(&served.version) {
                    versions.push(served.version);
                }
            }
        }
        groups
    }

    fn of(&self, group: &str, version: &str) -> impl Iterator<Item = &Served> {
        self.served.iter().filter(move |served| served.group == group && served.version == version)
    }

    fn aggregated(&self, core: bool, seen: &Seen) -> Response<Body> {
        let items: Vec<Value> = self
            .groups(core)
            .into_iter()
            .map(|(group, versions)| {
                let versions: Vec<Value> = versions
                    .into_iter()
                    .map(|version| {
                        let resources: Vec<Value> =
                            self.of(group, version).map(aggregated_resource).collect();
                        let down = self.down.contains(&api_version(group, version).as_str());
                        let freshness = if down { "Stale" } else { "Current" };
                        json!({ "version": version, "freshness": freshness, "resources": resources })
                    })
                    .collect();
                let metadata = if core { json!({}) } else { json!({ "name": group }) };
                json!({ "metadata": metadata, "versions": versions })
            })
            .collect();
        let body = json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
        });
        let etag = format!(
            "\"{:x}\"",
            body.to_string().bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte))
        );
        if seen.headers.get("if-none-match").is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
            return text(304, "application/json", "");
        }
        let media_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let mut response = text(200, media_type, &body.to_string());
        response.headers_mut().insert("etag", etag.parse().unwrap());
        response
    }

    fn old_groups(&self) -> Response<Body> {
        let groups: Vec<Value> = self
            .groups(false)
            .into_iter()
            .map(|(group, versions)| {
                let entry = |version: &&str| json!({ "groupVersion": api_version(group, version), "version": version });
                let versions: Vec<Value> = versions.iter().map(entry).collect();
                json!({ "name": group, "versions": versions, "preferredVersion": versions[0] })
            })
            .collect();
        answer_json(200, &json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
    }

    fn old_resources(&self, wanted: &str) -> Response<Body> {
        if self.down.contains(&wanted) {
            return refusal(
                503,
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
            );
        }
        let (group, version) = wanted.split_once('/').unwrap_or(("", wanted));
        let mut resources = Vec::new();
        for served in self.of(group, version) {
            resources.push(json!({
                "name": served.plural, "singularName": served.singular(), "namespaced": served.namespaced,
                "kind": served.kind, "verbs": ["get", "list"], "shortNames": served.short, "categories": served.categories,
            }));
            for (name, [group, version, kind]) in served.parts {
                let mut part = json!({
                    "name": format!("{}/{name}", served.plural), "singularName": "", "namespaced": served.namespaced,
                    "kind": kind, "verbs": ["get"],
                });
                if !version.is_empty() {
                    part["group"] = json!(group);
                    part["version"] = json!(version);
                }
                resources.push(part);
            }
        }
        if resources.is_empty() {
            return refusal(404, "NotFound", "the server could not find the requested resource");
        }
        answer_json(
            200,
            &json!({ "kind": "APIResourceList", "groupVersion": wanted, "resources": resources }),
        )
    }
}

fn aggregated_resource(served: &Served) -> Value {
    let kind =
        |[group, version, kind]: [&str; 3]| json!({ "group": group, "version": version, "kind": kind });
    let parts: Vec<Value> = served
        .parts
        .iter()
        .map(|(name, parts)| json!({ "subresource": name, "responseKind": kind(*parts), "verbs": ["get"] }))
        .collect();
    json!({
        "resource": served.plural, "responseKind": kind(["", "", served.kind]), "singularResource": served.singular(),
        "scope": if served.namespaced { "Namespaced" } else { "Cluster" }, "verbs": ["get", "list"],
        "shortNames": served.short, "categories": served.categories, "subresources": parts,
    })
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
