//! Codec: from the text of an object to a cached object.

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
    alike::BaseTracker,
    common::Common,
    hot::HotSet,
    meta::{Meta, MetaView},
    pack::{Packer, SMALL},
    pattern::{ItemBase, Mismatch, Stored},
    scan::Spans,
};
use crate::{
    fault::{Fault, Faults},
    object::{Body, Decode, DecodeError, Entry, Lazy, Reason, Shared, Untyped, decode_any, decode_text},
};
use kubewright_core::ObjectKey;

/// Stored form of the objects of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Packed, and decoded when read: about a twentieth of the memory of decoded objects.
    Packed {
        /// Number of decoded objects that are kept for the next read.
        hot: usize,
    },
    /// Decoded as they arrive: reads are free, memory is that of the Rust types.
    Decoded,
}

impl Default for Form {
    fn default() -> Self {
        Self::Packed { hot: 128 }
    }
}

/// Decodes, changes and encodes again; the metadata is that of the changed object.
type Transform = Arc<dyn Fn(&[u8], &Common) -> Result<(Vec<u8>, Meta), Reason> + Send + Sync>;

/// How the objects of one cache are read, changed and kept.
pub(crate) struct Codec {
    expected_api_version: String,
    expected_kind: String,
    form: Form,
    /// Decodes objects as they arrive, if the form says so.
    decode: Option<Decode>,
    keep_managed_fields: bool,
    transform: Option<Transform>,
    packer: Packer,
    common: Common,
    tracker: Mutex<BaseTracker>,
    shared: Arc<Shared>,
    entries: AtomicU64,
}

/// Object that a cache cannot hold.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) key: Option<ObjectKey>,
    pub(crate) resource_version: Option<String>,
    pub(crate) reason: String,
}

/// Options of a codec.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    form: Form,
    decode: Option<Decode>,
    pub(crate) keep_managed_fields: bool,
    pub(crate) faults: Faults,
    transform: Option<Transform>,
}

impl Settings {
    pub(crate) fn form<K: DeserializeOwned + Send + Sync + 'static>(&mut self, form: Form) {
        self.form = form;
        self.decode = (form == Form::Decoded).then_some(decode_any::<K>);
    }

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

impl Codec {
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
            decode: settings.decode,
            keep_managed_fields: settings.keep_managed_fields,
            transform: settings.transform,
            packer: Packer::new(),
            common: Common::new(),
            tracker: Mutex::default(),
            entries: AtomicU64::new(0),
        }
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Takes the base of list items, for the time of reading a frame.
    pub(crate) fn take_tracker(&self) -> BaseTracker {
        std::mem::take(&mut *self.tracker.lock())
    }

    pub(crate) fn put_tracker(&self, tracker: BaseTracker) {
        *self.tracker.lock() = tracker;
    }
}

impl Codec {
    /// Creates a cached object from this text, or returns the one of the same version that `known` has.
    ///
    /// `scratch` is reused from object to object.
    pub(crate) fn admit(
        &self,
        text: &[u8],
        spans: &Spans,
        scratch: &mut Vec<u8>,
        known: &dyn Fn(&ObjectKey) -> Option<Lazy<Untyped>>,
    ) -> Result<Lazy<Untyped>, Unusable> {
        let unusable = |reason: String| Unusable { key: None, resource_version: None, reason };
        let Some(metadata) = spans.metadata.clone() else {
            return Err(unusable("it has no metadata".to_owned()));
        };
        let cut = spans.cut().filter(|_| !self.keep_managed_fields);
        scratch.clear();
        self.type_header(spans, scratch);
        // The header replaces the opening brace of the text.
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

    /// Creates a cached object from the item that this text begins with if it matches the base, as [`admit`](Self::admit) would.
    /// Returns its end.
    pub(crate) fn admit_match(
        &self,
        text: &[u8],
        tracker: &mut BaseTracker,
        known: &dyn Fn(&ObjectKey) -> Option<Lazy<Untyped>>,
    ) -> Result<(usize, Lazy<Untyped>), Mismatch> {
        let base = tracker.base.as_ref().ok_or(Mismatch::Different)?;
        let item = base.compare(text, &mut tracker.delta)?;
        let key = ObjectKey::of_parts(item.namespace, item.name, &mut tracker.key);
        let key = key.ok_or(Mismatch::Different)?;
        let object = match known(&key) {
            Some(held) if held.is_version(item.uid, item.resource_version) => held,
            _ => {
                let meta = item.meta(|bytes| self.common.block(bytes)).map_err(|_| Mismatch::Different)?;
                self.entry(key, meta, Body::Packed(item.packed(&tracker.delta)), false)
            }
        };
        let end = item.end;
        drop(item);
        tracker.hit();
        Ok((end, object))
    }

    /// Considers an admitted object that did not match, whose stored text is in `scratch`, as the next base.
    pub(crate) fn update_base(&self, text: &[u8], spans: &Spans, scratch: &[u8], tracker: &mut BaseTracker) {
        if self.form == Form::Decoded || self.transform.is_some() || scratch.len() > SMALL || !tracker.miss()
        {
            return;
        }
        let cut = spans.cut().filter(|_| !self.keep_managed_fields);
        let (Some(metadata), Some(header)) = (
            spans.metadata.clone(),
            (scratch.len() + cut.as_ref().map_or(0, Range::len) + 1).checked_sub(text.len()),
        ) else {
            return;
        };
        let stored = Stored { base: self.packer.base(scratch), size: scratch.len(), header, cut };
        if let Some(base) = ItemBase::new(text, metadata, stored, |bytes| self.common.block(bytes)) {
            tracker.replace(base);
        }
    }

    fn store(&self, key: ObjectKey, mut meta: Meta, text: &[u8]) -> Lazy<Untyped> {
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
        let decoded =
            self.decode.and_then(|decode| decode(&text).map_err(|reason| fault = Some(reason)).ok());
        // An object that cannot be decoded is packed: it exists, can be deleted, and reading it returns the error.
        let pack = || self.packer.pack(&text, meta.owners().next().map(|owner| owner.uid));
        let body = decoded.map_or_else(|| Body::Packed(pack()), Body::Decoded);
        let reported = fault.is_some();
        if let Some((path, reason)) = fault {
            let error = DecodeError { kind: self.expected_kind.clone(), key: key.clone(), path, reason };
            self.faults().report(&Fault::Undecodable(error));
        }
        self.entry(key, meta, body, reported)
    }

    fn entry(&self, key: ObjectKey, meta: Meta, body: Body, reported: bool) -> Lazy<Untyped> {
        Lazy::from_entry(Entry {
            key,
            meta,
            body,
            number: self.entries.fetch_add(1, Ordering::Relaxed),
            shared: Some(Arc::clone(&self.shared)),
            reported: AtomicBool::new(reported),
        })
    }

    /// Writes apiVersion and kind if the text has none: items of a list have none, and readers expect them.
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
