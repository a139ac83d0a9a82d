//! All clients from one configuration, over one transport.

use std::sync::Arc;

use http::Request;
use kube::{Api, Client, Config, Resource, client::Body, core::NamespaceResourceScope};
use tower::BoxError;

use super::{
    ApiError,
    config::{ConfigError, ConfigLoader},
    discovery::{DiscoveryClient, DiskCache},
    dynamic::DynamicClient,
    rest::RestClient,
    rest_mapper::RestMapper,
    transport::{Impersonation, Transport, TransportError},
};

/// Why there are no clients.
#[derive(Debug, thiserror::Error)]
pub enum ClientsError {
    /// No usable configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No usable transport.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// The four clients and the mapper, over one transport. A clone is a handle to the same.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use http::{Request, Response};
/// # use kubewright::{client::Transport, kube::client::Body};
/// # let server = tower::service_fn(|request: Request<Body>| async move {
/// #     let body = match request.uri().path() {
/// #         "/healthz" => "ok",
/// #         "/api/v1/namespaces" => r#"{"apiVersion":"v1","kind":"NamespaceList","metadata":{},"items":[{"metadata":{"name":"shop"}}]}"#,
/// #         "/apis/apps/v1/namespaces/shop/deployments/cart" => r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cart"}}"#,
/// #         "/api" => r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[]}"#,
/// #         "/apis" => r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
/// #             {"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
/// #                 {"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment",
/// #                  "verbs":["get","list"],"shortNames":["deploy"],"categories":["all"]}]}]}]}"#,
/// #         other => panic!("{other}"),
/// #     };
/// #     Ok::<_, std::convert::Infallible>(Response::new(Body::from(body.as_bytes().to_vec())))
/// # });
/// # let transport = Transport::over(server, "default").build()?;
/// use k8s_openapi::api::core::v1::Namespace;
/// use kubewright::client::{Clients, typed::{ListParams, ResourceExt}};
///
/// // In a program: let clients = Clients::try_default().await?;
/// let clients = Clients::new(transport);
///
/// // REST: any path.
/// assert_eq!(clients.rest().get().path("/healthz").bytes().await?, "ok");
/// // Typed: Rust types.
/// let namespaces = clients.typed::<Namespace>().list(&ListParams::default()).await?;
/// assert_eq!(namespaces.items[0].name_any(), "shop");
/// // Discovery: what the server serves, and the mapper from words to resources.
/// assert!(clients.discovery().resources().await?.failures.is_empty());
/// assert_eq!(clients.mapper().find("deploy").await?.kind, "Deployment");
/// // Dynamic: any resource, without a type.
/// let cart = clients.dynamic().find("deploy").await?.namespace("shop").get("cart").await?;
/// assert_eq!(cart.types.unwrap().kind, "Deployment");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Clients {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    transport: Transport,
    discovery: DiscoveryClient,
    mapper: RestMapper,
}

impl Clients {
    /// Clients over a transport, or over a [`kube::Client`] that is there already. Discovery is cached in
    /// memory.
    pub fn new(transport: impl Into<Transport>) -> Self {
        let transport = transport.into();
        let discovery = DiscoveryClient::new(transport.client());
        Self::assemble(transport, discovery)
    }

    /// Clients for a configuration, with the default layers.
    pub fn from_config(config: Config) -> Result<Self, TransportError> {
        Ok(Self::new(Transport::builder(config).build()?))
    }

    /// Clients for the configuration that [`ConfigLoader`] finds in the usual places.
    pub async fn try_default() -> Result<Self, ClientsError> {
        Ok(Self::from_config(ConfigLoader::new().load().await?)?)
    }

    /// The same clients with discovery cached on disk too. For command-line tools, which start often and live
    /// briefly; an operator starts once and has no use for what an earlier process saw.
    #[must_use]
    pub fn disk_cache(&self, cache: DiskCache) -> Self {
        let transport = self.inner.transport.clone();
        let discovery = DiscoveryClient::new(transport.client()).disk_cache(cache);
        Self::assemble(transport, discovery)
    }

    /// The same clients, acting as somebody else: every request carries `who`, whatever the transport
    /// impersonates, unless it says otherwise itself. What the two discover is kept apart, because the server
    /// may show them different things.
    ///
    /// Over a ready-made [`kube::Client`] this works unless that client impersonates somebody already: kube
    /// adds its own headers to those of a request.
    #[must_use]
    pub fn impersonate(&self, who: Impersonation) -> Self {
        let below = self.inner.transport.client();
        let namespace = below.default_namespace().to_owned();
        let service = tower::service_fn(move |mut request: Request<Body>| {
            let (below, who) = (below.clone(), who.clone());
            async move {
                // A request that says for itself whom it acts as keeps its word.
                if request.extensions().get::<Impersonation>().is_none() {
                    who.put_on(&mut request)?;
                }
                below.send(request).await.map_err(BoxError::from)
            }
        });
        Self::new(self.inner.transport.replace_client(Client::new(service, namespace)))
    }

    fn assemble(transport: Transport, discovery: DiscoveryClient) -> Self {
        let mapper = RestMapper::new(discovery.clone());
        Self { inner: Arc::new(Inner { transport, discovery, mapper }) }
    }

    /// Raw requests.
    pub fn rest(&self) -> RestClient {
        RestClient::new(self.client())
    }

    /// A type in the whole cluster, or a type that lives in no namespace.
    pub fn typed<K>(&self) -> Api<K>
    where
        K: Resource,
        K::DynamicType: Default,
    {
        Api::all(self.client())
    }

    /// A type in one namespace.
    pub fn typed_in<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), namespace)
    }

    /// Any resource as an unstructured object.
    pub fn dynamic(&self) -> DynamicClient {
        DynamicClient::new(self.client(), self.inner.mapper.clone())
    }

    /// What the server serves.
    pub fn discovery(&self) -> &DiscoveryClient {
        &self.inner.discovery
    }

    /// From words and kinds to resources.
    pub fn mapper(&self) -> &RestMapper {
        &self.inner.mapper
    }

    /// The connection underneath.
    pub fn transport(&self) -> &Transport {
        &self.inner.transport
    }

    /// The [`kube::Client`] underneath.
    pub fn client(&self) -> Client {
        self.inner.transport.client()
    }

    /// The version of the server.
    pub async fn server_version(&self) -> Result<k8s_openapi::apimachinery::pkg::version::Info, ApiError> {
        self.rest().get().path("/version").json().await
    }
}

#[cfg(test)]
mod tests {
    use http::Response;
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use parking_lot::Mutex;

    use super::*;
    use crate::typed::ListParams;

    #[tokio::test]
    async fn all_clients_use_the_one_transport() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let server = tower::service_fn({
            let seen = seen.clone();
            move |request: Request<Body>| {
                let agent = request.headers()["user-agent"].to_str().unwrap().to_owned();
                seen.lock().push((request.uri().path().to_owned(), agent));
                let list = r#"{"apiVersion":"v1","kind":"List","metadata":{},"items":[],"gitVersion":"v1.37.0",
                    "buildDate":"","compiler":"","gitCommit":"","gitTreeState":"","goVersion":"","major":"","minor":"","platform":""}"#;
                async move {
                    Ok::<_, std::convert::Infallible>(Response::new(Body::from(list.as_bytes().to_vec())))
                }
            }
        });
        let transport =
            Transport::over(server, "default").user_agent(crate::UserAgent::raw("one")).build().unwrap();
        let clients = Clients::new(transport);
        clients.rest().get().path("/raw").bytes().await.unwrap();
        clients.typed::<Pod>().list(&ListParams::default()).await.unwrap();
        clients.typed_in::<ConfigMap>("n").list(&ListParams::default()).await.unwrap();
        let things = kube::core::GroupVersionResource::gvr("example.com", "v1", "things");
        clients.dynamic().resource(&things).list(&ListParams::default()).await.unwrap();
        assert_eq!(clients.server_version().await.unwrap().git_version, "v1.37.0");
        let paths: Vec<_> = seen.lock().iter().map(|(path, agent)| format!("{agent} {path}")).collect();
        assert_eq!(
            paths,
            [
                "one /raw",
                "one /api/v1/pods",
                "one /api/v1/namespaces/n/configmaps",
                "one /apis/example.com/v1/things",
                "one /version"
            ]
        );
    }

    #[tokio::test]
    async fn impersonating_clients_act_as_somebody_else_and_the_others_do_not() {
        let server = tower::service_fn(|request: Request<Body>| async move {
            let header =
                |name: &str| request.headers().get(name).map_or("-", |value| value.to_str().unwrap());
            let text = format!("{} {}", header("impersonate-user"), header("impersonate-group"));
            Ok::<_, std::convert::Infallible>(Response::new(Body::from(text.into_bytes())))
        });
        let transport = Transport::over(server, "default")
            .impersonate(Impersonation::user("ops").group("system:masters"))
            .build()
            .unwrap();
        let clients = Clients::new(transport);
        let bob = clients.impersonate(Impersonation::user("bob"));
        let ask = |clients: &Clients| clients.rest().get().path("/").bytes();
        assert_eq!(ask(&clients).await.unwrap(), "ops system:masters");
        assert_eq!(ask(&bob).await.unwrap(), "bob -");
        assert_eq!(ask(&bob.impersonate(Impersonation::user("eve"))).await.unwrap(), "eve -");
        let once = bob.rest().get().path("/").impersonate(Impersonation::user("carol")).bytes();
        assert_eq!(once.await.unwrap(), "carol -");
        let nobody = clients.impersonate(Impersonation::user("").group("system:masters"));
        assert!(ask(&nobody).await.unwrap_err().to_string().contains("needs a user"));
    }

    #[tokio::test]
    async fn a_ready_made_client_impersonates_too_and_does_not_act_as_itself_instead() {
        let (log, client) = crate::testing::client(|_| Response::new(Body::empty()));
        let clients = Clients::new(client);
        clients.impersonate(Impersonation::user("bob")).rest().get().path("/").bytes().await.unwrap();
        clients
            .rest()
            .get()
            .path("/")
            .impersonate(Impersonation::user("eve").group("dev"))
            .bytes()
            .await
            .unwrap();
        let seen = log.all();
        assert_eq!(seen[0].headers["impersonate-user"], "bob");
        assert_eq!(seen[1].headers["impersonate-user"], "eve");
        assert_eq!(seen[1].headers["impersonate-group"], "dev");
    }
}
