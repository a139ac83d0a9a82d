//! The request under admission, as expressions and webhooks see it.

use serde_json::{Value, json};

use super::{Attributes, Operation};
use crate::{
    authz::Access,
    cel::{AccessCheck, AccessDecision, Authorizer},
    registry::{
        Registry,
        descriptor::Descriptor,
        json::{Json, meta},
    },
};

fn kind_of(ty: &Descriptor, subresource: &str) -> Value {
    let (group, version, kind) = match ty.subresource(subresource) {
        Some(sub) if !sub.group.is_empty() => (&sub.group, &sub.version, &sub.kind),
        Some(sub) => (&ty.group, &ty.version, &sub.kind),
        None => (&ty.group, &ty.version, &ty.kind),
    };
    json!({"group": group, "version": version, "kind": kind})
}

fn resource_of(ty: &Descriptor) -> Value {
    json!({"group": ty.group, "version": ty.version, "resource": ty.plural})
}

/// The `AdmissionRequest` of a write that matched as `ty`, without uid and objects.
pub(super) fn describe(attributes: &Attributes<'_>, ty: &Descriptor) -> Json {
    let call = attributes.call;
    let mut out = Json::new();
    let mut put = |key: &str, value: Value| {
        // Empty texts are left out, as Go does.
        if value.as_str() != Some("") {
            out.insert(key.into(), value);
        }
    };
    put("kind", kind_of(ty, call.subresource));
    put("resource", resource_of(ty));
    put("subResource", call.subresource.into());
    put("requestKind", kind_of(call.ty, call.subresource));
    put("requestResource", resource_of(call.ty));
    put("requestSubResource", call.subresource.into());
    put("name", attributes.name().into());
    put("namespace", attributes.namespace().into());
    put("operation", attributes.operation.as_str().into());
    put("userInfo", user_info(attributes));
    put("dryRun", attributes.dry_run.into());
    put("options", options(attributes));
    out
}

fn user_info(attributes: &Attributes<'_>) -> Value {
    let user = attributes.call.user;
    let mut out = json!({"username": user.name});
    if !user.uid.is_empty() {
        out["uid"] = user.uid.as_str().into();
    }
    if !user.groups.is_empty() {
        out["groups"] = user.groups.clone().into();
    }
    if !user.extra.is_empty() {
        out["extra"] = json!(user.extra);
    }
    out
}

fn options(attributes: &Attributes<'_>) -> Value {
    let kind = match attributes.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return Value::Null,
    };
    let mut out = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if attributes.dry_run {
        out["dryRun"] = json!(["All"]);
    }
    if attributes.operation != Operation::Delete && !attributes.call.options.field_manager.is_empty() {
        out["fieldManager"] = attributes.call.options.field_manager.as_str().into();
    }
    out
}

/// `namespaceObject`: the namespace of a write without what is not for expressions; `null` outside of namespaces.
pub(super) fn namespace_object(registry: &Registry, attributes: &Attributes<'_>) -> Value {
    if !attributes.ty().namespaced() {
        return Value::Null;
    }
    let key = kubewright_core::ObjectKey::cluster(attributes.namespace());
    let Some(stored) = registry.storage.get("namespaces", &key) else { return Value::Null };
    let mut namespace = stored.decode();
    let shown = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    ];
    let mut metadata = meta(&namespace).clone();
    metadata.retain(|key, _| shown.contains(&key.as_str()));
    namespace.insert("metadata".into(), metadata.into());
    Value::Object(namespace)
}

/// The server's authorisers, asked on behalf of the user of a request.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    pub(super) registry: &'a Registry,
    pub(super) attributes: &'a Attributes<'a>,
}

impl Authorizer for Asking<'_> {
    fn decide(&self, service_account: Option<(&str, &str)>, check: &AccessCheck) -> AccessDecision {
        let access = Access {
            verb: &check.verb,
            group: &check.group,
            version: if check.resource.is_empty() { "" } else { "*" },
            resource: &check.resource,
            subresource: &check.subresource,
            namespace: &check.namespace,
            name: &check.name,
            path: &check.path,
        };
        let account = service_account.map(|(namespace, name)| crate::authn::User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")],
            ..crate::authn::User::default()
        });
        let user = account.as_ref().unwrap_or(self.attributes.call.user);
        let decision = self.registry.authorizer.decide(self.registry, user, &access);
        AccessDecision { allowed: decision.allowed, reason: decision.reason }
    }
}

/// `authorizer.requestResource`: the resource of the request itself.
pub(super) fn request_resource(attributes: &Attributes<'_>) -> AccessCheck {
    let ty = attributes.ty();
    AccessCheck {
        group: ty.group.to_string(),
        resource: ty.plural.to_string(),
        subresource: attributes.call.subresource.to_owned(),
        namespace: attributes.namespace().to_owned(),
        name: attributes.name().to_owned(),
        ..AccessCheck::default()
    }
}
