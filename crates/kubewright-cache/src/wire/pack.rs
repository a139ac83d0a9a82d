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
#[path = "pack_tests.rs"]
mod tests;
