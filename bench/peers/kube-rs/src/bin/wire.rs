//! What protobuf on the wire would give an informer, on the Pods of a server: `wire --kubeconfig F --count N`.
//!
//! The same Pods are received in both forms, packed as kubewright's cache packs them (without `managedFields`, with a
//! dictionary), and decoded into types: `k8s-openapi`'s from JSON, `k8s-pb`'s from protobuf. Users have the former; no
//! conversion between the two is counted. Finding the key of an object in the bytes is counted for protobuf only: for
//! JSON it is in docs/performance.md.

use bytes::Bytes;
use http::{Request, header::ACCEPT};
use http_body_util::BodyExt as _;
use k8s_openapi::{List, api::core::v1::Pod};
use k8s_pb::api::core::v1 as pb;
use kube::{
    Client,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use mimalloc::MiMalloc;
use prost::{
    Message as _,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};
use serde_json::Value;

#[path = "../../../../src/arguments.rs"]
#[allow(dead_code, reason = "shared with the programs of kubewright, which use all of it")]
mod arguments;
#[path = "../../../../src/measure.rs"]
#[allow(dead_code, reason = "shared with the programs of kubewright, which use all of it")]
mod measure;

use arguments::Arguments;
use measure::{Line, Phase};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// As many as client-go asks for at a time.
const PAGE: usize = 500;
/// How large a dictionary the cache trains, and on how many objects.
const DICTIONARY: (usize, usize) = (16 * 1024, 200);
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments = Arguments::of_process(&[]);
    let count: usize = arguments.get("count", 10_000);
    let kubeconfig = Kubeconfig::read_from(arguments.text("kubeconfig", "")).expect("--kubeconfig is a file");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.expect("it is a good one")).expect("it is a good one");

    let text = receive(&client, "application/json", "json", count).await;
    let messages = receive(&client, PROTOBUF, "protobuf", count).await;

    let phase = Phase::start();
    let decoded: usize = text.iter().map(|page| json_page(page).items.len()).sum();
    phase.stop(decoded).print("decode", "json");
    let phase = Phase::start();
    let decoded: usize = messages.iter().map(|page| list_of(page).items.len()).sum();
    phase.stop(decoded).print("decode", "protobuf");

    let phase = Phase::start();
    let found: Vec<Found> = messages.iter().flat_map(|page| items(raw(page))).map(find).collect();
    phase.stop(found.len()).print("find", "protobuf");
    assert!(
        found.iter().all(|found| !found.name.is_empty() && !found.version.is_empty()),
        "every Pod has both"
    );

    pack("json", &text.iter().flat_map(|page| json_objects(page)).collect::<Vec<_>>());
    pack("protobuf", &found.iter().map(Found::kept).collect::<Vec<_>>());
}

/// All pages in one form: what a client does with them that does nothing with them.
async fn receive(client: &Client, accept: &str, form: &str, count: usize) -> Vec<Bytes> {
    let (mut pages, mut next) = (Vec::new(), String::new());
    let phase = Phase::start();
    while pages.len() * PAGE < count {
        let path = format!("/api/v1/pods?limit={PAGE}&continue={next}");
        let request = Request::get(path).header(ACCEPT, accept).body(Body::empty()).expect("a good request");
        let answer = client.send(request).await.expect("the server answers");
        assert!(answer.status().is_success(), "{}", answer.status());
        let page = answer.into_body().collect().await.expect("the whole page").to_bytes();
        next = if form == "json" {
            // The metadata of a list is its first member.
            let at = page.windows(12).position(|part| part == b"\"continue\":\"");
            let rest = at.map_or(&[][..], |at| &page[at + 12..]);
            String::from_utf8_lossy(rest.split(|byte| *byte == b'"').next().unwrap_or_default()).into_owned()
        } else {
            let metadata =
                fields(raw(&page)).find(|field| field.number == 1).map_or(&[][..], |field| field.content);
            let next =
                fields(metadata).find(|field| field.number == 3).map_or(&[][..], |field| field.content);
            String::from_utf8_lossy(next).into_owned()
        };
        pages.push(page);
        if next.is_empty() {
            break;
        }
    }
    let bytes: usize = pages.iter().map(Bytes::len).sum();
    each(phase.stop(pages.len() * PAGE), bytes, pages.len() * PAGE).print("receive", form);
    pages
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn each(line: Line, bytes: usize, count: usize) -> Line {
    line.with("bytes_each", bytes as f64 / count as f64)
}

fn json_page(page: &[u8]) -> List<Pod> {
    serde_json::from_slice(page).expect("a list of Pods")
}

fn list_of(page: &Bytes) -> pb::PodList {
    pb::PodList::decode(raw(page)).expect("a list of Pods")
}

/// The objects of a page without their `managedFields`, as the cache keeps them.
fn json_objects(page: &[u8]) -> Vec<Vec<u8>> {
    let mut list: Value = serde_json::from_slice(page).expect("a list");
    let objects = list["items"].as_array_mut().expect("items");
    objects
        .iter_mut()
        .map(|object| {
            object["metadata"].as_object_mut().expect("metadata").remove("managedFields");
            serde_json::to_vec(object).expect("it was JSON")
        })
        .collect()
}

/// The message of a document, without its envelope.
fn raw(document: &[u8]) -> &[u8] {
    let body = document.strip_prefix(b"k8s\0").expect("a document begins with its mark");
    fields(body).find(|field| field.number == 2).expect("an envelope has a message").content
}

struct Field<'b> {
    number: u32,
    /// The field with its key, and what is in it.
    whole: &'b [u8],
    content: &'b [u8],
}

/// The fields of a message.
fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let start = rest;
        if rest.is_empty() {
            return None;
        }
        let (number, form) = decode_key(&mut rest).expect("a key");
        let content = if form == WireType::LengthDelimited {
            let length = usize::try_from(decode_varint(&mut rest).expect("a length")).expect("it fits");
            let (content, behind) = rest.split_at(length);
            rest = behind;
            content
        } else {
            skip_field(form, number, &mut rest, DecodeContext::default()).expect("a field");
            &[]
        };
        Some(Field { number, whole: &start[..start.len() - rest.len()], content })
    })
}

fn items(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(list).filter(|field| field.number == 2).map(|field| field.content)
}

/// What a cache needs to know of an object, and where its `managedFields` are.
#[derive(Default)]
struct Found<'b> {
    object: &'b [u8],
    metadata: &'b [u8],
    name: &'b [u8],
    version: &'b [u8],
}

fn find(object: &[u8]) -> Found<'_> {
    let mut found = Found { object, ..Found::default() };
    // The metadata is the first field of an object; what comes after it need not be looked at.
    found.metadata = fields(object).find(|field| field.number == 1).expect("metadata").content;
    for field in fields(found.metadata) {
        match field.number {
            1 => found.name = field.content,
            6 => found.version = field.content,
            _ => {}
        }
    }
    found
}

impl Found<'_> {
    /// The object without `managedFields`. The length of the metadata is left as it was: only the size counts here.
    fn kept(&self) -> Vec<u8> {
        let mut kept = Vec::with_capacity(self.object.len());
        for field in fields(self.metadata).filter(|field| field.number != 17) {
            kept.extend_from_slice(field.whole);
        }
        for field in fields(self.object).filter(|field| field.number != 1) {
            kept.extend_from_slice(field.whole);
        }
        kept
    }
}

/// Packs and unpacks each with a dictionary made of some of them.
fn pack(form: &str, objects: &[Vec<u8>]) {
    let samples = &objects[..DICTIONARY.1.min(objects.len())];
    let dictionary = zstd::dict::from_samples(samples, DICTIONARY.0).expect("enough samples");
    let mut packer = zstd::bulk::Compressor::with_dictionary(1, &dictionary).expect("a compressor");
    let phase = Phase::start();
    let packed: Vec<Vec<u8>> =
        objects.iter().map(|object| packer.compress(object).expect("it packs")).collect();
    let line = phase.stop(objects.len());
    let bytes = packed.iter().map(Vec::len).sum();
    let unpacked = objects.iter().map(Vec::len).sum();
    each(line, bytes, objects.len()).print("pack", form);
    let mut unpacker = zstd::bulk::Decompressor::with_dictionary(&dictionary).expect("a decompressor");
    let phase = Phase::start();
    for (packed, object) in packed.iter().zip(objects) {
        assert_eq!(unpacker.decompress(packed, object.len()).expect("it unpacks").len(), object.len());
    }
    each(phase.stop(objects.len()), unpacked, objects.len()).print("unpack", form);
}
