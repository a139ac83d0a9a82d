//! From the text of one object to a cached object.

use std::{
    borrow::Cow,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use kube::Resource;
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    alike::Alike,
    common::Common,
    hot::HotSet,
    meta::{Meta, MetaView},
    pack::{Packer, SMALL},
    pattern::{Kept, Pattern, Unread},
    scan::Spans,
};
use crate::{
    fault::{Fault, Faults},
    object::{Body, DecodeError, Entry, Lazy, Shared, decode_text},
};
use kubewright_core::ObjectKey;

/// How a cache keeps its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Packed, and decoded when read: about a twentieth of the memory of decoded objects.
    Packed {
        /// How many decoded objects are kept at hand.
        hot: usize,
    },
    /// Decoded as they arrive: reads cost nothing, memory is that of the Rust types.
    Decoded,
}

impl Default for Form {
    fn default() -> Self {
        Self::Packed { hot: 128 }
    }
}

/// Decodes, changes and encodes again; the metadata is that of the changed object.
type Transform = Arc<dyn Fn(&[u8], &Common) -> Result<(Vec<u8>, Meta), Reason> + Send + Sync>;

/// Where an object cannot be decoded, and why.
type Reason = (String, String);

/// How the objects of one cache are read, changed and kept.
pub(crate) struct Codec<K> {
    expected_api_version: String,
    expected_kind: String,
    form: Form,
    keep_managed_fields: bool,
    transform: Option<Transform>,
    packer: Packer,
    common: Common,
    alike: Mutex<Alike>,
    shared: Arc<Shared<K>>,
    entries: AtomicU64,
}

/// An object that no cache can hold.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) key: Option<ObjectKey>,
    pub(crate) resource_version: Option<String>,
    pub(crate) reason: String,
}

/// What a codec is made from.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) form: Form,
    pub(crate) keep_managed_fields: bool,
    pub(crate) faults: Faults,
    transform: Option<Transform>,
}

impl Settings {
    pub(crate) fn transform<K>(&mut self, change: impl Fn(&mut K) + Send + Sync + 'static)
    where
        K: Resource + DeserializeOwned + Serialize + 'static,
    {
        self.transform = Some(Arc::new(move |text: &[u8], common: &Common| {
            let failed = |reason: String| (".".to_owned(), reason);
            let mut object: K = decode_text(text)?;
            change(&mut object);
            let meta = Meta::from_object(object.meta(), |bytes| common.block(bytes))
                .map_err(|error| failed(error.to_string()))?;
            Ok((serde_json::to_vec(&object).map_err(|error| failed(error.to_string()))?, meta))
        }));
    }
}

impl<K> Codec<K> {
    pub(crate) fn new(api_version: String, kind: String, settings: Settings) -> Self {
        let hot = match settings.form {
            Form::Packed { hot } => hot,
            Form::Decoded => 0,
        };
        Self {
            shared: Arc::new(Shared { kind: kind.clone(), hot: HotSet::new(hot), faults: settings.faults }),
            expected_api_version: api_version,
            expected_kind: kind,
            form: settings.form,
            keep_managed_fields: settings.keep_managed_fields,
            transform: settings.transform,
            packer: Packer::new(),
            common: Common::new(),
            alike: Mutex::default(),
            entries: AtomicU64::new(0),
        }
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// What objects are compared with, for as long as somebody reads some.
    pub(crate) fn take_alike(&self) -> Alike {
        std::mem::take(&mut *self.alike.lock())
    }

    pub(crate) fn give_back(&self, alike: Alike) {
        *self.alike.lock() = alike;
    }
}

impl<K: Resource + DeserializeOwned> Codec<K> {
    /// Makes a cached object of this text, or returns the one that `known` has of the same version.
    ///
    /// `scratch` is reused from object to object.
    pub(crate) fn admit(
        &self,
        text: &[u8],
        spans: &Spans,
        scratch: &mut Vec<u8>,
        known: &dyn Fn(&ObjectKey) -> Option<Lazy<K>>,
    ) -> Result<Lazy<K>, Unusable> {
        let unusable = |reason: String| Unusable { key: None, resource_version: None, reason };
        let Some(metadata) = spans.metadata.clone() else {
            return Err(unusable("it has no metadata".to_owned()));
        };
        let cut = spans.cut().filter(|_| !self.keep_managed_fields);
        scratch.clear();
        self.type_header(spans, scratch);
        // The text's own opening brace is replaced by the header, which ends where the members begin.
        let shift = scratch.len();
        match &cut {
            Some(cut) => {
                scratch.extend_from_slice(&text[1..cut.start]);
                scratch.extend_from_slice(&text[cut.end..]);
            }
            None => scratch.extend_from_slice(&text[1..]),
        }
        let start = shift + metadata.start - 1;
        let end = shift + metadata.end - 1 - cut.as_ref().map_or(0, Range::len);
        let view = std::str::from_utf8(&scratch[start..end])
            .map_err(|error| error.to_string())
            .and_then(|text| serde_json::from_str::<MetaView<'_>>(text).map_err(|error| error.to_string()))
            .map_err(|reason| unusable(format!("its metadata is malformed: {reason}")))?;
        if view.name.0.is_empty() {
            return Err(unusable("it has no name".to_owned()));
        }
        let key = ObjectKey::new(view.namespace.as_ref().map(|namespace| &*namespace.0), &view.name.0);
        self.check_type(text, spans).map_err(|reason| Unusable {
            key: Some(key.clone()),
            resource_version: Some(view.resource_version.0.clone().into_owned()),
            reason,
        })?;
        if let Some(held) = known(&key)
            && held.is_version(view.uid.0.as_bytes(), view.resource_version.0.as_bytes())
        {
            return Ok(held);
        }
        let meta = Meta::from_view(&view, |bytes| self.common.block(bytes)).map_err(|error| Unusable {
            key: Some(key.clone()),
            resource_version: Some(view.resource_version.0.clone().into_owned()),
            reason: error.to_string(),
        })?;
        Ok(self.store(key, meta, scratch))
    }

    /// Makes a cached object of the beginning of this text if it is like an earlier one, as [`admit`](Self::admit) would. Says
    /// where it ends.
    pub(crate) fn admit_alike(
        &self,
        text: &[u8],
        alike: &mut Alike,
        known: &dyn Fn(&ObjectKey) -> Option<Lazy<K>>,
    ) -> Result<(usize, Lazy<K>), Unread> {
        let pattern = alike.pattern.as_ref().ok_or(Unread::Unlike)?;
        let fitting = pattern.read(text, &mut alike.script)?;
        let key = ObjectKey::of_parts(fitting.namespace, fitting.name, &mut alike.key);
        let key = key.ok_or(Unread::Unlike)?;
        let object = match known(&key) {
            Some(held) if held.is_version(fitting.uid, fitting.resource_version) => held,
            _ => {
                let meta = fitting.meta(|bytes| self.common.block(bytes)).map_err(|_| Unread::Unlike)?;
                self.entry(key, meta, Body::Packed(fitting.packed(&alike.script)), false)
            }
        };
        let end = fitting.end;
        drop(fitting);
        alike.hit();
        Ok((end, object))
    }

    /// An object that was admitted and is like none before, its text being in `scratch` as it is kept: those that come may be
    /// like it.
    pub(crate) fn learn(&self, text: &[u8], spans: &Spans, scratch: &[u8], alike: &mut Alike) {
        if self.form == Form::Decoded || self.transform.is_some() || scratch.len() > SMALL || !alike.miss() {
            return;
        }
        let cut = spans.cut().filter(|_| !self.keep_managed_fields);
        let (Some(metadata), Some(header)) = (
            spans.metadata.clone(),
            (scratch.len() + cut.as_ref().map_or(0, Range::len) + 1).checked_sub(text.len()),
        ) else {
            return;
        };
        let kept = Kept { text: self.packer.model(scratch), size: scratch.len(), header, cut };
        if let Some(pattern) = Pattern::of(text, metadata, kept, |bytes| self.common.block(bytes)) {
            alike.adopt(pattern);
        }
    }

    fn store(&self, key: ObjectKey, mut meta: Meta, text: &[u8]) -> Lazy<K> {
        let mut fault = None;
        let mut text = Cow::Borrowed(text);
        match self.transform.as_ref().map(|transform| transform(&text, &self.common)) {
            Some(Ok((changed, changed_meta))) => {
                text = Cow::Owned(changed);
                meta = changed_meta;
            }
            Some(Err(reason)) => fault = Some(reason),
            None => {}
        }
        let decoded = match self.form {
            Form::Decoded => decode_text::<K>(&text).map_err(|reason| fault = Some(reason)).ok(),
            Form::Packed { .. } => None,
        };
        // What cannot be decoded is kept packed: it is known, it can be deleted, and reading it says what is wrong.
        let body = decoded
            .map_or_else(|| Body::Packed(self.packer.pack(&text)), |object| Body::Decoded(Arc::new(object)));
        let reported = fault.is_some();
        if let Some((path, reason)) = fault {
            let error = DecodeError { kind: self.expected_kind.clone(), key: key.clone(), path, reason };
            self.faults().report(&Fault::Undecodable(error));
        }
        self.entry(key, meta, body, reported)
    }

    fn entry(&self, key: ObjectKey, meta: Meta, body: Body<K>, reported: bool) -> Lazy<K> {
        Lazy::from_entry(Entry {
            key,
            meta,
            body,
            number: self.entries.fetch_add(1, Ordering::Relaxed),
            shared: Some(Arc::clone(&self.shared)),
            reported: AtomicBool::new(reported),
        })
    }

    /// Items of a list carry no apiVersion and kind of their own; objects by themselves do, and readers expect them.
    fn type_header(&self, spans: &Spans, out: &mut Vec<u8>) {
        out.push(b'{');
        for (name, value, present) in [
            ("apiVersion", &self.expected_api_version, spans.api_version.is_some()),
            ("kind", &self.expected_kind, spans.kind.is_some()),
        ] {
            if !present {
                out.extend_from_slice(b"\"");
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b"\":\"");
                out.extend_from_slice(value.as_bytes());
                out.extend_from_slice(b"\",");
            }
        }
    }

    fn check_type(&self, text: &[u8], spans: &Spans) -> Result<(), String> {
        for (name, span, expected) in [
            ("apiVersion", &spans.api_version, &self.expected_api_version),
            ("kind", &spans.kind, &self.expected_kind),
        ] {
            if let Some(span) = span
                && &text[span.clone()] != expected.as_bytes()
            {
                let found = String::from_utf8_lossy(&text[span.clone()]);
                return Err(format!("its {name} is {found:?} where {expected:?} was asked for"));
            }
        }
        Ok(())
    }
}
