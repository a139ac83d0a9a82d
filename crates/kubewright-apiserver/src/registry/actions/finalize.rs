//! `namespaces/finalize`: removes finalizers of a namespace, as the namespace controller does when it is empty.

use crate::{
    registry::{
        Registry,
        call::{Answer, Call},
        json::{Json, meta, meta_mut, object, object_mut, text},
        verbs::{check_name, update::Writer},
    },
    status::Status,
};

impl Registry {
    /// Updates `namespaces/finalize`: only `spec.finalizers` is used.
    pub(crate) async fn finalize(&self, call: &Call<'_>, body: &Json) -> Result<Answer, Status> {
        check_name(call, text(meta(body), "name"))?;
        let finalizers = object(body, "spec").and_then(|s| s.get("finalizers")).cloned();
        let object = self
            .change(
                call,
                &mut |current| {
                    let mut changed = current.clone();
                    meta_mut(&mut changed).remove("resourceVersion");
                    let spec = object_mut(&mut changed, "spec");
                    match &finalizers {
                        Some(list) if list.as_array().is_some_and(|l| !l.is_empty()) => {
                            spec.insert("finalizers".into(), list.clone());
                        }
                        _ => {
                            spec.remove("finalizers");
                        }
                    }
                    Ok(changed)
                },
                Writer::Put,
            )
            .await?;
        Ok(Answer::Stored { code: 200, ty: std::sync::Arc::clone(call.ty), object })
    }
}
