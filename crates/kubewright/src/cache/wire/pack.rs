//! Objects at rest: compressed against a dictionary that the objects of the type themselves provide.
//!
//! Objects of one kind differ in little. The first few that arrive become the dictionary for the next (no training,
//! ten times smaller than the JSON); when a cache turns out to be large, a dictionary trained on a sample takes
//! over, which halves the time to pack. Objects packed earlier keep the dictionary they were packed with.

use std::sync::Arc;

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
/// Decompressors kept for the next read. Each is a few hundred kilobytes, and reads are short.
const IDLE_DECOMPRESSORS: usize = 2;

/// Packs and unpacks the objects of one cache.
pub(crate) struct Packer {
    state: Mutex<State>,
}

struct State {
    scratch: Vec<u8>,
    compressor: Option<Compressor<'static>>,
    dictionary: Arc<Dictionary>,
    samples: Vec<Vec<u8>>,
    packed: usize,
    trained: bool,
}

/// The text that objects are packed against; empty for the very first objects of a cache.
struct Dictionary {
    content: Vec<u8>,
    idle: Mutex<Vec<Decompressor<'static>>>,
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
                scratch: Vec::new(),
                compressor: None,
                dictionary: Dictionary::new(Vec::new()),
                samples: Vec::new(),
                packed: 0,
                trained: false,
            }),
        }
    }

    pub(crate) fn pack(&self, text: &[u8]) -> Packed {
        let mut state = self.state.lock();
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
            self.dictionary = Dictionary::new(content);
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

impl Dictionary {
    fn new(content: Vec<u8>) -> Arc<Self> {
        Arc::new(Self { content, idle: Mutex::default() })
    }
}

impl Packed {
    /// Calls `read` with the text of the object.
    pub(crate) fn unpack<R>(&self, read: impl FnOnce(&[u8]) -> R) -> std::io::Result<R> {
        let Some(dictionary) = &self.dictionary else { return Ok(read(&self.bytes)) };
        let idle = dictionary.idle.lock().pop();
        let mut decompressor = match idle {
            Some(decompressor) => decompressor,
            None => Decompressor::with_dictionary(&dictionary.content)?,
        };
        let mut text = vec![0; self.size as usize];
        let length = decompressor.decompress_to_buffer(&self.bytes, &mut text[..])?;
        let mut idle = dictionary.idle.lock();
        if idle.len() < IDLE_DECOMPRESSORS {
            idle.push(decompressor);
        }
        drop(idle);
        Ok(read(&text[..length]))
    }

    pub(crate) fn heap_size(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(i: usize) -> String {
        format!(
            r#"{{"kind":"Pod","metadata":{{"name":"web-{i}","labels":{{"app":"shop-{}"}}}},"spec":{{"nodeName":"node-{}"}}}}"#,
            i % 7,
            i % 11
        )
    }

    #[test]
    fn objects_read_back_across_every_change_of_dictionary() {
        let packer = Packer::new();
        let packed: Vec<_> = (0..3 * TRAIN_AT).map(|i| packer.pack(text(i).as_bytes())).collect();
        for (i, packed) in packed.iter().enumerate() {
            assert_eq!(packed.unpack(<[u8]>::to_vec).unwrap(), text(i).into_bytes());
        }
        assert!(packer.state.lock().trained);
        assert!(
            packed.last().unwrap().heap_size() * 3 < text(0).len(),
            "{}",
            packed.last().unwrap().heap_size()
        );
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
