//! Lists that come in pages: all of them, or as many as are wanted.

use crate::client::{Ask, Client};
use anyhow::Context;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::marker::PhantomData;
use wire::Page;

/// The service's own limit.
const PAGE: usize = 1_000;

/// The items of a list, as the service sent them.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    items: Vec<Box<RawValue>>,
    revision: u64,
    _type: PhantomData<T>,
}

impl Client {
    /// Reads page after page. `revision` is that of the last one.
    pub(crate) fn list<T>(&self, ask: &Ask, limit: Option<usize>) -> anyhow::Result<Listed<T>> {
        let wanted = limit.unwrap_or(usize::MAX);
        let mut listed = Listed { items: Vec::new(), revision: 0, _type: PhantomData };
        let mut cursor: Option<String> = None;
        loop {
            let left = wanted.saturating_sub(listed.items.len()).clamp(1, PAGE);
            let page = ask.clone().query("limit", Some(left)).query("cursor", cursor.as_deref());
            let page: Page<Box<RawValue>> = self.send(&page)?.read()?;
            listed.items.extend(page.items);
            listed.items.truncate(wanted);
            listed.revision = page.revision;
            cursor = page.next_cursor;
            if cursor.is_none() || listed.items.len() >= wanted {
                return Ok(listed);
            }
        }
    }
}

impl<T: DeserializeOwned> Listed<T> {
    pub(crate) fn items(&self) -> anyhow::Result<Vec<T>> {
        let read = |item: &RawValue| serde_json::from_str(item.get());
        let items: Result<_, _> = self.items.iter().map(|item| read(item)).collect();
        items.context("the service's answer cannot be read")
    }

    /// All items as one page.
    pub(crate) fn json(&self) -> String {
        let items: Vec<&str> = self.items.iter().map(|item| item.get()).collect();
        format!("{{\"items\":[{}],\"revision\":{}}}", items.join(","), self.revision)
    }
}
