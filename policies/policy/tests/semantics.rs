//! What policies mean: order, weights, targets, parameters, missing values, filters and logs.

use policy::{
    ActivateError, ActiveSet, Configuration, LogLevel, PolicyType, Request, RuleIx, Scratch,
    Syntax, Table, Value, Verdicts, load, scalar,
};
use std::sync::Arc;

/// Policies by their bodies, with priority and parameters.
type Installed<'a> = (&'a str, i32, &'a [(&'a str, Value)]);

fn activate(policies: &[Installed<'_>]) -> Result<ActiveSet, ActivateError> {
    let programs = policies.iter().enumerate().map(|(number, (body, priority, values))| {
        let text = format!("policy \"Policy {number}\" {{ {body} }}");
        let (program, _) = load(&text, Syntax::Dsl).unwrap_or_else(|found| panic!("{found:?}"));
        let values = values.iter().map(|(name, value)| ((*name).into(), value.clone()));
        let configuration =
            Configuration { priority: *priority, parameter_values: values.collect() };
        (Arc::new(program), configuration)
    });
    ActiveSet::new(programs.collect())
}

/// Evaluates over hosts whose every attribute is one of `hosts`, for a VM whose every one is `vm`.
fn run(policies: &[Installed<'_>], asked: PolicyType, vm: Value, hosts: &[Value]) -> Verdicts {
    let set = activate(policies).expect("activates");
    let columns = set.host_paths().len();
    let table = Table::fill(hosts.len(), columns, &mut |row, _| hosts[row].clone());
    let vm = vec![vm; set.paths().vm.len()];
    let mut verdicts = Verdicts::default();
    let request = Request { components: true, ..Request::new(asked, &vm) };
    set.evaluate(&request, &table, &mut Scratch::default(), &mut verdicts).expect("runs");
    verdicts
}

fn scores(body: &str, vm: Value, hosts: &[Value]) -> Vec<i64> {
    run(&[(body, 0, &[])], PolicyType::Placement, vm, hosts).scores().to_vec()
}

fn rule(attributes: &str, when: &str, then: &str) -> String {
    format!("rule \"r\" {{ {attributes} when {{ {when} }} then {{ {then} }} }}")
}

fn rules(rules: &[&str]) -> String {
    format!("rules {{ {} }}", rules.join(" "))
}

fn numbers(numbers: &[f64]) -> Vec<Value> {
    numbers.iter().map(|number| Value::from(*number)).collect()
}

#[test]
fn weight_multiplies_points() {
    let body = rules(&[&rule("weight = 3", "true", "score node.x \"x\"")]);
    assert_eq!(scores(&body, Value::Null, &numbers(&[1.0, 2.5])), [3000, 7500]);
}

#[test]
fn the_rule_of_higher_priority_removes_first() {
    let low = rule("id = \"low\" priority = 1", "node.x > 1", "filter \"low\"");
    let high = rule("id = \"high\" priority = 2", "node.x > 1", "filter \"high\"");
    let verdicts = run(
        &[(&rules(&[&low, &high]), 0, &[])],
        PolicyType::Placement,
        Value::Null,
        &numbers(&[2.0]),
    );
    let set = activate(&[(&rules(&[&low, &high]), 0, &[])]).expect("activates");
    let by = verdicts.filtered_by(0).expect("removed");
    assert_eq!(set.rule(by).expect("a rule").1.id, "high");
}

#[test]
fn the_policy_of_higher_priority_removes_first_then_the_one_with_the_lower_id() {
    let body = rules(&[&rule("", "node.x > 1", "filter \"x\"")]);
    let remover = |priorities: [i32; 2]| {
        let installed = priorities.map(|priority| (body.as_str(), priority, [].as_slice()));
        let verdicts = run(&installed, PolicyType::Placement, Value::Null, &numbers(&[2.0]));
        let set = activate(&installed).expect("activates");
        let by = verdicts.filtered_by(0).expect("removed");
        set.rule(by).expect("a rule").0.id().to_string()
    };
    assert_eq!(remover([1, 2]), "policy-1");
    assert_eq!(remover([2, 1]), "policy-0");
    assert_eq!(remover([1, 1]), "policy-0");
}

#[test]
fn a_soft_filter_takes_points_off_instead() {
    let hosts = numbers(&[1.0, 5.0]);
    let hard = rules(&[&rule("", "node.x > 3", "filter \"x\"")]);
    let soft = rules(&[&rule("weight = 2 hard_constraint = false", "node.x > 3", "filter \"x\"")]);
    let ranked =
        |body: &str| run(&[(body, 0, &[])], PolicyType::Placement, Value::Null, &hosts).ranked();
    assert_eq!(ranked(&hard), [0]);
    assert_eq!(ranked(&soft), [0, 1]);
    assert_eq!(scores(&soft, Value::Null, &hosts), [0, -200_000]);
}

#[test]
fn a_removed_host_is_asked_nothing_more() {
    let first = rule("", "node.x > 3", "filter \"x\" log \"gone\" level = \"warn\"");
    let second = rule("", "true", "score 1 / (node.x - node.x) \"fails\"");
    let verdicts = run(
        &[(&rules(&[&first, &second]), 0, &[])],
        PolicyType::Placement,
        Value::Null,
        &numbers(&[1.0, 5.0, 6.0]),
    );
    assert_eq!(verdicts.errors(RuleIx(1)), 1, "only the host that was left");
    let logs: Vec<_> =
        verdicts.logs().map(|line| (line.level, line.text.as_str(), line.count)).collect();
    assert_eq!(logs, [(LogLevel::Warn, "gone", 2)]);
}

#[test]
fn a_target_decides_for_which_vms_a_policy_is() {
    let body = |target: &str| {
        format!("target = {target} {}", rules(&[&rule("", "true", "score node.x \"x\"")]))
    };
    let hosts = numbers(&[2.0, 8.0]);
    assert_eq!(scores(&body("vm.t == \"a\""), Value::from("a"), &hosts), [2000, 8000]);
    assert_eq!(scores(&body("vm.t == \"a\""), Value::from("b"), &hosts), [0, 0]);
    assert_eq!(scores(&body("vm.t == \"a\""), Value::Null, &hosts), [0, 0]);
    assert_eq!(scores(&body("node.x > 5"), Value::Null, &hosts), [0, 8000], "host by host");
    let verdicts =
        run(&[(&body("vm.t > 1"), 0, &[])], PolicyType::Placement, Value::from("b"), &hosts);
    assert_eq!((verdicts.target_errors(0), verdicts.scores()), (2, [0, 0].as_slice()));
}

#[test]
fn types_decide_what_a_policy_counts_for() {
    let body = |kind: &str| {
        format!("type = \"{kind}\" {}", rules(&[&rule("", "true", "score node.x \"x\"")]))
    };
    let counted = |kind: &str| {
        PolicyType::ALL.map(|asked| {
            let verdicts = run(&[(&body(kind), 0, &[])], asked, Value::Null, &numbers(&[1.0]));
            verdicts.score_millis(0) != 0
        })
    };
    assert_eq!(counted("placement"), [true, false, false, false, false]);
    assert_eq!(counted("migration"), [false, true, false, false, false]);
    assert_eq!(counted("resource_allocation"), [false, false, true, false, false]);
    assert_eq!(counted("maintenance"), [false, false, false, true, false]);
    assert_eq!(counted("composite"), [true, true, false, false, true]);
}

#[test]
fn what_is_missing_makes_comparisons_false_and_arithmetic_fail() {
    let hosts = [Value::Null, Value::from(5.0)];
    let fires = |when: &str| {
        let body = rules(&[&rule("", when, "score 1 \"x\"")]);
        scores(&body, Value::Null, &hosts).iter().map(|score| *score != 0).collect::<Vec<_>>()
    };
    assert_eq!(fires("node.x == 5"), [false, true]);
    assert_eq!(fires("node.x != 4"), [false, true]);
    assert_eq!(fires("node.x < 9"), [false, true]);
    assert_eq!(fires("!(node.x == 4)"), [true, true]);
    assert_eq!(fires("!(node.x == vm.y)"), [true, true]);
    let body = rules(&[
        &rule("", "node.x + 1 > 0", "score 1 \"a\""),
        &rule("", "true", "score 10 \"b\""),
        &rule("", "true", "score node.x \"c\" score 100 \"d\""),
    ]);
    let verdicts = run(&[(&body, 0, &[])], PolicyType::Placement, Value::Null, &hosts);
    assert_eq!(verdicts.scores(), [10_000, 116_000]);
    assert_eq!([0, 1, 2].map(|rule| verdicts.errors(RuleIx(rule))), [1, 0, 1]);
    let reasons: Vec<&str> = verdicts.components(0).map(|(_, reason, _)| reason.as_str()).collect();
    assert_eq!(reasons, ["b"], "a rule that fails does nothing at all");
}

#[test]
fn dividing_by_zero_and_overflowing_fail_on_their_host_only() {
    let body = rules(&[&rule("", "true", "score 10 / node.x \"x\"")]);
    assert_eq!(scores(&body, Value::Null, &numbers(&[0.0, 5.0])), [0, 2000]);
    let body = rules(&[&rule("", "true", "score node.x * 1e300 \"x\"")]);
    let verdicts =
        run(&[(&body, 0, &[])], PolicyType::Placement, Value::Null, &numbers(&[1e300, 0.0, 1.0]));
    assert_eq!(verdicts.errors(RuleIx(0)), 1);
    assert_eq!(verdicts.scores(), [0, 0, policy::MAX_MILLIS], "clamped, not failed");
}

#[test]
fn parameters_have_defaults_and_are_checked() {
    let body = format!(
        "parameters {{ param \"limit\" {{ type = \"int\" default = 3 min = 1 max = 9 }} \
         param \"who\" {{ allowed = [\"a\", \"b\"] }} }} {}",
        rules(&[&rule("", "node.x > param.limit && param.who == \"a\"", "score 1 \"x\"")])
    );
    let fired = |values: &[(&str, Value)]| {
        let hosts = numbers(&[2.0, 5.0]);
        run(&[(&body, 0, values)], PolicyType::Placement, Value::Null, &hosts).scores().to_vec()
    };
    let who = |name: &str| ("who", Value::from(name));
    assert_eq!(fired(&[who("a")]), [0, 1000]);
    assert_eq!(fired(&[who("b")]), [0, 0]);
    assert_eq!(fired(&[who("a"), ("limit", Value::from(1.0))]), [1000, 1000]);
    let refused = |values: &[(&str, Value)]| {
        activate(&[(&body, 0, values)]).expect_err("refused").to_string()
    };
    assert_eq!(
        refused(&[]),
        "policy policy-0: parameter who has no default, so a value must be given"
    );
    assert_eq!(
        refused(&[who("c")]),
        "policy policy-0: parameter who: \"c\" is not one of \"a\", \"b\""
    );
    assert_eq!(
        refused(&[who("a"), ("limit", Value::from(10.0))]),
        "policy policy-0: parameter limit: 10 is above the most allowed, 9"
    );
    assert_eq!(
        refused(&[who("a"), ("limit", Value::from(1.5))]),
        "policy policy-0: parameter limit: 1.5 is not of type int"
    );
    assert_eq!(
        refused(&[who("a"), ("limits", Value::from(1.0))]),
        "policy policy-0 has no parameter limits; it has: limit, who"
    );
}

#[test]
fn a_set_has_limits() {
    let body = rules(&[&rule("", "node.x > 1", "filter \"x\"")]);
    let program =
        Arc::new(load(&format!("policy \"One\" {{ {body} }}"), Syntax::Dsl).expect("valid").0);
    let twice = vec![(program.clone(), Configuration::default()); 2];
    assert_eq!(ActiveSet::new(twice).err(), Some(ActivateError::Duplicate("one".into())));
    let many = vec![(program, Configuration::default()); policy::MAX_ACTIVE + 1];
    assert_eq!(ActiveSet::new(many).err(), Some(ActivateError::TooMany(65)));
    let sum = vec!["node.x"; 200].join(" + ");
    let heavy: Vec<String> =
        (0..8).map(|_| rule("", &format!("{sum} > 1"), "filter \"x\"")).collect();
    let heavy = rules(&heavy.iter().map(String::as_str).collect::<Vec<_>>());
    let installed = [(heavy.as_str(), 0, [].as_slice()); 6];
    assert_eq!(activate(&installed).err(), Some(ActivateError::TooCostly(19_248)));
}

#[test]
fn the_plain_evaluator_says_the_same_about_one_host() {
    let body = rules(&[
        &rule("", "node.x > 5", "filter \"x\""),
        &rule("weight = 2", "node.x > vm.y", "score node.x \"more\" log \"seen\""),
    ]);
    let set = activate(&[(&body, 0, &[])]).expect("activates");
    let verdict = |x: f64| {
        scalar::evaluate(&set, PolicyType::Placement, &|path| match path.root {
            policy::Root::Vm => Value::from(1.0),
            _ => Value::from(x),
        })
    };
    assert_eq!(verdict(9.0).filtered_by, Some(RuleIx(0)));
    let kept = verdict(3.0);
    assert_eq!((kept.filtered_by, kept.score_millis), (None, 6000));
    assert_eq!(kept.components, [(RuleIx(1), "more".into(), 6000)]);
    assert_eq!(kept.logs, [(RuleIx(1), LogLevel::Info, "seen".into())]);
}
