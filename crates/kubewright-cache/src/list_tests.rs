//! Whatever a list has, objects that are read by a pattern are what they would be without one.

use std::sync::Mutex;

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;

use super::*;
use crate::{
    fault::Faults,
    wire::{codec::Settings, scan::string_end},
};

/// Everything that can be seen of what a list came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    objects: Vec<String>,
    faults: Vec<String>,
    end: String,
    alike: usize,
}

/// Reads every object in the way that takes longer.
struct Plainly<'a>(Admitting<'a, ConfigMap>);

impl Items for Plainly<'_> {
    fn item(&mut self, text: &[u8], spans: Spans) {
        self.0.item(text, spans);
    }
}

/// Counts those that were not.
struct Counted<'a>(Admitting<'a, ConfigMap>, usize);

impl Items for Counted<'_> {
    fn like_before(&mut self, text: &[u8]) -> Result<usize, Unread> {
        let end = self.0.like_before(text)?;
        self.1 += 1;
        Ok(end)
    }

    fn item(&mut self, text: &[u8], spans: Spans) {
        self.0.item(text, spans);
    }
}

fn shown(object: &Lazy<ConfigMap>) -> String {
    let text = object.kept_text().unwrap();
    let labels: Vec<_> = object.labels().collect();
    let owners: Vec<_> = object.owners().collect();
    format!(
        "{} {} {} {:?} {} {labels:?} {owners:?} {}",
        object.key(),
        object.uid(),
        object.resource_version(),
        object.generation(),
        object.is_deleting(),
        text.escape_ascii(),
    )
}

/// Reads a list of these items in frames of this size.
fn read(items: &[Vec<u8>], size: usize, keep_managed_fields: bool, plainly: bool) -> Seen {
    let faults = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&faults);
    let mut settings = Settings::default();
    settings.keep_managed_fields = keep_managed_fields;
    settings.faults = Faults::to(move |fault| told.lock().unwrap().push(fault.to_string()));
    let codec = Codec::<ConfigMap>::new("v1".into(), "ConfigMap".into(), settings);
    let list = [&b"{\"items\":["[..], &items.join(&b","[..]), b"],\"metadata\":{\"resourceVersion\":\"7\"}}"]
        .concat();
    let (mut splitter, mut scratch) = (ListSplitter::new(), Vec::new());
    let mut seen = Seen::default();
    let mut fed = Ok(());
    for frame in list.chunks(size) {
        let admitting = Admitting {
            codec: &codec,
            scratch: &mut scratch,
            alike: codec.take_alike(),
            known: &|_| None,
            objects: Vec::new(),
        };
        let admitting = if plainly {
            let mut plainly = Plainly(admitting);
            fed = splitter.feed(frame, &mut plainly);
            plainly.0
        } else {
            let mut counted = Counted(admitting, 0);
            fed = splitter.feed(frame, &mut counted);
            seen.alike += counted.1;
            counted.0
        };
        seen.objects.extend(admitting.objects.iter().map(shown));
        codec.give_back(admitting.alike);
        if fed.is_err() {
            break;
        }
    }
    seen.end = format!("{:?}", fed.and_then(|()| splitter.finish()));
    seen.faults = std::mem::take(&mut *faults.lock().unwrap());
    seen
}

const FORMS: [&str; 6] = [
    r#"{"metadata":{"name":"settings-1","namespace":"team-1","uid":"0001-0000-4000","resourceVersion":"41","creationTimestamp":"2026-08-01T00:00:00Z","labels":{"app":"service-1"},"managedFields":[{"manager":"kubectl","time":"2026-08-01T00:00:00Z","fieldsV1":{"f:data":{".":{},"f:color":{}}}}]},"data":{"color":"blue","size":"1"}}"#,
    r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"managedFields":[{"manager":"m"}],"name":"a","generation":3,"ownerReferences":[{"apiVersion":"apps/v1","kind":"Set","name":"s","uid":"o-1","controller":true,"blockOwnerDeletion":true},{"uid":"o-2"}],"labels":{"app":"x","tier":"y"},"annotations":{"note":"said by somebody some time ago"},"uid":"u","resourceVersion":"5"},"data":{}}"#,
    r#"{ "metadata" : { "name" : "spaced" , "namespace" : null , "labels" : null , "uid":"u", "deletionTimestamp":"2026-08-01T00:00:00Z" } , "data" : { "a" : [ "b" , "c" ] } }"#,
    r#"{"metadata":{"name":"first","managedFields":[]},"data":{"a":"b"},"metadata":{"name":"second","namespace":"n","uid":"u"}}"#,
    r#"{"metadata":{"name":"w\u0065b","namespace":"n","labels":{"a\"b":"c\\d","é":"ü"}},"immutable":true,"binaryData":{"a":"Ynl0ZXM="}}"#,
    r#"{"metadata":["listed","n","u","7",null,null,{"a":"b"},[["v1","Pod","p","o"]]],"data":{"long":"as every other one is, and as every other one is, and as every other one is"}}"#,
];

/// What may stand in the place of a string: raw, as in the text.
const STRINGS: [&str; 14] = [
    r#""settings-2""#,
    r#""team-1""#,
    r#""""#,
    r#""é""#,
    r#""a\"b""#,
    r#""\u0061""#,
    r#""\ud800""#,
    r#""back\\""#,
    "\"\u{1}\"",
    r#""}],[{""#,
    r#""name""#,
    r#""managedFields""#,
    "null",
    "17",
];

/// The text with its string of this number replaced, whether that is a key or a value.
fn with_string(text: &[u8], number: usize, to: &[u8]) -> Vec<u8> {
    let (mut at, mut spans) = (0, Vec::new());
    while at < text.len() {
        at += 1;
        if text[at - 1] == b'"' {
            let Ok(end) = string_end(text, at) else { break };
            spans.push(at - 1..end + 1);
            at = end + 1;
        }
    }
    match spans.get(number % spans.len().max(1)) {
        Some(span) => [&text[..span.start], to, &text[span.end..]].concat(),
        None => text.to_vec(),
    }
}

/// Most objects of a list have the same form, with other strings in it here and there; some are broken.
fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let form = prop_oneof![8 => Just(None), 1 => (0..FORMS.len()).prop_map(Some)];
    let string = prop_oneof![
        4 => "[a-z0-9-]{0,12}".prop_map(|text| format!("\"{text}\"").into_bytes()),
        1 => prop::sample::select(&STRINGS[..]).prop_map(|text| text.as_bytes().to_vec()),
    ];
    let strings = prop::collection::vec((any::<usize>(), string), 0..4);
    let broken = prop_oneof![15 => Just(None), 1 => (any::<usize>(), any::<u8>()).prop_map(Some)];
    let item = (form, strings, broken);
    (0..FORMS.len(), prop::collection::vec(item, 1..24)).prop_map(|(usual, items)| {
        let made = items.into_iter().map(|(form, strings, broken)| {
            let mut text = FORMS[form.unwrap_or(usual)].as_bytes().to_vec();
            for (number, to) in strings {
                text = with_string(&text, number, &to);
            }
            if let Some((at, byte)) = broken {
                let at = at % text.len();
                text[at] = byte;
            }
            text
        });
        made.collect()
    })
}

proptest! {
    #[test]
    fn objects_read_by_a_pattern_are_what_they_would_be_without_one(
        items in items(),
        size in prop_oneof![1usize..64, 200usize..2000, Just(usize::MAX)],
        keep_managed_fields: bool,
    ) {
        let plainly = read(&items, usize::MAX, keep_managed_fields, true);
        let seen = read(&items, size, keep_managed_fields, false);
        prop_assert_eq!(Seen { alike: 0, ..seen }, plainly);
    }
}

#[test]
fn objects_of_one_form_are_read_by_a_pattern_all_but_the_first() {
    let items: Vec<_> = (0..100)
        .map(|i| {
            FORMS[0].replace("settings-1", &format!("settings-{i}")).replace("\"41\"", &format!("\"{i}\""))
        })
        .map(String::into_bytes)
        .collect();
    for size in [7, 100, 1024, 5000, usize::MAX] {
        let seen = read(&items, size, false, false);
        assert_eq!((seen.objects.len(), seen.alike), (100, 99), "{size}");
    }
}

#[test]
fn when_another_form_comes_to_stay_one_of_its_objects_is_the_next_pattern() {
    let items: Vec<_> = (0..100)
        .map(|i| {
            FORMS[usize::from(i >= 50)].replace("resourceVersion\":\"", &format!("resourceVersion\":\"{i}"))
        })
        .map(String::into_bytes)
        .collect();
    let seen = read(&items, usize::MAX, false, false);
    assert_eq!((seen.objects.len(), seen.alike), (100, 49 + 50 - 8));
}
