//! Field manager: computes objects and their managedFields for writes through one endpoint.

use std::{borrow::Cow, sync::LazyLock};

use serde_json::{Value, json};

use super::{
    error::{ApplyError, Conflicts},
    last_applied,
    managed::{self, ManagedFields, ManagerId, Operation, OwnedFields},
    path::equal,
    set::FieldSet,
    typed,
    updater::{Converter, Filter, SingleVersion, Typed, Updater},
};
use crate::{Gvk, TypeRef, canonical};

/// Maximum number of update managers; above it, the oldest are merged.
const MAX_UPDATE_MANAGERS: usize = 10;
/// Manager name under which the oldest updates are merged.
const ANCIENT_CHANGES: &str = "ancient-changes";
/// Manager that owns the fields of an object without managedFields at its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Field tracking for objects of one type, written through one endpoint at one time.
#[derive(Clone, Copy)]
pub struct FieldManager<'a> {
    schema: &'a TypeRef,
    gvk: &'a Gvk,
    now: &'a str,
    subresource: &'a str,
    filter: Filter<'a>,
    converter: &'a dyn Converter,
}

impl<'a> FieldManager<'a> {
    /// Creates a manager for writes of the main resource; `now` is an RFC 3339 time in whole seconds.
    pub fn new(schema: &'a TypeRef, gvk: &'a Gvk, now: &'a str) -> Self {
        Self { schema, gvk, now, subresource: "", filter: Filter::default(), converter: &SingleVersion }
    }

    /// Sets the subresource of the endpoint.
    #[must_use]
    pub fn with_subresource(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// Sets the paths that this endpoint resets to the stored value: `status` on the main resource, `spec` on
    /// `/status`. Writers do not become their owners here.
    #[must_use]
    pub fn with_reset_fields(self, reset: &'a FieldSet) -> Self {
        Self { filter: Filter { reset: Some(reset), ..self.filter }, ..self }
    }

    /// Restricts the paths that can be written through this endpoint, such as `["spec",
    /// "ephemeralContainers"]`; `*` matches any item or key.
    #[must_use]
    pub fn with_allowed_paths(self, paths: &'a [&'a [&'a str]]) -> Self {
        Self { filter: Filter { only: Some(paths), ..self.filter }, ..self }
    }

    /// Sets the converter to the versions of other managers.
    #[must_use]
    pub fn with_converter(self, converter: &'a dyn Converter) -> Self {
        Self { converter, ..self }
    }

    /// Returns the new object with its managedFields, after a create (`live` is `None`), an update or a
    /// patch.
    ///
    /// A writer may edit managedFields: a valid list is taken over, an empty one resets ownership, after
    /// which nothing is tracked until the next apply; an invalid one is ignored. If ownership cannot be
    /// computed, the old managedFields stay.
    pub fn update(&self, live: Option<&Value>, mut new: Value, manager: &str) -> Value {
        if live.is_none()
            && let Some(entries) = self.managed_fields_for_create(&new, manager)
            // `managed_fields_for_create` has just encoded it as JSON.
            && let Ok(entries) = serde_json::from_str(&entries)
        {
            managed::set_entries(&mut new, entries);
            return new;
        }
        self.compare_and_record(live, new, manager)
    }

    /// Returns the JSON text of the `managedFields` of a created object that has none yet: what
    /// [`Self::update`] writes to the object. `None` if that requires a comparison, or if there is nothing to
    /// own.
    pub fn managed_fields_for_create(&self, new: &Value, manager: &str) -> Option<String> {
        if self.filter.only.is_some() || !managed::entries_of(new).is_null() {
            return None;
        }
        let empty = canonical::empty_object(self.schema);
        let excluded = typed::Excluded { reset: self.filter.reset, stripped: Some(&STRIPPED) };
        let fields = typed::created(self.schema, &empty, new, excluded).ok()?;
        if fields == "{}" {
            return None;
        }
        let manager = if manager.is_empty() { "unknown" } else { manager };
        let id = ManagerId::new(manager, Operation::Update, &self.gvk.api_version(), self.subresource);
        Some(managed::only_entry(&id, self.now, &fields))
    }

    fn compare_and_record(&self, live: Option<&Value>, mut new: Value, manager: &str) -> Value {
        let old_entries = live.map_or(&Value::Null, managed::entries_of);
        let mut managed = self.managed_for_update(old_entries, managed::entries_of(&new));
        managed::clear(&mut new);
        // An untracked object stays untracked until it is applied.
        if managed.0.is_empty() && live.is_some() {
            return new;
        }
        let live = self.live_or_empty(live);
        match self.record(&live, &new, &mut managed, manager) {
            Ok(()) => managed.write_to(&mut new),
            Err(_) => ManagedFields::decode(old_entries).unwrap_or_default().write_to(&mut new),
        }
        new
    }

    /// Returns the live object with a configuration merged into it; `live` is `None` if the object does not
    /// exist.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, ApplyError> {
        let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
        let gvk = Gvk::from_api_version(text("apiVersion"), text("kind"));
        if gvk != *self.gvk {
            return Err(ApplyError::BadRequest(format!("invalid object type: {gvk}")));
        }
        let mut managed = live.map(ManagedFields::from_object).transpose()?.unwrap_or_default();
        let exists = live.is_some();
        let mut live = live.cloned().unwrap_or_else(|| self.type_meta());
        managed::clear(&mut live);
        if managed.0.is_empty() && exists {
            let nothing = self.live_or_empty(None);
            self.record(&nothing, &live, &mut managed, BEFORE_FIRST_APPLY).map_err(|error| {
                ApplyError::Internal(format!("failed to create manager for existing fields: {error}"))
            })?;
        }
        let (mut object, managed) = self.apply_or_adopt(&live, config, managed, manager, force)?;
        if manager == last_applied::KUBECTL {
            last_applied::refresh(&mut object, config);
        }
        managed.write_to(&mut object);
        Ok(object)
    }

    /// Applies; for `kubectl`, fields of an earlier client-side `kubectl apply` do not conflict.
    fn apply_or_adopt(
        &self,
        live: &Value,
        config: &Value,
        managed: ManagedFields,
        manager: &str,
        force: bool,
    ) -> Result<(Value, ManagedFields), ApplyError> {
        let refused = match self.merge(live, config, managed.clone(), manager, force) {
            Err(ApplyError::Conflict(refused)) if manager == last_applied::KUBECTL => refused,
            other => return other,
        };
        let Some(adopted) = last_applied::unchanged_fields(self.schema, &self.gvk.api_version(), live) else {
            return Err(ApplyError::Conflict(refused));
        };
        let left: Vec<_> = refused.0.into_iter().filter(|conflict| !adopted.has(&conflict.path)).collect();
        if !left.is_empty() {
            return Err(ApplyError::Conflict(Conflicts(left)));
        }
        self.merge(live, config, managed, manager, true)
    }

    fn merge(
        &self,
        live: &Value,
        config: &Value,
        mut managed: ManagedFields,
        manager: &str,
        force: bool,
    ) -> Result<(Value, ManagedFields), ApplyError> {
        if !managed::entries_of(config).is_null() {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        typed::validate(self.schema, config, false).map_err(|p| {
            ApplyError::Internal(format!("failed to create typed patch object ({}): {p}", self.name(config)))
        })?;
        typed::validate(self.schema, live, true).map_err(|p| {
            ApplyError::Internal(format!("failed to create typed live object ({}): {p}", self.name(live)))
        })?;
        let id = ManagerId::new(manager, Operation::Apply, "", self.subresource);
        let merged = self.updater(|updater| {
            updater.apply(&self.typed(live), &self.typed(config), &mut managed, &id, force)
        })?;
        strip_metadata(&mut managed, &id);
        let changed = merged.is_some();
        if let (true, Some(owned)) = (changed, managed.0.get_mut(&id)) {
            owned.time = Some(self.now.to_owned());
        }
        Ok((merged.unwrap_or_else(|| live.clone()), managed))
    }

    /// Makes `manager` the owner of the changes from `live` to `new`.
    fn record(
        &self,
        live: &Value,
        new: &Value,
        managed: &mut ManagedFields,
        manager: &str,
    ) -> Result<(), ApplyError> {
        typed::validate(self.schema, new, true).map_err(|p| {
            ApplyError::Internal(format!(
                "failed to convert new object ({}) to smd typed: {p}",
                self.name(new)
            ))
        })?;
        // A temporary identity first, so that only a real change touches the manager's entry and its time.
        let current = ManagerId::new("", Operation::Update, "current-operation", "");
        self.updater(|updater| updater.update(&self.typed(live), &self.typed(new), managed, &current))?;
        strip_metadata(managed, &current);
        if let Some(mut owned) = managed.0.remove(&current) {
            let manager = if manager.is_empty() { "unknown" } else { manager };
            let id = ManagerId::new(manager, Operation::Update, &self.gvk.api_version(), self.subresource);
            if let Some(previous) = managed.0.remove(&id) {
                owned.set = owned.set.into_union(previous.set);
            }
            owned.time = Some(self.now.to_owned());
            managed.0.insert(id, owned);
        }
        merge_oldest_updates(managed);
        Ok(())
    }

    /// Returns the managers to start from: those of the request if valid, else those of the live object.
    fn managed_for_update(&self, live: &Value, new: &Value) -> ManagedFields {
        if self.subresource.is_empty() {
            if managed::is_reset(new) {
                return ManagedFields::default();
            }
            if let Ok(managed) = ManagedFields::decode(new)
                && !managed.0.is_empty()
            {
                return managed;
            }
        }
        ManagedFields::decode(live).unwrap_or_default()
    }

    /// Returns the object to compare a write with. Live managedFields may stay in it: they are stripped from
    /// ownership, so their absence from the new object has no effect.
    fn live_or_empty<'v>(&self, live: Option<&'v Value>) -> Cow<'v, Value> {
        live.map_or_else(|| Cow::Owned(canonical::empty_object(self.schema)), Cow::Borrowed)
    }

    fn type_meta(&self) -> Value {
        json!({"apiVersion": self.gvk.api_version(), "kind": self.gvk.kind})
    }

    fn typed<'v>(&'v self, value: &'v Value) -> Typed<'v> {
        Typed {
            value: Cow::Borrowed(value),
            schema: Cow::Borrowed(self.schema),
            api_version: Cow::Owned(self.gvk.api_version()),
        }
    }

    fn updater<T>(&self, f: impl FnOnce(&Updater<'_>) -> T) -> T {
        f(&Updater { converter: self.converter, filter: self.filter })
    }

    fn name(&self, object: &Value) -> String {
        let text = |name: &str| object.get("metadata").and_then(|m| m.get(name)).and_then(Value::as_str);
        format!(
            "{}/{}; {}",
            text("namespace").unwrap_or_default(),
            text("name").unwrap_or_default(),
            self.gvk
        )
    }
}

/// Fields without owners: the object's identity and what the server itself writes.
static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    let paths: [&[&str]; 12] = [
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ];
    FieldSet::from_field_names(paths)
});

fn strip_metadata(managed: &mut ManagedFields, id: &ManagerId) {
    let Some(owned) = managed.0.get_mut(id) else { return };
    owned.set = std::mem::take(&mut owned.set).into_difference(&STRIPPED);
    if owned.set.is_empty() {
        managed.0.remove(id);
    }
}

/// Bounds the number of update managers: the oldest of a version are merged under one name.
fn merge_oldest_updates(managed: &mut ManagedFields) {
    let mut updaters: Vec<_> = managed
        .0
        .iter()
        .filter(|(id, _)| id.operation == Operation::Update)
        .map(|(id, _)| id.clone())
        .collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATE_MANAGERS {
        return;
    }
    let time = |managed: &ManagedFields, id: &ManagerId| {
        managed.0.get(id).and_then(|owned| owned.time.as_deref()).map_or(0, managed::epoch_seconds)
    };
    updaters.sort_by_cached_key(|id| (time(managed, id), id.clone()));
    let mut first_of_version: Vec<(String, ManagerId)> = Vec::new();
    for id in updaters {
        if count <= MAX_UPDATE_MANAGERS {
            break;
        }
        let Some(version) = managed.0.get(&id).map(|owned| owned.api_version.clone()) else { continue };
        let Some((_, first)) = first_of_version.iter().find(|(v, _)| *v == version) else {
            first_of_version.push((version, id));
            continue;
        };
        let bucket = ManagerId::new(ANCIENT_CHANGES, Operation::Update, &version, "");
        if !managed.0.contains_key(&bucket)
            && let Some(owned) = managed.0.remove(first)
        {
            managed.0.insert(bucket.clone(), owned);
        }
        let Some(merged) = managed.0.remove(&id) else { continue };
        let set = match managed.0.remove(&bucket) {
            Some(owned) => owned.set.into_union(merged.set),
            None => merged.set,
        };
        managed.0.insert(bucket, OwnedFields { set, api_version: version, time: merged.time });
        count -= 1;
    }
}

/// Turns a write into a no-op if its only effect would be new times in managedFields: restores the old
/// entries if they are otherwise equal. Call it on the final object before comparing it with the stored one.
pub fn keep_times_if_unchanged(old: &Value, new: &mut Value) {
    let without_times = |object: &Value| -> Vec<Value> {
        let mut entries = managed::entries_of(object).as_array().cloned().unwrap_or_default();
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries
    };
    let same = |a: &Value, b: &Value| {
        a.as_object().zip(b.as_object()).is_some_and(|(a, b)| {
            a.len() == b.len()
                && a.iter().all(|(key, value)| match (key.as_str(), b.get(key)) {
                    (_, None) => false,
                    ("metadata", Some(other)) => {
                        let bare = |m: &Value| {
                            let mut m = m.clone();
                            if let Some(m) = m.as_object_mut() {
                                m.remove("managedFields");
                                m.remove("resourceVersion");
                            }
                            m
                        };
                        equal(&bare(value), &bare(other))
                    }
                    (_, Some(other)) => equal(value, other),
                })
        })
    };
    let mut before = without_times(old);
    let mut after = without_times(new);
    let order = |entry: &Value| entry.to_string();
    before.sort_by_cached_key(order);
    after.sort_by_cached_key(order);
    if before == after && same(old, new) {
        let entries = managed::entries_of(old).clone();
        if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut)
            && !entries.is_null()
        {
            metadata.insert("managedFields".to_owned(), entries);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schemas;

    /// Returns whether `managed_fields_for_create` succeeded, after checking it against the result of the
    /// comparison.
    fn agrees_with_comparison(gvk: &Gvk, mut object: Value) -> bool {
        let schema = Schemas::builtin().lookup(gvk).unwrap();
        canonical::canonicalise(&schema, &mut object);
        object["kind"] = gvk.kind.as_str().into();
        object["apiVersion"] = gvk.api_version().into();
        let reset = FieldSet::from_field_names([&["status"][..]]);
        let fields = FieldManager::new(&schema, gvk, "2026-08-01T00:00:00Z").with_reset_fields(&reset);
        let compared = fields.compare_and_record(None, object.clone(), "m");
        assert_eq!(fields.update(None, object.clone(), "m"), compared);
        let text = fields.managed_fields_for_create(&object, "m");
        // Byte for byte: the text is stored without being parsed.
        let entries = managed::entries_of(&compared).to_string();
        assert!(text.as_ref().is_none_or(|text| *text == entries));
        text.is_some()
    }

    #[test]
    fn create_without_comparison_finds_the_same_fields() {
        let pod = Gvk::new("", "v1", "Pod");
        assert!(!agrees_with_comparison(&pod, json!({})), "nobody owns anything");
        assert!(agrees_with_comparison(
            &pod,
            json!({
                "metadata": {
                    "name": "a", "namespace": "b", "labels": {"x": "y"}, "annotations": {}, "finalizers": ["f/1", "f/2"],
                    "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}],
                },
                "spec": {
                    "nodeSelector": {"a": "b"}, "hostNetwork": true,
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                    "containers": [
                        {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}, "env": [{"name": "<E>"}],
                         "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                         "volumeMounts": [{"mountPath": "/a", "name": "v"}], "args": ["a"]},
                        {"name": "d"},
                    ],
                    "volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}],
                },
                "status": {"phase": "Running"},
            })
        ));
        let odd = json!({"labels": {"a\"b": "", "\\": "", "\n\u{1}": "", "<ü\u{2028}>": ""}, "finalizers": ["z", "<", "\"", "a\n"]});
        assert!(agrees_with_comparison(&pod, json!({"metadata": odd})));
        let service = Gvk::new("", "v1", "Service");
        assert!(agrees_with_comparison(
            &service,
            json!({"spec": {"selector": {"a": "b"}, "ports": [{"port": 1}]}})
        ));
        let map = Gvk::new("", "v1", "ConfigMap");
        assert!(agrees_with_comparison(&map, json!({"data": {"k": "v"}, "binaryData": {}})));
        let hook = Gvk::new("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
        assert!(agrees_with_comparison(
            &hook,
            json!({"webhooks": [{"name": "w", "rules": [{"operations": ["*"]}]}]})
        ));
        let revision = Gvk::new("apps", "v1", "ControllerRevision");
        assert!(agrees_with_comparison(&revision, json!({"revision": 1, "data": {"a": [1, {"b": null}]}})));
    }

    #[test]
    fn unusual_objects_need_the_comparison() {
        let pod = Gvk::new("", "v1", "Pod");
        let twice = json!([{"name": "c"}, {"name": "c", "image": "i"}]);
        assert!(!agrees_with_comparison(&pod, json!({"spec": {"containers": twice}})));
        assert!(!agrees_with_comparison(&pod, json!({"spec": {"nodeName": 3}})));
    }
}
