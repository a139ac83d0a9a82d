//! Just enough of an API server to walk a scenario about custom resources: objects in a map, no storage, no network.

use std::collections::BTreeMap;

use kubewright_apiserver::{
    apply::{FieldManager, FieldSet, keep_times_of_unchanged},
    crd::{
        definition::{self, status},
        resource::{CustomResource, Versions},
    },
    patch,
    schema::{
        Gvk, Schemas, TypeRef,
        body::{self, Decoded, Format, Limits},
        canonical,
        field::FieldError,
    },
};
use serde_json::{Map, Value, json};

pub(crate) use crate::answers::Answer;
use crate::answers::{Named, Refusal, check_version, invalid, refuse, table, view};

const NOW: &str = "2026-08-20T00:00:00Z";
const RUN: &str = "r4nd0m";
const CRDS: &str = "customresourcedefinitions";

pub(crate) struct World {
    definitions: BTreeMap<String, Value>,
    /// Objects as they are stored, by definition and name.
    objects: BTreeMap<(String, String), Value>,
    raw: Map<String, Value>,
    tokens: BTreeMap<String, String>,
    version: u64,
}

/// What a path is about, with the headers that matter.
struct Request {
    method: String,
    rest: Vec<String>,
    query: BTreeMap<String, String>,
    content_type: String,
    accept: String,
    body: Vec<u8>,
}

impl Request {
    fn name(&self) -> Option<&str> {
        self.rest.first().map(String::as_str)
    }

    fn subresource(&self) -> &str {
        self.rest.get(1).map_or("", String::as_str)
    }

    fn is_dry(&self) -> bool {
        self.query.contains_key("dryRun")
    }
}

fn definition_schema() -> (TypeRef, Gvk) {
    let gvk = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    (Schemas::builtin().lookup(&gvk).unwrap(), gvk)
}

impl World {
    pub(crate) fn new() -> Self {
        let Value::Object(raw) = json!({"run": {"id": RUN, "ns": format!("gold-{RUN}")}}) else {
            unreachable!()
        };
        Self {
            definitions: BTreeMap::new(),
            objects: BTreeMap::new(),
            raw,
            tokens: BTreeMap::new(),
            version: 0,
        }
    }

    pub(crate) fn remember(&mut self, step: &str, answer: &Answer) {
        self.raw.insert(step.to_owned(), answer.body.clone());
    }

    /// Whether a recorded text stands for this one; a token means the same everywhere in a scenario.
    pub(crate) fn same_text(&mut self, want: &str, got: &str) -> bool {
        let want = want.replace("<id>", RUN);
        if want == got || matches!(&*want, "<time>" | "<list-rv>") {
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
            let raw = Value::Object(self.raw.clone());
            let value = raw.pointer(&pointer).and_then(Value::as_str).unwrap_or_default();
            out = format!("{before}{value}{after}");
        }
        out
    }

    /// Answers a request; `written` is its JSON body as it was written, keys in their order.
    pub(crate) fn answer(&mut self, request: &Value, written: &str) -> Answer {
        let path = self.fill(request["path"].as_str().unwrap());
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let query = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(k, v)| (k.to_owned(), v.replace("%3D", "=")))
            .collect();
        let header = |name: &str| request["headers"][name].as_str().unwrap_or_default().to_owned();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let ["apis", group, version, rest @ ..] = &*parts else { panic!("{path}") };
        let (namespaced, rest) = match rest {
            ["namespaces", _, rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let request = Request {
            method: request["method"].as_str().unwrap().to_owned(),
            rest: rest[1..].iter().map(|part| (*part).to_owned()).collect(),
            query,
            content_type: header("Content-Type"),
            accept: header("Accept"),
            body: self.fill(written).into_bytes(),
        };
        if rest[0] == CRDS {
            return self.definition(&request).map_or_else(Answer::from, Answer::from);
        }
        let gone = || (404, "404 page not found\n".into()).into();
        let Some(crd) = self.definitions.get(&format!("{}.{group}", rest[0])).cloned() else { return gone() };
        let served = crd["spec"]["versions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|v| v["name"] == *version && v["served"] == true);
        let wrong_scope = namespaced && crd["spec"]["scope"] == "Cluster";
        if !served || wrong_scope || !status::is_true(&crd, "Established") {
            return gone();
        }
        let resource = CustomResource::new(&crd, version).unwrap();
        let mut answer = self.resource(&crd, &resource, &request).unwrap_or_else(Answer::from);
        answer.warnings.splice(0..0, resource.deprecation_warning().map(str::to_owned));
        answer
    }

    fn definition(&mut self, request: &Request) -> Result<Refusal, Refusal> {
        let named = Named { plural: CRDS.to_owned(), group: "apiextensions.k8s.io".to_owned() };
        let (schema, gvk) = definition_schema();
        let live = request
            .name()
            .map(|name| self.definitions.get(name).cloned().ok_or_else(|| named.not_found(name)));
        let live = live.transpose()?;
        let refused = |crd: &Value, errors: &[FieldError]| {
            invalid(
                "apiextensions.k8s.io",
                &gvk.kind,
                crd["metadata"]["name"].as_str().unwrap_or_default(),
                errors,
            )
        };
        let reset = match request.subresource() {
            "status" => FieldSet::of_fields([&["spec"][..]]),
            _ => FieldSet::of_fields([&["status"][..]]),
        };
        let fields = FieldManager::new(&schema, &gvk, NOW).subresource(request.subresource()).reset(&reset);
        let mut new = match (&*request.method, &live) {
            ("GET", Some(live)) => return Ok((200, live.clone())),
            ("DELETE", Some(live)) => return Ok((200, self.delete_definition(live.clone()))),
            ("PATCH", Some(live)) => patched(request, live),
            _ => serde_json::from_slice(&request.body).unwrap(),
        };
        if let (Some(live), "PUT") = (&live, &*request.method) {
            check_version(&new, live, &named)?;
        }
        definition::apply_defaults(&mut new);
        let errors = match (&live, request.subresource()) {
            (None, _) => {
                definition::prepare_create(&mut new);
                definition::validate_create(&new)
            }
            (Some(live), "status") => {
                definition::prepare_status_update(&mut new, live);
                definition::validate_status_update(&new)
            }
            (Some(live), _) => {
                definition::prepare_update(&mut new, live);
                definition::validate_update(&new, live)
            }
        };
        if !errors.is_empty() {
            return Err(refused(&new, &errors));
        }
        canonical::canonicalise(&schema, &mut new);
        let mut new = fields.update(live.as_ref(), new, "golden-replay");
        canonical::forget_empty(&schema, &mut new);
        let generation = new["metadata"]["generation"].clone();
        self.identify(live.as_ref(), &mut new, None);
        new["metadata"]["generation"] = generation;
        let new = self.store_definition(new);
        self.settle(&new);
        Ok((if live.is_some() { 200 } else { 201 }, new))
    }

    fn store_definition(&mut self, mut crd: Value) -> Value {
        let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
        if self.definitions.get(&name) != Some(&crd) {
            self.version += 1;
            crd["metadata"]["resourceVersion"] = self.version.to_string().into();
            self.definitions.insert(name, crd.clone());
        }
        crd
    }

    /// What the controllers of the server do after a write.
    fn settle(&mut self, written: &Value) {
        let (schema, gvk) = definition_schema();
        let names: Vec<String> = self.definitions.keys().cloned().collect();
        let first = written["metadata"]["name"].as_str().unwrap().to_owned();
        for name in [first].into_iter().chain(names) {
            let Some(crd) = self.definitions.get(&name).cloned() else { continue };
            let Some(new) = status::refresh(&crd, self.definitions.values(), NOW) else { continue };
            let fields = FieldManager::new(&schema, &gvk, NOW).subresource("status");
            let new = fields.update(Some(&crd), new, "kube-apiserver");
            self.store_definition(new);
        }
    }

    fn delete_definition(&mut self, mut crd: Value) -> Value {
        let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
        status::mark_terminating(&mut crd, NOW);
        let crd = self.store_definition(crd);
        for ((_, _), object) in self.objects.iter_mut().filter(|((definition, _), _)| *definition == name) {
            object["metadata"]["deletionTimestamp"] = NOW.into();
        }
        let held =
            |object: &Value| object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        self.objects.retain(|(definition, _), object| *definition != name || held(object));
        self.finish_definition(&name);
        crd
    }

    fn finish_definition(&mut self, name: &str) {
        let deleting =
            self.definitions.get(name).is_some_and(|crd| !crd["metadata"]["deletionTimestamp"].is_null());
        if deleting && !self.objects.keys().any(|(definition, _)| definition == name) {
            let crd = self.definitions.remove(name).unwrap();
            self.settle(&crd);
        }
    }

    fn resource(
        &mut self,
        crd: &Value,
        resource: &CustomResource,
        request: &Request,
    ) -> Result<Answer, Refusal> {
        let text =
            |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let definition = text("/metadata/name");
        let named = Named { plural: text("/spec/names/plural"), group: text("/spec/group") };
        let subresource = request.subresource();
        let known = match subresource {
            "status" => resource.has_status(),
            "scale" => resource.scale().is_some(),
            _ => true,
        };
        let live = match request.name() {
            None => None,
            Some(name) => {
                let stored = self.objects.get(&(definition.clone(), name.to_owned())).filter(|_| known);
                Some(read(crd, resource, stored.ok_or_else(|| named.not_found(name))?.clone()))
            }
        };
        if !subresource.is_empty() && matches!(&*request.method, "POST" | "DELETE") {
            let verb = if request.method == "POST" { "create" } else { "delete" };
            let message =
                format!("{verb} is not supported on resources of kind \"{}.{}\"", named.plural, named.group);
            let details = json!({"group": named.group, "kind": named.plural});
            return Err(refuse(405, "MethodNotAllowed", &message, details));
        }
        match (&*request.method, live) {
            ("GET", None) => Ok((200, self.list(crd, resource, &definition, request)?).into()),
            ("GET", Some(live)) if subresource == "scale" => Ok((200, view(resource, &live)?).into()),
            ("GET", Some(live)) if request.accept.contains("as=Table") => {
                let include = request.query.get("includeObject").map_or("", String::as_str);
                Ok((200, table(resource, &[live], include)).into())
            }
            ("GET", Some(live)) => Ok((200, live).into()),
            ("DELETE", Some(live)) => Ok((200, self.delete(&definition, live, &named)).into()),
            (method, live) => self.write(crd, resource, &named, request, method, live.as_ref()),
        }
    }

    fn write(
        &mut self,
        crd: &Value,
        resource: &CustomResource,
        named: &Named,
        request: &Request,
        method: &str,
        live: Option<&Value>,
    ) -> Result<Answer, Refusal> {
        let subresource = request.subresource();
        let scale = resource.scale().filter(|_| subresource == "scale");
        let Decoded { mut value, mut findings } = match (method, live) {
            ("PATCH", Some(live)) => {
                let base = match scale {
                    Some(scale) => {
                        scale.view(live).unwrap_or_else(|_| json!({"metadata": live["metadata"], "spec": {}}))
                    }
                    None => live.clone(),
                };
                Decoded { value: patched(request, &base), findings: Vec::new() }
            }
            _ => body::decode(&request.body, Format::Json, None, &Limits::default()).unwrap(),
        };
        if let (Some(scale), Some(live)) = (scale, live) {
            value = scale.write(live, &value);
        }
        let (wanted, found) =
            (resource.gvk().api_version(), value["apiVersion"].as_str().unwrap_or_default().to_owned());
        if found != wanted {
            let message = format!(
                "the API version in the data ({found}) does not match the expected API version ({wanted})"
            );
            return Err(refuse(400, "BadRequest", &message, Value::Null));
        }
        if let (Some(live), "PUT") = (live, method)
            && (scale.is_none()
                || value["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"])
        {
            check_version(&value, live, named)?;
        }
        findings.extend(resource.prune(&mut value));
        resource.apply_defaults(&mut value);
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if live.is_none() {
            let definition = crd["metadata"]["name"].as_str().unwrap().to_owned();
            if !crd["metadata"]["deletionTimestamp"].is_null() {
                let message = format!(
                    "{} is forbidden: create not allowed while custom resource definition is terminating",
                    named.shown(&name)
                );
                return Err(refuse(403, "Forbidden", &message, named.details(&name)));
            }
            if self.objects.contains_key(&(definition, name.clone())) {
                let message = format!("{} already exists", named.shown(&name));
                return Err(refuse(409, "AlreadyExists", &message, named.details(&name)));
            }
        }
        self.identify(live, &mut value, crd["spec"]["scope"].as_str());
        let reset = match subresource {
            "status" => FieldSet::of_fields([&["metadata"][..], &["spec"]]),
            _ if resource.has_status() => FieldSet::of_fields([&["status"][..]]),
            _ => FieldSet::new(),
        };
        let gvk = resource.gvk().clone();
        let versions = Versions::of(crd).unwrap();
        let fields = FieldManager::new(resource.schema(), &gvk, NOW)
            .subresource(subresource)
            .reset(&reset)
            .converter(&versions);
        let found = match (live, subresource) {
            (None, _) => {
                resource.prepare_create(&mut value);
                resource.validate_create(&value)
            }
            (Some(live), "status") => {
                value = fields.update(Some(live), value, "golden-replay");
                resource.prepare_status_update(&mut value, live);
                resource.validate_status_update(&value, live)
            }
            (Some(live), _) => {
                resource.prepare_update(&mut value, live);
                resource.validate_update(&value, live)
            }
        };
        if !found.errors.is_empty() {
            return Err(invalid(&gvk.group, &gvk.kind, &name, &found.errors));
        }
        if subresource != "status" {
            value = fields.update(live, value, "golden-replay");
        }
        if let Some(live) = live {
            keep_times_of_unchanged(live, &mut value);
        }
        let mut warnings = body::warnings(&findings);
        warnings.extend(found.warnings);
        let body = if request.is_dry() { value } else { self.store(crd, resource, live, value) };
        let body = match scale {
            Some(_) => view(resource, &body)?,
            None => body,
        };
        Ok(Answer { status: if live.is_some() { 200 } else { 201 }, body, warnings })
    }

    fn store(
        &mut self,
        crd: &Value,
        resource: &CustomResource,
        live: Option<&Value>,
        mut value: Value,
    ) -> Value {
        let definition = crd["metadata"]["name"].as_str().unwrap().to_owned();
        let key = (definition.clone(), value["metadata"]["name"].as_str().unwrap().to_owned());
        if live != Some(&value) {
            self.version += 1;
            value["metadata"]["resourceVersion"] = self.version.to_string().into();
        }
        let empty = value["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if empty && value["metadata"]["deletionTimestamp"].is_string() {
            self.objects.remove(&key);
            self.finish_definition(&definition);
            return value;
        }
        let stored = Versions::of(crd).unwrap().to_storage(value);
        self.objects.insert(key, stored.clone());
        read(crd, resource, stored)
    }

    fn delete(&mut self, definition: &str, mut live: Value, named: &Named) -> Value {
        let name = live["metadata"]["name"].as_str().unwrap().to_owned();
        let key = (definition.to_owned(), name.clone());
        if live["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty()) {
            live["metadata"]["deletionTimestamp"] = NOW.into();
            live["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            live["metadata"]["generation"] = (live["metadata"]["generation"].as_i64().unwrap() + 1).into();
            self.version += 1;
            live["metadata"]["resourceVersion"] = self.version.to_string().into();
            self.objects.insert(key, live.clone());
            return live;
        }
        self.objects.remove(&key);
        let mut details = named.details(&name);
        details["uid"] = live["metadata"]["uid"].clone();
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
    }

    fn list(
        &self,
        crd: &Value,
        resource: &CustomResource,
        definition: &str,
        request: &Request,
    ) -> Result<Value, Refusal> {
        let mut items: Vec<Value> = self
            .objects
            .iter()
            .filter(|((of, _), _)| of == definition)
            .map(|(_, stored)| read(crd, resource, stored.clone()))
            .collect();
        for requirement in request.query.get("fieldSelector").iter().flat_map(|text| text.split(',')) {
            let (field, wanted) = requirement.split_once('=').unwrap();
            let (field, negated) = field.strip_suffix('!').map_or((field, false), |field| (field, true));
            let known = ["metadata.name", "metadata.namespace"];
            let values = |item: &Value| {
                let mut all = resource.selectable_fields(item);
                all.extend(known.map(|name| {
                    let key = name.rsplit('.').next().unwrap();
                    (name.to_owned(), item["metadata"][key].as_str().unwrap_or_default().to_owned())
                }));
                all.into_iter().find(|(name, _)| name == field).map(|(_, value)| value)
            };
            if values(&json!({"metadata": {}})).is_none() {
                let message = format!("field label not supported: {field}");
                return Err(refuse(400, "BadRequest", &message, Value::Null));
            }
            items.retain(|item| (values(item).as_deref() == Some(wanted)) != negated);
        }
        if request.accept.contains("as=Table") {
            return Ok(table(resource, &items, ""));
        }
        let kind = crd["spec"]["names"]["listKind"].as_str().unwrap();
        Ok(json!({"apiVersion": resource.gvk().api_version(), "kind": kind, "items": items,
                  "metadata": {"continue": "", "resourceVersion": self.version.to_string()}}))
    }

    fn identify(&mut self, live: Option<&Value>, object: &mut Value, scope: Option<&str>) {
        let metadata = &mut object["metadata"];
        if let Some(live) = live {
            let kept = [
                "uid",
                "creationTimestamp",
                "generation",
                "resourceVersion",
                "deletionTimestamp",
                "namespace",
            ];
            for field in kept {
                if let Some(value) = live["metadata"].get(field) {
                    metadata[field] = value.clone();
                }
            }
            return;
        }
        self.version += 1;
        metadata["uid"] = format!("uid-{}", self.version).into();
        metadata["creationTimestamp"] = NOW.into();
        match scope {
            Some("Namespaced") => metadata["namespace"] = format!("gold-{RUN}").into(),
            _ => drop(metadata.as_object_mut().unwrap().remove("namespace")),
        }
    }
}

/// A stored object as a version shows it.
fn read(crd: &Value, resource: &CustomResource, object: Value) -> Value {
    Versions::of(crd).unwrap().read(object, &resource.gvk().version).unwrap()
}

fn patched(request: &Request, live: &Value) -> Value {
    let patch: Value = serde_json::from_slice(&request.body).unwrap();
    if request.content_type.contains("json-patch") {
        patch::json::apply(live.clone(), &patch).unwrap()
    } else {
        patch::merge::apply(live.clone(), patch).unwrap()
    }
}
