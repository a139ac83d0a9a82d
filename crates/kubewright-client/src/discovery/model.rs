//! Model of discovery, common to both forms and to the disk cache.

use std::{fmt, sync::Arc};

use kube::{
    core::{ApiResource, GroupVersionKind, GroupVersionResource},
    discovery::Scope,
};

/// Everything that the server serves, and the parts that could not be discovered.
///
/// Groups are in the server's order of priority, the core group first; the versions of a group are in its
/// order of preference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerResources {
    /// The groups.
    pub groups: Vec<GroupInfo>,
    /// Group versions whose resources are missing or may be out of date, and why. The rest is complete.
    pub failures: Vec<DiscoveryFailure>,
}

impl ServerResources {
    /// Returns the group with this name; empty for the core group.
    pub fn group(&self, name: &str) -> Option<&GroupInfo> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Returns the resources of one group version: `v1`, `apps/v1`.
    pub fn group_version(&self, api_version: &str) -> Option<&VersionInfo> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.group(group)?.version(version)
    }

    /// Iterates over every resource in every version, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ResourceInfo>> {
        self.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.resources)
    }

    /// Returns every resource once, in the version that its group prefers, or the first that has it.
    pub fn preferred(&self) -> Vec<Arc<ResourceInfo>> {
        let mut found: Vec<Arc<ResourceInfo>> = Vec::new();
        for group in &self.groups {
            let from = found.len();
            for version in group.by_preference() {
                for resource in &version.resources {
                    if !found[from..].iter().any(|other| other.plural == resource.plural) {
                        found.push(resource.clone());
                    }
                }
            }
        }
        found
    }
}

/// One API group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupInfo {
    /// The name; empty for the core group.
    pub name: String,
    /// The versions, in order of preference.
    pub versions: Vec<VersionInfo>,
    /// The version that the server prefers.
    pub preferred_version: String,
}

impl GroupInfo {
    /// Returns one version of the group.
    pub fn version(&self, version: &str) -> Option<&VersionInfo> {
        self.versions.iter().find(|candidate| candidate.version == version)
    }

    /// Iterates over the versions in order of preference: current before stale, the preferred one first.
    pub fn by_preference(&self) -> impl Iterator<Item = &VersionInfo> {
        let rank = |version: &VersionInfo| (version.stale, version.version != self.preferred_version);
        let mut versions: Vec<_> = self.versions.iter().collect();
        versions.sort_by_key(|version| rank(version));
        versions.into_iter()
    }
}

/// One version of an API group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionInfo {
    /// The name, such as `v1beta1`.
    pub version: String,
    /// The resources; empty if they could not be discovered.
    pub resources: Vec<Arc<ResourceInfo>>,
    /// Whether the list of resources is an old copy, because the aggregated API server does not respond.
    pub stale: bool,
}

/// One resource in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceInfo {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind of its objects.
    pub kind: String,
    /// The name in URLs: `deployments`.
    pub plural: String,
    /// The singular: `deployment`.
    pub singular: String,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// The supported verbs: `get`, `list`, …
    pub verbs: Vec<String>,
    /// Other names for it: `deploy`.
    pub short_names: Vec<String>,
    /// The categories that it belongs to: `all`.
    pub categories: Vec<String>,
    /// The subresources.
    pub subresources: Vec<SubresourceInfo>,
}

impl ResourceInfo {
    /// Returns group, version and kind.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::gvk(&self.group, &self.version, &self.kind)
    }

    /// Returns group, version and plural.
    pub fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::gvr(&self.group, &self.version, &self.plural)
    }

    /// Returns the resource for kube's dynamic types.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&self.gvk(), &self.plural)
    }

    /// Returns whether its objects are namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Returns whether it supports a verb: `list`, `watch`, …
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// Returns a subresource by name: `status`.
    pub fn subresource(&self, name: &str) -> Option<&SubresourceInfo> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }
}

impl fmt::Display for ResourceInfo {
    /// `deployments.v1.apps`, the unambiguous name that kubectl understands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.plural, self.version, self.group)
    }
}

/// One subresource of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubresourceInfo {
    /// The name: `scale`.
    pub name: String,
    /// The kind that is read and written: `autoscaling/v1 Scale`.
    pub kind: GroupVersionKind,
    /// The supported verbs.
    pub verbs: Vec<String>,
}

/// A group version, or a whole endpoint, that could not be discovered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryFailure {
    /// The group version (`metrics.k8s.io/v1beta1`) or the endpoint (`/api`).
    pub what: String,
    /// The reason.
    pub reason: FailureReason,
}

/// Reason why a group version could not be discovered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureReason {
    /// The server serves an old copy of the list of resources.
    Stale,
    /// The request for the list failed.
    Failed(String),
}

impl fmt::Display for DiscoveryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            FailureReason::Stale => write!(f, "{}: the list of resources is out of date", self.what),
            FailureReason::Failed(reason) => write!(f, "{}: {reason}", self.what),
        }
    }
}

/// Formats an `apiVersion`: `v1` or `apps/v1`.
pub(super) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
