//! Paths and operations of resources: methods, parameters, bodies and responses.

use serde_json::{Map, Value};

use super::schema::{Definitions, META, name_of};
use crate::{
    registry::descriptor::{Descriptor, Subresource},
    schema::{Gvk, Schemas},
};

/// Renders the paths of types for one version of `OpenAPI`, and adds the referenced definitions.
pub(super) fn render<'t>(
    types: impl IntoIterator<Item = &'t Descriptor>,
    definitions: &mut Definitions<'_>,
    parameter: fn(&str, &str, &str) -> Value,
    operation: fn(&Operation, &str) -> Value,
) -> Map<String, Value> {
    let mut paths = Map::new();
    for ty in types {
        definitions.add_type(ty);
        for sub in ty.subresources.iter().filter(|sub| !sub.group.is_empty()) {
            definitions.add_kind(&Gvk::new(sub.group.as_ref(), sub.version.as_ref(), sub.kind.as_ref()));
        }
        for path in of(ty) {
            let mut item = Map::new();
            let mut parameters: Vec<Value> =
                path.parameters().map(|name| parameter(name, "path", "string")).collect();
            parameters.push(parameter("pretty", "query", "string"));
            item.insert("parameters".into(), Value::Array(parameters));
            for one in &path.operations {
                item.insert(one.method.into(), operation(one, &tag(ty)));
            }
            paths.insert(path.path, Value::Object(item));
        }
    }
    paths.sort_keys();
    paths
}

/// Method of a path.
#[derive(Debug)]
pub(super) struct Operation {
    /// `get`, `post`, …
    pub method: &'static str,
    /// `x-kubernetes-action`
    pub action: &'static str,
    /// `operationId`
    pub id: String,
    /// `x-kubernetes-group-version-kind`
    pub gvk: Gvk,
    /// Query parameters and their types.
    pub query: Vec<(&'static str, &'static str)>,
    /// The request body.
    pub body: Body,
    /// The definition of the response; empty for text.
    pub answer: String,
    /// Whether the response may be a stream.
    pub streams: bool,
    /// Whether the response may have the code 201.
    pub creates: bool,
    /// Whether the type supports protobuf and strategic merge patches.
    pub builtin: bool,
}

/// Request body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    None,
    /// An object of a definition.
    Object {
        definition: String,
        required: bool,
    },
    /// A patch of any type.
    Patch,
}

/// Path with its operations.
#[derive(Debug)]
pub(super) struct Path {
    /// The path with `{namespace}` and `{name}`.
    pub path: String,
    /// The operations.
    pub operations: Vec<Operation>,
}

impl Path {
    /// Returns the names of the path parameters.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &'static str> {
        ["name", "namespace"].into_iter().filter(|name| self.path.contains(&format!("{{{name}}}")))
    }
}

const WRITE: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

/// Returns all paths of a resource.
pub(super) fn of(ty: &Descriptor) -> Vec<Path> {
    let root = match (&*ty.group, &*ty.version) {
        ("", version) => format!("/api/{version}"),
        (group, version) => format!("/apis/{group}/{version}"),
    };
    let within = if ty.namespaced() { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{within}/{}", ty.plural);
    let item = format!("{collection}/{{name}}");
    let mut paths = Vec::new();
    let mut push = |path: String, operations: Vec<Operation>| {
        if !operations.is_empty() {
            paths.push(Path { path, operations });
        }
    };
    let verbs = |wanted: &[&'static str]| -> Vec<Operation> {
        let has = |verb: &&&'static str| ty.has_verb(verb);
        wanted.iter().filter(has).map(|verb| operation(ty, None, verb, ty.namespaced())).collect()
    };
    push(collection, verbs(&["list", "create", "deletecollection"]));
    push(item.clone(), verbs(&["get", "update", "patch", "delete"]));
    if ty.namespaced() && ty.has_verb("list") {
        push(format!("{root}/{}", ty.plural), vec![operation(ty, None, "list", false)]);
    }
    for sub in &ty.subresources {
        let has = |verb: &&&'static str| sub.verbs.iter().any(|known| known == **verb);
        let wanted = ["get", "create", "update", "patch", "delete"];
        let found = wanted.iter().filter(has).map(|verb| operation(ty, Some(sub), verb, ty.namespaced()));
        push(format!("{item}/{}", sub.name), found.collect());
    }
    paths
}

fn operation(ty: &Descriptor, sub: Option<&Subresource>, verb: &'static str, namespaced: bool) -> Operation {
    let own = Gvk::new(ty.group.as_ref(), ty.version.as_ref(), ty.kind.as_ref());
    let builtin = Schemas::builtin().definition_of(&own).is_some();
    let gvk = match sub {
        // Subresources of a custom resource have the kind of the resource, whatever they accept.
        Some(_) if !builtin => own.clone(),
        Some(sub) if !sub.group.is_empty() => {
            Gvk::new(sub.group.as_ref(), sub.version.as_ref(), sub.kind.as_ref())
        }
        Some(sub) => Gvk { kind: sub.kind.to_string(), ..own.clone() },
        None => own.clone(),
    };
    let taken = match sub {
        Some(sub) if !sub.group.is_empty() => {
            Gvk::new(sub.group.as_ref(), sub.version.as_ref(), sub.kind.as_ref())
        }
        _ => gvk.clone(),
    };
    // Logs and connect subresources are byte streams.
    let connects = sub.is_some_and(|s| matches!(&*s.name, "attach" | "exec" | "portforward" | "proxy"));
    let is_text = connects || sub.is_some_and(|s| s.name == "log");
    let definition = name_of(&taken);
    let object = Body::Object { definition: definition.clone(), required: true };
    let options = Body::Object { definition: format!("{META}.DeleteOptions"), required: false };
    let status = format!("{META}.Status");
    let list = name_of(&Gvk { kind: ty.list_kind.to_string(), ..own });
    let mut query: Vec<(&str, &str)> = Vec::new();
    let (method, action, word, body, answer) = match verb {
        "list" => {
            query.extend(LIST);
            ("get", "list", "list", Body::None, list)
        }
        "create" => {
            query.extend(WRITE);
            ("post", "post", "create", object, definition)
        }
        "update" => {
            query.extend(WRITE);
            ("put", "put", "replace", object, definition)
        }
        "patch" => {
            query.extend(WRITE);
            query.push(("force", "boolean"));
            ("patch", "patch", "patch", Body::Patch, definition)
        }
        "delete" => {
            query.extend(DELETE);
            let answer = if ty.delete_answers_object { definition } else { status };
            ("delete", "delete", "delete", options, answer)
        }
        "deletecollection" => {
            query.extend(
                DELETE
                    .iter()
                    .chain(LIST)
                    .filter(|(name, _)| !matches!(*name, "watch" | "allowWatchBookmarks")),
            );
            ("delete", "deletecollection", "delete", options, status)
        }
        _ => ("get", "get", "read", Body::None, definition),
    };
    query.sort_unstable();
    let collection = if verb == "deletecollection" { "Collection" } else { "" };
    let scope = if namespaced { "Namespaced" } else { "" };
    let everywhere = if ty.namespaced() && !namespaced { "ForAllNamespaces" } else { "" };
    let sub_name: String = sub.map(|s| title(&s.name)).unwrap_or_default();
    let group = group_title(&ty.group);
    let (word, verb_title) = if connects { ("connect", title(method)) } else { (word, String::new()) };
    let id = format!(
        "{word}{group}{}{verb_title}{collection}{scope}{}{sub_name}{everywhere}",
        title(&ty.version),
        ty.kind
    );
    Operation {
        method,
        action: if connects { "connect" } else { action },
        id,
        gvk,
        query: if is_text { Vec::new() } else { query },
        body: if connects { Body::None } else { body },
        answer: if is_text { String::new() } else { answer },
        streams: verb == "list",
        creates: !is_text && matches!(verb, "create" | "update" | "patch"),
        builtin,
    }
}

fn title(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Returns `RbacAuthorization` for `rbac.authorization.k8s.io`, and `Core` for the core group.
fn group_title(group: &str) -> String {
    match group {
        "" => "Core".to_owned(),
        group => group.trim_end_matches(".k8s.io").split(['.', '-']).map(title).collect(),
    }
}

/// Returns the tag of a group version: `apps_v1`, `core_v1`.
pub(super) fn tag(ty: &Descriptor) -> String {
    let group = if ty.group.is_empty() { "core" } else { ty.group.trim_end_matches(".k8s.io") };
    format!("{}_{}", group.replace(['.', '-'], "").to_lowercase(), ty.version)
}
