//! Finding a resource in what the server serves.

use std::sync::Arc;

use kube::core::{GroupVersionKind, GroupVersionResource};

use super::{MapperError, partial::Partial};
use crate::discovery::{GroupInfo, ResourceInfo, ServerResources};

type Found = Result<Arc<ResourceInfo>, MapperError>;

/// The resource of a kind; in the preferred version if none is given.
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

/// The resource with this group, version and plural; in the preferred version if none is given.
pub(super) fn by_resource(served: &ServerResources, wanted: &GroupVersionResource) -> Found {
    let is_plural = |resource: &ResourceInfo| resource.plural == wanted.resource;
    let group = served.group(&wanted.group);
    let matches = group.map(|group| in_group(group, &wanted.version, is_plural)).unwrap_or_default();
    matches.first().cloned().ok_or_else(|| MapperError::NoMatch {
        wanted: format!("resource {}.{}.{}", wanted.resource, wanted.version, wanted.group),
        known: served.iter().filter(|resource| is_plural(resource)).map(ToString::to_string).collect(),
    })
}

/// The resource that a word means.
pub(super) fn by_word(served: &ServerResources, word: &str) -> Found {
    // kubectl's order: a full name beats a short one. A kind comes last, so that it never shadows a resource.
    let names: [fn(&ResourceInfo, &str) -> bool; 3] = [
        |resource, name| resource.plural == name || resource.singular == name,
        |resource, name| resource.short_names.iter().any(|short| short == name),
        |resource, name| resource.kind.to_lowercase() == name,
    ];
    for partial in Partial::readings(word) {
        for is_named in names {
            let is_named = |resource: &ResourceInfo| is_named(resource, &partial.name);
            let version = partial.version.as_deref().unwrap_or_default();
            let matching = |group: &&GroupInfo| !in_group(group, version, is_named).is_empty();
            let groups: Vec<&GroupInfo> = match &partial.group {
                None => served.groups.iter().filter(matching).collect(),
                Some(name) => {
                    let exact = served.groups.iter().filter(|group| group.name == *name).filter(matching);
                    let exact: Vec<_> = exact.collect();
                    // `ingresses.networking` is enough to say `networking.k8s.io`.
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
                return Err(ambiguous(format!("{word:?}"), &all));
            };
            return match candidates(group).as_slice() {
                [one] => Ok(one.clone()),
                many => Err(ambiguous(format!("{word:?}"), many)),
            };
        }
    }
    Err(MapperError::NoMatch { wanted: format!("{word:?}"), known: similar(served, word) })
}

/// Every resource of a category, once.
pub(super) fn by_category(served: &ServerResources, category: &str) -> Vec<Arc<ResourceInfo>> {
    let belongs = |resource: &Arc<ResourceInfo>| resource.categories.iter().any(|name| name == category);
    served.preferred().into_iter().filter(belongs).collect()
}

/// The group that is meant when several have a resource of that name and none was named.
///
/// Kubernetes' own groups come first, in the server's order, the core group before all: `events` are core
/// events whatever else is installed, as in kubectl. Among the groups of others there is no such order that
/// would survive the next installation, so there must be just one.
fn best_group<'a>(groups: &[&'a GroupInfo]) -> Option<&'a GroupInfo> {
    let own = |group: &&&GroupInfo| !group.name.contains('.') || group.name.ends_with(".k8s.io");
    match (groups, groups.iter().find(own)) {
        ([one], _) => Some(one),
        (_, Some(own)) => Some(own),
        _ => None,
    }
}

/// The matches in the first version, by preference, that has any.
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

/// What was perhaps meant: resources of the same name elsewhere, or names that begin or end alike.
fn similar(served: &ServerResources, word: &str) -> Vec<String> {
    let name = word.split('.').next().unwrap_or(word).to_lowercase();
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
