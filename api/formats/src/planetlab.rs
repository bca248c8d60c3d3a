//! PlanetLab days as CloudSim uses them: what VMs used every five minutes of a day.
//!
//! A day is a VM a line: its name and a percentage of what it asked for in each step, with commas
//! between them. An order is a name a line and says which VMs there are. Both may be packed by gzip.
//! Hosts, sizes and power tables are CloudSim's, in hundredths of a MIPS, so that what a VM uses is a
//! whole number. An answer has a line `step,vm,host` for every VM at step 0, and one for every move.

use crate::table::{self, TableError};
use std::collections::HashMap;
use std::fmt::Write;

#[derive(Debug, thiserror::Error)]
pub enum PlanetlabError {
    #[error("{0}")]
    Unreadable(#[from] TableError),
    #[error("the day, line {line}: {value:?} is not a percentage, a whole number from 0 to 100")]
    Percentage { line: usize, value: String },
    #[error("the day, line {line}: {found} samples where the first line has {expected}")]
    Ragged { line: usize, found: usize, expected: usize },
    #[error("the day, line {line}: {name:?} has a line already")]
    Twice { line: usize, name: String },
    #[error("the order, line {line}: the day has no VM {name:?}")]
    Unknown { line: usize, name: String },
    #[error("the order names no VM")]
    Empty,
    #[error("the day has no samples")]
    NoSamples,
}

/// The VMs of a day, in order.
#[derive(Debug, PartialEq, Eq)]
pub struct Day {
    /// What each VM asked for.
    pub requested: Vec<u64>,
    /// What each VM used, step by step.
    pub used: Vec<Vec<u64>>,
}

/// A kind of host: what it has, and what it draws with nothing in use, a tenth, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostKind {
    pub capacity: u64,
    pub milliwatts: [u32; 11],
}

pub const HOSTS: usize = 800;
pub const STEP_SECONDS: u32 = 300;
/// Hosts of even and of odd rows.
pub const HOST_KINDS: [HostKind; 2] = [
    HostKind {
        capacity: 372_000,
        milliwatts: [
            86_000, 89_400, 92_600, 96_000, 99_500, 102_000, 106_000, 108_000, 112_000, 114_000,
            117_000,
        ],
    },
    HostKind {
        capacity: 532_000,
        milliwatts: [
            93_700, 97_000, 101_000, 105_000, 110_000, 116_000, 121_000, 125_000, 129_000, 133_000,
            135_000,
        ],
    },
];
/// In MIPS, for each quarter of the VMs.
const VM_SIZES: [u64; 4] = [2_500, 2_000, 1_000, 500];

/// Reads the VMs that an order names from a day.
pub fn read(day: &[u8], order: &[u8]) -> Result<Day, PlanetlabError> {
    let (day, order) = (table::text(day)?, table::text(order)?);
    let percentages = percentages(&day)?;
    let names: Vec<(usize, &str)> =
        (1..).zip(order.lines().map(str::trim)).filter(|(_, name)| !name.is_empty()).collect();
    let quarter = names.len().div_ceil(VM_SIZES.len());
    let mut read = Day { requested: Vec::new(), used: Vec::new() };
    for (row, &(line, name)) in names.iter().enumerate() {
        let unknown = || PlanetlabError::Unknown { line, name: name.to_owned() };
        let percentages = percentages.get(name).ok_or_else(unknown)?;
        let size = VM_SIZES[row / quarter];
        read.requested.push(size * 100);
        read.used.push(percentages.iter().map(|percent| percent * size).collect());
    }
    let steps = read.used.first().ok_or(PlanetlabError::Empty)?.len();
    if steps == 0 { Err(PlanetlabError::NoSamples) } else { Ok(read) }
}

/// The samples of every VM by name.
fn percentages(day: &str) -> Result<HashMap<&str, Vec<u64>>, PlanetlabError> {
    let mut percentages: HashMap<&str, Vec<u64>> = HashMap::new();
    let mut expected = None;
    for (line, text) in (1..).zip(day.lines()) {
        let mut values = text.trim().split(',');
        let Some(name) = values.next().filter(|name| !name.is_empty()) else { continue };
        let sample = |value: &str| {
            let sample = value.parse().ok().filter(|percent| *percent <= 100);
            sample.ok_or_else(|| PlanetlabError::Percentage { line, value: value.to_owned() })
        };
        let samples: Vec<u64> = values.map(sample).collect::<Result<_, _>>()?;
        let expected = *expected.get_or_insert(samples.len());
        if samples.len() != expected {
            return Err(PlanetlabError::Ragged { line, found: samples.len(), expected });
        }
        if percentages.insert(name, samples).is_some() {
            return Err(PlanetlabError::Twice { line, name: name.to_owned() });
        }
    }
    Ok(percentages)
}

/// One line of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub step: usize,
    pub vm: u32,
    pub host: u32,
}

pub fn write_moves(moves: &[Move]) -> String {
    let mut text = String::from("step,vm,host\n");
    for Move { step, vm, host } in moves {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{step},{vm},{host}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vms_come_in_order_and_are_smaller_by_quarters() {
        let day = read(b"b,50,0\na,10,20\n", b"a\n\nb\n").expect("a good day");
        assert_eq!(day.requested, [250_000, 200_000]);
        assert_eq!(day.used, [[25_000, 50_000], [100_000, 0]]);
    }

    #[test]
    fn faults_name_line_and_value() {
        let told = |day: &str, order: &str| {
            read(day.as_bytes(), order.as_bytes()).expect_err("a fault").to_string()
        };
        let wanted = "is not a percentage, a whole number from 0 to 100";
        assert_eq!(told("a,1\nb,101\n", "a"), format!("the day, line 2: \"101\" {wanted}"));
        assert_eq!(told("a,x", "a"), format!("the day, line 1: \"x\" {wanted}"));
        let ragged = "the day, line 2: 2 samples where the first line has 1";
        assert_eq!(told("a,1\nb,1,2\n", "a"), ragged);
        assert_eq!(told("a,1\na,1\n", "a"), "the day, line 2: \"a\" has a line already");
        assert_eq!(told("a,1\n", "a\nc\n"), "the order, line 2: the day has no VM \"c\"");
        assert_eq!(told("a,1\n", "\n"), "the order names no VM");
        assert_eq!(told("a\n", "a\n"), "the day has no samples");
    }

    #[test]
    fn an_answer_is_a_table() {
        assert_eq!(write_moves(&[Move { step: 0, vm: 2, host: 7 }]), "step,vm,host\n0,2,7\n");
    }
}
