//! The attributes of kubewright. Use them through `kubewright` and `kubewright-cluster`, which re-export them: what they
//! expand to names those crates.
//!
//! - [`test`](macro@test): a test that is given a cluster of its own.
//!
//! Each attribute is a function from tokens to tokens in a file of its own, so that what it refuses is tested as text.

mod test;

use proc_macro::TokenStream;

/// A test with a cluster of its own.
///
/// ```ignore
/// #[kubewright_cluster::test]
/// async fn a_web_server_comes_up(cluster: Cluster) -> kubewright::Result<()> {
///     cluster.apply(include_str!("web.yaml")).await?;
///     cluster.settled().await?;
///     assert_eq!(cluster.get::<Deployment>("default/web").await?.status.unwrap().ready_replicas, Some(3));
///     Ok(())
/// }
/// ```
///
/// The cluster is in the process, without sockets, with all built-in controllers and three simulated nodes. It starts at
/// midnight of 1 January 2026 (UTC) and its time is virtual: it passes only when nothing else is left to do, so an hour
/// costs nothing. A test that fails, by a panic or by an error, prints the objects that it changed, the events and the
/// last reconciles.
///
/// The function is `async`, takes the cluster and returns nothing or a `Result<(), E>`. Other attributes, such as
/// `#[ignore]` and `#[should_panic]`, stay on the test.
///
/// | argument | |
/// |---|---|
/// | `nodes = 0` | so many nodes; with none, pods stay pending and the test writes their status |
/// | `controllers = none` | an API server by itself; there are no nodes then, unless you name a number |
/// | `start = "2026-03-29T00:30:00Z"` | when the cluster's time begins |
/// | `real` | a second test, on a real control plane, where its programs are on the machine |
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    test::expand(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
