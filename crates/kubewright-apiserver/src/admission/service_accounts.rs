//! `ServiceAccount`: sets the account of pods and mounts its token.
//!
//! Off unless told to: without the controllers of a cluster no namespace has the account `default`, and every pod would
//! be refused.

use kubewright_core::ObjectKey;
use serde_json::{Value, json};

use super::{Attributes, Operation, Plugin};
use crate::{
    admission::Context,
    registry::json::{Json, at, list, object_mut, objects, objects_mut, text, text_at},
    status::Status,
};

/// The directory of the mounted token.
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The annotation of pods that a kubelet made on its own.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ServiceAccount;

impl ServiceAccount {
    fn ignores(attributes: &Attributes<'_>) -> bool {
        attributes.operation != Operation::Create || !attributes.is("", "pods")
    }

    fn is_mirror(attributes: &Attributes<'_>) -> bool {
        at(&attributes.object, &["metadata", "annotations", MIRROR]).is_some()
    }

    fn account(context: &Context<'_>, attributes: &Attributes<'_>) -> Result<Json, Status> {
        let name = text_at(&attributes.object, &["spec", "serviceAccountName"]);
        let namespace = attributes.namespace();
        let found = context.objects.get("serviceaccounts", &ObjectKey::new(Some(namespace), name));
        found.map(|account| account.decode()).ok_or_else(|| {
            attributes.forbid(&format!(
                "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
            ))
        })
    }
}

impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn admit(&self, context: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        if Self::ignores(attributes) || Self::is_mirror(attributes) {
            return Ok(());
        }
        let spec = object_mut(&mut attributes.object, "spec");
        if text(spec, "serviceAccountName").is_empty() {
            spec.insert("serviceAccountName".into(), "default".into());
            spec.insert("serviceAccount".into(), "default".into());
        }
        let account = Self::account(context, attributes)?;
        let spec = object_mut(&mut attributes.object, "spec");
        let wish = |of: &Json| of.get("automountServiceAccountToken").and_then(Value::as_bool);
        if wish(spec).or_else(|| wish(&account)).unwrap_or(true) {
            mount(spec, &format!("kube-api-access-{}", context.random().name_suffix()));
        }
        let pulls = list(&account, "imagePullSecrets");
        if list(spec, "imagePullSecrets").is_empty() && !pulls.is_empty() {
            spec.insert("imagePullSecrets".into(), pulls.to_vec().into());
        }
        Ok(())
    }

    fn validate(&self, context: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        if Self::ignores(attributes) {
            return Ok(());
        }
        let name = text_at(&attributes.object, &["spec", "serviceAccountName"]);
        if Self::is_mirror(attributes) {
            if name.is_empty() {
                return Ok(());
            }
            return Err(attributes.forbid("a mirror pod may not reference service accounts"));
        }
        if name.is_empty() {
            let (namespace, pod) = (attributes.namespace(), attributes.name());
            return Err(attributes.forbid(&format!("no service account specified for pod {namespace}/{pod}")));
        }
        Self::account(context, attributes).map(drop)
    }
}

/// Gives every container that mounts nothing there the token, the cluster's authority and the namespace.
fn mount(spec: &mut Json, volume: &str) {
    let known: Vec<String> = objects(spec, "volumes").map(|volume| text(volume, "name").to_owned()).collect();
    let mine = known.iter().find(|name| name.starts_with("kube-api-access-"));
    let name = mine.cloned().unwrap_or_else(|| volume.to_owned());
    let mut used = false;
    for key in ["initContainers", "containers"] {
        for container in objects_mut(spec, key) {
            if objects(container, "volumeMounts").any(|mount| text(mount, "mountPath") == MOUNT) {
                continue;
            }
            let mut mounts = list(container, "volumeMounts").to_vec();
            mounts.push(json!({"name": name, "readOnly": true, "mountPath": MOUNT}));
            container.insert("volumeMounts".into(), mounts.into());
            used = true;
        }
    }
    if !used || known.contains(&name) {
        return;
    }
    let namespace =
        json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    let mut volumes = list(spec, "volumes").to_vec();
    volumes.push(json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]}}));
    spec.insert("volumes".into(), volumes.into());
}
