//! The parameters with which a binding puts a policy in force.

use std::sync::Arc;

use kubewright_core::ObjectKey;
use serde_json::Value;

use super::Binding;
use crate::registry::{
    Registry,
    descriptor::Descriptor,
    json::{object, text},
    selector::LabelSelector,
};

/// The parameters of a binding: one evaluation each, `null` where there are none to be had.
pub(super) fn collect(
    binding: &Binding,
    ty: Option<&Arc<Descriptor>>,
    registry: &Registry,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let (Some(ty), Some(reference)) = (ty, object(&binding.spec, "paramRef")) else {
        return Ok(vec![Value::Null]);
    };
    let asked = text(reference, "namespace");
    let namespace = match (ty.namespaced(), asked) {
        (true, "") if namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned(),
            );
        }
        (true, "") => namespace,
        (true, asked) => asked,
        (false, "") => "",
        (false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
    };
    let snapshot = registry.storage.snapshot();
    let name = text(reference, "name");
    let found: Vec<Value> = if name.is_empty() {
        let selector = reference.get("selector").and_then(LabelSelector::from_object);
        let selector = selector.ok_or("one of name or selector must be provided")?;
        let inside = Some(namespace).filter(|namespace| !namespace.is_empty());
        let collection = snapshot.collection(&ty.storage);
        let selected =
            collection.range(inside, None).filter(|(_, o)| selector.matches(|key| o.meta.label(key)));
        selected.map(|(_, object)| Value::Object(ty.decode(object))).collect()
    } else {
        let key = ObjectKey::new(Some(namespace), name);
        let found = snapshot.get(&ty.storage, &key);
        found.iter().map(|object| Value::Object(ty.decode(object))).collect()
    };
    if found.is_empty() && text(reference, "parameterNotFoundAction") == "Deny" {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found)
}
