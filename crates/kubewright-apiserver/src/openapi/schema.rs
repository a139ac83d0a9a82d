//! Schemas of built-in types, from the table, and of custom resources, from their CRDs.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    registry::descriptor::Descriptor,
    schema::{
        AdditionalProperties, Child, Field, Gvk, Kind, ListType, Node, Object, Presence, Scalar, Schemas,
    },
};

pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Version of `OpenAPI`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// Returns a reference to a definition.
    pub(super) fn reference(self, name: &str) -> Value {
        json!({"$ref": match self {
            Self::V2 => format!("#/definitions/{name}"),
            Self::V3 => format!("#/components/schemas/{name}"),
        }})
    }
}

/// Returns the definition name of a type: that of the table, or the reversed group of a custom resource.
pub(super) fn name_of(gvk: &Gvk) -> String {
    let schemas = Schemas::builtin();
    if let Some(id) = schemas.definition_of(gvk) {
        return schemas.name_of(id).to_owned();
    }
    let reversed: Vec<&str> = gvk.group.rsplit('.').collect();
    format!("{}.{}.{}", reversed.join("."), gvk.version, gvk.kind)
}

/// Collector of definitions and everything they refer to.
#[derive(Debug)]
pub(super) struct Definitions<'g> {
    dialect: Dialect,
    /// The group version of the document: option types list only its kinds and those of the core group.
    home: Option<(&'g str, &'g str)>,
    found: BTreeSet<u16>,
    custom: Map<String, Value>,
}

impl<'g> Definitions<'g> {
    pub(super) fn new(dialect: Dialect, home: Option<(&'g str, &'g str)>) -> Self {
        let mut definitions = Self { dialect, home, found: BTreeSet::new(), custom: Map::new() };
        for name in ["DeleteOptions", "Status", "ObjectMeta", "ListMeta"] {
            definitions.add_named(&format!("{META}.{name}"));
        }
        definitions
    }

    fn add_named(&mut self, name: &str) {
        if let Some(id) = Schemas::builtin().definition_named(name) {
            self.add(id);
        }
    }

    fn add(&mut self, id: u16) {
        if self.found.insert(id) {
            self.follow(Schemas::builtin().definition_node(id));
        }
    }

    fn follow(&mut self, node: &Node) {
        match &node.kind {
            Kind::Object(object) => {
                object.fields.iter().for_each(|field| self.follow_child(&field.node));
                if let AdditionalProperties::Values(values) = &object.additional {
                    self.follow_child(values);
                }
            }
            Kind::List(list) => self.follow_child(&list.item),
            Kind::Scalar(_) | Kind::Any | Kind::Raw => {}
        }
    }

    fn follow_child(&mut self, child: &Child) {
        match child {
            Child::Builtin(id) => self.add(*id),
            Child::Inline(node) => self.follow(node),
        }
    }

    /// Adds a kind, if it is built in.
    pub(super) fn add_kind(&mut self, gvk: &Gvk) {
        if let Some(id) = Schemas::builtin().definition_of(gvk) {
            self.add(id);
        }
    }

    /// Adds a served type and its list.
    pub(super) fn add_type(&mut self, ty: &Descriptor) {
        let gvk = Gvk::new(ty.group.as_ref(), ty.version.as_ref(), ty.kind.as_ref());
        let list = Gvk { kind: ty.list_kind.to_string(), ..gvk.clone() };
        if Schemas::builtin().definition_of(&gvk).is_some() {
            self.add_kind(&gvk);
            self.add_kind(&list);
            return;
        }
        let name = name_of(&gvk);
        let schema = ty.openapi();
        self.custom.insert(name_of(&list), custom_list(&list, &name, self.dialect));
        self.custom.insert(name, custom(&gvk, schema, self.dialect));
    }

    /// Returns the definitions by name.
    pub(super) fn finish(self) -> Map<String, Value> {
        let schemas = Schemas::builtin();
        let mut out = self.custom;
        // No kind refers to it: a patch can be any object.
        out.insert(format!("{META}.Patch"), json!({"type": "object"}));
        for id in &self.found {
            let mut schema = definition(schemas.name_of(*id), schemas.definition_node(*id), self.dialect);
            let mut kinds: Vec<&Gvk> = KINDS.get(usize::from(*id)).into_iter().flatten().collect();
            if let (true, Some(home)) = (kinds.len() > 1, self.home) {
                kinds.retain(|gvk| [home, ("", "v1")].contains(&(&gvk.group, &gvk.version)));
            }
            if !kinds.is_empty() {
                schema["x-kubernetes-group-version-kind"] = kinds.into_iter().map(kind).collect();
            }
            out.insert(schemas.name_of(*id).to_owned(), schema);
        }
        out.sort_keys();
        out
    }
}

/// Kinds of each definition.
static KINDS: std::sync::LazyLock<Vec<Vec<Gvk>>> = std::sync::LazyLock::new(|| {
    let mut kinds: Vec<Vec<Gvk>> = Vec::new();
    for gvk in Schemas::builtin().kinds() {
        let Some(id) = Schemas::builtin().definition_of(&gvk).map(usize::from) else { continue };
        kinds.resize_with(kinds.len().max(id + 1), Vec::new);
        kinds[id].push(gvk);
    }
    kinds
});

pub(super) fn kind(gvk: &Gvk) -> Value {
    json!({"group": gvk.group, "kind": gvk.kind, "version": gvk.version})
}

/// Renders a named definition. The few special types are written as upstream writes them.
fn definition(name: &str, node: &Node, dialect: Dialect) -> Value {
    match &node.kind {
        Kind::Scalar(Scalar::Quantity) if dialect == Dialect::V3 => {
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]})
        }
        Kind::Scalar(Scalar::IntOrString) if dialect == Dialect::V3 => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        Kind::Any if name.ends_with(".FieldsV1") => json!({"type": "object"}),
        _ => plain(node, dialect),
    }
}

fn plain(node: &Node, dialect: Dialect) -> Value {
    let mut schema = match &node.kind {
        Kind::Object(object) => of_object(object, dialect),
        Kind::List(list) => {
            let mut schema = json!({"type": "array", "items": child(&list.item, dialect)});
            match &list.list_type {
                ListType::Atomic => schema["x-kubernetes-list-type"] = "atomic".into(),
                ListType::Set => schema["x-kubernetes-list-type"] = "set".into(),
                ListType::Map(keys) => {
                    schema["x-kubernetes-list-type"] = "map".into();
                    schema["x-kubernetes-list-map-keys"] =
                        keys.iter().map(|key| Value::from(&**key)).collect();
                }
            }
            schema
        }
        Kind::Scalar(scalar) => match scalar {
            Scalar::String | Scalar::Formatted | Scalar::Quantity => json!({"type": "string"}),
            Scalar::Bytes => json!({"type": "string", "format": "byte"}),
            Scalar::Time | Scalar::MicroTime => json!({"type": "string", "format": "date-time"}),
            Scalar::Int32 => json!({"type": "integer", "format": "int32"}),
            Scalar::Int64 => json!({"type": "integer", "format": "int64"}),
            Scalar::Number => json!({"type": "number", "format": "double"}),
            Scalar::Boolean => json!({"type": "boolean"}),
            Scalar::IntOrString => json!({"type": "string", "format": "int-or-string"}),
        },
        Kind::Raw => json!({"type": "object"}),
        Kind::Any => json!({}),
    };
    if let (Some(default), Dialect::V3) = (&node.default, dialect) {
        schema["default"] = default.clone();
    }
    schema
}

fn of_object(object: &Object, dialect: Dialect) -> Value {
    let mut schema = json!({"type": "object"});
    if !object.fields.is_empty() {
        let properties: Map<String, Value> =
            object.fields.iter().map(|f| (f.name.to_string(), property(f, dialect))).collect();
        schema["properties"] = Value::Object(properties);
    }
    let required: Vec<Value> =
        object.fields.iter().filter(|f| f.required).map(|f| Value::from(&*f.name)).collect();
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    if let AdditionalProperties::Values(values) = &object.additional {
        schema["additionalProperties"] = child(values, dialect);
    }
    if object.atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schema
}

fn child(child: &Child, dialect: Dialect) -> Value {
    match child {
        Child::Builtin(id) => dialect.reference(Schemas::builtin().name_of(*id)),
        Child::Inline(node) => plain(node, dialect),
    }
}

fn property(field: &Field, dialect: Dialect) -> Value {
    let mut schema = child(&field.node, dialect);
    // In v3, a reference with other keywords has to be wrapped in `allOf`; v2 allows none.
    if let (Child::Builtin(id), Dialect::V3) = (&field.node, dialect) {
        schema = json!({"allOf": [schema]});
        let plain_struct = matches!(field.presence, Presence::Always | Presence::OmitZero)
            && matches!(Schemas::builtin().definition_node(*id).kind, Kind::Object(_));
        if plain_struct {
            schema["default"] = json!({});
        }
    }
    let patch = &field.patch;
    let strategy: Vec<&str> =
        [("merge", patch.merge), ("retainKeys", patch.retain_keys), ("replace", patch.replace)]
            .into_iter()
            .filter_map(|(word, said)| said.then_some(word))
            .collect();
    if !strategy.is_empty() {
        schema["x-kubernetes-patch-strategy"] = strategy.join(",").into();
    }
    if let Some(key) = &patch.merge_key {
        schema["x-kubernetes-patch-merge-key"] = Value::from(&**key);
    }
    schema
}

/// Renders a custom resource with its own schema and the fields that every object has.
fn custom(gvk: &Gvk, written: Option<&Value>, dialect: Dialect) -> Value {
    let open = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut schema = written.cloned().unwrap_or_else(open);
    if dialect == Dialect::V2 {
        for_old_clients(&mut schema);
    }
    let metadata = dialect.reference(&format!("{META}.ObjectMeta"));
    let metadata = if dialect == Dialect::V3 { json!({"allOf": [metadata]}) } else { metadata };
    let says_anything = schema.get("properties").is_some() || written.is_some();
    if says_anything {
        // A CRD may restrict the name, but does not define metadata.
        schema["properties"]["metadata"] = metadata;
        for field in ["apiVersion", "kind"] {
            if schema["properties"].get(field).is_none() {
                schema["properties"][field] = json!({"type": "string"});
            }
        }
    }
    schema["x-kubernetes-group-version-kind"] = json!([kind(gvk)]);
    schema
}

/// Removes keywords that `OpenAPI` v2 lacks: old clients would reject objects that the server accepts.
fn for_old_clients(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    let nullable = members.get("nullable") == Some(&Value::Bool(true));
    for word in ["oneOf", "anyOf", "allOf", "not", "nullable", "default"] {
        members.remove(word);
    }
    let open = |word: &str| members.get(word) == Some(&Value::Bool(true));
    if nullable || open("x-kubernetes-int-or-string") || open("x-kubernetes-preserve-unknown-fields") {
        members.remove("type");
        members.remove("items");
        members.remove("properties");
    }
    for (word, inner) in members.iter_mut() {
        match (word.as_str(), inner) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(for_old_clients),
            ("items" | "additionalProperties", inner) => for_old_clients(inner),
            _ => {}
        }
    }
}

fn custom_list(gvk: &Gvk, item: &str, dialect: Dialect) -> Value {
    let metadata = dialect.reference(&format!("{META}.ListMeta"));
    json!({
        "type": "object", "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "items": {"type": "array", "items": dialect.reference(item)},
            "metadata": if dialect == Dialect::V3 { json!({"allOf": [metadata]}) } else { metadata },
        },
        "x-kubernetes-group-version-kind": [kind(gvk)],
    })
}
