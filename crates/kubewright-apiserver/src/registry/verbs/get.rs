//! The verb get.

use std::sync::Arc;

use crate::{
    registry::{
        Registry,
        call::{Answer, Call},
    },
    status::Status,
    storage::Object,
};

impl Registry {
    /// Returns the newest state of the object that a write changes, or 404.
    pub(crate) fn find(&self, call: &Call<'_>) -> Result<Arc<Object>, Status> {
        let object = self
            .storage
            .get(&call.ty.storage, &call.key(call.name))
            .ok_or_else(|| Status::not_found(call.ty.about(call.name)))?;
        self.check_shown(call.ty, [&object])?;
        Ok(object)
    }

    /// Gets an object. A version that is not a number is an error without a reason, as upstream.
    pub(crate) fn get(&self, call: &Call<'_>, resource_version: &str) -> Result<Answer, Status> {
        let revision = super::options::revision(resource_version).map_err(Status::internal)?;
        // Reads return committed states only.
        let committed = self.storage.committed();
        if revision > committed.revision {
            return Err(super::list::too_large(revision, committed.revision));
        }
        let object = committed
            .get(&call.ty.storage, &call.key(call.name))
            .ok_or_else(|| Status::not_found(call.ty.about(call.name)))?;
        self.check_shown(call.ty, [&object])?;
        Ok(Answer::Stored { code: 200, ty: Arc::clone(call.ty), object })
    }
}
