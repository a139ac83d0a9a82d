//! One request, after routing and authentication, and its answer.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::{
    descriptor::{Descriptor, Json},
    json::text,
    semantics::FieldValidation,
    verbs::{list::ListAnswer, watch::WatchAnswer},
};
use crate::{
    authn::User,
    registry::validation::Errors,
    status::{About, Status},
    storage::Object,
};

/// Options that writes have in common.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Do everything but store.
    pub dry_run: bool,
    /// The name for `managedFields`.
    pub field_manager: String,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
    /// Take over fields on apply; `None` when not said.
    pub force: Option<bool>,
}

/// One request on a resource.
#[derive(Debug)]
pub struct Call<'a> {
    /// The type it is about.
    pub ty: &'a Arc<Descriptor>,
    /// The namespace in the URL; empty when there is none.
    pub namespace: &'a str,
    /// The name in the URL; empty for a collection.
    pub name: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Who asks.
    pub user: &'a User,
    /// Options of writes.
    pub options: WriteOptions,
    /// Warnings for the client, collected on the way.
    pub warnings: Mutex<Vec<String>>,
}

impl Call<'_> {
    /// The key of an object in this call's namespace.
    pub fn key(&self, name: &str) -> kubewright_core::ObjectKey {
        kubewright_core::ObjectKey::new(Some(self.namespace), name)
    }

    /// Tells the client something that is no refusal.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.warnings.lock();
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// The refusal of a new or changed object. A custom resource that says to be something else is spoken of as that.
    pub fn refuse(&self, object: &Json, name: &str, errors: &Errors) -> Status {
        let kind = text(object, "kind");
        let group = text(object, "apiVersion").split_once('/').map_or("", |(group, _)| group);
        if self.ty.custom.is_none() {
            return self.invalid(name, errors);
        }
        Status::invalid(About { group, kind, name }, errors)
    }

    /// The refusal of an object of this type.
    pub fn invalid(&self, name: &str, errors: &Errors) -> Status {
        Status::invalid(self.ty.about_kind(name), errors)
    }
}

/// What a request is answered with.
#[derive(Debug)]
pub enum Answer {
    /// A stored object, whose bytes can be sent as they are.
    Stored {
        /// 200 or 201.
        code: u16,
        /// The version to show it in.
        ty: Arc<Descriptor>,
        /// The object.
        object: Arc<Object>,
    },
    /// Any other object, with its `kind` and `apiVersion`.
    Value {
        /// 200 or 201.
        code: u16,
        /// The object.
        value: Value,
    },
    /// A list.
    List(ListAnswer),
    /// A stream of changes.
    Watch(WatchAnswer),
}

impl Answer {
    /// 200 with an object.
    pub fn value(value: impl Into<Value>) -> Self {
        Self::Value { code: 200, value: value.into() }
    }

    /// 201 with an object.
    pub fn created(value: impl Into<Value>) -> Self {
        Self::Value { code: 201, value: value.into() }
    }

    /// `kind: Status` of something that succeeded without an object to show.
    pub fn success(code: u16, details: Option<Json>) -> Self {
        let mut value =
            serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
        if let Some(details) = details {
            value["details"] = Value::Object(details);
        } else {
            value["code"] = code.into();
        }
        Self::Value { code, value }
    }
}
