//! Minimal API server for scenarios: objects in a map, no storage, no network.

use std::collections::BTreeMap;

use kubewright_schema::{
    Gvk, Schemas, TypeRef,
    apply::{ApplyError, FieldManager, FieldSet, keep_times_if_unchanged, scale},
    body::{self, BodyError, Decoded, Format, Limits},
    canonical,
    default::apply_defaults,
    field::{self, FieldError},
    lists,
    patch::{self, PatchError},
    prune::prune,
    validate::Validator,
};
use serde_json::{Map, Value, json};

use crate::defaults;

const NOW: &str = "2026-08-20T00:00:00Z";
const RUN: &str = "r4nd0m";

/// Response to a request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

impl From<(u16, Value)> for Answer {
    fn from((status, body): (u16, Value)) -> Self {
        Self { status, body, warnings: Vec::new() }
    }
}

type Rejection = (u16, Value);

/// Type of a resource.
#[derive(Clone)]
struct Type {
    gvk: Gvk,
    schema: TypeRef,
    validator: Option<Validator>,
}

struct Request<'r> {
    kind: Type,
    key: String,
    name: Option<String>,
    subresource: String,
    query: BTreeMap<String, String>,
    content_type: String,
    manager: String,
    body: Vec<u8>,
    method: &'r str,
}

pub(crate) struct World {
    objects: BTreeMap<String, Value>,
    crds: BTreeMap<String, Value>,
    raw: Map<String, Value>,
    tokens: BTreeMap<String, String>,
    version: u64,
}

fn status(code: u16, message: &str, reason: Option<&str>, details: Value) -> Rejection {
    let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                          "message": message, "code": code});
    if let Some(reason) = reason {
        body["reason"] = reason.into();
    }
    if !details.is_null() {
        body["details"] = details;
    }
    (code, body)
}

fn bad_request(message: &str) -> Rejection {
    status(400, message, Some("BadRequest"), Value::Null)
}

fn invalid_patch(detail: &str, printed: &str) -> Rejection {
    let error = FieldError::new(field::ErrorKind::Invalid, "patch", printed, detail);
    let causes = json!([{"reason": error.kind.reason(), "message": error.message(), "field": error.field}]);
    status(422, &format!(" \"\" is invalid: {error}"), Some("Invalid"), json!({"causes": causes}))
}

fn apply_rejection(error: &ApplyError) -> Rejection {
    let message = error.to_string();
    match error {
        ApplyError::Conflict(conflicts) => {
            let causes: Vec<_> = conflicts
                .0
                .iter()
                .map(
                    |c| json!({"reason": "FieldManagerConflict", "message": c.message(), "field": c.field()}),
                )
                .collect();
            status(409, &message, Some("Conflict"), json!({"causes": causes}))
        }
        ApplyError::BadRequest(_) => bad_request(&message),
        _ => status(error.code(), &message, None, Value::Null),
    }
}

fn patch_rejection(error: &PatchError) -> Rejection {
    let reason = match error {
        PatchError::BadRequest(_) => Some("BadRequest"),
        PatchError::Unprocessable(_) => Some("Invalid"),
        _ => None,
    };
    status(error.code(), &error.message(), reason, Value::Null)
}

impl World {
    pub(crate) fn new() -> Self {
        let raw = json!({"run": {"id": RUN, "ns": format!("gold-{RUN}")}});
        let Value::Object(raw) = raw else { unreachable!() };
        Self { objects: BTreeMap::new(), crds: BTreeMap::new(), raw, tokens: BTreeMap::new(), version: 0 }
    }

    pub(crate) fn remember(&mut self, step: &str, answer: &Answer) {
        self.raw.insert(step.to_owned(), answer.body.clone());
    }

    /// Returns whether a recorded text matches this one; a token has the same value everywhere in a scenario.
    pub(crate) fn same_text(&mut self, want: &str, got: &str) -> bool {
        let want = want.replace("<id>", RUN);
        if want == got || want == "<time>" {
            return true;
        }
        let is_token = want.starts_with("<uid-") || want.starts_with("<rv-");
        is_token && self.tokens.entry(want).or_insert_with(|| got.to_owned()) == got
    }

    fn fill(&self, text: &str) -> String {
        let mut out = text.to_owned();
        while let Some((before, rest)) = out.split_once("${") {
            let (name, after) = rest.split_once('}').unwrap();
            let pointer = format!("/{}", name.replace('.', "/"));
            let value = Value::Object(self.raw.clone())
                .pointer(&pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            out = format!("{before}{value}{after}");
        }
        out
    }

    /// Answers a request; `written` is its JSON body as written, with keys in order.
    pub(crate) fn answer(&mut self, request: &Value, written: &str) -> Answer {
        let path = self.fill(request["path"].as_str().unwrap());
        let text = match request.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => written.to_owned(),
        };
        let body = self.fill(&text).into_bytes();
        let header = |name: &str| request["headers"][name].as_str().unwrap_or_default().to_owned();
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let query: BTreeMap<_, _> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect();
        let method = request["method"].as_str().unwrap();
        if let Some(rest) = path.strip_prefix("/apis/apiextensions.k8s.io/v1/customresourcedefinitions") {
            return self.definition(method, rest.trim_start_matches('/'), &body);
        }
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match &*parts {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => panic!("{path}"),
        };
        let ["namespaces", _, resource, rest @ ..] = rest else { panic!("{path}") };
        let agent = Some(header("User-Agent"))
            .filter(|a| !a.is_empty())
            .unwrap_or_else(|| "golden-replay".to_owned());
        let agent = agent.split('/').next().unwrap().to_owned();
        let request = Request {
            kind: self.type_of(group, version, resource),
            key: format!("{group}/{resource}/{}", rest.first().unwrap_or(&"")),
            name: rest.first().map(|name| (*name).to_owned()),
            subresource: rest.get(1).map(|s| (*s).to_owned()).unwrap_or_default(),
            manager: query.get("fieldManager").cloned().unwrap_or(agent),
            content_type: header("Content-Type"),
            query,
            body,
            method,
        };
        self.serve(&request).unwrap_or_else(Answer::from)
    }

    fn definition(&mut self, method: &str, name: &str, body: &[u8]) -> Answer {
        let body: Value = serde_json::from_slice(body).unwrap();
        if method == "POST" {
            let group = body["spec"]["group"].as_str().unwrap().to_owned();
            self.crds.insert(group, body.clone());
            return (201, body).into();
        }
        let crd = self.crds.values_mut().find(|crd| crd["metadata"]["name"] == name).unwrap();
        *crd = patch::json::apply(crd.clone(), &body).unwrap();
        (200, crd.clone()).into()
    }

    fn type_of(&self, group: &str, version: &str, resource: &str) -> Type {
        let kind = match resource {
            "configmaps" => "ConfigMap",
            "deployments" => "Deployment",
            "services" => "Service",
            _ => {
                let crd = &self.crds[group];
                let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                return Type {
                    gvk: Gvk::new(group, version, crd["spec"]["names"]["kind"].as_str().unwrap()),
                    schema: TypeRef::from_structural(schema).unwrap(),
                    validator: Some(Validator::new(schema).unwrap()),
                };
            }
        };
        let gvk = Gvk::new(group, version, kind);
        Type { schema: Schemas::builtin().lookup(&gvk).unwrap(), gvk, validator: None }
    }

    fn serve(&mut self, request: &Request<'_>) -> Result<Answer, Rejection> {
        match (request.method, &request.name) {
            ("POST", _) => self.create(request),
            ("GET", Some(_)) => Ok((200, self.read(request)).into()),
            ("GET", None) => {
                let of_type = request.key.clone();
                let items: Vec<_> = self
                    .objects
                    .iter()
                    .filter(|(k, _)| k.starts_with(&of_type))
                    .map(|(_, v)| v.clone())
                    .collect();
                let items: Vec<_> = items.into_iter().map(|item| defaulted(&request.kind, item)).collect();
                Ok((200, json!({"items": items})).into())
            }
            ("PATCH", _) if request.content_type.contains("apply") && request.subresource == "scale" => {
                self.apply_scale(request)
            }
            ("PATCH", _) => self.patch(request),
            other => panic!("{other:?}"),
        }
    }

    fn read(&self, request: &Request<'_>) -> Value {
        defaulted(&request.kind, self.objects[&request.key].clone())
    }

    fn create(&mut self, request: &Request<'_>) -> Result<Answer, Rejection> {
        let kind = &request.kind;
        let format = if request.content_type.contains("yaml") { Format::Yaml } else { Format::Json };
        let typed = kind.validator.is_none().then_some((&*kind.schema, &*kind.gvk.kind));
        let Decoded { mut value, mut findings } =
            body::decode(&request.body, format, typed, &Limits::default())
                .map_err(|error| cannot_handle(kind, &error.to_string()))?;
        if kind.validator.is_some() {
            findings.extend(prune(&kind.schema, &mut value));
        }
        let warnings = field_validation(request, &findings)
            .map_err(|findings| cannot_handle(kind, &body::strict_error(findings)))?;
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let object =
            self.finish(request, None, value, |fields, new| Ok(fields.update(None, new, &request.manager)))?;
        let key = format!("{}{name}", request.key);
        let object = self.store(key, object);
        Ok(Answer { status: 201, body: object, warnings })
    }

    fn patch(&mut self, request: &Request<'_>) -> Result<Answer, Rejection> {
        let kind = &request.kind;
        let live = self.objects.get(&request.key).cloned();
        if request.content_type.contains("apply") {
            let config = apply_body(&request.body)?;
            let force = request.query.get("force").is_some_and(|force| force == "true");
            let object = self.finish(request, live.as_ref(), config, |fields, config| {
                fields
                    .apply(live.as_ref(), &config, &request.manager, force)
                    .map_err(|error| apply_rejection(&error))
            })?;
            let status = if live.is_some() { 200 } else { 201 };
            return Ok((status, self.store(request.key.clone(), object)).into());
        }
        let live = live.unwrap();
        let decoded =
            patch::decode(&request.body, &Limits::default()).map_err(|error| patch_rejection(&error))?;
        let (patch, mut findings) = (decoded.value.clone(), decoded.findings.clone());
        let patched = if request.content_type.contains("json-patch") {
            patch::json::apply(live.clone(), &patch)
        } else if request.content_type.contains("strategic") {
            patch::strategic::apply(&kind.schema, live.clone(), patch.clone())
        } else {
            patch::merge::apply(live.clone(), patch.clone())
        };
        let mut patched = patched.map_err(|error| patch_rejection(&error))?;
        if request.content_type.contains("json-patch") {
            findings = patch::json::findings(&decoded);
        }
        findings.extend(if kind.validator.is_some() {
            prune(&kind.schema, &mut patched)
        } else {
            let checked = body::check(&patched, Some((&kind.schema, &kind.gvk.kind)), &Limits::default());
            let refuse = |error: BodyError| invalid_patch(&error.to_string(), &patched.to_string());
            checked.map_err(refuse)?.findings
        });
        let printed = if request.content_type.contains("strategic") {
            body::go_string(&patch)
        } else {
            patched.to_string()
        };
        let warnings = field_validation(request, &findings)
            .map_err(|findings| invalid_patch(&body::strict_error(findings), &printed))?;
        let object = self.finish(request, Some(&live), patched, |fields, new| {
            Ok(fields.update(Some(&live), new, &request.manager))
        })?;
        Ok(Answer { status: 200, body: self.store(request.key.clone(), object), warnings })
    }

    /// Processes an object from the request to the stored form.
    fn finish(
        &mut self,
        request: &Request<'_>,
        live: Option<&Value>,
        new: Value,
        track: impl FnOnce(&FieldManager<'_>, Value) -> Result<Value, Rejection>,
    ) -> Result<Value, Rejection> {
        let kind = &request.kind;
        let reset = match (&*request.subresource, &kind.validator) {
            ("status", None) => FieldSet::from_field_names([&["spec"][..], &["metadata", "labels"]]),
            (_, None) => FieldSet::from_field_names([&["status"][..]]),
            _ => FieldSet::new(),
        };
        let fields = FieldManager::new(&kind.schema, &kind.gvk, NOW)
            .with_subresource(&request.subresource)
            .with_reset_fields(&reset);
        let is_apply = request.content_type.contains("apply");
        let prepare = |object: Value| {
            let mut object = defaulted(kind, object);
            if kind.validator.is_none() {
                defaults::fill(&kind.gvk.kind, &mut object);
                canonical::canonicalise(&kind.schema, &mut object);
            }
            object
        };
        let mut object = if is_apply { prepare(track(&fields, new)?) } else { track(&fields, prepare(new))? };
        if kind.validator.is_some() {
            prune(&kind.schema, &mut object);
        }
        if let Some(validator) = &kind.validator {
            let mut errors = match live {
                Some(live) => validator.validate_update(&object, live),
                None => validator.validate(&object),
            };
            errors.extend(lists::validate(&kind.schema, &object));
            if !errors.is_empty() {
                return Err(invalid(kind, &object, &errors));
            }
        }
        self.identify(request, live, &mut object);
        Ok(object)
    }

    fn identify(&mut self, request: &Request<'_>, live: Option<&Value>, object: &mut Value) {
        let has_generation = request.kind.validator.is_some() || request.kind.gvk.kind == "Deployment";
        let Some(live) = live else {
            self.version += 1;
            let name = request.name.clone().unwrap_or_default();
            let metadata = &mut object["metadata"];
            if metadata.get("name").is_none() {
                metadata["name"] = name.into();
            }
            metadata["namespace"] = format!("gold-{RUN}").into();
            metadata["uid"] = format!("uid-{}", self.version).into();
            metadata["creationTimestamp"] = NOW.into();
            if has_generation {
                metadata["generation"] = 1.into();
            }
            return;
        };
        for field in ["uid", "creationTimestamp", "generation", "resourceVersion"] {
            if let Some(value) = live["metadata"].get(field) {
                object["metadata"][field] = value.clone();
            }
        }
        keep_times_if_unchanged(live, object);
        if has_generation
            && (live["spec"] != object["spec"]
                || (request.kind.validator.is_some() && other_content(live) != other_content(object)))
        {
            object["metadata"]["generation"] = (live["metadata"]["generation"].as_i64().unwrap() + 1).into();
        }
    }

    /// Stores a changed object with a new version.
    fn store(&mut self, key: String, mut object: Value) -> Value {
        if self.objects.get(&key) != Some(&object) {
            self.version += 1;
            object["metadata"]["resourceVersion"] = self.version.to_string().into();
            self.objects.insert(key, object.clone());
        }
        object
    }

    fn apply_scale(&mut self, request: &Request<'_>) -> Result<Answer, Rejection> {
        let parent = self.objects[&request.key].clone();
        let api_version = request.kind.gvk.api_version();
        let paths = BTreeMap::from([(api_version.clone(), Some(scale::spec_replicas()))]);
        let entries = &parent["metadata"]["managedFields"];
        let gvk = Gvk::new("autoscaling", "v1", "Scale");
        let schema = Schemas::builtin().lookup(&gvk).unwrap();
        let mut live = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
                              "metadata": {"name": parent["metadata"]["name"], "uid": "x"},
                              "spec": {"replicas": parent["spec"]["replicas"]}});
        scale::to_scale(entries, &paths).unwrap().write_to(&mut live);
        let force = request.query.get("force").is_some_and(|force| force == "true");
        let fields = FieldManager::new(&schema, &gvk, NOW).with_subresource("scale");
        let config = apply_body(&request.body)?;
        let mut applied = fields
            .apply(Some(&live), &config, &request.manager, force)
            .map_err(|error| apply_rejection(&error))?;
        let mut object = parent.clone();
        object["spec"]["replicas"] = applied["spec"]["replicas"].clone();
        scale::to_parent(entries, &applied["metadata"]["managedFields"], &api_version, &paths)
            .unwrap()
            .write_to(&mut object);
        object["metadata"]["generation"] = (parent["metadata"]["generation"].as_i64().unwrap() + 1).into();
        self.store(request.key.clone(), object);
        applied["metadata"].as_object_mut().unwrap().remove("managedFields");
        Ok((200, applied).into())
    }
}

fn other_content(object: &Value) -> Value {
    let mut object = object.clone();
    object.as_object_mut().unwrap().remove("metadata");
    object
}

fn defaulted(kind: &Type, mut object: Value) -> Value {
    if kind.validator.is_some() {
        apply_defaults(&kind.schema, &mut object);
    }
    object
}

fn apply_body(body: &[u8]) -> Result<Value, Rejection> {
    let decoded = body::decode(body, Format::Yaml, None, &Limits::default())
        .map_err(|error| bad_request(&format!("error encoding patch: {error}")))?;
    if !decoded.value.is_object() {
        return Err(bad_request(
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go \
             value of type map[string]interface {}",
        ));
    }
    Ok(decoded.value)
}

fn cannot_handle(kind: &Type, reason: &str) -> Rejection {
    let Gvk { version, kind, .. } = &kind.gvk;
    bad_request(&format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {reason}"))
}

fn field_validation<'f>(request: &Request<'_>, findings: &'f [String]) -> Result<Vec<String>, &'f [String]> {
    match request.query.get("fieldValidation").map(String::as_str) {
        Some("Strict") if !findings.is_empty() => Err(findings),
        Some("Ignore") => Ok(Vec::new()),
        _ => Ok(body::warnings(findings)),
    }
}

fn invalid(kind: &Type, object: &Value, errors: &[FieldError]) -> Rejection {
    let causes: Vec<_> = errors
        .iter()
        .map(|e| json!({"reason": e.kind.reason(), "message": e.message(), "field": e.field}))
        .collect();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let Gvk { group, kind, .. } = &kind.gvk;
    let message = format!("{kind}.{group} \"{name}\" is invalid: {}", field::join(errors));
    status(
        422,
        &message,
        Some("Invalid"),
        json!({"name": name, "group": group, "kind": kind, "causes": causes}),
    )
}
