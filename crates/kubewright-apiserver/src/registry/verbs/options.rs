//! The query options of lists and watches, and their rules.

use std::{borrow::Cow, sync::Arc};

use crate::{
    registry::{
        descriptor::Descriptor,
        selector::{FieldSelector, LabelSelector},
        validation::Errors,
    },
    status::{About, Status},
    storage::Object,
};

/// How a list's version is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// Exactly this one.
    Exact,
    /// This one or a later one.
    NotOlderThan,
}

/// The options of list, watch and deletecollection.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// Which labels.
    pub labels: LabelSelector,
    /// Which fields.
    pub fields: FieldSelector,
    /// A watch rather than a list.
    pub watch: bool,
    /// Send bookmarks.
    pub bookmarks: bool,
    /// The version, as sent.
    pub resource_version: String,
    /// `resourceVersionMatch`.
    pub version_match: Option<Match>,
    /// Seconds after which a watch ends.
    pub timeout: Option<u64>,
    /// Most items of a page; 0 is all.
    pub limit: usize,
    /// The token of the next page.
    pub continues: String,
    /// Begin a watch with what exists.
    pub initial_events: Option<bool>,
}

/// A boolean of a query: anything but nothing, "false" and "0" is true, as upstream reads it.
pub fn flag(value: &str) -> bool {
    !value.eq_ignore_ascii_case("false") && value != "0"
}

/// The error text of a number that is none.
fn not_a_number(function: &str, value: &str) -> String {
    format!("strconv.{function}: parsing {value:?}: invalid syntax")
}

/// A revision out of a version text; empty is 0. The error is upstream's message.
pub fn revision(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse()
        .map_err(|_| format!("resourceVersion: Invalid value: {text:?}: {}", not_a_number("ParseUint", text)))
}

impl ListOptions {
    /// Reads the options out of a query.
    pub fn parse<'a>(query: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, Status> {
        let mut options = Self::default();
        let (mut version_match, mut labels, mut fields) = ("", "", "");
        for (key, value) in query {
            let number =
                || value.parse::<i64>().map_err(|_| Status::bad_request(not_a_number("ParseInt", value)));
            match key {
                "labelSelector" => labels = value,
                "fieldSelector" => fields = value,
                // A value that is neither yes nor no lists: streaming at someone who did not ask hangs them.
                "watch" => options.watch = matches!(value, "1" | "true" | "True" | "TRUE" | "t" | ""),
                "allowWatchBookmarks" => options.bookmarks = flag(value),
                "resourceVersion" => value.clone_into(&mut options.resource_version),
                "resourceVersionMatch" => version_match = value,
                "timeoutSeconds" => options.timeout = u64::try_from(number()?).ok(),
                "limit" => options.limit = usize::try_from(number()?).unwrap_or(0),
                "continue" => value.clone_into(&mut options.continues),
                "sendInitialEvents" => options.initial_events = Some(flag(value)),
                _ => {}
            }
        }
        options.labels = LabelSelector::parse(labels).map_err(Status::bad_request)?;
        options.fields = FieldSelector::parse(fields).map_err(Status::bad_request)?;
        options.check(version_match)?;
        options.version_match = match version_match {
            "Exact" => Some(Match::Exact),
            "NotOlderThan" => Some(Match::NotOlderThan),
            _ => None,
        };
        Ok(options)
    }

    fn check(&self, version_match: &str) -> Result<(), Status> {
        const MATCH: &str = "resourceVersionMatch";
        let mut errors = Errors::default();
        if self.watch {
            if !version_match.is_empty() && self.initial_events.is_none() {
                errors.forbidden(
                    MATCH,
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                );
            }
            if self.initial_events.is_some() && version_match != "NotOlderThan" {
                errors.forbidden(
                    MATCH,
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                );
            }
            if !version_match.is_empty() && version_match != "NotOlderThan" {
                errors.not_supported(MATCH, version_match, &["NotOlderThan"]);
            }
            if !self.continues.is_empty() {
                errors.forbidden("continue", "continue is forbidden for watch");
            }
        } else {
            if !version_match.is_empty() {
                if self.resource_version.is_empty() {
                    errors.forbidden(
                        MATCH,
                        "resourceVersionMatch is forbidden unless resourceVersion is provided",
                    );
                }
                if !self.continues.is_empty() {
                    errors.forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided");
                }
                if !matches!(version_match, "Exact" | "NotOlderThan") {
                    errors.not_supported(MATCH, version_match, &["Exact", "NotOlderThan", ""]);
                }
                if version_match == "Exact" && self.resource_version == "0" {
                    errors.forbidden(
                        MATCH,
                        "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                    );
                }
            }
            if self.initial_events.is_some() {
                errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
            }
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(About { group: "meta.k8s.io", kind: "ListOptions", name: "" }, &errors))
    }

    /// The selection of a type, or 400 when it asks for a field that the type does not offer.
    pub fn selection(&self, ty: &Arc<Descriptor>, name: &str) -> Result<Selection, Status> {
        let mut fields = Vec::new();
        for term in &self.fields.terms {
            let place = match term.field.as_str() {
                "metadata.name" => Place::Name,
                "metadata.namespace" if ty.custom.is_none() || ty.namespaced() => Place::Namespace,
                label if ty.custom.is_some() => {
                    let mut fields =
                        ty.custom.iter().flat_map(|custom| custom.resource().selectable_fields());
                    match fields.position(|field| field == label) {
                        Some(at) => Place::Custom(at),
                        None => return Err(not_selectable(label)),
                    }
                }
                label => match ty.fields.iter().position(|f| f.label == label) {
                    Some(at) => Place::Field(at),
                    None if ty.fields.is_empty() => {
                        return Err(Status::bad_request(format!(
                            "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                        )));
                    }
                    None => return Err(not_selectable(label)),
                },
            };
            fields.push((place, term.value.clone(), term.equal));
        }
        if !name.is_empty() {
            fields.push((Place::Name, name.to_owned(), true));
        }
        let custom = fields.iter().any(|(place, ..)| matches!(place, Place::Custom(_)));
        Ok(Selection { labels: self.labels.clone(), fields, decode: custom.then(|| Arc::clone(ty)) })
    }
}

fn not_selectable(label: &str) -> Status {
    Status::bad_request(format!("field label not supported: {label}"))
}

#[derive(Debug, Clone)]
enum Place {
    Name,
    Namespace,
    Field(usize),
    /// A field of a custom resource, whose definition may have changed since the object was stored.
    Custom(usize),
}

/// Which objects of a type are meant.
#[derive(Debug, Clone)]
pub struct Selection {
    labels: LabelSelector,
    fields: Vec<(Place, String, bool)>,
    /// The type by which objects are decoded for fields that are not kept beside them.
    decode: Option<Arc<Descriptor>>,
}

impl Selection {
    /// Whether everything is.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether one object is.
    pub fn matches(&self, key: &kubewright_core::ObjectKey, object: &Object) -> bool {
        if !self.labels.matches(|label| object.meta.label(label)) {
            return false;
        }
        let custom =
            self.decode.as_ref().and_then(|ty| Some((ty.custom.as_ref()?, ty.decode(object).into())));
        let value = |at: usize| custom.as_ref().map(|(ty, object)| ty.resource().selected(object, at));
        self.fields.iter().all(|(place, wanted, equal)| {
            let found = match place {
                Place::Name => key.name().into(),
                Place::Namespace => key.namespace().unwrap_or_default().into(),
                Place::Field(at) => object.meta.fields.get(*at).map_or("", |f| f).into(),
                Place::Custom(at) => Cow::from(value(*at).unwrap_or_default()),
            };
            (found == wanted.as_str()) == *equal
        })
    }
}
