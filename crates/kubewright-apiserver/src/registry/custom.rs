//! Custom resources as descriptors: what a definition says, compiled once and shared by the types of its versions.
//!
//! A [`Custom`] is the part of a [`Descriptor`] that built-in types do not have. It knows how stored bytes become an
//! object of its version and back, and checks objects by the definition's schema. When definitions come and go is
//! the module `definitions` beside this one.
//!
//! Pitfall: bytes may be older than the schema. [`Custom::is_current`] says whether they can be sent as they are; all
//! others are pruned, filled in and converted on every read, as upstream does.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    descriptor::{CachedSchema, DefaultPropagation, Descriptor, Generation, Json, Scope, Subresource, Text},
    json::as_value,
    strategy,
    validation::Errors,
};
use crate::{
    apply::{PathElement, scale::ReplicasPaths},
    crd::resource::{CustomResource, ResourceError, Versions, scale::ScalePaths},
    storage::{Draft, Object, StoredVersion},
};

/// In the order in which upstream's discovery has them.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const READ_WRITE: [&str; 3] = ["get", "patch", "update"];

/// A definition that is served.
#[derive(Debug)]
pub struct Definition {
    spec: Value,
    names: Value,
    versions: Versions,
    closed: CancellationToken,
}

impl Definition {
    /// Compiles a definition. One that was validated always compiles.
    pub fn of(crd: &Value) -> Result<Self, ResourceError> {
        Ok(Self {
            spec: crd["spec"].clone(),
            names: crd["status"]["acceptedNames"].clone(),
            versions: Versions::new(crd)?,
            closed: CancellationToken::new(),
        })
    }

    /// Whether it would serve what `crd` says.
    pub fn serves(&self, crd: &Value) -> bool {
        self.spec == crd["spec"] && self.names == crd["status"]["acceptedNames"]
    }

    /// Ends the watches of its types: clients come back and find the types that replace them.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// The types of its served versions.
    pub fn descriptors(self: &Arc<Self>, terminating: bool) -> Vec<Descriptor> {
        let served = |at: &usize| self.spec["versions"][*at]["served"] == true;
        (0..self.versions.all().len()).filter(served).map(|at| self.descriptor(at, terminating)).collect()
    }

    /// The type of the version that objects are stored in, served or not.
    pub fn stored(self: &Arc<Self>) -> Option<Descriptor> {
        let storage = self.versions.storage()?;
        let at = self.versions.all().iter().position(|version| std::ptr::eq(version, storage))?;
        Some(self.descriptor(at, true))
    }

    fn descriptor(self: &Arc<Self>, at: usize, terminating: bool) -> Descriptor {
        let resource = &self.versions.all()[at];
        let name = |key: &str| self.names[key].as_str().unwrap_or_default().to_owned();
        let names = |key: &str| {
            let list = self.names[key].as_array().into_iter().flatten();
            list.filter_map(|name| Some(Text::Owned(name.as_str()?.to_owned()))).collect()
        };
        let group = self.spec["group"].as_str().unwrap_or_default().to_owned();
        let plural = name("plural");
        let read_write = || READ_WRITE.map(Text::Borrowed).to_vec();
        let status = resource.has_status().then(|| Subresource {
            name: "status".into(),
            group: "".into(),
            version: "".into(),
            kind: name("kind").into(),
            verbs: read_write(),
        });
        let scale = resource.scale().map(|_| Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs: read_write(),
        });
        Descriptor {
            version: resource.gvk().version.clone().into(),
            kind: name("kind").into(),
            list_kind: name("listKind").into(),
            singular: name("singular").into(),
            scope: if self.spec["scope"] == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
            short_names: names("shortNames"),
            categories: names("categories"),
            verbs: VERBS.map(Text::Borrowed).to_vec(),
            subresources: status.into_iter().chain(scale).collect(),
            storage: format!("{group}/{plural}").into(),
            group: group.into(),
            plural: plural.into(),
            fields: Vec::new(),
            generation: Generation::ContentAndStatus,
            graceful: false,
            create_on_put: false,
            unconditional_put: false,
            delete_answers_object: false,
            propagation: DefaultPropagation::Background,
            typed_items: true,
            conversion: None,
            strategy: strategy::plain(),
            custom: Some(Custom { definition: Arc::clone(self), at, terminating }),
            builtin_schema: CachedSchema::default(),
        }
    }
}

/// What makes a type a custom one: a version of a definition.
#[derive(Debug, Clone)]
pub struct Custom {
    definition: Arc<Definition>,
    at: usize,
    terminating: bool,
}

impl Custom {
    /// The definition that the type is of.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// The version that the type is of: its schema, columns, scale paths and warning.
    pub fn resource(&self) -> &CustomResource {
        &self.definition.versions.all()[self.at]
    }

    /// All versions, for conversion.
    pub fn versions(&self) -> &Versions {
        &self.definition.versions
    }

    /// Whether the definition is being deleted: nothing new may come.
    pub fn is_terminating(&self) -> bool {
        self.terminating
    }

    /// Whether this is the version that objects are stored in.
    pub fn is_stored(&self) -> bool {
        self.versions().storage().is_some_and(|storage| std::ptr::eq(storage, self.resource()))
    }

    /// Whether objects are converted by a webhook.
    pub fn asks_webhook(&self) -> bool {
        self.definition.spec["conversion"]["strategy"] == "Webhook"
    }

    /// The webhook that converts.
    pub fn webhook(&self) -> &Value {
        &self.definition.spec["conversion"]["webhook"]["clientConfig"]
    }

    /// Returns when the definition has changed or gone.
    pub async fn closed(&self) {
        self.definition.closed.cancelled().await;
    }

    /// Whether stored bytes were written in this version and by its present schema.
    pub fn is_current(&self, object: &Object) -> bool {
        let (version, schema) = (&*self.resource().gvk().version, self.resource().fingerprint());
        object.meta.stored_version.as_ref().is_some_and(|by| &*by.version == version && by.schema == schema)
    }

    /// A stored object as this version shows it.
    pub fn show(&self, object: &Object) -> Json {
        let mut json = object.decode();
        let gvk = self.resource().gvk();
        json.insert("kind".into(), gvk.kind.as_str().into());
        if self.is_current(object) {
            json.insert("apiVersion".into(), gvk.api_version().into());
            return json;
        }
        let written = object.meta.stored_version.as_ref().map(|by| &*by.version);
        let storage = self.versions().storage().map(|storage| &*storage.gvk().version);
        let version = written.or(storage).unwrap_or(&gvk.version);
        json.insert("apiVersion".into(), format!("{}/{version}", gvk.group).into());
        match self.versions().read(Value::Object(json), &gvk.version) {
            Some(Value::Object(json)) => json,
            _ => Json::new(),
        }
    }

    /// An object of this version as it is stored.
    pub fn to_stored(&self, object: &mut Json) {
        as_value(object, |value| *value = self.versions().to_storage(std::mem::take(value)));
    }

    /// An object of the stored version as this one has it.
    pub fn from_stored(&self, object: &mut Json) {
        as_value(object, |value| self.resource().convert(value));
    }

    /// Encodes an object that is already in the stored version.
    pub fn draft(&self, object: &Json) -> Draft {
        let draft = Draft::encode(object, Box::default());
        let Some(storage) = self.versions().storage() else { return draft };
        // What was converted on the way has not seen the defaults of the version it is stored in.
        let schema = if self.is_stored() { storage.fingerprint() } else { 0 };
        draft.with_stored_version(StoredVersion { version: storage.gvk().version.as_str().into(), schema })
    }

    /// Takes away what the schema does not have and fills in its defaults; says what went.
    pub fn settle(&self, object: &mut Json) -> Vec<String> {
        let mut gone = Vec::new();
        as_value(object, |value| {
            gone = self.resource().prune(value);
            self.resource().apply_defaults(value);
            self.resource().canonicalise_metadata(value);
        });
        gone
    }

    /// A write of `/status` changes nothing but the status and its owners.
    pub fn prepare_status(&self, new: &mut Json, old: &Json) {
        let old = Value::Object(old.clone());
        as_value(new, |new| self.resource().prepare_status_update(new, &old));
    }

    /// Checks a new object (without `old`) or a changed one; answers warnings.
    pub fn validate(
        &self,
        new: &mut Json,
        old: Option<&Json>,
        subresource: &str,
        errors: &mut Errors,
    ) -> Vec<String> {
        let resource = self.resource();
        let old = old.map(|old| Value::Object(old.clone()));
        let mut warnings = Vec::new();
        as_value(new, |new| {
            let found = match &old {
                None => resource.validate_create(new),
                Some(old) if subresource == "status" => resource.validate_status_update(new, old),
                Some(old) => resource.validate_update(new, old),
            };
            errors.extend_from_schema(&found.errors);
            warnings = found.warnings;
        });
        warnings
    }

    /// Where each version keeps its replicas.
    pub fn replicas_paths(&self) -> ReplicasPaths {
        let place = |paths: &ScalePaths| {
            let path = paths.spec_replicas.trim_start_matches('.');
            path.split('.').map(PathElement::field).collect()
        };
        let versions = self.versions().all().iter();
        versions.map(|version| (version.gvk().api_version(), version.scale().map(place))).collect()
    }
}
