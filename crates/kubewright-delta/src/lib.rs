//! Delta encoding of texts against a similar base text.
//!
//! Objects of one kind differ in names, times and identities, and are equal otherwise. Caches and storage hold many of them,
//! so they hold one as a base and the others as deltas: lists of copies from the base and of new bytes. zstd with the base as
//! its dictionary makes deltas of about the same size, and takes two to five times as long in both directions.
//!
//! ```
//! use kubewright_delta::{Index, decode, encode};
//!
//! let base = br#"{"kind":"ConfigMap","metadata":{"name":"settings-1"},"data":{"color":"blue"}}"#;
//! let text = br#"{"kind":"ConfigMap","metadata":{"name":"settings-2"},"data":{"color":"blue"}}"#;
//! let mut delta = Vec::new();
//! assert!(encode(base, &Index::new(base), text, text.len() / 2, &mut delta));
//! assert!(delta.len() < 8);
//!
//! let mut decoded = Vec::new();
//! decode(base, &delta, |piece| decoded.extend_from_slice(piece));
//! assert_eq!(decoded, text);
//! ```
//!
//! # Pitfalls
//! - A delta does not identify its base: store the two together. Decoded with another base it yields wrong bytes or ends early;
//!   it never panics.
//! - Texts that have little in common have large deltas: limit the size, and store the text in another way when the limit is
//!   exceeded.
//!
//! # Format
//! A delta is a list of steps: the distance in the base from the expected position (signed), the number of bytes to copy from
//! there, the number of new bytes, and these bytes. New bytes advance the expected position as well, so a value that replaces
//! another of the same length, the most frequent difference, costs two bytes more than itself. Numbers are LEB128.

/// Length of a match that is searched for.
const WINDOW: usize = 16;
/// Distance between the positions of the base that are indexed.
const STRIDE: usize = 8;
/// Upper length of a base: its positions are numbered with 16 bits.
pub const MAX_BASE: usize = STRIDE * (u16::MAX as usize);

/// Hash index of a base.
#[derive(Debug)]
pub struct Index(Box<[u16]>);

impl Index {
    /// Indexes a base of at most [`MAX_BASE`] bytes.
    #[must_use]
    pub fn new(base: &[u8]) -> Self {
        let mut positions = vec![0; (base.len() / STRIDE).next_power_of_two()].into_boxed_slice();
        let last = positions.len() - 1;
        for (number, start) in (0..base.len().saturating_sub(WINDOW)).step_by(STRIDE).enumerate() {
            let Some(window) = window(base, start) else { break };
            let position = &mut positions[hash(window) & last];
            // The first of equal windows stays; zero marks a free entry.
            if *position == 0 {
                *position = u16::try_from(number + 1).unwrap_or(0);
            }
        }
        Self(positions)
    }

    fn find(&self, window: u128) -> Option<usize> {
        let position = self.0[hash(window) & (self.0.len() - 1)];
        position.checked_sub(1).map(|number| usize::from(number) * STRIDE)
    }
}

fn window(text: &[u8], start: usize) -> Option<u128> {
    Some(u128::from_le_bytes(*text.get(start..)?.first_chunk::<WINDOW>()?))
}

#[expect(clippy::cast_possible_truncation, reason = "it is a hash")]
fn hash(window: u128) -> usize {
    let (low, high) = (window as u64, (window >> 64) as u64);
    ((low ^ high.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
}

/// Writes a delta step by step, for callers that know where two texts differ.
///
/// ```
/// use kubewright_delta::{Encoder, decode};
///
/// let mut delta = Vec::new();
/// let mut encoder = Encoder::new(&mut delta);
/// encoder.step(0, 4, b"7");
/// encoder.step(5, 3, b"");
/// let mut decoded = Vec::new();
/// decode(b"web-1.eu", &delta, |piece| decoded.extend_from_slice(piece));
/// assert_eq!(decoded, b"web-7.eu");
/// ```
#[derive(Debug)]
pub struct Encoder<'a> {
    delta: &'a mut Vec<u8>,
    /// Position in the base from which the next distance counts.
    expected: usize,
}

impl<'a> Encoder<'a> {
    /// Creates an encoder that appends to `delta`.
    pub fn new(delta: &'a mut Vec<u8>) -> Self {
        Self { delta, expected: 0 }
    }

    /// Copies `length` bytes of the base from position `from`, then inserts `new`.
    #[inline]
    pub fn step(&mut self, from: usize, length: usize, new: &[u8]) {
        write_distance(self.delta, from, self.expected);
        write_number(self.delta, length);
        write_number(self.delta, new.len());
        self.delta.extend_from_slice(new);
        self.expected = from + length + new.len();
    }
}

/// Appends the delta of `text` against `base` to `delta`. Returns false if it would exceed `max` bytes; the appended bytes
/// are then invalid.
pub fn encode(base: &[u8], index: &Index, text: &[u8], max: usize, delta: &mut Vec<u8>) -> bool {
    let start = delta.len();
    let mut encoder = Encoder::new(delta);
    let (mut at, mut from) = (0, 0);
    while at < text.len() {
        let length = common_prefix(&text[at..], &base[from..]);
        let changed = at + length;
        let (next, position) = next_match(base, index, text, changed, from + length);
        encoder.step(from, length, &text[changed..next]);
        if encoder.delta.len() - start > max {
            return false;
        }
        (at, from) = (next, position);
    }
    true
}

/// Finds the next match of text and base: after a change of equal length, or anywhere.
fn next_match(base: &[u8], index: &Index, text: &[u8], at: usize, from: usize) -> (usize, usize) {
    for next in at..text.len() {
        let Some(here) = window(text, next) else { break };
        let beside = from + (next - at);
        if window(base, beside) == Some(here) {
            return (next, beside);
        }
        if let Some(position) = index.find(here).filter(|position| window(base, *position) == Some(here)) {
            let before = text[at..next].iter().rev().zip(base[..position].iter().rev());
            let more = before.take_while(|(text, base)| text == base).count();
            return (next - more, position - more);
        }
    }
    (text.len(), 0)
}

/// Length of the common prefix of two texts.
#[inline]
#[must_use]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut at = 0;
    while let (Some(one), Some(other)) = (window(a, at), window(b, at)) {
        let differs = one ^ other;
        if differs != 0 {
            return at + (differs.trailing_zeros() / 8) as usize;
        }
        at += WINDOW;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(a, b)| a == b).count()
}

/// Length of the common suffix of two texts.
#[inline]
#[must_use]
pub fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let mut length = 0;
    let word = |text: &[u8]| text.last_chunk().copied().map(u64::from_le_bytes);
    while let (Some(one), Some(other)) = (word(&a[..a.len() - length]), word(&b[..b.len() - length])) {
        let differs = one ^ other;
        if differs != 0 {
            return length + (differs.leading_zeros() / 8) as usize;
        }
        length += size_of::<u64>();
    }
    let rest = a[..a.len() - length].iter().rev().zip(b[..b.len() - length].iter().rev());
    length + rest.take_while(|(a, b)| a == b).count()
}

/// Passes the decoded text to `piece`, piece by piece.
pub fn decode(base: &[u8], mut delta: &[u8], mut piece: impl FnMut(&[u8])) {
    let mut at = 0;
    // A delta of another base may be invalid at any step.
    while !delta.is_empty() {
        let Some(()) = decode_step(base, &mut delta, &mut at, &mut piece) else { return };
    }
}

fn decode_step(base: &[u8], delta: &mut &[u8], at: &mut usize, piece: &mut impl FnMut(&[u8])) -> Option<()> {
    let distance = read_number(delta)?;
    *at = if distance & 1 == 0 { at.checked_add(distance >> 1)? } else { at.checked_sub(distance >> 1)? };
    let length = read_number(delta)?;
    piece(base.get(*at..at.checked_add(length)?)?);
    let inserted = read_number(delta)?;
    let (text, rest) = delta.split_at_checked(inserted)?;
    piece(text);
    *delta = rest;
    *at = at.checked_add(length)?.checked_add(inserted)?;
    Some(())
}

/// Writes a forward distance as an even number, a backward one as an odd number.
#[inline]
fn write_distance(delta: &mut Vec<u8>, to: usize, from: usize) {
    write_number(delta, if to >= from { (to - from) << 1 } else { ((from - to) << 1) | 1 });
}

/// Writes seven bits at a time, the lowest first.
#[inline]
fn write_number(delta: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        delta.push(0x80 | (number & 0x7f).to_le_bytes()[0]);
        number >>= 7;
    }
    delta.push(number.to_le_bytes()[0]);
}

fn read_number(delta: &mut &[u8]) -> Option<usize> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = delta.split_first()?;
        *delta = rest;
        number |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(old: &[u8], new: &[u8]) -> usize {
        let mut delta = Vec::new();
        assert!(encode(old, &Index::new(old), new, usize::MAX, &mut delta));
        let mut decoded = Vec::new();
        decode(old, &delta, |piece| decoded.extend_from_slice(piece));
        assert_eq!(decoded, new);
        delta.len()
    }

    #[test]
    fn equal_parts_take_a_few_bytes() {
        let fields: Vec<_> = (0..500).map(|n| format!("\"field-{n}\":{{\"value\":{}}},", n * n)).collect();
        let old = fields.concat();
        assert!(round_trip(old.as_bytes(), old.as_bytes()) < 8);
        let other = old.replace("\"value\":1600}", "\"value\":9999}");
        assert!(round_trip(old.as_bytes(), other.as_bytes()) < 32);
        let moved = format!("a new beginning{}", &old[100..]);
        assert!(round_trip(old.as_bytes(), moved.as_bytes()) < 48);
    }

    #[test]
    fn a_delta_above_the_limit_is_refused() {
        let (old, new) = ([b'a'; 1000], [b'b'; 1000]);
        assert!(!encode(&old, &Index::new(&old), &new, 500, &mut Vec::new()));
    }

    #[test]
    fn a_delta_of_another_base_does_not_panic() {
        let (old, new) = ("0123456789abcdef".repeat(20), "0123456789abcdef".repeat(19));
        let mut delta = Vec::new();
        assert!(encode(old.as_bytes(), &Index::new(old.as_bytes()), new.as_bytes(), 100, &mut delta));
        decode(b"short", &delta, |_| {});
        for cut in 0..delta.len() {
            decode(old.as_bytes(), &delta[..cut], |_| {});
        }
    }

    proptest! {
        #[test]
        fn common_prefix_and_suffix_are_found(
            begin in "[ab]{0,40}", a in "[ab]{0,9}", b in "[ab]{0,9}", end in "[ab]{0,40}",
        ) {
            let (a, b) = (format!("{begin}{a}{end}"), format!("{begin}{b}{end}"));
            let (a, b) = (a.as_bytes(), b.as_bytes());
            prop_assert_eq!(common_prefix(a, b), a.iter().zip(b).take_while(|(a, b)| a == b).count());
            let at_end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(common_suffix(a, b), at_end);
        }

        #[test]
        fn every_text_has_a_delta_against_every_other(
            words in prop::collection::vec("[a-d]{1,24}", 0..60),
            picks in prop::collection::vec((0usize..60, "[a-d]{0,20}"), 0..60),
        ) {
            let old = words.concat();
            let word = |n: &usize| words.get(*n).map_or("", String::as_str);
            let new: String = picks.iter().flat_map(|(n, more)| [word(n), more.as_str()]).collect();
            round_trip(old.as_bytes(), new.as_bytes());
        }
    }
}
