use super::*;
use crate::wire::{pack::Packer, scan::Scanner};

const MODEL: &str = r#"{"metadata":{"name":"a-1","namespace":"shop","uid":"u-1","resourceVersion":"41","labels":{"app":"web","of":"x"},"ownerReferences":[{"kind":"Set","uid":"o-1","name":"set","apiVersion":"apps/v1","controller":true}],"managedFields":[{"manager":"kubectl","time":"2026-01-01T00:00:00Z"}]},"data":{"color":"blue","text":"as every other one has it, and as long as that"}}"#;

/// What a codec would make of it, with a header in the place of the brace.
fn pattern(text: &str) -> Option<Pattern> {
    let mut scanner = Scanner::new();
    scanner.advance(text.as_bytes());
    let spans = scanner.into_spans();
    let kept = kept(text);
    let kept = Kept {
        text: Packer::new().model(kept.as_bytes()),
        size: kept.len(),
        header: HEADER.len(),
        cut: spans.cut(),
    };
    Pattern::of(text.as_bytes(), spans.metadata.clone()?, kept, |bytes| bytes.into())
}

const HEADER: &str = r#"{"kind":"Map","#;

fn kept(text: &str) -> String {
    let without = crate::wire::scan::without_managed_fields(text.as_bytes());
    format!("{HEADER}{}", &String::from_utf8_lossy(&without)[1..])
}

/// Any one.
pub(crate) fn any() -> Pattern {
    pattern(MODEL).unwrap()
}

#[test]
fn an_object_of_the_same_form_is_read_by_what_differs() {
    let other = MODEL
        .replace("a-1", "a-207")
        .replace("u-1", "2-u")
        .replace("\"41\"", "\"9000\"")
        .replace("\"web\"", "\"shop\"")
        .replace("o-1", "o-22")
        .replace("2026", "2027")
        .replace("blue", "b\\\"}é");
    let (pattern, mut script) = (any(), Vec::new());
    let followed = format!("{other},{{}}]");
    let read = pattern.read(followed.as_bytes(), &mut script).map_err(|_| ()).unwrap();
    assert_eq!(read.end, other.len());
    assert_eq!((read.namespace, read.name), (&b"shop"[..], &b"a-207"[..]));
    let meta = read.meta(|bytes| bytes.into()).unwrap();
    assert_eq!((meta.uid(), meta.resource_version()), ("2-u", "9000"));
    assert_eq!(meta.labels().collect::<Vec<_>>(), [("app", "shop"), ("of", "x")]);
    let owners: Vec<_> =
        meta.owners().map(|owner| (owner.kind, owner.name, owner.uid, owner.controller)).collect();
    assert_eq!(owners, [("Set", "set", "o-22", true)]);
    let text = read.packed(&script).unpack(<[u8]>::to_vec).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), kept(&other));
}

#[test]
fn an_object_that_goes_on_may_yet_fit_and_one_of_another_form_does_not() {
    let (pattern, mut script) = (any(), Vec::new());
    let mut read = |text: &str| pattern.read(text.as_bytes(), &mut script).map(|read| read.end);
    let other = MODEL.replace("a-1", "another").replace("blue", "green");
    for end in 1..other.len() {
        assert_eq!(read(&other[..end]), Err(Unread::Incomplete), "{end}");
    }
    assert_eq!(read(&other), Ok(other.len()));
    for (from, to) in [
        ("\"color\"", "\"colour\""),
        ("\"blue\"", "null"),
        ("true", "false"),
        ("a-1", ""),
        ("a-1", "é"),
        ("a-1", "\\u0061"),
        ("\"web\"", "\"\u{1}\""),
        (",\"uid\"", ", \"uid\""),
        ("}}", "},\"more\":1}"),
    ] {
        assert_eq!(read(&MODEL.replace(from, to)), Err(Unread::Unlike), "{to}");
    }
}

#[test]
fn what_has_much_of_its_own_or_is_no_longer_small_is_left_to_others() {
    let (pattern, mut script) = (any(), Vec::new());
    let mut read = |text: &str| pattern.read(text.as_bytes(), &mut script).map(|read| read.end);
    for length in [200, 2 * SMALL] {
        let own: String = ('a'..='w').cycle().take(length).collect();
        assert_eq!(read(&MODEL.replace("blue", &own)), Err(Unread::Unlike));
    }
    let endless = MODEL.replace("blue", &"b".repeat(3 * SMALL));
    assert_eq!(
        read(&endless[..MODEL.len() + 2 * SMALL]),
        Err(Unread::Unlike),
        "nobody waits for the end of it"
    );
}

#[test]
fn what_is_unusual_is_no_pattern() {
    for text in [
        r#"{"metadata":["name","namespace"]}"#,
        r#"{"metadata":{"name":"x","ownerReferences":[["v1","Pod","p","u"]]}}"#,
        r#"{"metadata":{"n\u0061me":"x"}}"#,
        r#"{"metadata":{"name":"x"},"data":{"a":}}"#,
        r#"{"metadata":{"name":"x"},"data":["a" "b"]}"#,
    ] {
        assert!(pattern(text).is_none(), "{text}");
    }
    let long = MODEL.replace("kubectl", &"k".repeat(LONGEST));
    assert!(pattern(&long).is_none());
}
