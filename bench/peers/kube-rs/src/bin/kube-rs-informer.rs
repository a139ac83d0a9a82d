//! kube-rs's informer with the allocator that Rust programs have unless they choose another.

#[path = "../informer.rs"]
mod informer;

#[tokio::main]
async fn main() {
    informer::start(false).await;
}
