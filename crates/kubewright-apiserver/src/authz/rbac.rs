//! RBAC: roles and bindings, compiled.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::attributes::Access;
use crate::{
    authn::User,
    registry::json::{Json, list, name, object, objects, text},
    storage::{Collection, Snapshot},
};

/// One rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The verbs.
    pub verbs: Vec<String>,
    /// The API groups.
    pub groups: Vec<String>,
    /// The resources, `pods` or `pods/log`.
    pub resources: Vec<String>,
    /// The names; all when empty.
    pub names: Vec<String>,
    /// Non-resource URLs.
    pub urls: Vec<String>,
}

fn texts(parent: &Json, key: &str) -> Vec<String> {
    list(parent, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Rule {
    fn parse(rule: &Json) -> Self {
        Self {
            verbs: texts(rule, "verbs"),
            groups: texts(rule, "apiGroups"),
            resources: texts(rule, "resources"),
            names: texts(rule, "resourceNames"),
            urls: texts(rule, "nonResourceURLs"),
        }
    }

    /// Returns the rules of a role object.
    pub fn of(role: &Json) -> Vec<Self> {
        objects(role, "rules").map(Self::parse).collect()
    }

    /// Returns the rules of `system:masters`.
    pub fn everything() -> [Self; 2] {
        let all = || vec!["*".to_owned()];
        [
            Self { verbs: all(), groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), urls: all(), ..Self::default() },
        ]
    }

    /// Returns the rule as reviews print it.
    pub fn to_value(&self) -> Value {
        let mut value = json!({"verbs": self.verbs});
        for (key, list) in [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ] {
            if !list.is_empty() {
                value[key] = json!(list);
            }
        }
        value
    }

    fn has(list: &[String], wanted: &str) -> bool {
        list.iter().any(|v| v == "*" || v == wanted)
    }

    /// Returns whether the rule allows an access.
    pub fn allows(&self, access: &Access<'_>) -> bool {
        if !Self::has(&self.verbs, access.verb) {
            return false;
        }
        if access.resource.is_empty() {
            return self.urls.iter().any(|url| {
                url == "*"
                    || url == access.path
                    || url.strip_suffix('*').is_some_and(|head| access.path.starts_with(head))
            });
        }
        let resource = access.combined_resource();
        let any_sub = format!("*/{}", access.subresource);
        Self::has(&self.groups, access.group)
            && (Self::has(&self.resources, &resource)
                || (!access.subresource.is_empty() && self.resources.contains(&any_sub)))
            && (self.names.is_empty() || self.names.iter().any(|n| n == access.name))
    }

    /// Splits the rule into rules of one verb, group, resource and name each.
    pub(super) fn atoms(&self) -> Vec<Self> {
        let mut atoms = Vec::new();
        let one = |s: &String| vec![s.clone()];
        for verb in &self.verbs {
            for url in &self.urls {
                atoms.push(Self { verbs: one(verb), urls: one(url), ..Self::default() });
            }
            for group in &self.groups {
                for resource in &self.resources {
                    let base = Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.names.is_empty() {
                        atoms.push(base);
                    } else {
                        atoms.extend(self.names.iter().map(|n| Self { names: one(n), ..base.clone() }));
                    }
                }
            }
        }
        atoms
    }

    /// Returns whether this rule grants everything that an atom grants.
    pub(super) fn covers(&self, atom: &Self) -> bool {
        let all_in = |mine: &[String], theirs: &[String]| theirs.iter().all(|t| Self::has(mine, t));
        let urls = atom.urls.iter().all(|url| {
            self.urls.iter().any(|mine| {
                mine == "*" || mine == url || mine.strip_suffix('*').is_some_and(|h| url.starts_with(h))
            })
        });
        let resources = atom.resources.iter().all(|r| {
            Self::has(&self.resources, r)
                || r.split_once('/').is_some_and(|(_, sub)| self.resources.contains(&format!("*/{sub}")))
        });
        let names = self.names.is_empty()
            || (!atom.names.is_empty() && atom.names.iter().all(|n| self.names.contains(n)));
        all_in(&self.verbs, &atom.verbs) && urls && all_in(&self.groups, &atom.groups) && resources && names
    }
}

#[derive(Debug, Clone)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Subject {
    fn is(&self, user: &User, binding_namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user.name,
            "Group" => user.is_in(&self.name),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { binding_namespace } else { &self.namespace };
                user.name == format!("system:serviceaccount:{namespace}:{}", self.name)
            }
            _ => false,
        }
    }

    fn shown(&self) -> String {
        match self.kind.as_str() {
            "ServiceAccount" => format!("ServiceAccount \"{}/{}\"", self.name, self.namespace),
            kind => format!("{kind} {:?}", self.name),
        }
    }
}

#[derive(Debug, Clone)]
struct Binding {
    name: String,
    subjects: Vec<Subject>,
    role_kind: String,
    role: String,
}

/// All roles and bindings.
#[derive(Debug, Default)]
pub(super) struct Policy {
    /// The collections that the policy was compiled from; `None` before the first compilation.
    sources: Option<[Collection; RESOURCES.len()]>,
    cluster_roles: BTreeMap<String, Vec<Rule>>,
    roles: BTreeMap<String, Vec<Rule>>,
    cluster_bindings: Vec<Binding>,
    bindings: BTreeMap<String, Vec<Binding>>,
}

/// The resources that a policy is compiled from.
const RESOURCES: [&str; 4] = [
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/roles",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "rbac.authorization.k8s.io/rolebindings",
];

impl Policy {
    pub(super) fn compile(snapshot: &Snapshot) -> Self {
        let mut policy = Self::default();
        let sources = RESOURCES.map(|resource| snapshot.collection(resource));
        let [cluster_roles, roles, cluster_bindings, bindings] = &sources;
        for (key, role) in cluster_roles.range(None, None) {
            policy.cluster_roles.insert(key.name().into(), Rule::of(&role.decode()));
        }
        for (key, role) in roles.range(None, None) {
            policy.roles.insert(key.as_str().into(), Rule::of(&role.decode()));
        }
        for (_, binding) in cluster_bindings.range(None, None) {
            policy.cluster_bindings.push(binding_of(&binding.decode()));
        }
        for (key, binding) in bindings.range(None, None) {
            let namespace = key.namespace().unwrap_or_default().to_owned();
            policy.bindings.entry(namespace).or_default().push(binding_of(&binding.decode()));
        }
        policy.sources = Some(sources);
        policy
    }

    /// Returns whether the policy was compiled from the roles and bindings of a snapshot.
    pub(super) fn is_current(&self, snapshot: &Snapshot) -> bool {
        self.sources.as_ref().is_some_and(|sources| {
            RESOURCES.iter().zip(sources).all(|(resource, source)| snapshot.has_collection(resource, source))
        })
    }

    /// Returns the reason why an access is allowed; `None` if it is not.
    pub(super) fn allows(&self, user: &User, access: &Access<'_>) -> Option<String> {
        self.visit(user, access.namespace, |rule, reason| rule.allows(access).then(reason))
    }

    /// Returns the rules of a user in a namespace.
    pub(super) fn rules(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let mut rules = Vec::new();
        self.visit(user, namespace, |rule, _| {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
            None::<()>
        });
        rules
    }

    /// Returns the rules of a referenced role.
    pub(super) fn role(&self, kind: &str, name: &str, namespace: &str) -> Option<&Vec<Rule>> {
        match kind {
            "ClusterRole" => self.cluster_roles.get(name),
            _ => self.roles.get(&format!("{namespace}/{name}")),
        }
    }

    fn visit<T>(
        &self,
        user: &User,
        namespace: &str,
        mut see: impl FnMut(&Rule, &dyn Fn() -> String) -> Option<T>,
    ) -> Option<T> {
        for binding in &self.cluster_bindings {
            let Some(subject) = binding.subjects.iter().find(|s| s.is(user, "")) else { continue };
            let reason = || {
                format!(
                    "RBAC: allowed by ClusterRoleBinding {:?} of ClusterRole {:?} to {}",
                    binding.name,
                    binding.role,
                    subject.shown()
                )
            };
            for rule in self.cluster_roles.get(&binding.role).into_iter().flatten() {
                if let Some(found) = see(rule, &reason) {
                    return Some(found);
                }
            }
        }
        if namespace.is_empty() {
            return None;
        }
        for binding in self.bindings.get(namespace).into_iter().flatten() {
            let Some(subject) = binding.subjects.iter().find(|s| s.is(user, namespace)) else { continue };
            let reason = || {
                format!(
                    "RBAC: allowed by RoleBinding \"{}/{namespace}\" of {} {:?} to {}",
                    binding.name,
                    binding.role_kind,
                    binding.role,
                    subject.shown()
                )
            };
            for rule in self.role(&binding.role_kind, &binding.role, namespace).into_iter().flatten() {
                if let Some(found) = see(rule, &reason) {
                    return Some(found);
                }
            }
        }
        None
    }
}

fn binding_of(binding: &Json) -> Binding {
    let reference = object(binding, "roleRef");
    let of = |key: &str| reference.map(|r| text(r, key).to_owned()).unwrap_or_default();
    Binding {
        name: name(binding).to_owned(),
        subjects: objects(binding, "subjects")
            .map(|s| Subject {
                kind: text(s, "kind").into(),
                name: text(s, "name").into(),
                namespace: text(s, "namespace").into(),
            })
            .collect(),
        role_kind: of("kind"),
        role: of("name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(value: &Value) -> Rule {
        Rule::parse(value.as_object().unwrap())
    }

    #[test]
    fn rules_match_groups_resources_subresources_names_and_paths() {
        let pods = rule(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale"]}));
        let access = Access { verb: "get", resource: "pods", name: "a", ..Access::default() };
        assert!(pods.allows(&access));
        assert!(!pods.allows(&Access { verb: "list", ..access }));
        assert!(!pods.allows(&Access { subresource: "log", ..access }));
        assert!(pods.allows(&Access { subresource: "scale", ..access }));
        let named = Rule { names: vec!["b".into()], ..pods };
        assert!(!named.allows(&access));
        let path = rule(&json!({"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]}));
        assert!(path.allows(&Access { verb: "get", path: "/healthz/ping", ..Access::default() }));
        assert!(!path.allows(&Access { verb: "get", path: "/metrics", ..Access::default() }));
    }

    #[test]
    fn a_rule_covers_what_it_gives_and_no_more() {
        let mine = rule(&json!({"verbs": ["get", "list"], "apiGroups": ["*"], "resources": ["pods"]}));
        let atoms = rule(&json!({"verbs": ["get"], "apiGroups": ["", "x"], "resources": ["pods"]})).atoms();
        assert_eq!(atoms.len(), 2);
        assert!(atoms.iter().all(|a| mine.covers(a)));
        let more = rule(&json!({"verbs": ["delete"], "apiGroups": [""], "resources": ["pods"]})).atoms();
        assert!(!mine.covers(&more[0]));
    }
}
