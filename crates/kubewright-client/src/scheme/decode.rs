//! Document streams into objects.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, GroupVersionKind, TypeMeta};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Scheme,
    de::{Fault, NodeError, from_node},
    decoded::{Body, Decoded, describe},
    documents::Documents,
    error::{DecodeError, DecodeProblem, Issue, IssueKind, Location, ReadError},
    limits::Limits,
    node::{Mapping, Mark, Node, NodeValue},
    object::{Object, Registered, name_of},
};

/// How to decode, made by [`Scheme::decoder`].
///
/// Without further settings a decoder is as strict as `kubectl apply --validate=strict`: a field that the type does
/// not know, a key written twice and a kind that is not registered are errors, and nothing is defaulted.
///
/// ```
/// use kubewright::scheme::Scheme;
///
/// let yaml = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspce: {}\n---\n\
///             apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: b}\n";
///
/// let strict: Vec<_> = Scheme::kubernetes().decode(yaml).collect();
/// assert!(strict[0].as_ref().unwrap_err().to_string().contains("unknown field spce (did you mean spec?)"));
/// assert!(strict[1].as_ref().unwrap_err().to_string().contains("no type is registered for example.com/v1 Foo"));
///
/// let decoder = Scheme::kubernetes().decoder().lenient().unstructured_unknown();
/// let objects = decoder.decode(yaml).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(objects[0].warnings()[0].path(), "spce");
/// assert!(objects[1].as_unstructured().is_some());
/// # Ok::<(), kubewright::scheme::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a decoder does nothing until .decode(input)"]
pub struct Decoder {
    scheme: Scheme,
    file: Option<Arc<str>>,
    strict: bool,
    unstructured: Unstructured,
    defaults: bool,
    limits: Limits,
}

/// Which objects are left without a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unstructured {
    Never,
    UnknownKinds,
    Always,
}

impl Decoder {
    pub(super) fn new(scheme: Scheme) -> Self {
        Self {
            scheme,
            file: None,
            strict: true,
            unstructured: Unstructured::Never,
            defaults: false,
            limits: Limits::default(),
        }
    }

    /// Names the input in errors.
    pub fn file(mut self, name: impl Into<Arc<str>>) -> Self {
        self.file = Some(name.into());
        self
    }

    /// Passes over unknown fields and lets the last of a repeated key win, as an API server does without field
    /// validation; what was passed over is in [`Decoded::warnings`].
    pub fn lenient(mut self) -> Self {
        self.strict = false;
        self
    }

    /// Keeps objects of kinds that are not registered as unstructured objects instead of refusing them.
    pub fn unstructured_unknown(mut self) -> Self {
        self.unstructured = Unstructured::UnknownKinds;
        self
    }

    /// Decodes every object as an unstructured one, whether its kind is registered or not.
    pub fn unstructured(mut self) -> Self {
        self.unstructured = Unstructured::Always;
        self
    }

    /// Runs the scheme's defaulting functions on every typed object.
    pub fn apply_defaults(mut self) -> Self {
        self.defaults = true;
        self
    }

    /// The size above which a document is refused, 16 MiB unless set. Its aliases may unfold to as much again.
    pub fn max_document_bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// How many levels of objects and lists may be inside each other: 128 unless set lower.
    pub fn max_depth(mut self, levels: usize) -> Self {
        self.limits.depth = levels.clamp(1, Limits::MAX_DEPTH);
        self
    }

    /// The objects of a YAML or JSON text, one after the other.
    ///
    /// Documents are separated by `---`; JSON values may also just follow each other. Empty documents are passed
    /// over, and the items of a `kind: List` come out as objects of their own. A document that cannot be decoded
    /// yields an error, and the documents after it follow.
    pub fn decode<'i>(&self, input: &'i (impl AsRef<[u8]> + ?Sized)) -> Objects<'i> {
        Objects {
            decoder: self.clone(),
            documents: Documents::new(input.as_ref(), self.limits),
            document: 0,
            items: Vec::new(),
        }
    }

    /// The one object of a text, as its type.
    ///
    /// ```
    /// use kubewright::{k8s_openapi::api::core::v1::Namespace, scheme::Scheme};
    ///
    /// let yaml = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n";
    /// let namespace: Namespace = Scheme::kubernetes().decoder().decode_one(yaml)?;
    /// assert_eq!(namespace.metadata.name.as_deref(), Some("shop"));
    /// # Ok::<(), kubewright::scheme::DecodeError>(())
    /// ```
    pub fn decode_one<K: 'static>(&self, input: &(impl AsRef<[u8]> + ?Sized)) -> Result<K, DecodeError> {
        let wanted = || match self.scheme.gvk_of::<K>() {
            Some(gvk) => name_of(gvk),
            None => format!("{} (which is not registered)", std::any::type_name::<K>()),
        };
        let refuse = |location: Option<&Location>, object: Option<String>, found: &str| {
            let start = Location {
                file: self.file.clone(),
                document: 1,
                item: None,
                at: Mark { line: 1, column: 1 },
            };
            let problem = DecodeProblem::NotThatOne { wanted: wanted(), found: found.to_owned() };
            DecodeError::new(location.cloned().unwrap_or(start), object, problem)
        };
        let mut objects = self.decode(input);
        let first = objects.next().ok_or_else(|| refuse(None, None, "there is no object in the input"))??;
        if let Some(second) = objects.next() {
            let second = second?;
            return Err(refuse(second.location(), Some(second.describe()), "there is more than one object"));
        }
        first.downcast().map_err(|other| {
            refuse(other.location(), Some(other.describe()), "the object in the input has another type")
        })
    }
}

/// The objects of an input; see [`Decoder::decode`].
pub struct Objects<'i> {
    decoder: Decoder,
    documents: Documents<'i>,
    /// The number of the current document.
    document: usize,
    /// Objects of a list that are still to come, the next one last.
    items: Vec<Item>,
}

/// One object of a document.
struct Item {
    node: Node,
    /// Where it stands in a list.
    place: Option<String>,
    /// What it is if it does not say so itself: items of a `PodList` are Pods.
    implied: Option<TypeMeta>,
}

impl Iterator for Objects<'_> {
    type Item = Result<Decoded, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let item = match self.items.pop() {
                Some(item) => Ok(item),
                None => self.document()?,
            };
            if let Some(found) = item.and_then(|item| self.object(item)).transpose() {
                return Some(found);
            }
        }
    }
}

impl Objects<'_> {
    /// The next document as a whole.
    fn document(&mut self) -> Option<Result<Item, DecodeError>> {
        let next = self.documents.next()?;
        self.document += 1;
        Some(match next {
            Ok(node) => Ok(Item { node, place: None, implied: None }),
            Err(ReadError { at, problem }) => Err(DecodeError::new(self.location(at, None), None, problem)),
        })
    }

    fn location(&self, at: Mark, item: Option<&str>) -> Location {
        Location { file: self.decoder.file.clone(), document: self.document, item: item.map(Into::into), at }
    }

    /// Decodes one object; a list puts its items in line and gives nothing.
    fn object(&mut self, item: Item) -> Result<Option<Decoded>, DecodeError> {
        let Item { node, place, implied } = item;
        let location = self.location(node.at, place.as_deref());
        let at = node.at;
        let found = node.describe();
        let NodeValue::Mapping(mapping) = node.value else {
            return Err(DecodeError::new(location, None, DecodeProblem::NotAnObject { found }));
        };
        let name = mapping.get("metadata").and_then(|metadata| match &metadata.value {
            NodeValue::Mapping(metadata) => Some((metadata.get_str("namespace"), metadata.get_str("name"))),
            _ => None,
        });
        let (namespace, name) = name.unwrap_or_default();
        let gvk = match type_of(&mapping, implied.as_ref()) {
            Ok(gvk) => gvk,
            Err(problem) => {
                let known = mapping.get_str("kind").or(name).map(str::to_owned);
                return Err(DecodeError::new(location, known, problem));
            }
        };
        let described = describe(&gvk, namespace, name);
        if is_list(&gvk, &mapping) && self.decoder.scheme.registered(&gvk).is_none() {
            return self.open_list(&gvk, mapping, place.as_deref(), location, described);
        }
        let node = Node::new(at, NodeValue::Mapping(mapping));
        self.decoder
            .object(gvk, node, &location)
            .map(Some)
            .map_err(|(at, problem)| DecodeError::new(location.moved_to(at), Some(described), problem))
    }

    /// Puts the items of a list in line.
    fn open_list(
        &mut self,
        gvk: &GroupVersionKind,
        mut list: Mapping,
        place: Option<&str>,
        location: Location,
        described: String,
    ) -> Result<Option<Decoded>, DecodeError> {
        let items = list.fields.shift_remove("items").map(|field| field.node.value);
        let list = Node::new(location.at, NodeValue::Mapping(list));
        let issues = repeated(&list);
        if self.decoder.strict && !issues.is_empty() {
            let at = issues[0].at;
            return Err(DecodeError::new(
                location.moved_to(at),
                Some(described),
                DecodeProblem::Strict(issues),
            ));
        }
        let implied = match gvk.kind.strip_suffix("List") {
            None | Some("") => None,
            Some(kind) => Some(TypeMeta { api_version: gvk.api_version(), kind: kind.to_owned() }),
        };
        if let Some(NodeValue::Sequence(items)) = items {
            let prefix = place.map(|place| format!("{place}.")).unwrap_or_default();
            let items = items.into_iter().enumerate().map(|(index, node)| Item {
                node,
                place: Some(format!("{prefix}items[{index}]")),
                implied: implied.clone(),
            });
            self.items.extend(items.rev());
        }
        Ok(None)
    }
}

type Placed = (Mark, DecodeProblem);

impl Decoder {
    /// Makes an object of a node whose kind is known.
    fn object(&self, gvk: GroupVersionKind, node: Node, location: &Location) -> Result<Decoded, Placed> {
        let at = node.at;
        let mut issues = repeated(&node);
        let registered = self.scheme.registered(&gvk);
        let body = match (registered, self.unstructured) {
            (Some(registered), Unstructured::Never | Unstructured::UnknownKinds) => {
                let (mut object, unknown) =
                    (registered.decode)(node).map_err(|error| invalid(&gvk, at, error))?;
                issues.extend(unknown);
                if self.defaults {
                    registered.apply_defaults(&mut *object);
                }
                Body::Typed(object)
            }
            (None, Unstructured::Never) => {
                let registered = self.scheme.other_versions(&gvk);
                return Err((at, DecodeProblem::UnknownKind { gvk, registered }));
            }
            (None, Unstructured::UnknownKinds) | (_, Unstructured::Always) => {
                let (object, unknown) = unstructured(&gvk, node).map_err(|error| invalid(&gvk, at, error))?;
                issues.extend(unknown);
                Body::Unstructured(Box::new(object))
            }
        };
        issues.sort_by_key(|issue| (issue.at.line, issue.at.column));
        match issues.first() {
            Some(first) if self.strict => Err((first.at, DecodeProblem::Strict(issues))),
            _ => Ok(Decoded::new(gvk, body, Some(location.clone()), issues)),
        }
    }
}

/// The kind that an object says it has.
fn type_of(mapping: &Mapping, implied: Option<&TypeMeta>) -> Result<GroupVersionKind, DecodeProblem> {
    let field = |name: &'static str, implied: Option<&String>| match mapping.get_str(name) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        None if mapping.get(name).is_none() && implied.is_some() => Ok(implied.cloned().unwrap_or_default()),
        _ => Err(DecodeProblem::NoType { field: name }),
    };
    let api_version = field("apiVersion", implied.map(|types| &types.api_version))?;
    let kind = field("kind", implied.map(|types| &types.kind))?;
    match api_version.split_once('/') {
        None => Ok(GroupVersionKind { group: String::new(), version: api_version, kind }),
        Some((group, version)) if !group.is_empty() && !version.is_empty() && !version.contains('/') => {
            Ok(GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind })
        }
        Some(_) => Err(DecodeProblem::BadApiVersion { api_version }),
    }
}

/// Whether an object is a list of objects: `v1 List`, or what the API server answers with, such as a `PodList`.
fn is_list(gvk: &GroupVersionKind, mapping: &Mapping) -> bool {
    let items = mapping.get("items").map(|items| &items.value);
    match gvk.kind.as_str() {
        "List" if gvk.group.is_empty() && gvk.version == "v1" => {
            matches!(items, None | Some(NodeValue::Sequence(_) | NodeValue::Null))
        }
        kind => kind.ends_with("List") && matches!(items, Some(NodeValue::Sequence(_) | NodeValue::Null)),
    }
}

/// The keys that were written twice.
fn repeated(node: &Node) -> Vec<Issue> {
    let mut issues = Vec::new();
    if node.has_repeated() {
        node.each_repeated("", &mut |path, repeated| {
            let kind = IssueKind::Repeated { first_line: repeated.first_line };
            issues.push(Issue { path, at: repeated.at, kind });
        });
    }
    issues
}

/// An object without a type; its metadata has one all the same.
fn unstructured(gvk: &GroupVersionKind, node: Node) -> Result<(DynamicObject, Vec<Issue>), NodeError> {
    #[derive(Deserialize)]
    struct Head {
        metadata: Option<ObjectMeta>,
    }

    let (mut rest, mut head) = match node.value {
        NodeValue::Mapping(mapping) => (mapping, Mapping::default()),
        _ => Default::default(),
    };
    rest.fields.shift_remove("apiVersion");
    rest.fields.shift_remove("kind");
    if let Some((key, field)) = rest.fields.shift_remove_entry("metadata") {
        head.insert(key, field.key_at, field.node);
    }
    let (Head { metadata }, unknown) = from_node(Node::new(node.at, NodeValue::Mapping(head)))?;
    let types = TypeMeta { api_version: gvk.api_version(), kind: gvk.kind.clone() };
    let object = DynamicObject {
        types: Some(types),
        metadata: metadata.unwrap_or_default(),
        data: Value::Object(rest.into_json()),
    };
    Ok((object, unknown))
}

/// The public form of a misfit. No value of a Secret is in it, not even a number: a password may be one.
fn invalid(gvk: &GroupVersionKind, object_at: Mark, error: NodeError) -> Placed {
    let Fault { message, discreet, path, at } = error.into_fault();
    let message = if gvk.kind == "Secret" { discreet } else { message };
    (at.unwrap_or(object_at), DecodeProblem::Invalid { path, message })
}

/// Gives an unstructured object its registered type, or says what does not fit.
pub(super) fn typed(registered: &Registered, object: &DynamicObject) -> Result<Box<dyn Object>, String> {
    let value = serde_json::to_value(object).map_err(|error| error.to_string())?;
    let (object, _) = (registered.decode)(Node::from(value))
        .map_err(|error| invalid(&registered.gvk, Mark::default(), error).1.to_string())?;
    Ok(object)
}
