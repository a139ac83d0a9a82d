//! A request on a resource, as the verbs take it, and the answer.

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
    admission::{Admission, Attributes},
    authn::User,
    registry::validation::Errors,
    status::{About, Status},
    storage::Object,
};

/// Options that all writes have in common.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Whether nothing is stored.
    pub dry_run: bool,
    /// The field manager.
    pub field_manager: String,
    /// The treatment of unknown fields.
    pub field_validation: FieldValidation,
    /// Whether an apply takes over fields of other managers; `None` if unset.
    pub force: Option<bool>,
}

/// A request on a resource, authenticated and authorized.
#[derive(Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The type.
    pub ty: &'a Arc<Descriptor>,
    /// The namespace in the URL; empty when there is none.
    pub namespace: &'a str,
    /// The name in the URL; empty for a collection.
    pub name: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The user who sent the request.
    pub user: &'a User,
    /// The admission that writes have to pass; `None` for writes of the server itself.
    pub(crate) admission: Option<&'a Admission<'a>>,
    /// Options of writes.
    pub options: WriteOptions,
    /// Warnings for the client.
    pub warnings: Mutex<Vec<String>>,
}

impl Call<'_> {
    /// Returns the key of an object in the namespace of the request.
    pub fn key(&self, name: &str) -> kubewright_core::ObjectKey {
        kubewright_core::ObjectKey::new(Some(self.namespace), name)
    }

    /// Passes a write through the mutating admission plugins.
    pub(crate) async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        match self.admission {
            Some(admission) => admission.admit(attributes).await,
            None => Ok(()),
        }
    }

    /// Passes a write through the validating admission plugins.
    pub(crate) async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        match self.admission {
            Some(admission) => admission.validate(attributes).await,
            None => Ok(()),
        }
    }

    /// Returns whether admission has plugins that are not the server's own, and may read any field.
    pub(crate) fn is_seen_by_custom_plugins(&self) -> bool {
        self.admission.is_some_and(Admission::has_custom_plugins)
    }

    /// Adds a warning for the client.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.warnings.lock();
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// Returns the 422 of a new or changed object. That of a custom resource names the kind in the body.
    pub(crate) fn refuse(&self, object: &Json, name: &str, errors: &Errors) -> Status {
        let kind = text(object, "kind");
        let group = text(object, "apiVersion").split_once('/').map_or("", |(group, _)| group);
        if self.ty.custom.is_none() {
            return self.invalid(name, errors);
        }
        Status::invalid(About { group, kind, name }, errors)
    }

    /// Returns the 422 of an object of this type.
    pub(crate) fn invalid(&self, name: &str, errors: &Errors) -> Status {
        Status::invalid(self.ty.about_kind(name), errors)
    }
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer {
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
    pub(crate) fn value(value: impl Into<Value>) -> Self {
        Self::Value { code: 200, value: value.into() }
    }

    /// 201 with an object.
    pub(crate) fn created(value: impl Into<Value>) -> Self {
        Self::Value { code: 201, value: value.into() }
    }

    /// `kind: Status` of a success without an object.
    pub(crate) fn success(code: u16, details: Option<Json>) -> Self {
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
