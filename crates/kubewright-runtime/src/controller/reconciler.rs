//! What an author writes.

use crate::{
    Error,
    controller::{Action, Context},
};
use kubewright_core::Object;

/// Brings the world into the state that an object asks for.
///
/// Any `async fn(Context<K>) -> Result<Action>` is one, and so is a closure. Implement it for a type that has something
/// to remember:
///
/// ```
/// use kubewright::prelude::*;
/// use kubewright::k8s_openapi::api::core::v1::Pod;
///
/// struct Greeter { greeting: String }
///
/// impl Reconciler<Pod> for Greeter {
///     async fn reconcile(&self, cx: Context<Pod>) -> Result<Action> {
///         if cx.object()?.is_some() {
///             println!("{} {}", self.greeting, cx.key());
///         }
///         Ok(Action::done())
///     }
/// }
/// # let _ = Controller::of::<Pod>().reconcile(Greeter { greeting: "hello".into() });
/// ```
pub trait Reconciler<K: Object>: Send + Sync + 'static {
    /// Looks at the object of this context and does what is necessary.
    ///
    /// It is called again and again, also when nothing has changed: what is done already must not be done twice.
    fn reconcile(&self, cx: Context<K>) -> impl Future<Output = Result<Action, Error>> + Send;
}

impl<K, F, Fut> Reconciler<K> for F
where
    K: Object,
    F: Fn(Context<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, Error>> + Send,
{
    fn reconcile(&self, cx: Context<K>) -> impl Future<Output = Result<Action, Error>> + Send {
        self(cx)
    }
}
