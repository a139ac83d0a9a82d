//! Subresources that a kubelet serves (log, exec, …): the checks before a request would be forwarded to one.

use serde_json::Value;

use crate::{
    registry::{
        Registry,
        call::{Answer, Call},
        json::{object, objects, text, text_at},
        validation::Errors,
    },
    status::{About, Status},
};

impl Registry {
    pub(super) fn connect(&self, call: &Call<'_>) -> Result<Answer, Status> {
        let object = call.ty.decode(&*self.find(call)?);
        if call.ty.plural == "pods" && text_at(&object, &["spec", "nodeName"]).is_empty() {
            return Err(Status::bad_request(format!("pod {} does not have a host assigned", call.name)));
        }
        Err(no_kubelet(call))
    }

    pub(super) fn log<'q>(
        &self,
        call: &Call<'_>,
        query: impl Iterator<Item = (&'q str, &'q str)>,
    ) -> Result<Answer, Status> {
        let (mut container, mut errors) = ("", Errors::default());
        let (mut since_seconds, mut since_time) = (false, false);
        for (key, value) in query {
            match key {
                "container" => container = value,
                "sinceTime" => since_time = true,
                "tailLines" | "limitBytes" | "sinceSeconds" => {
                    since_seconds |= key == "sinceSeconds";
                    let number: i64 = value.parse().map_err(|_| {
                        Status::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax"))
                    })?;
                    let least = i64::from(key != "tailLines");
                    if number < least {
                        errors.invalid(
                            key,
                            number,
                            if least == 0 {
                                "must be greater than or equal to 0"
                            } else {
                                "must be greater than 0"
                            },
                        );
                    }
                }
                _ => {}
            }
        }
        if since_seconds && since_time {
            errors.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified");
        }
        let pod = call.ty.decode(&*self.find(call)?);
        if !errors.is_empty() {
            return Err(Status::invalid(
                About { group: "", kind: "PodLogOptions", name: call.name },
                &errors,
            ));
        }
        let spec = object(&pod, "spec");
        let known = |list: &str| {
            spec.into_iter().flat_map(|s| objects(s, list)).any(|c| text(c, "name") == container)
        };
        if !container.is_empty()
            && !["containers", "initContainers", "ephemeralContainers"].iter().any(|l| known(l))
        {
            return Err(Status::bad_request(format!(
                "container {container} is not valid for pod {}",
                call.name
            )));
        }
        if text_at(&pod, &["spec", "nodeName"]).is_empty() {
            // A pod without a node has no log.
            return Ok(Answer::Value { code: 204, value: Value::Null });
        }
        Err(no_kubelet(call))
    }
}

fn no_kubelet(call: &Call<'_>) -> Status {
    Status::plain(
        501,
        "NotImplemented",
        format!("no kubelet answers {} of {:?} in this cluster", call.subresource, call.name),
    )
}
