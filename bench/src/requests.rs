//! Counter of the requests of a client.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use http::{Method, Request};
use kube::client::Body;
use tower::util::MapRequestLayer;

use crate::measure::Line;

/// Number of reads, watches, writes, and Events.
#[derive(Clone, Default)]
pub struct Requests(Arc<[AtomicU64; 4]>);

impl Requests {
    /// Returns a layer that counts.
    pub fn layer(&self) -> MapRequestLayer<impl Fn(Request<Body>) -> Request<Body> + Clone + use<>> {
        let counts = Arc::clone(&self.0);
        MapRequestLayer::new(move |request: Request<Body>| {
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            let which = if path.ends_with("/events") || path.contains("/events/") {
                3
            } else if query.contains("watch=") {
                1
            } else if request.method() == Method::GET {
                0
            } else {
                2
            };
            counts[which].fetch_add(1, Ordering::Relaxed);
            request
        })
    }

    /// Adds the numbers to a line.
    pub fn add(&self, line: Line) -> Line {
        let [reads, watches, writes, events] =
            [0, 1, 2, 3].map(|which| self.0[which].load(Ordering::Relaxed));
        line.with("requests", reads + watches + writes + events)
            .with("requests_read", reads)
            .with("requests_watch", watches)
            .with("requests_write", writes)
            .with("requests_event", events)
    }
}
