//! The short hashes of templates that end up in names and labels, as upstream computes them.
//!
//! A `ReplicaSet` is named by its template (see `dump.rs` for what is hashed there), and so is the revision of a
//! `DaemonSet`; that of a `StatefulSet` is named by the patch that it holds. The same template gives the same hash, which is
//! what finds an old `ReplicaSet` again on a rollback, here and after a move to another cluster of the same release.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::Value;

use super::dump;

/// Letters and digits without vowels and without the ones that are read wrongly, so that no hash is a word.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The hash of a template; `collisions` tells apart what happened to hash alike.
pub(crate) fn of_template(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let template = value_of(template);
    let hash = fnv_1a(OFFSET, dump::pod_template(&template).as_bytes());
    // Upstream writes its four bytes into a buffer of eight.
    let hash = collisions.map_or(hash, |count| fnv_1a(fnv_1a(hash, &count.to_le_bytes()), &[0; 4]));
    encoded(hash)
}

/// A template as JSON. Through text, as objects are written to the server: one serialiser of a type is enough.
pub(super) fn value_of(template: &PodTemplateSpec) -> Value {
    serde_json::to_vec(template).and_then(|text| serde_json::from_slice(&text)).unwrap_or_default()
}

/// The hash of the patch in a revision.
pub(crate) fn of_revision(data: &Value, collisions: i32) -> String {
    // A serde_json map is sorted by key, as Go's encoder sorts it; that one also keeps HTML from being closed by a string.
    let text = data.to_string();
    let text = text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
    encoded(fnv_1(fnv_1(OFFSET, text.as_bytes()), collisions.to_string().as_bytes()))
}

fn encoded(hash: u32) -> String {
    hash.to_string().bytes().map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect()
}

const OFFSET: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// FNV-1a, 32 bits.
fn fnv_1a(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(PRIME))
}

/// FNV-1, 32 bits.
fn fnv_1(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |hash, byte| hash.wrapping_mul(PRIME) ^ u32::from(*byte))
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

    fn hashed(template: Value, collisions: Option<i32>) -> String {
        of_template(&serde_json::from_value(template).expect("a template"), collisions)
    }

    /// As the server has it after its defaults: what kube-controller-manager was recorded to name `web-5bb7767f96`.
    #[test]
    fn a_template_has_the_hash_that_was_recorded() {
        let container = json!({
            "name": "c", "image": "nginx:1", "resources": {}, "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
        });
        let template = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [container], "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst", "securityContext": {}, "schedulerName": "default-scheduler",
            },
        });
        assert_eq!(hashed(template.clone(), None), "5bb7767f96");
        assert_eq!(hashed(template, Some(3)), "77f9b69b5f");
    }

    /// What Go computed for these.
    #[test]
    fn templates_of_many_parts_and_of_none_have_the_hashes_of_go() {
        let rich: Value = serde_json::from_str(include_str!("hash_tests.json")).expect("JSON");
        assert_eq!(hashed(rich.clone(), None), "6b4c96d98f");
        assert_eq!(hashed(rich, Some(3)), "6fd5865794");
        assert_eq!(hashed(json!({}), None), "54f4c57dcb");
        assert_eq!(
            hashed(json!({"spec": {"containers": [], "volumes": []}, "metadata": {"labels": {}}}), None),
            "54f4c57dcb"
        );
    }

    #[test]
    fn revisions_that_collide_are_told_apart() {
        let patch = json!({"spec": {"template": {"metadata": {"annotations": {"a": "<&>"}}}}});
        assert_ne!(of_revision(&patch, 0), of_revision(&patch, 1));
        assert!(of_revision(&patch, 0).bytes().all(|letter| ALPHABET.contains(&letter)));
    }

    #[test]
    fn fnv_is_the_published_function() {
        assert_eq!(fnv_1a(OFFSET, b""), 0x811c_9dc5);
        assert_eq!(fnv_1a(OFFSET, b"foobar"), 0xbf9c_f968);
        assert_eq!(fnv_1(OFFSET, b"foobar"), 0x31f0_b262);
    }

    #[test]
    fn a_long_name_is_cut_to_what_the_server_takes() {
        assert_eq!(name("web", "abc"), "web-abc");
        assert_eq!(name(&"w".repeat(300), "abc").len(), 253);
    }
}
