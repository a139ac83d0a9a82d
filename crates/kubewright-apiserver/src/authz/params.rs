//! Nobody reads by way of an admission policy what they may not read themselves: the checks on writing policies with
//! parameters and their bindings.

use super::{Access, Authorizer};
use crate::{
    authn::User,
    registry::{
        Registry,
        call::Call,
        json::{Json, name, object, text},
        validation::Errors,
    },
    status::Status,
};

pub(super) fn check(
    authorizer: &Authorizer,
    registry: &Registry,
    call: &Call<'_>,
    written: &Json,
) -> Result<(), Status> {
    let (field, looks_at) = match call.ty.kind.as_ref() {
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => ("paramKind", "paramKind"),
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => ("paramRef", "policyName"),
        _ => return Ok(()),
    };
    let empty = Json::new();
    let spec = object(written, "spec").unwrap_or(&empty);
    if !spec.contains_key(field) {
        return Ok(());
    }
    let before = registry.storage.get(&call.ty.storage, &call.key(name(written))).map(|o| o.decode());
    let before = before.as_ref().and_then(|before| object(before, "spec"));
    if before.is_some_and(|old| [field, looks_at].iter().all(|key| old.get(*key) == spec.get(*key))) {
        return Ok(());
    }
    let refusal = if field == "paramKind" {
        policy(authorizer, registry, call.user, spec)
    } else {
        binding(authorizer, registry, call, spec)
    };
    let Some(why) = refusal else { return Ok(()) };
    let mut errors = Errors::default();
    errors.forbidden(format!("spec.{field}"), &why);
    Err(call.invalid(name(written), &errors))
}

/// Group, version and resource of the parameters that a policy names; everything where it is not known.
fn resource_of(registry: &Registry, kind: Option<&Json>) -> (String, String, String) {
    let all = || "*".to_owned();
    let Some(kind) = kind else { return (all(), all(), all()) };
    let version = text(kind, "apiVersion");
    let (group, bare) = version.split_once('/').unwrap_or(("", version));
    let types = registry.types();
    let found = types.all().iter().find(|ty| ty.kind == text(kind, "kind") && ty.api_version() == version);
    (group.to_owned(), bare.to_owned(), found.map_or_else(all, |ty| ty.plural.to_string()))
}

fn policy(authorizer: &Authorizer, registry: &Registry, user: &User, spec: &Json) -> Option<String> {
    let kind = object(spec, "paramKind");
    let (group, version, resource) = resource_of(registry, kind);
    let access = Access {
        verb: "get",
        group: &group,
        version: &version,
        resource: &resource,
        namespace: "*",
        name: "*",
        ..Access::default()
    };
    if authorizer.decide(registry, user, &access).allowed {
        return None;
    }
    let shown = |key: &str| kind.map_or("", |kind| text(kind, key));
    Some(format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
        shown_user(user),
        shown("kind"),
        shown("apiVersion")
    ))
}

fn binding(authorizer: &Authorizer, registry: &Registry, call: &Call<'_>, spec: &Json) -> Option<String> {
    let policies = if call.ty.kind.starts_with("Mutating") {
        "admissionregistration.k8s.io/mutatingadmissionpolicies"
    } else {
        "admissionregistration.k8s.io/validatingadmissionpolicies"
    };
    let named = text(spec, "policyName");
    let policy =
        registry.storage.get(policies, &kubewright_core::ObjectKey::cluster(named)).map(|o| o.decode());
    let kind = policy.as_ref().and_then(|policy| object(object(policy, "spec")?, "paramKind"));
    let (group, version, resource) = resource_of(registry, kind);
    let reference = object(spec, "paramRef")?;
    let param = text(reference, "name");
    let verb = if param.is_empty() { "list" } else { "get" };
    let access = Access {
        verb,
        group: &group,
        version: &version,
        resource: &resource,
        namespace: text(reference, "namespace"),
        name: param,
        ..Access::default()
    };
    if authorizer.decide(registry, call.user, &access).allowed {
        return None;
    }
    let user = shown_user(call.user);
    Some(if policy.is_none() {
        format!(
            "unable to get policy {named} to determine minimum required permissions and user {user} does not have \
             \"{verb}\" permission for all groups, versions and resources"
        )
    } else {
        format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef")
    })
}

/// A user as Go prints one.
fn shown_user(user: &User) -> String {
    let extra: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}
