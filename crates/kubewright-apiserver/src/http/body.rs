//! Bodies of answers: whole, a list written as it is read, or a stream of changes.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::BoxStream;
use http_body::{Frame, SizeHint};

use crate::{registry::verbs::list::ListAnswer, storage::Object};

/// The body of an answer.
pub struct ApiBody(Kind);

enum Kind {
    Whole(Option<Bytes>),
    List(ListBody),
    Stream(BoxStream<'static, Bytes>),
}

impl std::fmt::Debug for ApiBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Kind::Whole(_) => "ApiBody::Whole",
            Kind::List(_) => "ApiBody::List",
            Kind::Stream(_) => "ApiBody::Stream",
        })
    }
}

impl ApiBody {
    /// A body that is all there.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(Some(bytes.into())))
    }

    /// A list of stored objects.
    pub fn list(list: ListAnswer) -> Self {
        Self(Kind::List(ListBody::new(list)))
    }

    /// A stream.
    pub fn stream(stream: BoxStream<'static, Bytes>) -> Self {
        Self(Kind::Stream(stream))
    }
}

/// Bytes that a list hands to the connection at a time.
const CHUNK: usize = 64 * 1024;

/// A list that copies its items into chunks while the connection takes them: a list of any size costs one chunk.
struct ListBody {
    head: Option<Vec<u8>>,
    /// What stands in front of each item: nothing, or `"kind":…,"apiVersion":…,`.
    prefix: Vec<u8>,
    items: std::vec::IntoIter<Arc<Object>>,
    first: bool,
    left: u64,
}

impl ListBody {
    fn new(list: ListAnswer) -> Self {
        let head = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{},\"items\":[",
            list.ty.list_kind,
            list.ty.api_version(),
            serde_json::Value::Object(list.own_metadata())
        );
        let prefix = if list.ty.typed_items { list.ty.prefix()[1..].to_owned() } else { String::new() };
        let items: usize = list.items.iter().map(|o| o.size() + prefix.len()).sum();
        let commas = list.items.len().saturating_sub(1);
        Self {
            left: (head.len() + items + commas + 2) as u64,
            head: Some(head.into_bytes()),
            prefix: prefix.into_bytes(),
            items: list.items.into_iter(),
            first: true,
        }
    }

    fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let mut chunk = BytesMut::with_capacity(CHUNK.min(usize::try_from(self.left).unwrap_or(CHUNK)));
        if let Some(head) = self.head.take() {
            chunk.put_slice(&head);
        }
        while chunk.len() < CHUNK {
            let Some(item) = self.items.next() else {
                chunk.put_slice(b"]}");
                break;
            };
            if !std::mem::take(&mut self.first) {
                chunk.put_u8(b',');
            }
            chunk.put_u8(b'{');
            chunk.put_slice(&self.prefix);
            item.for_each_member_chunk(|part| chunk.put_slice(part));
        }
        self.left = self.left.saturating_sub(chunk.len() as u64);
        Some(chunk.freeze())
    }
}

impl http_body::Body for ApiBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut self.0 {
            Kind::Whole(bytes) => bytes.take().filter(|b| !b.is_empty()),
            Kind::List(list) => list.next(),
            Kind::Stream(stream) => match futures::Stream::poll_next(stream.as_mut(), cx) {
                Poll::Ready(data) => data,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(data.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Kind::List(list) => list.left == 0,
            Kind::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Kind::List(list) => SizeHint::with_exact(list.left),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}
