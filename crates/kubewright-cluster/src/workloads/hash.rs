//! The short hash of a template that ends up in names and labels.
//!
//! Upstream hashes a dump of the Go value; nobody else can compute that, and it changes between versions. Ours is a hash
//! of the template's canonical JSON, in the same alphabet: the same template gives the same hash for ever, which is
//! what finds an old `ReplicaSet` again on a rollback.

use serde::Serialize;

/// Letters and digits without vowels and without the ones that are read wrongly, so that no hash is a word.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The hash of a value; `collisions` tells apart what happened to hash alike.
pub(crate) fn short(value: &impl Serialize, collisions: Option<i32>) -> String {
    // A serde_json map is sorted by key, so equal values give equal text.
    let text = serde_json::to_value(value).map(|value| value.to_string()).unwrap_or_default();
    let mut hash = fnv(OFFSET, text.as_bytes());
    if let Some(collisions) = collisions {
        hash = fnv(hash, &collisions.to_le_bytes());
    }
    hash.to_string().bytes().map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect()
}

const OFFSET: u32 = 0x811c_9dc5;

/// FNV-1a, 32 bits.
fn fnv(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// `prefix-hash`, with the prefix cut so that the name is not too long for the server.
pub(crate) fn name(prefix: &str, hash: &str) -> String {
    let room = 253usize.saturating_sub(hash.len() + 1);
    let cut = prefix
        .char_indices()
        .map(|(at, letter)| at + letter.len_utf8())
        .take_while(|end| *end <= room)
        .last();
    format!("{}-{hash}", &prefix[..cut.unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_hash_alike_and_collisions_tell_them_apart() {
        let one = short(&json!({"a": 1, "b": [2]}), None);
        assert_eq!(one, short(&json!({"b": [2], "a": 1}), None));
        assert_ne!(one, short(&json!({"a": 2, "b": [2]}), None));
        assert_ne!(one, short(&json!({"a": 1, "b": [2]}), Some(1)));
        assert!(one.bytes().all(|letter| ALPHABET.contains(&letter)), "{one}");
    }

    #[test]
    fn fnv_is_the_published_function() {
        assert_eq!(fnv(OFFSET, b""), 0x811c_9dc5);
        assert_eq!(fnv(OFFSET, b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn a_long_name_is_cut_to_what_the_server_takes() {
        assert_eq!(name("web", "abc"), "web-abc");
        assert_eq!(name(&"w".repeat(300), "abc").len(), 253);
    }
}
