//! Schemas of the built-in types, by group, version and kind.

use std::{
    fmt,
    sync::{LazyLock, OnceLock},
};

use super::{
    node::{Node, TypeRef},
    table::Table,
};

/// Group, version and kind of a type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// The API group, empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Pod`.
    pub kind: String,
}

impl Gvk {
    /// Creates an identifier from its three fields.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Parses an `apiVersion` such as `apps/v1`.
    pub fn from_api_version(api_version: &str, kind: impl Into<String>) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// Returns `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// Formats like Go in messages: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// Table of the schemas of all built-in types.
#[derive(Debug)]
pub struct Schemas {
    table: Table,
    nodes: Vec<OnceLock<Node>>,
}

/// Named built-in definition, as published in `OpenAPI` documents.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The `OpenAPI` name, such as `io.k8s.api.core.v1.PodSpec`.
    pub name: &'static str,
    /// The number that [`Child::Builtin`](super::Child) refers to.
    pub id: u16,
    /// The schema.
    pub schema: TypeRef,
}

impl Schemas {
    /// Returns the table of the built-in types. Opening it takes microseconds; a type is decoded on its first
    /// lookup.
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Schemas> = LazyLock::new(|| {
            let table = Table::open();
            let nodes = std::iter::repeat_with(OnceLock::new).take(table.definition_count).collect();
            Schemas { table, nodes }
        });
        &BUILTIN
    }

    /// Returns the schema of a kind.
    pub fn lookup(&'static self, gvk: &Gvk) -> Option<TypeRef> {
        self.find(&gvk.group, &gvk.version, &gvk.kind)
    }

    /// Returns the schema of a kind, without allocating a [`Gvk`].
    pub fn find(&'static self, group: &str, version: &str, kind: &str) -> Option<TypeRef> {
        self.number_of((group, version, kind)).map(|id| TypeRef::builtin(self.definition_node(id)))
    }

    /// Returns the number of the definition of a kind.
    pub fn definition_of(&self, gvk: &Gvk) -> Option<u16> {
        self.number_of((&gvk.group, &gvk.version, &gvk.kind))
    }

    fn number_of(&self, wanted: (&str, &str, &str)) -> Option<u16> {
        let (mut low, mut high) = (0, self.table.kind_count);
        while low < high {
            let middle = low.midpoint(high);
            let (key, id) = self.table.kind(middle);
            match key.cmp(&wanted) {
                std::cmp::Ordering::Equal => return Some(id),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns the number of the definition with an `OpenAPI` name.
    pub fn definition_named(&self, name: &str) -> Option<u16> {
        let (mut low, mut high) = (0, self.table.definition_count);
        while low < high {
            let middle = low.midpoint(high);
            match self.table.definition_name(middle).cmp(name) {
                std::cmp::Ordering::Equal => return u16::try_from(middle).ok(),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns the encoded table, for `OpenAPI` `ETag` hashes.
    pub fn bytes(&self) -> &'static [u8] {
        self.table.bytes()
    }

    /// Returns all kinds, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = Gvk> + '_ {
        (0..self.table.kind_count).map(|i| {
            let ((group, version, kind), _) = self.table.kind(i);
            Gvk::new(group, version, kind)
        })
    }

    /// Returns all definitions, sorted by name.
    pub fn definitions(&'static self) -> impl Iterator<Item = Definition> {
        (0..self.nodes.len()).filter_map(|i| u16::try_from(i).ok()).map(|id| Definition {
            name: self.table.definition_name(usize::from(id)),
            id,
            schema: TypeRef::builtin(self.definition_node(id)),
        })
    }

    /// Returns the `OpenAPI` name of a definition.
    pub fn name_of(&self, id: u16) -> &'static str {
        self.table.definition_name(usize::from(id))
    }

    /// Returns the schema of a definition, decoded on first use.
    pub fn definition_node(&'static self, id: u16) -> &'static Node {
        let id = usize::from(id);
        self.nodes[id].get_or_init(|| self.table.definition(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, ListType};

    #[test]
    fn every_definition_decodes_and_every_reference_resolves() {
        fn walk(node: &Node) -> usize {
            match &node.kind {
                Kind::Object(object) => {
                    object.fields.iter().map(|f| f.node.node()).filter(|n| n.nullable).count()
                }
                Kind::List(list) => usize::from(list.item.node().nullable),
                _ => 0,
            }
        }
        let all: Vec<_> = Schemas::builtin().definitions().collect();
        assert!(all.len() > 800, "{}", all.len());
        assert_eq!(all.iter().map(|d| walk(&d.schema)).sum::<usize>(), 0);
        assert!(all.is_sorted_by_key(|d| d.name));
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        let kinds: Vec<_> = Schemas::builtin().kinds().collect();
        assert!(kinds.is_sorted());
        assert!(kinds.iter().all(|gvk| Schemas::builtin().lookup(gvk).is_some()));
        assert!(Schemas::builtin().lookup(&Gvk::new("", "v1", "Nope")).is_none());
    }

    #[test]
    fn list_keys_defaults_and_merge_keys_are_kept() {
        let service = Schemas::builtin().lookup(&Gvk::new("", "v1", "Service")).unwrap();
        let spec = service.as_object().unwrap().field("spec").unwrap().node.node();
        let ports = spec.as_object().unwrap().field("ports").unwrap();
        assert_eq!(ports.patch.merge_key.as_deref(), Some("port"));
        assert!(ports.patch.merge);
        let list = ports.node.node().as_list().unwrap();
        assert_eq!(list.list_type, ListType::Map(vec!["port".into(), "protocol".into()]));
        let item = list.item.node().as_object().unwrap();
        assert_eq!(item.field("protocol").unwrap().node.node().default, Some("TCP".into()));
        assert!(spec.as_object().unwrap().field("selector").unwrap().node.node().as_object().unwrap().atomic);
    }

    #[test]
    fn a_reference_can_loosen_an_atomic_type() {
        let pv = Schemas::builtin().lookup(&Gvk::new("", "v1", "PersistentVolume")).unwrap();
        let spec = pv.as_object().unwrap().field("spec").unwrap().node.node();
        let claim = spec.as_object().unwrap().field("claimRef").unwrap().node.node();
        assert!(!claim.as_object().unwrap().atomic);
    }
}
