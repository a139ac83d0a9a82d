//! Read buffer of a connection, with batched reads of large responses.
//!
//! rustls reads from the socket in pieces of 4 KB: 24,000 system calls for a list of 10,000 Pods. A connection reads up to
//! [`CAPACITY`] bytes per call and serves rustls from its buffer, which saves 18 % of the CPU of a sync.
//!
//! kube-apiserver also writes lists and busy watches in pieces of 4 KB, slower than they are read, and each piece wakes a
//! thread. So a connection that receives one small piece after the other is [suspended](Socket::suspend): the runtime is not
//! notified, and after every [pause] all that has arrived is read at once. That is another 25 to 40 % of a sync from
//! kube-apiserver. Requests do not wait for it: a connection is suspended [`BULK`] bytes after the last write at the earliest,
//! and resumed by a write or by a pause in which nothing arrived.
//!
//! It is also resumed by a pause that fills half of the system's receive buffer: TCP enlarges the buffer only for readers that
//! take all of it, so longer pauses would throttle the sender for good.

use std::{
    io,
    ops::Range,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::time::{Instant, Sleep, sleep};

use super::socket::Socket;

/// Size of the read buffer of a connection.
const CAPACITY: usize = 32 * 1024;

/// Size of a read below which the sender is slower than the reader.
const SMALL: usize = CAPACITY / 2;

/// Number of bytes since the last write that identifies a large list or a busy watch; most responses are smaller.
const BULK: usize = 64 * 1024;

/// Returns the time between two reads of a suspended connection: first the resolution of tokio's timer, then, once a megabyte
/// has arrived, a time that does not matter to a list or watch of that size.
fn pause(received: usize) -> Duration {
    Duration::from_millis(if received < 16 * BULK { 1 } else { 4 })
}

/// Connection with a read buffer.
pub(super) struct Buffered<S> {
    socket: S,
    /// Allocated by the first read.
    buffer: Vec<u8>,
    /// Part of the buffer that has not been consumed.
    unread: Range<usize>,
    /// Number of bytes received since the last write or since the connection was resumed.
    received: usize,
    /// Number of bytes received since the last pause began.
    received_in_pause: usize,
    /// Whether the next read waits for `sleep`.
    pausing: bool,
    /// Allocated by the first pause.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<S: Socket> Buffered<S> {
    pub(super) fn new(socket: S) -> Self {
        Self {
            socket,
            buffer: Vec::new(),
            unread: 0..0,
            received: 0,
            received_in_pause: 0,
            pausing: false,
            sleep: None,
        }
    }

    /// Fills the empty buffer.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.buffer.resize(CAPACITY, 0);
        if self.pausing {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
            }
            self.pausing = false;
        }
        if self.socket.is_suspended() {
            match self.socket.read_suspended(&mut self.buffer) {
                Ok(bytes) => return Poll::Ready(self.filled(bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.resume()?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let mut space = ReadBuf::new(&mut self.buffer);
        ready!(Pin::new(&mut self.socket).poll_read(cx, space.unfilled()))?;
        let bytes = space.filled().len();
        Poll::Ready(self.filled(bytes))
    }

    /// Notes a read, and suspends or resumes the connection.
    fn filled(&mut self, bytes: usize) -> io::Result<()> {
        self.unread = 0..bytes;
        self.received = self.received.saturating_add(bytes);
        self.received_in_pause = self.received_in_pause.saturating_add(bytes);
        if (1..SMALL).contains(&bytes) && self.received > BULK {
            if self.socket.is_suspended() && self.received_in_pause > self.socket.receive_buffer()? / 2 {
                return self.resume();
            }
            self.socket.suspend()?;
            self.received_in_pause = 0;
            self.pausing = true;
            let pause = pause(self.received);
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(Instant::now() + pause),
                none => *none = Some(Box::pin(sleep(pause))),
            }
        }
        Ok(())
    }

    /// Lets the runtime notify the connection again.
    fn resume(&mut self) -> io::Result<()> {
        self.received = 0;
        self.received_in_pause = 0;
        self.pausing = false;
        self.socket.resume()
    }
}

impl<S: Socket> Read for Buffered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            ready!(self.poll_fill(cx))?;
        }
        let Self { buffer, unread, .. } = &mut *self;
        let taken = unread.len().min(into.remaining());
        into.put_slice(&buffer[unread.start..][..taken]);
        unread.start += taken;
        Poll::Ready(Ok(()))
    }
}

impl<S: Socket> Write for Buffered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.resume()?;
        Pin::new(&mut self.socket).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.resume()?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.resume()?;
        Pin::new(&mut self.socket).poll_write_vectored(cx, from)
    }
}

impl<S: Connection> Connection for Buffered<S> {
    fn connected(&self) -> Connected {
        self.socket.connected()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Duration of the first pauses.
    const PAUSE: Duration = Duration::from_millis(1);

    /// Socket that returns its pieces one by one, counts the reads, and is pending after the last piece.
    #[derive(Default)]
    struct Pieces {
        left: VecDeque<Vec<u8>>,
        reads: usize,
        suspended: bool,
        receive_buffer: usize,
    }

    impl Pieces {
        fn next(&mut self, most: usize) -> Option<Vec<u8>> {
            self.reads += 1;
            let mut piece = self.left.pop_front()?;
            let rest = piece.split_off(piece.len().min(most));
            if !rest.is_empty() {
                self.left.push_front(rest);
            }
            Some(piece)
        }
    }

    impl Read for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut into: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            assert!(!self.suspended, "the task would not be woken");
            let Some(piece) = self.next(into.remaining()) else { return Poll::Pending };
            into.put_slice(&piece);
            Poll::Ready(Ok(()))
        }
    }

    impl Write for Pieces {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
            assert!(!self.suspended, "the task would not be woken");
            Poll::Ready(Ok(from.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            assert!(!self.suspended, "the task would not be woken");
            Poll::Ready(Ok(()))
        }
    }

    impl Socket for Pieces {
        fn is_suspended(&self) -> bool {
            self.suspended
        }

        fn suspend(&mut self) -> io::Result<()> {
            self.suspended = true;
            Ok(())
        }

        fn read_suspended(&mut self, into: &mut [u8]) -> io::Result<usize> {
            assert!(self.suspended);
            let piece = self.next(into.len()).ok_or(io::ErrorKind::WouldBlock)?;
            into[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }

        fn resume(&mut self) -> io::Result<()> {
            self.suspended = false;
            Ok(())
        }

        fn receive_buffer(&self) -> io::Result<usize> {
            Ok(self.receive_buffer)
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
        let left = pieces.iter().map(|piece| piece.to_vec()).collect();
        Buffered::new(Pieces { left, receive_buffer: 1 << 20, ..Pieces::default() })
    }

    /// Connection that received enough small pieces to be suspended.
    fn suspended() -> Buffered<Pieces> {
        let mut stream = stream(&[&[0; 4096][..]; BULK / 4096 + 1]);
        for _ in 0..=BULK / 4096 {
            assert!(!stream.socket.suspended);
            assert_eq!(read(&mut stream, 4096).unwrap().len(), 4096);
        }
        assert!(stream.socket.suspended);
        stream
    }

    #[test]
    fn all_available_bytes_are_read_at_once_and_served_in_pieces() {
        let text: Vec<u8> = (0..20_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let mut stream = stream(&[&text]);
        let mut got = Vec::new();
        while let Some(piece) = read(&mut stream, 4096) {
            assert!((1..=4096).contains(&piece.len()));
            got.extend(piece);
        }
        assert_eq!(got, text);
        assert_eq!(stream.socket.reads, 2, "once for the text, once for the end");
    }

    #[test]
    fn a_read_does_not_wait_for_a_full_buffer() {
        let mut stream = stream(&[b"a", b"bc"]);
        assert_eq!(read(&mut stream, 4096).unwrap(), b"a");
        assert_eq!(read(&mut stream, 1).unwrap(), b"b");
        assert_eq!(read(&mut stream, 4096).unwrap(), b"c");
        assert_eq!(read(&mut stream, 4096), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_stream_is_returned() {
        let mut stream = stream(&[b"last", b""]);
        assert_eq!(read(&mut stream, 4096).unwrap(), b"last");
        assert_eq!(read(&mut stream, 4096).unwrap(), b"", "no bytes are the end of the stream");
        let mut stream = suspended();
        stream.socket.left.push_back(Vec::new());
        tokio::time::advance(PAUSE).await;
        assert_eq!(read(&mut stream, 4096).unwrap(), b"", "also while it is suspended");
    }

    #[tokio::test(start_paused = true)]
    async fn small_pieces_are_collected_between_two_reads() {
        let mut stream = suspended();
        stream.socket.left.push_back(vec![1; 100]);
        let reads = stream.socket.reads;
        assert_eq!(read(&mut stream, 4096), None, "it is suspended");
        assert_eq!(stream.socket.reads, reads);
        tokio::time::advance(PAUSE).await;
        assert_eq!(read(&mut stream, 4096).unwrap().len(), 100);
        assert_eq!(read(&mut stream, 4096), None, "and again");
        assert_eq!(stream.socket.reads, reads + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_are_longer_after_a_megabyte() {
        let mut stream = suspended();
        while stream.received < 16 * BULK {
            stream.socket.left.push_back(vec![1; 4096]);
            tokio::time::advance(PAUSE).await;
            assert!(read(&mut stream, 4096).is_some());
        }
        stream.socket.left.push_back(vec![1; 4096]);
        tokio::time::advance(PAUSE).await;
        assert_eq!(read(&mut stream, 4096), None);
        tokio::time::advance(3 * PAUSE).await;
        assert!(read(&mut stream, 4096).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn all_collected_bytes_are_read_without_another_pause() {
        let mut stream = suspended();
        stream.socket.left.push_back(vec![1; 2 * CAPACITY + 1]);
        tokio::time::advance(PAUSE).await;
        let mut got = 0;
        while let Some(piece) = read(&mut stream, CAPACITY) {
            got += piece.len();
        }
        assert_eq!(got, 2 * CAPACITY + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_without_bytes_resumes_the_connection() {
        let mut stream = suspended();
        assert_eq!(read(&mut stream, 4096), None);
        tokio::time::advance(PAUSE).await;
        assert_eq!(read(&mut stream, 4096), None, "nothing arrived");
        assert!(!stream.socket.suspended, "the next piece wakes the task");
        for _ in 0..BULK / 4096 {
            stream.socket.left.push_back(vec![1; 4096]);
            assert!(read(&mut stream, 4096).is_some(), "single changes are read as they arrive");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_throttles_the_sender_resumes_the_connection() {
        for (size, is_suspended) in [(4 * CAPACITY, false), (8 * CAPACITY, true)] {
            let mut stream = suspended();
            stream.socket.receive_buffer = size;
            stream.socket.left.push_back(vec![1; 3 * CAPACITY + 1]);
            tokio::time::advance(PAUSE).await;
            for _ in 0..4 {
                assert!(read(&mut stream, CAPACITY).is_some());
            }
            assert_eq!(stream.socket.suspended, is_suspended, "{size}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_resumes_the_connection() {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut stream = suspended();
        stream.socket.left.push_back(b"HTTP/1.1 200 OK".to_vec());
        assert_eq!(read(&mut stream, 4096), None);
        assert!(Pin::new(&mut stream).poll_write(&mut cx, b"GET /").is_ready());
        assert!(read(&mut stream, 4096).is_some());
        let mut stream = suspended();
        assert!(Pin::new(&mut stream).poll_shutdown(&mut cx).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_sender_is_not_suspended() {
        let piece = vec![0; CAPACITY];
        let mut stream = stream(&[&piece[..]; 2 * BULK / CAPACITY]);
        for _ in 0..2 * BULK / 4096 {
            assert_eq!(read(&mut stream, 4096).unwrap().len(), 4096);
            assert!(!stream.socket.suspended);
        }
    }
}
