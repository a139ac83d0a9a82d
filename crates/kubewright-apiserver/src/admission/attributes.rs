//! Attributes of a write, as plugins see them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::{
    registry::{
        actions::{scale_of, with_replicas},
        call::Call,
        descriptor::{Descriptor, Json},
        json::{meta, meta_mut, name, text},
    },
    status::Status,
};

/// The operation of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// An object is created.
    Create,
    /// An object or a subresource is changed.
    Update,
    /// An object is deleted.
    Delete,
    /// A connection to an object: a stream, a proxy.
    Connect,
}

impl Operation {
    /// Returns the operation as rules and reviews write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A write under admission.
#[derive(Debug)]
pub struct Attributes<'a> {
    /// The request.
    pub call: &'a Call<'a>,
    /// The operation of a write.
    pub operation: Operation,
    /// The object to store; empty for a deletion.
    pub object: Json,
    /// The stored object.
    pub old: Option<&'a Json>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    pub(super) rounds: Rounds,
    /// The text of the object's `managedFields`, while they are not in it.
    managers: Option<Arc<str>>,
}

impl<'a> Attributes<'a> {
    /// A write under admission.
    pub(crate) fn new(call: &'a Call<'a>, operation: Operation, object: Json, old: Option<&'a Json>) -> Self {
        let dry_run = call.options.dry_run;
        Self { call, operation, object, old, dry_run, rounds: Rounds::default(), managers: None }
    }

    /// Adds `managedFields` that are only written into the object when a plugin reads them. Of the server's own plugins
    /// those do that pass the object on.
    #[must_use]
    pub(crate) fn with_managers(self, managers: Option<Arc<str>>) -> Self {
        Self { managers, ..self }
    }

    /// Writes `managedFields` into the object that were kept beside it.
    pub(super) fn show_managers(&mut self) {
        if let Some(managers) = self.managers.take() {
            write_managers(&mut self.object, &managers);
        }
    }

    /// Returns the type.
    pub fn ty(&self) -> &Descriptor {
        self.call.ty
    }

    /// Returns whether the write is about objects of a kind themselves, not about a subresource.
    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.call.subresource.is_empty() && self.ty().group == group && self.ty().plural == plural
    }

    /// Returns the namespace of the request; that of a namespace is itself.
    pub fn namespace(&self) -> &str {
        let ty = self.ty();
        if ty.group.is_empty() && ty.plural == "namespaces" { self.call.name } else { self.call.namespace }
    }

    /// Returns the name of the object; empty if it is still to be generated.
    pub fn name(&self) -> &str {
        if self.call.name.is_empty() { name(&self.object) } else { self.call.name }
    }

    /// The object after admission.
    pub(crate) fn into_object(self) -> Json {
        self.object
    }

    /// The object after admission, and the `managedFields` that are still beside it.
    pub(crate) fn into_parts(self) -> (Json, Option<Arc<str>>) {
        (self.object, self.managers)
    }

    /// Returns the 403 of a plugin.
    pub fn forbid(&self, why: &str) -> Status {
        let name = match (self.name(), text(meta(&self.object), "generateName")) {
            ("", "") => "Unknown",
            ("", base) => base,
            (name, _) => name,
        };
        Status::forbidden(self.ty().about(name), why)
    }

    /// The object as an equivalent type shows it; `null` when there is none.
    pub(super) fn object_as(&self, ty: &Descriptor) -> Value {
        if self.object.is_empty() {
            return Value::Null;
        }
        let Some(managers) = &self.managers else { return self.shown(ty, &self.object) };
        let mut object = self.object.clone();
        write_managers(&mut object, managers);
        self.shown(ty, &object)
    }

    /// The old object as an equivalent type shows it; `null` when there is none.
    pub(super) fn old_as(&self, ty: &Descriptor) -> Value {
        self.old.map_or(Value::Null, |old| self.shown(ty, old))
    }

    fn shown(&self, ty: &Descriptor, object: &Json) -> Value {
        if self.call.subresource == "scale" {
            // An object whose definition finds no replicas in it has no Scale to show; the write itself says so.
            return scale_of(self.ty(), object).unwrap_or_default();
        }
        let mut object = object.clone();
        if !same_version(self.ty(), ty) {
            convert(&mut object, self.ty(), ty);
        }
        Value::Object(object)
    }

    /// Takes back what was made of [`Self::object_as`].
    pub(super) fn take_back(&mut self, ty: &Descriptor, shown: Json) {
        if self.call.subresource == "scale" {
            let replicas = shown.get("spec").and_then(|spec| spec.get("replicas")).cloned();
            self.object = with_replicas(self.ty(), &self.object, replicas.unwrap_or(0.into()));
            return;
        }
        let mut object = shown;
        if !same_version(self.ty(), ty) {
            convert(&mut object, ty, &Arc::clone(self.call.ty));
        }
        self.object = object;
    }
}

fn write_managers(object: &mut Json, managers: &str) {
    // The text was written by this server.
    if let Ok(entries) = serde_json::from_str(managers) {
        meta_mut(object).insert("managedFields".into(), entries);
    }
}

fn same_version(a: &Descriptor, b: &Descriptor) -> bool {
    a.group == b.group && a.version == b.version
}

fn convert(object: &mut Json, from: &Descriptor, to: &Descriptor) {
    from.to_stored(object);
    to.convert_from_stored(object);
}

/// State of remote mutating plugins between the first round and the second one.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Whether this is the second round.
    pub(super) again: bool,
    /// Whether a second round is wanted.
    pub(super) wanted: bool,
    /// `managedFields` before the first change, `null` for none.
    pub(super) managers: Option<Value>,
    plugins: BTreeMap<&'static str, Round>,
}

impl Rounds {
    /// Returns the state of a plugin.
    pub(super) fn of(&mut self, plugin: &'static str) -> &mut Round {
        self.plugins.entry(plugin).or_default()
    }
}

/// State of one plugin.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The object as the plugin left it.
    pub(super) left: Option<Json>,
    invoked: BTreeSet<String>,
    again: BTreeSet<String>,
}

impl Round {
    /// Records the call of a webhook that may be reinvoked.
    pub(super) fn invoked(&mut self, hook: String) {
        self.invoked.insert(hook);
    }

    /// Marks the webhooks called so far for reinvocation, because the object has changed since.
    pub(super) fn object_changed(&mut self) {
        self.again.append(&mut self.invoked);
    }

    /// Returns whether a webhook is called in the second round.
    pub(super) fn is_asked_again(&self, hook: &str) -> bool {
        self.again.contains(hook)
    }
}
