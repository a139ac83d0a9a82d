//! Where a webhook is and how it is called.

use std::{fmt, sync::Arc, time::Duration};

use base64::Engine;
use futures::future::BoxFuture;
use kubewright_core::ObjectKey;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::Value;

use super::Https;
use crate::registry::{
    Registry,
    json::{Json, at, object, objects, text, text_at},
};

/// Where a webhook is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The address as messages write it, with the time limit as a parameter.
    pub url: String,
    /// The name that the server's certificate must have.
    pub server_name: String,
    /// The host to connect to.
    pub host: String,
    /// The port to connect to.
    pub port: u16,
    /// The path with its parameters.
    pub path: String,
    /// The authority (PEM) that must have signed the server's certificate; the system's when there is none.
    pub authority: Option<Vec<u8>>,
}

/// How webhooks are reached.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Sends a JSON body; the answer is a status code and a body, the error what Go's client would say.
    fn post<'a>(&'a self, target: &'a Target, body: Vec<u8>)
    -> BoxFuture<'a, Result<(u16, Vec<u8>), String>>;
}

/// Where the server of a `Service` is.
pub trait ServiceResolver: fmt::Debug + Send + Sync + 'static {
    /// The host and port to connect to.
    fn resolve(
        &self,
        registry: &Registry,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<(String, u16), String>;
}

/// Services of the cluster, by the names that its DNS gives them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClusterServices;

impl ServiceResolver for ClusterServices {
    fn resolve(
        &self,
        registry: &Registry,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<(String, u16), String> {
        let key = ObjectKey::new(Some(namespace), name);
        let service = registry.storage.get("services", &key);
        let service = service.ok_or_else(|| format!("service {name:?} not found"))?.decode();
        let empty = Json::new();
        let spec = object(&service, "spec").unwrap_or(&empty);
        if text(spec, "type") == "ExternalName" {
            return Ok((text(spec, "externalName").to_owned(), port));
        }
        let has_port = |p: &Json| p.get("port").and_then(Value::as_u64) == Some(u64::from(port));
        if !objects(spec, "ports").any(has_port) {
            return Err(format!("no service port {port} found for service {name:?}"));
        }
        Ok((format!("{name}.{namespace}.svc"), port))
    }
}

/// How webhooks are found and called.
#[derive(Debug, Clone)]
pub struct Webhooks {
    transport: Arc<dyn Transport>,
    resolver: Arc<dyn ServiceResolver>,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self { transport: Arc::new(Https), resolver: Arc::new(ClusterServices) }
    }
}

impl Webhooks {
    /// Calls webhooks in another way.
    #[must_use]
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Arc::new(transport);
        self
    }

    /// Finds the servers of services in another way.
    #[must_use]
    pub fn resolver(mut self, resolver: impl ServiceResolver) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Sends a JSON body to where a `clientConfig` says and reads the JSON that comes back; the error is what follows
    /// `failed calling webhook "NAME": `.
    pub async fn post(
        &self,
        registry: &Registry,
        client_config: &Json,
        limit: Duration,
        body: &Value,
    ) -> Result<Value, String> {
        let target = self.target(registry, client_config, limit)?;
        self.exchange(&target, limit, body).await.map_err(|why| format!("failed to call webhook: {why}"))
    }

    async fn exchange(&self, target: &Target, limit: Duration, body: &Value) -> Result<Value, String> {
        let body = serde_json::to_vec(body).unwrap_or_default();
        let failed = |why: &str| format!("Post {:?}: {why}", target.url);
        let answer = tokio::time::timeout(limit, self.transport.post(target, body)).await;
        let (code, body) =
            answer.map_err(|_| failed("context deadline exceeded"))?.map_err(|why| failed(&why))?;
        if !(200..300).contains(&code) {
            return Err(refused(code, &String::from_utf8_lossy(&body)));
        }
        serde_json::from_slice(&body)
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
    }

    fn target(&self, registry: &Registry, config: &Json, limit: Duration) -> Result<Target, String> {
        let parameter = format!("timeout={}s", limit.as_secs());
        let authority = Some(text(config, "caBundle")).filter(|bundle| !bundle.is_empty());
        let authority = authority
            .map(|bundle| base64::engine::general_purpose::STANDARD.decode(bundle))
            .transpose()
            .ok()
            .filter(|pem| pem.as_deref().is_none_or(has_certificate))
            .ok_or("could not get REST client: unable to load root certificates: unable to parse bytes as PEM block")?;
        let Some(service) = object(config, "service") else {
            let url = text(config, "url");
            let (host, port, path) = split(url)
                .ok_or_else(|| format!("could not get REST client: {url:?} is not a URL of a webhook"))?;
            let path = format!("{path}?{parameter}");
            let url = format!("{url}?{parameter}");
            return Ok(Target { url, server_name: host.clone(), host, port, path, authority });
        };
        let (namespace, name) = (text(service, "namespace"), text(service, "name"));
        let asked = at(config, &["service", "port"]).and_then(Value::as_u64).unwrap_or(443);
        let asked = u16::try_from(asked)
            .map_err(|_| format!("could not get REST client: port {asked} is not valid"))?;
        let server_name = format!("{name}.{namespace}.svc");
        let path = match text_at(config, &["service", "path"]) {
            "" => "/".to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        let path = format!("{path}?{parameter}");
        let url = format!("https://{server_name}:{asked}{path}");
        let (host, port) = self
            .resolver
            .resolve(registry, namespace, name, asked)
            .map_err(|why| format!("failed to call webhook: Post {url:?}: {why}"))?;
        Ok(Target { url, server_name, host, port, path, authority })
    }
}

/// Whether there is a certificate in a PEM file.
fn has_certificate(pem: &[u8]) -> bool {
    CertificateDer::pem_slice_iter(pem).next().is_some_and(|found| found.is_ok())
}

/// Host, port and path of `https://host[:port][/path]`.
fn split(url: &str) -> Option<(String, u16, &str)> {
    let rest = url.strip_prefix("https://")?;
    let (place, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let (host, port) = match place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, "")) => (host, "443"),
        Some((host, port)) => (host, port.strip_prefix(':')?),
        None => place.split_once(':').unwrap_or((place, "443")),
    };
    Some((host.to_owned(), port.parse().ok()?, path))
}

/// What Go's client says about an answer that is none.
fn refused(code: u16, body: &str) -> String {
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => body.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => format!(
            "the server was unable to return a response in the time allotted, but may still be processing the request ({body})"
        ),
        500.. => {
            format!("an error on the server ({:?}) has prevented the request from succeeding", body.trim())
        }
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_into_what_a_connection_needs() {
        let whole = |url| split(url).map(|(host, port, path)| format!("{host} {port} {path}"));
        assert_eq!(whole("https://a.b").as_deref(), Some("a.b 443 /"));
        assert_eq!(whole("https://a.b:8443/x/y").as_deref(), Some("a.b 8443 /x/y"));
        assert_eq!(whole("https://[::1]:1/x").as_deref(), Some("::1 1 /x"));
        assert_eq!(whole("http://a.b"), None);
        assert_eq!(whole("https://a.b:port"), None);
    }
}
