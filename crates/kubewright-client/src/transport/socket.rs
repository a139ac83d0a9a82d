//! TCP connection that can be taken out of the runtime for a while.

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

/// Connection that can be suspended.
pub(super) trait Socket: Read + Write + Unpin {
    /// Returns whether it is suspended: no task is woken when bytes arrive.
    fn is_suspended(&self) -> bool;
    /// Suspends the connection if it is not suspended yet.
    fn suspend(&mut self) -> io::Result<()>;
    /// Reads from a suspended connection without waiting; [`io::ErrorKind::WouldBlock`] if nothing has arrived.
    fn read_suspended(&mut self, into: &mut [u8]) -> io::Result<usize>;
    /// Resumes the connection if it is suspended.
    fn resume(&mut self) -> io::Result<()>;
    /// Returns the number of bytes that can arrive unread before the sender has to wait.
    fn receive_buffer(&self) -> io::Result<usize>;
}

/// TCP connection.
///
/// epoll reports bytes on every registered socket, whether a task waits for them or not. So a suspended socket is deregistered
/// from the runtime.
pub(super) enum Tcp {
    Registered(TokioIo<TcpStream>),
    Suspended(net::TcpStream),
    /// Registering or deregistering failed, and the error was returned.
    Failed,
}

impl Tcp {
    fn registered(&mut self) -> io::Result<Pin<&mut TokioIo<TcpStream>>> {
        match self {
            Self::Registered(stream) => Ok(Pin::new(stream)),
            Self::Suspended(_) | Self::Failed => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Socket for Tcp {
    fn is_suspended(&self) -> bool {
        matches!(self, Self::Suspended(_))
    }

    fn suspend(&mut self) -> io::Result<()> {
        *self = match std::mem::replace(self, Self::Failed) {
            Self::Registered(stream) => Self::Suspended(stream.into_inner().into_std()?),
            same => same,
        };
        Ok(())
    }

    fn read_suspended(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Suspended(stream) => stream.read(into),
            Self::Registered(_) | Self::Failed => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn resume(&mut self) -> io::Result<()> {
        *self = match std::mem::replace(self, Self::Failed) {
            Self::Suspended(stream) => Self::Registered(TokioIo::new(TcpStream::from_std(stream)?)),
            same => same,
        };
        Ok(())
    }

    fn receive_buffer(&self) -> io::Result<usize> {
        let size = match self {
            Self::Registered(stream) => SockRef::from(stream.inner()).recv_buffer_size(),
            Self::Suspended(stream) => SockRef::from(stream).recv_buffer_size(),
            Self::Failed => Err(io::ErrorKind::NotConnected.into()),
        };
        // Linux uses half of it for bookkeeping.
        Ok(size? / 2)
    }
}

impl Read for Tcp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.registered()?.poll_read(cx, into)
    }
}

impl Write for Tcp {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.registered()?.poll_write(cx, from)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A TCP stream has no write buffer to flush.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.registered()?.poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.registered()?.poll_write_vectored(cx, from)
    }
}

impl Connection for Tcp {
    fn connected(&self) -> Connected {
        match self {
            Self::Registered(stream) => stream.connected(),
            Self::Suspended(_) | Self::Failed => Connected::new(),
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
        (Tcp::Registered(TokioIo::new(here)), listener.accept().unwrap().0)
    }

    async fn read(socket: &mut Tcp) -> Vec<u8> {
        let mut space = [0; 64];
        let mut into = ReadBuf::new(&mut space);
        std::future::poll_fn(|cx| Pin::new(&mut *socket).poll_read(cx, into.unfilled())).await.unwrap();
        into.filled().to_vec()
    }

    #[tokio::test]
    async fn bytes_that_arrive_while_suspended_are_read_in_order() {
        let (mut here, mut there) = pair().await;
        there.write_all(b"before").unwrap();
        assert_eq!(read(&mut here).await, b"before");
        here.suspend().unwrap();
        here.suspend().unwrap();
        assert!(here.is_suspended());
        let nothing = here.read_suspended(&mut [0; 64]).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        there.write_all(b"while").unwrap();
        here.resume().unwrap();
        assert_eq!(read(&mut here).await, b"while", "bytes that arrived before it was resumed are reported");
        here.suspend().unwrap();
        there.write_all(b"last").unwrap();
        drop(there);
        here.resume().unwrap();
        assert_eq!(read(&mut here).await, b"last");
        assert_eq!(read(&mut here).await, b"", "the end");
    }

    #[tokio::test]
    async fn a_suspended_socket_cannot_be_polled() {
        let (mut here, _there) = pair().await;
        here.suspend().unwrap();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(Pin::new(&mut here).poll_write(&mut cx, b"x"), Poll::Ready(Err(_))));
        here.resume().unwrap();
        here.resume().unwrap();
        assert!(here.read_suspended(&mut [0; 1]).is_err());
    }
}
