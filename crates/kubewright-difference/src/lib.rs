//! One text told by another: what is alike is copied from there, what is not is written out.
//!
//! Objects of one kind differ in names, times and identities, and are alike otherwise. Caches and storage keep many of them,
//! so they keep one as it is and of the others the script that makes them of it. A compressor that has the first text as its
//! dictionary makes about as little of them, and takes two to five times as long to do so and to undo it (docs/performance.md).
//!
//! ```
//! use kubewright_difference::{Index, pieces, script};
//!
//! let old = br#"{"kind":"ConfigMap","metadata":{"name":"settings-1"},"data":{"color":"blue"}}"#;
//! let new = br#"{"kind":"ConfigMap","metadata":{"name":"settings-2"},"data":{"color":"blue"}}"#;
//! let mut told = Vec::new();
//! assert!(script(old, &Index::of(old), new, new.len() / 2, &mut told));
//! assert!(told.len() < 8);
//!
//! let mut made = Vec::new();
//! pieces(old, &told, |piece| made.extend_from_slice(piece));
//! assert_eq!(made, new);
//! ```
//!
//! # Pitfalls
//! - A script knows nothing of the text that it was made for: keep the two together. Read with another it makes nonsense of it,
//!   or ends early; it never fails in a worse way.
//! - Texts that are not alike are not worth a script: say how long one may become, and do something else when there is none.
//!
//! # How it is built
//! A script is a list of steps, each three numbers and a text: how far from where it was to go in the old text, how
//! much to copy from there, how much to write, and what. Writing passes over as much of the old text as it writes, so
//! that a value in the place of another of its length, which is what most differences are, costs two bytes more than
//! itself.

/// Places that are looked for must have this much in common.
const WINDOW: usize = 16;
/// Every so many bytes of the old text there is a place that can be found.
const STRIDE: usize = 8;
/// The longest text whose places can be numbered.
pub const LONGEST: usize = STRIDE * (u16::MAX as usize);

/// Where to find what in a text.
#[derive(Debug)]
pub struct Index(Box<[u16]>);

impl Index {
    /// Of a text that is at most [`LONGEST`] long.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let mut places = vec![0; (text.len() / STRIDE).next_power_of_two()].into_boxed_slice();
        let last = places.len() - 1;
        for (number, start) in (0..text.len().saturating_sub(WINDOW)).step_by(STRIDE).enumerate() {
            let Some(window) = window(text, start) else { break };
            let place = &mut places[hash(window) & last];
            // Of places that look the same the first is as good as any; zero is none.
            if *place == 0 {
                *place = u16::try_from(number + 1).unwrap_or(0);
            }
        }
        Self(places)
    }

    fn find(&self, window: u128) -> Option<usize> {
        let place = self.0[hash(window) & (self.0.len() - 1)];
        place.checked_sub(1).map(|number| usize::from(number) * STRIDE)
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

/// Writes a script step by step, for those who know without looking where two texts differ.
///
/// ```
/// use kubewright_difference::{Steps, pieces};
///
/// let mut told = Vec::new();
/// let mut steps = Steps::new(&mut told);
/// steps.step(0, 4, b"7");
/// steps.step(5, 3, b"");
/// let mut made = Vec::new();
/// pieces(b"web-1.eu", &told, |piece| made.extend_from_slice(piece));
/// assert_eq!(made, b"web-7.eu");
/// ```
#[derive(Debug)]
pub struct Steps<'a> {
    script: &'a mut Vec<u8>,
    /// Where the old text goes on if nothing is said.
    expected: usize,
}

impl<'a> Steps<'a> {
    /// Appends to `script`, which holds nothing that belongs to another text.
    pub fn new(script: &'a mut Vec<u8>) -> Self {
        Self { script, expected: 0 }
    }

    /// So much of the old text from there, and then this.
    #[inline]
    pub fn step(&mut self, from: usize, alike: usize, written: &[u8]) {
        distance(self.script, from, self.expected);
        number(self.script, alike);
        number(self.script, written.len());
        self.script.extend_from_slice(written);
        self.expected = from + alike + written.len();
    }
}

/// Appends to `script` what makes `new` of `old`. Says whether there is such a script that is not longer than `most`; otherwise
/// what was appended is of no use.
pub fn script(old: &[u8], index: &Index, new: &[u8], most: usize, script: &mut Vec<u8>) -> bool {
    let start = script.len();
    let mut steps = Steps::new(script);
    let (mut at, mut from) = (0, 0);
    while at < new.len() {
        let alike = common(&new[at..], &old[from..]);
        let changed = at + alike;
        let (next, place) = next_alike(old, index, new, changed, from + alike);
        steps.step(from, alike, &new[changed..next]);
        if steps.script.len() - start > most {
            return false;
        }
        (at, from) = (next, place);
    }
    true
}

/// Where the texts are alike again: after a change of the same length, or anywhere.
fn next_alike(old: &[u8], index: &Index, new: &[u8], at: usize, from: usize) -> (usize, usize) {
    for next in at..new.len() {
        let Some(here) = window(new, next) else { break };
        let beside = from + (next - at);
        if window(old, beside) == Some(here) {
            return (next, beside);
        }
        if let Some(place) = index.find(here).filter(|place| window(old, *place) == Some(here)) {
            let before = new[at..next].iter().rev().zip(old[..place].iter().rev());
            let more = before.take_while(|(new, old)| new == old).count();
            return (next - more, place - more);
        }
    }
    (new.len(), 0)
}

/// How much two texts have in common from their beginning.
#[inline]
#[must_use]
pub fn common(a: &[u8], b: &[u8]) -> usize {
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

/// How much two texts have in common at their end.
#[inline]
#[must_use]
pub fn common_at_end(a: &[u8], b: &[u8]) -> usize {
    let mut alike = 0;
    let word = |text: &[u8]| text.last_chunk().copied().map(u64::from_le_bytes);
    while let (Some(one), Some(other)) = (word(&a[..a.len() - alike]), word(&b[..b.len() - alike])) {
        let differs = one ^ other;
        if differs != 0 {
            return alike + (differs.leading_zeros() / 8) as usize;
        }
        alike += size_of::<u64>();
    }
    let rest = a[..a.len() - alike].iter().rev().zip(b[..b.len() - alike].iter().rev());
    alike + rest.take_while(|(a, b)| a == b).count()
}

/// Hands out what a script makes of `old`, piece by piece.
pub fn pieces(old: &[u8], mut script: &[u8], mut piece: impl FnMut(&[u8])) {
    let mut at = 0;
    // A script that was made for this text reads to its end; of any other nothing is left.
    while !script.is_empty() {
        let Some(()) = step(old, &mut script, &mut at, &mut piece) else { return };
    }
}

fn step(old: &[u8], script: &mut &[u8], at: &mut usize, piece: &mut impl FnMut(&[u8])) -> Option<()> {
    let far = read(script)?;
    *at = if far & 1 == 0 { at.checked_add(far >> 1)? } else { at.checked_sub(far >> 1)? };
    let alike = read(script)?;
    piece(old.get(*at..at.checked_add(alike)?)?);
    let written = read(script)?;
    let (text, rest) = script.split_at_checked(written)?;
    piece(text);
    *script = rest;
    *at = at.checked_add(alike)?.checked_add(written)?;
    Some(())
}

/// Forward as an even number, back as an odd one.
#[inline]
fn distance(script: &mut Vec<u8>, to: usize, from: usize) {
    number(script, if to >= from { (to - from) << 1 } else { ((from - to) << 1) | 1 });
}

/// Seven bits at a time, the lowest first.
#[inline]
fn number(script: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        script.push(0x80 | (number & 0x7f).to_le_bytes()[0]);
        number >>= 7;
    }
    script.push(number.to_le_bytes()[0]);
}

fn read(script: &mut &[u8]) -> Option<usize> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = script.split_first()?;
        *script = rest;
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

    fn there_and_back(old: &[u8], new: &[u8]) -> usize {
        let mut told = Vec::new();
        assert!(script(old, &Index::of(old), new, usize::MAX, &mut told));
        let mut made = Vec::new();
        pieces(old, &told, |piece| made.extend_from_slice(piece));
        assert_eq!(made, new);
        told.len()
    }

    #[test]
    fn what_is_alike_costs_next_to_nothing() {
        let fields: Vec<_> = (0..500).map(|n| format!("\"field-{n}\":{{\"value\":{}}},", n * n)).collect();
        let old = fields.concat();
        assert!(there_and_back(old.as_bytes(), old.as_bytes()) < 8);
        let other = old.replace("\"value\":1600}", "\"value\":9999}");
        assert!(there_and_back(old.as_bytes(), other.as_bytes()) < 32);
        let moved = format!("a new beginning{}", &old[100..]);
        assert!(there_and_back(old.as_bytes(), moved.as_bytes()) < 48);
    }

    #[test]
    fn what_is_not_alike_is_not_told_by_the_other() {
        let (old, new) = ([b'a'; 1000], [b'b'; 1000]);
        assert!(!script(&old, &Index::of(&old), &new, 500, &mut Vec::new()));
    }

    #[test]
    fn a_script_for_another_text_ends_early_and_without_a_panic() {
        let (old, new) = ("0123456789abcdef".repeat(20), "0123456789abcdef".repeat(19));
        let mut told = Vec::new();
        assert!(script(old.as_bytes(), &Index::of(old.as_bytes()), new.as_bytes(), 100, &mut told));
        pieces(b"short", &told, |_| {});
        for cut in 0..told.len() {
            pieces(old.as_bytes(), &told[..cut], |_| {});
        }
    }

    proptest! {
        #[test]
        fn what_texts_have_in_common_is_found_from_both_ends(
            begin in "[ab]{0,40}", a in "[ab]{0,9}", b in "[ab]{0,9}", end in "[ab]{0,40}",
        ) {
            let (a, b) = (format!("{begin}{a}{end}"), format!("{begin}{b}{end}"));
            let (a, b) = (a.as_bytes(), b.as_bytes());
            prop_assert_eq!(common(a, b), a.iter().zip(b).take_while(|(a, b)| a == b).count());
            let at_end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(common_at_end(a, b), at_end);
        }

        #[test]
        fn every_text_can_be_told_by_every_other(
            words in prop::collection::vec("[a-d]{1,24}", 0..60),
            picks in prop::collection::vec((0usize..60, "[a-d]{0,20}"), 0..60),
        ) {
            let old = words.concat();
            let word = |n: &usize| words.get(*n).map_or("", String::as_str);
            let new: String = picks.iter().flat_map(|(n, more)| [word(n), more.as_str()]).collect();
            there_and_back(old.as_bytes(), new.as_bytes());
        }
    }
}
