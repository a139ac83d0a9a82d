//! Packed objects: encoded against other objects of the same cache.
//!
//! Objects of one kind differ in little. Three encodings use that:
//!
//! - An object with an owner is a delta against the first object of the same owner ([`Siblings`]). Lists are sorted by name, so
//!   the Pods of a `ReplicaSet` arrive together and a few bases suffice. The base itself is compressed.
//! - A small object is a delta against one base of the cache ([`SmallBase`]), because starting a compressor takes longer than
//!   the delta.
//! - All others are compressed by zstd. The first four of them are the dictionary for the next (no training, ten times smaller
//!   than the JSON); from 1,024 on it is a dictionary trained on a sample, which halves the time.
//!
//! Packed objects hold the base or the dictionary that they were encoded with. All choices depend on the objects and their
//! number alone, so equal runs pack equally.

use std::{num::NonZeroUsize, sync::Arc};

use foldhash::fast::FixedState;
use kubewright_delta::{Index, decode, encode};
use lru::LruCache;
use parking_lot::Mutex;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{CParameter, compress_bound},
};

const LEVEL: i32 = 1;
/// Number of objects whose text makes up the first dictionary.
const FIRST_DICTIONARY: usize = 4;
/// Number of compressed objects from which a cache gets a trained dictionary…
const TRAIN_AT: usize = 1024;
/// …trained on so many of them, every fourth of the last ones…
const TRAINING_SAMPLES: usize = 128;
/// …of this size in bytes. Larger ones gained nothing on Pods.
const TRAINED_SIZE: usize = 16 * 1024;
/// Upper size of objects stored as deltas against the one base of a cache.
pub(super) const SMALL: usize = 1024;
/// Number of successive small objects without a delta before one of them becomes the base. Doubled each time that did not help.
const MISSES: u32 = 8;
/// Upper limit of that number.
const MAX_MISSES: u32 = 8192;
/// Number of owners whose first object is held as text.
const SIBLINGS: NonZeroUsize = NonZeroUsize::new(32).expect("it is not zero");
/// Upper size of these texts.
const MAX_SIBLING: usize = 64 * 1024;
/// Number of decompressors kept for the next read. Each is a few hundred kilobytes, and reads are short.
const IDLE_DECOMPRESSORS: usize = 2;

/// Packs the objects of one cache.
pub(crate) struct Packer {
    state: Mutex<State>,
}

struct State {
    small: SmallBase,
    siblings: Siblings,
    scratch: Vec<u8>,
    compressor: Option<Compressor<'static>>,
    dictionary: Arc<Base>,
    samples: Vec<Vec<u8>>,
    compressed: usize,
    trained: bool,
}

/// What packed objects are decoded with.
pub(crate) enum Base {
    /// Dictionary of zstd; empty for the first objects of a cache.
    Dictionary { content: Vec<u8>, idle: Mutex<Vec<Decompressor<'static>>> },
    /// Text of a small object.
    Text { content: Vec<u8>, index: Index },
    /// First object of an owner.
    Sibling(Packed),
}

/// Upper size of the delta of a text: larger ones take more space than compressed texts.
pub(super) const fn max_delta(size: usize) -> usize {
    size / 4
}

/// Object in its stored form.
pub(crate) struct Packed {
    /// Compressed text or delta; empty if the text equals the base.
    bytes: Box<[u8]>,
    size: u32,
    /// `None` if packing gained nothing and the bytes are the text itself.
    base: Option<Arc<Base>>,
}

impl Packer {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                small: SmallBase { base: None, scratch: Vec::new(), misses: 0, limit: MISSES },
                siblings: Siblings::new(),
                scratch: Vec::new(),
                compressor: None,
                dictionary: Base::dictionary(Vec::new()),
                samples: Vec::new(),
                compressed: 0,
                trained: false,
            }),
        }
    }

    /// Returns a base for deltas of texts that resemble this one.
    pub(super) fn base(&self, text: &[u8]) -> Arc<Base> {
        match &self.state.lock().small.base {
            Some(held) if held.text() == Some(text) => Arc::clone(held),
            _ => Base::from_text(text),
        }
    }

    /// Packs the text of an object whose first owner has this uid.
    pub(crate) fn pack(&self, text: &[u8], owner: Option<&str>) -> Packed {
        let mut state = self.state.lock();
        if text.len() <= SMALL {
            return state.small.pack(text).unwrap_or_else(|| state.compress(text));
        }
        let Some(owner) = owner.filter(|_| text.len() <= MAX_SIBLING) else { return state.compress(text) };
        if let Some(packed) = state.siblings.pack(owner, text) {
            return packed;
        }
        let first = state.compress(text);
        state.siblings.insert(owner, text, first)
    }
}

impl State {
    fn compress(&mut self, text: &[u8]) -> Packed {
        let packed = match self.zstd(text) {
            Some((length, size)) => Packed {
                bytes: self.scratch[..length].into(),
                size,
                base: Some(Arc::clone(&self.dictionary)),
            },
            None => Packed { bytes: text.into(), size: 0, base: None },
        };
        self.learn(text);
        packed
    }

    /// Returns the compressed length in `scratch` and the length of the text, unless compressing gains nothing.
    fn zstd(&mut self, text: &[u8]) -> Option<(usize, u32)> {
        let size = u32::try_from(text.len()).ok()?;
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(compressor(&[])?),
        };
        let bound = compress_bound(text.len());
        if self.scratch.len() < bound {
            self.scratch.resize(bound, 0);
        }
        let length = compressor.compress_to_buffer(text, &mut self.scratch[..]).ok()?;
        (length < text.len()).then_some((length, size))
    }

    /// Collects samples for the dictionaries.
    fn learn(&mut self, text: &[u8]) {
        self.compressed += 1;
        if self.compressed <= FIRST_DICTIONARY {
            self.samples.push(text.to_vec());
            if self.compressed == FIRST_DICTIONARY {
                let content = std::mem::take(&mut self.samples).concat();
                self.set_dictionary(content);
            }
        } else if !self.trained
            && self.compressed > TRAIN_AT - 4 * TRAINING_SAMPLES
            && self.compressed.is_multiple_of(4)
        {
            self.samples.push(text.to_vec());
            if self.samples.len() == TRAINING_SAMPLES {
                self.trained = true;
                // Training fails on samples that have nothing in common; the first dictionary then stays.
                if let Ok(content) =
                    zstd::dict::from_samples(&std::mem::take(&mut self.samples), TRAINED_SIZE)
                {
                    self.set_dictionary(content);
                }
            }
        }
    }

    fn set_dictionary(&mut self, content: Vec<u8>) {
        if let Some(compressor) = compressor(&content) {
            self.compressor = Some(compressor);
            self.dictionary = Base::dictionary(content);
        }
    }
}

/// Returns `None` only if zstd cannot allocate; objects are then stored as they are.
fn compressor(dictionary: &[u8]) -> Option<Compressor<'static>> {
    let mut compressor = Compressor::with_dictionary(LEVEL, dictionary).ok()?;
    // The dictionary and the size of the text are known without the frame: six bytes saved per object.
    compressor.set_parameter(CParameter::DictIdFlag(false)).ok()?;
    compressor.set_parameter(CParameter::ContentSizeFlag(false)).ok()?;
    Some(compressor)
}

/// Base of the small objects of a cache.
struct SmallBase {
    base: Option<Arc<Base>>,
    scratch: Vec<u8>,
    /// Number of successive objects without a delta.
    misses: u32,
    /// Number of misses that replaces the base.
    limit: u32,
}

impl SmallBase {
    fn pack(&mut self, text: &[u8]) -> Option<Packed> {
        let size = u32::try_from(text.len()).ok()?;
        let Some(Base::Text { content, index }) = self.base.as_deref() else {
            self.base = Some(Base::from_text(text));
            return None;
        };
        self.scratch.clear();
        if encode(content, index, text, max_delta(text.len()), &mut self.scratch) {
            (self.misses, self.limit) = (0, MISSES);
            return self.base.as_ref().map(|base| Packed::from_delta(&self.scratch, size, base));
        }
        self.misses += 1;
        if self.misses >= self.limit {
            self.misses = 0;
            self.limit = (2 * self.limit).min(MAX_MISSES);
            self.base = Some(Base::from_text(text));
        }
        None
    }
}

/// First objects of the owners that were seen last, as text and by the owner's uid.
struct Siblings {
    first: LruCache<Box<str>, First, FixedState>,
    scratch: Vec<u8>,
}

struct First {
    text: Box<[u8]>,
    /// Built with the first delta: many owners have a single object.
    index: Option<Index>,
    packed: Arc<Base>,
}

impl Siblings {
    fn new() -> Self {
        // Not with its capacity: most caches hold fewer owners.
        let mut first = LruCache::unbounded_with_hasher(FixedState::with_seed(0));
        first.resize(SIBLINGS);
        Self { first, scratch: Vec::new() }
    }

    fn pack(&mut self, owner: &str, text: &[u8]) -> Option<Packed> {
        let First { text: base, index, packed } = self.first.get_mut(owner)?;
        let index = index.get_or_insert_with(|| Index::new(base));
        self.scratch.clear();
        encode(base, index, text, max_delta(text.len()), &mut self.scratch)
            .then(|| Packed::from_delta(&self.scratch, u32::try_from(text.len()).unwrap_or(u32::MAX), packed))
    }

    /// Makes an object the first of its owner. Its packed form is shared with its siblings.
    fn insert(&mut self, owner: &str, text: &[u8], packed: Packed) -> Packed {
        let size = packed.size;
        let packed = Arc::new(Base::Sibling(packed));
        self.first.put(owner.into(), First { text: text.into(), index: None, packed: Arc::clone(&packed) });
        Packed { bytes: Box::default(), size, base: Some(packed) }
    }
}

impl Base {
    fn dictionary(content: Vec<u8>) -> Arc<Self> {
        Arc::new(Self::Dictionary { content, idle: Mutex::default() })
    }

    fn from_text(text: &[u8]) -> Arc<Self> {
        Arc::new(Self::Text { content: text.to_vec(), index: Index::new(text) })
    }

    fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Text { content, .. } => Some(content),
            Self::Dictionary { .. } | Self::Sibling(_) => None,
        }
    }

    /// Decodes a text of this size.
    fn unpack(&self, bytes: &[u8], size: usize) -> std::io::Result<Vec<u8>> {
        let delta = |base: &[u8]| {
            let mut text = Vec::with_capacity(size);
            decode(base, bytes, |piece| text.extend_from_slice(piece));
            text
        };
        match self {
            Self::Dictionary { content, idle } => decompress(content, idle, bytes, size),
            Self::Text { content, .. } => Ok(delta(content)),
            Self::Sibling(first) if bytes.is_empty() => first.unpack(<[u8]>::to_vec),
            Self::Sibling(first) => first.unpack(delta),
        }
    }
}

fn decompress(
    dictionary: &[u8],
    idle: &Mutex<Vec<Decompressor<'static>>>,
    bytes: &[u8],
    size: usize,
) -> std::io::Result<Vec<u8>> {
    let kept = idle.lock().pop();
    let mut decompressor = match kept {
        Some(decompressor) => decompressor,
        None => Decompressor::with_dictionary(dictionary)?,
    };
    let mut text = vec![0; size];
    let length = decompressor.decompress_to_buffer(bytes, &mut text[..])?;
    text.truncate(length);
    let mut idle = idle.lock();
    if idle.len() < IDLE_DECOMPRESSORS {
        idle.push(decompressor);
    }
    Ok(text)
}

impl Packed {
    /// Creates the packed form of a text of this size.
    pub(super) fn from_delta(delta: &[u8], size: u32, base: &Arc<Base>) -> Self {
        Self { bytes: delta.into(), size, base: Some(Arc::clone(base)) }
    }

    /// Calls `read` with the text of the object.
    pub(crate) fn unpack<R>(&self, read: impl FnOnce(&[u8]) -> R) -> std::io::Result<R> {
        match &self.base {
            Some(base) => Ok(read(&base.unpack(&self.bytes, self.size as usize)?)),
            None => Ok(read(&self.bytes)),
        }
    }

    pub(crate) fn heap_size(&self) -> usize {
        match self.base.as_deref() {
            // Counted with the first object, which has no bytes of its own.
            Some(Base::Sibling(first)) if self.bytes.is_empty() => size_of::<Base>() + first.heap_size(),
            _ => self.bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(i: usize) -> String {
        let labels = format!(r#"{{"app":"shop-{}"}}"#, i % 7);
        format!(
            r#"{{"kind":"Pod","metadata":{{"name":"web-{i}","labels":{labels}}},"spec":{{"nodeName":"node-{}"}}}}"#,
            i % 11
        )
    }

    /// Above the size of small objects.
    fn long(i: usize) -> String {
        format!(r#"{{"spec":"{}","of":{}}}"#, "as every other one is ".repeat(SMALL / 16), text(i))
    }

    fn assert_unpacked(packed: &[Packed], text: impl Fn(usize) -> String) {
        for (i, packed) in packed.iter().enumerate() {
            assert_eq!(packed.unpack(<[u8]>::to_vec).unwrap(), text(i).into_bytes());
        }
    }

    #[test]
    fn objects_are_unpacked_with_the_dictionary_they_were_packed_with() {
        let packer = Packer::new();
        let packed: Vec<_> = (0..3 * TRAIN_AT).map(|i| packer.pack(long(i).as_bytes(), None)).collect();
        assert_unpacked(&packed, long);
        assert!(packer.state.lock().trained);
        let last = packed.last().unwrap().heap_size();
        assert!(last * 3 < long(0).len(), "{last}");
    }

    #[test]
    fn small_objects_that_resemble_each_other_are_deltas_of_one_base() {
        let packer = Packer::new();
        let packed: Vec<_> = (0..100).map(|i| packer.pack(text(i).as_bytes(), None)).collect();
        assert_unpacked(&packed, text);
        for packed in &packed[1..] {
            assert!(packed.heap_size() * 4 <= text(0).len(), "{}", packed.heap_size());
        }
        let base = |packed: &Packed| Arc::as_ptr(packed.base.as_ref().unwrap());
        assert!(packed[1..].iter().all(|other| base(other) == base(&packed[1])));
    }

    #[test]
    fn the_base_of_small_objects_is_replaced_after_a_few_misses() {
        let other = |i: usize| {
            let times = r#""acquireTime":"2026-01-02T03:04:05.000000Z","leaseDurationSeconds":15,"leaseTransitions":1"#;
            format!(r#"{{"kind":"Lease","spec":{{{times},"holderIdentity":"node-{:03}"}}}}"#, i % 1000)
        };
        let packer = Packer::new();
        let pods: Vec<_> = (0..100).map(|i| packer.pack(text(i).as_bytes(), None)).collect();
        let leases: Vec<_> = (0..100).map(|i| packer.pack(other(i).as_bytes(), None)).collect();
        assert_unpacked(&pods, text);
        assert_unpacked(&leases, other);
        let is_delta = |packed: &Packed| packed.base.as_ref().is_some_and(|base| base.text().is_some());
        let compressed = leases.iter().take_while(|packed| !is_delta(packed)).count();
        assert_eq!(compressed, MISSES as usize);
        assert!(leases[compressed..].iter().all(is_delta));
    }

    #[test]
    fn the_base_of_small_objects_without_deltas_is_replaced_ever_more_rarely() {
        let packer = Packer::new();
        let unique = |i: usize| {
            format!(
                "{:032x}{:032x}",
                (i as u128 + 1).wrapping_mul(u128::MAX / 7919),
                !(i as u128).wrapping_mul(u128::MAX / 104_729)
            )
        };
        let packed: Vec<_> = (0..2000).map(|i| packer.pack(unique(i).as_bytes(), None)).collect();
        assert_unpacked(&packed, unique);
        assert!(packer.state.lock().small.limit >= 64 * MISSES);
    }

    /// Text of an object of an application, most of which no other application has.
    fn of_owner(owner: usize, i: usize) -> String {
        let own: String = (0..60_u64)
            .map(|n| format!("{:x}", (owner as u64 * 64 + n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
            .collect();
        format!(r#"{{"own":"{own}","of":{}}}"#, text(i))
    }

    #[test]
    fn objects_of_one_owner_are_deltas_of_the_first() {
        let packer = Packer::new();
        // More owners than are held as text; each has four objects in a row, and comes again later.
        let owner = |i: usize| i / 4 % 100;
        let of = |i: usize| of_owner(owner(i), i);
        let packed: Vec<_> =
            (0..800).map(|i| packer.pack(of(i).as_bytes(), Some(&format!("uid-{}", owner(i))))).collect();
        assert_unpacked(&packed, of);
        for (i, packed) in packed.iter().enumerate() {
            if i.is_multiple_of(4) {
                assert!(packed.bytes.is_empty() && packed.heap_size() > 200);
            } else {
                assert!((1..80).contains(&packed.heap_size()), "{}", packed.heap_size());
            }
        }
        assert_eq!(packer.state.lock().siblings.first.len(), SIBLINGS.get());
    }

    #[test]
    fn an_object_that_differs_from_its_siblings_becomes_the_first() {
        let packer = Packer::new();
        let of = |i: usize| of_owner(i / 3, i);
        let packed: Vec<_> = (0..9).map(|i| packer.pack(of(i).as_bytes(), Some("uid"))).collect();
        assert_unpacked(&packed, of);
        assert!((0..9).all(|i| packed[i].bytes.is_empty() == (i % 3 == 0)));
    }

    #[test]
    fn a_text_that_does_not_shrink_is_stored_as_it_is() {
        let packed = Packer::new().pack(b"{}", None);
        assert!(packed.base.is_none());
        assert_eq!(packed.unpack(<[u8]>::to_vec).unwrap(), b"{}");
    }

    #[test]
    fn samples_that_cannot_train_a_dictionary_leave_the_first_one_in_use() {
        let packer = Packer::new();
        for _ in 0..2 * TRAIN_AT {
            packer.pack(b"{}", None);
        }
        assert_eq!(packer.pack(b"{}", None).unpack(<[u8]>::to_vec).unwrap(), b"{}");
    }
}
