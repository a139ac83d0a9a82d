//! Load generator: prepared requests on many connections, with little CPU, because it shares the cores with the server.
//!
//! Each connection has one request in flight and skips the body of the response. A failed request ends the program.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderValue, Request,
    header::{AUTHORIZATION, HOST},
};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kube::{Config, client::ConfigExt as _};
use secrecy::ExposeSecret as _;
use tokio::{net::TcpStream, task::JoinSet};
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};

/// Connections to one server.
pub struct Load {
    connections: Vec<SendRequest<Full<Bytes>>>,
    host: HeaderValue,
    token: Option<HeaderValue>,
}

impl Load {
    /// Connects, with a client certificate or a token.
    pub async fn connect(config: &Config, connections: usize) -> Self {
        let (host, port) = (config.cluster_url.host(), config.cluster_url.port_u16());
        let (host, port) = (host.expect("a server has an address"), port.expect("and a port"));
        let mut tls = config.rustls_client_config().expect("it is a good configuration");
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = TlsConnector::from(Arc::new(tls));
        let name = ServerName::try_from(host.to_owned()).expect("an address is a name");
        let mut open = Vec::new();
        for _ in 0..connections {
            let socket = TcpStream::connect((host, port)).await.expect("the server listens");
            socket.set_nodelay(true).expect("sockets can do that");
            let stream = tls.connect(name.clone(), socket).await.expect("the server is who it says");
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("it speaks HTTP");
            tokio::spawn(connection);
            open.push(sender);
        }
        let token = config.auth_info.token.as_ref().map(|token| {
            let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))
                .expect("tokens are plain text");
            bearer.set_sensitive(true);
            bearer
        });
        let host = HeaderValue::try_from(format!("{host}:{port}")).expect("addresses are plain text");
        Self { connections: open, host, token }
    }

    /// Sends all requests, each on the first free connection.
    pub async fn send_all(&mut self, requests: Vec<Request<Bytes>>) {
        let requests = requests.into_iter().map(|request| self.dressed(request)).collect::<Vec<_>>();
        let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
        let mut workers = JoinSet::new();
        for mut connection in self.connections.drain(..) {
            let (requests, next) = (Arc::clone(&requests), Arc::clone(&next));
            workers.spawn(async move {
                while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    send(&mut connection, request.clone()).await;
                }
                connection
            });
        }
        self.connections = workers.join_all().await;
    }

    fn dressed(&self, request: Request<Bytes>) -> Request<Full<Bytes>> {
        let mut request = request.map(Full::new);
        request.headers_mut().insert(HOST, self.host.clone());
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        request
    }
}

async fn send(connection: &mut SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) {
    connection.ready().await.expect("the server keeps the connection");
    let response = connection.send_request(request).await.expect("the server answers");
    let (status, mut body) = (response.status(), response.into_body());
    let mut refusal = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.expect("it comes whole");
        if let (false, Some(data)) = (status.is_success(), frame.data_ref()) {
            refusal.extend_from_slice(data);
        }
    }
    assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&refusal));
}
