//! A fleet to play with: made by seed, so that everybody's demo is the same.

use super::submit_all;
use engine::Writer;
use fixture::{Fleet, FleetSpec};
use std::net::SocketAddr;

const HOSTS: usize = 1_000;
const VMS: usize = 8_000;
const SEED: u64 = 7;
/// Calls in flight while loading: a few commits' worth.
const WINDOW: usize = 2_048;

/// Brings the fleet in, unless there are hosts already.
pub(super) fn load(writer: &Writer) -> anyhow::Result<()> {
    if writer.read(|state| state.host_count()) > 0 {
        return Ok(());
    }
    let fleet = Fleet::generate(&FleetSpec::new(HOSTS, VMS, SEED));
    submit_all(writer, benches::scale::loading(fleet), WINDOW)?;
    tracing::info!(hosts = HOSTS, vms = VMS, "the demo fleet is in");
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this is for the person who just started it")]
pub(super) fn say_what_to_try(address: SocketAddr) {
    println!();
    println!("  novaplace runs a demo fleet of {HOSTS} hosts and {VMS} VMs.");
    println!();
    println!("  Open  http://{address}/docs");
    println!(
        "  Try   curl -s http://{address}/v1/placements -H 'content-type: application/json' \\"
    );
    println!(
        "          -d '{{\"vm\":{{\"id\":\"my-first-vm\",\"demand\":{{\"cpu_millis\":2000,\"memory_mib\":4096}}}}}}'"
    );
    println!();
}
