//! Attributes of VMs.

use super::{Unit, gpu_dimension};
use crate::{Path, Value};
use cluster::{Dim, Dimensions, Migratability, PriorityClass, Qos, Vm};
use smol_str::SmolStr;

/// An attribute whose name has been understood.
#[derive(Clone, Debug, PartialEq)]
#[expect(private_interfaces, reason = "how amounts are scaled is nobody else's business")]
pub enum VmField {
    /// Not one of ours: its value is null.
    Unknown,
    Id,
    Name,
    Tenant,
    Label(SmolStr),
    Group(SmolStr),
    Demand(Unit),
    Priority,
    PriorityClass,
    Qos,
    Pool,
    Spot,
    Bursty,
    UserRegion,
    ExpectedLifetime,
    Migratability,
}

impl VmField {
    /// Understands a path of `vm`.
    pub fn resolve(path: &Path, dimensions: &Dimensions) -> Self {
        Self::named(path, &|name| dimensions.find(name))
    }

    pub(super) fn named(path: &Path, find: &dyn Fn(&str) -> Option<Dim>) -> Self {
        let keys: Vec<&str> = path.keys.iter().map(SmolStr::as_str).collect();
        let demand = |unit: Option<Unit>| unit.map_or(VmField::Unknown, VmField::Demand);
        match keys.as_slice() {
            ["id"] => VmField::Id,
            ["name"] => VmField::Name,
            ["tenant"] => VmField::Tenant,
            ["type" | "created_at"] => {
                VmField::Label(path.keys.first().cloned().unwrap_or_default())
            }
            ["labels", key] => VmField::Label(SmolStr::new(key)),
            ["groups", name] => VmField::Group(SmolStr::new(name)),
            ["cpu_cores" | "cpu"] => VmField::Demand(Unit::CORES),
            ["memory_gb"] => VmField::Demand(Unit::MEMORY_GIB),
            ["memory"] => VmField::Demand(Unit::MEMORY_MIB),
            ["resource_requests", "gpu"] => demand(gpu_dimension(find).map(Unit::plain)),
            ["resource_requests", name] => demand(Unit::resource(name)),
            ["metrics", "disk.used"] | ["metrics", "disk", "used"] => {
                VmField::Demand(Unit::plain(Dim::DISK_GIB))
            }
            ["demand", name] => demand(find(name).map(Unit::plain)),
            ["priority"] => VmField::Priority,
            ["priority_class"] => VmField::PriorityClass,
            ["qos"] => VmField::Qos,
            ["pool"] => VmField::Pool,
            ["spot"] => VmField::Spot,
            ["bursty"] => VmField::Bursty,
            ["user_region"] => VmField::UserRegion,
            ["expected_lifetime_s"] => VmField::ExpectedLifetime,
            ["migratability"] => VmField::Migratability,
            _ => VmField::Unknown,
        }
    }

    /// The value for one VM.
    pub fn value(&self, vm: &Vm) -> Value {
        let text = |name: Option<&cluster::Name>| Value::from(name.map(|name| name.as_str()));
        match self {
            VmField::Unknown => Value::Null,
            VmField::Id => Value::text(vm.key.id.as_str()),
            VmField::Name => text(Some(vm.labels.get("name").unwrap_or(&vm.key.id))),
            VmField::Tenant => Value::text(vm.key.tenant.as_str()),
            VmField::Label(key) => text(vm.labels.get(key)),
            VmField::Group(name) => {
                let listed = vm.groups.iter().chain(vm.spreads.iter().map(|spread| &spread.group));
                Value::Bool(listed.into_iter().any(|group| group.as_str() == name))
            }
            VmField::Demand(unit) => unit.of(vm.demand.get(unit.dim)).into(),
            VmField::Priority => Value::Number(match vm.priority {
                PriorityClass::Critical => 100.0,
                PriorityClass::High => 75.0,
                PriorityClass::Normal => 50.0,
                PriorityClass::Low => 25.0,
                PriorityClass::Scavenger => 0.0,
            }),
            VmField::PriorityClass => Value::text(match vm.priority {
                PriorityClass::Critical => "critical",
                PriorityClass::High => "high",
                PriorityClass::Normal => "normal",
                PriorityClass::Low => "low",
                PriorityClass::Scavenger => "scavenger",
            }),
            VmField::Qos => Value::text(match vm.qos {
                Qos::Guaranteed => "guaranteed",
                Qos::Burstable => "burstable",
                Qos::BestEffort => "best_effort",
            }),
            VmField::Pool => text(vm.pool.as_ref()),
            VmField::Spot => Value::Bool(vm.spot),
            VmField::Bursty => Value::Bool(vm.hints.bursty),
            VmField::UserRegion => text(vm.hints.user_region.as_ref()),
            VmField::ExpectedLifetime => vm.hints.expected_lifetime_s.into(),
            VmField::Migratability => Value::text(match vm.migratability {
                Migratability::Live => "live",
                Migratability::Cold => "cold",
                Migratability::Pinned => "pinned",
            }),
        }
    }
}
