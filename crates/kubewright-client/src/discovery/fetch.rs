//! Asking the server what it serves.

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
    error::{ApiError, Refusal as _},
    rest::{RestClient, check, decode, read_all, send},
};

/// How many lists of resources are asked for at the same time in the old form.
const AT_ONCE: usize = 10;

/// The two endpoints of discovery.
const CORE: &str = "/api";
const GROUPS: &str = "/apis";

/// What an endpoint answered in aggregated form, and the tag under which it can be asked whether that has
/// changed.
#[derive(Debug, Clone, Default)]
struct Part {
    etag: Option<HeaderValue>,
    groups: Vec<GroupInfo>,
    failures: Vec<DiscoveryFailure>,
}

/// The answers of the last time, so that a server whose resources have not changed sends nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Known([Option<Part>; 2]);

/// Asks both endpoints, in the best form that each of them speaks.
///
/// An endpoint that does not exist or may not be read (404, 403) is reported as long as the other one
/// answers; a group version that fails is reported too. Everything else is an error: with an unknown part
/// missing, "there is no such kind" would be a guess.
pub(super) async fn everything(client: &Client, known: &mut Known) -> Result<ServerResources, ApiError> {
    let [core, groups] = &mut known.0;
    let (core, groups) = futures::future::join(
        endpoint_resources(client, CORE, core),
        endpoint_resources(client, GROUPS, groups),
    )
    .await;
    let mut resources = ServerResources::default();
    let mut missing: Option<ApiError> = None;
    for (endpoint, part) in [(CORE, core), (GROUPS, groups)] {
        match (part, &missing) {
            (Ok(Part { groups, failures, .. }), _) => {
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
    known: &mut Option<Part>,
) -> Result<Part, ApiError> {
    let operation = format!("GET {endpoint}");
    let etag = known.as_ref().and_then(|part| part.etag.clone());
    let response = send(client, &operation, request(endpoint, aggregated::ACCEPT, etag)).await?;
    match response.status() {
        StatusCode::NOT_MODIFIED => {
            if let Some(part) = known {
                return Ok(part.clone());
            }
        }
        // A server or a proxy that takes offence at the new media types.
        StatusCode::NOT_ACCEPTABLE | StatusCode::NOT_FOUND | StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            *known = None;
            return old_form(client, endpoint).await;
        }
        _ => {}
    }
    *known = None;
    let etag = response.headers().get(ETAG).cloned();
    let response = check(&operation, false, response).await?;
    let bytes = read_all(&operation, response.into_body()).await?;
    // The body says what it is; proxies have been seen to drop the parameters of the content type.
    let Kind { kind } = decode(&operation, &bytes)?;
    if kind != "APIGroupDiscoveryList" {
        return resources_of(client, groups_of(endpoint, &operation, &bytes)?).await;
    }
    let (groups, failures) = decode::<aggregated::GroupList>(&operation, &bytes)?.convert();
    let part = Part { etag, groups, failures };
    *known = Some(part.clone());
    Ok(part)
}

#[derive(Debug, Deserialize)]
struct Kind {
    kind: String,
}

async fn old_form(client: &Client, endpoint: &str) -> Result<Part, ApiError> {
    let operation = format!("GET {endpoint}");
    let response = send(client, &operation, request(endpoint, "application/json", None)).await?;
    let response = check(&operation, false, response).await?;
    let bytes = read_all(&operation, response.into_body()).await?;
    resources_of(client, groups_of(endpoint, &operation, &bytes)?).await
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

fn groups_of(endpoint: &str, operation: &str, bytes: &[u8]) -> Result<Vec<GroupInfo>, ApiError> {
    if endpoint == CORE {
        let versions: APIVersions = decode(operation, bytes)?;
        return Ok(vec![legacy::core_group_from(versions.versions)]);
    }
    let list: APIGroupList = decode(operation, bytes)?;
    Ok(list.groups.into_iter().map(legacy::group_from).collect())
}

/// Fills in the resources of every version, some at a time, in the order of the groups.
async fn resources_of(client: &Client, mut groups: Vec<GroupInfo>) -> Result<Part, ApiError> {
    let mut wanted = Vec::new();
    for group in &groups {
        wanted.extend(group.versions.iter().map(|version| (group.name.clone(), version.version.clone())));
    }
    let mut answers = stream::iter(wanted)
        .map(|(group, version)| async move { group_version(client, &group, &version).await })
        .buffered(AT_ONCE);
    let mut failures = Vec::new();
    for group in &mut groups {
        for version in &mut group.versions {
            match answers.next().await {
                Some(Ok(found)) => version.resources = found,
                Some(Err(error)) => {
                    failures.push(failure(&api_version(&group.name, &version.version), &error));
                }
                None => {}
            }
        }
    }
    Ok(Part { etag: None, groups, failures })
}

/// The resources of one group version, in the old form.
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
