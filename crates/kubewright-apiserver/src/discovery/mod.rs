//! Discovery: `/api` and `/apis`, legacy and aggregated.

use serde_json::{Value, json};

use crate::registry::{
    Types,
    builtin::GROUPS,
    custom::Custom,
    descriptor::{Descriptor, Subresource, Text},
};

/// A group and its versions, preferred first.
struct Group<'t> {
    name: &'t str,
    versions: Vec<&'t str>,
}

/// Returns all groups in the order of discovery: built-in ones by priority, others by name.
fn groups(types: &Types) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = GROUPS
        .iter()
        .filter(|rank| !rank.group.is_empty() && types.has_group(rank.group))
        .map(|rank| Group {
            name: rank.group,
            versions: rank
                .versions
                .iter()
                .map(|(v, _)| *v)
                .filter(|v| types.has_version(rank.group, v))
                .collect(),
        })
        .collect();
    let mut others: Vec<Group<'_>> = Vec::new();
    for ty in types.all() {
        if ty.group.is_empty() || GROUPS.iter().any(|rank| rank.group == ty.group) {
            continue;
        }
        match others.iter_mut().find(|g| g.name == ty.group) {
            Some(group) if group.versions.iter().any(|v| *v == ty.version) => {}
            Some(group) => group.versions.push(&ty.version),
            None => others.push(Group { name: &ty.group, versions: vec![&ty.version] }),
        }
    }
    others.sort_by_key(|g| g.name);
    for group in &mut others {
        group.versions.sort_by_key(|v| version_rank(v));
    }
    groups.append(&mut others);
    groups
}

/// Returns the sort key of versions: stable before beta before alpha, newer before older, anything else by name.
fn version_rank(version: &str) -> (u8, std::cmp::Reverse<u64>, std::cmp::Reverse<u64>, String) {
    let parsed = (|| {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: u64 = rest[..digits].parse().ok()?;
        let (level, minor) = match &rest[digits..] {
            "" => (0, 0),
            tail => {
                let (level, minor) = tail
                    .strip_prefix("beta")
                    .map(|m| (1, m))
                    .or_else(|| tail.strip_prefix("alpha").map(|m| (2, m)))?;
                (level, minor.parse().ok()?)
            }
        };
        Some((level, major, minor))
    })();
    match parsed {
        Some((level, major, minor)) => {
            (level, std::cmp::Reverse(major), std::cmp::Reverse(minor), String::new())
        }
        None => (3, std::cmp::Reverse(0), std::cmp::Reverse(0), version.to_owned()),
    }
}

fn of_version<'t>(types: &'t Types, group: &str, version: &str) -> Vec<&'t Descriptor> {
    let mut found: Vec<&Descriptor> = types
        .all()
        .iter()
        .filter(|t| t.group == group && t.version == version)
        .map(std::convert::AsRef::as_ref)
        .collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    found
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// `/api`
pub(crate) fn api_versions(host: &str) -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    })
}

fn group_value(group: &Group<'_>) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|v| json!({"groupVersion": group_version(group.name, v), "version": v}))
        .collect();
    json!({"name": group.name, "preferredVersion": versions.first(), "versions": versions})
}

/// `/apis`
pub(crate) fn api_groups(types: &Types) -> Value {
    let groups: Vec<Value> = groups(types).iter().map(group_value).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`
pub(crate) fn api_group(types: &Types, name: &str) -> Option<Value> {
    let groups = groups(types);
    let mut value = group_value(groups.iter().find(|g| g.name == name)?);
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Some(value)
}

/// `/api/v1`, `/apis/GROUP/VERSION`
pub(crate) fn api_resources(types: &Types, group: &str, version: &str) -> Option<Value> {
    let found = of_version(types, group, version);
    if found.is_empty() {
        return None;
    }
    let mut resources = Vec::new();
    for ty in found {
        let mut value = json!({
            "name": ty.plural, "singularName": ty.singular, "namespaced": ty.namespaced(), "kind": ty.kind,
            "verbs": verbs(ty),
        });
        if !ty.short_names.is_empty() {
            value["shortNames"] = json!(ty.short_names);
        }
        if !ty.categories.is_empty() {
            value["categories"] = json!(ty.categories);
        }
        if ty.has_verb("list") && ty.has_verb("create") {
            let stored = ty.custom.as_ref().and_then(|custom| custom.versions().storage());
            let version = stored.map_or(&*ty.version, |stored| &*stored.gvk().version);
            value["storageVersionHash"] = hash(&format!("{}/{version}/{}", ty.group, ty.kind)).into();
        }
        resources.push(value);
        for sub in &ty.subresources {
            let mut value = json!({
                "name": format!("{}/{}", ty.plural, sub.name), "singularName": "",
                "namespaced": ty.namespaced(), "kind": sub.kind, "verbs": sub.verbs,
            });
            if !sub.group.is_empty() {
                value["group"] = json!(sub.group);
                value["version"] = json!(sub.version);
            }
            resources.push(value);
        }
    }
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version(group, version), "resources": resources});
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

/// Returns the verbs of a type; without those that write if its definition is being deleted.
fn verbs(ty: &Descriptor) -> Vec<&Text> {
    let terminating = ty.custom.as_ref().is_some_and(Custom::is_terminating);
    let offered = |verb: &&Text| !terminating || !matches!(verb.as_ref(), "create" | "patch" | "update");
    ty.verbs.iter().filter(offered).collect()
}

fn hash(text: &str) -> String {
    use base64::Engine;
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&digest.as_ref()[..8])
}

fn aggregated_version(types: &Types, group: &str, version: &str, custom: bool) -> Value {
    let kind_of = |ty: &Descriptor, sub: Option<&Subresource>| match sub {
        Some(sub) if !sub.group.is_empty() => {
            json!({"group": sub.group, "version": sub.version, "kind": sub.kind})
        }
        // Built-in types leave their own group and version out.
        other => {
            let kind = other.map_or(&ty.kind, |s| &s.kind);
            let (group, version) = if custom { (ty.group.as_ref(), ty.version.as_ref()) } else { ("", "") };
            json!({"group": group, "version": version, "kind": kind})
        }
    };
    let resources: Vec<Value> = of_version(types, group, version)
        .into_iter()
        .map(|ty| {
            let mut value = json!({
                "resource": ty.plural, "responseKind": kind_of(ty, None),
                "scope": if ty.namespaced() { "Namespaced" } else { "Cluster" },
                "singularResource": ty.singular, "verbs": verbs(ty),
            });
            if !ty.short_names.is_empty() {
                value["shortNames"] = json!(ty.short_names);
            }
            if !ty.categories.is_empty() {
                value["categories"] = json!(ty.categories);
            }
            if !ty.subresources.is_empty() {
                value["subresources"] = ty
                    .subresources
                    .iter()
                    .map(|sub| {
                        json!({
                            "subresource": sub.name, "responseKind": kind_of(ty, Some(sub)), "verbs": sub.verbs,
                        })
                    })
                    .collect();
            }
            value
        })
        .collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

/// Returns the aggregated form of `/api` (`core`) or `/apis`, in a version of `apidiscovery.k8s.io`.
pub(crate) fn aggregated(types: &Types, core: bool, version: &str) -> Value {
    let items: Vec<Value> = if core {
        vec![json!({
            "metadata": {},
            "versions": [aggregated_version(types, "", "v1", false)],
        })]
    } else {
        groups(types)
            .iter()
            .map(|group| {
                let custom = !GROUPS.iter().any(|rank| rank.group == group.name);
                let versions: Vec<Value> =
                    group.versions.iter().map(|v| aggregated_version(types, group.name, v, custom)).collect();
                json!({"metadata": {"name": group.name}, "versions": versions})
            })
            .collect()
    };
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {}, "items": items,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_orders_them() {
        let mut versions = ["v1alpha1", "foo", "v2", "v1beta2", "v1", "v11", "v1beta10", "v2alpha1"];
        versions.sort_by_key(|v| version_rank(v));
        assert_eq!(versions, ["v11", "v2", "v1", "v1beta10", "v1beta2", "v2alpha1", "v1alpha1", "foo"]);
    }
}
