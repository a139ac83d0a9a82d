//! Escalation checks: a writer of roles and bindings must have the permissions that they grant.

use super::{Access, Authorizer, rbac::Rule};
use crate::{
    registry::{
        call::Call,
        json::{Json, name, object, text},
    },
    status::Status,
};

pub(super) fn check(authorizer: &Authorizer, call: &Call<'_>, written: &Json) -> Result<(), Status> {
    let may = |verb: &str, resource: &str, name: &str| {
        let access = Access {
            verb,
            group: "rbac.authorization.k8s.io",
            version: "v1",
            resource,
            namespace: call.namespace,
            name,
            ..Access::default()
        };
        authorizer.decide(call.user, &access).allowed
    };
    let granted = match call.ty.kind.as_ref() {
        "Role" | "ClusterRole" => {
            if may("escalate", &call.ty.plural, name(written)) {
                return Ok(());
            }
            Rule::of(written)
        }
        _ => {
            let Some(reference) = object(written, "roleRef") else { return Ok(()) };
            let (kind, role) = (text(reference, "kind"), text(reference, "name"));
            let plural = if kind == "ClusterRole" { "clusterroles" } else { "roles" };
            if may("bind", plural, role) {
                return Ok(());
            }
            let policy = authorizer.policy();
            match policy.role(kind, role, call.namespace) {
                Some(rules) => rules.clone(),
                None => return Err(Status::not_found(call.ty.about(role))),
            }
        }
    };
    let held = authorizer.rules(call.user, call.namespace);
    let missing: Vec<Rule> = granted
        .iter()
        .flat_map(Rule::atoms)
        .filter(|atom| !held.iter().any(|rule| rule.covers(atom)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let groups: Vec<String> = call.user.groups.iter().map(|g| format!("{g:?}")).collect();
    let lines: Vec<String> = compact(missing).iter().map(show).collect();
    let why = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        call.user.name,
        groups.join(" "),
        lines.join("\n")
    );
    Err(Status::forbidden(call.ty.about(name(written)), &why))
}

/// Joins rules that differ in their verb only, sorted as upstream prints them.
fn compact(atoms: Vec<Rule>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for atom in atoms {
        let twin = rules.iter_mut().find(|r| {
            (&r.groups, &r.resources, &r.names, &r.urls)
                == (&atom.groups, &atom.resources, &atom.names, &atom.urls)
        });
        match twin {
            Some(rule) => rule.verbs.extend(atom.verbs),
            None => rules.push(atom),
        }
    }
    rules.sort_by_key(show);
    rules
}

fn show(rule: &Rule) -> String {
    let parts: Vec<String> = [
        ("APIGroups", &rule.groups),
        ("NonResourceURLs", &rule.urls),
        ("Resources", &rule.resources),
        ("ResourceNames", &rule.names),
        ("Verbs", &rule.verbs),
    ]
    .into_iter()
    .filter(|(_, list)| !list.is_empty())
    .map(|(label, list)| {
        let quoted: Vec<String> = list.iter().map(|v| format!("{v:?}")).collect();
        format!("{label}:[{}]", quoted.join(" "))
    })
    .collect();
    format!("{{{}}}", parts.join(", "))
}
