//! What a request says beside its body: headers, query parameters, ids in the path.

use crate::envelope::Deadline;
use crate::failure::Failure;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use cluster::{Generation, Name, VmKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::Instant;
use utoipa::IntoParams;
use wire::{Code, NameSchema};

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Who asks, until when, and under which conditions.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) actor: Name,
    pub(crate) idempotency_key: Option<String>,
    /// From `If-Match`: the generation that the caller has seen.
    pub(crate) seen: Option<u64>,
    /// Set by routes that have read the query.
    pub(crate) dry_run: bool,
    deadline: Instant,
}

impl Ask {
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(crate) fn generation(&self) -> Option<Generation> {
        self.seen.map(Generation)
    }

    /// The same caller, for requests that a key cannot stand for.
    pub(crate) fn without_key(&self) -> Self {
        Self { idempotency_key: None, ..self.clone() }
    }

    pub(crate) fn dry(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Ask {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let deadline = parts.extensions.get::<Deadline>().map(|deadline| deadline.0);
        Ok(Self {
            actor: name("anonymous")?,
            idempotency_key: idempotency_key(&parts.headers)?,
            seen: if_match(&parts.headers)?,
            dry_run: false,
            deadline: deadline.unwrap_or_else(Instant::now),
        })
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    match key.to_str() {
        Ok(key) if (1..=255).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => {
            let detail = "Idempotency-Key must be 1 to 255 visible ASCII characters";
            Err(Failure::new(Code::INVALID_HEADER, detail))
        }
    }
}

/// `"7"` or `7`; `*` and a missing header ask for nothing.
fn if_match(headers: &HeaderMap) -> Result<Option<u64>, Failure> {
    let Some(tag) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = tag.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match quoted.unwrap_or(text).parse() {
        Ok(generation) => Ok(Some(generation)),
        Err(_) => {
            let detail = format!("If-Match is {text:?}, not an ETag of this service");
            Err(Failure::new(Code::INVALID_HEADER, detail))
        }
    }
}

/// Query parameters, where unknown ones are refused by name.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let wrong = |wrong: QueryRejection| {
            use std::error::Error;
            // The source says which parameter; the rejection itself says only that one is wrong.
            let detail =
                wrong.source().map_or_else(|| wrong.to_string(), |cause| cause.to_string());
            Failure::new(Code::INVALID_QUERY, detail)
        };
        Query::from_request_parts(parts, state)
            .await
            .map(|Query(params)| Self(params))
            .map_err(wrong)
    }
}

/// The id in the path.
pub(crate) struct Id(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let wrong = |wrong: axum::extract::rejection::PathRejection| {
            Failure::new(Code::INVALID_PATH, wrong.body_text())
        };
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(id)| Self(id)).map_err(wrong)
    }
}

/// The id of a policy and one of its versions in the path.
pub(crate) struct IdAndVersion(pub(crate) String, pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for IdAndVersion {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let wrong = |wrong: axum::extract::rejection::PathRejection| {
            Failure::new(Code::INVALID_PATH, wrong.body_text())
        };
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        path.map(|Path((id, version))| Self(id, version)).map_err(wrong)
    }
}

impl Id {
    pub(crate) fn name(&self) -> Result<Name, Failure> {
        name(&self.0)
    }
}

pub(crate) fn name(text: &str) -> Result<Name, Failure> {
    let wrong = |error| Failure::new(Code::INVALID_PATH, format!("id {text:?}: {error}"));
    Name::new(text).map_err(wrong)
}

/// Parameters of operations that change something.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Dry {
    /// Say what would happen, and do nothing.
    #[serde(default)]
    #[param(required = false)]
    pub(crate) dry_run: bool,
}

/// Parameters of operations that change one VM.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfTenant {
    /// The VM's tenant. Left out: `default`.
    #[param(value_type = Option<NameSchema>)]
    pub(crate) tenant: Option<Name>,
    /// Say what would happen, and do nothing.
    #[serde(default)]
    #[param(required = false)]
    pub(crate) dry_run: bool,
}

impl OfTenant {
    pub(crate) fn key(&self, id: &Id) -> Result<VmKey, Failure> {
        let mut key = VmKey::in_default_tenant(id.name()?);
        if let Some(tenant) = &self.tenant {
            key.tenant = tenant.clone();
        }
        Ok(key)
    }
}
