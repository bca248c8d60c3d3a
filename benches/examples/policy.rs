//! `policy [HOSTS] [SEED]`: one policy over a fleet, beside NovaCron's way, as a line of JSON.
#![expect(clippy::print_stdout, reason = "an example tells what it found")]

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let hosts = arguments.next().transpose()?.unwrap_or(10_000);
    let seed = arguments.next().transpose()?.unwrap_or(1);
    println!("{}", serde_json::to_string(&benches::policy::run(hosts, seed as u64)?)?);
    Ok(())
}
