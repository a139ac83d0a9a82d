//! Objects that cannot be brought into the version that is asked for.
//!
//! A definition may name a webhook that converts. What needs no conversion works without it; what does is an error in
//! the words that upstream has for a webhook that does not answer. Nor can an object be shown that is stored in a version
//! which its definition has no longer.

use std::sync::Arc;

use kubewright_core::ObjectKey;
use serde_json::Value;

use super::{Registry, custom::Custom, descriptor::Descriptor};
use crate::{status::Status, storage::Object};

impl Registry {
    /// Refuses to show objects that are stored in another version.
    pub(super) fn check_shown<'o>(
        &self,
        ty: &Descriptor,
        objects: impl IntoIterator<Item = &'o Arc<Object>>,
    ) -> Result<(), Status> {
        let Some(custom) = &ty.custom else { return Ok(()) };
        let versions = objects.into_iter().filter_map(|object| object.meta.stored_version.as_ref());
        for version in versions.map(|by| &*by.version).filter(|version| **version != ty.version) {
            if custom.versions().get(version).is_none() {
                let group = &ty.group;
                return Err(Status::internal(format!(
                    "request to convert CR from an invalid group/version: {group}/{version}"
                )));
            }
            if custom.asks_webhook() {
                return Err(self.no_conversion(custom, version));
            }
        }
        Ok(())
    }

    /// Refuses to store objects of a version that is not the stored one.
    pub(super) fn check_stored(&self, ty: &Descriptor) -> Result<(), Status> {
        match &ty.custom {
            Some(custom) if custom.asks_webhook() && !custom.is_stored() => {
                Err(self.no_conversion(custom, &ty.version))
            }
            _ => Ok(()),
        }
    }

    fn no_conversion(&self, custom: &Custom, from: &str) -> Status {
        let client = custom.webhook();
        let service = &client["service"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut why = "this server calls no conversion webhooks; use strategy None".to_owned();
        let url = if let Some(url) = client["url"].as_str() {
            url.to_owned()
        } else {
            let (name, namespace) = (text(&service["name"]), text(&service["namespace"]));
            if self.storage.get("services", &ObjectKey::namespaced(&namespace, &name)).is_none() {
                why = format!("service {name:?} not found");
            }
            format!("https://{name}.{namespace}.svc:{}{}", service["port"], text(&service["path"]))
        };
        let (group, kind) = (&custom.resource().gvk().group, &custom.resource().gvk().kind);
        let url = format!("{url}?timeout=30s");
        Status::internal(format!(
            "conversion webhook for {group}/{from}, Kind={kind} failed: Post {url:?}: {why}"
        ))
    }
}
