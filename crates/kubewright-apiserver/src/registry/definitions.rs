//! What follows the write of a definition: accepted names, conditions, the types that are served, and the end of
//! their objects.
//!
//! Upstream has a controller for each of these, a moment behind the write. Here they run as part of it, so whoever has
//! written a definition can use its types at once. Everything is derived from what is stored, and doing it again
//! changes nothing: a server that starts on stored definitions does the same for all of them.

use std::{collections::BTreeSet, sync::Arc};

use kubewright_core::ObjectKey;
use serde_json::{Value, json};

use super::{
    Registry,
    call::{Call, WriteOptions},
    custom::Definition,
    descriptor::{Descriptor, Json},
    json::{meta, name},
    semantics::Manager,
    verbs::delete::DeleteOptions,
};
use crate::{
    authn::User,
    crd::{
        definition::{CLEANUP_FINALIZER, status},
        props,
    },
    storage::{Expect, Object},
};

/// Where definitions are stored.
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// In whose name the server writes to its own objects.
const SERVER: &str = "kube-apiserver";

struct Stored {
    key: ObjectKey,
    object: Arc<Object>,
    crd: Value,
}

impl Stored {
    fn is_terminating(&self) -> bool {
        self.object.meta.deletion.is_some()
            && self.object.meta.finalizers.iter().any(|finalizer| &**finalizer == CLEANUP_FINALIZER)
    }
}

/// The group of a definition, out of its name.
fn group_of(definition: &str) -> &str {
    definition.split_once('.').map_or("", |(_, group)| group)
}

impl Registry {
    /// Serves what the stored definitions say: at the start of a server.
    pub(crate) fn restore_definitions(&self) {
        let stored = self.storage.snapshot().collection(DEFINITIONS);
        let groups: BTreeSet<String> =
            stored.range(None, None).map(|(key, _)| group_of(key.name()).to_owned()).collect();
        for group in groups {
            self.settle_group(&group, "");
        }
    }

    /// What must follow a write: of a definition, or of an object whose definition waits for its end.
    pub(super) fn follow(&self, call: &Call<'_>, before: Option<&Json>, after: Option<&Json>) {
        if &*call.ty.storage == DEFINITIONS {
            let Some(written) = after.or(before) else { return };
            self.settle_group(group_of(name(written)), name(written));
        } else if call.ty.custom.is_some() && after.is_none() {
            let definition = format!("{}.{}", call.ty.plural, call.ty.group);
            let key = ObjectKey::cluster(&definition);
            if self.storage.get(DEFINITIONS, &key).is_some_and(|crd| crd.meta.deletion.is_some()) {
                self.settle_group(&call.ty.group, &definition);
            }
        }
    }

    /// Brings the definitions of a group up to date, the one named first, and then the types that are served.
    fn settle_group(&self, group: &str, first: &str) {
        let _settling = self.settling.lock();
        let mut definitions = self.definitions(group, first);
        // Every step brings one condition further; the bound only guards against two that undo each other.
        for _ in 0..8 * definitions.len() + 8 {
            if !definitions.iter().any(|stored| self.step(stored, &definitions)) {
                break;
            }
            definitions = self.definitions(group, first);
        }
        let mut gone: BTreeSet<String> = self.custom_types(group).map(|ty| ty.plural.to_string()).collect();
        for stored in &definitions {
            let plural = stored.crd["status"]["acceptedNames"]["plural"].as_str().unwrap_or_default();
            if status::is_true(&stored.crd, "Established") {
                gone.remove(plural);
                self.serve_definition(group, plural, &stored.crd);
            }
        }
        for plural in gone {
            self.replace_types(group, &plural, Vec::new());
        }
        self.announce(group);
    }

    fn definitions(&self, group: &str, first: &str) -> Vec<Stored> {
        let collection = self.storage.snapshot().collection(DEFINITIONS);
        let of_group = collection.range(None, None).filter(|(key, _)| group_of(key.name()) == group);
        let mut definitions: Vec<Stored> = of_group
            .map(|(key, object)| Stored {
                key: key.clone(),
                object: Arc::clone(object),
                crd: Value::Object(object.decode()),
            })
            .collect();
        definitions.sort_by_key(|stored| stored.key.name() != first);
        definitions
    }

    /// One write that a definition needs; whether there was one.
    fn step(&self, stored: &Stored, group: &[Stored]) -> bool {
        let cleaned_up = stored.is_terminating().then(|| self.clean_up(stored)).flatten();
        // While its objects are held, a definition that goes can still be given other names.
        let next = cleaned_up
            .or_else(|| status::refresh(&stored.crd, group.iter().map(|stored| &stored.crd), &self.now()));
        next.is_some_and(|next| self.write_definition(stored, next))
    }

    /// The next state of a definition that is being deleted: its objects go first.
    fn clean_up(&self, stored: &Stored) -> Option<Value> {
        const CONDITION: &str = "Terminating";
        let now = self.now();
        let mut crd = stored.crd.clone();
        let set = |crd: &mut Value, status: &str, reason: &str, message: &str| {
            status::set_condition(crd, CONDITION, status, reason, message, &now);
        };
        if status::is_true(&crd, "Established") {
            set(&mut crd, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
            if crd != stored.crd {
                return Some(crd);
            }
            if !self.delete_instances(&crd) {
                return None;
            }
            set(&mut crd, "False", "InstanceDeletionCompleted", "removed all instances");
        } else {
            set(&mut crd, "False", "NeverEstablished", "resource was never established");
        }
        if let Some(finalizers) =
            props::entry(&mut crd, &["metadata", "finalizers"]).and_then(Value::as_array_mut)
        {
            finalizers.retain(|finalizer| finalizer != CLEANUP_FINALIZER);
        }
        Some(crd)
    }

    /// Deletes all objects of a definition, past admission as upstream does; whether none is left.
    fn delete_instances(&self, crd: &Value) -> bool {
        let Ok(definition) = Definition::of(crd) else { return true };
        let Some(ty) = Arc::new(definition).stored().map(Arc::new) else { return true };
        let user = User { name: "system:apiserver".into(), ..User::default() };
        let collection = self.storage.snapshot().collection(&ty.storage);
        for (key, object) in collection.range(None, None).filter(|(_, object)| object.meta.deletion.is_none())
        {
            let call = Call {
                ty: &ty,
                namespace: key.namespace().unwrap_or_default(),
                name: key.name(),
                subresource: "",
                user: &user,
                options: WriteOptions::default(),
                warnings: parking_lot::Mutex::default(),
            };
            let mut current = Some(Arc::clone(object));
            while let Some(stored) = current {
                if self.erase(&call, &DeleteOptions::default(), &stored, &ty.decode(&stored)).is_some() {
                    break;
                }
                current = self.storage.get(&ty.storage, key);
            }
        }
        self.storage.snapshot().collection(&ty.storage).is_empty()
    }

    /// Stores what the server itself has to say about a definition; whether nobody else was faster.
    fn write_definition(&self, stored: &Stored, next: Value) -> bool {
        let Some(ty) = self.resolve("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
            return false;
        };
        let Value::Object(mut next) = next else { return false };
        let old = ty.decode(&stored.object);
        next.insert("kind".into(), ty.kind.as_ref().into());
        next.insert("apiVersion".into(), ty.api_version().into());
        let now = self.now();
        let manager = Manager { name: SERVER.into(), subresource: "status", now: &now };
        self.semantics.canonicalise(&ty, &mut next);
        self.semantics.track(&ty, Some(&old), &mut next, &manager);
        self.semantics.at_rest(&ty, &mut next);
        let revision = stored.object.revision;
        let ends = meta(&next).contains_key("deletionTimestamp") && !meta(&next).contains_key("finalizers");
        if ends {
            return self.storage.remove(DEFINITIONS, &stored.key, revision).is_ok();
        }
        self.storage.put(DEFINITIONS, &stored.key, Expect::Revision(revision), ty.draft(&next)).is_ok()
    }

    fn custom_types(&self, group: &str) -> impl Iterator<Item = Arc<Descriptor>> + use<> {
        let of_group = |ty: &&Arc<Descriptor>| ty.custom.is_some() && ty.group == group;
        let types: Vec<_> = self.types().all().iter().filter(of_group).map(Arc::clone).collect();
        types.into_iter()
    }

    fn serve_definition(&self, group: &str, plural: &str, crd: &Value) {
        let served = self.custom_types(group).find(|ty| ty.plural == plural);
        let known = served.as_ref().and_then(|ty| ty.custom.as_ref());
        let terminating = crd["metadata"]["deletionTimestamp"].is_string();
        let same = known.filter(|custom| custom.definition().serves(crd));
        if same.is_some_and(|custom| custom.is_terminating() == terminating) {
            return;
        }
        let definition = same.map(|custom| Ok(Arc::clone(custom.definition())));
        // Definitions are validated before they are stored; one that does not compile is not served.
        let Ok(definition) = definition.unwrap_or_else(|| Definition::of(crd).map(Arc::new)) else { return };
        self.replace_types(group, plural, definition.descriptors(terminating));
        if let (Some(known), None) = (known, same) {
            known.definition().close();
        }
    }

    /// Registers the versions of a group as local `APIService`s, and takes back those that are gone.
    fn announce(&self, group: &str) {
        const KEY: &str = "apiregistration.k8s.io/apiservices";
        const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
        let versions: BTreeSet<String> = self.custom_types(group).map(|ty| ty.version.to_string()).collect();
        for version in &versions {
            crate::boot::put(
                self,
                ("apiregistration.k8s.io", "v1", "apiservices"),
                json!({
                    "metadata": {"name": format!("{version}.{group}"), "labels": {MANAGED: "true"}},
                    "spec": {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100},
                    "status": {"conditions": [{
                        "type": "Available", "status": "True", "lastTransitionTime": self.now(), "reason": "Local",
                        "message": "Local APIServices are always available",
                    }]},
                }),
            );
        }
        for (key, object) in self.storage.snapshot().collection(KEY).range(None, None) {
            let (version, of) = key.name().split_once('.').unwrap_or((key.name(), ""));
            if of == group && object.meta.label(MANAGED) == Some("true") && !versions.contains(version) {
                // Somebody who was faster has changed it on purpose.
                let _ = self.storage.remove(KEY, key, object.revision);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiServer;

    #[tokio::test]
    async fn a_server_that_starts_on_stored_definitions_serves_them() {
        let server = ApiServer::builder().in_process().unwrap();
        let request = |path: &str, body: &Value| {
            let request = http::Request::post(path).header("content-type", "application/json");
            request.body(body.to_string().into_bytes()).unwrap()
        };
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                              "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        server.client().request::<Value>(request(path, &definition)).await.unwrap();
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
        server.client().request::<Value>(request("/apis/example.com/v1/widgets", &widget)).await.unwrap();

        let registry = server.registry();
        registry.replace_types("example.com", "widgets", Vec::new());
        assert!(registry.resolve("example.com", "v1", "widgets").is_none());
        let before = registry.storage.revision();
        registry.restore_definitions();
        let ty = registry.resolve("example.com", "v1", "widgets").unwrap();
        assert_eq!(registry.storage.revision(), before, "what is up to date is not written again");
        let stored = registry.storage.get(&ty.storage, &ObjectKey::cluster("a")).unwrap();
        assert!(ty.shows_as_stored(&stored), "the schema is the one that it was written by");
    }
}
