//! The whole service under open-loop load while a policy file is replaced again and again.
//!
//! Every version of the file is put in place by a rename, as an operator's tool would do it. It is
//! in force when the first answer to a placement names a newer policy revision than all before, so
//! what is measured is what callers see.

use crate::http::process::Process;
use crate::http::{Answers, FILL_PERMILLE, HttpSpec, WARM_UP, bodies, drive, load};
use crate::recovery::Failure;
use fixture::{Fleet, FleetSpec};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a version may take until the bench gives up.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
pub struct ReloadSpec {
    pub load: HttpSpec,
    /// The directory of policies; made if it is not there.
    pub policies: PathBuf,
    /// Time between two versions of the file.
    pub every_ms: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct ReloadReport {
    pub hosts: usize,
    pub vms: usize,
    pub seed: u64,
    pub rps: u32,
    pub achieved_rps: f64,
    pub requests: usize,
    pub placed: usize,
    pub no_room: usize,
    /// Answers that were neither.
    pub failed: usize,
    /// Requests that were never answered.
    pub dropped: usize,
    pub reloads: usize,
    /// From the rename of the file to the first answer that was worked out under it.
    pub active_within_p50_ms: f64,
    pub active_within_max_ms: f64,
    pub http_p50_ms: f64,
    pub http_p99_ms: f64,
    pub http_max_ms: f64,
    /// The same load just before, while no file was replaced.
    pub undisturbed_p50_ms: f64,
    pub undisturbed_p99_ms: f64,
    pub undisturbed_max_ms: f64,
}

pub fn run(spec: &ReloadSpec) -> Result<ReloadReport, Failure> {
    let ReloadSpec { load: http, policies, every_ms } = spec;
    std::fs::create_dir_all(policies)?;
    replace(policies, 0)?;
    let fleet = FleetSpec::new(http.hosts, http.vms, http.seed);
    let fleet = Fleet::generate(&FleetSpec { fill_permille: FILL_PERMILLE, ..fleet });
    // As long without reloads as with them.
    let bodies = bodies(&HttpSpec { seconds: 2 * http.seconds, ..http.clone() }, &fleet)?;
    let more = ["--policies".as_ref(), policies.as_os_str()];
    let service = Process::start(&http.program, &http.data_dir, &more)?;
    let (hosts, vms) = (fleet.hosts.len(), fleet.placed.len());
    load(service.address(), fleet)?;

    let newest = AtomicU64::new(0);
    let see = |answer: &[u8]| {
        if let Some(revision) = policy_revision(answer) {
            newest.fetch_max(revision, Ordering::Relaxed);
        }
    };
    let warm_up = http.rps as usize * WARM_UP.as_secs() as usize;
    let (first, rest) = bodies.split_at(warm_up.min(bodies.len()));
    let (before, measured) = rest.split_at(rest.len() / 2);
    drive(service.address(), first, http.rps, &see)?;
    let undisturbed = Answers::new(drive(service.address(), before, http.rps, &see)?);
    let (done, every) = (AtomicBool::new(false), Duration::from_millis(*every_ms));
    let (answers, seconds, mut times) = std::thread::scope(|scope| {
        let replacing = scope.spawn(|| replace_until(&done, policies, every, &newest));
        let started = Instant::now();
        let answers = drive(service.address(), measured, http.rps, &see);
        let seconds = started.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let times = replacing.join().map_err(|_| "the thread that replaces files panicked")??;
        Ok::<_, Failure>((Answers::new(answers?), seconds, times))
    })?;
    service.stop()?;

    times.sort_by(f64::total_cmp);
    let (placed, no_room, dropped) = (answers.count(201), answers.count(200), answers.dropped());
    Ok(ReloadReport {
        hosts,
        vms,
        seed: http.seed,
        rps: http.rps,
        achieved_rps: (placed + no_room) as f64 / seconds,
        requests: answers.0.len(),
        placed,
        no_room,
        failed: answers.0.len() - placed - no_room - dropped,
        dropped,
        reloads: times.len(),
        active_within_p50_ms: times.get(times.len() / 2).copied().unwrap_or(0.0),
        active_within_max_ms: times.last().copied().unwrap_or(0.0),
        http_p50_ms: answers.percentile_ms(500),
        http_p99_ms: answers.percentile_ms(990),
        http_max_ms: answers.percentile_ms(1000),
        undisturbed_p50_ms: undisturbed.percentile_ms(500),
        undisturbed_p99_ms: undisturbed.percentile_ms(990),
        undisturbed_max_ms: undisturbed.percentile_ms(1000),
    })
}

/// Replaces the file until the load is over; how many milliseconds each version took.
fn replace_until(
    done: &AtomicBool,
    policies: &Path,
    every: Duration,
    newest: &AtomicU64,
) -> Result<Vec<f64>, Failure> {
    let mut times = Vec::new();
    let mut version = 0;
    while !done.load(Ordering::Relaxed) {
        version += 1;
        let before = newest.load(Ordering::Relaxed);
        let renamed = replace(policies, version)?;
        while newest.load(Ordering::Relaxed) <= before {
            if done.load(Ordering::Relaxed) {
                // Nobody asks any more, so nobody can tell.
                return Ok(times);
            }
            if renamed.elapsed() > PATIENCE {
                return Err(format!("version {version} is not in force after 10 s").into());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        times.push(renamed.elapsed().as_secs_f64() * 1e3);
        std::thread::sleep(every.saturating_sub(renamed.elapsed()));
    }
    Ok(times)
}

/// Puts a version of the file in place; says when.
fn replace(policies: &Path, version: u32) -> Result<Instant, Failure> {
    let text = format!(
        r#"policy "Reload bench" {{
  rules {{
    rule "crowded" {{
      when {{ candidateNode.vm_count > {} }}
      then {{ filter "crowded" }}
    }}
    rule "room" {{
      when {{ candidateNode.utilisation.cpu_millis < 90 }}
      then {{ score (100 - candidateNode.utilisation.cpu_millis) / 10 "room" }}
    }}
  }}
}}
"#,
        1_000_000 + version
    );
    let beside = policies.join("reload-bench.next");
    std::fs::write(&beside, text)?;
    let now = Instant::now();
    std::fs::rename(&beside, policies.join("reload-bench.policy"))?;
    Ok(now)
}

/// The number after `"policy_revision":`; the answer is not read any further.
fn policy_revision(answer: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"\"policy_revision\":";
    let start = answer.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let digits = answer[start..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.map(|digit| u64::from(digit - b'0')).reduce(|number, digit| number * 10 + digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_is_found_wherever_it_stands() {
        assert_eq!(policy_revision(b"{\"a\":1,\"policy_revision\":207,\"b\":2}"), Some(207));
        assert_eq!(policy_revision(b"{\"policy_revision\":3}"), Some(3));
        for other in ["", "{}", "{\"policy_revision\":}", "{\"policy_revision\":\"x\"}"] {
            assert_eq!(policy_revision(other.as_bytes()), None, "{other}");
        }
    }
}
