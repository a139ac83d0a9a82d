//! What a request is about, read from its method, path and query.

/// A request as authorisation and dispatch see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// Whether the path is that of a resource.
    pub is_resource: bool,
    /// The verb: of a resource, or the method in lower case.
    pub verb: String,
    /// The API group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The namespace; empty for the cluster.
    pub namespace: String,
    /// The plural.
    pub resource: String,
    /// The subresource, with whatever follows it.
    pub subresource: String,
    /// The name; empty for a collection.
    pub name: String,
    /// The path.
    pub path: String,
}

/// The parts of a query, decoded.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query string.
    pub fn parse(text: &str) -> Self {
        let parts = text.split('&').filter(|p| !p.is_empty()).map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            (decode(key, true), decode(value, true))
        });
        Self(parts.collect())
    }

    /// The first value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// All pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

/// Percent-decoding; in queries `+` is a blank.
fn decode(text: &str, query: bool) -> String {
    if !text.contains(['%', '+']) {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |n: usize| bytes.get(n).and_then(|b| char::from(*b).to_digit(16));
        match bytes[at] {
            b'%' => {
                if let (Some(high), Some(low)) = (hex(at + 1), hex(at + 2)) {
                    out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                    at += 3;
                    continue;
                }
                out.push(b'%');
            }
            b'+' if query => out.push(b' '),
            other => out.push(other),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Subresources of `namespaces` that are not resources inside of one.
const OF_NAMESPACES: [&str; 2] = ["status", "finalize"];

impl Route {
    /// Reads a request.
    pub fn parse(method: &http::Method, path: &str, query: &Query) -> Self {
        let mut route =
            Self { path: path.to_owned(), verb: method.as_str().to_lowercase(), ..Self::default() };
        let parts: Vec<String> =
            path.split('/').filter(|p| !p.is_empty()).map(|p| decode(p, false)).collect();
        let mut parts = parts.iter().map(String::as_str).peekable();
        match parts.next() {
            Some("api") => {}
            Some("apis") => match parts.next() {
                Some(group) => group.clone_into(&mut route.group),
                None => return route,
            },
            _ => return route,
        }
        let Some(version) = parts.next() else { return route };
        version.clone_into(&mut route.version);
        // The old form of watches: /api/v1/watch/….
        let old_watch = parts.next_if_eq(&"watch").is_some();
        let Some(first) = parts.next() else { return route };
        let mut rest: Vec<&str> = parts.collect();
        if first == "namespaces" {
            match rest.as_slice() {
                [namespace, resource, ..] if !OF_NAMESPACES.contains(resource) => {
                    (*namespace).clone_into(&mut route.namespace);
                    (*resource).clone_into(&mut route.resource);
                    rest.drain(..2);
                }
                _ => {
                    "namespaces".clone_into(&mut route.resource);
                    if let Some(name) = rest.first() {
                        (*name).clone_into(&mut route.namespace);
                    }
                }
            }
        } else {
            first.clone_into(&mut route.resource);
        }
        route.is_resource = true;
        if let Some(name) = rest.first() {
            (*name).clone_into(&mut route.name);
        }
        route.subresource = rest.get(1..).unwrap_or_default().join("/");
        let collection = route.name.is_empty();
        let watch = old_watch
            || query.get("watch").is_some_and(|w| matches!(w, "1" | "true" | "True" | "TRUE" | "t" | ""));
        let verb = match *method {
            http::Method::POST => "create",
            http::Method::PUT => "update",
            http::Method::PATCH => "patch",
            http::Method::DELETE if collection => "deletecollection",
            http::Method::DELETE => "delete",
            _ if collection && watch => "watch",
            _ if collection => "list",
            _ if old_watch => "watch",
            _ => "get",
        };
        verb.clone_into(&mut route.verb);
        // A list restricted to one name may be allowed by that name.
        if collection
            && matches!(route.verb.as_str(), "list" | "watch" | "deletecollection")
            && let Some(selector) = query.get("fieldSelector")
            && let Ok(selector) = crate::registry::selector::FieldSelector::parse(selector)
            && let Some(name) = selector.required("metadata.name")
        {
            name.clone_into(&mut route.name);
        }
        route
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: &http::Method, uri: &str) -> (String, String, String, String, String) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let r = Route::parse(method, path, &Query::parse(query));
        (r.verb, r.namespace, r.resource, r.name, r.subresource)
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
        use http::Method;
        assert_eq!(route(&Method::GET, "/api/v1/pods"), is("list", "", "pods", "", ""));
        assert_eq!(route(&Method::GET, "/api/v1/pods?watch=1"), is("watch", "", "pods", "", ""));
        assert_eq!(route(&Method::GET, "/api/v1/namespaces/a"), is("get", "a", "namespaces", "a", ""));
        assert_eq!(
            route(&Method::PUT, "/api/v1/namespaces/a/status"),
            is("update", "a", "namespaces", "a", "status")
        );
        assert_eq!(
            route(&Method::DELETE, "/apis/apps/v1/namespaces/a/deployments"),
            is("deletecollection", "a", "deployments", "", "")
        );
        assert_eq!(
            route(&Method::POST, "/api/v1/namespaces/a/pods/p/eviction"),
            is("create", "a", "pods", "p", "eviction")
        );
        assert_eq!(
            route(&Method::GET, "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx"),
            is("list", "a", "pods", "x", "")
        );
    }
}
