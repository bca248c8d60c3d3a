//! Kernels over a block of rows: registers, and the steps that work on them.
//!
//! A register holds one value per row of the block: numbers, numbers of strings, or truths as bits,
//! with a bit for "not there" and one for "has no value". Truths are clear where either is set.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_range_loop,
    reason = "registers are counted and columns checked when a request is prepared"
)]

use crate::Op;
use crate::table::{Column, LANES, NO_TEXT, Table};

/// Rows worked on at once: a few registers of this size stay in the nearest cache.
pub(super) const BLOCK: usize = 256;
pub(super) const WORDS: usize = BLOCK / LANES;

/// One bit per row of a block.
pub(super) type Mask = [u64; WORDS];

#[derive(Clone, Debug)]
pub(super) struct Register {
    pub(super) numbers: [f64; BLOCK],
    texts: [u32; BLOCK],
    pub(super) truth: Mask,
    null: Mask,
    pub(super) fault: Mask,
}

impl Default for Register {
    fn default() -> Self {
        let none = [0; WORDS];
        Self {
            numbers: [0.0; BLOCK],
            texts: [NO_TEXT; BLOCK],
            truth: none,
            null: none,
            fault: none,
        }
    }
}

impl Register {
    /// Rows without a number.
    pub(super) fn not_there(&self) -> Mask {
        std::array::from_fn(|word| self.fault[word] | self.null[word])
    }
}

/// One side of a step: a register, or a value that is the same for all rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side<T> {
    Register(usize),
    Same(T),
}

/// What to do; the result is in the lowest register that is named.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Load {
        column: usize,
        to: usize,
    },
    Negate(usize),
    Not(usize),
    /// What is not there becomes false.
    Truth(usize),
    Logic(Op, usize, usize),
    Arithmetic(Op, Side<f64>, Side<f64>),
    CompareNumbers(Op, Side<f64>, Side<f64>),
    CompareTexts(Op, Side<u32>, Side<u32>),
    CompareBools(Op, Side<bool>, Side<bool>),
}

/// Runs steps for the rows of the block that begins at `start`.
pub(super) fn run(steps: &[Step], registers: &mut [Register], table: &Table, start: usize) {
    for step in steps {
        match *step {
            Step::Load { column, to } => load(table.column(column), start, &mut registers[to]),
            Step::Negate(register) => {
                let register = &mut registers[register];
                register.numbers.iter_mut().for_each(|number| *number = -*number);
                for word in 0..WORDS {
                    register.fault[word] |= register.null[word];
                    register.null[word] = 0;
                }
            }
            Step::Not(register) => {
                let Register { truth, null, fault, .. } = &mut registers[register];
                for word in 0..WORDS {
                    truth[word] = !truth[word] & !fault[word];
                    null[word] = 0;
                }
            }
            Step::Truth(register) => registers[register].null = [0; WORDS],
            Step::Logic(op, left, right) => logic(op, pair(registers, left, right)),
            Step::Arithmetic(op, left, right) => match op {
                Op::Add => arithmetic(registers, left, right, |a, b| a + b),
                Op::Subtract => arithmetic(registers, left, right, |a, b| a - b),
                Op::Multiply => arithmetic(registers, left, right, |a, b| a * b),
                _ => arithmetic(registers, left, right, |a, b| a / b),
            },
            Step::CompareNumbers(op, left, right) => match op {
                Op::Equal => numbers(registers, left, right, |a, b| a == b),
                Op::NotEqual => numbers(registers, left, right, |a, b| a != b),
                Op::Less => numbers(registers, left, right, |a, b| a < b),
                Op::LessOrEqual => numbers(registers, left, right, |a, b| a <= b),
                Op::Greater => numbers(registers, left, right, |a, b| a > b),
                _ => numbers(registers, left, right, |a, b| a >= b),
            },
            Step::CompareTexts(op, left, right) => match op {
                Op::Equal => texts(registers, left, right, |a, b| a == b),
                _ => texts(registers, left, right, |a, b| a != b),
            },
            Step::CompareBools(op, left, right) => bools(registers, op, left, right),
        }
    }
}

fn pair(registers: &mut [Register], left: usize, right: usize) -> (&mut Register, &Register) {
    let (low, high) = registers.split_at_mut(right);
    (&mut low[left], &high[0])
}

fn load(column: &Column, start: usize, register: &mut Register) {
    register.fault = [0; WORDS];
    let words = start / LANES;
    match column {
        Column::Numbers { values, there } => {
            let rows = &values[start..values.len().min(start + BLOCK)];
            register.numbers[..rows.len()].copy_from_slice(rows);
            for (word, there) in register.null.iter_mut().zip(&there[words..]) {
                *word = !there;
            }
        }
        Column::Texts(numbers) => {
            let rows = &numbers[start..numbers.len().min(start + BLOCK)];
            register.texts[..rows.len()].copy_from_slice(rows);
            register.null = mask_of(&register.texts, |text| text == NO_TEXT);
        }
        Column::Bools { values, there } => {
            let both = values[words..].iter().zip(&there[words..]);
            let register = register.truth.iter_mut().zip(&mut register.null);
            for ((truth, null), (value, there)) in register.zip(both) {
                *truth = value & there;
                *null = !there;
            }
        }
        // Columns of other kinds are never loaded.
        Column::Empty | Column::Mixed(_) => register.null = [!0; WORDS],
    }
}

fn logic(op: Op, (left, right): (&mut Register, &Register)) {
    for word in 0..WORDS {
        let (truth, fault) = (left.truth[word], left.fault[word]);
        // Where the left side decides, the right side's faults do not count.
        let open = if op == Op::And { truth } else { !truth & !fault };
        let fault = fault | open & right.fault[word];
        let both =
            if op == Op::And { truth & right.truth[word] } else { truth | right.truth[word] };
        left.truth[word] = both & !fault;
        left.fault[word] = fault;
        left.null[word] = 0;
    }
}

fn arithmetic(
    registers: &mut [Register],
    left: Side<f64>,
    right: Side<f64>,
    apply: impl Fn(f64, f64) -> f64,
) {
    let out = match (left, right) {
        (Side::Register(left), Side::Register(right)) => {
            let (left, right) = pair(registers, left, right);
            for (a, b) in left.numbers.iter_mut().zip(&right.numbers) {
                *a = apply(*a, *b);
            }
            for word in 0..WORDS {
                left.fault[word] |= right.fault[word] | right.null[word];
            }
            left
        }
        (Side::Register(left), Side::Same(b)) => {
            let left = &mut registers[left];
            left.numbers.iter_mut().for_each(|a| *a = apply(*a, b));
            left
        }
        (Side::Same(a), Side::Register(right)) => {
            let right = &mut registers[right];
            right.numbers.iter_mut().for_each(|b| *b = apply(a, *b));
            right
        }
        (Side::Same(_), Side::Same(_)) => return,
    };
    let broken = mask_of(&out.numbers, |number| !number.is_finite());
    for word in 0..WORDS {
        out.fault[word] |= out.null[word] | broken[word];
        out.null[word] = 0;
    }
}

fn numbers(
    registers: &mut [Register],
    left: Side<f64>,
    right: Side<f64>,
    test: impl Fn(f64, f64) -> bool,
) {
    match (left, right) {
        (Side::Register(left), Side::Register(right)) => {
            let (left, right) = pair(registers, left, right);
            let truth = mask_of_both(&left.numbers, &right.numbers, test);
            decide(left, truth, Some(right));
        }
        (Side::Register(left), Side::Same(b)) => {
            let truth = mask_of(&registers[left].numbers, |a| test(a, b));
            decide(&mut registers[left], truth, None);
        }
        (Side::Same(a), Side::Register(right)) => {
            let truth = mask_of(&registers[right].numbers, |b| test(a, b));
            decide(&mut registers[right], truth, None);
        }
        (Side::Same(_), Side::Same(_)) => {}
    }
}

fn texts(
    registers: &mut [Register],
    left: Side<u32>,
    right: Side<u32>,
    test: impl Fn(u32, u32) -> bool,
) {
    match (left, right) {
        (Side::Register(left), Side::Register(right)) => {
            let (left, right) = pair(registers, left, right);
            let truth = mask_of_both(&left.texts, &right.texts, test);
            decide(left, truth, Some(right));
        }
        // Equality has no sides.
        (Side::Register(register), Side::Same(same))
        | (Side::Same(same), Side::Register(register)) => {
            let truth = mask_of(&registers[register].texts, |text| test(text, same));
            decide(&mut registers[register], truth, None);
        }
        (Side::Same(_), Side::Same(_)) => {}
    }
}

fn bools(registers: &mut [Register], op: Op, left: Side<bool>, right: Side<bool>) {
    let wanted = |differ: u64| if op == Op::Equal { !differ } else { differ };
    match (left, right) {
        (Side::Register(left), Side::Register(right)) => {
            let (left, right) = pair(registers, left, right);
            let both = left.truth.iter().zip(&right.truth);
            let mut truth = [0; WORDS];
            truth.iter_mut().zip(both).for_each(|(out, (a, b))| *out = wanted(a ^ b));
            decide(left, truth, Some(right));
        }
        (Side::Register(register), Side::Same(same))
        | (Side::Same(same), Side::Register(register)) => {
            let register = &mut registers[register];
            let flip = if same { !0 } else { 0 };
            let truth = register.truth.map(|a| wanted(a ^ flip));
            decide(register, truth, None);
        }
        (Side::Same(_), Side::Same(_)) => {}
    }
}

/// Puts the outcome of a comparison into a register: false where a side is not there.
fn decide(register: &mut Register, truth: Mask, other: Option<&Register>) {
    for word in 0..WORDS {
        let (null, fault) = other.map_or((0, 0), |other| (other.null[word], other.fault[word]));
        let (null, fault) = (null | register.null[word], fault | register.fault[word]);
        register.truth[word] = truth[word] & !null & !fault;
        register.fault[word] = fault;
        register.null[word] = 0;
    }
}

fn mask_of<T: Copy>(values: &[T; BLOCK], test: impl Fn(T) -> bool) -> Mask {
    let mut mask = [0; WORDS];
    for (word, lanes) in mask.iter_mut().zip(values.as_chunks::<LANES>().0) {
        for (lane, value) in lanes.iter().enumerate() {
            *word |= u64::from(test(*value)) << lane;
        }
    }
    mask
}

fn mask_of_both<T: Copy>(
    left: &[T; BLOCK],
    right: &[T; BLOCK],
    test: impl Fn(T, T) -> bool,
) -> Mask {
    let mut mask = [0; WORDS];
    let lanes = left.as_chunks::<LANES>().0.iter().zip(right.as_chunks::<LANES>().0);
    for (word, (left, right)) in mask.iter_mut().zip(lanes) {
        for (lane, (a, b)) in left.iter().zip(right).enumerate() {
            *word |= u64::from(test(*a, *b)) << lane;
        }
    }
    mask
}
