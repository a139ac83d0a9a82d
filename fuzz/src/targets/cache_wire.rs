//! Arbitrary bytes as list responses and watch streams, in chunks of any size. An object that can be decoded
//! has the key that its metadata says.

use std::{convert::Infallible, sync::Arc};

use crate::wait;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, client::Body};
use kubewright::cache::{Lazy, ListWatch};

/// Runs the target.
pub fn run(input: &[u8]) {
    let Some((size, rest)) = input.split_first() else { return };
    let size = usize::from(*size).max(1);
    let pieces: Arc<Vec<Bytes>> = Arc::new(rest.chunks(size).map(Bytes::copy_from_slice).collect());
    wait(async {
        let service = tower::service_fn(move |_: Request<Body>| {
            let pieces = Vec::clone(&pieces).into_iter();
            let frames = futures::stream::iter(pieces).map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
            std::future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(frames))))
        });
        let list_watch = ListWatch::<Pod>::new(Client::new(service, "default"));
        if let Ok((objects, _)) = list_watch.list().await {
            objects.iter().for_each(read);
        }
        if let Ok(mut events) = list_watch.watch("1").await {
            while let Some(event) = events.next().await {
                let Ok(event) = event else { break };
                event.object().into_iter().for_each(read);
            }
        }
    });
}

fn read(pod: &Lazy<Pod>) {
    let Ok(decoded) = pod.load() else { return };
    let meta = &decoded.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    assert_eq!(
        (pod.name(), pod.namespace().unwrap_or_default(), pod.uid(), pod.resource_version()),
        (&*text(&meta.name), &*text(&meta.namespace), &*text(&meta.uid), &*text(&meta.resource_version)),
    );
    assert_eq!((pod.generation(), pod.is_deleting()), (meta.generation, meta.deletion_timestamp.is_some()));
}
