//! GET of one object.

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
    /// The object that a call is about to change, as it is decided, or 404.
    pub fn find(&self, call: &Call<'_>) -> Result<Arc<Object>, Status> {
        let object = self
            .storage
            .get(&call.ty.storage, &call.key(call.name))
            .ok_or_else(|| Status::not_found(call.ty.about(call.name)))?;
        self.check_shown(call.ty, [&object])?;
        Ok(object)
    }

    /// GET. A version that is no number is an error without a reason, as upstream has it.
    pub fn get(&self, call: &Call<'_>, resource_version: &str) -> Result<Answer, Status> {
        let revision = super::options::revision(resource_version).map_err(Status::internal)?;
        // Only what no crash takes back is shown.
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
