//! Objects at rest: compressed against a dictionary that the objects of the type themselves provide.
//!
//! Objects of one kind differ in little. The first few that arrive become the dictionary for the next (no training,
//! ten times smaller than the JSON); when a cache turns out to be large, a dictionary trained on a sample takes
//! over, which halves the time to pack. Objects packed earlier keep the dictionary they were packed with.
//!
//! What a compressor does before it comes to the text takes longer than the text of a small object. Those are told by what
//! differs from another one of their cache, unless that is too much.

use std::sync::Arc;

use kubewright_difference::{Index, pieces, script};
use parking_lot::Mutex;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{CParameter, compress_bound},
};

const LEVEL: i32 = 1;
/// Objects whose text makes up the first dictionary.
const FIRST_DICTIONARY: usize = 4;
/// A cache this large gets a trained dictionary…
const TRAIN_AT: usize = 1024;
/// …from this many of its objects, every fourth of the last ones…
const TRAINING_SAMPLES: usize = 128;
/// …of this size in bytes. Larger ones gained nothing on Pods.
const TRAINED_SIZE: usize = 16 * 1024;
/// What is small.
pub(super) const SMALL: usize = 1024;
/// How many small objects in a row may have little in common with the one that they are compared with before another takes its
/// place. Each time that did not help either, it takes twice as many.
const STRANGERS: u32 = 8;
/// From here on it does not get more.
const MOST_STRANGERS: u32 = 8192;
/// Decompressors kept for the next read. Each is a few hundred kilobytes, and reads are short.
const IDLE_DECOMPRESSORS: usize = 2;

/// Packs and unpacks the objects of one cache.
pub(crate) struct Packer {
    state: Mutex<State>,
}

struct State {
    model: Model,
    scratch: Vec<u8>,
    compressor: Option<Compressor<'static>>,
    dictionary: Arc<Dictionary>,
    samples: Vec<Vec<u8>>,
    packed: usize,
    trained: bool,
}

/// The text that objects are packed against; empty for the very first objects of a cache.
pub(crate) struct Dictionary {
    content: Vec<u8>,
    how: How,
}

/// How objects are packed.
enum How {
    Compressed { idle: Mutex<Vec<Decompressor<'static>>> },
    Told(Index),
}

/// What small objects are told by.
struct Model {
    dictionary: Option<Arc<Dictionary>>,
    scratch: Vec<u8>,
    /// How many in a row had little in common with it.
    strangers: u32,
    /// How many it takes for another one.
    patience: u32,
}

/// How long what tells a text of this size may be: what differs in more than a quarter is smaller when it is compressed.
pub(super) const fn most(size: usize) -> usize {
    size / 4
}

/// An object at rest.
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    size: u32,
    /// None when packing gained nothing and the bytes are the text itself.
    dictionary: Option<Arc<Dictionary>>,
}

impl Packer {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                model: Model::new(),
                scratch: Vec::new(),
                compressor: None,
                dictionary: Dictionary::compressed(Vec::new()),
                samples: Vec::new(),
                packed: 0,
                trained: false,
            }),
        }
    }

    /// What others may be told by that differ from this text in little.
    pub(super) fn model(&self, text: &[u8]) -> Arc<Dictionary> {
        match &self.state.lock().model.dictionary {
            Some(held) if held.content == text => Arc::clone(held),
            _ => Dictionary::told(text.to_vec()),
        }
    }

    pub(crate) fn pack(&self, text: &[u8]) -> Packed {
        let mut state = self.state.lock();
        if let Some(told) = state.model.tell(text) {
            return told;
        }
        let packed = match state.compress(text) {
            Some((length, size)) => Packed {
                bytes: state.scratch[..length].into(),
                size,
                dictionary: Some(Arc::clone(&state.dictionary)),
            },
            None => Packed { bytes: text.into(), size: 0, dictionary: None },
        };
        state.learn(text);
        packed
    }
}

impl State {
    /// The packed length in `scratch` and the length of the text, unless packing gains nothing.
    fn compress(&mut self, text: &[u8]) -> Option<(usize, u32)> {
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

    /// Collects samples by count alone, so that equal runs pack equally.
    fn learn(&mut self, text: &[u8]) {
        self.packed += 1;
        if self.packed <= FIRST_DICTIONARY {
            self.samples.push(text.to_vec());
            if self.packed == FIRST_DICTIONARY {
                let content = std::mem::take(&mut self.samples).concat();
                self.adopt(content);
            }
        } else if !self.trained
            && self.packed > TRAIN_AT - 4 * TRAINING_SAMPLES
            && self.packed.is_multiple_of(4)
        {
            self.samples.push(text.to_vec());
            if self.samples.len() == TRAINING_SAMPLES {
                self.trained = true;
                // Training refuses samples that have nothing in common; the first dictionary then stays.
                if let Ok(content) =
                    zstd::dict::from_samples(&std::mem::take(&mut self.samples), TRAINED_SIZE)
                {
                    self.adopt(content);
                }
            }
        }
    }

    fn adopt(&mut self, content: Vec<u8>) {
        if let Some(compressor) = compressor(&content) {
            self.compressor = Some(compressor);
            self.dictionary = Dictionary::compressed(content);
        }
    }
}

/// None only when zstd cannot allocate; objects are then kept as they are.
fn compressor(dictionary: &[u8]) -> Option<Compressor<'static>> {
    let mut compressor = Compressor::with_dictionary(LEVEL, dictionary).ok()?;
    // Which dictionary and how long the text is are known from outside the frame: six bytes saved per object.
    compressor.set_parameter(CParameter::DictIdFlag(false)).ok()?;
    compressor.set_parameter(CParameter::ContentSizeFlag(false)).ok()?;
    Some(compressor)
}

impl Model {
    fn new() -> Self {
        Self { dictionary: None, scratch: Vec::new(), strangers: 0, patience: STRANGERS }
    }

    /// What a small object has that the model has not, unless that is much.
    fn tell(&mut self, text: &[u8]) -> Option<Packed> {
        if text.len() > SMALL {
            return None;
        }
        let size = u32::try_from(text.len()).ok()?;
        let Some((dictionary, index)) = self.dictionary.as_ref().and_then(|held| held.index()) else {
            self.dictionary = Some(Dictionary::told(text.to_vec()));
            return None;
        };
        self.scratch.clear();
        if script(&dictionary.content, index, text, most(text.len()), &mut self.scratch) {
            (self.strangers, self.patience) = (0, STRANGERS);
            return Some(Packed::told(&self.scratch, size, dictionary));
        }
        self.strangers += 1;
        if self.strangers >= self.patience {
            self.strangers = 0;
            self.patience = (2 * self.patience).min(MOST_STRANGERS);
            self.dictionary = Some(Dictionary::told(text.to_vec()));
        }
        None
    }
}

impl Dictionary {
    fn compressed(content: Vec<u8>) -> Arc<Self> {
        Arc::new(Self { content, how: How::Compressed { idle: Mutex::default() } })
    }

    fn told(content: Vec<u8>) -> Arc<Self> {
        let how = How::Told(Index::of(&content));
        Arc::new(Self { content, how })
    }

    fn index(self: &Arc<Self>) -> Option<(&Arc<Self>, &Index)> {
        match &self.how {
            How::Told(index) => Some((self, index)),
            How::Compressed { .. } => None,
        }
    }

    /// The text of this size that was packed to these bytes.
    fn unpack(&self, bytes: &[u8], size: usize) -> std::io::Result<Vec<u8>> {
        let idle = match &self.how {
            How::Compressed { idle } => idle,
            How::Told(_) => {
                let mut text = Vec::with_capacity(size);
                pieces(&self.content, bytes, |piece| text.extend_from_slice(piece));
                return Ok(text);
            }
        };
        let kept = idle.lock().pop();
        let mut decompressor = match kept {
            Some(decompressor) => decompressor,
            None => Decompressor::with_dictionary(&self.content)?,
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
}

impl Packed {
    /// A text of this size, told by another one.
    pub(super) fn told(script: &[u8], size: u32, by: &Arc<Dictionary>) -> Self {
        Self { bytes: script.into(), size, dictionary: Some(Arc::clone(by)) }
    }

    /// Calls `read` with the text of the object.
    pub(crate) fn unpack<R>(&self, read: impl FnOnce(&[u8]) -> R) -> std::io::Result<R> {
        match &self.dictionary {
            Some(dictionary) => Ok(read(&dictionary.unpack(&self.bytes, self.size as usize)?)),
            None => Ok(read(&self.bytes)),
        }
    }

    pub(crate) fn heap_size(&self) -> usize {
        self.bytes.len()
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

    /// One that is not small.
    fn long(i: usize) -> String {
        format!(r#"{{"spec":"{}","of":{}}}"#, "as every other one is ".repeat(SMALL / 16), text(i))
    }

    fn reads_back(packed: &[Packed], text: impl Fn(usize) -> String) {
        for (i, packed) in packed.iter().enumerate() {
            assert_eq!(packed.unpack(<[u8]>::to_vec).unwrap(), text(i).into_bytes());
        }
    }

    #[test]
    fn objects_read_back_across_every_change_of_dictionary() {
        let packer = Packer::new();
        let packed: Vec<_> = (0..3 * TRAIN_AT).map(|i| packer.pack(long(i).as_bytes())).collect();
        reads_back(&packed, long);
        assert!(packer.state.lock().trained);
        let last = packed.last().unwrap().heap_size();
        assert!(last * 3 < long(0).len(), "{last}");
    }

    #[test]
    fn small_objects_that_are_alike_are_told_by_one_of_them() {
        let packer = Packer::new();
        let packed: Vec<_> = (0..100).map(|i| packer.pack(text(i).as_bytes())).collect();
        reads_back(&packed, text);
        for packed in &packed[1..] {
            assert!(packed.heap_size() * 4 <= text(0).len(), "{}", packed.heap_size());
        }
        let by = |packed: &Packed| Arc::as_ptr(packed.dictionary.as_ref().unwrap());
        assert!(packed[1..].iter().all(|other| by(other) == by(&packed[1])));
    }

    #[test]
    fn small_objects_of_another_sort_are_told_by_one_of_theirs_after_a_few() {
        let other = |i: usize| {
            let times = r#""acquireTime":"2026-01-02T03:04:05.000000Z","leaseDurationSeconds":15,"leaseTransitions":1"#;
            format!(r#"{{"kind":"Lease","spec":{{{times},"holderIdentity":"node-{:03}"}}}}"#, i % 1000)
        };
        let packer = Packer::new();
        let pods: Vec<_> = (0..100).map(|i| packer.pack(text(i).as_bytes())).collect();
        let leases: Vec<_> = (0..100).map(|i| packer.pack(other(i).as_bytes())).collect();
        reads_back(&pods, text);
        reads_back(&leases, other);
        let told = |packed: &Packed| packed.dictionary.as_ref().is_some_and(|by| by.index().is_some());
        let compressed = leases.iter().take_while(|packed| !told(packed)).count();
        assert_eq!(compressed, STRANGERS as usize);
        assert!(leases[compressed..].iter().all(told));
    }

    #[test]
    fn small_objects_that_have_nothing_in_common_take_each_others_place_ever_more_rarely() {
        let packer = Packer::new();
        let lonely = |i: usize| {
            format!(
                "{:032x}{:032x}",
                (i as u128 + 1).wrapping_mul(u128::MAX / 7919),
                !(i as u128).wrapping_mul(u128::MAX / 104_729)
            )
        };
        let packed: Vec<_> = (0..2000).map(|i| packer.pack(lonely(i).as_bytes())).collect();
        reads_back(&packed, lonely);
        assert!(packer.state.lock().model.patience >= 64 * STRANGERS);
    }

    #[test]
    fn text_that_does_not_shrink_is_kept_as_it_is() {
        let packed = Packer::new().pack(b"{}");
        assert!(packed.dictionary.is_none());
        assert_eq!(packed.unpack(<[u8]>::to_vec).unwrap(), b"{}");
    }

    #[test]
    fn samples_that_cannot_train_a_dictionary_leave_the_first_one_in_use() {
        let packer = Packer::new();
        for _ in 0..2 * TRAIN_AT {
            packer.pack(b"{}");
        }
        assert_eq!(packer.pack(b"{}").unpack(<[u8]>::to_vec).unwrap(), b"{}");
    }
}
