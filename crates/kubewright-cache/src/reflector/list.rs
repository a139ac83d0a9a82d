//! Paginated lists: the requested version, and fallbacks when it has expired.

use super::Follower;
use crate::{
    list_watch::{ListRequest, ListWatchError},
    object::{Lazy, Untyped},
    reflector_store::Replacement,
    turns::Budget,
};

/// The page size of client-go.
const PAGE_SIZE: u32 = 500;

enum PageEnd {
    More(String),
    Last(String),
}

impl Follower {
    pub(super) async fn list(&mut self) -> Result<(), ListWatchError> {
        let last = self.position.resource_version();
        let version = match last.as_str() {
            _ if self.version_unavailable => String::new(),
            "" => "0".to_owned(),
            _ => last,
        };
        match self.list_at(&version).await {
            Err(error) if error.is_expired() || error.is_too_large_version() => {
                self.report(error);
                self.version_unavailable = true;
                self.list_at("").await?;
            }
            other => other?,
        }
        self.version_unavailable = false;
        Ok(())
    }

    async fn list_at(&mut self, version: &str) -> Result<(), ListWatchError> {
        // Lists at a version are served from the watch cache, but only without a limit.
        let limit = match self.page_size {
            Some(size) => Some(size),
            None if self.paginated => Some(PAGE_SIZE),
            None if version.is_empty() || version == "0" => Some(PAGE_SIZE),
            None => None,
        };
        let mut request = ListRequest { resource_version: version.to_owned(), limit, continue_token: None };
        let mut replacement = self.store.begin_replace();
        // Objects that the store learns from here on are from this list, which has each object once.
        let has_known = self.store.has_known();
        loop {
            let token = match self.list_one_page(&request, &mut *replacement, has_known).await {
                Ok(token) => token,
                // The continue token expired while reading: list again without pages.
                Err(error) if error.is_expired() && request.continue_token.is_some() => {
                    self.report(error);
                    request = ListRequest { resource_version: version.to_owned(), ..ListRequest::default() };
                    replacement = self.store.begin_replace();
                    continue;
                }
                Err(error) => return Err(error),
            };
            match token {
                PageEnd::More(token) => {
                    self.paginated |= version == "0";
                    request.continue_token = Some(token);
                }
                PageEnd::Last(resource_version) => {
                    self.report_index_error(replacement.commit());
                    self.set_resource_version(&resource_version);
                    return Ok(());
                }
            }
        }
    }

    async fn list_one_page(
        &self,
        request: &ListRequest,
        replacement: &mut dyn Replacement<Lazy<Untyped>>,
        has_known: bool,
    ) -> Result<PageEnd, ListWatchError> {
        let mut page = self.list_watch.list_page(request).await?;
        let store = &self.store;
        let mut budget = Budget::default();
        while let Some(objects) = page.next(&|key| if has_known { store.known(key) } else { None }).await? {
            if !objects.is_empty() {
                self.report_index_error(replacement.page(objects));
            }
            budget.spend_bytes(page.frame_bytes()).await;
        }
        let meta = page.into_meta();
        Ok(match meta.continue_token {
            Some(token) => PageEnd::More(token),
            None => PageEnd::Last(meta.resource_version),
        })
    }
}
