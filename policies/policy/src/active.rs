//! The policies in force, in the order they are evaluated, with their parameters bound.

use crate::code::{Code, Steps};
use crate::document::{Parameter, Rule};
use crate::program::{Paths, Program, RuleCode};
use crate::{Path, Root, Value};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most policies in force at once.
pub const MAX_ACTIVE: usize = 64;
/// Most steps that all of them may take for each host.
pub const MAX_SET_STEPS_PER_HOST: u64 = 16_384;

/// How an operator activates a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Configuration {
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// Values by parameter; the others have their defaults.
    #[serde(default)]
    pub parameter_values: BTreeMap<SmolStr, Value>,
}

/// A rule by its place in the order of evaluation over all policies in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RuleIx(pub u32);

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ActivateError {
    #[error("policy {policy} has no parameter {parameter}; it has: {known}")]
    UnknownParameter { policy: String, parameter: SmolStr, known: String },
    #[error("policy {policy}: parameter {parameter} has no default, so a value must be given")]
    MissingValue { policy: String, parameter: SmolStr },
    #[error("policy {policy}: parameter {parameter}: {message}")]
    BadValue { policy: String, parameter: SmolStr, message: String },
    #[error("policy {0} is active twice")]
    Duplicate(String),
    #[error("{0} policies are active, at most {MAX_ACTIVE} are allowed")]
    TooMany(usize),
    #[error(
        "the active policies take {0} steps for each host, at most {MAX_SET_STEPS_PER_HOST} are \
         allowed; deactivate one"
    )]
    TooCostly(u64),
}

/// One policy of the set.
#[derive(Clone, Debug)]
pub struct ActivePolicy {
    program: Arc<Program>,
    configuration: Configuration,
    parameter_values: Vec<(SmolStr, Value)>,
    first_rule: u32,
    /// Places in the document, in the order of evaluation.
    order: Vec<usize>,
    pub(crate) target: Option<Code>,
    /// In the order of evaluation.
    pub(crate) rules: Vec<RuleCode>,
}

impl ActivePolicy {
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    pub fn id(&self) -> &str {
        self.program.id()
    }

    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Every parameter with the value it has now, in the order of the document.
    pub fn parameter_values(&self) -> &[(SmolStr, Value)] {
        &self.parameter_values
    }

    /// Its rules in the order of evaluation.
    pub fn rules(&self) -> impl Iterator<Item = (RuleIx, &Rule)> {
        let rules = self.order.iter().filter_map(|place| self.program.document().rules.get(*place));
        (self.first_rule..).map(RuleIx).zip(rules)
    }
}

/// The policies in force. Immutable; a change makes a new one.
#[derive(Clone, Debug, Default)]
pub struct ActiveSet {
    policies: Vec<ActivePolicy>,
    paths: Paths,
    rules: Vec<(u32, u32)>,
}

impl ActiveSet {
    /// Orders the policies by priority, highest first, then by id, and binds their parameters.
    pub fn new(policies: Vec<(Arc<Program>, Configuration)>) -> Result<Self, ActivateError> {
        if policies.len() > MAX_ACTIVE {
            return Err(ActivateError::TooMany(policies.len()));
        }
        let mut sorted = policies;
        sorted.sort_by(|(a, left), (b, right)| {
            right.priority.cmp(&left.priority).then_with(|| a.id().cmp(b.id()))
        });
        let mut set = Self::default();
        let mut steps = Steps::default();
        for (program, _) in &sorted {
            steps.add(program.cost());
            let roots = [Root::Vm, Root::Candidate, Root::Source];
            for path in roots.iter().flat_map(|root| program.paths().of(*root)) {
                set.paths.insert(path);
            }
        }
        if steps.per_host > MAX_SET_STEPS_PER_HOST {
            return Err(ActivateError::TooCostly(steps.per_host));
        }
        for (program, configuration) in sorted {
            if set.policies.iter().any(|policy| policy.id() == program.id()) {
                return Err(ActivateError::Duplicate(program.id().into()));
            }
            let policy = bind(program, configuration, &set.paths, set.rules.len() as u32)?;
            let place = set.policies.len() as u32;
            set.rules.extend(policy.order.iter().map(|rule| (place, *rule as u32)));
            set.policies.push(policy);
        }
        Ok(set)
    }

    /// In the order of evaluation.
    pub fn policies(&self) -> &[ActivePolicy] {
        &self.policies
    }

    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// Every attribute that any of the policies reads. `host` names the columns of the table, `vm`
    /// and `source` the values of a request, in this order.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    pub fn host_paths(&self) -> &[Path] {
        &self.paths.host
    }

    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// A rule and its policy.
    pub fn rule(&self, rule: RuleIx) -> Option<(&ActivePolicy, &Rule)> {
        let (policy, place) = self.rules.get(rule.0 as usize)?;
        let policy = self.policies.get(*policy as usize)?;
        Some((policy, policy.program.document().rules.get(*place as usize)?))
    }
}

fn bind(
    program: Arc<Program>,
    configuration: Configuration,
    paths: &Paths,
    first_rule: u32,
) -> Result<ActivePolicy, ActivateError> {
    let document = program.document();
    for name in configuration.parameter_values.keys() {
        if document.parameter(name).is_none() {
            let known: Vec<&str> = document.parameters.iter().map(|p| p.name.as_str()).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            let policy = program.id().to_string();
            return Err(ActivateError::UnknownParameter { policy, parameter: name.clone(), known });
        }
    }
    let values = document.parameters.iter().map(|parameter| {
        let given = configuration.parameter_values.get(&parameter.name);
        Ok((parameter.name.clone(), value_of(program.id(), parameter, given)?))
    });
    let parameter_values = values.collect::<Result<Vec<_>, ActivateError>>()?;
    let number = |root: Root, local: usize| {
        let path = program.paths().of(root).get(local);
        path.and_then(|path| paths.find(path)).unwrap_or(usize::MAX)
    };
    let bound = |code: &Code| code.bind(&parameter_values, &number);
    let mut order: Vec<usize> = (0..document.rules.len()).collect();
    order.sort_by_key(|place| document.rules.get(*place).map(|rule| -i64::from(rule.priority)));
    let rules = order.iter().filter_map(|place| program.rules.get(*place));
    let rules = rules
        .map(|rule| RuleCode {
            when: bound(&rule.when),
            scores: rule.scores.iter().map(bound).collect(),
        })
        .collect();
    let target = program.target.as_ref().map(bound);
    Ok(ActivePolicy { program, configuration, parameter_values, first_rule, order, target, rules })
}

fn value_of(
    policy: &str,
    parameter: &Parameter,
    given: Option<&Value>,
) -> Result<Value, ActivateError> {
    let name = || parameter.name.clone();
    let Some(value) = given.or(parameter.default.as_ref()) else {
        return Err(ActivateError::MissingValue { policy: policy.into(), parameter: name() });
    };
    parameter.check(value).map_err(|message| ActivateError::BadValue {
        policy: policy.into(),
        parameter: name(),
        message,
    })?;
    Ok(value.clone())
}
