//! The verbs delete and deletecollection: preconditions, finalizers, propagation, grace periods.

use std::sync::Arc;

use serde_json::{Value, json};

use super::options::ListOptions;
use crate::{
    admission::{Attributes, Operation},
    crd::definition::status,
    registry::{
        Registry,
        call::{Answer, Call},
        definitions::DEFINITIONS,
        descriptor::{DefaultPropagation, Json},
        json::{as_value, list, meta, meta_mut, text, text_at},
        objectmeta,
        validation::Errors,
    },
    status::{About, Status},
    storage::{Expect, Object},
};

/// What a deletion does with the dependents of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They lose this owner and stay.
    Orphan,
    /// The garbage collector deletes them afterwards.
    Background,
    /// The garbage collector deletes them first.
    Foreground,
}

/// Options of a deletion, from the body or the query.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    /// The grace period in seconds.
    pub(crate) grace: Option<i64>,
    /// Precondition: the uid of the stored object.
    pub(crate) uid: Option<String>,
    /// Precondition: the version of the stored object.
    pub(crate) resource_version: Option<String>,
    /// The treatment of dependents; the default of the type if unset.
    pub(crate) propagation: Option<Propagation>,
    /// Whether nothing is stored.
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// Parses options. A body replaces the query.
    pub(crate) fn parse<'a>(
        body: Option<&Json>,
        query: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Status> {
        let mut raw = Json::new();
        for (key, value) in query {
            let value = match key {
                "gracePeriodSeconds" => {
                    value.parse::<i64>().map(Value::from).map_err(|e| Status::bad_request(e.to_string()))?
                }
                "orphanDependents" => Value::Bool(super::options::flag(value)),
                "propagationPolicy" => value.into(),
                "dryRun" => json!([value]),
                _ => continue,
            };
            raw.insert(key.into(), value);
        }
        if let Some(body) = body {
            raw.clone_from(body);
        }
        let mut errors = Errors::default();
        let policy = text(&raw, "propagationPolicy");
        let orphan = raw.get("orphanDependents").and_then(Value::as_bool);
        if orphan.is_some() && !policy.is_empty() {
            errors.invalid(
                "propagationPolicy",
                policy,
                "orphanDependents and deletionPropagation cannot be both set",
            );
        }
        let propagation = match (policy, orphan) {
            ("Orphan", _) | ("", Some(true)) => Some(Propagation::Orphan),
            ("Background", _) | ("", Some(false)) => Some(Propagation::Background),
            ("Foreground", _) => Some(Propagation::Foreground),
            ("", None) => None,
            (other, _) => {
                errors.not_supported("propagationPolicy", other, &["Background", "Foreground", "Orphan"]);
                None
            }
        };
        let runs = list(&raw, "dryRun");
        for run in runs.iter().filter(|r| *r != "All") {
            errors.not_supported("dryRun", json!([run]), &["All"]);
        }
        let grace = raw.get("gracePeriodSeconds").and_then(Value::as_i64);
        if !errors.is_empty() {
            return Err(Status::invalid(
                About { group: "meta.k8s.io", kind: "DeleteOptions", name: "" },
                &errors,
            ));
        }
        let precondition = |key: &str| {
            Some(text_at(&raw, &["preconditions", key])).filter(|t| !t.is_empty()).map(str::to_owned)
        };
        Ok(Self {
            grace,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            propagation,
            dry_run: !runs.is_empty(),
        })
    }
}

/// The state of an object after its deletion.
pub(in crate::registry) enum Outcome {
    /// Still stored, with a deletion timestamp.
    Terminating(Arc<Object>),
    /// Removed; its last state.
    Gone(Arc<Object>),
}

impl Registry {
    /// Deletes one object.
    pub(crate) async fn delete(&self, call: &Call<'_>, options: &DeleteOptions) -> Result<Answer, Status> {
        let outcome = self.delete_object(call, options).await?;
        let ty = Arc::clone(call.ty);
        match outcome {
            Outcome::Terminating(object) => Ok(Answer::Stored { code: 200, ty, object }),
            Outcome::Gone(object) if call.ty.delete_answers_object => {
                Ok(Answer::Stored { code: 200, ty, object })
            }
            Outcome::Gone(object) => {
                let mut details = Json::new();
                details.insert("name".into(), call.name.into());
                if !call.ty.group.is_empty() {
                    details.insert("group".into(), call.ty.group.as_ref().into());
                }
                details.insert("kind".into(), call.ty.plural.as_ref().into());
                details.insert("uid".into(), object.meta.uid.as_ref().into());
                Ok(Answer::success(200, Some(details)))
            }
        }
    }

    /// Deletes the objects of a collection and returns them as they were.
    pub(crate) async fn delete_collection(
        &self,
        call: &Call<'_>,
        list_options: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Answer, Status> {
        let answer = self.list(call, list_options)?;
        let Answer::List(listed) = &answer else { return Ok(answer) };
        for item in &listed.items {
            let object = item.decode();
            let one = Call {
                ty: call.ty,
                namespace: text(meta(&object), "namespace"),
                name: text(meta(&object), "name"),
                subresource: "",
                user: call.user,
                admission: call.admission,
                options: call.options.clone(),
                warnings: parking_lot::Mutex::default(),
            };
            let deleted = self.delete_object(&one, options).await;
            for warning in one.warnings.lock().drain(..) {
                call.warn(warning);
            }
            match deleted {
                Ok(_) => {}
                // Another client has deleted it already.
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        Ok(answer)
    }

    async fn delete_object(&self, call: &Call<'_>, options: &DeleteOptions) -> Result<Outcome, Status> {
        loop {
            let stored = self.find(call)?;
            check_preconditions(call, options, &stored)?;
            let old = call.ty.decode(&stored);
            let mut attributes = Attributes::new(call, Operation::Delete, Json::new(), Some(&old));
            attributes.dry_run |= options.dry_run;
            call.admit(&mut attributes).await?;
            call.validate(&attributes).await?;
            let Some(outcome) = self.erase(call, options, &stored, &old) else { continue };
            if !(options.dry_run || call.options.dry_run) {
                match &outcome {
                    Outcome::Terminating(_) => self.update_definitions_after(call, Some(&old), Some(&old)),
                    Outcome::Gone(_) => self.after_write(call, Some(&old), None),
                }
            }
            return Ok(outcome);
        }
    }

    /// Marks or removes an object that was read as `stored`; `None` on a conflict with another writer.
    pub(in crate::registry) fn erase(
        &self,
        call: &Call<'_>,
        options: &DeleteOptions,
        stored: &Arc<Object>,
        old: &Json,
    ) -> Option<Outcome> {
        let mut new = old.clone();
        let stays = self.mark(call, options, old, &mut new);
        let key = call.key(call.name);
        let changed = new != *old;
        let draft = call.ty.draft(&super::create::to_stored(call, new));
        if options.dry_run || call.options.dry_run {
            let shown = Arc::new(draft.preview(Some(stored.revision)));
            return Some(if stays { Outcome::Terminating(shown) } else { Outcome::Gone(shown) });
        }
        let mut current = Arc::clone(stored);
        // Pods are always marked before they go, so that watchers see the grace period end.
        if changed && (stays || call.ty.graceful) {
            current =
                self.storage.put(&call.ty.storage, &key, Expect::Revision(stored.revision), draft).ok()?;
        }
        if stays {
            return Some(Outcome::Terminating(current));
        }
        self.storage.remove(&call.ty.storage, &key, current.revision).ok().map(Outcome::Gone)
    }

    /// Writes the deletion into `new`. Returns whether finalizers or a grace period keep the object.
    fn mark(&self, call: &Call<'_>, options: &DeleteOptions, old: &Json, new: &mut Json) -> bool {
        if &*call.ty.storage == DEFINITIONS && !meta(old).contains_key("deletionTimestamp") {
            let now = self.now();
            as_value(new, |crd| status::mark_terminating(crd, &now));
            return true;
        }
        let waits = if call.ty.graceful { self.mark_grace(options, old, new) } else { false };
        mark_propagation(call, options, new);
        let held = !list(meta(new), "finalizers").is_empty()
            || (call.ty.kind == "Namespace" && !list_at_spec_finalizers(new).is_empty());
        if held && !meta(new).contains_key("deletionTimestamp") {
            let now = self.now();
            let metadata = meta_mut(new);
            metadata.insert("deletionTimestamp".into(), now.into());
            metadata.insert("deletionGracePeriodSeconds".into(), 0.into());
            bump_generation(new);
        }
        if held && call.ty.kind == "Namespace" {
            meta_mut(new).remove("deletionGracePeriodSeconds");
            super::super::json::object_mut(new, "status").insert("phase".into(), "Terminating".into());
        }
        waits || held
    }

    /// Sets the grace period of a pod. Returns whether its node has to confirm the end first.
    fn mark_grace(&self, options: &DeleteOptions, old: &Json, new: &mut Json) -> bool {
        let metadata = meta(old);
        let before = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64);
        let phase = text_at(old, &["status", "phase"]);
        let own =
            old.get("spec").and_then(|s| s.get("terminationGracePeriodSeconds")).and_then(Value::as_i64);
        let mut period = options.grace.or(own).unwrap_or(30);
        if period < 0 {
            period = 1;
        }
        if text_at(old, &["spec", "nodeName"]).is_empty() || matches!(phase, "Succeeded" | "Failed") {
            period = 0;
        }
        let (Some(before), Ok(deleted)) =
            (before, text(metadata, "deletionTimestamp").parse::<jiff::Timestamp>())
        else {
            let until = self.clock.now() + jiff::SignedDuration::from_secs(period);
            let metadata = meta_mut(new);
            metadata.insert("deletionTimestamp".into(), crate::clock::seconds(until).into());
            metadata.insert("deletionGracePeriodSeconds".into(), period.into());
            bump_generation(new);
            return period > 0;
        };
        // A second deletion may only shorten the time.
        let asked = options.grace.map(|asked| if asked < 0 { 1 } else { asked });
        let mut period = asked.map_or(before, |asked| asked.min(before));
        if period < before {
            let mut until = deleted - jiff::SignedDuration::from_secs(before - period);
            let now = self.clock.now();
            if until < now {
                // The whole period is over already: the shortest graceful period, if one was requested.
                until = now;
                period = period.min(1);
            }
            let metadata = meta_mut(new);
            metadata.insert("deletionTimestamp".into(), crate::clock::seconds(until).into());
            metadata.insert("deletionGracePeriodSeconds".into(), period.into());
        }
        period > 0
    }
}

fn list_at_spec_finalizers(object: &Json) -> &[Value] {
    object.get("spec").and_then(Value::as_object).map_or(&[], |spec| list(spec, "finalizers"))
}

fn bump_generation(object: &mut Json) {
    let generation = objectmeta::generation(object);
    if generation > 0 {
        objectmeta::set_generation(object, generation + 1);
    }
}

/// Turns Orphan and Foreground into finalizers, which the garbage collector removes.
fn mark_propagation(call: &Call<'_>, options: &DeleteOptions, object: &mut Json) {
    let finalizers = list(meta(object), "finalizers");
    let has = |name: &str| finalizers.iter().any(|f| f == name);
    let policy = options.propagation.unwrap_or_else(|| {
        if has("orphan") {
            Propagation::Orphan
        } else if has("foregroundDeletion") {
            Propagation::Foreground
        } else if call.ty.propagation == DefaultPropagation::Orphan {
            if call.ty.kind == "Job" {
                call.warn(
                    "child pods are preserved by default when jobs are deleted; set \
                     propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
                     this warning",
                );
            }
            Propagation::Orphan
        } else {
            Propagation::Background
        }
    });
    let wanted = match policy {
        Propagation::Orphan => Some("orphan"),
        Propagation::Foreground => Some("foregroundDeletion"),
        Propagation::Background => None,
    };
    let mut kept: Vec<Value> = finalizers
        .iter()
        .filter(|f| !["orphan", "foregroundDeletion"].iter().any(|g| *f == g && wanted != Some(g)))
        .cloned()
        .collect();
    if let Some(wanted) = wanted.filter(|w| !has(w)) {
        kept.push(wanted.into());
    }
    let metadata = meta_mut(object);
    if kept.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), kept.into());
    }
}

fn check_preconditions(call: &Call<'_>, options: &DeleteOptions, stored: &Object) -> Result<(), Status> {
    let conflict = |what: &str, wanted: &str, is: &str, perhaps: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). The object might \
             have been {perhaps}"
        );
        Status::conflict(call.ty.about_kind(call.name), &why)
    };
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != stored.meta.uid.as_ref()) {
        return Err(conflict("UID", uid, &stored.meta.uid, "deleted and then recreated"));
    }
    let version = stored.revision.to_string();
    if let Some(wanted) = options.resource_version.as_deref().filter(|v| *v != version) {
        return Err(conflict("ResourceVersion", wanted, &version, "modified"));
    }
    Ok(())
}
