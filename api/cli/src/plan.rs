//! `novaplace plan` and `novaplace drain`: migrations in waves, from the first idea to the last VM.

mod show;

use crate::client::{Answer, Ask, Client, Connection};
use crate::input;
use crate::output::{Format, print_json};
use crate::progress::Progress;
use clap::{Args, Subcommand};
use cluster::Name;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wire::{PlanDiffView, PlanList, PlanStatus, PlanView};

#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a plan; exit code 0 if nothing has to move, 1 if something does
    Create(Create),
    /// Plans that are kept
    List,
    /// A plan and how far each of its migrations is
    Show { plan: String },
    /// What is different after what is left of a plan, host by host
    Diff { plan: String },
    /// Approve a plan
    Approve { plan: String },
    /// Carry a plan out
    Apply { plan: String },
    /// Let nothing more of a plan begin
    Pause { plan: String },
    /// Let a plan that is paused or stale go on
    Resume { plan: String },
    /// End a plan
    Cancel {
        plan: String,
        /// The core does nothing more of what is under way
        #[arg(long)]
        abandon: bool,
    },
    /// Turn the done migrations of a plan round
    Rollback { plan: String },
    /// Wait until a plan is over; exit code 0 if all of it was done
    Wait {
        plan: String,
        /// Give up after this long
        #[arg(long, default_value_t = 3_600, value_name = "SECONDS")]
        patience: u64,
    },
}

#[derive(Debug, Args)]
struct Create {
    /// What the plan is for
    #[arg(long, default_value = "moves")]
    #[arg(value_parser = ["moves", "optimisation", "rebalance", "drain", "consolidation",
                          "defragmentation", "maintenance"])]
    kind: String,
    /// A VM and where it should go, such as web-1=host-7; repeat for more
    #[arg(long = "move", value_name = "VM=HOST", value_parser = wanted)]
    moves: Vec<(String, String)>,
    /// The tenant of these VMs
    #[arg(long, value_parser = input::name)]
    tenant: Option<Name>,
    /// An optimisation whose answer is carried out
    #[arg(long, value_name = "ID")]
    optimisation: Option<String>,
    /// A point of its front
    #[arg(long, value_name = "NUMBER")]
    point: Option<u32>,
    /// A host that is emptied; repeat for more
    #[arg(long = "host", value_name = "HOST", value_parser = input::name)]
    hosts: Vec<Name>,
    /// Hosts that are out at the same time, for maintenance
    #[arg(long, value_name = "NUMBER")]
    batch: Option<u32>,
    /// Move VMs on hosts of this pool only
    #[arg(long, value_parser = input::name)]
    pool: Option<Name>,
    /// Move VMs on hosts of this rack only
    #[arg(long, value_parser = input::name)]
    rack: Option<Name>,
    /// What matters, goal by goal, such as energy=3; repeat for more
    #[arg(long = "goal", value_name = "GOAL=WEIGHT", value_parser = input::amount)]
    goals: Vec<(String, u64)>,
    #[arg(long, value_name = "MS")]
    budget_ms: Option<u64>,
    #[arg(long, value_name = "NUMBER")]
    max_moves: Option<u32>,
    /// What a move has to gain, in millionths of the objective
    #[arg(long, value_name = "PPM")]
    price_per_move: Option<u32>,
    /// What a second of brown-out has to gain, in millionths of the objective
    #[arg(long, value_name = "PPM")]
    price_per_second: Option<u32>,
    /// Go on when a migration fails
    #[arg(long)]
    go_on: bool,
    /// The plan needs nobody's approval
    #[arg(long)]
    approve: bool,
    /// Say what the plan would be, and keep nothing
    #[arg(long)]
    dry_run: bool,
}

/// `VM=HOST`.
fn wanted(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((vm, host)) if !vm.is_empty() && !host.is_empty() => Ok((vm.into(), host.into())),
        _ => Err("it must be VM=HOST".into()),
    }
}

/// How often the service is asked how far a plan is.
const EVERY: Duration = Duration::from_millis(200);

impl Plan {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connection.open();
        let format = self.connection.output;
        let act = |plan: &str, verb: &str| Ask::post(&["v1", "plans", plan, verb]);
        match &self.verb {
            Verb::Create(create) => create.run(&client, format),
            Verb::List => {
                let answer = client.send(&Ask::get(&["v1", "plans"]))?;
                match format {
                    Format::Json => print_json(&answer.body)?,
                    Format::Table => show::list(&answer.read::<PlanList>()?)?,
                }
                Ok(ExitCode::SUCCESS)
            }
            Verb::Show { plan } => shown(&client.send(&Ask::get(&["v1", "plans", plan]))?, format),
            Verb::Diff { plan } => {
                let answer = client.send(&Ask::get(&["v1", "plans", plan, "diff"]))?;
                let diff: PlanDiffView = answer.read()?;
                match format {
                    Format::Json => print_json(&answer.body)?,
                    Format::Table => show::diff(&diff)?,
                }
                Ok(ExitCode::from(u8::from(diff.moved > 0)))
            }
            Verb::Approve { plan } => shown(&client.send(&act(plan, "approve"))?, format),
            Verb::Apply { plan } => shown(&client.send(&act(plan, "apply"))?, format),
            Verb::Pause { plan } => shown(&client.send(&act(plan, "pause"))?, format),
            Verb::Resume { plan } => shown(&client.send(&act(plan, "resume"))?, format),
            Verb::Rollback { plan } => shown(&client.send(&act(plan, "rollback"))?, format),
            Verb::Cancel { plan, abandon } => {
                let ask = act(plan, "cancel").query("abandon", abandon.then_some(true));
                shown(&client.send(&ask)?, format)
            }
            Verb::Wait { plan, patience } => {
                let answer = wait(&client, plan, Duration::from_secs(*patience))?;
                ended(&answer, format)
            }
        }
    }
}

impl Create {
    fn run(&self, client: &Client, format: Format) -> anyhow::Result<ExitCode> {
        let ask = Ask::post(&["v1", "plans"]).dry_run(self.dry_run);
        let answer = client.send(&ask.json(serde_json::to_vec(&self.body())?))?;
        shown(&answer, format)?;
        let view: PlanView = answer.read()?;
        Ok(ExitCode::from(u8::from(view.totals.migrations > 0)))
    }

    fn body(&self) -> Value {
        let mut body = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        let named = |name: &Option<Name>| name.as_ref().map(|name| json!(name));
        let moves: Vec<Value> = self
            .moves
            .iter()
            .map(|(vm, to)| match &self.tenant {
                Some(tenant) => json!({"tenant": tenant, "vm_id": vm, "to": to}),
                None => json!({"vm_id": vm, "to": to}),
            })
            .collect();
        let goals: Map<String, Value> =
            self.goals.iter().map(|(name, weight)| (name.clone(), json!(weight))).collect();
        set("kind", Some(json!(self.kind)));
        set("moves", (!moves.is_empty()).then_some(Value::Array(moves)));
        set("optimisation", self.optimisation.as_ref().map(|id| json!(id)));
        set("point", self.point.map(|point| json!(point)));
        set("hosts", (!self.hosts.is_empty()).then(|| json!(self.hosts)));
        set("batch", self.batch.map(|batch| json!(batch)));
        set("pool", named(&self.pool));
        set("rack", named(&self.rack));
        set("goals", (!goals.is_empty()).then_some(Value::Object(goals)));
        set("budget_ms", self.budget_ms.map(|ms| json!(ms)));
        set("max_moves", self.max_moves.map(|most| json!(most)));
        set("price_per_move_ppm", self.price_per_move.map(|ppm| json!(ppm)));
        set("price_per_second_ppm", self.price_per_second.map(|ppm| json!(ppm)));
        set("on_failure", self.go_on.then(|| json!("continue")));
        set("approve", self.approve.then(|| json!(true)));
        Value::Object(body)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Drain {
    #[command(flatten)]
    connection: Connection,
    /// The hosts to empty
    #[arg(required = true, value_parser = input::name)]
    hosts: Vec<Name>,
    /// Empty what can be emptied even if some VMs have to stay
    #[arg(long)]
    partly: bool,
    /// Only say what would move
    #[arg(long)]
    dry_run: bool,
    /// Give up after this long; the plan goes on
    #[arg(long, default_value_t = 3_600, value_name = "SECONDS")]
    patience: u64,
}

impl Drain {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connection.open();
        let format = self.connection.output;
        if !self.dry_run {
            for host in &self.hosts {
                // Nobody comes while others leave.
                client.send(&Ask::post(&["v1", "hosts", host.as_str(), "cordon"]))?;
            }
        }
        let body = json!({"kind": "drain", "hosts": self.hosts, "approve": true});
        let ask = Ask::post(&["v1", "plans"]).dry_run(self.dry_run);
        let answer = client.send(&ask.json(serde_json::to_vec(&body)?))?;
        let view: PlanView = answer.read()?;
        if self.dry_run {
            shown(&answer, format)?;
            return Ok(ExitCode::from(u8::from(view.totals.migrations > 0)));
        }
        if !view.blocked.is_empty() && !self.partly {
            shown(&answer, format)?;
            let act = Ask::post(&["v1", "plans", &view.id, "cancel"]);
            client.send(&act)?;
            let blocked = view.blocked.len();
            anyhow::bail!("{blocked} VMs cannot leave; --partly moves the others");
        }
        if view.totals.migrations > 0 {
            client.send(&Ask::post(&["v1", "plans", &view.id, "apply"]))?;
        }
        ended(&wait(&client, &view.id, Duration::from_secs(self.patience))?, format)
    }
}

/// Asks until a plan is over, or waits for somebody.
fn wait(client: &Client, plan: &str, patience: Duration) -> anyhow::Result<Answer> {
    let started = Instant::now();
    let mut progress: Option<Progress> = None;
    let mut told = 0;
    loop {
        let answer = client.send(&Ask::get(&["v1", "plans", plan]))?;
        let view: PlanView = answer.read()?;
        let totals = &view.totals;
        let gone = u64::from(totals.done) + u64::from(totals.not_done);
        let bar = progress
            .get_or_insert_with(|| Progress::new("migrating", u64::from(totals.migrations)));
        bar.add(gone.saturating_sub(told));
        told = gone;
        let goes_on = matches!(view.status.0, PlanStatus::Approved | PlanStatus::Running);
        let under_way = totals.running > 0;
        if !goes_on && !under_way {
            return Ok(answer);
        }
        anyhow::ensure!(
            started.elapsed() < patience,
            "plan {plan} is not over after {} s: {} of {} migrations are done",
            patience.as_secs(),
            totals.done,
            totals.migrations
        );
        std::thread::sleep(EVERY);
    }
}

/// 0 if all of it was done; 1 if not.
fn ended(answer: &Answer, format: Format) -> anyhow::Result<ExitCode> {
    shown(answer, format)?;
    let view: PlanView = answer.read()?;
    let whole = matches!(view.status.0, PlanStatus::Completed | PlanStatus::RolledBack);
    Ok(ExitCode::from(u8::from(!whole)))
}

fn shown(answer: &Answer, format: Format) -> anyhow::Result<ExitCode> {
    match format {
        Format::Json => print_json(&answer.body)?,
        Format::Table => show::plan(&answer.read()?)?,
    }
    Ok(ExitCode::SUCCESS)
}
