//! The router: routes, their documentation, and what surrounds them.

use crate::envelope::envelope;
use crate::failure::Failure;
use crate::metrics::measure;
use crate::routes;
use crate::service::Service;
use axum::Router;
use axum::extract::OriginalUri;
use axum::http::Method;
use axum::middleware::{from_fn, from_fn_with_state};
use cluster::Dimensions;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::openapi::{
    Components, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, RefOr, Response,
    ResponseBuilder,
};
use utoipa::{IntoResponses, ToSchema};
use utoipa_swagger_ui::{Config, SwaggerUi};
use wire::{CODES, Code, Problem};

/// Everything the service answers to.
pub fn router(service: Service) -> Router {
    let (routes, _) = routes::all().split_for_parts();
    let api = openapi(&service.dimensions());
    // Nothing is fetched from elsewhere: the page must work without a network.
    let docs = SwaggerUi::new("/docs")
        .config(Config::from("/openapi.json").validator_url("none").try_it_out_enabled(true))
        .url("/openapi.json", api);
    Router::new()
        .merge(routes)
        .merge(docs)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn(envelope))
        .layer(from_fn_with_state(Arc::clone(&service.metrics), measure))
        .with_state(service)
}

/// The OpenAPI document for a cluster with these dimensions.
pub fn openapi(dimensions: &Dimensions) -> OpenApi {
    let (_, generated) = routes::all().split_for_parts();
    let info = InfoBuilder::new()
        .title("novaplace")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Finds a host for every VM, says why, and never forgets an answer."));
    let mut api = OpenApiBuilder::new().info(info.build()).build();
    api.merge(generated);
    if let Some(components) = &mut api.components {
        // What is only referred to by hand.
        add_schema::<Problem>(components);
        add_schema::<wire::novacron::Failure>(components);
    }
    wire::complete(&mut api, dimensions);
    api
}

fn add_schema<T: ToSchema>(components: &mut Components) {
    let mut schemas = Vec::new();
    T::schemas(&mut schemas);
    components.schemas.extend(schemas);
    components.schemas.insert(T::name().into(), T::schema());
}

async fn no_route(OriginalUri(uri): OriginalUri) -> Failure {
    Failure::new(Code::ROUTE_NOT_FOUND, format!("there is nothing at {}", uri.path()))
}

async fn no_method(method: Method, OriginalUri(uri): OriginalUri) -> Failure {
    Failure::new(Code::METHOD_NOT_ALLOWED, format!("{} does not take {method}", uri.path()))
}

/// The answers that any operation may give instead of its own.
pub(crate) struct Problems;

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
        for code in CODES {
            by_status.entry(code.status).or_default().push(code.code);
        }
        let response = |codes: Vec<&str>| {
            let problem = utoipa::openapi::Ref::from_schema_name(Problem::name());
            let content = ContentBuilder::new().schema(Some(problem)).build();
            ResponseBuilder::new()
                .description(format!("`{}`", codes.join("`, `")))
                .content("application/problem+json", content)
                .build()
        };
        let statuses = by_status.into_iter();
        statuses.map(|(status, codes)| (status.to_string(), response(codes).into())).collect()
    }
}
