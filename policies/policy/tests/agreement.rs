//! The evaluator over columns and the one over a single row say the same, whatever the policy.

mod random;

use fixture::Dice;
use policy::{
    ActiveSet, Configuration, EvaluateError, PolicyType, Request, Root, RuleIx, Scratch, Syntax,
    Table, Value, Verdicts, format, parse, scalar,
};
use std::sync::Arc;

const PROGRAMS: u64 = 4_000;

fn random_set(dice: &mut Dice) -> ActiveSet {
    let mut policies = Vec::new();
    for number in 0..dice.between(1, 3) {
        let kind = *dice.pick(&PolicyType::ALL[..2]);
        let program = random::program(dice, &format!("p{number}"), kind);
        let priority = dice.below(3) as i32;
        policies.push((Arc::new(program), Configuration { priority, ..Default::default() }));
    }
    ActiveSet::new(policies).expect("small")
}

/// Everything that both evaluators say, row by row.
fn compare(set: &ActiveSet, request: &Request<'_>, table: &Table, verdicts: &Verdicts, seed: u64) {
    let mut errors = vec![0; set.rule_count()];
    let mut target_errors = vec![0; set.policies().len()];
    let mut logs = 0;
    for row in 0..table.rows() {
        let asked = request.candidates.is_none_or(|bits| bits[row / 64] >> (row % 64) & 1 == 1);
        if !asked {
            assert_eq!((verdicts.is_feasible(row), verdicts.score_millis(row)), (false, 0));
            continue;
        }
        let verdict = scalar::evaluate(set, request.asked, &|path| {
            let index = set.paths().find(path).expect("a path of the set");
            match path.root {
                Root::Candidate => table.value(row, index),
                Root::Vm => request.vm[index].clone(),
                Root::Source => request.source.get(index).cloned().unwrap_or_default(),
            }
        });
        let at = format!("seed {seed}, row {row}");
        assert_eq!(verdicts.filtered_by(row), verdict.filtered_by, "{at}");
        assert_eq!(verdicts.is_feasible(row), verdict.filtered_by.is_none(), "{at}");
        assert_eq!(verdicts.score_millis(row), verdict.score_millis, "{at}");
        let components: Vec<_> = verdicts
            .components(row)
            .map(|(rule, why, points)| (rule, why.clone(), points))
            .collect();
        assert_eq!(components, verdict.components, "{at}");
        verdict.errors.iter().for_each(|rule| errors[rule.0 as usize] += 1);
        verdict.target_errors.iter().for_each(|policy| target_errors[*policy] += 1);
        logs += verdict.logs.len();
    }
    for (rule, count) in errors.iter().enumerate() {
        assert_eq!(verdicts.errors(RuleIx(rule as u32)), *count, "seed {seed}, rule {rule}");
    }
    for (policy, count) in target_errors.iter().enumerate() {
        assert_eq!(verdicts.target_errors(policy), *count, "seed {seed}, policy {policy}");
    }
    assert_eq!(verdicts.logs().map(|line| line.count as usize).sum::<usize>(), logs, "seed {seed}");
}

#[test]
fn both_evaluators_agree_on_random_policies_and_tables() {
    let mut scratch = Scratch::default();
    let mut verdicts = Verdicts::default();
    let (mut rows, mut removed, mut failed, mut scored) = (0, 0, 0, 0);
    for seed in 0..PROGRAMS {
        let mut dice = Dice::stream(0x000d_51c0, seed);
        let set = random_set(&mut dice);
        let table = random::table(&mut dice, &set.paths().host);
        let vm = random::values(&mut dice, &set.paths().vm);
        let asked = *dice.pick(&PolicyType::ALL[..2]);
        let source = match asked {
            PolicyType::Migration => random::values(&mut dice, &set.paths().source),
            _ => Vec::new(),
        };
        let bits: Vec<u64> = (0..table.rows().div_ceil(64)).map(|_| dice.bits()).collect();
        let candidates = dice.chance(300).then_some(bits.as_slice());
        let mut request = Request { source: &source, ..Request::new(asked, &vm) };
        (request.candidates, request.components) = (candidates, true);
        set.evaluate(&request, &table, &mut scratch, &mut verdicts).expect("within limits");
        compare(&set, &request, &table, &verdicts, seed);
        rows += table.rows();
        removed += (0..table.rows()).filter(|row| verdicts.filtered_by(*row).is_some()).count();
        scored += verdicts.scores().iter().filter(|score| **score != 0).count();
        failed += verdicts.total_errors();
    }
    println!("{PROGRAMS} sets, {rows} rows, {removed} removed, {scored} scored, {failed} faults");
    // The comparison is worth something only if everything happens often.
    assert!(removed * 20 > rows && scored * 20 > rows && failed * 20 > rows as u64);
}

#[test]
fn what_is_written_reads_back_as_the_same() {
    for seed in 0..1_000 {
        let mut dice = Dice::stream(0x0f0a, seed);
        let kind = *dice.pick(&PolicyType::ALL);
        let program = random::program(&mut dice, "p", kind);
        let document = program.document();
        for syntax in [Syntax::Dsl, Syntax::Yaml] {
            let text = format(document, syntax);
            let (read, _) = parse(&text, syntax).unwrap_or_else(|found| {
                panic!("seed {seed}: {found:#?}\n{text}");
            });
            assert_eq!(&read, document, "seed {seed}\n{text}");
            assert_eq!(Syntax::of_text(&text), syntax);
        }
    }
}

#[test]
fn fuel_ends_an_evaluation_and_wrong_shapes_are_refused() {
    let text = r#"policy "Fuel" { rules { rule "r" {
        when { candidateNode.cpu * 2 > vm.cpu } then { score candidateNode.cpu "x" } } } }"#;
    let (program, _) = policy::load(text, Syntax::Dsl).expect("valid");
    let set = ActiveSet::new(vec![(Arc::new(program), Configuration::default())]).expect("valid");
    let table = Table::fill(1_000, 1, &mut |row, _| Value::from(row as f64));
    let (mut scratch, mut verdicts) = (Scratch::default(), Verdicts::default());
    let vm = [Value::from(100.0)];
    let mut request = Request::new(PolicyType::Placement, &vm);
    let mut run = |request: &Request<'_>, table: &Table| {
        set.evaluate(request, table, &mut scratch, &mut verdicts)
    };
    assert_eq!(run(&request, &table), Ok(()));
    request.fuel = 3_999;
    assert_eq!(run(&request, &table), Err(EvaluateError::OutOfFuel { limit: 3_999 }));
    request.fuel = 4_000;
    assert_eq!(run(&request, &table), Ok(()), "three steps of the condition and one of the score");
    assert_eq!(
        run(&request, &Table::new(5, 2)),
        Err(EvaluateError::Columns { found: 2, wanted: 1 })
    );
    request.vm = &[];
    assert_eq!(
        run(&request, &table),
        Err(EvaluateError::Values { root: "vm", found: 0, wanted: 1 })
    );
}
