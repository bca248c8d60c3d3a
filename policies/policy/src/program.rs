//! A compiled policy: its document, its expressions as flat code, and what running it costs.

use crate::code::{Code, Steps};
use crate::diagnostic::{Diagnostic, Findings, MAX_DIAGNOSTICS};
use crate::document::{ActionKind, Document, Rule};
use crate::read::{Syntax, parse};
use crate::{Expr, Path, Root, check};
use smol_str::SmolStr;

/// Most steps that one policy may take for each host.
pub const MAX_STEPS_PER_HOST: u64 = 4096;
/// Most attributes that one policy may read.
pub const MAX_PATHS: usize = 256;

/// A policy that can be activated. Cheap to share: nothing in it ever changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    document: Document,
    paths: Paths,
    cost: Steps,
    pub(crate) target: Option<Code>,
    /// For each rule, in the order of the document.
    pub(crate) rules: Vec<RuleCode>,
}

/// The condition of a rule and the points of its score actions, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleCode {
    pub(crate) when: Code,
    pub(crate) scores: Vec<Code>,
}

/// Distinct attributes by root, each list sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    pub vm: Vec<Path>,
    pub host: Vec<Path>,
    pub source: Vec<Path>,
}

impl Paths {
    pub fn of(&self, root: Root) -> &[Path] {
        match root {
            Root::Vm => &self.vm,
            Root::Candidate => &self.host,
            Root::Source => &self.source,
        }
    }

    /// The number of `path` among those of its root.
    pub fn find(&self, path: &Path) -> Option<usize> {
        self.of(path.root).binary_search(path).ok()
    }

    pub(crate) fn insert(&mut self, path: &Path) {
        let list = match path.root {
            Root::Vm => &mut self.vm,
            Root::Candidate => &mut self.host,
            Root::Source => &mut self.source,
        };
        if let Err(place) = list.binary_search(path) {
            list.insert(place, path.clone());
        }
    }

    pub fn len(&self) -> usize {
        self.vm.len() + self.host.len() + self.source.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reads, checks and compiles a text: the program and its warnings, or everything found.
pub fn load(text: &str, syntax: Syntax) -> Result<(Program, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (document, warnings) = parse(text, syntax)?;
    match assemble(document) {
        Ok(program) => Ok((program, warnings)),
        Err(mut found) => {
            found.extend(warnings);
            found.truncate(MAX_DIAGNOSTICS);
            Err(found)
        }
    }
}

/// Compiles a document, also one that was not read from text.
pub fn compile(document: Document) -> Result<Program, Vec<Diagnostic>> {
    let mut findings = Findings::default();
    check::check(&document, &mut findings);
    if findings.errors() > 0 {
        return Err(findings.into_sorted().into_iter().filter(Diagnostic::is_error).collect());
    }
    assemble(document)
}

/// Compiles a document that has been checked.
fn assemble(document: Document) -> Result<Program, Vec<Diagnostic>> {
    let mut findings = Findings::default();
    let mut paths = Paths::default();
    for (_, expr) in check::expressions(&document) {
        expr.walk(&mut |expr| {
            if let crate::ExprKind::Attribute(path) = &expr.kind {
                paths.insert(path);
            }
        });
    }
    if paths.len() > MAX_PATHS {
        let message =
            format!("{} attributes are read, at most {MAX_PATHS} are allowed", paths.len());
        findings.error("too-many", document.marks.at, "policy", message);
    }
    let names: Vec<&SmolStr> = document.parameters.iter().map(|p| &p.name).collect();
    let parameter = |name: &SmolStr| names.iter().position(|known| *known == name).unwrap_or(0);
    let code =
        |expr: &Expr| Code::of(expr, &mut |path| paths.find(path).unwrap_or_default(), &parameter);
    let target = document.target.as_ref().map(code);
    let rules: Vec<RuleCode> = document
        .rules
        .iter()
        .map(|rule| RuleCode {
            when: code(&rule.when),
            scores: rule.score_expressions().map(code).collect(),
        })
        .collect();
    let cost = cost(&document, target.as_ref(), &rules);
    if cost.per_host > MAX_STEPS_PER_HOST {
        let message = format!(
            "the policy takes {} steps for each host, at most {MAX_STEPS_PER_HOST} are allowed",
            cost.per_host
        );
        findings
            .error("too-costly", document.marks.of("rules"), "rules", message)
            .hint("every operator, constant and attribute beside a host attribute is one step");
    }
    if findings.errors() > 0 {
        return Err(findings.into_sorted());
    }
    Ok(Program { document, paths, cost, target, rules })
}

fn cost(document: &Document, target: Option<&Code>, rules: &[RuleCode]) -> Steps {
    let mut cost = target.map_or(Steps::default(), Code::steps);
    for (rule, code) in document.rules.iter().zip(rules) {
        cost.add(code.when.steps());
        code.scores.iter().for_each(|score| cost.add(score.steps()));
        cost.add(Steps { per_host: rule.then.len() as u64, per_request: 0 });
    }
    cost
}

impl Program {
    pub fn document(&self) -> &Document {
        &self.document
    }

    pub fn id(&self) -> &str {
        &self.document.id
    }

    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    pub fn cost(&self) -> Steps {
        self.cost
    }
}

impl Rule {
    /// What its score actions compute, in order.
    pub fn score_expressions(&self) -> impl Iterator<Item = &Expr> {
        self.then.iter().filter_map(|action| match &action.kind {
            ActionKind::Score { points, .. } => Some(points),
            _ => None,
        })
    }
}
