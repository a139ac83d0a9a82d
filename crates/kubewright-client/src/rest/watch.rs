//! A watch: one JSON event to a line, for as long as it lasts.

use std::{
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes, BytesMut};
use futures::Stream;
use kube::core::WatchEvent;
use serde::de::DeserializeOwned;

use super::{BodyStream, decode, response::interrupted};
use crate::error::ApiError;

/// The events of a watch, as a [`Stream`].
///
/// - An event that does not fit `K` is an error and the stream goes on: one bad object must not stop a watch.
/// - An `ERROR` event becomes [`ApiError::Status`] and ends the stream, as it ends the watch.
/// - A stream that breaks off in the middle of an event ends with [`ApiError::Interrupted`]; one that ends
///   between two events just ends, and the caller watches again from the last resource version.
///
/// This is the raw watch. To keep a copy of the objects, use an informer, which also knows how to go on.
#[derive(Debug)]
pub struct WatchStream<K> {
    body: BodyStream,
    lines: Lines,
    ended: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K> WatchStream<K> {
    pub(crate) fn new(body: BodyStream) -> Self {
        Self { body, lines: Lines::default(), ended: false, kind: PhantomData }
    }

    fn end(&mut self, last: Option<ApiError>) -> Poll<Option<Result<WatchEvent<K>, ApiError>>> {
        self.ended = true;
        Poll::Ready(last.map(Err))
    }
}

impl<K: DeserializeOwned> Stream for WatchStream<K> {
    type Item = Result<WatchEvent<K>, ApiError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        loop {
            if let Some(line) = this.lines.next() {
                let operation = this.body.operation();
                return match decode::<WatchEvent<K>>(operation, &line) {
                    Ok(WatchEvent::Error(status)) => {
                        let operation = operation.to_owned();
                        this.end(Some(ApiError::Status { operation, status }))
                    }
                    other => Poll::Ready(Some(other)),
                };
            }
            match ready!(Pin::new(&mut this.body).poll_next(cx)) {
                Some(Ok(data)) => this.lines.push(data),
                Some(Err(error)) => return this.end(Some(error)),
                None if this.lines.is_empty() => return this.end(None),
                None => {
                    let broken = interrupted(this.body.operation(), this.body.received(), None);
                    return this.end(Some(broken));
                }
            }
        }
    }
}

/// Cuts frames into lines. A line inside one frame is a slice of it; only lines across frames are copied.
#[derive(Debug, Default)]
struct Lines {
    frame: Bytes,
    partial: BytesMut,
}

impl Lines {
    fn push(&mut self, frame: Bytes) {
        debug_assert!(!self.frame.contains(&b'\n'), "take all lines before the next frame");
        self.partial.extend_from_slice(&self.frame);
        self.frame = frame;
    }

    /// The next whole line that is not blank.
    fn next(&mut self) -> Option<Bytes> {
        while let Some(end) = memchr::memchr(b'\n', &self.frame) {
            let head = self.frame.split_to(end);
            self.frame.advance(1);
            let line = if self.partial.is_empty() {
                head
            } else {
                self.partial.extend_from_slice(&head);
                self.partial.split().freeze()
            };
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(line);
            }
        }
        None
    }

    /// Nothing is left but white space.
    fn is_empty(&self) -> bool {
        self.partial.iter().chain(self.frame.iter()).all(u8::is_ascii_whitespace)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(text: &[u8], sizes: &[usize]) -> (Vec<Bytes>, bool) {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut rest = Bytes::copy_from_slice(text);
        let mut sizes = sizes.iter().copied().cycle();
        while !rest.is_empty() {
            let size = sizes.next().unwrap_or(1).clamp(1, rest.len());
            lines.push(rest.split_to(size));
            while let Some(line) = lines.next() {
                found.push(line);
            }
        }
        (found, lines.is_empty())
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_were_framed(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), Just(b' '), Just(b'{')], 0..200),
            sizes in proptest::collection::vec(1usize..20, 1..10),
        ) {
            let blank = |line: &[u8]| line.iter().all(u8::is_ascii_whitespace);
            let mut expected: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            let last = expected.pop().unwrap_or_default();
            expected.retain(|line| !blank(line));
            let (found, nothing_left) = cut(&text, &sizes);
            prop_assert_eq!(found, expected);
            prop_assert_eq!(nothing_left, blank(last));
        }
    }
}
