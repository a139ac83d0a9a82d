//! Lookup of a resource in the result of discovery.

use std::sync::Arc;

use kube::core::{GroupVersionKind, GroupVersionResource};

use super::{MapperError, resource_arg::ResourceArg};
use crate::discovery::{GroupInfo, ResourceInfo, ServerResources};

type Found = Result<Arc<ResourceInfo>, MapperError>;

/// Finds the resource of a kind; in the preferred version if none is given.
pub(super) fn by_kind(served: &ServerResources, wanted: &GroupVersionKind) -> Found {
    let text = || {
        if wanted.version.is_empty() {
            format!("kind {:?} in group {:?}", wanted.kind, wanted.group)
        } else {
            format!("kind {:?} in version {:?}", wanted.kind, wanted.api_version())
        }
    };
    let is_kind = |resource: &ResourceInfo| resource.kind == wanted.kind;
    let group = served.group(&wanted.group);
    let matches = group.map(|group| in_group(group, &wanted.version, is_kind)).unwrap_or_default();
    match matches.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let elsewhere =
                served.iter().filter(|resource| is_kind(resource)).map(ToString::to_string).collect();
            Err(MapperError::NoMatch { wanted: text(), known: elsewhere })
        }
        many => Err(ambiguous(text(), many)),
    }
}

/// Finds the resource with this group, version and plural; in the preferred version if none is given.
pub(super) fn by_resource(served: &ServerResources, wanted: &GroupVersionResource) -> Found {
    let is_plural = |resource: &ResourceInfo| resource.plural == wanted.resource;
    let group = served.group(&wanted.group);
    let matches = group.map(|group| in_group(group, &wanted.version, is_plural)).unwrap_or_default();
    matches.first().cloned().ok_or_else(|| MapperError::NoMatch {
        wanted: format!("resource {}.{}.{}", wanted.resource, wanted.version, wanted.group),
        known: served.iter().filter(|resource| is_plural(resource)).map(ToString::to_string).collect(),
    })
}

/// Finds the resource of a kubectl-style argument.
pub(super) fn by_arg(served: &ServerResources, arg: &str) -> Found {
    // kubectl's order: full names before short names. Kinds come last, so that they never shadow a resource.
    let names: [fn(&ResourceInfo, &str) -> bool; 3] = [
        |resource, name| resource.plural == name || resource.singular == name,
        |resource, name| resource.short_names.iter().any(|short| short == name),
        |resource, name| resource.kind.to_lowercase() == name,
    ];
    for candidate in ResourceArg::parse(arg) {
        for is_named in names {
            let is_named = |resource: &ResourceInfo| is_named(resource, &candidate.name);
            let version = candidate.version.as_deref().unwrap_or_default();
            let matching = |group: &&GroupInfo| !in_group(group, version, is_named).is_empty();
            let groups: Vec<&GroupInfo> = match &candidate.group {
                None => served.groups.iter().filter(matching).collect(),
                Some(name) => {
                    let exact = served.groups.iter().filter(|group| group.name == *name).filter(matching);
                    let exact: Vec<_> = exact.collect();
                    // `ingresses.networking` is enough for `networking.k8s.io`.
                    let prefixed =
                        |group: &&GroupInfo| !name.is_empty() && group.name.starts_with(name.as_str());
                    if exact.is_empty() {
                        served.groups.iter().filter(prefixed).filter(matching).collect()
                    } else {
                        exact
                    }
                }
            };
            let candidates = |group: &GroupInfo| in_group(group, version, is_named);
            let Some(group) = best_group(&groups) else {
                if groups.is_empty() {
                    continue;
                }
                let all: Vec<_> = groups.into_iter().flat_map(candidates).collect();
                return Err(ambiguous(format!("{arg:?}"), &all));
            };
            return match candidates(group).as_slice() {
                [one] => Ok(one.clone()),
                many => Err(ambiguous(format!("{arg:?}"), many)),
            };
        }
    }
    Err(MapperError::NoMatch { wanted: format!("{arg:?}"), known: similar(served, arg) })
}

/// Returns every resource of a category once.
pub(super) fn by_category(served: &ServerResources, category: &str) -> Vec<Arc<ResourceInfo>> {
    let belongs = |resource: &Arc<ResourceInfo>| resource.categories.iter().any(|name| name == category);
    served.preferred().into_iter().filter(belongs).collect()
}

/// Returns the group to use when several have a matching resource and none was named.
///
/// Kubernetes' own groups come first, in the server's order, the core group before all: `events` are core
/// events whatever else is installed, as in kubectl. Other groups have no order that would survive the next
/// installation, so there must be just one.
fn best_group<'a>(groups: &[&'a GroupInfo]) -> Option<&'a GroupInfo> {
    let own = |group: &&&GroupInfo| !group.name.contains('.') || group.name.ends_with(".k8s.io");
    match (groups, groups.iter().find(own)) {
        ([one], _) => Some(one),
        (_, Some(own)) => Some(own),
        _ => None,
    }
}

/// Returns the matches in the first version, by preference, that has any.
fn in_group(
    group: &GroupInfo,
    version: &str,
    is_it: impl Fn(&ResourceInfo) -> bool,
) -> Vec<Arc<ResourceInfo>> {
    for candidate in group.by_preference() {
        if !version.is_empty() && candidate.version != version {
            continue;
        }
        let matches: Vec<_> =
            candidate.resources.iter().filter(|resource| is_it(resource)).cloned().collect();
        if !matches.is_empty() {
            return matches;
        }
    }
    Vec::new()
}

fn ambiguous(wanted: String, candidates: &[Arc<ResourceInfo>]) -> MapperError {
    MapperError::Ambiguous { wanted, candidates: candidates.iter().map(ToString::to_string).collect() }
}

/// Suggests resources: the same name in another group, or a name with a common prefix.
fn similar(served: &ServerResources, arg: &str) -> Vec<String> {
    let name = arg.split('.').next().unwrap_or(arg).to_lowercase();
    if name.is_empty() {
        return Vec::new();
    }
    let near = |resource: &&Arc<ResourceInfo>| {
        resource.plural.starts_with(&name)
            || name.starts_with(&resource.singular)
            || resource.short_names.contains(&name)
    };
    served.preferred().iter().filter(near).take(5).map(ToString::to_string).collect()
}
