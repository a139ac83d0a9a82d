//! Source of uids and of the suffixes of `generateName`.
//!
//! One generator per server. Seeded by the machine it is unpredictable enough for names; seeded by a test the same
//! requests in the same order give the same uids and names. Keys and signatures never come from here.

use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};

/// Characters of generated suffixes: no vowels and no look-alikes, so that they form no words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Generator of uids and name suffixes.
#[derive(Debug)]
pub(crate) struct Random {
    state: Mutex<u64>,
}

impl Random {
    /// Creates a generator that is seeded by the system.
    pub(crate) fn from_system() -> Self {
        let mut seed = [0; 8];
        // Without entropy the names repeat from run to run, which is still correct.
        let _ = SystemRandom::new().fill(&mut seed);
        Self::from_seed(u64::from_le_bytes(seed))
    }

    /// Creates a generator with a fixed sequence.
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self { state: Mutex::new(seed) }
    }

    /// Skips the sequence of earlier runs, so that a server with a fixed seed does not repeat their uids.
    #[must_use]
    pub(crate) fn after(self, revision: u64) -> Self {
        if revision > 0 {
            let seed = self.next() ^ revision.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            return Self::from_seed(seed);
        }
        self
    }

    /// Returns the next 64 bits (`SplitMix64`).
    pub(crate) fn next(&self) -> u64 {
        let mut state = self.state.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a version 4 UUID.
    pub(crate) fn uid(&self) -> String {
        let high = (self.next() & 0xffff_ffff_ffff_0fff) | 0x4000;
        let low = (self.next() & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// Returns the five characters that follow a `generateName`.
    pub(crate) fn suffix(&self) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_every_uid_and_suffix() {
        let (a, b) = (Random::from_seed(7), Random::from_seed(7));
        for _ in 0..50 {
            assert_eq!((a.uid(), a.suffix()), (b.uid(), b.suffix()));
        }
    }

    #[test]
    fn uids_have_the_form_of_version_four() {
        let uid = Random::from_seed(1).uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]));
    }
}
