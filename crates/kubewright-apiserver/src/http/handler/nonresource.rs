//! Paths that are not resources: health, version, discovery, `OpenAPI`, token keys.

use http::{Method, Response, header};
use serde_json::{Value, json};

use super::{
    super::{ApiBody, negotiate, respond},
    HandledRequest, documents, is_builtin_group, no_such_page,
};
use crate::{discovery, openapi, status::Status};

impl HandledRequest<'_> {
    /// Serves a path that is not a resource.
    pub(super) fn serve_path(&self) -> Result<Response<ApiBody>, Status> {
        let parts: Vec<&str> = self.info.path.split('/').filter(|p| !p.is_empty()).collect();
        let types = self.components.registry.types();
        let reads = matches!(*self.method, Method::GET | Method::HEAD);
        if !reads && matches!(parts.as_slice(), ["api", _] | ["apis", _, _]) {
            return Err(Status::method_not_allowed());
        }
        let found = match parts.as_slice() {
            ["healthz" | "livez" | "readyz"] | ["healthz" | "livez" | "readyz", "ping" | "log" | "etcd"] => {
                return Ok(respond::text(200, "ok"));
            }
            ["version"] => Some(version()),
            ["api" | "apis"] => {
                let core = parts == ["api"];
                let wanted = self.wants_aggregated();
                if wanted.is_none() && self.wants_unknown_form() {
                    return Err(negotiate::not_acceptable());
                }
                if let Some(version) = wanted {
                    let name = format!("{}?aggregated={version}", parts[0]);
                    let document = types.document(&name, || {
                        Some(documents::encode(&discovery::aggregated(&types, core, version)))
                    });
                    let media = format!(
                        "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                    );
                    return Ok(respond::raw(200, &media, document.unwrap_or_default()));
                }
                if core {
                    Some(discovery::api_versions(self.header(header::HOST).unwrap_or_default()))
                } else {
                    return Ok(documents::json(&types, "apis", || Some(discovery::api_groups(&types))));
                }
            }
            ["api", version] => {
                let name = format!("api/{version}");
                let found = types.document(&name, || {
                    discovery::api_resources(&types, "", version).as_ref().map(documents::encode)
                });
                return found
                    .map(|found| respond::raw(200, documents::JSON, found))
                    .ok_or_else(Status::no_such_resource);
            }
            ["apis", group] => discovery::api_group(&types, group),
            ["apis", group, version] => {
                let name = format!("apis/{group}/{version}");
                let found = types.document(&name, || {
                    discovery::api_resources(&types, group, version).as_ref().map(documents::encode)
                });
                return match found {
                    Some(found) => Ok(respond::raw(200, documents::JSON, found)),
                    None if is_builtin_group(group) => Err(Status::no_such_resource()),
                    None => Ok(no_such_page()),
                };
            }
            ["openapi", "v2"] => {
                let hash =
                    documents::hash(&types, "v2", || Some(openapi::v2_hash(&types))).unwrap_or_default();
                return Ok(self.document(&types, "v2", &hash, || Some(openapi::v2(&types))));
            }
            ["openapi", "v3"] => {
                return Ok(documents::json(&types, "openapi/v3", || Some(openapi::v3_index(&types))));
            }
            ["openapi", "v3", "api", version] => return Ok(self.openapi(&types, "", version)),
            ["openapi", "v3", "apis", group, version] => return Ok(self.openapi(&types, group, version)),
            ["openid", "v1", "jwks"] => Some(self.components.authenticator.issuer().jwks()),
            [] => Some(json!({"paths": [
                "/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version",
            ]})),
            _ => None,
        };
        match found {
            Some(value) => Ok(respond::json(200, &value)),
            None => Ok(no_such_page()),
        }
    }

    fn wants_aggregated(&self) -> Option<&'static str> {
        negotiate::clauses(self.accept()?).iter().find_map(|clause| {
            let ours = clause.media == "application/json"
                && clause.param("g") == "apidiscovery.k8s.io"
                && clause.param("as") == "APIGroupDiscoveryList";
            (ours && clause.param("v") == "v2").then_some("v2")
        })
    }

    /// Returns whether the client accepts forms of discovery only that the server does not have.
    fn wants_unknown_form(&self) -> bool {
        let clauses = negotiate::clauses(self.accept().unwrap_or_default());
        !clauses.is_empty() && clauses.iter().all(|c| !c.param("as").is_empty())
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "37", "emulationMajor": "1", "emulationMinor": "37",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "36",
        "gitVersion": concat!("v1.37.0+kubewright-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "2026-08-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, arch()),
    })
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
