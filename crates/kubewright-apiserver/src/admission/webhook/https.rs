//! Webhooks over TLS.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Target, Transport};

/// A longer answer is not read.
const LONGEST: usize = 3 * 1024 * 1024;

/// Webhooks over TLS, one connection per call.
#[derive(Debug, Clone, Default)]
pub struct Https;

impl Transport for Https {
    fn post<'a>(
        &'a self,
        target: &'a Target,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<(u16, Vec<u8>), String>> {
        Box::pin(async move {
            let config = trust(target.authority.as_deref())?;
            let stream = TcpStream::connect((target.host.as_str(), target.port))
                .await
                .map_err(|error| dial_error(target, &error))?;
            let name =
                ServerName::try_from(target.server_name.clone()).map_err(|error| format!("tls: {error}"))?;
            let stream = TlsConnector::from(Arc::new(config))
                .connect(name, stream)
                .await
                .map_err(|error| tls_error(target, &error))?;
            send(target, stream, body).await
        })
    }
}

async fn send(
    target: &Target,
    stream: tokio_rustls::client::TlsStream<TcpStream>,
    body: Vec<u8>,
) -> Result<(u16, Vec<u8>), String> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let request = http::Request::post(target.path.as_str())
        .header(http::header::HOST, target.server_name.as_str())
        .header(http::header::ACCEPT, "application/json, */*")
        .header(http::header::CONTENT_TYPE, "application/json")
        .header(http::header::USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| error.to_string())?;
    let exchange = async move {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let code = response.status().as_u16();
        let body = Limited::new(response.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes().to_vec();
        Ok((code, body))
    };
    // The connection is driven here and ends with the exchange: nothing outlives a call that ran out of time.
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        ended = &mut connection => match ended {
            Ok(()) => exchange.await,
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Whose certificates are believed.
fn trust(authority: Option<&[u8]>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match authority {
        Some(pem) => {
            let refused =
                || "unable to load root certificates: unable to parse bytes as PEM block".to_owned();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                roots.add(certificate.map_err(|_| refused())?).map_err(|_| refused())?;
            }
            if roots.is_empty() {
                return Err(refused());
            }
        }
        None => {
            for certificate in rustls_native_certs::load_native_certs().certs {
                // System stores may hold certificates that rustls rejects; the others are used.
                let _ = roots.add(certificate);
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn dial_error(target: &Target, error: &io::Error) -> String {
    let place = if target.host.contains(':') {
        format!("[{}]:{}", target.host, target.port)
    } else {
        format!("{}:{}", target.host, target.port)
    };
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("dial tcp {place}: connect: connection refused"),
        io::ErrorKind::TimedOut => format!("dial tcp {place}: i/o timeout"),
        io::ErrorKind::NetworkUnreachable => format!("dial tcp {place}: connect: network is unreachable"),
        io::ErrorKind::HostUnreachable => format!("dial tcp {place}: connect: no route to host"),
        _ if error.raw_os_error().is_none() => format!("dial tcp: lookup {}: no such host", target.host),
        _ => format!("dial tcp {place}: {error}"),
    }
}

fn tls_error(target: &Target, error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(why)) = inner else {
        return format!("tls: {error}");
    };
    let why = match why {
        rustls::CertificateError::UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        rustls::CertificateError::Expired | rustls::CertificateError::ExpiredContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        rustls::CertificateError::NotValidForName
        | rustls::CertificateError::NotValidForNameContext { .. } => {
            format!("certificate is not valid for any names, but wanted to match {}", target.server_name)
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}
