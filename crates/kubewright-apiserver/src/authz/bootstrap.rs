//! Roles and bindings that a cluster starts with.
//!
//! They are data, in `bootstrap.txt`. A role is a line with its name (`part-of=` says into which roles it is summed up,
//! `sum-of=` that it is such a sum) and one line per rule: verbs, groups, resources, and names if it is about some only;
//! `-` is the core group, `R` and `W` are the verbs that read and write, and `paths` stands in front of URLs that are no
//! resources. A binding is one line: its name, the role, the subjects.
//!
//! On a stock cluster a controller sums up `admin`, `edit` and `view`; here they are written out, so that they work
//! without it.

use serde_json::{Value, json};

const DATA: &str = include_str!("bootstrap.txt");
const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";
const R: &str = "get,list,watch";
const W: &str = "create,delete,deletecollection,patch,update";

/// A role as the data has it.
struct Role<'d> {
    namespace: Option<&'d str>,
    name: &'d str,
    part_of: Vec<&'d str>,
    sum_of: Option<&'d str>,
    rules: Vec<&'d str>,
}

impl<'d> Role<'d> {
    /// The rules, those that are summed up included, each once.
    fn all_rules(&self, roles: &[Self]) -> Vec<&'d str> {
        let mut out = self.rules.clone();
        let parts = roles.iter().filter(|role| self.sum_of.is_some_and(|sum| role.part_of.contains(&sum)));
        for rule in parts.flat_map(|role| role.all_rules(roles)) {
            if !out.contains(&rule) {
                out.push(rule);
            }
        }
        out
    }

    fn object(&self, roles: &[Self]) -> Value {
        let mut metadata = metadata(self.namespace, self.name);
        for target in &self.part_of {
            metadata["labels"][format!("{AGGREGATE}{target}")] = "true".into();
        }
        let rules: Vec<Value> = self.all_rules(roles).into_iter().map(rule).collect();
        let mut object = json!({"metadata": metadata, "rules": rules});
        if let Some(sum) = self.sum_of {
            let labels = json!({format!("{AGGREGATE}{sum}"): "true"});
            object["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": labels}]});
        }
        object
    }
}

fn metadata(namespace: Option<&str>, name: &str) -> Value {
    let mut out = json!({
        "name": name,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    });
    if let Some(namespace) = namespace {
        out["namespace"] = namespace.into();
    }
    out
}

fn rule(line: &str) -> Value {
    let split = |text: &str| -> Vec<String> {
        text.split(',').map(|p| if p == "-" { String::new() } else { p.to_owned() }).collect()
    };
    let mut parts = line.split(' ');
    let mut next = || parts.next().unwrap_or_default();
    let verbs = match next() {
        "R" => R,
        "W" => W,
        verbs => verbs,
    };
    let (groups, resources, names) = (next(), next(), next());
    let mut out = json!({"verbs": split(verbs)});
    if groups == "paths" {
        out["nonResourceURLs"] = split(resources).into();
        return out;
    }
    out["apiGroups"] = split(groups).into();
    out["resources"] = split(resources).into();
    if !names.is_empty() {
        out["resourceNames"] = split(names).into();
    }
    out
}

fn subject(text: &str) -> Value {
    let (kind, name) = text.split_once('=').unwrap_or((text, ""));
    match name.split_once('/') {
        Some((namespace, name)) if kind == "ServiceAccount" => {
            json!({"kind": kind, "namespace": namespace, "name": name})
        }
        _ => json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}),
    }
}

fn binding<'d>(namespace: Option<&str>, role_kind: &str, mut words: impl Iterator<Item = &'d str>) -> Value {
    let (name, role) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut out = json!({
        "metadata": metadata(namespace, name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
    });
    let subjects: Vec<Value> = words.map(subject).collect();
    if !subjects.is_empty() {
        out["subjects"] = subjects.into();
    }
    out
}

/// All roles and bindings, each with the plural of its resource.
pub(crate) fn objects() -> Vec<(&'static str, Value)> {
    let mut roles: Vec<Role<'static>> = Vec::new();
    let mut bindings = Vec::new();
    for line in DATA.lines() {
        if let Some(rule) = line.strip_prefix("  ") {
            if let Some(role) = roles.last_mut() {
                role.rules.push(rule);
            }
            continue;
        }
        let mut words = line.split(' ');
        let what = words.next().unwrap_or_default();
        let namespace = if matches!(what, "role" | "rolebinding") { words.next() } else { None };
        match what {
            "clusterrolebinding" => {
                bindings.push(("clusterrolebindings", binding(None, "ClusterRole", words)));
            }
            "rolebinding" => bindings.push(("rolebindings", binding(namespace, "Role", words))),
            _ => {
                let name = words.next().unwrap_or_default();
                let (mut part_of, mut sum_of) = (Vec::new(), None);
                for word in words {
                    part_of.extend(word.strip_prefix("part-of="));
                    sum_of = word.strip_prefix("sum-of=").or(sum_of);
                }
                roles.push(Role { namespace, name, part_of, sum_of, rules: Vec::new() });
            }
        }
    }
    let plural = |role: &Role<'_>| if role.namespace.is_some() { "roles" } else { "clusterroles" };
    let mut out: Vec<_> = roles.iter().map(|role| (plural(role), role.object(&roles))).collect();
    out.extend(bindings);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(plural: &str, name: &str) -> Value {
        let found = objects().into_iter().find(|(p, o)| *p == plural && o["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{plural} {name}")).1
    }

    #[test]
    fn sums_hold_the_rules_of_their_parts_once() {
        let rules = |name: &str| named("clusterroles", name)["rules"].as_array().cloned().unwrap_or_default();
        for (sum, part) in [("admin", "edit"), ("edit", "view"), ("admin", "system:aggregate-to-admin")] {
            assert!(rules(part).iter().all(|rule| rules(sum).contains(rule)), "{sum} lacks rules of {part}");
        }
        let admin = rules("admin");
        assert!((0..admin.len()).all(|n| !admin[..n].contains(&admin[n])));
        assert_eq!(
            named("clusterroles", "edit")["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"],
            json!({"rbac.authorization.k8s.io/aggregate-to-edit": "true"})
        );
    }

    #[test]
    fn every_binding_refers_to_a_role_that_is_there() {
        let all = objects();
        for (plural, object) in all.iter().filter(|(plural, _)| plural.ends_with("bindings")) {
            let roles = plural.replace("bindings", "s");
            let found = all.iter().any(|(p, o)| {
                *p == roles
                    && o["metadata"]["name"] == object["roleRef"]["name"]
                    && o["metadata"]["namespace"] == object["metadata"]["namespace"]
            });
            assert!(found, "{object}");
        }
    }

    #[test]
    fn rules_can_be_about_some_names_only() {
        let reader = named("roles", "extension-apiserver-authentication-reader");
        assert_eq!(reader["rules"][0]["resourceNames"], json!(["extension-apiserver-authentication"]));
        let binding = named("clusterrolebindings", "system:controller:ttl-controller");
        assert_eq!(
            binding["subjects"],
            json!([{"kind": "ServiceAccount", "namespace": "kube-system", "name": "ttl-controller"}])
        );
    }
}
