//! Read access to the cluster, for admission plugins.

use std::fmt;

use kubewright_core::Random;

use crate::{
    authn::User,
    authz::{Access, Authorizer, Decision},
    registry::ObjectReader,
    storage::Storage,
};

/// The cluster as admission plugins see it: objects and types to read, and the authorizer.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Context<'a> {
    /// The stored objects and the served types.
    pub objects: &'a dyn ObjectReader,
    pub(super) authorizer: &'a Authorizer,
    pub(super) random: &'a Random,
    pub(super) quotas: &'a Storage,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl<'a> Context<'a> {
    /// Returns whether a user may do something.
    pub fn authorize(&self, user: &User, access: &Access<'_>) -> Decision {
        self.authorizer.decide(user, access)
    }

    /// Returns the source of uids and name suffixes.
    pub(super) fn random(&self) -> &'a Random {
        self.random
    }

    /// Returns the storage in which `ResourceQuota` records usage. No other plugin writes.
    pub(super) fn quotas(&self) -> &'a Storage {
        self.quotas
    }
}
