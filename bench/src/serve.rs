//! In-process API server with prepared responses, to measure the client alone.

use std::{convert::Infallible, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use kube::{Client, client::Body};

/// Size of a TLS record.
const FRAME: usize = 16 * 1024;

/// Response body, frame by frame.
pub type Frames = Box<dyn Iterator<Item = Bytes> + Send>;

/// Creates a client whose lists return `list`, and whose watches return `watch` and then stay open.
pub fn client(
    list: impl Fn() -> Frames + Send + Sync + 'static,
    watch: impl Fn() -> Frames + Send + Sync + 'static,
) -> Client {
    let (list, watch) = (Arc::new(list), Arc::new(watch));
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=");
        let frames = futures::stream::iter(if is_watch { watch() } else { list() });
        let frames = frames.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
        let body: UnsyncBoxBody<Bytes, Infallible> = if is_watch {
            StreamBody::new(frames.chain(futures::stream::pending())).boxed_unsync()
        } else {
            StreamBody::new(frames).boxed_unsync()
        };
        std::future::ready(Ok::<_, Infallible>(Response::new(body)))
    });
    Client::new(service, "default")
}

/// Splits text into frames of equal size, generated on demand.
pub fn framed(mut pieces: impl Iterator<Item = String> + Send + 'static) -> Frames {
    let mut rest = BytesMut::new();
    Box::new(std::iter::from_fn(move || {
        while rest.len() < FRAME {
            match pieces.next() {
                Some(piece) => rest.extend_from_slice(piece.as_bytes()),
                None => break,
            }
        }
        let length = rest.len().min(FRAME);
        (length > 0).then(|| rest.split_to(length).freeze())
    }))
}

/// Generates all frames in advance.
pub fn prepared(
    pieces: impl Iterator<Item = String> + Send + 'static,
) -> impl Fn() -> Frames + Send + Sync + 'static {
    let frames: Arc<Vec<Bytes>> = Arc::new(framed(pieces).collect());
    move || {
        let frames = Arc::clone(&frames);
        Box::new((0..frames.len()).map(move |at| frames[at].clone()))
    }
}
