//! VMs as NovaCron configures them, and what of it matters for where they go.

use super::go::{amount, go_struct, id, ids, is_zero, no_items};
use super::labels::to_labels;
use crate::fault::Fault;
use cluster::{Amounts, Dim, Name, Selector, SelectorOp, Strategy, Vm, VmKey};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Shares and memory of a VM that says nothing about them.
const DEFAULT_SHARES: i64 = 1024;
const DEFAULT_MEMORY_MB: i64 = 512;
/// Up to here `cpu_shares` counts cores; beyond, 1024 shares are one.
const MOST_SHARES_THAT_ARE_CORES: i64 = 128;
const SHARES_PER_CORE: i64 = 1024;

/// The whole cores that a number of CPU shares stands for.
///
/// Nothing for nothing and less; up to 128 are cores; beyond, 1024 shares are a core, rounded up.
pub fn cores_of_shares(cpu_shares: i64) -> i64 {
    match cpu_shares {
        ..=0 => 0,
        1..=MOST_SHARES_THAT_ARE_CORES => cpu_shares,
        shares => {
            let begun = i64::from(shares % SHARES_PER_CORE != 0);
            (shares / SHARES_PER_CORE).saturating_add(begun)
        }
    }
}

/// The strategy that a VM's placement policy asks for. `None` leaves it to the service.
///
/// `consolidated` and `efficiency` fill the fullest host, `performance` and `network-aware` take
/// the emptiest, `balanced` and nothing at all the one with the fewest VMs, as NovaCron's built-in
/// ones do.
pub fn strategy_of_policy(policy: &str) -> Option<Strategy> {
    match policy {
        "" | "balanced" => Some(Strategy::FewestVms),
        "consolidated" | "efficiency" => Some(Strategy::BestFit),
        "performance" | "network-aware" => Some(Strategy::LeastLoaded),
        _ => None,
    }
}

/// A VM as NovaCron configures it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::VMConfig)]
pub struct VmConfig {
    pub id: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub command: String,
    pub args: Option<Vec<String>>,
    /// Up to 128: cores; beyond: 1024 for each core. 0: one core.
    pub cpu_shares: i64,
    /// 0: 512.
    pub memory_mb: i64,
    pub disk_size_gb: i64,
    pub rootfs: String,
    pub image: String,
    pub cloud_init_iso: String,
    pub mounts: Option<Vec<Mount>>,
    pub env: Option<BTreeMap<String, String>>,
    pub network_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub owner_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub tenant_id: String,
    #[serde(skip_serializing_if = "no_items")]
    pub volume_attachments: Option<Vec<VolumeAttachment>>,
    #[serde(skip_serializing_if = "no_items")]
    pub network_attachments: Option<Vec<NetworkAttachment>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<VmPlacementSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration: Option<MigrationSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replication: Option<ReplicationSpec>,
    pub work_dir: String,
    pub tags: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "is_zero")]
    pub predictive_prefetching: bool,
}

go_struct!(VmConfig {
    id = "id",
    name = "name",
    kind = "type",
    command = "command",
    args = "args",
    cpu_shares = "cpu_shares",
    memory_mb = "memory_mb",
    disk_size_gb = "disk_size_gb",
    rootfs = "rootfs",
    image = "image",
    cloud_init_iso = "cloud_init_iso",
    mounts = "mounts",
    env = "env",
    network_id = "network_id",
    owner_id = "owner_id",
    tenant_id = "tenant_id",
    volume_attachments = "volume_attachments",
    network_attachments = "network_attachments",
    placement = "placement",
    migration = "migration",
    replication = "replication",
    work_dir = "work_dir",
    tags = "tags",
    predictive_prefetching = "predictive_prefetching",
});

/// A directory of the VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::Mount)]
pub struct Mount {
    pub source: String,
    pub target: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub flags: i64,
    pub data: String,
}

go_struct!(Mount {
    source = "source",
    target = "target",
    kind = "type",
    flags = "flags",
    data = "data",
});

/// A volume of the VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::VolumeAttachment)]
pub struct VolumeAttachment {
    pub volume_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub device: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub read_only: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub boot: bool,
}

go_struct!(VolumeAttachment {
    volume_id = "volume_id",
    device = "device",
    read_only = "read_only",
    boot = "boot",
});

/// A network of the VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::NetworkAttachment)]
pub struct NetworkAttachment {
    pub network_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub interface_name: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub mac_address: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub ip_address: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub primary: bool,
}

go_struct!(NetworkAttachment {
    network_id = "network_id",
    interface_name = "interface_name",
    mac_address = "mac_address",
    ip_address = "ip_address",
    primary = "primary",
});

/// What a VM asks of the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::VMPlacementSpec)]
pub struct VmPlacementSpec {
    /// `balanced`, `consolidated`, `performance`, `efficiency`, `network-aware` or `custom`.
    #[serde(skip_serializing_if = "is_zero")]
    pub policy: String,
    /// Used before any other that fits.
    #[serde(skip_serializing_if = "no_items")]
    pub preferred_nodes: Option<Vec<String>>,
    /// Never used.
    #[serde(skip_serializing_if = "no_items")]
    pub excluded_nodes: Option<Vec<String>>,
}

go_struct!(VmPlacementSpec {
    policy = "policy",
    preferred_nodes = "preferred_nodes",
    excluded_nodes = "excluded_nodes",
});

/// How the VM is moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::MigrationSpec)]
pub struct MigrationSpec {
    /// `cold`, `warm`, `live` or `checkpoint`.
    #[serde(rename = "type")]
    pub kind: String,
    pub bandwidth_limit: i64,
    pub compression_level: i64,
    pub priority: i64,
}

go_struct!(MigrationSpec {
    kind = "type",
    bandwidth_limit = "bandwidth_limit",
    compression_level = "compression_level",
    priority = "priority",
});

/// How the VM is replicated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::ReplicationSpec)]
pub struct ReplicationSpec {
    pub enabled: bool,
    pub factor: i64,
    pub mode: String,
}

go_struct!(ReplicationSpec { enabled = "enabled", factor = "factor", mode = "mode" });

/// Asks NovaCron to create a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(default)]
#[schema(as = novacron::CreateVMRequest)]
pub struct CreateVmRequest {
    pub name: String,
    pub spec: VmConfig,
    pub tags: Option<BTreeMap<String, String>>,
}

go_struct!(CreateVmRequest { name = "name", spec = "spec", tags = "tags" });

impl VmConfig {
    /// What the VM takes, with NovaCron's defaults for shares and memory.
    pub fn demand(&self) -> Result<Amounts, Fault> {
        let or = |value: i64, default: i64| if value == 0 { default } else { value };
        let cores = cores_of_shares(or(self.cpu_shares, DEFAULT_SHARES));
        let memory_mb = or(self.memory_mb, DEFAULT_MEMORY_MB);
        Ok(Amounts::zero()
            .with(Dim::CPU_MILLIS, amount("cpu_shares", cores, 1000)?)
            .with(Dim::MEMORY_MIB, amount("memory_mb", memory_mb, 1)?)
            .with(Dim::DISK_GIB, amount("disk_size_gb", self.disk_size_gb, 1)?))
    }

    /// The VM's name: `id` where the caller knows it better than the configuration.
    pub fn key(&self, known_as: Option<&Name>) -> Result<VmKey, Fault> {
        let id_of_vm = match known_as {
            Some(name) => name.clone(),
            None => id("id", &self.id)?,
        };
        let mut key = VmKey::in_default_tenant(id_of_vm);
        if !self.tenant_id.trim().is_empty() {
            key.tenant = id("tenant_id", &self.tenant_id)?;
        }
        Ok(key)
    }

    /// The VM for the cluster. With `match_labels`, each tag must be a label of the host, as
    /// NovaCron has it under `enable_node_labels`.
    pub fn to_vm(&self, known_as: Option<&Name>, match_labels: bool) -> Result<Vm, Fault> {
        let mut vm = Vm::new(self.key(known_as)?, self.demand()?);
        vm.labels = to_labels("tags", &self.tags)?;
        if match_labels {
            let tags = vm.labels.iter();
            let selector = |(key, value): (&Name, &Name)| Selector {
                key: key.clone(),
                op: SelectorOp::In(vec![value.clone()]),
            };
            vm.selectors = tags.map(selector).collect();
        }
        if let Some(placement) = &self.placement {
            vm.preferred_hosts = ids("placement.preferred_nodes", &placement.preferred_nodes)?;
            vm.excluded_hosts = ids("placement.excluded_nodes", &placement.excluded_nodes)?;
        }
        Ok(vm)
    }

    /// The strategy of its placement block; `None` leaves it to the service.
    pub fn strategy(&self) -> Option<Strategy> {
        self.placement.as_ref().and_then(|placement| strategy_of_policy(&placement.policy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_cores_until_they_are_too_many() {
        let shares = [-1, 0, 1, 4, 128, 129, 1024, 1025, 2048, 3000, i64::MAX];
        let cores = [0, 0, 1, 4, 128, 1, 1, 2, 2, 3, 9_007_199_254_740_992];
        assert_eq!(shares.map(cores_of_shares), cores);
    }

    #[test]
    fn a_vm_that_says_nothing_takes_one_core_and_512_megabytes() {
        let demand = VmConfig::default().demand().expect("amounts");
        assert_eq!(demand, Amounts::cpu_memory(1000, 512));
        let config =
            VmConfig { cpu_shares: 4, memory_mb: 100, disk_size_gb: 9, ..Default::default() };
        assert_eq!(config.demand().expect("amounts"), Amounts::from_slice(&[4000, 100, 9]));
        let wrong = VmConfig { memory_mb: -1, ..Default::default() };
        assert_eq!(wrong.demand().expect_err("negative").path, "memory_mb");
    }

    #[test]
    fn tags_lists_and_tenant_go_with_the_vm() {
        let list = |items: &[&str]| Some(items.iter().map(|&item| item.to_owned()).collect());
        let config = VmConfig {
            id: "vm-1".into(),
            tenant_id: "acme".into(),
            tags: Some([("ssd".to_owned(), "yes please".to_owned())].into()),
            placement: Some(VmPlacementSpec {
                policy: "performance".into(),
                preferred_nodes: list(&[" n1 ", "", "n1"]),
                excluded_nodes: list(&["n2"]),
            }),
            ..Default::default()
        };
        let vm = config.to_vm(None, false).expect("a VM");
        assert_eq!(vm.key.to_string(), "acme/vm-1");
        assert_eq!(vm.preferred_hosts, [Name::new("n1").expect("a name")]);
        assert_eq!(vm.excluded_hosts, [Name::new("n2").expect("a name")]);
        assert!(vm.selectors.is_empty());
        assert_eq!(config.strategy(), Some(Strategy::LeastLoaded));
        let other = Name::new("other").expect("a name");
        let strict = config.to_vm(Some(&other), true).expect("a VM");
        assert_eq!((strict.key.id, strict.selectors.len()), (other, 1));
    }

    #[test]
    fn a_wrong_node_id_is_named_with_its_place() {
        let preferred_nodes = Some(vec!["n1".to_owned(), "no de".to_owned()]);
        let placement = Some(VmPlacementSpec { preferred_nodes, ..Default::default() });
        let config = VmConfig { id: "v".into(), placement, ..Default::default() };
        let wrong = config.to_vm(None, false).expect_err("a space");
        assert_eq!(wrong.path, "placement.preferred_nodes[1]");
    }
}
