//! Transport to the API server, shared by all clients, and its layers.
//!
//! [`Transport`] is built from a [`kube::Config`] or over any [`tower::Service`] (an in-process API server, a
//! test double) and holds the [`kube::Client`] that every client of this module uses. The layers are
//! client-go's five round trippers with their names, its metrics and its warning handler; each is a plain
//! [`tower::Layer`] and can be used alone. An [`Interceptor`] adds another in a few lines.
//!
//! ```text
//!  request ─▶ impersonation ─▶ user agent ─▶ bearer or basic ─▶ debug ─▶ warnings ─▶ metrics ─▶ your layers
//!          ─▶ kube: exec plugin ─▶ extra headers ─▶ base URL ─▶ TLS and connections
//! ```
//!
//! Requests through the [`kube::Client`] are queued for a task that calls the layers. Events and writes of
//! `kubewright-runtime`'s `CachedClient` call the layers directly if they were given the transport and not its
//! client, as a manager should be, see `ManagerBuilder::client`.
//!
//! # Precedence
//! - **Credentials.** Those of [`TransportBuilder::bearer_token`] or [`TransportBuilder::basic_auth`], else
//!   those of the configuration. Tokens, token files and passwords are taken out of the configuration and
//!   handled by our layers: these keep the `Authorization` of a request, trim the file's final line break and
//!   read the file again after a 401. Credential plugins (exec), auth providers and client certificates are
//!   left to kube; its layer is the innermost and overwrites, so with a plugin a request's own
//!   `Authorization` is lost.
//! - **Impersonation.** The request's, else the builder's, else the configuration's, never merged (see
//!   [`Impersonation`]). Also taken out of the configuration, because kube would add its headers to ours.
//! - **User agent.** The request's, else the builder's.
//! - **Retries.** None. kube's default policy retries every verb up to 15 times on 429, 503 and 504, watches
//!   and creates included; reflectors and work queues have their own back-off and must see the first error.
//!   It is always switched off ([`kube::Config::default_retry`]).
//!
//! # No client-side rate limit
//! client-go limits itself to 5 requests a second by default, from before the server could protect itself.
//! Today priority and fairness queues and rejects (429 with `Retry-After`) per user and by the actual load; a
//! limit in the client only adds invisible latency. controller-runtime has turned it off for the same reason.
//! To have one, add [`tower::limit::RateLimitLayer`](https://docs.rs/tower/latest/tower/limit/) with
//! [`TransportBuilder::layer`].

mod basic;
mod bearer;
mod buffered;
mod connect;
mod debug;
mod driven;
mod impersonate;
mod interceptor;
mod metrics;
mod redact;
mod shared;
mod socket;
#[cfg(test)]
mod tests;
mod user_agent;
mod warnings;

use std::fmt;

use bytes::Bytes;
use futures::future::Either;
use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, DynBody},
    config::AuthInfo,
};
use tower::{
    BoxError, Layer, Service, ServiceExt as _,
    util::{BoxService, option_layer},
};

pub use self::driven::ReadToItsEnd;
pub use self::shared::AnswerBody;
use self::shared::{Shared, SharedLayer};
pub use self::{
    basic::{BasicAuth, BasicAuthLayer},
    bearer::{BearerLayer, BearerToken, TokenError},
    debug::{DebugBody, DebugLayer, DebugLevel, DebugService},
    impersonate::{Impersonation, ImpersonationError, ImpersonationLayer},
    interceptor::{Interceptor, InterceptorLayer, InterceptorService, ResponseHead},
    metrics::{MetricsLayer, RestMetrics},
    user_agent::{UserAgent, UserAgentLayer},
    warnings::{Warning, WarningHandler, WarningsLayer},
};
use crate::error;

/// The type-erased service at the bottom of a [`Transport`].
pub type TransportService = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// Error from building a [`Transport`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// Both a password and a token are configured.
    #[error(
        "both a password and a bearer token are configured; the API server takes one of them, remove the other"
    )]
    TwoCredentials,
    /// The impersonation of the client cannot be encoded.
    #[error(transparent)]
    Impersonation(#[from] ImpersonationError),
    /// A credential plugin failed, or its output cannot be used.
    #[error("{0}")]
    Credentials(String),
    /// TLS, proxy or another part of kube's stack cannot be set up.
    #[error("the connection to the API server cannot be set up: {0}")]
    Connection(#[source] Box<kube::Error>),
    /// There is no tokio runtime.
    #[error("a transport must be built inside a tokio runtime, for example under #[tokio::main]")]
    NoRuntime,
}

impl From<kube::Error> for TransportError {
    fn from(error: kube::Error) -> Self {
        match error::auth_error(&error) {
            Some(auth) => Self::Credentials(error::summary(auth)),
            None => Self::Connection(Box::new(error)),
        }
    }
}

/// Transport to the API server, shared by all clients. Clones share the connections: a pool for requests, and
/// one connection for each watch.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use http::{Request, Response};
/// use kubewright::client::{Transport, UserAgent};
/// use kubewright::kube::client::Body;
///
/// // An in-process server that responds with the user agent of the request.
/// let server = tower::service_fn(|request: Request<Body>| async move {
///     let agent = request.headers()["user-agent"].as_bytes().to_vec();
///     Ok::<_, std::convert::Infallible>(Response::new(Body::from(agent)))
/// });
/// let transport =
///     Transport::from_service(server, "default").user_agent(UserAgent::raw("shop-operator/2.0")).build()?;
///
/// let answer = transport.client().request_text(Request::get("/version").body(vec![])?).await?;
/// assert_eq!(answer, "shop-operator/2.0");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Transport {
    client: Client,
    /// The layers of the client; `None` for a client that was not built here.
    layers: Option<Shared>,
    server: Option<Uri>,
}

impl Transport {
    /// Returns a builder for the API server of a configuration.
    pub fn builder(config: Config) -> TransportBuilder {
        TransportBuilder::new(Base::Config(Box::new(config)))
    }

    /// Returns a builder over a service: an in-process API server, or a test double.
    pub fn from_service<S, B>(service: S, default_namespace: impl Into<String>) -> TransportBuilder
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        TransportBuilder::new(Base::Service(erase(service), default_namespace.into()))
    }

    /// Returns the client, for [`Api<K>`](kube::Api) and everything else that kube offers.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Borrows the client.
    pub fn kube(&self) -> &Client {
        &self.client
    }

    /// Sends a request as the client would, bypassing its queue where possible.
    pub async fn send(&self, request: Request<Body>) -> kube::Result<Response<AnswerBody>> {
        let for_queue = match &self.layers {
            Some(layers) => match layers.call_now(request) {
                Either::Left(answer) => return shared::into_kube(answer).await,
                Either::Right(request) => request,
            },
            None => request,
        };
        Ok(self.client.send(for_queue).await?.map(http_body_util::BodyExt::boxed_unsync))
    }

    /// Returns the address of the API server; `None` over a service and for a ready-made [`kube::Client`].
    pub fn server(&self) -> Option<&Uri> {
        self.server.as_ref()
    }

    /// Returns the transport with another client, for
    /// [`Clients::impersonate`](crate::Clients::impersonate).
    pub(crate) fn replace_client(&self, client: Client) -> Self {
        Self { client, layers: None, server: self.server.clone() }
    }
}

impl From<Client> for Transport {
    /// Wraps a ready-made client. Its retry policy and its layers stay.
    fn from(client: Client) -> Self {
        Self { client, layers: None, server: None }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.as_ref().map(|uri| redact::url(None, uri));
        f.debug_struct("Transport").field("server", &server).finish_non_exhaustive()
    }
}

/// Builder of a [`Transport`]; see [the module](self) for precedence.
#[must_use = "call build() to get the transport"]
pub struct TransportBuilder {
    base: Base,
    user_layers: Vec<UserLayer>,
    bearer: Option<BearerToken>,
    basic: Option<BasicAuth>,
    user_agent: UserAgent,
    impersonation: Option<Impersonation>,
    debug: Option<DebugLevel>,
    metrics: RestMetrics,
    warnings: WarningHandler,
}

enum Base {
    Config(Box<Config>),
    Service(TransportService, String),
}

type UserLayer = Box<dyn Fn(TransportService) -> TransportService + Send>;

/// The user's layers as one.
struct UserLayers(Vec<UserLayer>);

impl Layer<TransportService> for UserLayers {
    type Service = TransportService;

    fn layer(&self, inner: TransportService) -> TransportService {
        self.0.iter().fold(inner, |service, layer| layer(service))
    }
}

impl TransportBuilder {
    fn new(base: Base) -> Self {
        Self {
            base,
            user_layers: Vec::new(),
            bearer: None,
            basic: None,
            user_agent: UserAgent::default(),
            impersonation: None,
            debug: None,
            metrics: RestMetrics::global().clone(),
            warnings: WarningHandler::log_once(),
        }
    }

    /// Authenticates with this token instead of the credentials of the configuration.
    pub fn bearer_token(mut self, token: BearerToken) -> Self {
        self.bearer = Some(token);
        self
    }

    /// Authenticates with user name and password instead of the credentials of the configuration.
    pub fn basic_auth(mut self, credentials: BasicAuth) -> Self {
        self.basic = Some(credentials);
        self
    }

    /// Sets the user agent. The default names the running program.
    pub fn user_agent(mut self, agent: UserAgent) -> Self {
        self.user_agent = agent;
        self
    }

    /// Impersonates a user on every request without its own impersonation.
    pub fn impersonate(mut self, who: Impersonation) -> Self {
        self.impersonation = Some(who);
        self
    }

    /// Logs requests at this level.
    pub fn debug(mut self, level: impl Into<Option<DebugLevel>>) -> Self {
        self.debug = level.into();
        self
    }

    /// Sets the metrics, instead of those of the process.
    pub fn metrics(mut self, metrics: &RestMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Sets the handler of warnings in responses. The default logs each text once.
    pub fn warning_handler(mut self, handler: WarningHandler) -> Self {
        self.warnings = handler;
        self
    }

    /// Adds a layer right above the connection, where it sees requests as they are sent; a later layer is
    /// outside of an earlier one.
    pub fn layer<L, B>(mut self, layer: L) -> Self
    where
        L: Layer<TransportService> + Send + 'static,
        L::Service: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send + 'static,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.user_layers.push(Box::new(move |inner| erase(layer.layer(inner))));
        self
    }

    /// Builds the transport. Opens no connection yet; runs the credential plugin if there is one.
    pub fn build(mut self) -> Result<Transport, TransportError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(TransportError::NoRuntime);
        }
        let mut server = None;
        let stack = match self.base {
            Base::Service(service, namespace) => ClientBuilder::new(service, namespace),
            Base::Config(mut config) => {
                config.default_retry = false;
                if self.bearer.is_none() && self.basic.is_none() {
                    (self.bearer, self.basic) = take_credentials(&mut config.auth_info)?;
                } else {
                    drop_credentials(&mut config.auth_info);
                }
                let configured = Impersonation::take_from(&mut config.auth_info);
                self.impersonation = self.impersonation.or(configured);
                server = Some(config.cluster_url.clone());
                connect::stack(*config)?
            }
        };
        if self.bearer.is_some() && self.basic.is_some() {
            return Err(TransportError::TwoCredentials);
        }
        let shared = SharedLayer::default();
        let client = stack
            .with_layer(&UserLayers(self.user_layers))
            .with_layer(&MetricsLayer::new(self.metrics.for_server(server.as_ref())))
            .with_layer(&WarningsLayer::new(self.warnings))
            .with_layer(&DebugLayer::new(self.debug, server.clone()))
            .with_layer(&option_layer(self.bearer.map(BearerLayer::new)))
            .with_layer(&option_layer(self.basic.map(BasicAuthLayer::new)))
            .with_layer(&UserAgentLayer::new(self.user_agent))
            .with_layer(&ImpersonationLayer::new(self.impersonation.as_ref())?)
            .with_layer(&shared)
            .build();
        Ok(Transport { client, layers: shared.into_shared(), server })
    }
}

/// Erases the body and error types of a service, as kube's own stack does.
fn erase<S, B>(service: S) -> TransportService
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    service
        .map_response(|response: Response<B>| {
            response.map(|body| Box::new(body.map_err(Into::into).boxed_unsync()) as Box<DynBody>)
        })
        .map_err(Into::into)
        .boxed()
}

/// Takes the credentials that our layers handle out of a kubeconfig user; leaves the others to kube.
fn take_credentials(auth: &mut AuthInfo) -> Result<(Option<BearerToken>, Option<BasicAuth>), TransportError> {
    if auth.auth_provider.is_some() {
        return Ok((None, None));
    }
    let bearer = match (auth.token.take(), auth.token_file.take()) {
        (Some(token), Some(file)) => Some(BearerToken::file_or(file, token)),
        (Some(token), None) => Some(BearerToken::fixed(token)),
        (None, Some(file)) => Some(BearerToken::file(file)),
        (None, None) => None,
    };
    let basic = match (auth.username.take(), auth.password.take()) {
        (Some(user), Some(password)) => Some(BasicAuth::new(user, password)),
        _ => None,
    };
    match (bearer, basic) {
        (Some(_), Some(_)) => Err(TransportError::TwoCredentials),
        (None, None) => Ok((None, None)),
        found => {
            // As in client-go, a token takes precedence over a plugin; kube's layer would overwrite it.
            auth.exec = None;
            Ok(found)
        }
    }
}

/// Removes every credential but client certificates, for a caller with its own.
fn drop_credentials(auth: &mut AuthInfo) {
    auth.token = None;
    auth.token_file = None;
    auth.username = None;
    auth.password = None;
    auth.exec = None;
    auth.auth_provider = None;
}
