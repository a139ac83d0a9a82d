//! Computation of the owned fields of all managers for a write.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

use super::{
    error::{ApplyError, Conflict, Conflicts},
    managed::{ManagedFields, ManagerId, OwnedFields},
    path::equal,
    set::FieldSet,
    typed::{self, Comparison},
};
use crate::{Node, TypeRef};

/// Converter of an object to another version of its group, for managers that wrote in that version.
///
/// Use [`SingleVersion`] for types with a single version. A CRD with several versions needs its own: the
/// object with `apiVersion` replaced and the schema of that version, or the response of a conversion webhook.
pub trait Converter {
    /// Returns the object in `api_version` and its schema; `None` if that version no longer exists, in which
    /// case its managers are dropped.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<(Value, TypeRef)>, ApplyError>;
}

/// Converter for types with a single version.
#[derive(Debug, Clone, Copy, Default)]
pub struct SingleVersion;

impl Converter for SingleVersion {
    fn convert(&self, _: &Value, _: &str) -> Result<Option<(Value, TypeRef)>, ApplyError> {
        Ok(None)
    }
}

/// Value with its schema and version.
#[derive(Clone)]
pub(super) struct Typed<'a> {
    pub(super) value: Cow<'a, Value>,
    pub(super) schema: Cow<'a, TypeRef>,
    pub(super) api_version: Cow<'a, str>,
}

impl Typed<'_> {
    fn node(&self) -> &Node {
        &self.schema
    }

    fn fields(&self) -> FieldSet {
        typed::field_set(self.node(), &self.value)
    }

    fn without(&self, paths: &FieldSet) -> Typed<'static> {
        self.with_value(typed::remove(self.node(), &self.value, paths))
    }

    fn with_value(&self, value: Value) -> Typed<'static> {
        Typed {
            value: Cow::Owned(value),
            schema: Cow::Owned(self.schema.clone().into_owned()),
            api_version: Cow::Owned(self.api_version.clone().into_owned()),
        }
    }
}

pub(super) struct Updater<'a> {
    pub(super) converter: &'a dyn Converter,
    /// Paths that can be owned through this endpoint.
    pub(super) filter: Filter<'a>,
}

/// Paths that an endpoint lets a writer own.
#[derive(Clone, Copy, Default)]
pub(super) struct Filter<'a> {
    /// Excludes these and all paths below them.
    pub(super) reset: Option<&'a FieldSet>,
    /// Includes only these and all paths below them.
    pub(super) only: Option<&'a [&'a [&'a str]]>,
}

impl Filter<'_> {
    fn apply(self, mut set: FieldSet) -> FieldSet {
        if let Some(reset) = self.reset {
            set = set.into_recursive_difference(reset);
        }
        match self.only {
            Some(paths) => set.keep_only(paths),
            None => set,
        }
    }
}

impl Updater<'_> {
    /// Records a plain write: the writer owns the changed fields, all other managers lose them.
    pub(super) fn update(
        &self,
        live: &Typed<'_>,
        new: &Typed<'_>,
        managed: &mut ManagedFields,
        writer: &ManagerId,
    ) -> Result<(), ApplyError> {
        self.reconcile(live, managed)?;
        let comparison = self.take_over(live, new, managed, writer, true)?;
        let before = managed.0.remove(writer).map(|owned| owned.set).unwrap_or_default();
        let changed = comparison.modified.into_union(comparison.added);
        let set = before.into_difference(&comparison.removed).into_union(changed);
        let set = self.filter.apply(set);
        if !set.is_empty() {
            let api_version = new.api_version.clone().into_owned();
            managed.0.insert(writer.clone(), OwnedFields { set, api_version, time: None });
        }
        Ok(())
    }

    /// Merges a configuration into the live object; `None` if nothing changes.
    pub(super) fn apply(
        &self,
        live: &Typed<'_>,
        config: &Typed<'_>,
        managed: &mut ManagedFields,
        applier: &ManagerId,
        force: bool,
    ) -> Result<Option<Value>, ApplyError> {
        self.reconcile(live, managed)?;
        let merged = live.with_value(typed::merge(live.node(), &live.value, &config.value));
        let last = managed.0.get(applier).cloned();
        let owned = OwnedFields {
            set: self.filter.apply(config.fields()),
            api_version: config.api_version.clone().into_owned(),
            time: last.as_ref().and_then(|last| last.time.clone()),
        };
        managed.0.insert(applier.clone(), owned);
        let new = match last {
            Some(last) if !last.set.is_empty() => self.remove_omitted(&merged, managed, config, &last)?,
            _ => merged,
        };
        self.take_over(live, &new, managed, applier, force)?;
        if equal(&live.value, &new.value) {
            return Ok(None);
        }
        Ok(Some(new.value.into_owned()))
    }

    /// Removes changed fields from all managers but `writer`; without `force` that is a conflict.
    fn take_over(
        &self,
        old: &Typed<'_>,
        new: &Typed<'_>,
        managed: &mut ManagedFields,
        writer: &ManagerId,
        force: bool,
    ) -> Result<Comparison, ApplyError> {
        let own = typed::compare(old.node(), &old.value, &new.value).map(|set| self.filter.apply(set));
        let mut versions: BTreeMap<String, Option<Comparison>> = BTreeMap::new();
        let mut conflicts = Vec::new();
        let mut losses: BTreeMap<ManagerId, FieldSet> = BTreeMap::new();
        let mut forgotten = Vec::new();
        for (id, owned) in managed.0.iter().filter(|(id, _)| *id != writer) {
            let comparison = if owned.api_version == new.api_version {
                &own
            } else {
                if !versions.contains_key(&owned.api_version) {
                    let comparison = self.compare_in(old, new, &owned.api_version)?;
                    versions.insert(owned.api_version.clone(), comparison);
                }
                let Some(Some(comparison)) = versions.get(&owned.api_version) else {
                    forgotten.push(id.clone());
                    continue;
                };
                comparison
            };
            let changed = |set: &FieldSet| owned.set.intersection(set);
            let taken = changed(&comparison.modified).into_union(changed(&comparison.added));
            taken.for_each(&mut |path| {
                conflicts.push(Conflict { manager: id.clone(), path: path.to_vec() });
            });
            losses.insert(id.clone(), taken.into_union(changed(&comparison.removed)));
        }
        for id in forgotten {
            managed.0.remove(&id);
        }
        if !force && !conflicts.is_empty() {
            return Err(ApplyError::Conflict(Conflicts(conflicts)));
        }
        for (id, lost) in losses {
            if let Some(owned) = managed.0.get_mut(&id) {
                owned.set = std::mem::take(&mut owned.set).into_difference(&lost);
            }
        }
        managed.0.retain(|_, owned| !owned.set.is_empty());
        Ok(own)
    }

    fn compare_in(
        &self,
        old: &Typed<'_>,
        new: &Typed<'_>,
        api_version: &str,
    ) -> Result<Option<Comparison>, ApplyError> {
        let failed = |which: &str, error: ApplyError| {
            ApplyError::Internal(format!("failed to convert {which} object: {error}"))
        };
        let old = self.convert(old, api_version).map_err(|error| failed("old", error))?;
        let new = self.convert(new, api_version).map_err(|error| failed("new", error))?;
        let (Some(old), Some(new)) = (old, new) else {
            return Ok(None);
        };
        Ok(Some(typed::compare(old.node(), &old.value, &new.value).map(|set| self.filter.apply(set))))
    }

    /// Removes fields of the applier's last configuration that the new one omits and no other manager owns.
    fn remove_omitted(
        &self,
        merged: &Typed<'_>,
        managed: &ManagedFields,
        config: &Typed<'_>,
        last: &OwnedFields,
    ) -> Result<Typed<'static>, ApplyError> {
        let own = |typed: &Typed<'_>| typed.with_value(typed.value.clone().into_owned());
        let merged_then = self.convert(merged, &last.api_version).map_err(|error| {
            ApplyError::Internal(format!("failed to convert merged object to last applied version: {error}"))
        })?;
        let Some(merged) = merged_then else { return Ok(own(merged)) };
        let named = |set: &FieldSet| set.with_named_fields(Some(merged.node()));
        let pruned = merged.without(&named(&last.set));
        let pruned = self.add_back_owned(&merged, pruned, managed, &last.api_version)?;
        // Fields that the last configuration did not specify stay, whichever manager set them.
        let gone =
            named(&merged.fields()).difference(&named(&pruned.fields())).intersection(&named(&last.set));
        let result = merged.without(&gone);
        Ok(self.convert(&result, &config.api_version)?.map_or(result.clone(), |converted| own(&converted)))
    }

    fn add_back_owned(
        &self,
        merged: &Typed<'_>,
        mut pruned: Typed<'static>,
        managed: &ManagedFields,
        first: &str,
    ) -> Result<Typed<'static>, ApplyError> {
        let mut owned_in: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for owned in managed.0.values() {
            let set = owned_in.entry(&owned.api_version).or_default();
            *set = set.union(&owned.set);
        }
        // The version of the pruned object first: fields that conversion to another version needs must be
        // back by then.
        let mut order: Vec<_> = owned_in.into_iter().collect();
        order.sort_by_key(|(version, _)| *version != first);
        for (version, owned) in order {
            let (Some(all), Some(rest)) = (self.convert(merged, version)?, self.convert(&pruned, version)?)
            else {
                continue;
            };
            let named = |set: &FieldSet| set.with_named_fields(Some(all.node()));
            let gone = named(&all.fields()).difference(&named(&rest.fields()).union(&named(&owned)));
            pruned = all.without(&gone);
        }
        Ok(self
            .convert(&pruned, first)?
            .map(|typed| typed.with_value(typed.value.clone().into_owned()))
            .unwrap_or(pruned))
    }

    /// Adjusts the sets to lists and maps that became atomic, and drops managers of versions that no longer
    /// exist.
    fn reconcile(&self, live: &Typed<'_>, managed: &mut ManagedFields) -> Result<(), ApplyError> {
        let mut versions: BTreeMap<String, Option<TypeRef>> = BTreeMap::new();
        for owned in managed.0.values_mut() {
            if !versions.contains_key(&owned.api_version) {
                let schema = self.convert(live, &owned.api_version)?.map(|typed| typed.schema.into_owned());
                versions.insert(owned.api_version.clone(), schema);
            }
            if let Some(Some(schema)) = versions.get(&owned.api_version)
                && let Some(set) = typed::reconcile(schema, &owned.set)
            {
                owned.set = set;
            }
        }
        managed.0.retain(|_, owned| matches!(versions.get(&owned.api_version), Some(Some(_))));
        Ok(())
    }

    fn convert<'t>(&self, object: &'t Typed<'_>, api_version: &str) -> Result<Option<Typed<'t>>, ApplyError> {
        if object.api_version == api_version {
            return Ok(Some(Typed {
                value: Cow::Borrowed(&object.value),
                schema: Cow::Borrowed(&object.schema),
                api_version: Cow::Borrowed(&object.api_version),
            }));
        }
        let Some((value, schema)) = self.converter.convert(&object.value, api_version)? else {
            return Ok(None);
        };
        typed::validate(&schema, &value, false)
            .map_err(|problem| ApplyError::Internal(problem.to_string()))?;
        Ok(Some(Typed {
            value: Cow::Owned(value),
            schema: Cow::Owned(schema),
            api_version: Cow::Owned(api_version.to_owned()),
        }))
    }
}
