//! Attribute macros of kubewright. Use them through `kubewright` and `kubewright-cluster`, which re-export
//! them: the expansions name those crates.
//!
//! - [`test`](macro@test): a test with a cluster of its own.
//!
//! Each attribute is a function from tokens to tokens in a file of its own, so that its errors can be tested
//! as text.

mod test;

use proc_macro::TokenStream;

/// Runs a test in a cluster of its own.
///
/// ```ignore
/// #[kubewright_cluster::test]
/// async fn a_deployment_becomes_ready(cluster: Cluster) -> kubewright::Result<()> {
///     cluster.apply(include_str!("web.yaml")).await?;
///     cluster.settled().await?;
///     assert_eq!(cluster.get::<Deployment>("default/web").await?.status.unwrap().ready_replicas, Some(3));
///     Ok(())
/// }
/// ```
///
/// The cluster runs in process, without sockets, with all built-in controllers and three simulated nodes. It
/// starts at midnight of 1 January 2026 (UTC) and its time is virtual: it advances only when all tasks are
/// idle, so an hour costs nothing. A test that fails, by a panic or by an error, prints the objects that it
/// changed, the events and the last reconciles.
///
/// The function is `async`, takes the cluster and returns nothing or a `Result<(), E>`. Other attributes,
/// such as `#[ignore]` and `#[should_panic]`, stay on the test.
///
/// | argument | |
/// |---|---|
/// | `nodes = 0` | number of nodes; without nodes, Pods stay pending and the test writes their status |
/// | `controllers = none` | an API server only; there are no nodes then, unless their number is given |
/// | `start = "2026-03-29T00:30:00Z"` | start of the cluster's time |
/// | `real` | a second test, on a real control plane, if its programs are installed |
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    test::expand(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
