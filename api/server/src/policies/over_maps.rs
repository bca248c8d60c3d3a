//! What policies say about nodes that a request brings along, as the maps that were sent.

use policy::{ActiveSet, EvaluateError, PolicyType, RuleIx, Scratch, Table, Value, Verdicts};
use std::collections::BTreeMap;
use wire::novacron::{EvaluatedNode, Evaluation, FilteredNode, Json, RuleErrors};

/// What the policies say about each node, in the order of the nodes.
pub(crate) fn judge(
    set: &ActiveSet,
    asked: PolicyType,
    vm: &Json,
    source: &Json,
    nodes: &[Json],
) -> Result<Verdicts, EvaluateError> {
    let columns = set.host_paths();
    let table = Table::fill(nodes.len(), columns.len(), &mut |row, column| match (
        nodes.get(row),
        columns.get(column),
    ) {
        (Some(node), Some(path)) => node.attribute(path),
        _ => Value::Null,
    });
    let vm: Vec<Value> = set.paths().vm.iter().map(|path| vm.attribute(path)).collect();
    let source: Vec<Value> = set.paths().source.iter().map(|path| source.attribute(path)).collect();
    let request =
        policy::Request { source: &source, components: true, ..policy::Request::new(asked, &vm) };
    let mut verdicts = Verdicts::default();
    set.evaluate(&request, &table, &mut Scratch::default(), &mut verdicts)?;
    Ok(verdicts)
}

/// The answer to a question about these nodes.
pub(crate) fn evaluate(
    set: &ActiveSet,
    asked: PolicyType,
    vm: &Json,
    source: &Json,
    nodes: Vec<Json>,
    limit: usize,
) -> Result<Evaluation, EvaluateError> {
    let verdicts = judge(set, asked, vm, source, &nodes)?;
    let id = |row: usize| nodes.get(row).map_or("", Json::map_id).to_owned();
    let mut answer = told(set, &verdicts, limit, usize::MAX, &id);
    for (row, shown) in best(&verdicts, limit).into_iter().zip(&mut answer.nodes) {
        shown.node = nodes.get(row).cloned();
    }
    Ok(answer)
}

/// The verdicts as they are shown: the best `limit` nodes, and `most_filtered` of the others.
pub(super) fn told(
    set: &ActiveSet,
    verdicts: &Verdicts,
    limit: usize,
    most_filtered: usize,
    id: &dyn Fn(usize) -> String,
) -> Evaluation {
    let mut answer = Evaluation {
        nodes: best(verdicts, limit).into_iter().map(|row| shown(verdicts, row, id)).collect(),
        feasible_count: verdicts.feasible().iter().map(|word| word.count_ones()).sum(),
        errors: errors(set, verdicts),
        ..Evaluation::default()
    };
    for row in 0..verdicts.rows() {
        let Some(rule) = verdicts.filtered_by(row) else { continue };
        answer.filtered_count = answer.filtered_count.saturating_add(1);
        if answer.filtered.len() < most_filtered {
            let (policy_id, rule_id, reason) = named(set, rule);
            answer.filtered.push(FilteredNode { node_id: id(row), policy_id, rule_id, reason });
        }
    }
    answer
}

/// The feasible rows, highest score first, then lowest row.
fn best(verdicts: &Verdicts, limit: usize) -> Vec<usize> {
    let mut rows: Vec<usize> =
        (0..verdicts.rows()).filter(|row| verdicts.is_feasible(*row)).collect();
    let key = |row: &usize| (std::cmp::Reverse(verdicts.score_millis(*row)), *row);
    if limit < rows.len() {
        rows.select_nth_unstable_by_key(limit, key);
        rows.truncate(limit);
    }
    rows.sort_unstable_by_key(key);
    rows
}

fn shown(verdicts: &Verdicts, row: usize, id: &dyn Fn(usize) -> String) -> EvaluatedNode {
    let mut score_components: BTreeMap<String, f64> = BTreeMap::new();
    for (_, reason, millis) in verdicts.components(row) {
        *score_components.entry(reason.to_string()).or_default() += points(millis);
    }
    let score = points(verdicts.score_millis(row));
    EvaluatedNode { node_id: id(row), node: None, score, score_components }
}

pub(crate) fn points(millis: i64) -> f64 {
    millis as f64 / 1000.0
}

/// Policy, rule and reason of a filter.
pub(crate) fn named(set: &ActiveSet, rule: RuleIx) -> (String, String, String) {
    match set.rule(rule) {
        Some((policy, rule)) => {
            let reason = rule.filter_reason().unwrap_or_default().to_owned();
            (policy.id().to_owned(), rule.id.clone(), reason)
        }
        None => Default::default(),
    }
}

fn errors(set: &ActiveSet, verdicts: &Verdicts) -> Vec<RuleErrors> {
    let mut found = Vec::new();
    for (place, policy) in set.policies().iter().enumerate() {
        let policy_id = || policy.id().to_owned();
        let nodes = verdicts.target_errors(place);
        if nodes > 0 {
            found.push(RuleErrors { policy_id: policy_id(), rule_id: None, nodes });
        }
        for (ix, rule) in policy.rules() {
            let nodes = verdicts.errors(ix);
            if nodes > 0 {
                let rule_id = Some(rule.id.clone());
                found.push(RuleErrors { policy_id: policy_id(), rule_id, nodes });
            }
        }
    }
    found
}
