//! Makes code ready for one request: what depends on the VM alone becomes a value, the rest steps
//! over columns.
//!
//! Steps exist for operands of one kind. Where kinds are mixed, or a fault of one side would have
//! to be kept while the other side is known, the expression is run row by row instead.

use super::block::{Side, Step};
use super::row::{Cell, apply, binary};
use crate::code::{Code, Node};
use crate::scalar::Fault;
use crate::table::{Column, Table};
use crate::{Op, Root, Value};

/// How an expression is evaluated for this request.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    /// The same for all hosts.
    Known(Cell),
    /// These steps of the list; the result is in register 0.
    Steps { first: usize, end: usize },
    /// Node by node for each row.
    Rows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Text,
    Bool,
}

/// What is known of a node that differs from host to host.
#[derive(Clone, Copy, Debug)]
struct Lane {
    kind: Kind,
    register: usize,
    /// Where its steps begin, to take them back when they turn out not to matter.
    first: usize,
    can_fault: bool,
}

#[derive(Clone, Debug)]
enum Spec {
    Known(Cell),
    Column(Lane),
}

/// Values of the request, and the table it is about.
pub(super) struct Context<'a> {
    pub(super) vm: &'a [Value],
    pub(super) source: &'a [Value],
    pub(super) table: &'a Table,
}

impl Context<'_> {
    /// An attribute that is the same for all hosts.
    pub(super) fn attribute(&self, root: Root, index: usize) -> Value {
        let values = match root {
            Root::Vm => self.vm,
            Root::Source => self.source,
            Root::Candidate => &[],
        };
        values.get(index).cloned().unwrap_or_default()
    }
}

/// Lists of the preparation, kept for the next one.
#[derive(Debug, Default)]
pub(super) struct Preparation {
    pub(super) steps: Vec<Step>,
    /// Most registers that any expression needs.
    pub(super) registers: usize,
    specs: Vec<Spec>,
    cells: Vec<Cell>,
}

impl Preparation {
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.registers = 0;
    }

    /// Prepares `code`, whose result should be of kind `wanted`.
    pub(super) fn plan(&mut self, code: &Code, wanted: Kind, context: &Context<'_>) -> Plan {
        let first = self.steps.len();
        self.specs.clear();
        self.cells.clear();
        let mut depth = 0;
        for (node, per_host) in code.nodes.iter().zip(&code.per_host) {
            let spec = if *per_host {
                self.spec(node, &mut depth, context)
            } else {
                let lookup = |root, index| context.attribute(root, index);
                Some(Spec::Known(apply(node, &self.cells, &lookup)))
            };
            let Some(spec) = spec else {
                self.steps.truncate(first);
                return Plan::Rows;
            };
            // Known values are kept once more, as the rows of `apply`.
            self.cells.push(match &spec {
                Spec::Known(cell) => cell.clone(),
                Spec::Column(_) => Ok(Value::Null),
            });
            self.specs.push(spec);
            self.registers = self.registers.max(depth);
        }
        match self.specs.pop() {
            Some(Spec::Known(cell)) => Plan::Known(cell),
            Some(Spec::Column(column)) if column.kind == wanted => {
                Plan::Steps { first, end: self.steps.len() }
            }
            _ => {
                self.steps.truncate(first);
                Plan::Rows
            }
        }
    }

    fn spec(&mut self, node: &Node, depth: &mut usize, context: &Context<'_>) -> Option<Spec> {
        match node {
            Node::Attribute(_, column) => {
                let kind = match context.table.column(*column) {
                    Column::Empty => return Some(Spec::Known(Ok(Value::Null))),
                    Column::Numbers { .. } => Kind::Number,
                    Column::Texts(_) => Kind::Text,
                    Column::Bools { .. } => Kind::Bool,
                    Column::Mixed(_) => return None,
                };
                let (register, first) = (*depth, self.steps.len());
                self.steps.push(Step::Load { column: *column, to: register });
                *depth += 1;
                Some(Spec::Column(Lane { kind, register, first, can_fault: false }))
            }
            Node::Not(inner) | Node::Negate(inner) => match self.specs.get(*inner)?.clone() {
                Spec::Known(_) => Some(Spec::Known(apply(node, &self.cells, &|_, _| Value::Null))),
                Spec::Column(column) => {
                    let (step, kind, can_fault) = match node {
                        Node::Not(_) => (Step::Not(column.register), Kind::Bool, column.can_fault),
                        _ => (Step::Negate(column.register), Kind::Number, true),
                    };
                    self.steps.push(step);
                    (column.kind == kind).then_some(Spec::Column(Lane { can_fault, ..column }))
                }
            },
            Node::Binary(op, left, right) => {
                let left = self.specs.get(*left)?.clone();
                let right = self.specs.get(*right)?.clone();
                if let (Spec::Known(left), Spec::Known(right)) = (&left, &right) {
                    return Some(Spec::Known(binary(*op, left, right)));
                }
                if op.is_logic() {
                    self.logic(*op, left, right, depth)
                } else if op.is_arithmetic() {
                    self.arithmetic(*op, left, right, depth)
                } else {
                    self.compare(*op, left, right, depth, context.table)
                }
            }
            Node::Constant(_) | Node::Parameter(_) => None,
        }
    }

    fn logic(&mut self, op: Op, left: Spec, right: Spec, depth: &mut usize) -> Option<Spec> {
        // What decides alone: false for &&, true for ||.
        let decisive = op == Op::Or;
        match (left, right) {
            (Spec::Known(cell), Spec::Column(column)) => match super::row::truth(&cell) {
                Ok(value) if value != decisive => self.truth(column),
                Ok(value) => Some(self.known(Ok(Value::Bool(value)), column, depth)),
                Err(fault) => Some(self.known(Err(fault), column, depth)),
            },
            (Spec::Column(column), Spec::Known(cell)) => match super::row::truth(&cell) {
                Ok(value) if value != decisive => self.truth(column),
                Ok(value) if column.kind == Kind::Bool && !column.can_fault => {
                    Some(self.known(Ok(Value::Bool(value)), column, depth))
                }
                _ => None,
            },
            (Spec::Column(left), Spec::Column(right)) => {
                self.steps.push(Step::Logic(op, left.register, right.register));
                *depth = right.register;
                let bools = left.kind == Kind::Bool && right.kind == Kind::Bool;
                let can_fault = left.can_fault || right.can_fault;
                bools.then_some(Spec::Column(Lane { can_fault, ..left }))
            }
            _ => None,
        }
    }

    fn truth(&mut self, column: Lane) -> Option<Spec> {
        self.steps.push(Step::Truth(column.register));
        (column.kind == Kind::Bool).then_some(Spec::Column(column))
    }

    fn arithmetic(&mut self, op: Op, left: Spec, right: Spec, depth: &mut usize) -> Option<Spec> {
        let lowest = lowest(&left, &right)?;
        let (Some(a), Some(b)) = (number_side(&left), number_side(&right)) else {
            // One side is no number on any row.
            return Some(self.known(Err(Fault::Type), lowest, depth));
        };
        self.steps.push(Step::Arithmetic(op, a, b));
        *depth = lowest.register + 1;
        Some(Spec::Column(Lane { can_fault: true, ..lowest }))
    }

    fn compare(
        &mut self,
        op: Op,
        left: Spec,
        right: Spec,
        depth: &mut usize,
        table: &Table,
    ) -> Option<Spec> {
        let lowest = lowest(&left, &right)?;
        let can_fault = can_fault(&left) || can_fault(&right);
        let known = match (&left, &right) {
            (Spec::Known(cell), _) | (_, Spec::Known(cell)) => Some(cell),
            _ => None,
        };
        match known {
            Some(Err(fault)) => return Some(self.known(Err(*fault), lowest, depth)),
            Some(Ok(Value::Null)) if can_fault => return None,
            Some(Ok(Value::Null)) => {
                return Some(self.known(Ok(Value::Bool(false)), lowest, depth));
            }
            _ => {}
        }
        let step = if let (Some(a), Some(b)) = (number_side(&left), number_side(&right)) {
            Step::CompareNumbers(op, a, b)
        } else if !op.is_equality() {
            return None;
        } else if let (Some(a), Some(b)) = (text_side(&left, table), text_side(&right, table)) {
            Step::CompareTexts(op, a, b)
        } else if let (Some(a), Some(b)) = (bool_side(&left), bool_side(&right)) {
            Step::CompareBools(op, a, b)
        } else {
            return None;
        };
        self.steps.push(step);
        *depth = lowest.register + 1;
        Some(Spec::Column(Lane { kind: Kind::Bool, can_fault, ..lowest }))
    }

    /// Takes the steps of a side back: the outcome is known without them.
    fn known(&mut self, cell: Cell, column: Lane, depth: &mut usize) -> Spec {
        self.steps.truncate(column.first);
        *depth = column.register;
        Spec::Known(cell)
    }
}

fn lowest(left: &Spec, right: &Spec) -> Option<Lane> {
    match (left, right) {
        (Spec::Column(column), _) | (_, Spec::Column(column)) => Some(*column),
        _ => None,
    }
}

fn can_fault(spec: &Spec) -> bool {
    matches!(spec, Spec::Column(column) if column.can_fault)
}

fn number_side(spec: &Spec) -> Option<Side<f64>> {
    match spec {
        Spec::Column(column) => {
            (column.kind == Kind::Number).then_some(Side::Register(column.register))
        }
        Spec::Known(Ok(Value::Number(number))) => Some(Side::Same(*number)),
        Spec::Known(_) => None,
    }
}

fn text_side(spec: &Spec, table: &Table) -> Option<Side<u32>> {
    match spec {
        Spec::Column(column) => {
            (column.kind == Kind::Text).then_some(Side::Register(column.register))
        }
        Spec::Known(Ok(Value::Text(text))) => Some(Side::Same(table.text_number(text))),
        Spec::Known(_) => None,
    }
}

fn bool_side(spec: &Spec) -> Option<Side<bool>> {
    match spec {
        Spec::Column(column) => {
            (column.kind == Kind::Bool).then_some(Side::Register(column.register))
        }
        Spec::Known(Ok(Value::Bool(value))) => Some(Side::Same(*value)),
        Spec::Known(_) => None,
    }
}
