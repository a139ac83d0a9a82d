//! Watches and lists on connections of their own, driven by whoever reads them.
//!
//! hyper's client gives every connection a task, and an answer goes from there to its reader frame by frame. For answers that
//! is right. The events of a watch are frames of their own, and a reader never sees more than one of the fifty that a single
//! read has brought: the two tasks take turns, and the runtime, which sees one of them ready while the other runs, wakes
//! another thread for it, again and again. That was a quarter of what the events cost.
//!
//! A watch has its connection to itself for as long as it lasts. So its reader drives it: asking for the next frame reads
//! from the connection, in the task that asks, and nothing at hand means that nothing has come. A watch that nobody asks stands
//! still, and its server with it.
//!
//! The lists of reflectors are read in the same way. Their connections would otherwise stay in the pool for a while, with
//! buffers that a large answer has made large.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{
    FutureExt as _, TryFutureExt as _,
    future::{BoxFuture, Either, MapOk, select},
};
use http::{HeaderValue, Request, Response, Uri, header::HOST};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{
    body::Incoming,
    client::conn::http1,
    rt::{Read, Write},
};
use kube::client::Body;
use tower::{BoxError, Service, ServiceExt as _};

/// Opens a connection for every watch and every [list](ReadToItsEnd) of a reflector, and leaves other requests to those who have some.
#[derive(Clone)]
pub(super) struct OwnConnections<C, S> {
    connector: C,
    others: S,
}

impl<C, S> OwnConnections<C, S> {
    pub(super) fn new(connector: C, others: S) -> Self {
        Self { connector, others }
    }
}

impl<C, S> Service<Request<Body>> for OwnConnections<C, S>
where
    C: Service<Uri, Response: Read + Write + Unpin + Send, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
    S: Service<Request<Body>, Response = Response<Incoming>, Error = BoxError>,
{
    type Response = Response<Driven>;
    type Error = BoxError;
    type Future = Either<
        BoxFuture<'static, Result<Response<Driven>, BoxError>>,
        MapOk<S::Future, fn(Response<Incoming>) -> Response<Driven>>,
    >;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.others.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if is_watch(request.uri()) || request.extensions().get::<ReadToItsEnd>().is_some() {
            Either::Left(open(self.connector.clone(), request).boxed())
        } else {
            Either::Right(self.others.call(request).map_ok(|answer| answer.map(Driven::elsewhere)))
        }
    }
}

/// In the extensions of a request: its answer may be long, and whoever asks reads all of it as it comes. It gets a connection
/// of its own as a watch does, which is closed after it.
#[derive(Clone, Copy, Debug)]
pub struct ReadToItsEnd;

fn is_watch(uri: &Uri) -> bool {
    let mut parameters = uri.query().unwrap_or_default().split('&');
    parameters.any(|parameter| matches!(parameter, "watch=true" | "watch=1"))
}

async fn open<C>(connector: C, mut request: Request<Body>) -> Result<Response<Driven>, BoxError>
where
    C: Service<Uri, Response: Read + Write + Unpin + Send + 'static, Error: Into<BoxError>>,
{
    let stream = connector.oneshot(request.uri().clone()).await.map_err(Into::into)?;
    let (mut sender, connection) = http1::handshake(stream).await?;
    address(&mut request)?;
    let connection = connection.boxed();
    let (answer, connection) = match select(sender.send_request(request).boxed(), connection).await {
        Either::Left((answer, connection)) => (answer?, Some(connection)),
        // What it had to say it has said.
        Either::Right((_, answer)) => (answer.await?, None),
    };
    Ok(answer.map(|body| Driven { body, connection }))
}

/// Says whom the request is for where HTTP/1.1 wants it said: in a header, and not in its first line.
fn address(request: &mut Request<Body>) -> Result<(), BoxError> {
    let uri = std::mem::take(request.uri_mut());
    let host = uri.host().unwrap_or_default();
    let host = match uri.port() {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}"))?,
        None => HeaderValue::try_from(host)?,
    };
    request.headers_mut().entry(HOST).or_insert(host);
    *request.uri_mut() = uri.path_and_query().cloned().map(Uri::from).unwrap_or_default();
    Ok(())
}

/// The body of an answer, and the connection that it comes on if nobody else takes care of that.
pub(super) struct Driven {
    body: Incoming,
    connection: Option<BoxFuture<'static, hyper::Result<()>>>,
}

impl Driven {
    fn elsewhere(body: Incoming) -> Self {
        Self { body, connection: None }
    }
}

impl HttpBody for Driven {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { body, connection } = &mut *self;
        let mut body = Pin::new(body);
        let Some(open) = connection else { return body.poll_frame(cx) };
        let at_hand = body.as_mut().poll_frame(cx);
        if at_hand.is_ready() {
            return at_hand;
        }
        // An error of the connection is told by the body too.
        if open.poll_unpin(cx).is_ready() {
            *connection = None;
        }
        body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use http_body_util::BodyExt as _;
    use kube::{Client, Config};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
    };

    use super::*;
    use crate::Transport;

    const WATCH: &str = "/api/v1/pods?watch=true";
    const THREE_EVENTS: &[u8] =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n";

    /// A server that begins a watch with three events, and answers everything else with nothing. Counts its connections.
    async fn server() -> (Client, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = client_of(&listener);
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(answer(stream));
            }
        });
        (client, connections)
    }

    fn client_of(listener: &TcpListener) -> Client {
        let config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
        Transport::builder(config).build().unwrap().client()
    }

    async fn answer(mut stream: TcpStream) {
        while let Some(head) = head(&mut stream).await {
            let is_watch = head.starts_with(format!("GET {WATCH} HTTP/1.1").as_bytes());
            let text = if is_watch { THREE_EVENTS } else { b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n" };
            stream.write_all(text).await.unwrap();
        }
    }

    /// The whole head of a request; none when nothing more comes.
    async fn head(stream: &mut TcpStream) -> Option<Vec<u8>> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut head).await.ok().filter(|read| *read > 0)?;
        }
        Some(head)
    }

    async fn get(client: &Client, path: &str) -> Body {
        client.send(Request::get(path).body(Body::empty()).unwrap()).await.unwrap().into_body()
    }

    #[tokio::test]
    async fn what_came_together_is_read_together_and_the_rest_is_waited_for() {
        let (client, _) = server().await;
        let mut body = get(&client, WATCH).await;
        assert_eq!(body.frame().await.unwrap().unwrap().data_ref().unwrap(), "a");
        // Nobody else gets a turn between these.
        for event in ["b", "c"] {
            let frame = body.frame().now_or_never().expect("it is at hand");
            assert_eq!(frame.unwrap().unwrap().data_ref().unwrap(), event);
        }
        assert!(body.frame().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_watch_has_a_connection_of_its_own_and_other_requests_share_theirs() {
        let (client, connections) = server().await;
        let mut watches = Vec::new();
        for expected in 1..4 {
            get(&client, "/version").await.collect().await.unwrap();
            assert_eq!(connections.load(Ordering::Relaxed), expected);
            watches.push(get(&client, WATCH).await);
            assert_eq!(connections.load(Ordering::Relaxed), expected + 1);
        }
    }

    #[tokio::test]
    async fn what_is_read_to_its_end_has_a_connection_of_its_own_that_is_closed_then() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = client_of(&listener);
        let once = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(head(&mut stream).await.unwrap().starts_with(b"GET /api/v1/pods HTTP/1.1"));
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npods").await.unwrap();
            head(&mut stream).await
        };
        let mut request = Request::get("/api/v1/pods").body(Body::empty()).unwrap();
        request.extensions_mut().insert(ReadToItsEnd);
        let list =
            async { client.send(request).await.unwrap().into_body().collect().await.unwrap().to_bytes() };
        let (pods, next) = tokio::join!(list, once);
        assert_eq!((&*pods, next), (&b"pods"[..], None));
    }

    #[tokio::test]
    async fn a_connection_that_breaks_off_is_an_error_of_the_watch() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = client_of(&listener);
        let once = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            head(&mut stream).await.unwrap();
            stream.write_all(THREE_EVENTS).await.unwrap();
        };
        let (mut body, ()) = tokio::join!(get(&client, WATCH), once);
        for _ in 0..3 {
            body.frame().await.unwrap().unwrap();
        }
        body.frame().await.unwrap().unwrap_err();
        drop(listener);
        let refused = client.send(Request::get(WATCH).body(Body::empty()).unwrap()).await.unwrap_err();
        let mut cause: &(dyn std::error::Error + 'static) = &refused;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let cause = cause.downcast_ref::<std::io::Error>().expect("it says why");
        assert_eq!(cause.kind(), std::io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_watch_is_known_by_its_parameter() {
        for (uri, expected) in [
            ("https://a/api/v1/pods?watch=true", true),
            ("https://a/api/v1/pods?resourceVersion=7&watch=1&timeoutSeconds=5", true),
            ("https://a/api/v1/pods?watch=false", false),
            ("https://a/api/v1/pods?labelSelector=watch%3Dtrue", false),
            ("https://a/api/v1/namespaces/watch/pods", false),
        ] {
            assert_eq!(is_watch(&uri.parse().unwrap()), expected, "{uri}");
        }
    }

    #[test]
    fn a_request_names_its_server_in_a_header() {
        for (uri, host, target) in [
            ("https://10.0.0.1:6443/api/v1/pods?watch=1", "10.0.0.1:6443", "/api/v1/pods?watch=1"),
            ("https://user:word@k8s.example.com/version", "k8s.example.com", "/version"),
            ("https://[::1]:6443/", "[::1]:6443", "/"),
        ] {
            let mut request = Request::get(uri).body(Body::empty()).unwrap();
            address(&mut request).unwrap();
            assert_eq!(
                (request.headers()[HOST].to_str().unwrap(), &*request.uri().to_string()),
                (host, target)
            );
        }
    }
}
