//! Aggregated discovery (`apidiscovery.k8s.io/v2`): the whole of `/api` or `/apis` in one document.
//!
//! The types are our own and not kube's, because they must read what servers really send: a `responseKind`
//! whose group and version are empty means "the same as here", and fields may be null.

use std::sync::Arc;

use kube::{core::GroupVersionKind, discovery::Scope};
use serde::Deserialize;

use super::model::{
    DiscoveryFailure, FailureReason, GroupInfo, ResourceInfo, SubresourceInfo, VersionInfo, api_version,
};

/// Aggregated first, in the order of parameters that the server insists on; then the old form.
pub(super) const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                                 application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                                 application/json";

#[derive(Debug, Deserialize)]
pub(super) struct GroupList {
    #[serde(default)]
    items: Vec<GroupDoc>,
}

#[derive(Debug, Deserialize)]
struct GroupDoc {
    #[serde(default)]
    metadata: MetadataDoc,
    #[serde(default)]
    versions: Vec<VersionDoc>,
}

#[derive(Debug, Default, Deserialize)]
struct MetadataDoc {
    #[serde(default)]
    name: String,
}

#[derive(Debug, Deserialize)]
struct VersionDoc {
    version: String,
    #[serde(default)]
    freshness: Option<String>,
    #[serde(default)]
    resources: Option<Vec<ResourceDoc>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDoc {
    resource: String,
    response_kind: Option<KindDoc>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    verbs: Option<Vec<String>>,
    #[serde(default)]
    short_names: Option<Vec<String>>,
    #[serde(default)]
    categories: Option<Vec<String>>,
    #[serde(default)]
    subresources: Option<Vec<SubresourceDoc>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDoc {
    subresource: String,
    response_kind: Option<KindDoc>,
    #[serde(default)]
    verbs: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct KindDoc {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    kind: String,
}

impl GroupList {
    /// The groups in our shape, and the versions that are out of date.
    pub(super) fn convert(self) -> (Vec<GroupInfo>, Vec<DiscoveryFailure>) {
        let mut failures = Vec::new();
        let groups = self.items.into_iter().map(|group| group.convert(&mut failures)).collect();
        (groups, failures)
    }
}

impl GroupDoc {
    fn convert(self, failures: &mut Vec<DiscoveryFailure>) -> GroupInfo {
        let name = self.metadata.name;
        let versions: Vec<VersionInfo> =
            self.versions.into_iter().map(|version| version.convert(&name, failures)).collect();
        // The first is the preferred one; a stale one only where there is no other.
        let preferred = versions.iter().find(|version| !version.stale).or(versions.first());
        let preferred_version = preferred.map(|version| version.version.clone()).unwrap_or_default();
        GroupInfo { name, versions, preferred_version }
    }
}

impl VersionDoc {
    fn convert(self, group: &str, failures: &mut Vec<DiscoveryFailure>) -> VersionInfo {
        let Self { version, freshness, resources } = self;
        let stale = freshness.as_deref() == Some("Stale");
        if stale {
            failures
                .push(DiscoveryFailure { what: api_version(group, &version), reason: FailureReason::Stale });
        }
        let convert = |resource: ResourceDoc| resource.convert(group, &version);
        let resources = resources.unwrap_or_default().into_iter().filter_map(convert).collect();
        VersionInfo { version, resources, stale }
    }
}

impl ResourceDoc {
    /// `None` for a resource without a kind: a mere parent of subresources.
    fn convert(self, group: &str, version: &str) -> Option<Arc<ResourceInfo>> {
        let kind = self.response_kind.filter(|kind| !kind.kind.is_empty())?.kind;
        let subresources = self.subresources.unwrap_or_default().into_iter();
        Some(Arc::new(ResourceInfo {
            group: group.to_owned(),
            version: version.to_owned(),
            singular: if self.singular_resource.is_empty() {
                kind.to_lowercase()
            } else {
                self.singular_resource
            },
            kind,
            plural: self.resource,
            scope: if self.scope == "Namespaced" { Scope::Namespaced } else { Scope::Cluster },
            verbs: self.verbs.unwrap_or_default(),
            short_names: self.short_names.unwrap_or_default(),
            categories: self.categories.unwrap_or_default(),
            subresources: subresources.filter_map(|part| part.convert(group, version)).collect(),
        }))
    }
}

impl SubresourceDoc {
    fn convert(self, group: &str, version: &str) -> Option<SubresourceInfo> {
        let kind = self.response_kind.filter(|kind| !kind.kind.is_empty())?;
        let kind = if kind.version.is_empty() {
            GroupVersionKind::gvk(group, version, &kind.kind)
        } else {
            GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind)
        };
        Some(SubresourceInfo { name: self.subresource, kind, verbs: self.verbs.unwrap_or_default() })
    }
}
