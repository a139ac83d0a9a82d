//! The field of a document that a position in its text belongs to.

use std::fmt::Write as _;

/// One container that the position lies in.
enum Within<'t> {
    /// An object, and its member, quoted as it stands in the text.
    Object(Option<&'t str>),
    /// An array, and the place in it.
    Array(usize),
}

/// Returns the path of the value that this error of `serde_json` is about: `.spec.containers[0].image`. It is the one that ends
/// or is about to begin at the position of the error.
///
/// Tracking the path while deserialising would need a second deserialiser of every type, for code that rarely runs.
pub(crate) fn path_at(text: &str, error: &serde_json::Error) -> String {
    let start = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let end = (start + error.column()).min(text.len());
    let bytes = &text.as_bytes()[..end];
    let mut within: Vec<Within<'_>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => within.push(Within::Object(None)),
            b'[' => within.push(Within::Array(0)),
            b'}' | b']' => drop(within.pop()),
            b',' => match within.last_mut() {
                Some(Within::Object(member)) => *member = None,
                Some(Within::Array(place)) => *place += 1,
                None => {}
            },
            b'"' => {
                let from = at;
                at = string_end(bytes, at);
                if let Some(Within::Object(member @ None)) = within.last_mut() {
                    *member = text.get(from..=at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    // An array in the place of a struct is refused after its bracket was read, and before anything in it.
    let rest = text.as_bytes()[end..].trim_ascii_start();
    if bytes.ends_with(b"[") && !rest.starts_with(b"[") && refuses_array(error) {
        within.pop();
    }
    path(&within)
}

fn refuses_array(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("invalid type: sequence")
}

/// Returns where the string that begins at `at` has its closing quote, or the text its end.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'"' => return end,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    bytes.len()
}

fn path(within: &[Within<'_>]) -> String {
    let mut path = String::new();
    for container in within {
        match container {
            Within::Object(Some(member)) => {
                path.push('.');
                path.push_str(&serde_json::from_str::<String>(member).unwrap_or_default());
            }
            Within::Object(None) => {}
            Within::Array(place) => {
                let _ = write!(path, "[{place}]");
            }
        }
    }
    if path.is_empty() { ".".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn path_of(text: &str) -> String {
        let error = serde_json::from_str::<Pod>(text).unwrap_err();
        path_at(text, &error)
    }

    #[test]
    fn an_error_is_at_the_value_that_does_not_fit() {
        for (text, path) in [
            (r#"{"metadata":{"name":1}}"#, ".metadata.name"),
            (r#"{"metadata":{"name":{"a":"b"}}}"#, ".metadata.name"),
            (r#"{"metadata":{"labels":{"a.b/c":[]}}}"#, ".metadata.labels.a.b/c"),
            (r#"{"metadata":{"labels":{"q\"\\":1}}}"#, ".metadata.labels.q\"\\"),
            (
                r#"{"spec":{"containers":[{"name":"a"},{"name":"b","ports":[{"containerPort":"x"}]}]}}"#,
                ".spec.containers[1].ports[0].containerPort",
            ),
            (r#"{"spec":{"containers":[{"name":"a"},"b"]}}"#, ".spec.containers[1]"),
            (r#"{"spec":{"containers":["b"]}}"#, ".spec.containers[0]"),
            (r#"{"spec":{"containers":[{"name":"a","args":[{}]}]}}"#, ".spec.containers[0].args[0]"),
            (r#"{"spec":["b"]}"#, ".spec"),
            (r#"{"spec":{"containers":{"name":"b"}}}"#, ".spec.containers"),
            ("{\n \"spec\": {\n  \"hostNetwork\": \"yes\"\n }\n}", ".spec.hostNetwork"),
            ("[1]", "."),
            ("7", "."),
        ] {
            assert_eq!(path_of(text), path, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_cut_off_has_the_path_of_its_end() {
        assert_eq!(path_of(r#"{"metadata":{"labels":{"a":"b"#), ".metadata.labels.a");
        assert_eq!(path_of(r#"{"spec":{"containers":[{"#), ".spec.containers[0]");
        assert_eq!(path_of(r#"{"spec":é"#), ".spec", "the error is within a character");
    }
}
