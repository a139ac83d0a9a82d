//! How long a retry waits.
//!
//! | limiter | a retry waits |
//! |---|---|
//! | [`ItemExponentialFailure`] | twice as long as the last one of the same key, up to a limit |
//! | [`ItemFastSlow`] | briefly the first few times, then long |
//! | [`Bucket`] | until the whole queue may retry again: so many per second, with a burst |
//! | [`MaxOf`] | as long as the stricter of two limiters says |
//! | [`WithMaxWait`] | as another limiter says, but never longer than a limit |
//!
//! [`default_controller_limiter`] is client-go's default for controllers. A limiter counts per key until
//! [`forget`](RateLimiter::forget): a key that is never forgotten is remembered for ever, which is why
//! [`Item::forget`](super::Item::forget) and [`Item::give_up`](super::Item::give_up) finish an item and forget its
//! key in one step.
//!
//! ```
//! use std::time::Duration;
//! use kubewright::queue::limiter::{Bucket, ItemExponentialFailure, MaxOf, RateLimiter, WithMaxWait};
//!
//! let per_key = ItemExponentialFailure::new(Duration::from_millis(100), Duration::from_secs(60));
//! let overall = WithMaxWait::new(Bucket::per_second(50, 500), Duration::from_secs(30));
//! let limiter = MaxOf::new(per_key, overall);
//!
//! assert_eq!(limiter.when(&"default/web"), Duration::from_millis(100));
//! assert_eq!(limiter.when(&"default/web"), Duration::from_millis(200));
//! assert_eq!(limiter.num_requeues(&"default/web"), 2);
//!
//! limiter.forget(&"default/web");
//! assert_eq!(limiter.when(&"default/web"), Duration::from_millis(100));
//! ```

mod bucket;
mod exponential;
mod failures;
mod fast_slow;
mod max_of;
mod max_wait;

use std::{sync::Arc, time::Duration};

pub use bucket::Bucket;
pub use exponential::ItemExponentialFailure;
pub use fast_slow::ItemFastSlow;
pub use max_of::MaxOf;
pub use max_wait::WithMaxWait;

use super::WorkKey;

/// Decides how long a key waits before it is retried.
pub trait RateLimiter<T>: Send + Sync + 'static {
    /// Counts one more failure of the key and says how long it should wait.
    fn when(&self, key: &T) -> Duration;

    /// The key is done with, for better or worse: its next failure is its first.
    fn forget(&self, key: &T);

    /// How often the key has failed since it was last forgotten.
    fn num_requeues(&self, key: &T) -> u32;
}

/// One limiter for several queues.
impl<T, L: RateLimiter<T> + ?Sized> RateLimiter<T> for Arc<L> {
    fn when(&self, key: &T) -> Duration {
        (**self).when(key)
    }

    fn forget(&self, key: &T) {
        (**self).forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        (**self).num_requeues(key)
    }
}

/// client-go's default for controllers: per key from 5 ms doubling to 1000 s, and over all keys 10 retries per second
/// after a burst of 100.
pub fn default_controller_limiter<T: WorkKey>() -> MaxOf<ItemExponentialFailure<T>, Bucket> {
    MaxOf::new(
        ItemExponentialFailure::new(Duration::from_millis(5), Duration::from_secs(1000)),
        Bucket::per_second(10, 100),
    )
}

/// client-go's default that looks at keys only: from 1 ms doubling to 1000 s.
pub fn default_item_limiter<T: WorkKey>() -> ItemExponentialFailure<T> {
    ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_secs(1000))
}

/// Stands where a queue has no limiter; nobody can ask it.
pub(super) struct Unlimited;

impl<T> RateLimiter<T> for Unlimited {
    fn when(&self, _: &T) -> Duration {
        Duration::ZERO
    }

    fn forget(&self, _: &T) {}

    fn num_requeues(&self, _: &T) -> u32 {
        0
    }
}
