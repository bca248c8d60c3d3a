//! Table: what VMs cost where they are, by their class and the host's.

#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// By class of VM and class of host.
    costs: Vec<i64>,
    width: usize,
    class_of_vm: Vec<u32>,
    class_of_host: Vec<u32>,
}

impl Table {
    pub(super) fn compile(costs: &[Vec<u64>], vms: &[u32], hosts: &[u32]) -> Self {
        Self {
            costs: costs.iter().flatten().map(|&cost| cost as i64).collect(),
            width: costs.first().map_or(0, Vec::len),
            class_of_vm: vms.to_vec(),
            class_of_host: hosts.to_vec(),
        }
    }

    #[inline]
    pub(super) fn vm(&self, vm: u32, host: u32) -> i64 {
        let row = self.class_of_vm[vm as usize] as usize * self.width;
        self.costs[row + self.class_of_host[host as usize] as usize]
    }

    /// Every VM on hosts of its cheapest class.
    pub(super) fn bound(&self) -> i64 {
        let mut there = vec![false; self.width];
        self.class_of_host.iter().for_each(|&class| there[class as usize] = true);
        let rows = self.costs.chunks(self.width.max(1));
        let least = |row: &[i64]| {
            let costs = row.iter().zip(&there).filter(|(_, there)| **there);
            costs.map(|(&cost, _)| cost).min().unwrap_or(0)
        };
        let least: Vec<i64> = rows.map(least).collect();
        self.class_of_vm.iter().map(|&class| least[class as usize]).sum()
    }
}
