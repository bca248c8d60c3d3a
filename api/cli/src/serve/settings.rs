//! What the service can be told: by flag, by environment variable or by file, in that order.

use anyhow::Context;
use clap::{Args, CommandFactory, Parser, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Every setting, as given; what is not given anywhere has its default.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, env = "NOVAPLACE_LISTEN", value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Directory of the log and its snapshots [default: novaplace-data]
    #[arg(long, env = "NOVAPLACE_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Accept callers from other machines although nobody is authenticated
    #[arg(long, env = "NOVAPLACE_INSECURE_PUBLIC")]
    insecure_public: bool,
    /// Serve NovaCron's AI routes to other machines too; on loopback they always are
    #[arg(long, env = "NOVAPLACE_AI_ROUTES_OPEN")]
    ai_routes_open: bool,
    /// Bring a fleet of 1,000 hosts along if the log is empty
    #[arg(long)]
    demo: bool,
    /// An extra resource dimension, by name; repeat for more. Never take one away again
    #[arg(
        long = "dimension",
        env = "NOVAPLACE_DIMENSIONS",
        value_delimiter = ',',
        value_name = "NAME"
    )]
    dimensions: Vec<String>,
    /// Commands between two snapshots; 0 takes none [default: 100000]
    #[arg(long, env = "NOVAPLACE_SNAPSHOT_EVERY", value_name = "COMMANDS")]
    snapshot_every: Option<u64>,
    /// Commands of history to keep beyond what recovery needs [default: 1000000]
    #[arg(long, env = "NOVAPLACE_RETAIN", value_name = "COMMANDS")]
    retain: Option<u64>,
    /// Requests that may wait for the writer; more are refused at once [default: 4096]
    #[arg(long, env = "NOVAPLACE_QUEUE", value_name = "REQUESTS")]
    queue: Option<usize>,
    /// Connections that may be open at a time [default: 2048]
    #[arg(long, env = "NOVAPLACE_CONNECTIONS", value_name = "CONNECTIONS")]
    connections: Option<usize>,
    /// A directory of policy files that are in force, and stay so while they change
    #[arg(long, env = "NOVAPLACE_POLICIES", value_name = "DIR")]
    policies: Option<PathBuf>,
    /// Leave a policy in force when its file is removed from the directory
    #[arg(long, env = "NOVAPLACE_POLICIES_KEEP_REMOVED")]
    policies_keep_removed: bool,
    /// Answer and compare, but place nothing: see GET /v1/advice
    #[arg(long, env = "NOVAPLACE_ADVISE")]
    advise: bool,
    /// How long a VM that NovaCron schedules is waited for [default: 30000]
    #[arg(long, env = "NOVAPLACE_NOVACRON_HOLD_TTL_MS", value_name = "MILLISECONDS")]
    novacron_hold_ttl_ms: Option<u64>,
    /// Most VMs on a node of NovaCron; 0: as many as fit [default: 0]
    #[arg(long, env = "NOVAPLACE_NOVACRON_MAX_VMS_PER_NODE", value_name = "VMS")]
    novacron_max_vms_per_node: Option<u32>,
    /// error, warn, info, debug or trace, also per module: info,server=debug [default: info]
    #[arg(long, env = "NOVAPLACE_LOG_LEVEL", value_name = "LEVEL")]
    log_level: Option<String>,
    /// How log lines look [default: text]
    #[arg(long, env = "NOVAPLACE_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// A TOML file with any of these settings, under the same names with underscores
    #[arg(long, env = "NOVAPLACE_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The settings with nothing left open.
#[derive(Clone, Debug)]
pub(crate) struct Complete {
    pub(crate) listen: SocketAddr,
    pub(crate) data_dir: PathBuf,
    pub(crate) insecure_public: bool,
    pub(crate) ai_routes_open: bool,
    pub(crate) demo: bool,
    pub(crate) dimensions: Vec<String>,
    pub(crate) snapshot_every: u64,
    pub(crate) retain: u64,
    pub(crate) queue: usize,
    pub(crate) connections: usize,
    pub(crate) policies: Option<PathBuf>,
    pub(crate) policies_keep_removed: bool,
    pub(crate) advise: bool,
    pub(crate) novacron_hold_ttl_ms: u64,
    pub(crate) novacron_max_vms_per_node: u32,
    pub(crate) log_level: String,
    pub(crate) log_format: LogFormat,
}

impl Settings {
    /// Reads the file, if one is named, and fills in what flag and environment left open.
    pub(crate) fn complete(self) -> anyhow::Result<Complete> {
        let file = match &self.config {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                toml::from_str(&text).with_context(|| format!("in {}", path.display()))?
            }
            None => Settings::default(),
        };
        Ok(self.over(file))
    }

    fn over(self, file: Settings) -> Complete {
        let loopback = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
        let dimensions = if self.dimensions.is_empty() { file.dimensions } else { self.dimensions };
        Complete {
            listen: self.listen.or(file.listen).unwrap_or(loopback),
            data_dir: self.data_dir.or(file.data_dir).unwrap_or("novaplace-data".into()),
            insecure_public: self.insecure_public || file.insecure_public,
            ai_routes_open: self.ai_routes_open || file.ai_routes_open,
            demo: self.demo || file.demo,
            dimensions,
            snapshot_every: self.snapshot_every.or(file.snapshot_every).unwrap_or(100_000),
            retain: self.retain.or(file.retain).unwrap_or(1_000_000),
            queue: self.queue.or(file.queue).unwrap_or(4_096).max(1),
            connections: self.connections.or(file.connections).unwrap_or(2_048).max(1),
            policies: self.policies.or(file.policies),
            policies_keep_removed: self.policies_keep_removed || file.policies_keep_removed,
            advise: self.advise || file.advise,
            novacron_hold_ttl_ms: self
                .novacron_hold_ttl_ms
                .or(file.novacron_hold_ttl_ms)
                .unwrap_or(30_000),
            novacron_max_vms_per_node: self
                .novacron_max_vms_per_node
                .or(file.novacron_max_vms_per_node)
                .unwrap_or(0),
            log_level: self.log_level.or(file.log_level).unwrap_or("info".into()),
            log_format: self.log_format.or(file.log_format).unwrap_or(LogFormat::Text),
        }
    }
}

/// Every setting with its flag, its environment variable, its key in the file and what it does.
pub(crate) fn schema() -> Value {
    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        _settings: Settings,
    }
    let command = Only::command();
    let settings = command.get_arguments().filter_map(|argument| {
        let flag = argument.get_long().filter(|flag| *flag != "help")?;
        let in_file = (flag != "config").then(|| argument.get_id().to_string());
        Some(json!({
            "flag": format!("--{flag}"),
            "environment": argument.get_env().map(|name| name.to_string_lossy()),
            "file_key": in_file,
            "help": argument.get_help().map(ToString::to_string),
        }))
    });
    json!({
        "precedence": ["flag", "environment", "file", "default"],
        "settings": settings.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_outranks_the_file_and_the_file_outranks_the_default() {
        let file: Settings =
            toml::from_str("queue = 7\nretain = 8\nlog_format = \"json\"").expect("valid");
        let flags = Settings { queue: Some(9), ..Settings::default() };
        let complete = flags.over(file);
        assert_eq!((complete.queue, complete.retain), (9, 8));
        assert_eq!(complete.log_format, LogFormat::Json);
        assert_eq!(complete.snapshot_every, 100_000);
        assert!(complete.listen.ip().is_loopback());
    }

    #[test]
    fn the_directory_of_policies_can_be_named_by_flag_or_file() {
        let file = || -> Settings {
            toml::from_str("policies = \"a\"\npolicies_keep_removed = true").expect("valid")
        };
        let complete = Settings::default().over(file());
        assert_eq!(complete.policies, Some("a".into()));
        assert!(complete.policies_keep_removed);
        let flags = Settings { policies: Some("b".into()), ..Settings::default() };
        assert_eq!(flags.over(file()).policies, Some("b".into()));
        assert_eq!(Settings::default().over(Settings::default()).policies, None);
    }

    #[test]
    fn an_unknown_key_in_the_file_is_named() {
        let error = toml::from_str::<Settings>("que = 7").expect_err("misspelt");
        assert!(error.to_string().contains("que"), "{error}");
    }

    #[test]
    fn the_schema_lists_every_setting_of_the_file() {
        let schema = schema();
        let listed = schema["settings"].as_array().expect("a list");
        let key = |setting: &Value| setting["file_key"].as_str().map(str::to_owned);
        let keys: Vec<String> = listed.iter().filter_map(key).collect();
        for name in [
            "listen",
            "data_dir",
            "dimensions",
            "snapshot_every",
            "policies",
            "log_level",
            "advise",
        ] {
            assert!(keys.iter().any(|key| key == name), "{name} in {keys:?}");
        }
        assert!(listed.iter().all(|setting| setting["help"].is_string()));
    }
}
