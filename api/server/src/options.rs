//! What the service is told beside the cluster: how it deals with NovaCron.

/// Settings of the routes that NovaCron uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a scheduled VM is waited for.
    pub hold_ttl_ms: u64,
    /// Most VMs on a node; 0: as many as fit. Needs the dimension `VM_SLOTS`.
    pub max_vms_per_node: u32,
    /// Answer and compare, but place nothing.
    pub advise: bool,
}

/// The dimension in which each VM of NovaCron takes one, so that their number is kept to a limit
/// like any other resource.
pub const VM_SLOTS: &str = "vm_slots";

impl Default for Options {
    fn default() -> Self {
        Self { hold_ttl_ms: 30_000, max_vms_per_node: 0, advise: false }
    }
}
