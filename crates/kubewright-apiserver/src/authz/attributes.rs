//! Attributes that authorizers decide on.

use crate::{
    authn::User,
    status::{About, Status},
};

/// An access to a resource or a path: the attributes that authorizers decide on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Access<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The resource; empty for a non-resource path.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The namespace; empty for the cluster.
    pub namespace: &'a str,
    /// The name; empty for a collection.
    pub name: &'a str,
    /// The path of a non-resource request.
    pub path: &'a str,
}

impl Access<'_> {
    /// Returns resource and subresource: `pods/log`, or `pods`.
    pub fn combined_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// Returns the 403 for a user.
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
