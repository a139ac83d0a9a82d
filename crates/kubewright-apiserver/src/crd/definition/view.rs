//! A definition in the form that its rules are written for: what all versions share stands at the top.

use serde_json::Value;

use super::map_of;
use crate::{crd::props::Props, schema::go};

/// What a version says for itself or the whole definition says for all.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts<'c> {
    pub(super) schema: Option<&'c Value>,
    pub(super) subresources: Option<&'c Value>,
    pub(super) columns: &'c [Value],
    pub(super) selectable: &'c [Value],
}

impl Parts<'_> {
    pub(super) fn has_status(&self) -> bool {
        self.subresources.is_some_and(|subresources| subresources["status"].is_object())
    }
}

#[derive(Debug, Clone)]
pub(super) struct Version<'c> {
    pub(super) name: &'c str,
    pub(super) storage: bool,
    pub(super) written: Props<'c>,
    /// The schema as it applies, wherever it stands.
    pub(super) schema: Option<&'c Value>,
    /// Whether the status subresource is on, wherever that is said.
    pub(super) has_status: bool,
    /// What this version alone says.
    pub(super) own: Parts<'c>,
}

#[derive(Debug, Clone)]
pub(super) struct View<'c> {
    pub(super) shared: Parts<'c>,
    pub(super) versions: Vec<Version<'c>>,
}

impl<'c> View<'c> {
    pub(super) fn of(crd: &'c Value) -> Self {
        let versions: Vec<Props<'_>> =
            crd["spec"]["versions"].as_array().into_iter().flatten().map(Props::of).collect();
        let full: Vec<Parts<'_>> = versions.iter().map(|version| parts(*version)).collect();
        let same =
            |equal: &dyn Fn(&Parts<'_>, &Parts<'_>) -> bool| full.iter().all(|part| equal(part, &full[0]));
        let first = full.first().copied().unwrap_or_default();
        let (schema, subresources) =
            (same(&|a, b| a.schema == b.schema), same(&|a, b| a.subresources == b.subresources));
        let (columns, selectable) =
            (same(&|a, b| a.columns == b.columns), same(&|a, b| a.selectable == b.selectable));
        let shared = Parts {
            schema: first.schema.filter(|_| schema),
            subresources: first.subresources.filter(|_| subresources),
            columns: if columns { first.columns } else { &[] },
            selectable: if selectable { first.selectable } else { &[] },
        };
        let versions = versions.into_iter().zip(full).map(|(written, part)| Version {
            name: written.text("name"),
            storage: written.flag("storage"),
            written,
            schema: part.schema,
            has_status: part.has_status(),
            own: Parts {
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

    /// The versions as the real server prints them in an error: a Go struct in JSON.
    pub(super) fn printed_versions(&self) -> String {
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
                    version.written.flag("served"),
                    version.storage,
                    version.written.flag("deprecated"),
                    json(version.written.get("deprecationWarning")),
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

fn parts(version: Props<'_>) -> Parts<'_> {
    Parts {
        schema: version
            .get("schema")
            .and_then(|schema| schema.get("openAPIV3Schema"))
            .filter(|s| map_of(s).is_some()),
        subresources: version.get("subresources"),
        columns: version.list("additionalPrinterColumns"),
        selectable: version.list("selectableFields"),
    }
}
