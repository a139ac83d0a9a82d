//! An API server of prepared answers, inside the process: what is measured is the client alone.

use std::{convert::Infallible, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt as _};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use kube::{Client, client::Body};

/// What a TLS connection hands over at a time.
const FRAME: usize = 16 * 1024;

type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// A client whose lists are the text of `list` and whose watches are the text of `watch`, then silence.
pub fn client<L, W>(list: L, watch: W) -> Client
where
    L: Fn() -> Box<dyn Iterator<Item = String> + Send> + Send + Sync + 'static,
    W: Fn() -> Box<dyn Iterator<Item = String> + Send> + Send + Sync + 'static,
{
    let (list, watch) = (Arc::new(list), Arc::new(watch));
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        let answer: Answer = if query.contains("watch=") {
            body(framed(watch()).chain(futures::stream::pending()))
        } else {
            body(framed(list()))
        };
        std::future::ready(Ok::<_, Infallible>(Response::new(answer)))
    });
    Client::new(service, "default")
}

fn body(frames: impl Stream<Item = Bytes> + Send + 'static) -> Answer {
    StreamBody::new(frames.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
}

/// Pieces of text as frames of equal size, made while they are asked for.
fn framed(mut pieces: Box<dyn Iterator<Item = String> + Send>) -> impl Stream<Item = Bytes> + Send {
    let mut rest = BytesMut::new();
    futures::stream::iter(std::iter::from_fn(move || {
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
