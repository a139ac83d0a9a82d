//! Discovery requests.

use futures::{StreamExt as _, stream};
use http::{
    HeaderValue, Request, StatusCode,
    header::{ACCEPT, ETAG, IF_NONE_MATCH},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList, APIVersions};
use kube::{Client, client::Body};
use serde::Deserialize;

use super::{
    aggregated, legacy,
    model::{DiscoveryFailure, FailureReason, GroupInfo, ServerResources, api_version},
};
use crate::{
    error::{ApiError, ApiStatus as _},
    rest::{RestClient, check, decode, read_all, send},
};

/// Number of concurrent requests for resource lists in legacy discovery.
const MAX_CONCURRENT: usize = 10;

/// The two endpoints of discovery.
const CORE: &str = "/api";
const GROUPS: &str = "/apis";

/// The aggregated discovery of one endpoint, with its `ETag` for conditional requests.
#[derive(Debug, Clone, Default)]
struct EndpointResources {
    etag: Option<HeaderValue>,
    groups: Vec<GroupInfo>,
    failures: Vec<DiscoveryFailure>,
}

/// The last responses of both endpoints, so that an unchanged server responds with 304.
#[derive(Debug, Clone, Default)]
pub(super) struct LastResponses([Option<EndpointResources>; 2]);

/// Fetches both endpoints, each in the best form that it supports.
///
/// An endpoint that does not exist or may not be read (404, 403) is reported as a failure as long as the
/// other one responds; so is a group version that fails. Everything else is an error: with an unknown part
/// missing, "there is no such kind" would be a guess.
pub(super) async fn server_resources(
    client: &Client,
    last: &mut LastResponses,
) -> Result<ServerResources, ApiError> {
    let [core, groups] = &mut last.0;
    let (core, groups) = futures::future::join(
        endpoint_resources(client, CORE, core),
        endpoint_resources(client, GROUPS, groups),
    )
    .await;
    let mut resources = ServerResources::default();
    let mut missing: Option<ApiError> = None;
    for (endpoint, fetched) in [(CORE, core), (GROUPS, groups)] {
        match (fetched, &missing) {
            (Ok(EndpointResources { groups, failures, .. }), _) => {
                resources.groups.extend(groups);
                resources.failures.extend(failures);
            }
            (Err(error), None) if error.is_not_found() || error.is_forbidden() => {
                resources.failures.push(failure(endpoint, &error));
                missing = Some(error);
            }
            (Err(error), _) => return Err(error),
        }
    }
    Ok(resources)
}

async fn endpoint_resources(
    client: &Client,
    endpoint: &str,
    last: &mut Option<EndpointResources>,
) -> Result<EndpointResources, ApiError> {
    let operation = format!("GET {endpoint}");
    let etag = last.as_ref().and_then(|resources| resources.etag.clone());
    let response = send(client, &operation, request(endpoint, aggregated::ACCEPT, etag)).await?;
    match response.status() {
        StatusCode::NOT_MODIFIED => {
            if let Some(resources) = last {
                return Ok(resources.clone());
            }
        }
        // A server or proxy that does not support the media types of aggregated discovery.
        StatusCode::NOT_ACCEPTABLE | StatusCode::NOT_FOUND | StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            *last = None;
            return legacy_resources(client, endpoint).await;
        }
        _ => {}
    }
    *last = None;
    let etag = response.headers().get(ETAG).cloned();
    let response = check(&operation, false, response).await?;
    let bytes = read_all(&operation, response.into_body()).await?;
    // Decide by the body: some proxies drop the parameters of the content type.
    let Kind { kind } = decode(&operation, &bytes)?;
    if kind != "APIGroupDiscoveryList" {
        return with_resources(client, decode_groups(endpoint, &operation, &bytes)?).await;
    }
    let (groups, failures) = decode::<aggregated::GroupList>(&operation, &bytes)?.convert();
    let resources = EndpointResources { etag, groups, failures };
    *last = Some(resources.clone());
    Ok(resources)
}

#[derive(Debug, Deserialize)]
struct Kind {
    kind: String,
}

async fn legacy_resources(client: &Client, endpoint: &str) -> Result<EndpointResources, ApiError> {
    let operation = format!("GET {endpoint}");
    let response = send(client, &operation, request(endpoint, "application/json", None)).await?;
    let response = check(&operation, false, response).await?;
    let bytes = read_all(&operation, response.into_body()).await?;
    with_resources(client, decode_groups(endpoint, &operation, &bytes)?).await
}

fn request(path: &str, accept: &'static str, etag: Option<HeaderValue>) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    // Both endpoints are constants and parse.
    *request.uri_mut() = path.parse().unwrap_or_default();
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
    if let Some(etag) = etag {
        request.headers_mut().insert(IF_NONE_MATCH, etag);
    }
    request
}

fn decode_groups(endpoint: &str, operation: &str, bytes: &[u8]) -> Result<Vec<GroupInfo>, ApiError> {
    if endpoint == CORE {
        let versions: APIVersions = decode(operation, bytes)?;
        return Ok(vec![legacy::core_group_from(versions.versions)]);
    }
    let list: APIGroupList = decode(operation, bytes)?;
    Ok(list.groups.into_iter().map(legacy::group_from).collect())
}

/// Fetches the resources of every version concurrently and sets them in the order of the groups.
async fn with_resources(client: &Client, mut groups: Vec<GroupInfo>) -> Result<EndpointResources, ApiError> {
    let mut versions = Vec::new();
    for group in &groups {
        versions.extend(group.versions.iter().map(|version| (group.name.clone(), version.version.clone())));
    }
    let mut responses = stream::iter(versions)
        .map(|(group, version)| async move { group_version(client, &group, &version).await })
        .buffered(MAX_CONCURRENT);
    let mut failures = Vec::new();
    for group in &mut groups {
        for version in &mut group.versions {
            match responses.next().await {
                Some(Ok(found)) => version.resources = found,
                Some(Err(error)) => {
                    failures.push(failure(&api_version(&group.name, &version.version), &error));
                }
                None => {}
            }
        }
    }
    Ok(EndpointResources { etag: None, groups, failures })
}

/// Fetches the resources of one group version in the legacy form.
pub(super) async fn group_version(
    client: &Client,
    group: &str,
    version: &str,
) -> Result<Vec<std::sync::Arc<super::ResourceInfo>>, ApiError> {
    let request = RestClient::new(client.clone()).group_version(&api_version(group, version)).get();
    let list: APIResourceList = request.json().await?;
    Ok(legacy::resources_from(group, version, list))
}

pub(super) fn failure(what: &str, error: &ApiError) -> DiscoveryFailure {
    DiscoveryFailure { what: what.to_owned(), reason: FailureReason::Failed(error.to_string()) }
}
