//! The way to the API server that all clients share, and the layers around it.
//!
//! [`Transport`] is built from a [`kube::Config`] or over any [`tower::Service`] (an API server in the same
//! process, a double in a test) and holds the [`kube::Client`] that every client of this module uses. The
//! layers are client-go's five round trippers under their own names, and what it counts and warns of; each is a
//! plain [`tower::Layer`] and can be used alone. A [`Tap`] makes another in a few lines.
//!
//! ```text
//!  request ─▶ impersonation ─▶ user agent ─▶ bearer or basic ─▶ debug ─▶ warnings ─▶ metrics ─▶ your layers
//!          ─▶ kube: exec plugin ─▶ extra headers ─▶ base URL ─▶ TLS and connections
//! ```
//!
//! What goes through the [`kube::Client`] waits in its queue for a task that calls the layers. Writes of a
//! `CachedClient` and events call the same layers themselves where they were given the
//! transport and not its client: a manager should be, see `ManagerBuilder::client`.
//!
//! # Which layer wins
//! - **Credentials.** What [`TransportBuilder::bearer_token`] or [`TransportBuilder::basic_auth`] says, else
//!   what the configuration says. Tokens, token files and passwords of a configuration are taken out of it
//!   and served by our layers: they let a request keep an `Authorization` of its own, trim the file's final
//!   line break and read the file again after a 401. Credential plugins (exec), auth providers and client
//!   certificates stay with kube, which does them well; kube's layer is the innermost and overwrites, so with
//!   a plugin a request's own `Authorization` is lost.
//! - **Impersonation.** The request's, else the builder's, else the configuration's, never a mixture (see
//!   [`Impersonation`]). Also taken out of the configuration, because kube would add its headers to ours.
//! - **User agent.** The request's, else the builder's.
//! - **Retries.** None here. kube's default policy repeats every verb up to 15 times on 429, 503 and 504,
//!   watches and creates included; reflectors and work queues have their own back-off and must see the first
//!   refusal. It is switched off ([`kube::Config::default_retry`]) however the configuration came.
//!
//! # No client-side rate limit
//! client-go limits itself to 5 requests a second by default, from before the server could defend itself.
//! Today priority and fairness queues and refuses (429 with `Retry-After`) per user and with knowledge of the
//! real load; a limit in the client only adds latency nobody can see. controller-runtime has turned it off
//! for the same reason. Whoever wants one adds
//! [`tower::limit::RateLimitLayer`](https://docs.rs/tower/latest/tower/limit/) with
//! [`TransportBuilder::layer`].

mod basic;
mod bearer;
mod buffered;
mod connect;
mod debug;
mod driven;
mod impersonate;
mod metrics;
mod redact;
mod shared;
mod socket;
mod tap;
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
    debug::{DebugLayer, DebugLevel, DebugService, Tee},
    impersonate::{Impersonation, ImpersonationError, ImpersonationLayer},
    metrics::{MetricsLayer, RestMetrics},
    tap::{Answer, Tap, TapLayer, TapService},
    user_agent::{UserAgent, UserAgentLayer},
    warnings::{Warning, Warnings, WarningsLayer},
};
use crate::error;

/// The service at the bottom of a [`Transport`], its type erased.
pub type TransportService = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// Why a [`Transport`] cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// A kubeconfig user, or the caller, gave both a password and a token.
    #[error(
        "both a password and a bearer token are configured; the API server takes one of them, remove the other"
    )]
    TwoCredentials,
    /// The impersonation of the client cannot be sent.
    #[error(transparent)]
    Impersonation(#[from] ImpersonationError),
    /// A credential plugin failed, or its answer cannot be used.
    #[error("{0}")]
    Credentials(String),
    /// TLS, proxy or another part of kube's stack cannot be set up.
    #[error("the connection to the API server cannot be set up: {0}")]
    Connection(#[source] Box<kube::Error>),
    /// There is no tokio runtime here, and connections are driven by one.
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

/// The way to the API server that all clients share. A clone is a handle to the same connections: a pool of them for requests,
/// and one for each watch.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use http::{Request, Response};
/// use kubewright::client::{Transport, UserAgent};
/// use kubewright::kube::client::Body;
///
/// // A server in the same process: it answers with the user agent that it saw.
/// let server = tower::service_fn(|request: Request<Body>| async move {
///     let agent = request.headers()["user-agent"].as_bytes().to_vec();
///     Ok::<_, std::convert::Infallible>(Response::new(Body::from(agent)))
/// });
/// let transport =
///     Transport::over(server, "default").user_agent(UserAgent::raw("shop-operator/2.0")).build()?;
///
/// let answer = transport.client().request_text(Request::get("/version").body(vec![])?).await?;
/// assert_eq!(answer, "shop-operator/2.0");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Transport {
    client: Client,
    /// The layers of the client, if they are ours.
    layers: Option<Shared>,
    server: Option<Uri>,
}

impl Transport {
    /// Begins a transport to the API server of a configuration.
    pub fn builder(config: Config) -> TransportBuilder {
        TransportBuilder::on(Base::Config(Box::new(config)))
    }

    /// Begins a transport over a service: an API server in this process, or a double.
    pub fn over<S, B>(service: S, default_namespace: impl Into<String>) -> TransportBuilder
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        TransportBuilder::on(Base::Service(erase(service), default_namespace.into()))
    }

    /// The client on this connection, for [`Api<K>`](kube::Api) and everything else that kube offers.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The same client, lent.
    pub fn kube(&self) -> &Client {
        &self.client
    }

    /// Sends a request as the client would, and without its queue where that is possible.
    pub async fn send(&self, request: Request<Body>) -> kube::Result<Response<AnswerBody>> {
        let for_queue = match &self.layers {
            Some(layers) => match layers.call_now(request) {
                Either::Left(answer) => return shared::as_kubes(answer).await,
                Either::Right(request) => request,
            },
            None => request,
        };
        Ok(self.client.send(for_queue).await?.map(http_body_util::BodyExt::boxed_unsync))
    }

    /// The address of the API server; absent over a service and for a ready-made [`kube::Client`].
    pub fn server(&self) -> Option<&Uri> {
        self.server.as_ref()
    }

    /// The same connection under another client, as
    /// [`Clients::impersonate`](crate::Clients::impersonate) needs it.
    pub(crate) fn replace_client(&self, client: Client) -> Self {
        Self { client, layers: None, server: self.server.clone() }
    }
}

impl From<Client> for Transport {
    /// A client that somebody else built. Its retry policy and its layers stay what they are.
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

/// Sets the layers of a [`Transport`]; see [the module](self) for who wins.
#[must_use = "call build() to get the transport"]
pub struct TransportBuilder {
    base: Base,
    wraps: Vec<Wrap>,
    bearer: Option<BearerToken>,
    basic: Option<BasicAuth>,
    user_agent: UserAgent,
    impersonation: Option<Impersonation>,
    debug: Option<DebugLevel>,
    metrics: RestMetrics,
    warnings: Warnings,
}

enum Base {
    Config(Box<Config>),
    Service(TransportService, String),
}

type Wrap = Box<dyn Fn(TransportService) -> TransportService + Send>;

/// The user's layers as one.
struct Wraps(Vec<Wrap>);

impl Layer<TransportService> for Wraps {
    type Service = TransportService;

    fn layer(&self, inner: TransportService) -> TransportService {
        self.0.iter().fold(inner, |service, wrap| wrap(service))
    }
}

impl TransportBuilder {
    fn on(base: Base) -> Self {
        Self {
            base,
            wraps: Vec::new(),
            bearer: None,
            basic: None,
            user_agent: UserAgent::default(),
            impersonation: None,
            debug: None,
            metrics: RestMetrics::global().clone(),
            warnings: Warnings::logged_once(),
        }
    }

    /// Authenticates with this token, whatever the configuration says.
    pub fn bearer_token(mut self, token: BearerToken) -> Self {
        self.bearer = Some(token);
        self
    }

    /// Authenticates with user name and password, whatever the configuration says.
    pub fn basic_auth(mut self, credentials: BasicAuth) -> Self {
        self.basic = Some(credentials);
        self
    }

    /// Calls itself this. The default names the running program.
    pub fn user_agent(mut self, agent: UserAgent) -> Self {
        self.user_agent = agent;
        self
    }

    /// Acts as somebody else on every request that does not say otherwise.
    pub fn impersonate(mut self, who: Impersonation) -> Self {
        self.impersonation = Some(who);
        self
    }

    /// Shows the traffic in the log.
    pub fn debug(mut self, level: impl Into<Option<DebugLevel>>) -> Self {
        self.debug = level.into();
        self
    }

    /// Counts into this set instead of the one of the process.
    pub fn metrics(mut self, metrics: &RestMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// What to do with the warnings that the server sends with its answers. The default logs each text once.
    pub fn warnings(mut self, warnings: Warnings) -> Self {
        self.warnings = warnings;
        self
    }

    /// Puts a layer of yours right above the connection, where it sees requests as they leave; of two, the
    /// later one sees them first.
    pub fn layer<L, B>(mut self, layer: L) -> Self
    where
        L: Layer<TransportService> + Send + 'static,
        L::Service: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send + 'static,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.wraps.push(Box::new(move |inner| erase(layer.layer(inner))));
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
            .with_layer(&Wraps(self.wraps))
            .with_layer(&MetricsLayer::new(self.metrics.of(server.as_ref())))
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

/// A service whose body and error types are erased, as kube's own stack is.
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

/// Takes out of a kubeconfig user what our layers serve; leaves plugins, providers and certificates to kube.
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
            // As in client-go, a token is stronger than a plugin; kube's layer would overwrite it.
            auth.exec = None;
            Ok(found)
        }
    }
}

/// Removes every credential but client certificates, for a caller who brings their own.
fn drop_credentials(auth: &mut AuthInfo) {
    auth.token = None;
    auth.token_file = None;
    auth.username = None;
    auth.password = None;
    auth.exec = None;
    auth.auth_provider = None;
}
