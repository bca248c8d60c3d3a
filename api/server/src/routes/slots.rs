//! How many more VMs can be sold.

use super::{Answer, answer};
use crate::app::Problems;
use crate::failure::Failure;
use crate::service::Service;
use axum::extract::{Query, State as Handle};
use axum::http::StatusCode;
use cluster::{Amounts, Dimensions, Name, Vm, VmKey};
use engine::Tables;
use solver::slots::{ClassPrices, MOST_SHAPES, Shape, slots};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{
    BundleView, ClassPriceView, Code, NameSchema, Quantities, ShapeSlots, SlotsView, read_shape,
};

/// Shapes that are taken from the placed VMs when none are asked for.
const OF_PLACED: usize = 6;
/// VMs in a bundle that stands for the placed ones.
const BUNDLE: u64 = 20;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(capacity_slots))
}

/// Count how many more VMs fit, shape by shape and all shapes together, and price what is scarce.
///
/// `shape` is `cpu_millis:2000,memory_mib:4096`, or `3*cpu_millis:2000,...` for three of it in
/// each bundle, and may be repeated. Without it the most frequent demands of the placed VMs are
/// counted, in bundles that have them in the same proportion. Capacity, host state, taints, pool
/// and policies are looked at; rules between VMs are not.
#[utoipa::path(get, path = "/v1/capacity/slots", tag = "cluster",
    params(("shape" = Vec<String>, Query, description = "A shape; repeat for more, at most 16"),
           ("pool" = Option<NameSchema>, Query, description = "Only hosts of this pool")),
    responses((status = 200, description = "How many more fit", body = SlotsView), Problems))]
async fn capacity_slots(
    Handle(service): Handle<Service>,
    query: Result<Query<Vec<(String, String)>>, axum::extract::rejection::QueryRejection>,
) -> Answer {
    let wrong = |detail: String| Failure::new(Code::INVALID_QUERY, detail);
    let Query(pairs) = query.map_err(|rejection| wrong(rejection.body_text()))?;
    let dimensions = service.dimensions();
    let (mut asked, mut pool) = (Vec::new(), None);
    for (name, value) in pairs {
        match name.as_str() {
            "shape" => asked.push(read_shape(&value, &dimensions).map_err(wrong)?),
            "pool" => {
                let name = Name::new(&value);
                pool = Some(name.map_err(|error| wrong(format!("pool {value:?}: {error}")))?);
            }
            other => {
                return Err(wrong(format!("unknown parameter {other:?}; shape, pool are known")));
            }
        }
    }
    if asked.len() > MOST_SHAPES {
        return Err(wrong(format!(
            "{} shapes are given, at most {MOST_SHAPES} are allowed",
            asked.len()
        )));
    }
    let study = Arc::clone(&service.study);
    let counted = service.beside(move |writer| {
        study.ask(writer, |tables| Ok(counted(tables, asked, pool.as_ref())))
    });
    answer(StatusCode::OK, &counted.await?)
}

fn counted(tables: &mut Tables, asked: Vec<(Amounts, u32)>, pool: Option<&Name>) -> SlotsView {
    let from_placed_vms = asked.is_empty();
    let asked = if from_placed_vms { of_placed(tables, pool) } else { asked };
    let shapes: Vec<Shape> = asked
        .into_iter()
        .map(|(demand, per_bundle)| {
            let id = Name::new("shape").expect("a constant that is a valid name");
            let mut vm = Vm::new(VmKey::in_default_tenant(id), demand);
            vm.pool = pool.cloned();
            Shape { vm, per_bundle }
        })
        .collect();
    let found = slots(&mut tables.problem, &shapes);
    let dimensions = tables.dimensions();
    let of_shape = |(shape, slots): (&Shape, &u64)| ShapeSlots {
        demand: Quantities::sparse(&shape.vm.demand, dimensions),
        per_bundle: shape.per_bundle,
        slots: *slots,
    };
    SlotsView {
        shapes: shapes.iter().zip(&found.alone).map(of_shape).collect(),
        from_placed_vms,
        bundles: BundleView {
            at_least: found.bundles,
            at_most: found.at_most,
            exact: found.bundles == found.at_most,
        },
        prices: found.prices.iter().map(|prices| priced(prices, dimensions)).collect(),
        revision: tables.rows().revision.0,
    }
}

/// The most frequent demands of the placed VMs, each with its part of a bundle.
fn of_placed(tables: &Tables, pool: Option<&Name>) -> Vec<(Amounts, u32)> {
    let mut counts: BTreeMap<&Amounts, u64> = BTreeMap::new();
    let in_pool = |host| tables.host(host).and_then(|entry| entry.host.pool.as_ref());
    let meant = tables.vms().filter(|vm| pool.is_none() || in_pool(vm.host) == pool);
    for vm in meant.filter(|vm| !vm.vm.demand.is_zero()) {
        let count = counts.entry(&vm.vm.demand).or_default();
        *count = count.saturating_add(1);
    }
    let mut sorted: Vec<(&Amounts, u64)> = counts.into_iter().collect();
    sorted.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
    sorted.truncate(OF_PLACED);
    let total: u64 = sorted.iter().map(|(_, count)| *count).sum();
    let part = |count: u64| count.saturating_mul(BUNDLE).checked_div(total).unwrap_or(0).max(1);
    let part = |count| u32::try_from(part(count)).unwrap_or(1);
    sorted.into_iter().map(|(demand, count)| (demand.clone(), part(count))).collect()
}

fn priced(prices: &ClassPrices, dimensions: &Dimensions) -> ClassPriceView {
    let by_dimension = dimensions.iter().zip(&prices.billionths);
    let class = prices.class.as_ref();
    ClassPriceView {
        pool: class.and_then(|class| class.pool.clone()),
        capacity: class.map(|class| Quantities::sparse(&class.capacity, dimensions)),
        hosts: prices.hosts,
        bundles_per_unit_billionths: by_dimension
            .map(|(dim, price)| (dimensions.name(dim).to_owned(), *price))
            .collect(),
    }
}
