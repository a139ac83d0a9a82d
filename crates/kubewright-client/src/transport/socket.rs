//! A TCP connection that can be left alone for a while.

use std::{
    io::{self, Read as _},
    net,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use socket2::SockRef;
use tokio::net::TcpStream;

/// A connection that wakes whoever waits for it, unless it rests.
pub(super) trait Socket: Read + Write + Unpin {
    /// Whether nobody is woken for what comes.
    fn is_resting(&self) -> bool;
    /// Wakes nobody from now on. A socket that rests already goes on doing so.
    fn rest(&mut self) -> io::Result<()>;
    /// Reads what a resting socket has gathered; [`io::ErrorKind::WouldBlock`] if that is nothing.
    fn read_resting(&mut self, into: &mut [u8]) -> io::Result<usize>;
    /// Ends the rest, if there is one.
    fn attend(&mut self) -> io::Result<()>;
    /// How much may come before the sender has to wait until some of it is read.
    fn room(&self) -> io::Result<usize>;
}

/// A TCP connection.
///
/// The system tells of whatever comes on a socket that a runtime has registered, whether anybody asked or not. Resting
/// therefore means to take it out of the runtime, and attending to put it back.
pub(super) enum Tcp {
    Attended(TokioIo<TcpStream>),
    Resting(net::TcpStream),
    /// Neither: the system refused one of the two steps, and said why.
    Lost,
}

impl Tcp {
    fn attended(&mut self) -> io::Result<Pin<&mut TokioIo<TcpStream>>> {
        match self {
            Self::Attended(stream) => Ok(Pin::new(stream)),
            Self::Resting(_) | Self::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Socket for Tcp {
    fn is_resting(&self) -> bool {
        matches!(self, Self::Resting(_))
    }

    fn rest(&mut self) -> io::Result<()> {
        *self = match std::mem::replace(self, Self::Lost) {
            Self::Attended(stream) => Self::Resting(stream.into_inner().into_std()?),
            same => same,
        };
        Ok(())
    }

    fn read_resting(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Resting(stream) => stream.read(into),
            Self::Attended(_) | Self::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn attend(&mut self) -> io::Result<()> {
        *self = match std::mem::replace(self, Self::Lost) {
            Self::Resting(stream) => Self::Attended(TokioIo::new(TcpStream::from_std(stream)?)),
            same => same,
        };
        Ok(())
    }

    fn room(&self) -> io::Result<usize> {
        let size = match self {
            Self::Attended(stream) => SockRef::from(stream.inner()).recv_buffer_size(),
            Self::Resting(stream) => SockRef::from(stream).recv_buffer_size(),
            Self::Lost => Err(io::ErrorKind::NotConnected.into()),
        };
        // The system keeps half of it for what it notes beside the bytes.
        Ok(size? / 2)
    }
}

impl Read for Tcp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.attended()?.poll_read(cx, into)
    }
}

impl Write for Tcp {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.attended()?.poll_write(cx, from)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TCP holds nothing back.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.attended()?.poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.attended()?.poll_write_vectored(cx, from)
    }
}

impl Connection for Tcp {
    fn connected(&self) -> Connected {
        match self {
            Self::Attended(stream) => stream.connected(),
            Self::Resting(_) | Self::Lost => Connected::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use hyper::rt::ReadBuf;

    use super::*;

    async fn pair() -> (Tcp, net::TcpStream) {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Tcp::Attended(TokioIo::new(here)), listener.accept().unwrap().0)
    }

    async fn read(socket: &mut Tcp) -> Vec<u8> {
        let mut space = [0; 64];
        let mut into = ReadBuf::new(&mut space);
        std::future::poll_fn(|cx| Pin::new(&mut *socket).poll_read(cx, into.unfilled())).await.unwrap();
        into.filled().to_vec()
    }

    #[tokio::test]
    async fn what_comes_while_it_rests_and_afterwards_is_read_in_order() {
        let (mut here, mut there) = pair().await;
        there.write_all(b"before").unwrap();
        assert_eq!(read(&mut here).await, b"before");
        here.rest().unwrap();
        here.rest().unwrap();
        assert!(here.is_resting());
        let nothing = here.read_resting(&mut [0; 64]).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        there.write_all(b"while").unwrap();
        here.attend().unwrap();
        assert_eq!(
            read(&mut here).await,
            b"while",
            "it is told of what came before it was attended to again"
        );
        here.rest().unwrap();
        there.write_all(b"last").unwrap();
        drop(there);
        here.attend().unwrap();
        assert_eq!(read(&mut here).await, b"last");
        assert_eq!(read(&mut here).await, b"", "the end");
    }

    #[tokio::test]
    async fn a_resting_socket_is_not_for_waiting_on() {
        let (mut here, _there) = pair().await;
        here.rest().unwrap();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(Pin::new(&mut here).poll_write(&mut cx, b"x"), Poll::Ready(Err(_))));
        here.attend().unwrap();
        here.attend().unwrap();
        assert!(here.read_resting(&mut [0; 1]).is_err());
    }
}
