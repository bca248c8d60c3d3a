//! NovaCron's way of evaluating policies, re-created from its description, to measure against.
//!
//! Every node is a map of maps. Each rule is a closure that looks its attributes up by name for
//! every node; a score is added up beside a map of its parts; and the nodes that are left are put
//! in order by exchanging every pair that is the wrong way round, with the scores in a map by
//! position. The map has a faster hash than the original's, so that what is measured is the way it
//! is done and not the language it was written in.

use hashbrown::HashMap;
use serde_json::{Map, Value};

/// A node or VM as NovaCron hands it over.
pub type Attributes = Map<String, Value>;

/// What rules see of one node, and leave behind for it.
#[derive(Debug)]
pub struct Context<'a> {
    pub vm: &'a Attributes,
    pub node: &'a Attributes,
    variables: HashMap<String, Value>,
    score: f64,
    components: HashMap<String, f64>,
    filtered: bool,
}

impl Context<'_> {
    /// The value of a parameter, as a number.
    pub fn variable(&self, name: &str) -> f64 {
        self.variables.get(&format!("param.{name}")).and_then(Value::as_f64).unwrap_or(0.0)
    }
}

type Condition = Box<dyn Fn(&Context<'_>) -> bool>;
type Points = Box<dyn Fn(&Context<'_>) -> f64>;

/// What to do with a node when a condition holds.
pub struct Rule {
    pub when: Condition,
    pub then: Action,
    pub hard_constraint: bool,
}

pub enum Action {
    Filter,
    Score { points: Points, reason: String },
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rule")
            .field("hard_constraint", &self.hard_constraint)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Action::Filter => "Filter",
            Action::Score { .. } => "Score",
        })
    }
}

/// Rules, and the values of their parameters.
pub type Policy = (Vec<Rule>, Vec<(String, Value)>);

/// The policies in force.
pub struct Engine {
    pub policies: Vec<Policy>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("policies", &self.policies.len()).finish()
    }
}

impl Engine {
    /// The nodes that are left, best first, each with its score.
    pub fn evaluate<'a>(
        &self,
        vm: &'a Attributes,
        nodes: &'a [Attributes],
    ) -> Vec<(&'a Attributes, f64)> {
        let mut left = Vec::new();
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for node in nodes {
            let mut context = Context {
                vm,
                node,
                variables: HashMap::new(),
                score: 0.0,
                components: HashMap::new(),
                filtered: false,
            };
            for (rules, parameters) in &self.policies {
                for (name, value) in parameters {
                    context.variables.insert(format!("param.{name}"), value.clone());
                }
                run(rules, &mut context);
            }
            if !context.filtered {
                scores.insert(left.len(), context.score);
                left.push(node);
            }
        }
        exchange(&mut left, &mut scores);
        left.iter().enumerate().map(|(place, node)| (*node, scores[&place])).collect()
    }
}

fn run(rules: &[Rule], context: &mut Context<'_>) {
    for rule in rules {
        if !(rule.when)(context) {
            continue;
        }
        match &rule.then {
            Action::Filter => context.filtered = true,
            Action::Score { points, reason } => {
                let points = points(context);
                context.score += points;
                context.components.insert(reason.clone(), points);
            }
        }
        if context.filtered && rule.hard_constraint {
            return;
        }
    }
}

/// Every pair is looked at, and exchanged when the later one has more.
fn exchange(nodes: &mut [&Attributes], scores: &mut HashMap<usize, f64>) {
    for first in 0..nodes.len() {
        for second in first + 1..nodes.len() {
            if scores[&second] > scores[&first] {
                nodes.swap(first, second);
                let (a, b) = (scores[&first], scores[&second]);
                scores.insert(first, b);
                scores.insert(second, a);
            }
        }
    }
}

/// A number under these keys; 0 when it is not there.
pub fn number(attributes: &Attributes, keys: &[&str]) -> f64 {
    find(attributes, keys).and_then(Value::as_f64).unwrap_or(0.0)
}

/// What is under these keys, one map inside the other.
pub fn find<'a>(attributes: &'a Attributes, keys: &[&str]) -> Option<&'a Value> {
    let (last, path) = keys.split_last()?;
    let mut map = attributes;
    for key in path {
        map = map.get(*key)?.as_object()?;
    }
    map.get(*last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nodes_are_filtered_and_put_in_order() {
        let object = |value: Value| value.as_object().cloned().expect("an object");
        let nodes: Vec<Attributes> = [3.0, 9.0, 1.0, 7.0, 5.0]
            .map(|cpu| object(json!({ "metrics": { "cpu.utilization": cpu } })))
            .to_vec();
        let cpu = |context: &Context<'_>| number(context.node, &["metrics", "cpu.utilization"]);
        let filter = Rule {
            when: Box::new(move |context| cpu(context) > 8.0),
            then: Action::Filter,
            hard_constraint: true,
        };
        let score = Rule {
            when: Box::new(|_| true),
            then: Action::Score { points: Box::new(cpu), reason: "busy".into() },
            hard_constraint: false,
        };
        let engine = Engine { policies: vec![(vec![filter, score], Vec::new())] };
        let vm = Attributes::new();
        let order: Vec<f64> =
            engine.evaluate(&vm, &nodes).iter().map(|(_, score)| *score).collect();
        assert_eq!(order, [7.0, 5.0, 3.0, 1.0]);
    }
}
