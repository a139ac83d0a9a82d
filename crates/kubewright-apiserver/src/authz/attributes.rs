//! What somebody wants to do.

use crate::{
    authn::User,
    status::{About, Status},
};

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Access<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The resource; empty for a path that is none.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The namespace; empty for the cluster.
    pub namespace: &'a str,
    /// The name; empty for a collection.
    pub name: &'a str,
    /// The path, when it is no resource.
    pub path: &'a str,
}

impl Access<'_> {
    /// `pods/log`, or `pods`.
    pub fn combined_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The 403 that a user gets.
    pub fn refusal(&self, user: &User) -> Status {
        if self.resource.is_empty() {
            let why = format!("User {:?} cannot {} path {:?}", user.name, self.verb, self.path);
            return Status::forbidden(About { group: "", kind: "", name: "" }, &why);
        }
        let place = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", self.namespace)
        };
        let why = format!(
            "User {:?} cannot {} resource {:?} in API group {:?} {place}",
            user.name,
            self.verb,
            self.combined_resource(),
            self.group
        );
        Status::forbidden(About { group: self.group, kind: self.resource, name: self.name }, &why)
    }
}
