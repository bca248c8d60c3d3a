//! A host's description, read for the checks: threads one by one, and where devices are.

use cluster::{CoreClass, Hardware, PortKind};

pub(super) struct Reading<'a> {
    pub hardware: &'a Hardware,
    /// By number.
    pub threads: Vec<Thread>,
    /// Threads of each core.
    siblings: Vec<usize>,
}

/// One hardware thread. Threads with the same core are siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub node: u16,
    pub class: CoreClass,
    pub core: u32,
}

impl<'a> Reading<'a> {
    pub(super) fn new(hardware: &'a Hardware) -> Self {
        let mut threads = Vec::new();
        let mut siblings = Vec::new();
        for (node, shape) in hardware.numa_nodes.iter().enumerate() {
            let node = node as u16;
            for _ in 0..shape.cores {
                let core = siblings.len() as u32;
                let thread = Thread { node, class: CoreClass::Performance, core };
                threads.extend((0..shape.threads_per_core).map(|_| thread));
                siblings.push(usize::from(shape.threads_per_core));
            }
            for _ in 0..shape.efficiency_cores {
                let core = siblings.len() as u32;
                threads.push(Thread { node, class: CoreClass::Efficiency, core });
                siblings.push(1);
            }
        }
        Self { hardware, threads, siblings }
    }

    pub(super) fn thread(&self, cpu: u16) -> Option<Thread> {
        self.threads.get(usize::from(cpu)).copied()
    }

    pub(super) fn siblings(&self, core: u32) -> usize {
        self.siblings[core as usize]
    }

    /// The node of a device, by itself or by the first port above it that knows.
    pub(super) fn node(&self, own: Option<u16>, port: Option<u16>) -> Option<u16> {
        if own.is_some() {
            return own;
        }
        self.way_up(port)
            .into_iter()
            .find_map(|row| self.hardware.pcie_ports[usize::from(row)].numa_node)
    }

    /// The first port above a device, or its own, that others can hang on.
    pub(super) fn switch(&self, port: Option<u16>) -> Option<u16> {
        let ports = &self.hardware.pcie_ports;
        let branches = |row: &u16| {
            matches!(ports[usize::from(*row)].kind, PortKind::Switch | PortKind::RootComplex)
        };
        self.way_up(port).into_iter().find(branches)
    }

    /// What gets through to the root; nothing where the way is not known.
    pub(super) fn mbps(&self, port: Option<u16>) -> u32 {
        let ports = &self.hardware.pcie_ports;
        let way = self.way_up(port);
        way.into_iter().map(|row| ports[usize::from(row)].bandwidth_mbps).min().unwrap_or(0)
    }

    fn way_up(&self, port: Option<u16>) -> Vec<u16> {
        let mut way = Vec::new();
        let mut at = port;
        while let Some(row) = at {
            let Some(port) = self.hardware.pcie_ports.get(usize::from(row)) else { break };
            way.push(row);
            at = match port.parent {
                Some(parent) if parent < row => Some(parent),
                _ => None,
            };
        }
        way
    }
}
