//! UPDATE, of objects and of their status.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    admission::{Attributes, Operation},
    registry::{
        Registry,
        call::{Answer, Call},
        descriptor::Json,
        json::{default, meta, meta_mut, object, object_mut, objects, objects_mut, text},
        objectmeta,
        semantics::Manager,
        validation::Errors,
    },
    status::Status,
    storage::{Expect, Object},
};

/// What a change sees and makes: the object as stored, to the object as it should be. Called again after a lost race.
pub type Change<'c> = dyn FnMut(&Json) -> Result<Json, Status> + Send + 'c;

/// Who makes a change, as far as versions and field ownership go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// A whole object: some types insist on its version.
    Put,
    /// A patch: never insists on a version that it does not name.
    Patch,
    /// An apply: as a patch, and has recorded its field ownership itself.
    Apply,
}

/// The message of an update that came too late.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

impl Registry {
    /// PUT.
    pub async fn update(&self, call: &Call<'_>, mut object: Json) -> Result<Answer, Status> {
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

    /// Reads, changes and stores an object, again when somebody else was faster and the change does not name a version.
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

    /// One attempt; `None` when somebody else was faster.
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
        // An empty list of managers is a wish, not an empty field: it must survive the canonical form.
        let forgets = meta(&new).get("managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty);
        super::settle(self, ty, &mut new);
        if forgets {
            meta_mut(&mut new).insert("managedFields".into(), Value::Array(Vec::new()));
        }
        // A binding belongs to nobody's fields, and those of a Scale have been tracked as such.
        if writer != Writer::Apply && !matches!(call.subresource, "binding" | "scale") {
            let manager = Manager {
                name: call.options.field_manager.as_str().into(),
                subresource: call.subresource,
                now,
            };
            self.semantics.track(ty, Some(old), &mut new, &manager);
        }
        // Of a binding, the binding was under admission, and the pod is not written by the user.
        let judged = call.subresource != "binding";
        let mut attributes = Attributes::new(call, Operation::Update, new, Some(old));
        if judged {
            self.admission.admit(self, &mut attributes).await?;
        }
        let mut new = attributes.into_object();
        self.prepare_update(call, &mut new, old)?;
        let attributes = Attributes::new(call, Operation::Update, new, Some(old));
        if judged {
            self.admission.validate(self, &attributes).await?;
        }
        let mut new = attributes.into_object();

        self.semantics.keep_times(old, &mut new);
        let key = call.key(call.name);
        if is_finished(&new) {
            return Ok(self.finish_deletion(call, stored, old, &new, &key));
        }
        let draft = ty.draft(&self.to_stored(call, new.clone()));
        // A write that changes nothing is no write.
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
            // The binding has decided everything; it is no change of the spec as users make it.
            super::resettle(self, ty, new);
        } else if call.subresource == "status" {
            keep_all_but_status(new, old);
            (ty.strategy.prepare_status)(new, old);
            super::resettle(self, ty, new);
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
            super::resettle(self, ty, new);
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
        if call.subresource.is_empty() { self.authorizer.check_escalation(self, call, new) } else { Ok(()) }
    }

    /// The update took the last finalizer off an object that was waiting for it.
    fn finish_deletion(
        &self,
        call: &Call<'_>,
        stored: &Arc<Object>,
        old: &Json,
        new: &Json,
        key: &kubewright_core::ObjectKey,
    ) -> Option<Arc<Object>> {
        // Clients see the object that they wrote, under the version that they wrote over.
        let shown =
            Arc::new(call.ty.draft(&self.to_stored(call, new.clone())).preview(Some(stored.revision)));
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

/// The version that a body insists on.
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

/// 409: the object is another one of the same name.
pub(super) fn uid_conflict(call: &Call<'_>, wanted: &str, is: &str) -> Status {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {is}",
        if call.ty.custom.is_some() { &*call.ty.storage } else { &*call.ty.plural },
        call.key(call.name)
    );
    Status::conflict(call.ty.about(call.name), &why)
}

/// What subresources other than `/status` may change of an object.
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
        // Bindings and finalizers make the whole object themselves.
        _ => return,
    }
    // Who manages which fields is not the subresource's to keep.
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

/// Whether nothing keeps a terminating object any more.
fn is_finished(object: &Json) -> bool {
    let metadata = meta(object);
    metadata.contains_key("deletionTimestamp")
        && metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0
        && super::super::json::list(metadata, "finalizers").is_empty()
        && !(object.get("kind").is_some_and(|k| k == "Namespace")
            && object.get("spec").and_then(|s| s.get("finalizers")).is_some())
}
