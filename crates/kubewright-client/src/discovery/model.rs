//! What a server serves, in one shape for both forms of discovery and for the cache.

use std::{fmt, sync::Arc};

use kube::{
    core::{ApiResource, GroupVersionKind, GroupVersionResource},
    discovery::Scope,
};

/// Everything that the server serves, and what it could not tell.
///
/// Groups are in the server's order of priority, the core group first; the versions of a group are in its
/// order of preference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerResources {
    /// The groups.
    pub groups: Vec<GroupInfo>,
    /// Group versions whose resources are missing or may be out of date, and why. The rest is complete.
    pub failures: Vec<DiscoveryFailure>,
}

impl ServerResources {
    /// The group with this name; the core group's is empty.
    pub fn group(&self, name: &str) -> Option<&GroupInfo> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// The resources of one group version: `v1`, `apps/v1`.
    pub fn group_version(&self, api_version: &str) -> Option<&VersionInfo> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.group(group)?.version(version)
    }

    /// Every resource in every version, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ResourceInfo>> {
        self.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.resources)
    }

    /// Every resource once, in the version that its group prefers, or the first that has it.
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
pub struct GroupInfo {
    /// The name; empty for the core group.
    pub name: String,
    /// The versions, best first.
    pub versions: Vec<VersionInfo>,
    /// The version that the server prefers.
    pub preferred_version: String,
}

impl GroupInfo {
    /// One version of it.
    pub fn version(&self, version: &str) -> Option<&VersionInfo> {
        self.versions.iter().find(|candidate| candidate.version == version)
    }

    /// The versions to look into, one after the other: current before stale, the preferred one before the
    /// others.
    pub fn by_preference(&self) -> impl Iterator<Item = &VersionInfo> {
        let rank = |version: &VersionInfo| (version.stale, version.version != self.preferred_version);
        let mut versions: Vec<_> = self.versions.iter().collect();
        versions.sort_by_key(|version| rank(version));
        versions.into_iter()
    }
}

/// One version of an API group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionInfo {
    /// The name, such as `v1beta1`.
    pub version: String,
    /// The resources; empty if the server could not tell.
    pub resources: Vec<Arc<ResourceInfo>>,
    /// The server answered from an old copy, because the API server behind this version does not answer.
    pub stale: bool,
}

/// One resource in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// Other names for it: `deploy`.
    pub short_names: Vec<String>,
    /// The sets it belongs to: `all`.
    pub categories: Vec<String>,
    /// The parts of its objects that are read and written by themselves.
    pub subresources: Vec<SubresourceInfo>,
}

impl ResourceInfo {
    /// Group, version and kind.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::gvk(&self.group, &self.version, &self.kind)
    }

    /// Group, version and plural.
    pub fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::gvr(&self.group, &self.version, &self.plural)
    }

    /// What kube's dynamic types want to know.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&self.gvk(), &self.plural)
    }

    /// Whether objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Whether this can be done with it: `list`, `watch`, …
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// A subresource by name: `status`.
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

/// A part of objects with a URL of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubresourceInfo {
    /// The name: `scale`.
    pub name: String,
    /// What is read and written there: `autoscaling/v1 Scale`.
    pub kind: GroupVersionKind,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// A group version, or a whole endpoint, that could not be discovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryFailure {
    /// The group version (`metrics.k8s.io/v1beta1`) or the endpoint (`/api`).
    pub what: String,
    /// Why.
    pub reason: FailureReason,
}

/// Why a group version could not be discovered.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// `v1` or `apps/v1`.
pub(super) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
