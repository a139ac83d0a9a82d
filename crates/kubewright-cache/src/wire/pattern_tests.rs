use super::*;
use crate::wire::{pack::Packer, scan::Scanner};

const ITEM: &str = r#"{"metadata":{"name":"a-1","namespace":"shop","uid":"u-1","resourceVersion":"41","labels":{"app":"web","of":"x"},"ownerReferences":[{"kind":"Set","uid":"o-1","name":"set","apiVersion":"apps/v1","controller":true}],"managedFields":[{"manager":"kubectl","time":"2026-01-01T00:00:00Z"}]},"data":{"color":"blue","text":"as every other one has it, and as long as that"}}"#;

/// Creates a base as a codec would, with a header in the place of the brace.
fn item_base(text: &str) -> Option<ItemBase> {
    let mut scanner = Scanner::new();
    scanner.advance(text.as_bytes());
    let spans = scanner.into_spans();
    let text_stored = stored(text);
    let stored = Stored {
        base: Packer::new().base(text_stored.as_bytes()),
        size: text_stored.len(),
        header: HEADER.len(),
        cut: spans.cut(),
    };
    ItemBase::new(text.as_bytes(), spans.metadata.clone()?, stored, |bytes| bytes.into())
}

const HEADER: &str = r#"{"kind":"Map","#;

fn stored(text: &str) -> String {
    let without = crate::wire::scan::without_managed_fields(text.as_bytes());
    format!("{HEADER}{}", &String::from_utf8_lossy(&without)[1..])
}

/// Creates a base for tests that need any.
pub(crate) fn any() -> ItemBase {
    item_base(ITEM).unwrap()
}

#[test]
fn an_item_of_the_same_structure_matches() {
    let other = ITEM
        .replace("a-1", "a-207")
        .replace("u-1", "2-u")
        .replace("\"41\"", "\"9000\"")
        .replace("\"web\"", "\"shop\"")
        .replace("o-1", "o-22")
        .replace("2026", "2027")
        .replace("blue", "b\\\"}é");
    let (base, mut delta) = (any(), Vec::new());
    let followed = format!("{other},{{}}]");
    let read = base.compare(followed.as_bytes(), &mut delta).map_err(|_| ()).unwrap();
    assert_eq!(read.end, other.len());
    assert_eq!((read.namespace, read.name), (&b"shop"[..], &b"a-207"[..]));
    let meta = read.meta(|bytes| bytes.into()).unwrap();
    assert_eq!((meta.uid(), meta.resource_version()), ("2-u", "9000"));
    assert_eq!(meta.labels().collect::<Vec<_>>(), [("app", "shop"), ("of", "x")]);
    let owners: Vec<_> =
        meta.owners().map(|owner| (owner.kind, owner.name, owner.uid, owner.controller)).collect();
    assert_eq!(owners, [("Set", "set", "o-22", true)]);
    let text = read.packed(&delta).unpack(<[u8]>::to_vec).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), stored(&other));
}

#[test]
fn an_incomplete_item_may_match_and_one_of_another_structure_does_not() {
    let (base, mut delta) = (any(), Vec::new());
    let mut read = |text: &str| base.compare(text.as_bytes(), &mut delta).map(|read| read.end);
    let other = ITEM.replace("a-1", "another").replace("blue", "green");
    for end in 1..other.len() {
        assert_eq!(read(&other[..end]), Err(Mismatch::Incomplete), "{end}");
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
        assert_eq!(read(&ITEM.replace(from, to)), Err(Mismatch::Different), "{to}");
    }
}

#[test]
fn an_item_with_a_large_delta_or_a_large_text_does_not_match() {
    let (base, mut delta) = (any(), Vec::new());
    let mut read = |text: &str| base.compare(text.as_bytes(), &mut delta).map(|read| read.end);
    for length in [200, 2 * SMALL] {
        let own: String = ('a'..='w').cycle().take(length).collect();
        assert_eq!(read(&ITEM.replace("blue", &own)), Err(Mismatch::Different));
    }
    let endless = ITEM.replace("blue", &"b".repeat(3 * SMALL));
    assert_eq!(
        read(&endless[..ITEM.len() + 2 * SMALL]),
        Err(Mismatch::Different),
        "its end is not waited for"
    );
}

#[test]
fn unusual_objects_are_no_base() {
    for text in [
        r#"{"metadata":["name","namespace"]}"#,
        r#"{"metadata":{"name":"x","ownerReferences":[["v1","Pod","p","u"]]}}"#,
        r#"{"metadata":{"n\u0061me":"x"}}"#,
        r#"{"metadata":{"name":"x"},"data":{"a":}}"#,
        r#"{"metadata":{"name":"x"},"data":["a" "b"]}"#,
    ] {
        assert!(item_base(text).is_none(), "{text}");
    }
    let long = ITEM.replace("kubectl", &"k".repeat(MAX_TEXT));
    assert!(item_base(&long).is_none());
}
