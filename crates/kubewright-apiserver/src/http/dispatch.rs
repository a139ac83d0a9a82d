//! From a request to the verb that answers it.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    ApiBody, decode, impersonate, negotiate,
    negotiate::{Accept, Format},
    respond,
    route::{Query, Route},
};
use crate::{
    authn::User,
    authz::Access,
    discovery, openapi,
    registry::{
        Registry, Types,
        actions::scale_type,
        builtin::GROUPS,
        call::{Answer, Call, WriteOptions},
        descriptor::{Descriptor, Json},
        json::text,
        semantics::{FieldValidation, PatchKind},
        validation::Errors,
        verbs::{delete::DeleteOptions, options::ListOptions},
    },
    schema::{Gvk, Schemas},
    status::{About, Status},
    table,
};

/// A request, read.
pub(super) struct Incoming<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) query: Query,
    pub(super) accept: Option<&'a str>,
    pub(super) content_type: Option<&'a str>,
    pub(super) user_agent: &'a str,
    pub(super) host: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Bytes,
}

impl Incoming<'_> {
    /// Answers the request.
    pub(super) async fn handle(&self, registry: &Registry, peer: Option<&User>) -> Response<ApiBody> {
        match self.serve(registry, peer).await {
            Ok(response) => response,
            Err(refusal) => respond::status(&refusal, negotiate::of_refusal(self.accept)),
        }
    }

    /// Answers a request that may write: not before what it saw and did is committed, refusals included.
    pub(super) async fn handle_write(&self, registry: &Registry, peer: Option<&User>) -> Response<ApiBody> {
        if let Err(error) = registry.storage.accepts_writes() {
            return respond::status(&Status::internal(error.to_string()), negotiate::of_refusal(self.accept));
        }
        let response = self.handle(registry, peer).await;
        match registry.storage.flush().await {
            Ok(()) => response,
            Err(error) => {
                respond::status(&Status::internal(error.to_string()), negotiate::of_refusal(self.accept))
            }
        }
    }

    async fn serve(&self, registry: &Registry, peer: Option<&User>) -> Result<Response<ApiBody>, Status> {
        let user = registry.authenticator.authenticate(registry, peer, self.headers)?;
        let route = Route::parse(self.method, self.path, &self.query);
        let user = impersonate::resolve(registry, user, self.headers, &route)?;
        let access = if route.is_resource {
            Access {
                verb: &route.verb,
                group: &route.group,
                version: &route.version,
                resource: &route.resource,
                subresource: &route.subresource,
                namespace: &route.namespace,
                name: &route.name,
                path: "",
            }
        } else {
            Access { verb: &route.verb, path: self.path, ..Access::default() }
        };
        // `namespaces/x` is checked in that namespace but spoken of at the cluster's scope.
        let spoken = if route.resource == "namespaces" && route.is_resource {
            Access { namespace: "", ..access }
        } else {
            access
        };
        if !registry.authorizer.decide(registry, &user, &access).allowed {
            return Err(spoken.refusal(&user));
        }
        if route.is_resource { self.resource(registry, &user, &route).await } else { self.path(registry) }
    }

    /// Paths that are no resources.
    fn path(&self, registry: &Registry) -> Result<Response<ApiBody>, Status> {
        let parts: Vec<&str> = self.path.split('/').filter(|p| !p.is_empty()).collect();
        let types = registry.types();
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
                    let document =
                        types.document(&name, || Some(bytes(&discovery::aggregated(&types, core, version))));
                    let media = format!(
                        "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                    );
                    return Ok(respond::raw(200, &media, document.unwrap_or_default()));
                }
                if core {
                    Some(discovery::api_versions(self.host))
                } else {
                    return Ok(known(&types, "apis", || Some(discovery::api_groups(&types))));
                }
            }
            ["api", version] => {
                let name = format!("api/{version}");
                let found = types
                    .document(&name, || discovery::api_resources(&types, "", version).as_ref().map(bytes));
                return found
                    .map(|found| respond::raw(200, JSON, found))
                    .ok_or_else(Status::no_such_resource);
            }
            ["apis", group] => discovery::api_group(&types, group),
            ["apis", group, version] => {
                let name = format!("apis/{group}/{version}");
                let found = types
                    .document(&name, || discovery::api_resources(&types, group, version).as_ref().map(bytes));
                return match found {
                    Some(found) => Ok(respond::raw(200, JSON, found)),
                    None if is_builtin_group(group) => Err(Status::no_such_resource()),
                    None => Ok(no_such_page()),
                };
            }
            ["openapi", "v2"] => {
                let hash = kept_hash(&types, "v2", || Some(openapi::v2_hash(&types))).unwrap_or_default();
                return Ok(self.document(&types, "v2", &hash, || Some(openapi::v2(&types))));
            }
            ["openapi", "v3"] => {
                return Ok(known(&types, "openapi/v3", || Some(openapi::v3_index(&types))));
            }
            ["openapi", "v3", "api", version] => return Ok(self.openapi(&types, "", version)),
            ["openapi", "v3", "apis", group, version] => return Ok(self.openapi(&types, group, version)),
            ["openid", "v1", "jwks"] => Some(registry.tokens.jwks()),
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

    fn openapi(&self, types: &Types, group: &str, version: &str) -> Response<ApiBody> {
        let name = format!("v3/{group}/{version}");
        let Some(hash) = kept_hash(types, &name, || openapi::v3_hash(types, group, version)) else {
            return respond::text(404, "404 page not found\n");
        };
        // Under its hash a document never changes; under any other it is somewhere else.
        let asked = self.query.get("hash").unwrap_or_default();
        if !asked.is_empty() && asked != hash {
            return respond::moved(&format!("{}?hash={hash}", self.path));
        }
        let mut response = self.document(types, &name, &hash, || openapi::v3(types, group, version));
        if !asked.is_empty() {
            respond::keep_forever(&mut response);
        }
        response
    }

    /// A document that clients keep: 304 when they have it.
    fn document(
        &self,
        types: &Types,
        name: &str,
        hash: &str,
        make: impl FnOnce() -> Option<Value>,
    ) -> Response<ApiBody> {
        let tag = format!("\"{hash}\"");
        let known = self.headers.get("if-none-match").and_then(|v| v.to_str().ok()).unwrap_or_default();
        if known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag) {
            return respond::tagged(respond::raw(304, "application/json", Vec::new()), &tag);
        }
        let media = self.accept.map(negotiate::clauses).unwrap_or_default();
        let readable = |media: &str| matches!(media, "application/json" | "application/*" | "*/*");
        if !media.is_empty() && !media.iter().any(|clause| readable(clause.media)) {
            return respond::status(&negotiate::not_acceptable(), negotiate::Encoding::Json);
        }
        match types.document(name, || make().as_ref().map(bytes)) {
            Some(document) => respond::tagged(respond::raw(200, JSON, document), &tag),
            None => respond::text(404, "404 page not found\n"),
        }
    }

    fn wants_aggregated(&self) -> Option<&'static str> {
        negotiate::clauses(self.accept?).iter().find_map(|clause| {
            let ours = clause.media == "application/json"
                && clause.param("g") == "apidiscovery.k8s.io"
                && clause.param("as") == "APIGroupDiscoveryList";
            (ours && clause.param("v") == "v2").then_some("v2")
        })
    }

    /// Whether nothing but forms of discovery is accepted that the server does not have.
    fn wants_unknown_form(&self) -> bool {
        let clauses = negotiate::clauses(self.accept.unwrap_or_default());
        !clauses.is_empty() && clauses.iter().all(|c| !c.param("as").is_empty())
    }

    async fn resource(
        &self,
        registry: &Registry,
        user: &User,
        route: &Route,
    ) -> Result<Response<ApiBody>, Status> {
        let Some(ty) = registry.resolve(&route.group, &route.version, &route.resource) else {
            return if is_builtin_group(&route.group) {
                Err(Status::no_such_resource())
            } else {
                Ok(no_such_page())
            };
        };
        let is_namespace = ty.group.is_empty() && ty.plural == "namespaces";
        let inside = !route.namespace.is_empty() && !is_namespace;
        let whole_cluster = matches!(route.verb.as_str(), "list" | "watch" | "deletecollection");
        if (inside && !ty.namespaced()) || (ty.namespaced() && !inside && !whole_cluster) {
            if ty.custom.is_some() {
                return Ok(no_such_page());
            }
            let collection_post = route.verb == "create" && route.name.is_empty();
            return Err(if ty.namespaced() && collection_post {
                Status::method_not_allowed()
            } else {
                Status::no_such_resource()
            });
        }
        if !route.subresource.is_empty() && ty.subresource(&route.subresource).is_none() {
            return Err(match ty.custom {
                Some(_) => Status::not_found(ty.about(&route.name)),
                None => Status::no_such_resource(),
            });
        }
        let accept = Accept::parse(self.accept, is_builtin(&ty))?;
        let call = Call {
            ty: &ty,
            namespace: if is_namespace { "" } else { &route.namespace },
            name: &route.name,
            subresource: &route.subresource,
            user,
            options: self.write_options(&route.verb)?,
            warnings: Mutex::default(),
        };
        if ty.group.is_empty() && ty.plural == "endpoints" {
            call.warn("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
        }
        if let Some(warning) = ty.custom.as_ref().and_then(|custom| custom.resource().deprecation_warning()) {
            call.warn(warning);
        }
        let result = self.verb(registry, &call, route).await;
        let mut response = match result {
            Ok(answer) => {
                let options = match &accept.shape {
                    negotiate::Shape::Table(_) => table::Options::parse(self.query.get("includeObject"))?,
                    _ => table::Options::default(),
                };
                respond::answer(answer, &accept, &registry.clock, options)
            }
            Err(refusal) => respond::status(&refusal, accept.encoding),
        };
        respond::warn(&mut response, &call.warnings.lock());
        Ok(response)
    }

    async fn verb(&self, registry: &Registry, call: &Call<'_>, route: &Route) -> Result<Answer, Status> {
        let allowed = match call.ty.subresource(call.subresource) {
            Some(sub) => sub.verbs.iter().any(|v| *v == route.verb),
            None => call.ty.has_verb(&route.verb),
        };
        if !allowed {
            return Err(match call.ty.custom {
                Some(_) => Status::not_supported(call.ty.about(""), &route.verb),
                None => Status::method_not_allowed(),
            });
        }
        match route.verb.as_str() {
            "list" | "watch" => {
                let mut options = ListOptions::parse(self.query.iter())?;
                options.watch = route.verb == "watch";
                // A name that came out of the selector is still held by that; one of an old watch path is not.
                let selected = options.fields.required("metadata.name").is_some();
                let name = if selected { "" } else { call.name };
                let call =
                    &Call { name, options: WriteOptions::default(), warnings: Mutex::default(), ..*call };
                if options.watch { registry.watch(call, &options) } else { registry.list(call, &options) }
            }
            "get" => {
                if let Some(answer) = registry.inspect(call, self.query.iter()) {
                    return answer;
                }
                registry.get(call, self.query.get("resourceVersion").unwrap_or_default())
            }
            "create" => {
                let object = self.object(registry, call)?;
                if !call.subresource.is_empty() {
                    return registry.act(call, &object).await;
                }
                if let Some(answer) = registry.ask(call, &object).await {
                    return answer;
                }
                registry.create(call, object).await
            }
            "update" => {
                let object = self.object(registry, call)?;
                match call.subresource {
                    "scale" => registry.put_scale(call, &object).await,
                    "finalize" => registry.finalize(call, &object).await,
                    _ => registry.update(call, object).await,
                }
            }
            "patch" => self.patch(registry, call).await,
            "delete" => registry.delete(call, &self.delete_options()?).await,
            "deletecollection" => {
                let list = ListOptions::parse(self.query.iter())?;
                let options = self.delete_options()?;
                let call =
                    &Call { name: "", warnings: Mutex::default(), options: call.options.clone(), ..*call };
                registry.delete_collection(call, &list, &options).await
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    /// The body as an object of the call's kind.
    fn object(&self, registry: &Registry, call: &Call<'_>) -> Result<Json, Status> {
        let (kind, version) = body_kind(call.ty, call.subresource);
        let (body, format) = self.text(&kind, &version, is_builtin(call.ty))?;
        let check_first = || {
            let said = decode::type_meta(&kind, &body, format)?;
            decode::check_kind(call.ty, &kind, &version, &said)
        };
        let own = call.ty.has_verb("get")
            && matches!(
                call.subresource,
                "" | "status" | "ephemeralcontainers" | "resize" | "approval" | "finalize"
            );
        let typed = match call.subresource {
            "scale" => Some(Cow::Owned(scale_type(call.ty)?)),
            _ => own.then(|| Cow::Borrowed(&**call.ty)),
        };
        let mut object = if let Some(ty) = typed {
            let decode = || registry.semantics.decode(&ty, &body, format, call.options.field_validation);
            // A body of a built-in type is read once and then asked what it is. One that cannot be read may be of
            // another type, and whoever sent it should be told that first.
            let decoded = if ty.custom.is_none() && ty.kind == kind {
                match decode() {
                    Ok(decoded) => {
                        let said = decode::TypeMeta::of(&decoded.object);
                        decode::check_kind(call.ty, &kind, &version, &said)?;
                        decoded
                    }
                    Err(refusal) => return check_first().and(Err(refusal)),
                }
            } else {
                check_first()?;
                decode()?
            };
            for warning in decoded.warnings {
                call.warn(warning);
            }
            decoded.object
        } else {
            check_first()?;
            decode::plain(&kind, &body, format)?
        };
        decode::check_metadata(&kind, &object)?;
        // What else a custom resource says that it is, is a mistake in its content.
        let own = call.ty.custom.is_some() && call.subresource != "scale";
        if !own || !object.contains_key("kind") {
            object.insert("kind".into(), kind.into());
        }
        object.insert("apiVersion".into(), version.into());
        Ok(object)
    }

    /// The body as text: protobuf becomes JSON here, and nobody behind this knows of it.
    fn text(&self, kind: &str, api_version: &str, protobuf: bool) -> Result<(Cow<'_, [u8]>, Format), Status> {
        if protobuf && negotiate::is_protobuf(self.content_type) {
            return Ok((Cow::Owned(decode::protobuf(kind, api_version, &self.body)?), Format::Json));
        }
        Ok((Cow::Borrowed(&self.body), negotiate::body_format(self.content_type)?))
    }

    async fn patch(&self, registry: &Registry, call: &Call<'_>) -> Result<Answer, Status> {
        let media = self.content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let kind = match media {
            "application/json-patch+json" => PatchKind::Json,
            "application/merge-patch+json" => PatchKind::Merge,
            "application/strategic-merge-patch+json" => PatchKind::Strategic,
            "application/apply-patch+yaml" => PatchKind::Apply,
            _ => return Err(negotiate::unsupported_patch(call.ty.custom.is_some())),
        };
        if kind == PatchKind::Strategic && call.ty.custom.is_some() {
            return Err(negotiate::unsupported_patch(true));
        }
        match call.subresource {
            "scale" => registry.patch_scale(call, kind, &self.body).await,
            _ => registry.patch(call, kind, &self.body).await,
        }
    }

    fn delete_options(&self) -> Result<DeleteOptions, Status> {
        if self.body.is_empty() {
            return DeleteOptions::parse(None, self.query.iter());
        }
        let (body, format) = self.text("DeleteOptions", "v1", true)?;
        let body = decode::plain("DeleteOptions", &body, format)?;
        let (kind, version) = (text(&body, "kind"), text(&body, "apiVersion"));
        if !matches!(kind, "" | "DeleteOptions") {
            return Err(Status::bad_request(format!(
                "no kind {kind:?} is registered for version {version:?}"
            )));
        }
        DeleteOptions::parse(Some(&body), self.query.iter())
    }

    fn write_options(&self, verb: &str) -> Result<WriteOptions, Status> {
        let mut options = WriteOptions::default();
        if !matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection") {
            return Ok(options);
        }
        let mut errors = Errors::default();
        for (key, value) in self.query.iter() {
            match (key, value) {
                ("dryRun", "All") => options.dry_run = true,
                ("dryRun", other) => errors.not_supported("dryRun", json!([other]), &["All"]),
                ("fieldManager", value) => {
                    if value.len() > 128 {
                        errors.too_long("fieldManager", 128);
                    }
                    value.clone_into(&mut options.field_manager);
                }
                ("fieldValidation", "" | "Warn") => {}
                ("fieldValidation", "Ignore") => options.field_validation = FieldValidation::Ignore,
                ("fieldValidation", "Strict") => options.field_validation = FieldValidation::Strict,
                ("fieldValidation", other) => {
                    errors.not_supported("fieldValidation", other, &["", "Ignore", "Strict", "Warn"]);
                }
                ("force", value) => options.force = Some(crate::registry::verbs::options::flag(value)),
                _ => {}
            }
        }
        let apply = self.content_type.is_some_and(|t| t.starts_with("application/apply-patch"));
        if verb == "patch" && !apply && options.force.is_some() {
            errors.forbidden("force", "may not be specified for non-apply patch");
        }
        if verb == "patch" && apply && options.field_manager.is_empty() {
            errors.required("fieldManager", "is required for apply patch");
        }
        if !errors.is_empty() {
            let kind = match verb {
                "create" => "CreateOptions",
                "update" => "UpdateOptions",
                "patch" => "PatchOptions",
                _ => "DeleteOptions",
            };
            return Err(Status::invalid(About { group: "meta.k8s.io", kind, name: "" }, &errors));
        }
        if options.field_manager.is_empty() {
            // Without a name, the first part of the user agent is the manager.
            let agent = self.user_agent.split('/').next().unwrap_or_default();
            let printable: String = agent.chars().filter(|c| !c.is_control()).take(128).collect();
            options.field_manager = if printable.is_empty() { "unknown".to_owned() } else { printable };
        }
        Ok(options)
    }
}

/// Groups whose handlers know them without any definition.
fn is_builtin_group(group: &str) -> bool {
    group.is_empty() || GROUPS.iter().any(|rank| rank.group == group)
}

/// What nobody answers for.
fn no_such_page() -> Response<ApiBody> {
    respond::text(404, "404 page not found\n")
}

/// Whether a type has a Go type, and with it a protobuf form.
fn is_builtin(ty: &Descriptor) -> bool {
    let gvk = Gvk::new(ty.group.as_ref(), ty.version.as_ref(), ty.kind.as_ref());
    Schemas::builtin().definition_of(&gvk).is_some()
}

/// The kind that a body must have.
fn body_kind(ty: &Descriptor, subresource: &str) -> (String, String) {
    match ty.subresource(subresource) {
        Some(sub) if !sub.group.is_empty() => {
            (sub.kind.to_string(), format!("{}/{}", sub.group, sub.version))
        }
        Some(sub) => (sub.kind.to_string(), ty.api_version()),
        None => (ty.kind.to_string(), ty.api_version()),
    }
}

const JSON: &str = "application/json";

fn bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// A document about the types.
fn known(types: &Types, name: &str, make: impl FnOnce() -> Option<Value>) -> Response<ApiBody> {
    match types.document(name, || make().as_ref().map(bytes)) {
        Some(document) => respond::raw(200, JSON, document),
        None => no_such_page(),
    }
}

/// The hash of a document, which is as good as the document for as long.
fn kept_hash(types: &Types, name: &str, make: impl FnOnce() -> Option<String>) -> Option<String> {
    let hash = types.document(&format!("hash of {name}"), || make().map(Bytes::from))?;
    Some(String::from_utf8_lossy(&hash).into_owned())
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
