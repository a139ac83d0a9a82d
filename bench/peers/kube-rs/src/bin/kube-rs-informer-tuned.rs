//! kube-rs's informer with the allocator of our own programs.

use mimalloc::MiMalloc;

#[path = "../informer.rs"]
mod informer;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() {
    informer::start(true).await;
}
