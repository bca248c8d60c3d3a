//! Whatever happens to a policy file: findings or a valid program, never a panic.

mod files;

use fixture::Dice;
use policy::{
    ActiveSet, Configuration, MAX_DIAGNOSTICS, PolicyType, Request, Scratch, Syntax, Table, Value,
    Verdicts, format, load, parse,
};
use std::sync::Arc;

const MUTATIONS: u64 = 10_000;

/// Whether the text is a valid policy; if so, it can be activated, run and written down.
fn survives(text: &str, syntax: Syntax, what: &str) -> bool {
    let (program, warnings) = match load(text, syntax) {
        Ok(loaded) => loaded,
        Err(found) => {
            assert!(found.iter().any(|found| found.is_error()), "{what}: no error in {found:?}");
            assert!(found.len() <= MAX_DIAGNOSTICS, "{what}");
            for found in found {
                assert!(!found.field.is_empty() && !found.message.is_empty(), "{what}: {found}");
            }
            return false;
        }
    };
    assert!(warnings.iter().all(|warning| !warning.is_error()), "{what}");
    let written = format(program.document(), Syntax::Dsl);
    let read = parse(&written, Syntax::Dsl).map(|(document, _)| document);
    assert_eq!(read.as_ref(), Ok(program.document()), "{what}\n{written}");
    let kind = program.document().kind;
    let Ok(set) = ActiveSet::new(vec![(Arc::new(program), Configuration::default())]) else {
        return true;
    };
    set.conflicts();
    let values = [Value::Number(3.0), Value::text("eu"), Value::Bool(true), Value::Null];
    let value = |row: usize, column: usize| values[(row * 3 + column) % values.len()].clone();
    let table = Table::fill(9, set.host_paths().len(), &mut |row, column| value(row / 4, column));
    let vm: Vec<Value> = (0..set.paths().vm.len()).map(|index| value(1, index)).collect();
    let asked = if kind == PolicyType::Composite { PolicyType::Migration } else { kind };
    let request = Request::new(asked, &vm);
    set.evaluate(&request, &table, &mut Scratch::default(), &mut Verdicts::default())
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    true
}

#[test]
fn every_beginning_of_every_example_is_refused_or_valid() {
    for name in files::names() {
        let (text, syntax) = (files::read(&name), Syntax::of_file(&name));
        let mut valid = 0;
        for (end, _) in text.char_indices() {
            let whole = survives(&text[..end], syntax, &format!("{name} up to byte {end}"));
            valid += usize::from(whole);
            // Only blanks may be missing; in YAML, whole rules and actions may.
            if syntax == Syntax::Dsl {
                assert!(!whole || text[end..].trim().is_empty(), "{name} up to byte {end}");
            }
        }
        assert!(survives(&text, syntax, &name));
        println!("{name}: {valid} of {} beginnings are valid", text.len());
    }
}

#[test]
fn ten_thousand_mutations_are_refused_or_valid() {
    let names = files::names();
    let texts: Vec<String> = names.iter().map(|name| files::read(name)).collect();
    let mut valid = 0;
    for seed in 0..MUTATIONS {
        let mut dice = Dice::stream(0x00b0_0b1e, seed);
        let file = dice.row(names.len());
        let mut text = texts[file].clone().into_bytes();
        for _ in 0..dice.between(1, 4) {
            mutate(&mut text, &texts, &mut dice);
        }
        let text = String::from_utf8_lossy(&text);
        // Now and then the wrong reader gets it.
        let syntax = match dice.chance(950) {
            true => Syntax::of_file(&names[file]),
            false => Syntax::of_text(&text),
        };
        valid += u64::from(survives(&text, syntax, &format!("seed {seed}, {}", names[file])));
    }
    println!("{valid} of {MUTATIONS} mutations are valid policies");
    assert!(valid > MUTATIONS / 100 && valid < MUTATIONS, "mutations are neither all nor nothing");
}

fn mutate(text: &mut Vec<u8>, others: &[String], dice: &mut Dice) {
    const PIECES: [&str; 20] = [
        "{",
        "}",
        "(",
        ")",
        "\"",
        "\\",
        "&&",
        "||",
        "!",
        "-",
        "== 1e999",
        "rule \"x\" {",
        "then {",
        "[",
        "]",
        ": ",
        "- ",
        "&a *a",
        "\u{202e}\u{0}",
        "true",
    ];
    let from = dice.row(text.len().max(1)).min(text.len());
    let len = *dice.pick(&[1, 1, 1, 2, 5, 20, 200]);
    let to = (from + len).min(text.len());
    match dice.below(7) {
        0 => drop(text.drain(from..to)),
        1 => text.truncate(from),
        2 => drop(text.splice(from..from, dice.pick(&PIECES).bytes())),
        3 => drop(text.splice(from..to, dice.pick(&PIECES).bytes())),
        4 => {
            let piece = text[from..to].to_vec();
            let many = if dice.chance(50) { 500 } else { 2 };
            drop(text.splice(from..from, piece.repeat(many)));
        }
        5 => {
            let other = dice.pick(others).as_bytes();
            let start = dice.row(other.len());
            let end = (start + 60).min(other.len());
            drop(text.splice(from..to, other[start..end].iter().copied()));
        }
        _ => {
            if let Some(byte) = text.get_mut(from) {
                *byte = dice.below(256) as u8;
            }
        }
    }
}
