//! The verb update, of objects and of their subresources.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    admission::{Attributes, Operation},
    registry::{
        Registry,
        call::{Answer, Call},
        descriptor::Json,
        json::{default, meta, meta_mut, object, object_mut, objects, objects_mut, text},
        objectmeta, schematic,
        semantics::Manager,
        validation::Errors,
    },
    status::Status,
    storage::{Expect, Object},
};

/// Makes the object to store of the stored one. Called again after a conflict.
pub(crate) type Change<'c> = dyn FnMut(&Json) -> Result<Json, Status> + Send + 'c;

/// The kind of write, as far as versions and field ownership go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// A whole object: some types require its `resourceVersion`.
    Put,
    /// A patch: checks a `resourceVersion` only if it names one.
    Patch,
    /// An apply: like a patch, with field ownership already recorded.
    Apply,
}

/// The message of a conflict on `resourceVersion`.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

impl Registry {
    /// Updates an object or a subresource: PUT.
    pub(crate) async fn update(&self, call: &Call<'_>, mut object: Json) -> Result<Answer, Status> {
        super::check_target(call, &mut object)?;
        super::check_name(call, text(meta(&object), "name"))?;
        let exists = self.storage.get(&call.ty.storage, &call.key(call.name)).is_some();
        if !exists && call.subresource.is_empty() && call.ty.create_on_put {
            let object = self.create_object(call, object, Writer::Put).await?;
            return Ok(Answer::Stored { code: 201, ty: Arc::clone(call.ty), object });
        }
        let object = self.change(call, &mut |_| Ok(object.clone()), Writer::Put).await?;
        Ok(Answer::Stored { code: 200, ty: Arc::clone(call.ty), object })
    }

    /// Reads, changes and stores an object; retries on a conflict if the change does not name a version.
    pub(crate) async fn change(
        &self,
        call: &Call<'_>,
        change: &mut Change<'_>,
        writer: Writer,
    ) -> Result<Arc<Object>, Status> {
        let now = self.now();
        loop {
            let stored = self.find(call)?;
            let old = call.ty.decode(&stored);
            let new = change(&old)?;
            let wanted = wanted_version(call, &new, writer)?;
            if wanted.is_some_and(|version| version != stored.revision) {
                return Err(Status::conflict(call.ty.about(call.name), MODIFIED));
            }
            if writer == Writer::Put {
                check_uid(call, &new, &old)?;
            }
            match self.replace(call, &stored, &old, new, &now, writer).await? {
                Some(object) => return Ok(object),
                None if wanted.is_some() => {
                    return Err(Status::conflict(call.ty.about(call.name), MODIFIED));
                }
                None => {}
            }
        }
    }

    /// Attempts a change once; `None` on a conflict with another writer.
    async fn replace(
        &self,
        call: &Call<'_>,
        stored: &Arc<Object>,
        old: &Json,
        mut new: Json,
        now: &str,
        writer: Writer,
    ) -> Result<Option<Arc<Object>>, Status> {
        let ty = call.ty;
        meta_mut(&mut new).remove("selfLink");
        if let Some(warning) = objectmeta::dedupe_owners(&mut new) {
            call.warn(warning);
        }
        // An empty list of managers is a request to reset them: it must survive the canonical form.
        let forgets = meta(&new).get("managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty);
        super::canonicalise_and_default(ty, &mut new);
        if forgets {
            meta_mut(&mut new).insert("managedFields".into(), Value::Array(Vec::new()));
        }
        // A binding is not tracked, and the fields of a Scale have been tracked as such.
        if writer != Writer::Apply && !matches!(call.subresource, "binding" | "scale") {
            let manager = Manager {
                name: call.options.field_manager.as_str().into(),
                subresource: call.subresource,
                now,
            };
            schematic::track(ty, Some(old), &mut new, &manager);
        }
        let mut attributes = Attributes::new(call, Operation::Update, new, Some(old));
        call.admit(&mut attributes).await?;
        let mut new = attributes.into_object();
        self.prepare_update(call, &mut new, old)?;
        let attributes = Attributes::new(call, Operation::Update, new, Some(old));
        call.validate(&attributes).await?;
        let mut new = attributes.into_object();

        schematic::keep_times(old, &mut new);
        let key = call.key(call.name);
        if is_finished(&new) {
            return Ok(self.finish_deletion(call, stored, old, &new, &key));
        }
        let draft = ty.draft(&super::create::to_stored(call, new.clone()));
        // A write that changes nothing is not stored.
        let same = draft.clone().preview(Some(stored.revision));
        let version = |object: &Object| object.meta.stored_version.as_ref().map(|by| by.version.clone());
        if same.bytes() == stored.bytes() && version(&same) == version(stored) {
            return Ok(Some(Arc::clone(stored)));
        }
        if call.options.dry_run {
            return Ok(Some(Arc::new(same)));
        }
        match self.storage.put(&ty.storage, &key, Expect::Revision(stored.revision), draft) {
            Ok(object) => {
                self.after_write(call, Some(old), Some(&new));
                Ok(Some(object))
            }
            Err(_) => Ok(None),
        }
    }

    fn prepare_update(&self, call: &Call<'_>, new: &mut Json, old: &Json) -> Result<(), Status> {
        let ty = call.ty;
        meta_mut(new)
            .insert("resourceVersion".into(), meta(old).get("resourceVersion").cloned().unwrap_or_default());
        let mut errors = Errors::default();
        let mut warnings = Vec::new();
        objectmeta::set_generation(new, objectmeta::generation(old));
        if let (Some(custom), "status") = (&ty.custom, call.subresource) {
            custom.prepare_status(new, old);
        }
        objectmeta::validate_update(new, old, ty, &mut errors);
        if call.subresource == "binding" {
            // The update strategy is for changes that users make; a binding is made by the server.
            super::default_again(ty, new);
        } else if call.subresource == "status" {
            keep_all_but_status(new, old);
            (ty.strategy.prepare_status)(new, old);
            super::default_again(ty, new);
            (ty.strategy.validate_status)(new, old, &mut errors);
        } else {
            match call.subresource {
                "" | "scale" => {
                    if ty.subresource("status").is_some() {
                        set_or_remove(new, "status", old.get("status").cloned());
                    }
                    (ty.strategy.prepare_update)(new, old);
                }
                other => restrict(other, new, old, &self.now()),
            }
            super::default_again(ty, new);
            self.allocator.prepare_update(self, call, new, old)?;
            if objectmeta::content_changed(new, old, ty.generation) {
                objectmeta::set_generation(new, objectmeta::generation(old) + 1);
            }
            match call.subresource {
                "" | "scale" => (ty.strategy.validate_update)(new, old, &mut errors),
                other => (ty.strategy.validate_subresource)(other, new, old, &mut errors),
            }
        }
        if let Some(custom) = &ty.custom {
            warnings.extend(custom.validate(new, Some(old), call.subresource, &mut errors));
        }
        if !errors.is_empty() {
            return Err(call.refuse(new, call.name, &errors));
        }
        (ty.strategy.warnings)(new, Some(old), &mut warnings);
        for warning in warnings {
            call.warn(warning);
        }
        Ok(())
    }

    /// Removes an object whose last finalizer the update took off.
    fn finish_deletion(
        &self,
        call: &Call<'_>,
        stored: &Arc<Object>,
        old: &Json,
        new: &Json,
        key: &kubewright_core::ObjectKey,
    ) -> Option<Arc<Object>> {
        // The response shows the object as written, under the version that it replaces.
        let shown = Arc::new(
            call.ty.draft(&super::create::to_stored(call, new.clone())).preview(Some(stored.revision)),
        );
        if call.options.dry_run {
            return Some(shown);
        }
        match self.storage.remove(&call.ty.storage, key, stored.revision) {
            Ok(_) => {
                self.after_write(call, Some(old), None);
                Some(shown)
            }
            Err(_) => None,
        }
    }
}

/// Returns the `resourceVersion` that the stored object must have.
fn wanted_version(call: &Call<'_>, new: &Json, writer: Writer) -> Result<Option<u64>, Status> {
    let text = text(meta(new), "resourceVersion");
    let version = super::options::revision(text)
        .map_err(|_| Status::internal(format!("strconv.ParseUint: parsing {text:?}: invalid syntax")))?;
    if version > 0 {
        return Ok(Some(version));
    }
    if call.ty.unconditional_put || writer != Writer::Put {
        return Ok(None);
    }
    let mut errors = Errors::default();
    errors.invalid("metadata.resourceVersion", 0, "must be specified for an update");
    Err(Status::invalid(call.ty.about(call.name), &errors))
}

fn check_uid(call: &Call<'_>, new: &Json, old: &Json) -> Result<(), Status> {
    let (wanted, is) = (text(meta(new), "uid"), text(meta(old), "uid"));
    if wanted.is_empty() || wanted == is {
        return Ok(());
    }
    Err(uid_conflict(call, wanted, is))
}

/// 409: the stored object has another uid.
pub(super) fn uid_conflict(call: &Call<'_>, wanted: &str, is: &str) -> Status {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {is}",
        if call.ty.custom.is_some() { &*call.ty.storage } else { &*call.ty.plural },
        call.key(call.name)
    );
    Status::conflict(call.ty.about(call.name), &why)
}

/// Undoes changes that a subresource other than `/status` may not make.
fn restrict(subresource: &str, new: &mut Json, old: &Json, now: &str) {
    let mut kept = old.clone();
    match subresource {
        "approval" => {
            let conditions = new.get("status").and_then(|s| s.get("conditions")).cloned();
            let status = object_mut(&mut kept, "status");
            set_or_remove(status, "conditions", conditions);
            for condition in objects_mut(status, "conditions") {
                for key in ["lastUpdateTime", "lastTransitionTime"] {
                    default(condition, key, now);
                }
            }
        }
        "ephemeralcontainers" => {
            let containers = new.get("spec").and_then(|s| s.get("ephemeralContainers")).cloned();
            set_or_remove(object_mut(&mut kept, "spec"), "ephemeralContainers", containers);
        }
        "resize" => {
            for list in ["containers", "initContainers"] {
                let asked: Vec<Json> =
                    object(new, "spec").into_iter().flat_map(|s| objects(s, list)).cloned().collect();
                for container in objects_mut(object_mut(&mut kept, "spec"), list) {
                    let twin = asked.iter().find(|c| text(c, "name") == text(container, "name"));
                    for key in ["resources", "resizePolicy"] {
                        set_or_remove(container, key, twin.and_then(|c| c.get(key)).cloned());
                    }
                }
            }
        }
        // Bindings and finalizers build the whole object themselves.
        _ => return,
    }
    // managedFields cover the whole object.
    set_or_remove(meta_mut(&mut kept), "managedFields", meta(new).get("managedFields").cloned());
    *new = kept;
}

fn set_or_remove(parent: &mut Json, key: &str, value: Option<Value>) {
    match value {
        Some(value) => parent.insert(key.into(), value),
        None => parent.remove(key),
    };
}

fn keep_all_but_status(new: &mut Json, old: &Json) {
    new.retain(|key, _| matches!(key.as_str(), "status" | "metadata"));
    for (key, value) in old {
        if !matches!(key.as_str(), "status" | "metadata") {
            new.insert(key.clone(), value.clone());
        }
    }
}

/// Returns whether a terminating object has neither finalizers nor a grace period left.
fn is_finished(object: &Json) -> bool {
    let metadata = meta(object);
    metadata.contains_key("deletionTimestamp")
        && metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0
        && super::super::json::list(metadata, "finalizers").is_empty()
        && !(object.get("kind").is_some_and(|k| k == "Namespace")
            && object.get("spec").and_then(|s| s.get("finalizers")).is_some())
}
