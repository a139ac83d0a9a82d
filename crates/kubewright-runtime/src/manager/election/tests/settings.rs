//! Invalid settings are refused.

use std::time::Duration;

use super::{super::ElectionError, rig::Server};

#[tokio::test(start_paused = true)]
async fn settings_under_which_two_could_lead_are_refused() {
    let builder = || Server::new().machine("a").election();
    let seconds = Duration::from_secs;
    assert!(builder().build().is_ok());
    assert_eq!(
        builder().lease_duration(Duration::from_millis(15_500)).build().unwrap_err(),
        ElectionError::LeaseDuration(Duration::from_millis(15_500))
    );
    assert!(matches!(
        builder().lease_duration(Duration::ZERO).build().unwrap_err(),
        ElectionError::LeaseDuration(_)
    ));
    assert!(matches!(
        builder().lease_duration(Duration::MAX).build().unwrap_err(),
        ElectionError::LeaseDuration(_)
    ));
    assert_eq!(
        builder().renew_deadline(seconds(15)).build().unwrap_err(),
        ElectionError::RenewDeadline { deadline: seconds(15), lease: seconds(15) }
    );
    for retry in [Duration::ZERO, seconds(9), Duration::MAX] {
        assert_eq!(
            builder().retry_period(retry).build().unwrap_err(),
            ElectionError::RetryPeriod { retry, deadline: seconds(10) }
        );
    }
    assert_eq!(builder().identity("").build().unwrap_err(), ElectionError::NoIdentity);
}

#[tokio::test(start_paused = true)]
async fn a_missing_identity_is_generated() {
    let client = Server::new().machine("a").client();
    let election = || super::super::LeaderElection::builder(client.clone(), "work").build().unwrap();
    assert_ne!(election().identity(), election().identity());
    assert!(super::super::LeaderElection::builder(client.clone(), "").build().is_err());
}
