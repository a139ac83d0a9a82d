//! The present state in pages: which version is asked for, and what when it is gone.

use kube::Resource;
use serde::de::DeserializeOwned;

use super::Reflector;
use crate::{
    list_watch::{ListRequest, ListWatchError},
    object::Lazy,
    reflector_store::Replacement,
    turns::Turns,
};

/// What client-go asks for at a time.
const PAGE: u32 = 500;

enum PageEnd {
    More(String),
    Last(String),
}

impl<K: Resource + DeserializeOwned> Reflector<K> {
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
        // A list at a version is answered from the server's memory, but only when no page size is asked for.
        let limit = match self.page_size {
            Some(size) => Some(size),
            None if self.paginated => Some(PAGE),
            None if version.is_empty() || version == "0" => Some(PAGE),
            None => None,
        };
        let mut request = ListRequest { resource_version: version.to_owned(), limit, continue_token: None };
        let mut replacement = self.store.replacing();
        // What the store comes to know from here on is from this very list, which has each object once.
        let knows_any = self.store.knows_any();
        loop {
            let token = match self.list_one_page(&request, &mut *replacement, knows_any).await {
                Ok(token) => token,
                // The pages of this list are gone while we were reading them: once more, in one piece.
                Err(error) if error.is_expired() && request.continue_token.is_some() => {
                    self.report(error);
                    request = ListRequest { resource_version: version.to_owned(), ..ListRequest::default() };
                    replacement = self.store.replacing();
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
                    self.settle(replacement.commit());
                    self.come_to(&resource_version);
                    return Ok(());
                }
            }
        }
    }

    async fn list_one_page(
        &self,
        request: &ListRequest,
        replacement: &mut dyn Replacement<Lazy<K>>,
        knows_any: bool,
    ) -> Result<PageEnd, ListWatchError> {
        let mut page = self.list_watch.list_page(request).await?;
        let store = &self.store;
        let mut turns = Turns::default();
        while let Some(objects) = page.next(&|key| if knows_any { store.known(key) } else { None }).await? {
            if !objects.is_empty() {
                self.settle(replacement.page(objects));
            }
            turns.end_of_bytes(page.taken()).await;
        }
        let meta = page.into_meta();
        Ok(match meta.continue_token {
            Some(token) => PageEnd::More(token),
            None => PageEnd::Last(meta.resource_version),
        })
    }
}
