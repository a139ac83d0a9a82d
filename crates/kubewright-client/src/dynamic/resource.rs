//! One resource of the cluster, in one namespace or in all.

use http::{HeaderValue, Method, Request, header::ACCEPT_ENCODING};
use kube::{
    Client, Resource as _,
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, WatchParams},
    client::Body,
    core::{
        ApiResource, DynamicObject, ObjectList, Request as RequestBuilder, Status, TypeMeta,
        request::Error as BuildError,
    },
    discovery::Scope,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{ClientHandle, SubresourceClient};
use crate::{
    error::{ApiError, Refusal as _},
    rest::{BodyStream, WatchStream, check, check_segment, decode, encode_segment, not_sent, read_all, send},
};

/// What a delete was answered with.
#[derive(Debug, Clone, PartialEq)]
pub enum Deletion {
    /// The object is still there: it has finalizers or a grace period, and goes later.
    Pending(Box<DynamicObject>),
    /// The object is gone.
    Done(Box<Status>),
}

/// Operations on one resource. Made by [`DynamicClient`](super::DynamicClient).
#[derive(Debug, Clone)]
pub struct ResourceClient {
    client: ClientHandle,
    resource: ApiResource,
    scope: Option<Scope>,
    namespace: Option<String>,
}

impl ResourceClient {
    pub(super) fn new(client: Client, resource: ApiResource, scope: Option<Scope>) -> Self {
        Self { client: ClientHandle(client), resource, scope, namespace: None }
    }

    /// In this namespace; empty means all. Ignored where the resource is known to live in no namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        if self.scope != Some(Scope::Cluster) {
            self.namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        }
        self
    }

    /// In the default namespace of the client.
    #[must_use]
    pub fn default_namespace(self) -> Self {
        let namespace = self.client.0.default_namespace().to_owned();
        self.namespace(&namespace)
    }

    /// Group, version, kind and plural. The kind is empty if this was opened by plural.
    pub fn api_resource(&self) -> &ApiResource {
        &self.resource
    }

    /// Reads one object.
    pub async fn get(&self, name: &str) -> Result<DynamicObject, ApiError> {
        self.request(Method::GET, Target::object(name), |builder, name| {
            builder.get(name, &GetParams::default())
        })
        .await
    }

    /// Reads one object, or `None` if it does not exist.
    pub async fn get_opt(&self, name: &str) -> Result<Option<DynamicObject>, ApiError> {
        match self.get(name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads one page of objects; all of them without a limit.
    pub async fn list(&self, params: &ListParams) -> Result<ObjectList<DynamicObject>, ApiError> {
        let mut list: ObjectList<DynamicObject> =
            self.request(Method::GET, Target::All, |builder, _| builder.list(params)).await?;
        let kind = list.types.kind.strip_suffix("List").unwrap_or_default().to_owned();
        if !kind.is_empty() {
            let types = TypeMeta { api_version: list.types.api_version.clone(), kind };
            for item in &mut list.items {
                item.types.get_or_insert_with(|| types.clone());
            }
        }
        Ok(list)
    }

    /// Creates an object.
    pub async fn create(
        &self,
        params: &PostParams,
        object: &DynamicObject,
    ) -> Result<DynamicObject, ApiError> {
        let body = self.encode(&Method::POST, object)?;
        self.request(Method::POST, Target::New, |builder, _| builder.create(params, body)).await
    }

    /// Replaces an object. With a `resourceVersion` in it, only if nobody else has changed it since.
    pub async fn update(
        &self,
        params: &PostParams,
        object: &DynamicObject,
    ) -> Result<DynamicObject, ApiError> {
        let name = self.name_of(&Method::PUT, object)?;
        let body = self.encode(&Method::PUT, object)?;
        self.request(Method::PUT, Target::object(name), |builder, name| builder.replace(name, params, body))
            .await
    }

    /// Changes parts of an object.
    pub async fn patch<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<DynamicObject, ApiError> {
        self.request(Method::PATCH, Target::object(name), |builder, name| builder.patch(name, params, patch))
            .await
    }

    /// Applies an object on the server: what it says becomes ours, what we said before and no longer say is
    /// removed. The parameters must name the field manager.
    pub async fn apply(
        &self,
        params: &PatchParams,
        object: &DynamicObject,
    ) -> Result<DynamicObject, ApiError> {
        let name = self.name_of(&Method::PATCH, object)?;
        let object = self.applied(object, params)?;
        self.patch(name, params, &Patch::Apply(&object)).await
    }

    /// Deletes one object.
    pub async fn delete(&self, name: &str, params: &DeleteParams) -> Result<Deletion, ApiError> {
        let value: serde_json::Value = self
            .request(Method::DELETE, Target::object(name), |builder, name| builder.delete(name, params))
            .await?;
        let operation = self.operation(&Method::DELETE, Target::object(name));
        if value["kind"] == "Status" {
            let status = serde_json::from_value(value);
            status
                .map(|status| Deletion::Done(Box::new(status)))
                .map_err(|error| ApiError::decode::<Status>(&operation, &error))
        } else {
            let object = serde_json::from_value(value);
            object
                .map(|object| Deletion::Pending(Box::new(object)))
                .map_err(|error| ApiError::decode::<DynamicObject>(&operation, &error))
        }
    }

    /// Deletes all objects that match. Returns when the server has marked them; they may go later.
    pub async fn delete_collection(
        &self,
        params: &DeleteParams,
        selected: &ListParams,
    ) -> Result<(), ApiError> {
        let _: serde_json::Value = self
            .request(Method::DELETE, Target::All, |builder, _| builder.delete_collection(params, selected))
            .await?;
        Ok(())
    }

    /// Watches from a resource version on. This is the raw watch: it ends, and the caller goes on from there.
    /// To keep a copy of the objects, use an informer.
    pub async fn watch(
        &self,
        params: &WatchParams,
        resource_version: &str,
    ) -> Result<WatchStream<DynamicObject>, ApiError> {
        let (method, operation) = (Method::GET, self.operation(&Method::GET, Target::All));
        let request = self.builder(&method, Target::All)?.watch(params, resource_version);
        let mut request =
            request.map_err(|error| build_failed(&method, &self.path(Target::All), &error))?.map(Body::from);
        // Since 1.37 the server compresses watches event by event, which decoders take for the end of the
        // stream.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let response = check(&operation, false, send(&self.client.0, &operation, request).await?).await?;
        Ok(WatchStream::new(BodyStream::new(operation, response.into_body())))
    }

    /// A part of each object that is read and written by itself: `status`, `scale`, `ephemeralcontainers`, …
    pub fn subresource(&self, name: &str) -> SubresourceClient {
        SubresourceClient::new(self.clone(), name.to_owned())
    }

    /// The status of objects.
    pub fn status(&self) -> SubresourceClient {
        self.subresource("status")
    }

    /// The scale of objects.
    pub fn scale(&self) -> SubresourceClient {
        self.subresource("scale")
    }

    /// Builds a request, sends it and reads the answer.
    pub(super) async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        target: Target<'_>,
        build: impl FnOnce(RequestBuilder, &str) -> Result<Request<Vec<u8>>, BuildError>,
    ) -> Result<T, ApiError> {
        let builder = self.builder(&method, target)?;
        // kube writes the name into the URL as it is.
        let request = build(builder, &encode_segment(target.name()))
            .map_err(|error| build_failed(&method, &self.path(target), &error))?;
        let operation = self.operation(&method, target);
        let response = send(&self.client.0, &operation, request.map(Body::from)).await?;
        let response = check(&operation, method == Method::POST, response).await?;
        let bytes = read_all(&operation, response.into_body()).await?;
        decode(&operation, &bytes)
    }

    /// kube's builder for this resource, once every word of the path has been checked.
    fn builder(&self, method: &Method, target: Target<'_>) -> Result<RequestBuilder, ApiError> {
        let refuse = |reason: String| not_sent(method, &self.path(target), reason);
        if let Target::Object { name, subresource } = target {
            check_segment("name", name).map_err(refuse)?;
            subresource.map_or(Ok(()), |part| check_segment("subresource", part)).map_err(refuse)?;
        }
        if let Some(namespace) = &self.namespace {
            check_segment("namespace", namespace).map_err(refuse)?;
        } else if target != Target::All && self.scope == Some(Scope::Namespaced) {
            return Err(refuse(format!(
                "{} live in namespaces: say which with .namespace(…)",
                self.resource.plural
            )));
        }
        check_segment("resource", &self.resource.plural).map_err(refuse)?;
        Ok(RequestBuilder::new(DynamicObject::url_path(&self.resource, self.namespace.as_deref())))
    }

    pub(super) fn encode<T: Serialize>(&self, method: &Method, object: &T) -> Result<Vec<u8>, ApiError> {
        serde_json::to_vec(object)
            .map_err(|_| not_sent(method, &self.path(Target::All), "the object cannot be written as JSON"))
    }

    pub(super) fn name_of<'a>(
        &self,
        method: &Method,
        object: &'a DynamicObject,
    ) -> Result<&'a str, ApiError> {
        object
            .metadata
            .name
            .as_deref()
            .filter(|name| !name.is_empty())
            .ok_or_else(|| not_sent(method, &self.path(Target::All), "the object has no metadata.name"))
    }

    /// The object as it is to be applied: its type filled in, its bookkeeping left out.
    pub(super) fn applied(
        &self,
        object: &DynamicObject,
        params: &PatchParams,
    ) -> Result<DynamicObject, ApiError> {
        let refuse = |reason| not_sent(&Method::PATCH, &self.path(Target::All), reason);
        if params.field_manager.as_deref().is_none_or(str::is_empty) {
            return Err(refuse(
                "server-side apply needs a field manager: PatchParams::apply(\"my-operator\")",
            ));
        }
        let mut object = object.clone();
        if object.types.is_none() && !self.resource.kind.is_empty() {
            let ApiResource { api_version, kind, .. } = self.resource.clone();
            object.types = Some(TypeMeta { api_version, kind });
        }
        if object.types.is_none() {
            return Err(refuse("the object has no apiVersion and kind"));
        }
        // The server refuses an apply that carries them, and every object that was read does.
        object.metadata.managed_fields = None;
        Ok(object)
    }

    fn path(&self, target: Target<'_>) -> String {
        let url = DynamicObject::url_path(&self.resource, self.namespace.as_deref());
        match target {
            Target::All | Target::New => url,
            Target::Object { name, subresource: None } => format!("{url}/{name}"),
            Target::Object { name, subresource: Some(part) } => format!("{url}/{name}/{part}"),
        }
    }

    fn operation(&self, method: &Method, target: Target<'_>) -> String {
        format!("{method} {}", self.path(target))
    }
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// All objects, of a namespace or of the cluster.
    All,
    /// An object that is still to be created: its name is in the body.
    New,
    /// One object, or a part of it.
    Object { name: &'a str, subresource: Option<&'a str> },
}

impl<'a> Target<'a> {
    fn object(name: &'a str) -> Self {
        Self::Object { name, subresource: None }
    }

    fn name(self) -> &'a str {
        match self {
            Self::Object { name, .. } => name,
            Self::All | Self::New => "",
        }
    }
}

fn build_failed(method: &Method, path: &str, error: &BuildError) -> ApiError {
    let reason = match error {
        BuildError::Validation(reason) => reason.clone(),
        BuildError::BuildRequest(_) => "a name has a character that is not valid in a URL".to_owned(),
        // serde's message may quote the object.
        BuildError::SerializeBody(_) => "the body cannot be written as JSON".to_owned(),
    };
    not_sent(method, path, reason)
}
