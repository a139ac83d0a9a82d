//! The old form of discovery: a list of groups, and a list of resources for each group version.
//!
//! Servers before 1.26 speak only this, and kubectl keeps it on disk, so the cache writes it too.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIGroupList, APIResource, APIResourceList, GroupVersionForDiscovery,
};
use kube::{core::GroupVersionKind, discovery::Scope};

use super::model::{GroupInfo, ResourceInfo, SubresourceInfo, VersionInfo, api_version};

/// A group whose versions have no resources yet.
pub(super) fn group_from(group: APIGroup) -> GroupInfo {
    let versions: Vec<VersionInfo> = group
        .versions
        .into_iter()
        .map(|version| VersionInfo { version: version.version, resources: Vec::new(), stale: false })
        .collect();
    let preferred_version = group
        .preferred_version
        .map(|preferred| preferred.version)
        .filter(|preferred| !preferred.is_empty())
        .or_else(|| versions.first().map(|version| version.version.clone()))
        .unwrap_or_default();
    GroupInfo { name: group.name, versions, preferred_version }
}

/// The core group, from the names of its versions.
pub(super) fn core_group_from(versions: Vec<String>) -> GroupInfo {
    let preferred_version = versions.first().cloned().unwrap_or_default();
    let versions = versions
        .into_iter()
        .map(|version| VersionInfo { version, resources: Vec::new(), stale: false })
        .collect();
    GroupInfo { name: String::new(), versions, preferred_version }
}

/// The list of groups as kubectl keeps it.
pub(super) fn groups_to(groups: &[GroupInfo]) -> APIGroupList {
    let entry = |group: &str, version: &str| GroupVersionForDiscovery {
        group_version: api_version(group, version),
        version: version.to_owned(),
    };
    let groups = groups
        .iter()
        .map(|group| APIGroup {
            name: group.name.clone(),
            versions: group.versions.iter().map(|version| entry(&group.name, &version.version)).collect(),
            preferred_version: Some(entry(&group.name, &group.preferred_version)),
            server_address_by_client_cidrs: None,
        })
        .collect();
    APIGroupList { groups }
}

/// The resources of one group version; `pods/log` becomes a part of `pods`.
pub(super) fn resources_from(group: &str, version: &str, list: APIResourceList) -> Vec<Arc<ResourceInfo>> {
    let (parts, wholes): (Vec<_>, Vec<_>) =
        list.resources.into_iter().partition(|resource| resource.name.contains('/'));
    wholes
        .into_iter()
        .filter(|resource| !resource.kind.is_empty())
        .map(|resource| {
            let subresources = parts
                .iter()
                .filter_map(|part| {
                    let name = part.name.strip_prefix(&resource.name)?.strip_prefix('/')?;
                    Some(SubresourceInfo {
                        name: name.to_owned(),
                        kind: kind_of(group, version, part),
                        verbs: part.verbs.clone(),
                    })
                })
                .collect();
            Arc::new(ResourceInfo {
                group: group.to_owned(),
                version: version.to_owned(),
                // Servers before 1.27 leave the singular empty for built-in types.
                singular: if resource.singular_name.is_empty() {
                    resource.kind.to_lowercase()
                } else {
                    resource.singular_name
                },
                kind: resource.kind,
                plural: resource.name,
                scope: if resource.namespaced { Scope::Namespaced } else { Scope::Cluster },
                verbs: resource.verbs,
                short_names: resource.short_names.unwrap_or_default(),
                categories: resource.categories.unwrap_or_default(),
                subresources,
            })
        })
        .collect()
}

fn kind_of(group: &str, version: &str, part: &APIResource) -> GroupVersionKind {
    let (group, version) = match part.version.as_deref() {
        Some(other) if !other.is_empty() => (part.group.as_deref().unwrap_or_default(), other),
        _ => (group, version),
    };
    GroupVersionKind::gvk(group, version, &part.kind)
}

/// The resources of one group version as kubectl keeps them.
pub(super) fn resources_to(group: &str, version: &VersionInfo) -> APIResourceList {
    let mut resources = Vec::new();
    for resource in &version.resources {
        let some = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
        resources.push(APIResource {
            name: resource.plural.clone(),
            singular_name: resource.singular.clone(),
            namespaced: resource.is_namespaced(),
            kind: resource.kind.clone(),
            verbs: resource.verbs.clone(),
            short_names: some(&resource.short_names),
            categories: some(&resource.categories),
            ..APIResource::default()
        });
        for part in &resource.subresources {
            let own = part.kind.group == group && part.kind.version == version.version;
            resources.push(APIResource {
                name: format!("{}/{}", resource.plural, part.name),
                singular_name: String::new(),
                namespaced: resource.is_namespaced(),
                kind: part.kind.kind.clone(),
                group: (!own).then(|| part.kind.group.clone()),
                version: (!own).then(|| part.kind.version.clone()),
                verbs: part.verbs.clone(),
                ..APIResource::default()
            });
        }
    }
    APIResourceList { group_version: api_version(group, &version.version), resources }
}
