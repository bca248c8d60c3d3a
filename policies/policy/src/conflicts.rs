//! Rules of the active policies that work against each other, found without running them.
//!
//! What is claimed for certain follows from the rules alone, whatever hosts there are. Where it
//! depends on which VMs come, the conflict is one that may be.

mod region;
mod terms;

pub(crate) use region::region_of;

use crate::active::{ActiveSet, RuleIx};
use crate::document::{ActionKind, PolicyType};
use crate::{Expr, Path};
use region::Values;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use terms::{Slope, bound, conjuncts, joined, slope};

/// Most conflicts that are listed.
pub const MAX_CONFLICTS: usize = 100;

/// Most filters on one attribute that are looked at together.
const MAX_COMPARED: usize = 32;

/// Rules that work against each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    pub kind: ConflictKind,
    /// `false` where it depends on the VM whether the rules meet.
    pub certain: bool,
    pub policies: Vec<String>,
    /// Policy id and rule id.
    pub rules: Vec<(String, String)>,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    /// Hard filters that leave no host between them.
    RemovesEveryHost,
    /// Scores that pull into opposite directions under the same condition.
    OppositeScores,
    /// The same action under the same condition, which counts twice.
    DuplicateRule,
    /// Policies with filters whose order only their ids decide.
    PriorityTie,
}

/// A rule with its parameters filled in, its target included.
struct Case {
    rule: RuleIx,
    /// What is asked of the VM alone, as text.
    guards: BTreeSet<String>,
    /// What is asked of the host too.
    asked: Vec<Expr>,
    removes: bool,
}

impl Case {
    /// The whole condition; equal texts are equal conditions.
    fn key(&self) -> (BTreeSet<String>, Vec<String>) {
        (self.guards.clone(), self.asked.iter().map(ToString::to_string).collect())
    }
}

impl ActiveSet {
    /// Every conflict between the rules of the set, in a fixed order.
    pub fn conflicts(&self) -> Vec<Conflict> {
        let mut found: Vec<Conflict> = Vec::new();
        for asked in PolicyType::ALL {
            let cases = cases(self, asked);
            let mut conflicts = removals(self, &cases);
            conflicts.extend(opposites(self, &cases));
            conflicts.extend(duplicates(self, &cases));
            conflicts.extend(ties(self, asked));
            for conflict in conflicts {
                if found.len() < MAX_CONFLICTS && !found.contains(&conflict) {
                    found.push(conflict);
                }
            }
        }
        found
    }

    fn conflict(
        &self,
        kind: ConflictKind,
        certain: bool,
        rules: &[RuleIx],
        message: String,
    ) -> Conflict {
        let named = rules.iter().filter_map(|rule| self.rule(*rule));
        let rules: Vec<(String, String)> =
            named.map(|(policy, rule)| (policy.id().to_string(), rule.id.clone())).collect();
        let policies: BTreeSet<String> = rules.iter().map(|(policy, _)| policy.clone()).collect();
        Conflict { kind, certain, policies: policies.into_iter().collect(), rules, message }
    }
}

fn cases(set: &ActiveSet, asked: PolicyType) -> Vec<Case> {
    let mut cases = Vec::new();
    for policy in set.policies() {
        let document = policy.program().document();
        if !document.kind.counts_for(asked) {
            continue;
        }
        let target =
            document.target.as_ref().map(|target| bound(target, policy.parameter_values()));
        for (rule, written) in policy.rules() {
            let when = bound(&written.when, policy.parameter_values());
            let mut case = Case {
                rule,
                guards: BTreeSet::new(),
                asked: Vec::new(),
                removes: written.removes() && written.has_filter(),
            };
            for part in target.iter().chain([&when]).flat_map(conjuncts) {
                if part.mentions_host() {
                    case.asked.push(part.clone());
                } else if part.kind != crate::ExprKind::Bool(true) {
                    case.guards.insert(part.to_string());
                }
            }
            cases.push(case);
        }
    }
    cases
}

/// Hard filters that together remove every host, or every host that has the attribute.
fn removals(set: &ActiveSet, cases: &[Case]) -> Vec<Conflict> {
    let mut by_path: BTreeMap<Path, Vec<(&Case, Values)>> = BTreeMap::new();
    for case in cases.iter().filter(|case| case.removes) {
        let Some((path, region)) = joined(&case.asked).and_then(|expr| region_of(&expr)) else {
            continue;
        };
        let filters = by_path.entry(path).or_default();
        if filters.len() < MAX_COMPARED {
            filters.push((case, region.holds));
        }
    }
    let mut found = Vec::new();
    for (path, filters) in by_path {
        let guards: BTreeSet<&BTreeSet<String>> =
            filters.iter().map(|(case, _)| &case.guards).collect();
        let mut told: Vec<Vec<RuleIx>> = Vec::new();
        for guard in guards {
            let meet: Vec<&(&Case, Values)> =
                filters.iter().filter(|(case, _)| case.guards.is_subset(guard)).collect();
            let Some((rules, which)) = cover(&meet, &path) else { continue };
            if told.contains(&rules) {
                continue;
            }
            let guard: Vec<&str> = guard.iter().map(String::as_str).collect();
            let whom = match guard.as_slice() {
                [] => String::new(),
                guard => format!(" for VMs with {}", guard.join(" && ")),
            };
            let message = format!("the filters together remove {which}{whom}");
            found.push(set.conflict(ConflictKind::RemovesEveryHost, true, &rules, message));
            told.push(rules);
        }
        if !told.is_empty() {
            continue;
        }
        let all: Vec<&(&Case, Values)> = filters.iter().collect();
        if let Some((rules, which)) = cover(&all, &path) {
            let message = format!(
                "the filters may together remove {which}: a VM that all their conditions apply to \
                 has none left"
            );
            found.push(set.conflict(ConflictKind::RemovesEveryHost, false, &rules, message));
        }
    }
    found
}

/// The fewest of the filters, from the first, that leave nothing, and what they remove.
fn cover(filters: &[&(&Case, Values)], path: &Path) -> Option<(Vec<RuleIx>, String)> {
    // A filter on strings may take in all numbers by the way: that says nothing about numbers.
    let numeric: Vec<&(&Case, Values)> =
        filters.iter().copied().filter(|(_, values)| !values.has_every_number()).collect();
    type Claim<'a> = (fn(&Values) -> bool, &'a [&'a (&'a Case, Values)], String);
    let claims: [Claim<'_>; 3] = [
        (Values::is_everything, filters, "every host".into()),
        (Values::is_everything_present, filters, format!("every host that has {path}")),
        (Values::has_every_number, &numeric, format!("every host whose {path} is a number")),
    ];
    let union = |kept: &[&(&Case, Values)]| {
        kept.iter().fold(Values::default(), |sum, (_, values)| sum.or(values))
    };
    let (holds, filters, which) =
        claims.into_iter().find(|(holds, filters, _)| holds(&union(filters)))?;
    let mut kept = filters.to_vec();
    for place in (0..kept.len()).rev() {
        let mut fewer = kept.clone();
        fewer.remove(place);
        if holds(&union(&fewer)) {
            kept = fewer;
        }
    }
    Some((kept.iter().map(|(case, _)| case.rule).collect(), which))
}

/// Scores on one attribute that rise in one rule and fall in another.
fn opposites(set: &ActiveSet, cases: &[Case]) -> Vec<Conflict> {
    type Rules = BTreeSet<RuleIx>;
    let mut slopes: BTreeMap<_, (Rules, Rules)> = BTreeMap::new();
    for case in cases {
        let Some((policy, rule)) = set.rule(case.rule) else { continue };
        if rule.weight == 0 {
            continue;
        }
        for points in rule.score_expressions() {
            let (what, rises) = match slope(&bound(points, policy.parameter_values())) {
                Some(Slope::On(path, rises)) => (path.to_string(), rises),
                // Points that are the same for all hosts matter by whom the condition lets in.
                Some(Slope::Flat(sign)) if !case.asked.is_empty() => (String::new(), sign),
                _ => continue,
            };
            let (up, down) = slopes.entry((case.key(), what)).or_default();
            if rises {
                up.insert(case.rule)
            } else {
                down.insert(case.rule)
            };
        }
    }
    let mut found = Vec::new();
    for ((_, what), (up, down)) in slopes {
        let opposed: Vec<RuleIx> = up.union(&down).copied().collect();
        if up.is_empty() || down.is_empty() || opposed.len() < 2 {
            continue;
        }
        let message = match what.as_str() {
            "" => "under the same condition some rules add points and others take them off".into(),
            path => format!("under the same condition some rules favour more {path}, others less"),
        };
        found.push(set.conflict(ConflictKind::OppositeScores, true, &opposed, message));
    }
    found
}

fn duplicates(set: &ActiveSet, cases: &[Case]) -> Vec<Conflict> {
    let mut same: BTreeMap<_, BTreeSet<RuleIx>> = BTreeMap::new();
    for case in cases {
        let Some((policy, rule)) = set.rule(case.rule) else { continue };
        for action in &rule.then {
            let effect = match &action.kind {
                ActionKind::Score { points, .. } => {
                    format!("score {}", bound(points, policy.parameter_values()))
                }
                ActionKind::Filter { .. } if rule.removes() => "filter".into(),
                ActionKind::Filter { .. } => "soft filter".into(),
                ActionKind::Log { .. } => continue,
            };
            same.entry((case.key(), effect)).or_default().insert(case.rule);
        }
    }
    let mut found = Vec::new();
    for ((_, effect), rules) in same {
        if rules.len() > 1 {
            let rules: Vec<RuleIx> = rules.into_iter().collect();
            let message = format!("these rules do the same under the same condition: {effect}");
            found.push(set.conflict(ConflictKind::DuplicateRule, true, &rules, message));
        }
    }
    found
}

/// Policies of one priority with hard filters: which of them is named as the reason is decided by
/// their ids.
fn ties(set: &ActiveSet, asked: PolicyType) -> Vec<Conflict> {
    let mut by_priority: BTreeMap<i32, Vec<RuleIx>> = BTreeMap::new();
    for policy in set.policies() {
        let counts = policy.program().document().kind.counts_for(asked);
        let mut filters = policy.rules().filter(|(_, rule)| rule.removes() && rule.has_filter());
        if let Some((first, _)) = filters.next().filter(|_| counts) {
            by_priority.entry(policy.configuration().priority).or_default().push(first);
        }
    }
    let tied = by_priority.into_iter().filter(|(_, rules)| rules.len() > 1);
    tied.map(|(priority, rules)| {
        let message = format!(
            "these policies have priority {priority}, so their ids decide which of them is named \
             when both remove a host"
        );
        set.conflict(ConflictKind::PriorityTie, true, &rules, message)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Configuration, Syntax, Value, load};
    use expect_test::{Expect, expect};
    use std::sync::Arc;

    /// Each policy is a list of rules; the findings are one per line.
    fn check(policies: &[(i32, &str)], expect: Expect) {
        let active = policies.iter().enumerate().map(|(number, (priority, body))| {
            let text = format!("policy \"Policy {number}\" {{ {body} }}");
            let (program, _) = load(&text, Syntax::Dsl).unwrap_or_else(|found| panic!("{found:?}"));
            let configuration = Configuration { priority: *priority, ..Default::default() };
            (Arc::new(program), configuration)
        });
        let set = ActiveSet::new(active.collect()).expect("valid");
        let lines: Vec<String> = set
            .conflicts()
            .iter()
            .map(|found| {
                let rules: Vec<String> =
                    found.rules.iter().map(|(policy, rule)| format!("{policy}/{rule}")).collect();
                let certain = if found.certain { "" } else { " (may)" };
                format!("{:?}{certain} {}: {}", found.kind, rules.join(" "), found.message)
            })
            .collect();
        expect.assert_eq(&lines.join("\n"));
    }

    fn rule(when: &str, then: &str) -> String {
        format!("rule \"r\" {{ when {{ {when} }} then {{ {then} }} }}")
    }

    fn rules(rules: &[String]) -> String {
        format!("rules {{ {} }}", rules.join(" "))
    }

    #[test]
    fn filters_that_leave_nothing_are_found() {
        let filter = |when: &str| rules(&[rule(when, "filter \"x\"")]);
        check(
            &[(2, &filter("node.rack == \"a\"")), (1, &filter("node.rack != \"a\""))],
            expect![
                "RemovesEveryHost policy-0/rule-1 policy-1/rule-1: the filters together remove every host that has candidateNode.rack"
            ],
        );
        check(
            &[(2, &filter("node.cpu < 8")), (1, &filter("node.cpu >= 4"))],
            expect![
                "RemovesEveryHost policy-0/rule-1 policy-1/rule-1: the filters together remove every host whose candidateNode.cpu is a number"
            ],
        );
        check(&[(2, &filter("node.cpu < 8")), (1, &filter("node.cpu > 8"))], expect![[""]]);
        check(&[(2, &filter("!(node.rack == \"a\")"))], expect![[""]]);
        check(
            &[(2, &filter("!(node.zone == \"a\")")), (1, &filter("!(node.zone == \"b\")"))],
            expect![
                "RemovesEveryHost policy-0/rule-1 policy-1/rule-1: the filters together remove every host"
            ],
        );
    }

    #[test]
    fn what_depends_on_the_vm_is_said_to() {
        let filter = |when: &str| rules(&[rule(when, "filter \"x\"")]);
        let for_gpu = "vm.gpu == true && node.cpu < 8";
        check(
            &[(2, &filter(for_gpu)), (1, &filter("node.cpu >= 8"))],
            expect![
                "RemovesEveryHost policy-0/rule-1 policy-1/rule-1: the filters together remove every host whose candidateNode.cpu is a number for VMs with vm.gpu == true"
            ],
        );
        check(
            &[(2, &filter(for_gpu)), (1, &filter("vm.spot == true && node.cpu >= 8"))],
            expect![
                "RemovesEveryHost (may) policy-0/rule-1 policy-1/rule-1: the filters may together remove every host whose candidateNode.cpu is a number: a VM that all their conditions apply to has none left"
            ],
        );
    }

    #[test]
    fn parameters_decide_whether_filters_meet() {
        let body = |op: &str, limit: u32| {
            let parameter = format!("param \"limit\" {{ type = int default = {limit} }}");
            let filter = rule(&format!("node.cpu {op} param.limit"), "filter \"x\"");
            format!("parameters {{ {parameter} }} rules {{ {filter} }}")
        };
        check(&[(2, &body("<", 8)), (1, &body(">", 9))], expect![[""]]);
        check(
            &[(2, &body("<", 10)), (1, &body(">", 9))],
            expect![
                "RemovesEveryHost policy-0/rule-1 policy-1/rule-1: the filters together remove every host whose candidateNode.cpu is a number"
            ],
        );
    }

    #[test]
    fn opposite_and_repeated_scores_are_found() {
        let score = |points: &str| rules(&[rule("node.cpu > 2", &format!("score {points} \"x\""))]);
        check(
            &[(2, &score("node.cpu * 3")), (1, &score("100 - node.cpu / 2"))],
            expect![
                "OppositeScores policy-0/rule-1 policy-1/rule-1: under the same condition some rules favour more candidateNode.cpu, others less"
            ],
        );
        check(
            &[(2, &score("5")), (1, &score("-5"))],
            expect![
                "OppositeScores policy-0/rule-1 policy-1/rule-1: under the same condition some rules add points and others take them off"
            ],
        );
        check(
            &[(2, &score("5")), (1, &score("5"))],
            expect![
                "DuplicateRule policy-0/rule-1 policy-1/rule-1: these rules do the same under the same condition: score 5"
            ],
        );
        check(&[(2, &score("node.cpu")), (1, &score("-node.rack_load"))], expect![[""]]);
    }

    #[test]
    fn only_ids_decide_between_equal_priorities() {
        let filter = |when: &str| rules(&[rule(when, "filter \"x\"")]);
        check(
            &[(5, &filter("node.cpu < 2")), (5, &filter("node.rack == \"a\""))],
            expect![
                "PriorityTie policy-0/rule-1 policy-1/rule-1: these policies have priority 5, so their ids decide which of them is named when both remove a host"
            ],
        );
        let score = rules(&[rule("node.cpu < 2", "score node.cpu \"x\"")]);
        check(&[(5, &filter("node.cpu < 2")), (5, &score)], expect![[""]]);
    }

    #[test]
    fn values_of_other_parameters_are_bound() {
        let text = "policy \"One\" { parameters { param \"p\" { type = int default = 1 } } \
                    rules { rule \"r\" { when { node.cpu > param.p } then { filter \"x\" } } } }";
        let (program, _) = load(text, Syntax::Dsl).expect("valid");
        let mut configuration = Configuration::default();
        configuration.parameter_values.insert("p".into(), Value::Number(7.0));
        let set = ActiveSet::new(vec![(Arc::new(program), configuration)]).expect("valid");
        let cases = cases(&set, PolicyType::Placement);
        assert_eq!(cases[0].asked[0].to_string(), "candidateNode.cpu > 7");
    }
}
