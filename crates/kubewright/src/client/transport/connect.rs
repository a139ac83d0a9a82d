//! Connections that take in much at a time.
//!
//! rustls reads from the socket in pieces of 4 KB. A list of 10,000 Pods is 24,000 calls of the kernel that way, and each of
//! them tells the server that there is room again. Here a connection reads as much as has arrived, up to [`AT_ONCE`], and
//! rustls is served from that.
//!
//! Everything else is as kube sets it up. Connections through a proxy, and those whose certificate comes from a credential
//! plugin, are kube's own.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{TryFutureExt as _, future::MapOk};
use http::{Request, Uri};
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{
        Builder,
        connect::{Connected, Connection, HttpConnector},
    },
    rt::TokioExecutor,
};
use kube::{
    Config,
    client::{Body, ClientBuilder, ConfigExt as _},
};
use tower::{BoxError, Layer as _, Service, ServiceExt, util::option_layer};

use super::{TransportService, erase};

/// How much a connection reads at once, and what each of them holds for it.
const AT_ONCE: usize = 32 * 1024;

/// The bottom of a transport: connections and whatever kube puts right above them.
pub(super) fn stack(config: Config) -> Result<ClientBuilder<TransportService>, kube::Error> {
    if config.proxy_url.is_some() || config.auth_info.exec.is_some() {
        return ClientBuilder::try_from(config);
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(Buffering(tcp))?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let client = Builder::new(TokioExecutor::new()).build::<_, Body>(connector);
    let client = ServiceExt::<Request<Body>>::map_err(client, BoxError::from);
    let service = config.extra_headers_layer()?.layer(client);
    let service = option_layer(config.auth_layer()?).layer(service);
    let service = config.base_uri_layer().layer(service);
    Ok(ClientBuilder::new(erase(service), config.default_namespace))
}

/// Makes connections that read much at a time.
#[derive(Clone)]
struct Buffering<C>(C);

impl<C: Service<Uri>> Service<Uri> for Buffering<C> {
    type Response = Buffered<C::Response>;
    type Error = C::Error;
    type Future = MapOk<C::Future, fn(C::Response) -> Buffered<C::Response>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        self.0.call(uri).map_ok(Buffered::new)
    }
}

/// A stream that reads ahead.
struct Buffered<S> {
    stream: S,
    /// Allocated by the first read.
    buffer: Vec<u8>,
    /// What has been read into the buffer and not been asked for.
    unread: std::ops::Range<usize>,
}

impl<S> Buffered<S> {
    fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new(), unread: 0..0 }
    }
}

impl<S: Read + Unpin> Read for Buffered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, buffer, unread } = &mut *self;
        if unread.start >= unread.end {
            // Whoever takes as much at once needs no buffer in between.
            if into.remaining() >= AT_ONCE {
                return Pin::new(stream).poll_read(cx, into);
            }
            buffer.resize(AT_ONCE, 0);
            let mut space = ReadBuf::new(buffer);
            ready!(Pin::new(stream).poll_read(cx, space.unfilled()))?;
            *unread = 0..space.filled().len();
        }
        let taken = unread.len().min(into.remaining());
        into.put_slice(&buffer[unread.start..][..taken]);
        unread.start += taken;
        Poll::Ready(Ok(()))
    }
}

impl<S: Write + Unpin> Write for Buffered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, from)
    }
}

impl<S: Connection> Connection for Buffered<S> {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Hands out what it has piece by piece, counts how often it is asked, and stays pending after the last piece.
    struct Pieces {
        left: VecDeque<Vec<u8>>,
        asked: usize,
    }

    impl Read for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut into: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            self.asked += 1;
            let Some(mut piece) = self.left.pop_front() else { return Poll::Pending };
            let rest = piece.split_off(piece.len().min(into.remaining()));
            into.put_slice(&piece);
            if !rest.is_empty() {
                self.left.push_front(rest);
            }
            Poll::Ready(Ok(()))
        }
    }

    fn read(stream: &mut Buffered<Pieces>, space: usize) -> Option<Vec<u8>> {
        let mut space = vec![0; space];
        let mut into = ReadBuf::new(&mut space);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        match Pin::new(stream).poll_read(&mut cx, into.unfilled()) {
            Poll::Ready(done) => {
                done.unwrap();
                Some(into.filled().to_vec())
            }
            Poll::Pending => None,
        }
    }

    fn stream(pieces: &[&[u8]]) -> Buffered<Pieces> {
        Buffered::new(Pieces { left: pieces.iter().map(|piece| piece.to_vec()).collect(), asked: 0 })
    }

    #[test]
    fn what_has_arrived_is_read_at_once_and_served_in_the_pieces_that_are_asked_for() {
        let text: Vec<u8> = (0..20_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let mut stream = stream(&[&text]);
        let mut got = Vec::new();
        while let Some(piece) = read(&mut stream, 4096) {
            assert!((1..=4096).contains(&piece.len()));
            got.extend(piece);
        }
        assert_eq!(got, text);
        assert_eq!(stream.stream.asked, 2, "once for the text, once for what comes after it");
    }

    #[test]
    fn nothing_waits_for_more_than_has_arrived() {
        let mut stream = stream(&[b"a", b"bc"]);
        assert_eq!(read(&mut stream, 4096).unwrap(), b"a");
        assert_eq!(read(&mut stream, 1).unwrap(), b"b");
        assert_eq!(read(&mut stream, 4096).unwrap(), b"c");
        assert_eq!(read(&mut stream, 4096), None);
    }

    #[test]
    fn the_end_is_the_end() {
        let mut stream = stream(&[b"last", b""]);
        assert_eq!(read(&mut stream, 4096).unwrap(), b"last");
        assert_eq!(read(&mut stream, 4096).unwrap(), b"", "no bytes are the end of the stream");
    }

    #[test]
    fn a_reader_with_room_enough_reads_past_the_buffer() {
        let mut stream = stream(&[b"much"]);
        assert_eq!(read(&mut stream, AT_ONCE).unwrap(), b"much");
        assert!(stream.buffer.is_empty());
    }
}
