//! Connections to the API server.
//!
//! They are as kube sets them up, but for what is right above the socket, see [`Buffered`], and for those of
//! [`OwnConnections`]. Connections through a proxy, and
//! those whose certificate comes from a credential plugin, are kube's own.

use std::task::{Context, Poll};

use futures::{TryFutureExt as _, future::MapOk};
use http::{Request, Uri};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Builder, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use kube::{
    Config,
    client::{Body, ClientBuilder, ConfigExt as _},
};
use tokio::net::TcpStream;
use tower::{BoxError, Layer as _, Service, ServiceExt, util::option_layer};

use super::{TransportService, buffered::Buffered, driven::OwnConnections, erase, socket::Tcp};

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
    let client = Builder::new(TokioExecutor::new()).build::<_, Body>(connector.clone());
    let client = ServiceExt::<Request<Body>>::map_err(client, BoxError::from);
    let service = config.extra_headers_layer()?.layer(OwnConnections::new(connector, client));
    let service = option_layer(config.auth_layer()?).layer(service);
    let service = config.base_uri_layer().layer(service);
    Ok(ClientBuilder::new(erase(service), config.default_namespace))
}

/// Makes connections that read much at a time.
#[derive(Clone)]
struct Buffering(HttpConnector);

impl Service<Uri> for Buffering {
    type Response = Buffered<Tcp>;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = MapOk<<HttpConnector as Service<Uri>>::Future, fn(TokioIo<TcpStream>) -> Buffered<Tcp>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        self.0.call(uri).map_ok(|stream| Buffered::new(Tcp::Attended(stream)))
    }
}
