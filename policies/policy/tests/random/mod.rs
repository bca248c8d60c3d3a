//! Random documents, tables and requests, by seed.

use fixture::Dice;
use policy::{
    Action, ActionKind, At, Document, Expr, ExprKind, LogLevel, Marks, Op, Parameter,
    ParameterType, Path, PolicyType, Program, Root, Rule, Table, Value, compile,
};

/// Attribute names by the kind of values that they mostly have: numbers, texts, bools.
const NAMES: [[&str; 3]; 3] = [["m", "n", "n.1 \"x\""], ["t", "u", "t-1"], ["p", "q", "p/1"]];
const NUMBER: usize = 0;
const TEXT: usize = 1;
const BOOL: usize = 2;
const TEXTS: [&str; 4] = ["red", "green", "blue", "caf\u{e9} \\ \"q\"\n\u{7}"];
const NUMBERS: [f64; 8] = [0.0, 1.0, -1.0, 2.5, 100.0, 1e300, 0.1, 12345.678];

fn expr(kind: ExprKind) -> Expr {
    Expr::new(At::default(), kind)
}

fn attribute(dice: &mut Dice, asked: PolicyType, usual: usize) -> Expr {
    let roots: &[(Root, u32)] = match asked {
        PolicyType::Migration => &[(Root::Vm, 2), (Root::Candidate, 5), (Root::Source, 1)],
        _ => &[(Root::Vm, 2), (Root::Candidate, 5)],
    };
    let root = *dice.weighted(roots);
    let names = if dice.chance(960) { &NAMES[usual] } else { dice.pick(&NAMES) };
    let mut keys = vec![*dice.pick(names)];
    if dice.chance(300) {
        keys.push(*dice.pick(names));
    }
    expr(ExprKind::Attribute(Path::new(root, &keys)))
}

fn number(dice: &mut Dice, depth: u32, kind: PolicyType) -> Expr {
    match if depth == 0 { dice.below(3) } else { dice.below(8) } {
        0 => expr(ExprKind::Number(*dice.pick(&NUMBERS))),
        1 | 2 => attribute(dice, kind, NUMBER),
        3 => expr(ExprKind::Parameter("limit".into())),
        4 => match number(dice, depth - 1, kind) {
            Expr { kind: ExprKind::Number(number), .. } => expr(ExprKind::Number(-number)),
            inner => expr(ExprKind::Negate(Box::new(inner))),
        },
        _ => {
            let op = *dice.pick(&[Op::Add, Op::Subtract, Op::Multiply, Op::Divide]);
            let (left, right) = (number(dice, depth - 1, kind), number(dice, depth - 1, kind));
            expr(ExprKind::Binary(op, Box::new(left), Box::new(right)))
        }
    }
}

fn text(dice: &mut Dice, kind: PolicyType) -> Expr {
    match dice.below(4) {
        0 | 1 => expr(ExprKind::Text((*dice.pick(&TEXTS)).into())),
        2 => expr(ExprKind::Parameter("colour".into())),
        _ => attribute(dice, kind, TEXT),
    }
}

fn condition(dice: &mut Dice, depth: u32, kind: PolicyType) -> Expr {
    let binary = |op, left, right| expr(ExprKind::Binary(op, Box::new(left), Box::new(right)));
    let orders = [Op::Less, Op::LessOrEqual, Op::Greater, Op::GreaterOrEqual];
    let equals = [Op::Equal, Op::NotEqual];
    match if depth == 0 { dice.below(5) } else { dice.below(12) } {
        0 => expr(ExprKind::Bool(dice.chance(500))),
        1 => attribute(dice, kind, BOOL),
        2 => {
            let op = *dice.pick(&equals);
            binary(op, attribute(dice, kind, TEXT), text(dice, kind))
        }
        3 | 4 => {
            let op = if dice.chance(700) { *dice.pick(&orders) } else { *dice.pick(&equals) };
            binary(op, number(dice, depth.min(2), kind), number(dice, depth.min(1), kind))
        }
        5 => {
            let op = *dice.pick(&orders);
            binary(op, attribute(dice, kind, TEXT), text(dice, kind))
        }
        6 => {
            let op = *dice.pick(&equals);
            binary(op, attribute(dice, kind, BOOL), condition(dice, depth - 1, kind))
        }
        7 => expr(ExprKind::Not(Box::new(condition(dice, depth - 1, kind)))),
        8 => binary(Op::Or, condition(dice, depth - 1, kind), condition(dice, depth - 1, kind)),
        _ => binary(Op::And, condition(dice, depth - 1, kind), condition(dice, depth - 1, kind)),
    }
}

fn action(dice: &mut Dice, kind: PolicyType) -> Action {
    let reason = (*dice.pick(&TEXTS)).into();
    let kind = match dice.below(6) {
        0 => ActionKind::Filter { reason },
        1 => ActionKind::Log { text: reason, level: *dice.pick(&LogLevel::ALL) },
        _ => ActionKind::Score { points: number(dice, 2, kind), reason },
    };
    Action { at: At::default(), kind }
}

fn rule(dice: &mut Dice, number: usize, kind: PolicyType) -> Rule {
    Rule {
        name: format!("rule \"{number}\""),
        id: format!("r{number}"),
        description: dice.chance(200).then(|| "why\tnot".to_string()),
        priority: dice.below(4) as i32 - 1,
        weight: dice.below(4) as u32,
        hard_constraint: *dice.pick(&[None, Some(true), Some(false)]),
        when: condition(dice, 3, kind),
        then: (0..dice.between(1, 3)).map(|_| action(dice, kind)).collect(),
        marks: Marks::default(),
    }
}

/// A policy that is well typed; everything else about it is chance.
pub fn program(dice: &mut Dice, id: &str, kind: PolicyType) -> Program {
    // Constant parts may divide by zero, which is an error; most do not.
    (0..100).find_map(|_| compile(document(dice, id, kind)).ok()).expect("a valid policy in time")
}

fn document(dice: &mut Dice, id: &str, kind: PolicyType) -> Document {
    let parameter = |name: &str, kind, default: Value| Parameter {
        name: name.into(),
        kind,
        description: None,
        default: Some(default),
        min: None,
        max: None,
        allowed: Vec::new(),
        marks: Marks::default(),
    };
    Document {
        name: format!("Policy {id}"),
        id: id.into(),
        kind,
        description: dice.chance(500).then(|| "some words about it".into()),
        metadata: [("owner".to_string(), "a \"b\"".to_string()), ("x-y".into(), String::new())]
            .into(),
        target: dice.chance(400).then(|| condition(dice, 1, kind)),
        parameters: vec![
            parameter("limit", ParameterType::Float, Value::Number(*dice.pick(&NUMBERS))),
            parameter("colour", ParameterType::String, Value::from(*dice.pick(&TEXTS))),
        ],
        rules: (0..dice.between(1, 4) as usize).map(|n| rule(dice, n, kind)).collect(),
        marks: Marks::default(),
    }
}

/// A value of a kind: numbers, texts, bools, all of them, or nothing; with holes.
fn value(dice: &mut Dice, kind: u64) -> Value {
    if dice.chance(60) {
        return Value::Null;
    }
    match if kind == 3 { dice.below(3) } else { kind } {
        0 => Value::Number(*dice.pick(&NUMBERS)),
        1 => Value::from(*dice.pick(&TEXTS)),
        2 => Value::Bool(dice.chance(500)),
        _ => Value::Null,
    }
}

/// The usual kind of the attribute, or now and then all kinds, another, or nothing at all.
fn kind_of(dice: &mut Dice, path: &Path) -> u64 {
    let usual = NAMES.iter().position(|names| names.contains(&path.keys[0].as_str()));
    match usual {
        Some(usual) if dice.chance(900) => usual as u64,
        _ => dice.below(5),
    }
}

pub fn table(dice: &mut Dice, paths: &[Path]) -> Table {
    let rows = dice.below(600) as usize;
    let kinds: Vec<u64> = paths.iter().map(|path| kind_of(dice, path)).collect();
    Table::fill(rows, paths.len(), &mut |_, column| value(dice, kinds[column]))
}

pub fn values(dice: &mut Dice, paths: &[Path]) -> Vec<Value> {
    let value_of = |path| {
        let kind = kind_of(dice, path);
        value(dice, kind)
    };
    paths.iter().map(value_of).collect()
}
