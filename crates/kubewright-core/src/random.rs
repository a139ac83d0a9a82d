//! Random numbers that tests and replays can seed.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use parking_lot::Mutex;

/// Source of random numbers for back-off and time-outs (`SplitMix64`). Clones share the state.
///
/// Not cryptographically secure.
///
/// ```
/// use kubewright::Random;
///
/// let (a, b) = (Random::seeded(7), Random::seeded(7));
/// assert_eq!(a.unit(), b.unit());
/// ```
#[derive(Debug, Clone)]
pub struct Random {
    state: Arc<Mutex<u64>>,
}

impl Random {
    /// Creates a source with a fixed seed: equal seeds give equal numbers.
    pub fn seeded(seed: u64) -> Self {
        Self { state: Arc::new(Mutex::new(seed)) }
    }

    /// Creates a source seeded by the operating system.
    pub fn from_entropy() -> Self {
        Self::seeded(RandomState::new().hash_one(0u8))
    }

    /// Returns the next number.
    pub fn next(&self) -> u64 {
        let mut state = self.state.lock();
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `[0, 1)`.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn unit(&self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a random UUID (version 4). Unique, but not secret.
    pub fn uuid(&self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff,
        )
    }
}

impl Random {
    /// Returns the five characters that the API server appends to a `generateName`.
    pub fn name_suffix(&self) -> String {
        /// No vowels and no characters that look alike, so no words.
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.next();
        (0..5)
            .map(|_| {
                let n = ALPHABET.len() as u64;
                let letter = ALPHABET[usize::try_from(bits % n).unwrap_or_default()];
                bits /= n;
                char::from(letter)
            })
            .collect()
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::from_entropy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_range_and_differ() {
        let random = Random::seeded(1);
        let numbers: Vec<f64> = (0..1000).map(|_| random.unit()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(numbers.iter().any(|number| *number < 0.1) && numbers.iter().any(|number| *number > 0.9));
    }

    #[test]
    fn a_seed_determines_every_uuid_and_suffix() {
        let (a, b) = (Random::seeded(7), Random::seeded(7));
        for _ in 0..50 {
            assert_eq!((a.uuid(), a.name_suffix()), (b.uuid(), b.name_suffix()));
        }
    }

    #[test]
    fn uuids_have_the_form_of_version_four() {
        let uuid = Random::seeded(1).uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4");
        assert!("89ab".contains(&uuid[19..20]));
    }
}
