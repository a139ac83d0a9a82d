//! What must not be read in a log, taken out of headers, URLs and bodies.
//!
//! Headers are masked by name. Bodies are judged by where they go and by what they say they are: those of
//! Secrets, of service account tokens, of token reviews and of machine bootstrap data are reduced to a list
//! of what may be shown (their identity); in all others, fields that are credentials by name are masked. A
//! body that cannot be judged, because it is not JSON or comes through a proxy, is not shown at all.

use http::{HeaderName, HeaderValue, Uri};
use serde_json::{Map, Value};

const MASK: &str = "<masked>";

/// A header's value as it may be shown.
pub(crate) fn header(name: &HeaderName, value: &HeaderValue) -> String {
    let text = String::from_utf8_lossy(value.as_bytes());
    if name == http::header::AUTHORIZATION {
        // The scheme helps to see which credential was used, and is no secret where it is one that we know.
        return match text.split_once(' ') {
            Some((scheme, _))
                if ["bearer", "basic", "negotiate"].contains(&scheme.to_ascii_lowercase().as_str()) =>
            {
                format!("{scheme} {MASK}")
            }
            _ => MASK.to_owned(),
        };
    }
    let name = name.as_str();
    let secretive = ["auth", "cookie", "token", "secret", "password", "api-key", "session", "csrf"];
    if value.is_sensitive() || secretive.iter().any(|word| name.contains(word)) {
        return MASK.to_owned();
    }
    text.into_owned()
}

/// A URL as it may be shown: without user and password, and without the values of credential parameters.
pub(crate) fn url(base: Option<&Uri>, uri: &Uri) -> String {
    let authority = |uri: &Uri| {
        let authority = uri.authority()?.as_str();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        Some(format!("{}://{host}", uri.scheme_str().unwrap_or("http")))
    };
    let (origin, prefix) = match (authority(uri), base) {
        (Some(origin), _) => (origin, ""),
        (None, Some(base)) => (authority(base).unwrap_or_default(), base.path().trim_end_matches('/')),
        (None, None) => (String::new(), ""),
    };
    let mut text = format!("{origin}{prefix}{}", uri.path());
    for (place, pair) in
        uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).enumerate()
    {
        text.push(if place == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if is_credential(name) => text.extend([name, "=", MASK]),
            _ => text.push_str(pair),
        }
    }
    text
}

/// A body as it may be shown, for a request to `path`.
pub(crate) fn body(path: &str, bytes: &[u8]) -> String {
    if passes_through(path) {
        return format!("<{} bytes of another server's, not shown>", bytes.len());
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else {
        return format!("<{} bytes that are not JSON, not shown>", bytes.len());
    };
    if is_secret_path(path) {
        if !value.is_object() {
            // A JSON patch, most likely: its values stand under names that say nothing.
            return format!("<{} bytes, not shown>", bytes.len());
        }
        keep_identity(&mut value);
    } else {
        mask_credentials(&mut value);
    }
    value.to_string()
}

/// Answers of Pods, Services and Nodes come through these subresources: there is no telling what they are.
fn passes_through(path: &str) -> bool {
    path.split('/').any(|segment| {
        matches!(segment, "proxy" | "exec" | "attach" | "portforward" | "log" | "logs" | "configz")
    })
}

/// Resources and subresources whose bodies are credentials, in whatever group: `secrets`,
/// `serviceaccounts/token`, `tokenreviews`, bootstrap data of machines, and what others have named like them.
fn is_secret_path(path: &str) -> bool {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    let group = match segments.next() {
        Some("api") => "",
        Some("apis") => segments.next().unwrap_or_default(),
        // Not a path of resources: any word counts.
        _ => return path.split('/').any(names_secrets),
    };
    let mut rest: Vec<&str> = segments.skip(1).collect();
    if rest.len() > 2 && rest[0] == "namespaces" {
        rest.drain(..2);
    }
    // Resource, name, subresource: the name is anybody's choice and says nothing.
    let words = rest.iter().enumerate().filter(|(place, _)| *place != 1).map(|(_, word)| *word);
    group.starts_with("bootstrap.") || words.into_iter().any(names_secrets)
}

fn names_secrets(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["secret", "token", "credential", "password"].iter().any(|part| word.contains(part))
}

fn is_secret_kind(object: &Map<String, Value>) -> bool {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = text("kind");
    names_secrets(kind)
        || (kind == "Config" && text("apiVersion") == "v1")
        || text("apiVersion").starts_with("bootstrap.")
}

/// Reduces an object to what names it. An allow-list, so that a field nobody thought of is masked.
fn keep_identity(value: &mut Value) {
    let Value::Object(object) = value else {
        *value = Value::from(MASK);
        return;
    };
    for (name, value) in object.iter_mut() {
        match (name.as_str(), &mut *value) {
            ("apiVersion" | "kind" | "type" | "immutable" | "code" | "reason", shown) if is_scalar(shown) => {
            }
            ("items", Value::Array(items)) => items.iter_mut().for_each(keep_identity),
            ("metadata", Value::Object(metadata)) => {
                let hidden =
                    metadata.iter_mut().filter(|(name, value)| !names_object(name) || !is_scalar(value));
                hidden.for_each(|(_, value)| *value = Value::from(MASK));
            }
            _ => *value = Value::from(MASK),
        }
    }
}

/// The fields of metadata that say which object it is and nothing else.
fn names_object(field: &str) -> bool {
    matches!(
        field,
        "name"
            | "generateName"
            | "namespace"
            | "uid"
            | "resourceVersion"
            | "generation"
            | "creationTimestamp"
            | "deletionTimestamp"
            | "remainingItemCount"
    )
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Masks what is a credential by name, anywhere inside.
fn mask_credentials(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask_credentials),
        Value::Object(object) if is_secret_kind(object) => keep_identity(value),
        Value::Object(object) => {
            // An environment variable or a step of a JSON patch: the value stands beside its name.
            let named = ["name", "path", "key"].iter().filter_map(|key| object.get(*key)?.as_str());
            if named.into_iter().any(sounds_secret)
                && let Some(value) = object.get_mut("value")
            {
                *value = Value::from(MASK);
            }
            for (name, value) in object.iter_mut() {
                if is_credential(name) || name == "kubectl.kubernetes.io/last-applied-configuration" {
                    *value = Value::from(MASK);
                } else {
                    mask_credentials(value);
                }
            }
        }
        _ => {}
    }
}

fn is_credential(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    matches!(
        name.to_ascii_lowercase().as_str(),
        "token"
            | "idtoken"
            | "accesstoken"
            | "refreshtoken"
            | "bearertoken"
            | "authorization"
            | "password"
            | "passwd"
            | "passphrase"
            | "stringdata"
            | "clientsecret"
            | "clientkeydata"
            | "privatekey"
            | "secretaccesskey"
            | "apikey"
            | "dockerconfigjson"
    )
}

fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["token", "secret", "password", "passwd", "credential", "private", "apikey", "api_key", "access_key"]
        .iter()
        .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shown(path: &str, value: &Value) -> String {
        body(path, value.to_string().as_bytes())
    }

    #[test]
    fn credential_headers_are_masked_and_the_scheme_stays() {
        let show = |name: &'static str, value: &'static str| {
            header(&HeaderName::from_static(name), &HeaderValue::from_static(value))
        };
        assert_eq!(show("authorization", "Bearer hunter2"), "Bearer <masked>");
        assert_eq!(show("authorization", "Basic aHVudGVyMg=="), "Basic <masked>");
        for (name, value) in [
            ("authorization", "hunter2"),
            ("authorization", "Custom hunter2"),
            ("proxy-authorization", "Basic hunter2"),
            ("cookie", "session=hunter2"),
            ("set-cookie", "session=hunter2"),
            ("x-auth-token", "hunter2"),
            ("x-api-key", "hunter2"),
            ("x-csrf-value", "hunter2"),
        ] {
            assert_eq!(show(name, value), MASK, "{name}");
        }
        assert_eq!(show("accept", "application/json"), "application/json");
        let mut marked = HeaderValue::from_static("hunter2");
        marked.set_sensitive(true);
        assert_eq!(header(&HeaderName::from_static("x-plain"), &marked), MASK);
    }

    #[test]
    fn urls_lose_passwords_and_credential_parameters() {
        let base: Uri = "https://alice:hunter2@example.com:6443/prefix".parse().unwrap();
        let uri: Uri = "/api/v1/pods?limit=5&token=hunter2&access_token=hunter2".parse().unwrap();
        let text = url(Some(&base), &uri);
        assert_eq!(
            text,
            "https://example.com:6443/prefix/api/v1/pods?limit=5&token=<masked>&access_token=<masked>"
        );
    }

    #[test]
    fn bodies_of_secrets_keep_only_their_identity() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": { "name": "db", "namespace": "shop", "annotations": { "note": "hunter2" } },
            "data": { "password": "aHVudGVyMg==" }, "stringData": { "password": "hunter2" }, "newField": "hunter2",
        });
        let list = json!({ "kind": "SecretList", "items": [{ "metadata": { "name": "db" }, "data": { "k": "hunter2" } }] });
        let mixed = json!({ "kind": "List", "items": [secret] });
        let table = json!({ "kind": "Table", "rows": [{ "object": secret }] });
        for (path, value) in [
            ("/api/v1/namespaces/shop/secrets/db", &secret),
            ("/api/v1/secrets", &list),
            ("/somewhere/else", &secret),
            ("/somewhere/else", &list),
            ("/somewhere/else", &mixed),
            ("/somewhere/else", &table),
        ] {
            let text = shown(path, value);
            assert!(text.contains("db"), "{text}");
            assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{path}: {text}");
        }
    }

    #[test]
    fn patches_of_secrets_are_not_shown() {
        let merge = json!({ "data": { "password": "hunter2" } });
        let steps = json!([{ "op": "replace", "path": "/data/x", "value": "hunter2" }]);
        let path = "/api/v1/namespaces/shop/secrets/db";
        assert!(!shown(path, &merge).contains("hunter2"));
        assert!(!shown(path, &steps).contains("hunter2"));
    }

    #[test]
    fn tokens_that_the_server_issues_or_reviews_are_masked() {
        for (path, value) in [
            (
                "/api/v1/namespaces/shop/serviceaccounts/cart/token",
                json!({ "kind": "TokenRequest", "spec": { "audiences": ["hunter2"] }, "status": { "token": "hunter2" } }),
            ),
            ("/apis/authentication.k8s.io/v1/tokenreviews", json!({ "spec": { "token": "hunter2" } })),
            (
                "/apis/bootstrap.cluster.x-k8s.io/v1beta1/kubeadmconfigs",
                json!({ "spec": { "joinConfiguration": { "x": "hunter2" } } }),
            ),
            ("/apis/example.com/v1/things", json!({ "deep": [{ "token": "hunter2" }] })),
            ("/api/v1/pods", json!({ "env": [{ "name": "DB_PASSWORD", "value": "hunter2" }] })),
            (
                "/apis/example.com/v1/things/x",
                json!([{ "op": "add", "path": "/spec/password", "value": "hunter2" }]),
            ),
            (
                "/api/v1/pods",
                json!({ "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "hunter2" } } }),
            ),
        ] {
            let text = shown(path, &value);
            assert!(!text.contains("hunter2"), "{path}: {text}");
        }
    }

    #[test]
    fn an_error_about_a_secret_keeps_its_reason_and_loses_its_text() {
        let status = json!({ "kind": "Status", "reason": "BadRequest", "code": 400,
            "message": "error found in #10 byte of ...|\"password\":\"hunter2\"" });
        let text = shown("/api/v1/namespaces/shop/secrets", &status);
        assert!(text.contains("BadRequest") && text.contains("400"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn what_cannot_be_judged_is_not_shown() {
        assert_eq!(body("/api/v1/pods", b"hunter2"), "<7 bytes that are not JSON, not shown>");
        let text = body("/api/v1/namespaces/n/services/s/proxy/x", br#"{"a":"hunter2"}"#);
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn paths_are_judged_by_resource_and_subresource_and_not_by_names() {
        for path in [
            "/api/v1/secrets",
            "/api/v1/namespaces/n/secrets/x",
            "/api/v1/namespaces/n/serviceaccounts/x/token",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            "/apis/example.com/v1/namespaces/n/vaultcredentials/x",
            "/apis/bootstrap.cluster.x-k8s.io/v1beta1/kubeadmconfigs",
            "/elsewhere/secrets",
        ] {
            assert!(is_secret_path(path), "{path}");
        }
        for path in [
            "/api/v1/namespaces/token-shop/configmaps/secret-santa",
            "/api/v1/namespaces/secrets",
            "/apis/apps/v1/deployments",
            "/healthz",
        ] {
            assert!(!is_secret_path(path), "{path}");
        }
    }

    #[test]
    fn ordinary_bodies_are_shown_as_they_are() {
        let map = json!({ "kind": "ConfigMap", "metadata": { "name": "x" }, "data": { "colour": "blue" } });
        let text = shown("/api/v1/namespaces/n/configmaps", &map);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), map);
    }

    /// Any JSON at all, with the secret for every string.
    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!("hunter2")), Just(json!(null)), any::<i32>().prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let field = prop_oneof![
                Just("data"),
                Just("stringData"),
                Just("metadata"),
                Just("annotations"),
                Just("name"),
                Just("items"),
                Just("status"),
                Just("message"),
                Just("type"),
                Just("spec"),
            ];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(field.prop_map(str::to_owned), inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_inside_a_secret_is_shown_but_scalars_that_name_it(content in anything(), nested in any::<bool>()) {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "db", "annotations": content.clone() },
                "data": content.clone(), "stringData": content.clone(), "status": content.clone(),
            });
            let (path, value) = if nested {
                ("/apis/example.com/v1/things", json!({ "kind": "Thing", "deep": [{ "template": secret }] }))
            } else {
                ("/api/v1/namespaces/shop/secrets/db", secret)
            };
            let text = shown(path, &value);
            prop_assert!(!text.contains("hunter2"), "{}", text);
            prop_assert!(text.contains("\"db\""), "{}", text);
        }
    }
}
