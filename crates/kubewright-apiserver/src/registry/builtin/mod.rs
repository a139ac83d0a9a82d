//! Table of the built-in types: those that `kubectl api-resources` lists on a stock cluster.

mod convert;
mod table;

use std::sync::Arc;

use super::{
    descriptor::{
        CachedSchema, Conversion, DefaultPropagation, Descriptor, Generation, Scope, SelectableField,
        Subresource, Text,
    },
    strategy,
};

/// Row of the table; the defaults fit most types.
#[expect(clippy::struct_excessive_bools, reason = "columns of a table")]
struct Row {
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    cluster: bool,
    verbs: &'static [&'static str],
    sub: &'static [(&'static str, &'static str, &'static [&'static str])],
    fields: &'static [(&'static str, &'static [&'static str], &'static str)],
    generation: Generation,
    create_on_put: bool,
    unconditional: bool,
    delete_answers_object: bool,
    orphans: bool,
}

const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const READ_WRITE: &[&str] = &["get", "patch", "update"];
const CREATE: &[&str] = &["create"];

const ROW: Row = Row {
    plural: "",
    singular: "",
    kind: "",
    short: &[],
    categories: &[],
    cluster: false,
    verbs: ALL,
    sub: &[],
    fields: &[],
    generation: Generation::None,
    create_on_put: false,
    unconditional: true,
    delete_answers_object: false,
    orphans: false,
};

/// Group version and its rows.
struct GroupVersion {
    group: &'static str,
    version: &'static str,
    rows: &'static [Row],
}

/// Position of a group in discovery.
#[derive(Debug, Clone, Copy)]
pub struct GroupRank {
    /// The group.
    pub group: &'static str,
    /// Group priority; higher comes first.
    pub priority: u32,
    /// The versions, preferred first, with the priority of each.
    pub versions: &'static [(&'static str, u32)],
}

/// Built-in groups in discovery order.
pub const GROUPS: &[GroupRank] = &[
    GroupRank { group: "", priority: 18_000, versions: &[("v1", 1)] },
    GroupRank { group: "apiregistration.k8s.io", priority: 20_000, versions: &[("v1", 100)] },
    GroupRank { group: "apps", priority: 17_800, versions: &[("v1", 15)] },
    GroupRank { group: "events.k8s.io", priority: 17_750, versions: &[("v1", 15)] },
    GroupRank { group: "authentication.k8s.io", priority: 17_700, versions: &[("v1", 15)] },
    GroupRank { group: "authorization.k8s.io", priority: 17_600, versions: &[("v1", 15)] },
    GroupRank { group: "autoscaling", priority: 17_500, versions: &[("v2", 30), ("v1", 15)] },
    GroupRank { group: "batch", priority: 17_400, versions: &[("v1", 15)] },
    GroupRank { group: "certificates.k8s.io", priority: 17_300, versions: &[("v1", 15)] },
    GroupRank { group: "networking.k8s.io", priority: 17_200, versions: &[("v1", 15)] },
    GroupRank { group: "policy", priority: 17_100, versions: &[("v1", 15)] },
    GroupRank { group: "rbac.authorization.k8s.io", priority: 17_000, versions: &[("v1", 15)] },
    GroupRank { group: "storage.k8s.io", priority: 16_800, versions: &[("v1", 15)] },
    GroupRank { group: "admissionregistration.k8s.io", priority: 16_700, versions: &[("v1", 15)] },
    GroupRank { group: "apiextensions.k8s.io", priority: 16_700, versions: &[("v1", 15)] },
    GroupRank { group: "scheduling.k8s.io", priority: 16_600, versions: &[("v1", 15)] },
    GroupRank { group: "coordination.k8s.io", priority: 16_500, versions: &[("v1", 15)] },
    GroupRank { group: "node.k8s.io", priority: 16_300, versions: &[("v1", 15)] },
    GroupRank { group: "discovery.k8s.io", priority: 16_200, versions: &[("v1", 15)] },
];

fn texts(list: &'static [&'static str]) -> Vec<Text> {
    list.iter().map(|t| Text::Borrowed(*t)).collect()
}

/// Returns group, version and kind of subresources whose kind differs from their parent's.
fn foreign_kind(name: &str) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match name {
        "scale" => ("autoscaling", "v1", "Scale"),
        "eviction" => ("policy", "v1", "Eviction"),
        "token" => ("authentication.k8s.io", "v1", "TokenRequest"),
        _ => return None,
    })
}

/// Returns the descriptors of all built-in types.
pub fn descriptors() -> Vec<Descriptor> {
    let mut all = Vec::with_capacity(96);
    for group_version in table::TABLE {
        for row in group_version.rows {
            all.push(descriptor(group_version, row));
        }
    }
    all
}

fn descriptor(gv: &GroupVersion, row: &'static Row) -> Descriptor {
    let subresources = row
        .sub
        .iter()
        .map(|(name, kind, verbs)| {
            let (group, version, kind) = match foreign_kind(name) {
                Some(foreign) => foreign,
                None if kind.is_empty() => ("", "", row.kind),
                None => ("", "", *kind),
            };
            Subresource {
                name: Text::Borrowed(name),
                group: group.into(),
                version: version.into(),
                kind: kind.into(),
                verbs: texts(verbs),
            }
        })
        .collect();
    let fields = row
        .fields
        .iter()
        .map(|(label, paths, absent)| SelectableField {
            label: Text::Borrowed(label),
            paths: paths.iter().map(|p| p.split('.').map(Text::Borrowed).collect()).collect(),
            absent: Text::Borrowed(absent),
        })
        .collect();
    // Events are one resource in two groups; they are stored in the core form.
    let (storage_group, conversion) = match (gv.group, gv.version, row.kind) {
        ("events.k8s.io", _, "Event") => (
            "",
            Some(Conversion { from_stored: convert::event_from_core, to_stored: convert::event_to_core }),
        ),
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => {
            (gv.group, Some(Conversion { from_stored: convert::hpa_to_v1, to_stored: convert::hpa_from_v1 }))
        }
        _ => (gv.group, None),
    };
    let storage: Arc<str> = if storage_group.is_empty() {
        row.plural.into()
    } else {
        format!("{storage_group}/{}", row.plural).into()
    };
    Descriptor {
        group: gv.group.into(),
        version: gv.version.into(),
        kind: row.kind.into(),
        list_kind: format!("{}List", row.kind).into(),
        plural: row.plural.into(),
        singular: row.singular.into(),
        scope: if row.cluster { Scope::Cluster } else { Scope::Namespaced },
        short_names: texts(row.short),
        categories: texts(row.categories),
        verbs: texts(row.verbs),
        subresources,
        storage,
        fields,
        generation: row.generation,
        graceful: row.plural == "pods",
        create_on_put: row.create_on_put,
        unconditional_put: row.unconditional,
        delete_answers_object: row.delete_answers_object,
        propagation: if row.orphans { DefaultPropagation::Orphan } else { DefaultPropagation::Background },
        typed_items: false,
        conversion,
        strategy: strategy::for_kind(gv.group, row.kind),
        custom: None,
        builtin_schema: CachedSchema::default(),
    }
}
