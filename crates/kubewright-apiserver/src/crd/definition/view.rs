//! View of a CRD in the internal form that upstream validates: fields that are equal in all versions are at
//! the top.

use serde_json::Value;

use super::map_of;
use crate::{crd::props::Props, schema::go};

/// Fields that a version has for itself or the CRD has for all versions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct VersionFields<'c> {
    pub(super) schema: Option<&'c Value>,
    pub(super) subresources: Option<&'c Value>,
    pub(super) columns: &'c [Value],
    pub(super) selectable: &'c [Value],
}

impl VersionFields<'_> {
    pub(super) fn has_status(&self) -> bool {
        self.subresources.is_some_and(|subresources| subresources["status"].is_object())
    }
}

#[derive(Debug, Clone)]
pub(super) struct Version<'c> {
    pub(super) name: &'c str,
    pub(super) storage: bool,
    pub(super) definition: Props<'c>,
    /// The schema in effect, wherever it is specified.
    pub(super) schema: Option<&'c Value>,
    /// Whether the status subresource is enabled, wherever it is specified.
    pub(super) has_status: bool,
    /// Fields specified by this version alone.
    pub(super) own: VersionFields<'c>,
}

#[derive(Debug, Clone)]
pub(super) struct View<'c> {
    pub(super) shared: VersionFields<'c>,
    pub(super) versions: Vec<Version<'c>>,
}

impl<'c> View<'c> {
    pub(super) fn new(crd: &'c Value) -> Self {
        let versions: Vec<Props<'_>> =
            crd["spec"]["versions"].as_array().into_iter().flatten().map(Props::new).collect();
        let full: Vec<VersionFields<'_>> = versions.iter().map(|version| fields(*version)).collect();
        let same = |equal: &dyn Fn(&VersionFields<'_>, &VersionFields<'_>) -> bool| {
            full.iter().all(|part| equal(part, &full[0]))
        };
        let first = full.first().copied().unwrap_or_default();
        let (schema, subresources) =
            (same(&|a, b| a.schema == b.schema), same(&|a, b| a.subresources == b.subresources));
        let (columns, selectable) =
            (same(&|a, b| a.columns == b.columns), same(&|a, b| a.selectable == b.selectable));
        let shared = VersionFields {
            schema: first.schema.filter(|_| schema),
            subresources: first.subresources.filter(|_| subresources),
            columns: if columns { first.columns } else { &[] },
            selectable: if selectable { first.selectable } else { &[] },
        };
        let versions = versions.into_iter().zip(full).map(|(definition, part)| Version {
            name: definition.text("name"),
            storage: definition.flag("storage"),
            definition,
            schema: part.schema,
            has_status: part.has_status(),
            own: VersionFields {
                schema: part.schema.filter(|_| !schema),
                subresources: part.subresources.filter(|_| !subresources),
                columns: if columns { &[] } else { part.columns },
                selectable: if selectable { &[] } else { part.selectable },
            },
        });
        Self { shared, versions: versions.collect() }
    }

    pub(super) fn schemas(&self) -> impl Iterator<Item = &'c Value> + '_ {
        self.versions.iter().filter_map(|version| version.schema)
    }

    /// Formats the versions like kube-apiserver in errors: a Go struct in JSON.
    pub(super) fn go_versions(&self) -> String {
        let json = |value: Option<&Value>| value.map_or("null".to_owned(), go::json);
        let list =
            |values: &[Value]| if values.is_empty() { "null".to_owned() } else { go::json(&values.into()) };
        let versions: Vec<_> = self
            .versions
            .iter()
            .map(|version| {
                format!(
                    "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\
                     \"Schema\":{},\"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
                    go::json(&version.name.into()),
                    version.definition.flag("served"),
                    version.storage,
                    version.definition.flag("deprecated"),
                    json(version.definition.get("deprecationWarning")),
                    json(version.own.schema),
                    json(version.own.subresources),
                    list(version.own.columns),
                    list(version.own.selectable),
                )
            })
            .collect();
        format!("[{}]", versions.join(","))
    }
}

fn fields(version: Props<'_>) -> VersionFields<'_> {
    VersionFields {
        schema: version
            .get("schema")
            .and_then(|schema| schema.get("openAPIV3Schema"))
            .filter(|s| map_of(s).is_some()),
        subresources: version.get("subresources"),
        columns: version.list("additionalPrinterColumns"),
        selectable: version.list("selectableFields"),
    }
}
