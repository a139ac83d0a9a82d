//! Request info: verb, resource, namespace and name of a request, parsed from method, path and query.

use std::borrow::Cow;

use http::{Method, Uri};
use percent_encoding::percent_decode_str;

use crate::{
    authz::Access,
    registry::selector::{FieldSelector, LabelSelector},
};

/// Verb, resource, namespace and name of a request. Parsed once, by the request info layer; all later layers and the
/// handler use it.
#[derive(Debug, Clone)]
pub(crate) struct RequestInfo {
    /// Whether the path is that of a resource.
    pub(crate) is_resource_request: bool,
    /// The verb of the API, or the method in lower case for other paths.
    pub(crate) verb: Cow<'static, str>,
    /// The API group; empty for the core group.
    pub(crate) api_group: String,
    /// The API version.
    pub(crate) api_version: String,
    /// The namespace; empty for the cluster scope. That of `namespaces/x` is `x`.
    pub(crate) namespace: String,
    /// The plural of the resource.
    pub(crate) resource: String,
    /// The subresource, with the rest of the path.
    pub(crate) subresource: String,
    /// The name; empty for a collection. That of a collection restricted to one name by its field selector is that name,
    /// as a role may allow it.
    pub(crate) name: String,
    /// The path.
    pub(crate) path: String,
    /// The parameters of the query.
    pub(crate) query: Query,
    /// The field selector of a collection, or why it cannot be parsed.
    pub(crate) field_selector: Result<FieldSelector, String>,
    /// The label selector of a collection, or why it cannot be parsed.
    pub(crate) label_selector: Result<LabelSelector, String>,
}

/// The parameters of a query, decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query string.
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode_parameter(key), decode_parameter(value))
        });
        Self(pairs.collect())
    }

    /// Returns the first value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Iterates over all parameters.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

/// Decodes a segment of a path.
fn decode_segment(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Decodes a key or value of a query, in which `+` is a blank.
fn decode_parameter(text: &str) -> String {
    if text.contains('+') { decode_segment(&text.replace('+', " ")) } else { decode_segment(text) }
}

/// Subresources of `namespaces`; other segments behind a namespace are resources in it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

impl RequestInfo {
    /// Parses a request.
    pub(crate) fn parse(method: &Method, uri: &Uri) -> Self {
        let mut info = Self {
            is_resource_request: false,
            verb: method_verb(method),
            api_group: String::new(),
            api_version: String::new(),
            namespace: String::new(),
            resource: String::new(),
            subresource: String::new(),
            name: String::new(),
            path: uri.path().to_owned(),
            query: Query::parse(uri.query().unwrap_or_default()),
            field_selector: Ok(FieldSelector::default()),
            label_selector: Ok(LabelSelector::default()),
        };
        info.parse_path(method);
        info
    }

    /// Parses `/api/VERSION/…` and `/apis/GROUP/VERSION/…`.
    fn parse_path(&mut self, method: &Method) {
        let path = std::mem::take(&mut self.path);
        let mut segments = path.split('/').filter(|segment| !segment.is_empty()).map(decode_segment);
        self.parse_segments(&mut segments, method);
        drop(segments);
        self.path = path;
    }

    fn parse_segments(&mut self, segments: &mut dyn Iterator<Item = String>, method: &Method) {
        match segments.next().as_deref() {
            Some("api") => {}
            Some("apis") => match segments.next() {
                Some(group) => self.api_group = group,
                None => return,
            },
            _ => return,
        }
        let Some(version) = segments.next() else { return };
        self.api_version = version;
        let mut first = segments.next();
        // The legacy form of watches: /api/v1/watch/….
        let legacy_watch = first.as_deref() == Some("watch");
        if legacy_watch {
            first = segments.next();
        }
        let Some(first) = first else { return };
        let mut name = segments.next();
        if first == "namespaces" && name.is_some() {
            self.namespace = name.clone().unwrap_or_default();
            self.resource = first;
            match segments.next() {
                // A resource in the namespace.
                Some(resource) if !NAMESPACE_SUBRESOURCES.contains(&resource.as_str()) => {
                    self.resource = resource;
                    name = segments.next();
                }
                subresource => self.subresource = subresource.unwrap_or_default(),
            }
        } else {
            self.resource = first;
        }
        self.is_resource_request = true;
        self.name = name.unwrap_or_default();
        for segment in segments {
            if !self.subresource.is_empty() {
                self.subresource.push('/');
            }
            self.subresource.push_str(&segment);
        }
        self.verb = self.resource_verb(method, legacy_watch).into();
        if matches!(&*self.verb, "list" | "watch" | "deletecollection") {
            self.parse_selectors();
        }
    }

    fn resource_verb(&self, method: &Method, legacy_watch: bool) -> &'static str {
        let collection = self.name.is_empty();
        let watch = legacy_watch || self.query.get("watch").is_some_and(is_watch);
        match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if collection => "deletecollection",
            Method::DELETE => "delete",
            _ if collection && watch => "watch",
            _ if collection => "list",
            _ if legacy_watch => "watch",
            _ => "get",
        }
    }

    fn parse_selectors(&mut self) {
        self.label_selector = LabelSelector::parse(self.query.get("labelSelector").unwrap_or_default());
        self.field_selector = FieldSelector::parse(self.query.get("fieldSelector").unwrap_or_default());
        if self.name.is_empty()
            && let Ok(selector) = &self.field_selector
            && let Some(name) = selector.required("metadata.name")
        {
            name.clone_into(&mut self.name);
        }
    }

    /// Returns the attributes that authorizers decide on.
    pub(crate) fn access(&self) -> Access<'_> {
        if !self.is_resource_request {
            return Access { verb: &self.verb, path: &self.path, ..Access::default() };
        }
        Access {
            verb: &self.verb,
            group: &self.api_group,
            version: &self.api_version,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
            path: "",
        }
    }
}

/// Returns whether a value of `watch` asks for a watch. Values that are neither true nor false list: a client that does
/// not expect a stream would hang.
fn is_watch(value: &str) -> bool {
    matches!(value, "1" | "true" | "True" | "TRUE" | "t" | "")
}

fn method_verb(method: &Method) -> Cow<'static, str> {
    match *method {
        Method::GET => "get".into(),
        Method::HEAD => "head".into(),
        Method::POST => "post".into(),
        Method::PUT => "put".into(),
        Method::PATCH => "patch".into(),
        Method::DELETE => "delete".into(),
        _ => method.as_str().to_lowercase().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: &Method, uri: &str) -> (String, String, String, String, String) {
        let info = RequestInfo::parse(method, &uri.parse().unwrap());
        (info.verb.into(), info.namespace, info.resource, info.name, info.subresource)
    }

    fn is(
        verb: &str,
        namespace: &str,
        resource: &str,
        name: &str,
        sub: &str,
    ) -> (String, String, String, String, String) {
        (verb.into(), namespace.into(), resource.into(), name.into(), sub.into())
    }

    #[test]
    fn paths_become_verbs_and_resources() {
        assert_eq!(parse(&Method::GET, "/api/v1/pods"), is("list", "", "pods", "", ""));
        assert_eq!(parse(&Method::GET, "/api/v1/pods?watch=1"), is("watch", "", "pods", "", ""));
        assert_eq!(parse(&Method::GET, "/api/v1/namespaces/a"), is("get", "a", "namespaces", "a", ""));
        assert_eq!(
            parse(&Method::PUT, "/api/v1/namespaces/a/status"),
            is("update", "a", "namespaces", "a", "status")
        );
        assert_eq!(
            parse(&Method::DELETE, "/apis/apps/v1/namespaces/a/deployments"),
            is("deletecollection", "a", "deployments", "", "")
        );
        assert_eq!(
            parse(&Method::POST, "/api/v1/namespaces/a/pods/p/eviction"),
            is("create", "a", "pods", "p", "eviction")
        );
        assert_eq!(
            parse(&Method::GET, "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx"),
            is("list", "a", "pods", "x", "")
        );
        assert_eq!(
            parse(&Method::GET, "/api/v1/watch/namespaces/a/pods/x"),
            is("watch", "a", "pods", "x", "")
        );
        assert_eq!(
            parse(&Method::GET, "/api/v1/namespaces/a/services/s/proxy/x/y"),
            is("get", "a", "services", "s", "proxy/x/y")
        );
        assert_eq!(parse(&Method::POST, "/api/v1/namespaces"), is("create", "", "namespaces", "", ""));
        assert_eq!(parse(&Method::GET, "/healthz/ping"), is("get", "", "", "", ""));
    }

    #[test]
    fn the_first_selector_of_a_query_is_used() {
        let uri = "/api/v1/pods?fieldSelector=metadata.name%3Da&fieldSelector=metadata.name%3Db";
        let info = RequestInfo::parse(&Method::GET, &uri.parse().unwrap());
        assert_eq!(info.name, "a");
        assert_eq!(info.field_selector.unwrap().required("metadata.name"), Some("a"));
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse("a=1%2C2&b=x+y&c&a=3&d=%zz");
        assert_eq!(query.get("a"), Some("1,2"));
        assert_eq!(query.get("b"), Some("x y"));
        assert_eq!(query.get("c"), Some(""));
        assert_eq!(query.get("d"), Some("%zz"));
    }
}
