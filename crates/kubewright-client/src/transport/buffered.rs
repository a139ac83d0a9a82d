//! A connection that is read seldom and much at a time.
//!
//! rustls reads from the socket in pieces of 4 KB. A list of 10,000 Pods is 24,000 calls of the kernel that way, and each of
//! them tells the server that there is room again. Here a connection reads as much as has arrived, up to [`AT_ONCE`], and
//! rustls is served from that.
//!
//! Of a list, or of a watch at full speed, kube-apiserver writes in pieces of 4 KB too, and slower than we read: each piece
//! wakes a thread, for more time than its bytes take. So a connection on which one small piece comes after the other
//! [rests](Socket::rest): nobody is woken for what comes, and after every [pause] all of it is read together. Who asks and
//! waits for an answer notices nothing: resting begins [`BULK`] bytes after the last write, and ends with the first pause in
//! which nothing comes.
//!
//! A pause in which the system's buffer fills up holds the sender back, and it stays that way: a connection is given a larger
//! buffer when more than the present one is taken from it at a time, which who pauses never does. Such a pause is the last too.

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

/// How much a connection reads at once, and what each of them holds for it.
const AT_ONCE: usize = 32 * 1024;

/// What comes in pieces below this comes slower than we read.
const SMALL: usize = AT_ONCE / 2;

/// This much without a word of ours is a list or a watch in full flow: more than most answers have.
const BULK: usize = 64 * 1024;

/// How long a connection gathers before it is read again: at first the least that tokio's clock knows. What then goes on
/// flowing is a large list or more changes than anybody follows one by one, and four milliseconds are nothing to either.
fn pause(flow: usize) -> Duration {
    Duration::from_millis(if flow < 16 * BULK { 1 } else { 4 })
}

/// A connection that reads ahead, and does not run after single pieces.
pub(super) struct Buffered<S> {
    socket: S,
    /// Allocated by the first read.
    buffer: Vec<u8>,
    /// What has been read into the buffer and not been asked for.
    unread: Range<usize>,
    /// How much has come since the last write, or since nothing came in a pause.
    flow: usize,
    /// How much of it has come since the last pause began.
    gathered: usize,
    /// Whether the next read has to wait for `sleep`.
    pausing: bool,
    /// Allocated by the first pause.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<S: Socket> Buffered<S> {
    pub(super) fn new(socket: S) -> Self {
        Self { socket, buffer: Vec::new(), unread: 0..0, flow: 0, gathered: 0, pausing: false, sleep: None }
    }

    /// Fills the buffer, in which nothing is left.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.buffer.resize(AT_ONCE, 0);
        if self.pausing {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
            }
            self.pausing = false;
        }
        if self.socket.is_resting() {
            match self.socket.read_resting(&mut self.buffer) {
                Ok(bytes) => return Poll::Ready(self.filled(bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.attend()?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let mut space = ReadBuf::new(&mut self.buffer);
        ready!(Pin::new(&mut self.socket).poll_read(cx, space.unfilled()))?;
        let bytes = space.filled().len();
        Poll::Ready(self.filled(bytes))
    }

    /// So much came.
    fn filled(&mut self, bytes: usize) -> io::Result<()> {
        self.unread = 0..bytes;
        self.flow = self.flow.saturating_add(bytes);
        self.gathered = self.gathered.saturating_add(bytes);
        if (1..SMALL).contains(&bytes) && self.flow > BULK {
            if self.socket.is_resting() && self.gathered > self.socket.room()? / 2 {
                return self.attend();
            }
            self.socket.rest()?;
            self.gathered = 0;
            self.pausing = true;
            let pause = pause(self.flow);
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(Instant::now() + pause),
                none => *none = Some(Box::pin(sleep(pause))),
            }
        }
        Ok(())
    }

    /// From now on whatever comes is read at once.
    fn attend(&mut self) -> io::Result<()> {
        self.flow = 0;
        self.gathered = 0;
        self.pausing = false;
        self.socket.attend()
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
        self.attend()?;
        Pin::new(&mut self.socket).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.attend()?;
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
        self.attend()?;
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

    /// The first pauses.
    const PAUSE: Duration = Duration::from_millis(1);

    /// Hands out what it has piece by piece, counts how often it is asked, and has nothing more after the last piece.
    #[derive(Default)]
    struct Pieces {
        left: VecDeque<Vec<u8>>,
        asked: usize,
        resting: bool,
        room: usize,
    }

    impl Pieces {
        fn next(&mut self, most: usize) -> Option<Vec<u8>> {
            self.asked += 1;
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
            assert!(!self.resting, "nobody would be woken");
            let Some(piece) = self.next(into.remaining()) else { return Poll::Pending };
            into.put_slice(&piece);
            Poll::Ready(Ok(()))
        }
    }

    impl Write for Pieces {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
            assert!(!self.resting, "nobody would be woken");
            Poll::Ready(Ok(from.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            assert!(!self.resting, "nobody would be woken");
            Poll::Ready(Ok(()))
        }
    }

    impl Socket for Pieces {
        fn is_resting(&self) -> bool {
            self.resting
        }

        fn rest(&mut self) -> io::Result<()> {
            self.resting = true;
            Ok(())
        }

        fn read_resting(&mut self, into: &mut [u8]) -> io::Result<usize> {
            assert!(self.resting);
            let piece = self.next(into.len()).ok_or(io::ErrorKind::WouldBlock)?;
            into[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }

        fn attend(&mut self) -> io::Result<()> {
            self.resting = false;
            Ok(())
        }

        fn room(&self) -> io::Result<usize> {
            Ok(self.room)
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
        Buffered::new(Pieces { left, room: 1 << 20, ..Pieces::default() })
    }

    /// A connection of which so much has come in small pieces that it rests.
    fn in_flow() -> Buffered<Pieces> {
        let mut stream = stream(&[&[0; 4096][..]; BULK / 4096 + 1]);
        for _ in 0..=BULK / 4096 {
            assert!(!stream.socket.resting);
            assert_eq!(read(&mut stream, 4096).unwrap().len(), 4096);
        }
        assert!(stream.socket.resting);
        stream
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
        assert_eq!(stream.socket.asked, 2, "once for the text, once for what comes after it");
    }

    #[test]
    fn nothing_waits_for_more_than_has_arrived() {
        let mut stream = stream(&[b"a", b"bc"]);
        assert_eq!(read(&mut stream, 4096).unwrap(), b"a");
        assert_eq!(read(&mut stream, 1).unwrap(), b"b");
        assert_eq!(read(&mut stream, 4096).unwrap(), b"c");
        assert_eq!(read(&mut stream, 4096), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_the_end() {
        let mut stream = stream(&[b"last", b""]);
        assert_eq!(read(&mut stream, 4096).unwrap(), b"last");
        assert_eq!(read(&mut stream, 4096).unwrap(), b"", "no bytes are the end of the stream");
        let mut stream = in_flow();
        stream.socket.left.push_back(Vec::new());
        tokio::time::advance(PAUSE).await;
        assert_eq!(read(&mut stream, 4096).unwrap(), b"", "also while it rests");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_small_pieces_gathers_between_two_reads() {
        let mut stream = in_flow();
        stream.socket.left.push_back(vec![1; 100]);
        let asked = stream.socket.asked;
        assert_eq!(read(&mut stream, 4096), None, "it is left alone");
        assert_eq!(stream.socket.asked, asked);
        tokio::time::advance(PAUSE).await;
        assert_eq!(read(&mut stream, 4096).unwrap().len(), 100);
        assert_eq!(read(&mut stream, 4096), None, "and again");
        assert_eq!(stream.socket.asked, asked + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_are_longer_when_the_flow_goes_on() {
        let mut stream = in_flow();
        while stream.flow < 16 * BULK {
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
    async fn what_has_gathered_is_read_to_its_end_without_another_pause() {
        let mut stream = in_flow();
        stream.socket.left.push_back(vec![1; 2 * AT_ONCE + 1]);
        tokio::time::advance(PAUSE).await;
        let mut got = 0;
        while let Some(piece) = read(&mut stream, AT_ONCE) {
            got += piece.len();
        }
        assert_eq!(got, 2 * AT_ONCE + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_in_which_nothing_comes_is_the_last() {
        let mut stream = in_flow();
        assert_eq!(read(&mut stream, 4096), None);
        tokio::time::advance(PAUSE).await;
        assert_eq!(read(&mut stream, 4096), None, "nothing came");
        assert!(!stream.socket.resting, "the next piece wakes somebody");
        for _ in 0..BULK / 4096 {
            stream.socket.left.push_back(vec![1; 4096]);
            assert!(read(&mut stream, 4096).is_some(), "single changes are read as they come");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_holds_the_sender_back_is_the_last() {
        for (room, rests) in [(4 * AT_ONCE, false), (8 * AT_ONCE, true)] {
            let mut stream = in_flow();
            stream.socket.room = room;
            stream.socket.left.push_back(vec![1; 3 * AT_ONCE + 1]);
            tokio::time::advance(PAUSE).await;
            for _ in 0..4 {
                assert!(read(&mut stream, AT_ONCE).is_some());
            }
            assert_eq!(stream.socket.resting, rests, "{room}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_not_waited_for() {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut stream = in_flow();
        stream.socket.left.push_back(b"HTTP/1.1 200 OK".to_vec());
        assert_eq!(read(&mut stream, 4096), None);
        assert!(Pin::new(&mut stream).poll_write(&mut cx, b"GET /").is_ready());
        assert!(read(&mut stream, 4096).is_some());
        let mut stream = in_flow();
        assert!(Pin::new(&mut stream).poll_shutdown(&mut cx).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_as_fast_as_it_is_read_does_not_rest() {
        let piece = vec![0; AT_ONCE];
        let mut stream = stream(&[&piece[..]; 2 * BULK / AT_ONCE]);
        for _ in 0..2 * BULK / 4096 {
            assert_eq!(read(&mut stream, 4096).unwrap().len(), 4096);
            assert!(!stream.socket.resting);
        }
    }
}
