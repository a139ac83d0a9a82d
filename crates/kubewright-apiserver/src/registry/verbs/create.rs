//! The verb create.

use std::sync::Arc;

use super::update::Writer;
use crate::{
    admission::{Attributes, Operation},
    registry::{
        Registry,
        call::{Answer, Call},
        custom::Custom,
        descriptor::{Generation, Json},
        json::{meta, meta_mut, text},
        objectmeta, schematic,
        semantics::Manager,
        strategy::PrepareContext,
        validation::Errors,
    },
    status::Status,
    storage::{Expect, Object},
};

/// Attempts to generate a name that is not taken.
const NAME_ATTEMPTS: u32 = 8;

impl Registry {
    /// Creates an object: POST to a collection.
    pub(crate) async fn create(&self, call: &Call<'_>, mut object: Json) -> Result<Answer, Status> {
        super::check_target(call, &mut object)?;
        let version = text(meta(&object), "resourceVersion");
        if !version.is_empty() && version != "0" {
            return Err(Status::internal("resourceVersion should not be set on objects to be created"));
        }
        let object = self.create_object(call, object, Writer::Put).await?;
        Ok(Answer::Stored { code: 201, ty: Arc::clone(call.ty), object })
    }

    /// Creates an object whose namespace and name have been checked.
    pub(super) async fn create_object(
        &self,
        call: &Call<'_>,
        mut object: Json,
        writer: Writer,
    ) -> Result<Arc<Object>, Status> {
        let ty = call.ty;
        let now = self.now();
        self.check_stored(ty)?;
        for key in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            meta_mut(&mut object).remove(key);
        }
        if let Some(warning) = objectmeta::dedupe_owners(&mut object) {
            call.warn(warning);
        }
        super::canonicalise_and_default(ty, &mut object);
        let mut managers = None;
        if writer != Writer::Apply {
            let manager = Manager {
                name: call.options.field_manager.as_str().into(),
                subresource: call.subresource,
                now: &now,
            };
            managers = track_created(call, &mut object, &manager);
        }
        let mut attributes =
            Attributes::new(call, Operation::Create, object, None).with_managers(managers.take());
        if ty.custom.as_ref().is_some_and(Custom::is_terminating) {
            return Err(
                attributes.forbid("create not allowed while custom resource definition is terminating")
            );
        }
        call.admit(&mut attributes).await?;
        let (mut object, managers) = attributes.into_parts();

        let generates = text(meta(&object), "name").is_empty();
        let base = text(meta(&object), "generateName").to_owned();
        for attempt in 1.. {
            self.identify(&mut object, generates, &base, &now);
            // Only a generated name may be taken and need the object again.
            let mut prepared = if generates { object.clone() } else { std::mem::take(&mut object) };
            self.prepare_create(call, &mut prepared, &now)?;
            let attributes =
                Attributes::new(call, Operation::Create, prepared, None).with_managers(managers.clone());
            if let Err(refusal) = call.validate(&attributes).await {
                self.allocator.release(call, &attributes.object);
                return Err(refusal);
            }
            let prepared = attributes.into_object();
            let key = call.key(text(meta(&prepared), "name"));
            let stored = to_stored(call, prepared);
            let draft = ty.draft_with(&stored, managers.as_deref());
            if call.options.dry_run {
                if let Some(current) = self.storage.get(&ty.storage, &key) {
                    return Err(taken(call, key.name(), &current));
                }
                self.allocator.release(call, &stored);
                return Ok(Arc::new(draft.preview(None)));
            }
            match self.storage.put(&ty.storage, &key, Expect::Absent, draft) {
                Ok(object) => {
                    self.after_write(call, None, Some(&stored));
                    return Ok(object);
                }
                Err(raced) => {
                    self.allocator.release(call, &stored);
                    if !generates || attempt >= NAME_ATTEMPTS {
                        let current =
                            raced.current.ok_or_else(|| Status::internal("the store lost an object"))?;
                        return Err(taken(call, key.name(), &current));
                    }
                }
            }
        }
        Err(Status::internal("no name was free"))
    }

    fn identify(&self, object: &mut Json, generates: bool, base: &str, now: &str) {
        let metadata = meta_mut(object);
        if generates && !base.is_empty() {
            let name = objectmeta::generated_name(base, &self.random.name_suffix());
            metadata.insert("name".into(), name.into());
        }
        metadata.insert("uid".into(), self.random.uuid().into());
        metadata.insert("creationTimestamp".into(), now.into());
    }

    fn prepare_create(&self, call: &Call<'_>, object: &mut Json, now: &str) -> Result<(), Status> {
        let ty = call.ty;
        objectmeta::set_generation(object, i64::from(ty.generation != Generation::None));
        if ty.subresource("status").is_some() && !ty.strategy.keeps_status {
            object.remove("status");
        }
        (ty.strategy.prepare_create)(object, &PrepareContext { now, user: call.user });
        super::default_again(ty, object);
        self.allocator.prepare_create(self, call, object)?;

        let mut errors = Errors::default();
        objectmeta::validate(object, ty, &mut errors);
        (ty.strategy.validate)(object, &mut errors);
        let mut warnings = Vec::new();
        if let Some(custom) = &ty.custom {
            warnings.extend(custom.validate(object, None, "", &mut errors));
        }
        if !errors.is_empty() {
            self.allocator.release(call, object);
            return Err(call.refuse(object, text(meta(object), "name"), &errors));
        }
        (ty.strategy.warnings)(object, None, &mut warnings);
        for warning in warnings {
            call.warn(warning);
        }
        Ok(())
    }

    /// Updates what is derived from stored objects after a write.
    pub(super) fn after_write(&self, call: &Call<'_>, before: Option<&Json>, after: Option<&Json>) {
        self.allocator.after_write(call, before, after);
        self.update_definitions_after(call, before, after);
    }
}

/// Records the field manager of a new object: as a text beside the object where no plugin reads `managedFields` before
/// the object is encoded, otherwise in it.
fn track_created(call: &Call<'_>, object: &mut Json, manager: &Manager<'_>) -> Option<Arc<str>> {
    if !call.is_seen_by_custom_plugins()
        && let Some(managers) = schematic::track_created(call.ty, object, manager)
    {
        return Some(managers.into());
    }
    schematic::track(call.ty, None, object, manager);
    None
}

/// Converts an object into the version that is stored, without `kind` and `apiVersion`.
pub(super) fn to_stored(call: &Call<'_>, mut object: Json) -> Json {
    schematic::at_rest(call.ty, &mut object);
    call.ty.to_stored(&mut object);
    object
}

fn taken(call: &Call<'_>, name: &str, current: &Object) -> Status {
    let prefix = if current.meta.deletion.is_some() { "object is being deleted: " } else { "" };
    Status::already_exists(call.ty.about(name), prefix)
}
