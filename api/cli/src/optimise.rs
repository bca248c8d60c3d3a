//! `novaplace optimise`: better hosts for many VMs at once, and what the goals can be traded for.

use crate::client::{Ask, Client, Connection};
use crate::input;
use crate::output::{Format, Paint, Table, grouped, print, print_json};
use crate::progress::Progress;
use clap::Args;
use clap::builder::PossibleValuesParser;
use cluster::Name;
use policy::Profile;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::time::Duration;
use wire::{FrontView, GoalValueView, OptimisationState, OptimisationView};

#[derive(Debug, Args)]
pub(crate) struct Optimise {
    #[command(flatten)]
    connection: Connection,
    /// Which placed VMs may move
    #[arg(long, default_value = "cluster", value_parser = ["cluster", "pool", "group"])]
    scope: String,
    /// The pool, for --scope pool
    #[arg(long, value_parser = input::name)]
    pool: Option<Name>,
    /// The group, for --scope group
    #[arg(long, value_parser = input::name)]
    group: Option<Name>,
    /// The group's tenant
    #[arg(long, value_parser = input::name)]
    tenant: Option<Name>,
    /// What matters, by one word
    #[arg(long, conflicts_with = "goals", value_parser = PossibleValuesParser::new(Profile::ALL.map(Profile::name)))]
    profile: Option<String>,
    /// What matters, goal by goal, such as energy=3; repeat for more
    #[arg(long = "goal", value_name = "GOAL=WEIGHT", value_parser = input::amount)]
    goals: Vec<(String, u64)>,
    /// How to search
    #[arg(long, default_value = "auto")]
    engine: String,
    #[arg(long, default_value_t = 1_000, value_name = "MS")]
    budget_ms: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// VMs that may move at most
    #[arg(long, value_name = "NUMBER")]
    max_moves: Option<u32>,
    /// Show the trade-offs of two to four goals instead of one answer
    #[arg(long)]
    pareto: bool,
}

/// How often the service is asked how far it is.
const EVERY: Duration = Duration::from_millis(50);

impl Optimise {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connection.open();
        let ask = Ask::post(&["v1", "optimisations"]).json(serde_json::to_vec(&self.body())?);
        let taken: OptimisationView = client.send(&ask)?.read()?;
        let (answer, view) = self.wait(&client, &taken.id)?;
        let moves = !view.moves.is_empty();
        let front = match &view.front {
            Some(front) => Some(client.send(&Ask::get(&["v1", "fronts", front]))?),
            None => None,
        };
        match (self.connection.output, front) {
            (Format::Json, Some(front)) => print_json(&front.body)?,
            (Format::Json, None) => print_json(&answer)?,
            (Format::Table, Some(front)) => show_front(&front.read()?)?,
            (Format::Table, None) => show(&view)?,
        }
        let failed = view.state.0 == OptimisationState::Failed;
        Ok(ExitCode::from(if failed { 255 } else { u8::from(moves) }))
    }

    fn body(&self) -> Value {
        let mut body = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        let named = |name: &Option<Name>| name.as_ref().map(|name| json!(name));
        set("scope", Some(json!(self.scope)));
        set("pool", named(&self.pool));
        set("group", named(&self.group));
        set("tenant", named(&self.tenant));
        set("engine", Some(json!(self.engine)));
        set("budget_ms", Some(json!(self.budget_ms)));
        set("seed", Some(json!(self.seed)));
        set("max_moves", self.max_moves.map(|most| json!(most)));
        set("profile", self.profile.as_ref().map(|profile| json!(profile)));
        set("mode", self.pareto.then(|| json!("pareto")));
        let goals: Map<String, Value> =
            self.goals.iter().map(|(name, weight)| (name.clone(), json!(weight))).collect();
        set("goals", (!goals.is_empty()).then_some(Value::Object(goals)));
        Value::Object(body)
    }

    /// Asks until it is over.
    fn wait(&self, client: &Client, id: &str) -> anyhow::Result<(Vec<u8>, OptimisationView)> {
        let mut progress = Progress::new("optimising", self.budget_ms);
        let mut told = 0;
        loop {
            let answer = client.send(&Ask::get(&["v1", "optimisations", id]))?;
            let view: OptimisationView = answer.read()?;
            match view.state.0 {
                OptimisationState::Queued | OptimisationState::Running => {
                    progress.add(view.elapsed_ms.saturating_sub(told));
                    told = view.elapsed_ms;
                    std::thread::sleep(EVERY);
                }
                _ => return Ok((answer.body, view)),
            }
        }
    }
}

fn show(view: &OptimisationView) -> anyhow::Result<()> {
    if let Some(error) = &view.error {
        return Ok(print(error)?);
    }
    let paint = Paint::for_stdout();
    let mut goals = Table::new(&["GOAL", "WEIGHT", "BEFORE", "AFTER", "NOT BELOW", "UNIT"]);
    for goal in &view.goals {
        let GoalValueView { goal, unit, weight, before, value, bound, .. } = goal;
        let before = before.map_or_else(|| "-".to_owned(), grouped);
        let cells = [
            goal.clone(),
            grouped(*weight),
            before,
            grouped(*value),
            grouped(*bound),
            unit.clone(),
        ];
        goals.row(cells);
    }
    print(goals.painted(paint))?;
    let mut moves = Table::new(&["VM", "FROM", "TO"]);
    for it in &view.moves {
        let from = it.from.as_ref().map(ToString::to_string).unwrap_or_default();
        moves.row([format!("{}/{}", it.tenant, it.vm_id), from, it.to.to_string()]);
    }
    if !moves.is_empty() {
        print(moves.painted(paint))?;
    }
    let gap = view.gap.map_or_else(|| "-".to_owned(), |gap| format!("{:.3} %", gap * 100.0));
    let how = view.how.as_deref().unwrap_or("-");
    let why = view.stop_reason.as_deref().unwrap_or("-");
    let (moves, ms) = (view.moves.len(), view.elapsed_ms);
    Ok(print(format!("{moves} moves, gap at most {gap}, {ms} ms, {why}, {how}, id {}", view.id))?)
}

fn show_front(front: &FrontView) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    for point in &front.points {
        let goals = point
            .goals
            .iter()
            .map(|goal| format!("{} {} {}", goal.goal, grouped(goal.value), goal.unit));
        let line = format!(
            "{:>3}  {}  ({} moves)",
            point.point,
            goals.collect::<Vec<_>>().join("   "),
            point.moves
        );
        print(if point.point == front.knee { paint.bold(line) } else { line })?;
    }
    let (share, id) = (front.hypervolume, &front.id);
    Ok(print(format!("{id}: hypervolume {share:.3}, knee {}", front.knee))?)
}
