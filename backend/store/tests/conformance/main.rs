//! One contract for every command log: each test of `contract` runs against all of them, those
//! of `faults` against the ones whose disk can be broken on purpose.

mod contract;
mod damage;
mod faults;
mod machine;
