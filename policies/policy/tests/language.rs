//! What the language accepts, and what it says about mistakes.

use expect_test::{Expect, expect};
use policy::{
    ActionKind, Document, ExprKind, LogLevel, MAX_TEXT_BYTES, PolicyType, Syntax, Value, load,
    parse,
};

const FULL: &str = r#"
// Everything that can be written.
policy "GPU and power" {
  id = "gpu-power"
  type = "composite"
  description = "Keeps GPU work on GPU hosts."
  metadata { owner = "capacity" ticket = 42 }
  target { selector = vm.labels["tier"] == "gold" || vm.priority >= $param.floor }
  rules {
    rule "needs a GPU" {
      id = "gpu"
      priority = 200
      hard_constraint = true
      when { vm.resource_requests.gpu > 0 && !(node.capabilities["gpu"] == true) }
      then { filter "no GPU" log "skipped" level = "debug" }
    }
    rule "cool" {            # the defaults
      when { true }
      then { score (100 - candidateNode.metrics["cpu.utilization"]) * param.share / 2 "cool" }
    }
  }
  parameters {
    param "floor" { type = "int" default = 50 min = 0 max = 100 description = "least priority" }
    parameter "share" { type = "float" default = 0.5 allowed = [0.25, 0.5, 1] }
  }
}
"#;

fn document(text: &str) -> Document {
    match parse(text, Syntax::Dsl) {
        Ok((document, warnings)) => {
            assert_eq!(warnings, [], "{text}");
            document
        }
        Err(found) => panic!("{found:#?}"),
    }
}

/// The findings of a policy with this body, one per line.
fn check(body: &str, expect: Expect) {
    check_text(&format!("policy \"A test\" {{\n{body}\n}}"), Syntax::Dsl, expect);
}

fn check_text(text: &str, syntax: Syntax, expect: Expect) {
    let found = match load(text, syntax) {
        Ok((_, warnings)) => warnings,
        Err(found) => found,
    };
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn every_part_of_a_policy_is_read() {
    let document = document(FULL);
    assert_eq!((document.id.as_str(), document.kind), ("gpu-power", PolicyType::Composite));
    assert_eq!(document.metadata["ticket"], "42");
    assert!(document.target.is_some());
    let [first, second] = document.rules.as_slice() else { panic!("two rules") };
    assert_eq!((first.id.as_str(), first.priority, first.weight), ("gpu", 200, 1));
    assert_eq!((second.id.as_str(), second.priority), ("rule-2", 99));
    assert_eq!((first.removes(), second.hard_constraint), (true, None));
    assert!(matches!(first.then[1].kind, ActionKind::Log { level: LogLevel::Debug, .. }));
    assert_eq!(second.when.kind, ExprKind::Bool(true));
    let floor = document.parameter("floor").expect("declared");
    assert_eq!((floor.default.clone(), floor.min), (Some(Value::Number(50.0)), Some(0.0)));
    let share = document.parameter("share").expect("declared");
    assert_eq!(share.allowed.len(), 3);
}

#[test]
fn all_mistakes_are_found_at_once() {
    check(
        r#"
  typ = "placement"
  description = "short"
  rules {
    rule "one" {
      prority = 5
      when { vm.cpu > "many" }
      then { score candidateNode.cpu }
    }
    rule "two" {
      when { candidateNode.cpu + 1 }
      then { scores 5 "x" filter "y" }
    }
    rule "three" {
      when { candidateNode.cpu >  }
      then { filter "z" }
    }
    rule "four" { then { filter "z" } }
  }"#,
        expect![[r#"
            3:3: error[unknown-key] policy: typ is not known here; did you mean type?
            4:3: error[bad-length] description: 5 characters, 10 to 1000 are wanted
            7:7: error[unknown-key] rules[0]: prority is not known here; did you mean priority?
            9:38: error[syntax] rules[0].then: the reason as a string is expected before `}`
            12:32: error[type-mismatch] rules[1].when: a condition (true or false) is wanted here
            13:14: error[unknown-action] rules[1].then: scores is not an action; did you mean score?
            16:35: error[syntax] rules[2].when: an expression is expected before `}`
            19:5: error[missing-condition] rules[3]: rule four is missing its condition; write when { true } for a rule without one"#]],
    );
}

#[test]
fn forgotten_braces_spoil_one_rule_only() {
    check(
        r#"
  rules {
    rule "one" {
      when { candidateNode.cpu > 3
      then { filter "x" }
    rule "two" {
      when { candidateNode.cpus > 3 }
      then { filter 7 }
    }
  }"#,
        expect![[r#"
            4:5: error[missing-actions] rules[0]: rule one is missing its actions
            6:7: error[syntax] rules[0].when: `}` is expected before `then`
            7:5: error[syntax] rules[0]: `}` is expected before `rule`
            9:21: error[syntax] rules[1].then: the reason as a string is expected before the number 7"#]],
    );
}

#[test]
fn types_are_checked_before_anything_runs() {
    check(
        r#"
  target = vm.cpu + 1
  rules {
    rule "text" { when { !"yes" } then { filter "x" } }
    rule "chain" { when { 1 < candidateNode.cpu < 3 } then { filter "x" } }
    rule "join" { when { true } then { score "a" + candidateNode.id "x" } }
    rule "param" { when { param.size == "big" && param.sise > 1 } then { filter "x" } }
    rule "zero" { when { candidateNode.cpu > 1 / 0 } then { filter "x" } }
  }
  parameters { param "size" { type = "int" default = 1 } }"#,
        expect![[r#"
            3:19: error[type-mismatch] target: a condition (true or false) is wanted here
            5:26: error[type-mismatch] rules[0].when: ! takes a condition (true or false), this is a string
            6:49: error[type-mismatch] rules[1].when: < compares a condition (true or false) with a number
            7:50: error[type-mismatch] rules[2].then: + takes a number, this is a string; strings cannot be joined
            8:38: error[type-mismatch] rules[3].when: == compares a number with a string
            8:50: error[unknown-parameter] rules[3].when: there is no parameter sise; did you mean size?
            9:48: error[always-fails] rules[4].when: the result is not a finite number"#]],
    );
}

#[test]
fn parameters_are_checked() {
    check(
        r#"
  parameters {
    param "a" { type = "int" default = 1.5 }
    param "b" { type = "int" default = 11 max = 10 }
    param "c" { type = "string" default = "x" allowed = ["y", 3] min = 1 }
    param "d" { type = "number" }
    param "d" { type = "float" min = 2 max = 1 }
  }
  rules { rule "one" { when { true } then { score candidateNode.cpu "x" } } }"#,
        expect![[r#"
            4:30: error[bad-default] parameters.a.default: 1.5 is not of type int
            5:30: error[bad-default] parameters.b.default: 11 is above the most allowed, 10
            6:33: error[bad-default] parameters.c.default: "x" is not one of "y", 3
            6:47: error[type-mismatch] parameters.c.allowed: 3 is not of type string
            6:66: error[type-mismatch] parameters.c.min: min means nothing for a string; give the parameter type = "int" or "float", or drop the limit
            7:17: error[unknown-type] parameters.d.type: unknown parameter type: number; known here: string, int, float, bool
            8:5: error[duplicate-id] parameters.d: d is declared twice
            8:32: error[empty-range] parameters.d: min is 2 and max is 1: nothing lies between"#]],
    );
}

#[test]
fn doubtful_policies_are_warned_of() {
    check(
        r#"
  rules {
    rule "upstream's own sample" {
      when { vm.labels["workload-type"] == "gpu" }
      then { filter "Node does not have GPU capability" }
    }
    rule "never" { when { candidateNode.cpu > 5 && candidateNode.cpu < 3 } then { filter "x" } }
    rule "always" { when { 1 < 2 } then { score candidateNode.cpu "x" } }
    rule "flat" { weight = 0 when { vm.cpu > 3 } then { score vm.cpu "x" } }
    rule "source" { when { sourceNode.rak == candidateNode.rack } then { score 1 "x" } }
  }
  parameters { param "unused" { type = "int" default = 1 } }"#,
        expect![[r#"
            5:41: warning[filter-ignores-host] rules[0].when: the filter's condition asks nothing of the host, so it removes every host or none; a filter removes the host when its condition is true: add what is wrong with the host, as in && !(candidateNode.capabilities.gpu == true)
            8:49: warning[never-fires] rules[1].when: rule never never fires
            9:30: warning[always-fires] rules[2].when: rule always always fires; write when { true } if that is meant
            10:19: warning[zero-weight] rules[3].weight: a weight of 0 takes the rule's points away
            10:63: warning[score-ignores-host] rules[3].then: every host gets the same points, so the order does not change
            11:28: warning[no-source] rules[4].when: a placement has no sourceNode, so this is never there; use type = "migration" or "composite"
            11:28: warning[unknown-attribute] rules[4].when: sourceNode.rak is not an attribute that this service fills in; did you mean sourceNode.rack?
            13:16: warning[unused-parameter] parameters.unused: parameter unused is never used"#]],
    );
}

#[test]
fn a_policy_has_limits() {
    check(
        "",
        expect![
            "1:1: error[no-rules] rules: invalid policy format: missing rules section; a policy has at least one rule"
        ],
    );
    check_text(
        "rules {}",
        Syntax::Dsl,
        expect![[
            r#"1:1: error[missing-header] policy: invalid policy format: missing policy header; a policy begins with: policy "its name" {"#
        ]],
    );
    check_text(
        &" ".repeat(MAX_TEXT_BYTES + 1),
        Syntax::Dsl,
        expect!["1:1: error[too-large] policy: 262145 bytes, at most 262144 are allowed"],
    );
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    let rule = |when: &str| {
        format!("rules {{ rule \"r\" {{ when {{ {when} }} then {{ filter \"x\" }} }} }}")
    };
    check(
        &rule(&format!("candidateNode.cpu > {deep}")),
        expect!["2:111: error[too-deep] rules[0].when: nested more than 64 deep"],
    );
    let long = vec!["candidateNode.cpu"; 400].join(" + ");
    check(
        &rule(&format!("{long} > 1")),
        expect![
            "2:5145: error[too-large] rules[0].when: more than 512 parts in one expression; split it into several rules"
        ],
    );
    let sum = vec!["candidateNode.cpu"; 200].join(" + ");
    let many: String = (0..20)
        .map(|n| format!("rule \"r{n}\" {{ when {{ {sum} > 1 }} then {{ filter \"x\" }} }}"))
        .collect();
    check(
        &format!("rules {{ {many} }}"),
        expect![
            "2:1: error[too-costly] rules: the policy takes 8020 steps for each host, at most 4096 are allowed; every operator, constant and attribute beside a host attribute is one step"
        ],
    );
}

#[test]
fn yaml_says_where_its_mistakes_are() {
    check_text(
        r#"
policy: A test
typo: 1
parameters:
  limit: {type: int, default: "5"}
rules:
  - rule: one
    when: candidateNode.cpu > param.limt
    then:
      - {score: candidateNode.cpu + , reason: more}
      - {score: 1}
      - filter "short form"
  - when: 'vm.cpu > "x"'
    then: [log "a" level="loud"]
    then: []
"#,
        Syntax::Yaml,
        expect![[r#"
            3:1: error[unknown-key] policy: typo is not known here; did you mean type?
            5:22: error[bad-default] parameters.limit.default: "5" is not of type int
            8:31: error[unknown-parameter] rules[0].when: there is no parameter limt; did you mean limit?
            10:36: error[syntax] rules[0].then: an expression is expected before the end of the text
            11:9: error[unknown-action] rules[0].then: an action is a score with its reason, a filter, or a log; write {score: .., reason: ..}, {filter: reason} or {log: text, level: ..}
            13:5: error[missing-name] rules[1]: a rule's name stands under the key rule
            13:5: error[bad-length] rules[1].name: 0 characters, 1 to 100 are wanted
            14:25: error[unknown-level] rules[1].then: unknown log level: loud; known here: debug, info, warn, error
            15:5: error[duplicate-key] then: then is written twice"#]],
    );
    check_text(
        "a: &x [1]\nb: *x",
        Syntax::Yaml,
        expect![
            "1:7: error[yaml-syntax] policy: anchors are not allowed; write the value where it is needed"
        ],
    );
    check_text(
        "- a\n  b: {",
        Syntax::Yaml,
        expect!["2:4: error[yaml-syntax] policy: mapping values are not allowed in this context"],
    );
    check_text("", Syntax::Yaml, expect!["1:1: error[missing-header] policy: the text is empty"]);
}

#[test]
fn the_notation_is_recognised() {
    assert_eq!(Syntax::of_text("# a comment\n\npolicy \"x\" {"), Syntax::Dsl);
    assert_eq!(Syntax::of_text("policy: x\n"), Syntax::Yaml);
    assert_eq!(Syntax::of_text("{\"policy\": \"x\"}"), Syntax::Yaml);
    assert_eq!(Syntax::of_file("gpu.yaml"), Syntax::Yaml);
    assert_eq!(Syntax::of_file("gpu.policy"), Syntax::Dsl);
}

#[test]
fn what_the_reference_shows_is_valid() {
    let reference = include_str!("../../README.md");
    let blocks = reference.split("```").skip(1).step_by(2);
    let policies: Vec<&str> = blocks
        .map(|block| block.split_once('\n').map_or("", |(_, text)| text))
        .filter(|text| text.starts_with("policy \"") || text.starts_with("policy: "))
        .collect();
    assert_eq!(policies.len(), 2);
    for text in policies {
        let (_, warnings) = load(text, Syntax::of_text(text)).expect("valid");
        assert_eq!(warnings, []);
    }
}
