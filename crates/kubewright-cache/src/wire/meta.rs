//! The metadata that is at hand without decoding an object: two small blocks of bytes, one of its own and one that it may
//! share with others.

use std::{borrow::Cow, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, de};

use super::common::Block;

/// An owner as the metadata block has it, borrowed from the cached object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Group and version of the owner, as written in the reference.
    pub api_version: &'a str,
    /// Kind of the owner.
    pub kind: &'a str,
    /// Name of the owner; it lives in the namespace of its dependent, or in none.
    pub name: &'a str,
    /// Identity of the owner: a later object under the same name has another.
    pub uid: &'a str,
    /// Whether this owner is the managing controller. At most one owner is.
    pub controller: bool,
}

/// Identity, version, labels and owners, packed: every text is preceded by its length in two bytes.
///
/// This is what predicates, selectors and most indexes look at, so it must not cost a decode; and there is one
/// per cached object, so it must not cost a map either.
#[derive(Clone)]
pub(crate) struct Meta {
    /// [`DELETING`] and [`GENERATION`] in one byte, the generation in eight if there is one, identity and version.
    own: Box<[u8]>,
    /// How many labels and owners in two bytes each, the labels, the owners.
    common: Block,
}

/// Metadata as it stands in the JSON text, borrowed from it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetaView<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) namespace: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) uid: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) resource_version: Text<'a>,
    #[serde(default)]
    generation: Option<i64>,
    #[serde(default)]
    deletion_timestamp: Option<de::IgnoredAny>,
    #[serde(borrow, default)]
    labels: Option<Pairs<'a>>,
    #[serde(borrow, default)]
    owner_references: Option<Vec<OwnerView<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerView<'a> {
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    uid: Text<'a>,
    #[serde(default)]
    controller: Option<bool>,
}

/// Why an object's metadata cannot be packed.
#[derive(Debug, thiserror::Error)]
#[error("metadata holds a text, or a number of labels or owners, above 65535")]
pub(crate) struct TooLong;

impl Meta {
    /// From the text of an object; `block` keeps what others may have too.
    pub(crate) fn from_view(
        view: &MetaView<'_>,
        block: impl FnOnce(&[u8]) -> Block,
    ) -> Result<Self, TooLong> {
        let labels = view.labels.as_ref().map_or(&[][..], |pairs| &pairs.0);
        let owners = view.owner_references.as_deref().unwrap_or_default();
        let deleting = view.deletion_timestamp.is_some();
        let (uid, resource_version) = (view.uid.0.as_bytes(), view.resource_version.0.as_bytes());
        let own = Builder::own(uid, resource_version, view.generation, deleting)?;
        let mut common = Builder::common(labels.len(), owners.len())?;
        for (key, value) in labels {
            common.text(key.0.as_bytes())?;
            common.text(value.0.as_bytes())?;
        }
        for owner in owners {
            common.owner(
                &owner.api_version.0,
                &owner.kind.0,
                &owner.name.0,
                &owner.uid.0,
                owner.controller,
            )?;
        }
        Ok(Self { own, common: block(&common.0) })
    }

    /// From an object; `block` keeps what others may have too.
    pub(crate) fn from_object(
        meta: &ObjectMeta,
        block: impl FnOnce(&[u8]) -> Block,
    ) -> Result<Self, TooLong> {
        let owners = meta.owner_references.as_deref().unwrap_or_default();
        let own = Builder::own(
            meta.uid.as_deref().unwrap_or_default().as_bytes(),
            meta.resource_version.as_deref().unwrap_or_default().as_bytes(),
            meta.generation,
            meta.deletion_timestamp.is_some(),
        )?;
        let labels = meta.labels.as_ref().map_or(0, std::collections::BTreeMap::len);
        let mut common = Builder::common(labels, owners.len())?;
        for (key, value) in meta.labels.iter().flatten() {
            common.text(key.as_bytes())?;
            common.text(value.as_bytes())?;
        }
        for owner in owners {
            common.owner(&owner.api_version, &owner.kind, &owner.name, &owner.uid, owner.controller)?;
        }
        Ok(Self { own, common: block(&common.0) })
    }

    /// Of an object that has this metadata but for its identity, its version, and those texts of labels and owners that are
    /// `changed`: which one, counted as they stand in the block, and to what.
    pub(crate) fn like(
        &self,
        uid: &[u8],
        resource_version: &[u8],
        changed: &[(usize, &[u8])],
        block: impl FnOnce(&[u8]) -> Block,
    ) -> Result<Self, TooLong> {
        let (deleting, generation, _) = self.own();
        let own = Builder::own(uid, resource_version, generation, deleting)?;
        if changed.is_empty() {
            return Ok(Self { own, common: Block::clone(&self.common) });
        }
        let (labels, owners, texts) = self.common();
        let mut common = Builder::common(labels.into(), owners.into())?;
        for (number, text) in texts.bytes().enumerate() {
            let to = changed.iter().find(|(changed, _)| *changed == number);
            common.text(to.map_or(text, |(_, to)| to))?;
        }
        Ok(Self { own, common: block(&common.0) })
    }

    pub(crate) fn uid(&self) -> &str {
        self.own().2.next().unwrap_or_default()
    }

    pub(crate) fn resource_version(&self) -> &str {
        self.own().2.nth(1).unwrap_or_default()
    }

    pub(crate) fn generation(&self) -> Option<i64> {
        self.own().1
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.own().0
    }

    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let (labels, _, mut texts) = self.common();
        (0..labels).filter_map(move |_| Some((texts.next()?, texts.next()?)))
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner<'_>> {
        let (labels, owners, mut texts) = self.common();
        // There is no last label to stand behind if there are none.
        if let Some(last) = (2 * usize::from(labels)).checked_sub(1) {
            texts.nth(last);
        }
        (0..owners).filter_map(move |_| {
            Some(Owner {
                api_version: texts.next()?,
                kind: texts.next()?,
                name: texts.next()?,
                uid: texts.next()?,
                controller: texts.next()? == CONTROLLER,
            })
        })
    }

    /// Whether it is being deleted, the generation, and then identity and version.
    fn own(&self) -> (bool, Option<i64>, Texts<'_>) {
        let (marks, rest) = self.own.split_first().unwrap_or((&0, &[]));
        let deleting = marks & DELETING != 0;
        match rest.split_first_chunk() {
            Some((generation, rest)) if marks & GENERATION != 0 => {
                (deleting, Some(i64::from_le_bytes(*generation)), Texts(rest))
            }
            _ => (deleting, None, Texts(rest)),
        }
    }

    /// How many labels and owners, and then these.
    fn common(&self) -> (u16, u16, Texts<'_>) {
        let count = |bytes: &[u8; 2]| u16::from_le_bytes(*bytes);
        let Some((labels, rest)) = self.common.split_first_chunk() else { return (0, 0, Texts(&[])) };
        let Some((owners, rest)) = rest.split_first_chunk() else { return (0, 0, Texts(&[])) };
        (count(labels), count(owners), Texts(rest))
    }

    /// Of its own: what it shares counts for nobody.
    pub(crate) fn heap_size(&self) -> usize {
        self.own.len()
    }
}

/// How many texts a label takes in the block, the second being its value.
pub(super) const LABEL_TEXTS: usize = 2;
/// The texts that an owner takes in the block, by their names; whether it is the controller comes behind them.
pub(super) const OWNER_TEXTS: [&str; 4] = ["apiVersion", "kind", "name", "uid"];

const CONTROLLER: &str = "c";

/// The object is being deleted.
const DELETING: u8 = 1;
/// The object has a generation.
const GENERATION: u8 = 2;

struct Builder(Vec<u8>);

impl Builder {
    fn own(
        uid: &[u8],
        resource_version: &[u8],
        generation: Option<i64>,
        deleting: bool,
    ) -> Result<Box<[u8]>, TooLong> {
        let generation = generation.map(i64::to_le_bytes);
        let generation_bytes = generation.as_ref().map_or(&[][..], |bytes| bytes);
        // Just as much as is needed: making it a box then moves nothing.
        let size = 1 + generation_bytes.len() + 2 + uid.len() + 2 + resource_version.len();
        let mut own = Self(Vec::with_capacity(size));
        let marks = if deleting { DELETING } else { 0 } | if generation.is_some() { GENERATION } else { 0 };
        own.0.push(marks);
        own.0.extend_from_slice(generation_bytes);
        own.text(uid)?;
        own.text(resource_version)?;
        Ok(own.0.into_boxed_slice())
    }

    fn common(labels: usize, owners: usize) -> Result<Self, TooLong> {
        let mut common = Self(Vec::with_capacity(256));
        for count in [labels, owners] {
            let count = u16::try_from(count).map_err(|_| TooLong)?;
            common.0.extend_from_slice(&count.to_le_bytes());
        }
        Ok(common)
    }

    fn text(&mut self, text: &[u8]) -> Result<(), TooLong> {
        let length = u16::try_from(text.len()).map_err(|_| TooLong)?;
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(text);
        Ok(())
    }

    fn owner(
        &mut self,
        api_version: &str,
        kind: &str,
        name: &str,
        uid: &str,
        controller: Option<bool>,
    ) -> Result<(), TooLong> {
        let controller = if controller == Some(true) { CONTROLLER } else { "" };
        [api_version, kind, name, uid, controller].into_iter().try_for_each(|text| self.text(text.as_bytes()))
    }
}

struct Texts<'a>(&'a [u8]);

impl<'a> Texts<'a> {
    fn next_bytes(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<2>()?;
        let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        self.0 = rest;
        Some(text)
    }

    /// For those who only copy them.
    fn bytes(mut self) -> impl Iterator<Item = &'a [u8]> {
        std::iter::from_fn(move || self.next_bytes())
    }
}

impl<'a> Iterator for Texts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.next_bytes()?).ok()
    }
}

/// A JSON string, borrowed unless it holds escapes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// A JSON object of strings in the order in which it is written.
#[derive(Debug)]
struct Pairs<'a>(Vec<(Text<'a>, Text<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::with_capacity(8);
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"name":"web","namespace":"shop","uid":"u-1","resourceVersion":"42","generation":3,
        "labels":{"app":"web","q":"a\"b"},"annotations":{"x":"y"},"deletionTimestamp":"2026-01-01T00:00:00Z",
        "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"o-1","controller":true},
        {"apiVersion":"v1","kind":"Node","name":"n","uid":"o-2"}]}"#;

    fn check(meta: &Meta) {
        assert_eq!((meta.uid(), meta.resource_version(), meta.generation()), ("u-1", "42", Some(3)));
        assert!(meta.is_deleting());
        assert_eq!(meta.labels().collect::<Vec<_>>(), [("app", "web"), ("q", "a\"b")]);
        let owners: Vec<_> = meta.owners().map(|owner| (owner.kind, owner.uid, owner.controller)).collect();
        assert_eq!(owners, [("ReplicaSet", "o-1", true), ("Node", "o-2", false)]);
    }

    #[test]
    fn metadata_from_text_and_from_an_object_are_the_same() {
        check(&Meta::from_view(&serde_json::from_str(JSON).unwrap(), |bytes| bytes.into()).unwrap());
        check(&Meta::from_object(&serde_json::from_str(JSON).unwrap(), |bytes| bytes.into()).unwrap());
    }

    #[test]
    fn owners_are_found_without_labels_before_them() {
        let json = r#"{"name":"web","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"o"}]}"#;
        let meta = Meta::from_view(&serde_json::from_str(json).unwrap(), |bytes| bytes.into()).unwrap();
        assert_eq!(meta.owners().map(|owner| owner.name).collect::<Vec<_>>(), ["r"]);
        assert_eq!(meta.labels().count(), 0);
    }

    #[test]
    fn absent_parts_are_empty() {
        let meta =
            Meta::from_view(&serde_json::from_str(r#"{"name":"x","labels":null}"#).unwrap(), |bytes| {
                bytes.into()
            })
            .unwrap();
        assert_eq!((meta.uid(), meta.resource_version(), meta.generation()), ("", "", None));
        assert_eq!((meta.labels().count(), meta.owners().count()), (0, 0));
        assert!(!meta.is_deleting());
    }

    #[test]
    fn an_object_that_is_deleted_needs_no_generation_for_that_and_the_other_way_round() {
        let of = |json| Meta::from_view(&serde_json::from_str(json).unwrap(), |bytes| bytes.into()).unwrap();
        let deleted =
            of(r#"{"name":"x","uid":"u","resourceVersion":"7","deletionTimestamp":"2026-01-01T00:00:00Z"}"#);
        assert_eq!((deleted.is_deleting(), deleted.generation(), deleted.uid()), (true, None, "u"));
        assert_eq!(deleted.resource_version(), "7");
        let changed = of(r#"{"name":"x","uid":"u","resourceVersion":"7","generation":9223372036854775807}"#);
        assert_eq!(
            (changed.is_deleting(), changed.generation(), changed.uid()),
            (false, Some(i64::MAX), "u")
        );
        assert_eq!(changed.resource_version(), "7");
    }

    #[test]
    fn a_label_that_is_no_text_is_refused() {
        assert!(serde_json::from_str::<MetaView<'_>>(r#"{"name":"x","labels":{"a":1}}"#).is_err());
    }

    #[test]
    fn a_text_that_does_not_fit_is_refused() {
        let long = format!(r#"{{"name":"x","labels":{{"a":"{}"}}}}"#, "b".repeat(70_000));
        assert!(Meta::from_view(&serde_json::from_str(&long).unwrap(), |bytes| bytes.into()).is_err());
    }
}
