//! The follower without a disk: what files may say, in every order, and ten thousand broken ones.

use super::follow::Follower;
use super::scan::{Content, Found, Scan};
use crate::service::Service;
use cluster::{Amounts, Host, Name};
use engine::{Call, Engine, Options, PutMode, Request};
use fixture::Dice;
use policy::{Activation, Configuration, Edit, EditKind, Source, Syntax, Value, load};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{DiskOptions, SimDisk, SimulatedLog, SimulatedOptions};

const LONG: Duration = Duration::from_secs(5);

struct Bench {
    service: Service,
    follower: Follower,
    now: Instant,
    files: BTreeMap<String, Vec<u8>>,
}

impl Bench {
    fn new() -> Self {
        let disk = SimDisk::new(DiskOptions::default());
        let log = SimulatedLog::open(&disk, SimulatedOptions::default()).expect("an empty log");
        let engine = Engine::open(log, Options::default()).expect("an empty state");
        let (service, _) = Service::start(engine, 64, Arc::new(|| 1_000)).expect("a thread");
        for number in 0..3 {
            let id = Name::new(&format!("h{number}")).expect("a name");
            let host = Box::new(Host::new(id, Amounts::cpu_memory(8_000, 32_768)));
            let mode = PutMode::Create;
            let put = Request::PutHost { host, mode, if_generation: None };
            service.writer().call(Call::internal(put)).expect("a host");
        }
        let follower = Follower::new(service.clone(), false);
        Self { service, follower, now: Instant::now(), files: BTreeMap::new() }
    }

    /// The same service, started again.
    fn restarted(mut self) -> Self {
        self.follower = Follower::new(self.service.clone(), false);
        self
    }

    fn put(&mut self, file: &str, text: impl AsRef<[u8]>) -> &mut Self {
        self.files.insert(file.into(), text.as_ref().to_vec());
        self.look()
    }

    fn remove(&mut self, file: &str) -> &mut Self {
        self.files.remove(file).expect("a file");
        self.look()
    }

    fn look(&mut self) -> &mut Self {
        let scan: Scan = self
            .files
            .iter()
            .map(|(name, bytes)| {
                let content = Content::Bytes(bytes.clone());
                (name.clone(), Found { stamp: None, content })
            })
            .collect();
        self.follower.take(&scan, self.now);
        self
    }

    fn wait(&mut self) -> &mut Self {
        self.now += LONG;
        self.look()
    }

    fn edit(&self, policy: &str, change: EditKind) {
        let (user, description) = ("ops".into(), String::new());
        let edit = Box::new(Edit { policy: policy.into(), change, user, description });
        let request = Request::EditPolicy { edit, if_revision: None };
        self.service.writer().call(Call::internal(request)).expect("a good edit");
    }

    fn tune(&self, policy: &str, priority: i32, limit: f64) {
        let parameter_values = [("limit".into(), Value::Number(limit))].into();
        let configuration = Configuration { priority, parameter_values };
        self.edit(policy, EditKind::Activate(Activation::from(&configuration)));
    }

    fn revision(&self) -> u64 {
        self.service.writer().read(|state| state.policy().revision)
    }

    /// Texts in force by policy.
    fn active(&self) -> BTreeMap<String, String> {
        self.service.writer().read(|state| {
            let active = state.library().iter().filter(|it| it.activation.is_some());
            active
                .map(|it| {
                    (it.id.to_string(), it.newest().expect("a text").source.text().to_owned())
                })
                .collect()
        })
    }

    fn configuration(&self, policy: &str) -> Option<Configuration> {
        self.service.writer().read(|state| {
            let installed = state.library().get(policy)?;
            installed.activation.as_ref().map(Activation::configuration)
        })
    }

    /// Codes of what is wrong, by file.
    fn rejected(&self) -> Vec<(String, &'static str)> {
        let rejected = self.service.policy_files().rejected();
        rejected.iter().map(|it| (it.file.clone(), it.diagnostics[0].code)).collect()
    }

    #[track_caller]
    fn check(&self, active: &[(&str, &str)], rejected: &[(&str, &str)]) {
        let expected = active.iter().map(|(id, text)| (id.to_string(), text.to_string()));
        assert_eq!(self.active(), expected.collect());
        let found = self.rejected();
        let found: Vec<(&str, &str)> = found.iter().map(|(file, code)| (&**file, *code)).collect();
        assert_eq!(found, rejected);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // The other benches' writers go on.
        self.service.writer().stop();
    }
}

fn text(id: &str, metadata: &str, limit: u32) -> String {
    format!(
        r#"policy "A policy" {{
  id = "{id}"
  metadata {{ {metadata} }}
  parameters {{ param "limit" {{ type = "int" default = 5 min = 0 max = {limit} }} }}
  rules {{ rule "busy" {{
    when {{ candidateNode.vm_count > param.limit }}
    then {{ filter "busy" }}
  }} }}
}}
"#
    )
}

const YAML: &str = "\
policy: Why
id: y
rules:
  - rule: full
    when: node.vm_count > 3
    then:
      - filter: full
  - rule: room
    when: node.vm_count < 2
    then:
      - score 5 \"room\"
...
";

#[test]
fn a_good_file_is_in_force_and_a_bad_one_changes_nothing() {
    let (one, two) = (text("a", "", 9), text("a", "", 10));
    let mut bench = Bench::new();
    bench.put("a.policy", &one).check(&[("a", &one)], &[]);
    for (bad, code) in [
        ("", "empty-file"),
        (" \n\t", "empty-file"),
        (&one[..one.len() / 2], "unexpected-token"),
        ("\u{0}\u{0}\u{0}", "missing-header"),
    ] {
        let before = bench.revision();
        bench.put("a.policy", bad);
        assert_eq!(bench.active(), [("a".to_string(), one.clone())].into(), "{bad:?}");
        assert_eq!(bench.rejected().len(), 1, "{bad:?}");
        if code.ends_with("-file") {
            assert_eq!(bench.rejected()[0].1, code, "{bad:?}");
        }
        assert_eq!(bench.revision(), before, "{bad:?}");
    }
    bench
        .put("a.policy", b"policy \"x\" {\n  id = \"\xff\"")
        .check(&[("a", &one)], &[("a.policy", "not-text")]);
    let place = &bench.service.policy_files().rejected()[0].diagnostics[0];
    assert_eq!((place.line, place.column), (2, 9));
    bench.put("a.policy", &two).check(&[("a", &two)], &[]);
    let users = bench.service.writer().read(|state| {
        state.library().audit().map(|entry| entry.user.clone()).collect::<BTreeSet<String>>()
    });
    assert_eq!(users, ["file:a.policy".to_string()].into());
}

#[test]
fn the_same_text_again_is_no_change() {
    let one = text("a", "", 9);
    let mut bench = Bench::new();
    bench.put("a.policy", &one);
    let before = bench.revision();
    bench.put("a.policy", &one).look().wait();
    assert_eq!(bench.revision(), before);
}

#[test]
fn yaml_needs_its_end_marker() {
    let mut bench = Bench::new();
    bench.put("y.yaml", YAML).check(&[("y", YAML)], &[]);
    for end in 0..YAML.len() {
        bench.put("y.yaml", &YAML[..end]);
        assert_eq!(bench.active(), [("y".to_string(), YAML.to_string())].into(), "up to {end}");
        assert_eq!(bench.rejected().len(), 1, "up to {end}");
    }
    let half = YAML.split_once("  - rule: room").expect("two rules").0;
    assert!(load(half, Syntax::Yaml).is_ok(), "half of it is a policy, too");
    bench.put("y.yaml", half).check(&[("y", YAML)], &[("y.yaml", "no-end-marker")]);
}

#[test]
fn the_first_of_two_files_by_name_speaks_for_a_policy() {
    let (one, two) = (text("x", "", 9), text("x", "", 10));
    let mut bench = Bench::new();
    bench.put("b.policy", &two).check(&[("x", &two)], &[]);
    bench.put("a.policy", &one).check(&[("x", &one)], &[("b.policy", "duplicate-policy")]);
    let mut again = bench.restarted();
    again.look().check(&[("x", &one)], &[("b.policy", "duplicate-policy")]);
    let notes = again.revision();
    again.look().wait().check(&[("x", &one)], &[("b.policy", "duplicate-policy")]);
    assert_eq!(again.revision(), notes, "no back and forth");
    again.remove("a.policy").wait().check(&[("x", &two)], &[]);
}

#[test]
fn a_removed_file_ends_its_policy_after_a_while_and_a_renamed_one_does_not() {
    let one = text("a", "", 9);
    let mut bench = Bench::new();
    bench.put("a.policy", &one).remove("a.policy").check(&[("a", &one)], &[]);
    bench.put("a.policy", &one);
    let before = bench.revision();
    bench.wait().check(&[("a", &one)], &[]);
    // Moved, with what an operator has set since.
    bench.tune("a", 3, 7.0);
    let moved = bench.files.remove("a.policy").expect("there");
    bench.put("b.policy", moved).wait().check(&[("a", &one)], &[]);
    assert_eq!(bench.revision(), before + 1, "only the tuning");
    bench.remove("b.policy").wait().check(&[], &[]);
    assert!(bench.service.writer().read(|state| state.library().get("a").is_some()), "not deleted");
    bench.put("c.policy", &one).check(&[("a", &one)], &[]);
}

#[test]
fn a_removed_file_leaves_its_policy_where_that_is_wanted() {
    let one = text("a", "", 9);
    let mut bench = Bench::new();
    bench.follower = Follower::new(bench.service.clone(), true);
    bench.put("a.policy", &one).remove("a.policy").wait().wait().check(&[("a", &one)], &[]);
}

#[test]
fn a_file_with_another_policy_in_it_ends_the_one_before() {
    let (one, two) = (text("a", "", 9), text("b", "", 9));
    let mut bench = Bench::new();
    bench.put("f.policy", &one).put("f.policy", &two).check(&[("b", &two)], &[]);
    // Two files that swap their policies.
    bench.put("g.policy", &one).check(&[("a", &one), ("b", &two)], &[]);
    bench.files.insert("f.policy".into(), one.clone().into());
    bench.put("g.policy", &two).wait().check(&[("a", &one), ("b", &two)], &[]);
}

#[test]
fn what_an_operator_has_set_stays_as_long_as_it_is_allowed() {
    let mut bench = Bench::new();
    bench.put("a.policy", text("a", "", 9));
    bench.tune("a", 4, 8.0);
    let other = text("a", "note = \"another text\"", 9);
    bench.put("a.policy", &other);
    let kept = bench.configuration("a").expect("active");
    assert_eq!((kept.priority, kept.parameter_values["limit"].clone()), (4, Value::Number(8.0)));
    bench.put("a.policy", text("a", "priority = \"-2\"", 7));
    let kept = bench.configuration("a").expect("active");
    assert_eq!(kept, Configuration { priority: -2, ..Configuration::default() });
    let warnings = bench.service.policy_files().accepted()[0].warnings.clone();
    assert!(warnings.iter().any(|it| it.code == "setting-dropped"), "{warnings:?}");
}

#[test]
fn metadata_says_whether_to_activate_and_with_which_priority() {
    let passive = text("a", "activate = \"false\"", 9);
    let mut bench = Bench::new();
    bench.put("a.policy", &passive).check(&[], &[]);
    assert!(bench.service.writer().read(|state| state.library().get("a").is_some()));
    bench.put("a.policy", text("a", "priority = \"40\"", 9));
    assert_eq!(bench.configuration("a").expect("active").priority, 40);
    bench.put("a.policy", text("a", "priority = \"high\" activate = \"maybe\"", 9));
    let found = bench.service.policy_files().rejected()[0].diagnostics.clone();
    let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(fields, ["metadata.activate", "metadata.priority"]);
    assert!(found.iter().all(|it| it.line == 3), "{found:?}");
    assert_eq!(bench.configuration("a").expect("active").priority, 40);
}

#[test]
fn starting_again_undoes_nothing_that_an_operator_did() {
    let (one, two) = (text("a", "", 9), text("a", "", 10));
    let mut bench = Bench::new();
    bench.put("a.policy", &one).put("a.policy", &two);
    bench.edit("a", EditKind::Rollback { version: 1 });
    let mut bench = bench.restarted();
    bench.look().check(&[("a", &one)], &[]);
    bench.edit("a", EditKind::Deactivate);
    let mut bench = bench.restarted();
    bench.look().check(&[], &[]);
    // A text that is new does count, and so does a file that is put back.
    let three = text("a", "", 11);
    bench.put("a.policy", &three).check(&[("a", &three)], &[]);
    bench.remove("a.policy").wait().check(&[], &[]);
    bench.files.insert("a.policy".into(), three.clone().into());
    let mut bench = bench.restarted();
    bench.look().check(&[("a", &three)], &[]);
    // A bad file or none at all leaves the log's policy in force.
    bench.files.insert("a.policy".into(), "policy \"".into());
    let mut bench = bench.restarted();
    assert_eq!(bench.look().active().len(), 1);
    bench.files.clear();
    let mut bench = bench.restarted();
    assert_eq!(bench.look().wait().active().len(), 1);
}

#[test]
fn what_cannot_be_installed_is_rejected_with_its_reason() {
    let no_default = text("a", "", 9).replace("default = 5", "");
    let mut bench = Bench::new();
    bench.put("a.policy", no_default).check(&[], &[("a.policy", "not-installable")]);
    // Its removal ends nothing that somebody else has installed under the id.
    let theirs = text("a", "", 9);
    let source = Source::new(theirs.as_str(), Syntax::Dsl);
    let activation = Some(Activation::default());
    bench.edit("a", EditKind::Put { source, activation });
    bench.remove("a.policy").wait().check(&[("a", &theirs)], &[]);
}

#[test]
fn a_policy_that_leaves_no_host_comes_with_a_warning() {
    let all =
        text("a", "", 9).replace("candidateNode.vm_count > param.limit", "node.vm_count >= 0");
    let mut bench = Bench::new();
    bench.put("a.policy", &all).check(&[("a", &all)], &[]);
    let warnings = bench.service.policy_files().accepted()[0].warnings.clone();
    assert!(warnings.iter().any(|it| it.code == "no-host-left"), "{warnings:?}");
}

const CHANGES: u64 = 10_000;

#[test]
fn ten_thousand_broken_files_never_come_into_force() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/examples");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the examples")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    // One notation of each; the other would be a duplicate.
    names.dedup_by_key(|name| name.split('.').next().map(str::to_owned));
    names.push("y.yaml".into());
    let whole = |name: &String| match name.as_str() {
        "y.yaml" => YAML.to_string(),
        name => std::fs::read_to_string(folder.join(name)).expect("an example"),
    };
    let texts: Vec<String> = names.iter().map(whole).collect();
    let mut bench = Bench::new();
    let mut offered = BTreeSet::new();
    for (name, text) in names.iter().zip(&texts) {
        offered.insert(text.clone());
        bench.put(name, text);
    }
    assert_eq!(bench.rejected(), []);
    let (mut refused, mut taken) = (0u64, 0u64);
    for seed in 0..CHANGES {
        let dice = &mut Dice::stream(0x0bad_f11e, seed);
        let file = dice.row(names.len());
        let (name, text) = (&names[file], &texts[file]);
        let truncated = dice.chance(500);
        let bytes = if truncated {
            text.as_bytes()[..dice.row(text.trim_end().len())].to_vec()
        } else {
            mutated(text.as_bytes(), dice)
        };
        let (before, revision) = (bench.active(), bench.revision());
        offered.insert(String::from_utf8_lossy(&bytes).into_owned());
        bench.put(name, &bytes);
        let after = bench.active();
        if bench.rejected().iter().any(|(file, _)| file == name) {
            refused += 1;
            assert_eq!((&after, bench.revision()), (&before, revision), "seed {seed}");
        } else {
            taken += 1;
            assert!(!truncated, "seed {seed}: half of {name} is in force");
            let bytes = std::str::from_utf8(&bytes).expect("text");
            load(bytes, Syntax::of_file(name)).unwrap_or_else(|it| panic!("seed {seed}: {it:?}"));
        }
        for (id, text) in &after {
            assert!(offered.contains(text), "seed {seed}: {id} is in force from nowhere");
        }
        if bench.follower.patience().is_some() || seed % 50 == 0 {
            for (name, text) in names.iter().zip(&texts) {
                bench.files.insert(name.clone(), text.clone().into());
            }
            bench.look();
            assert_eq!(bench.rejected(), [], "seed {seed}");
        }
    }
    println!("{refused} of {CHANGES} changes refused, {taken} were good policies");
    assert!(refused > CHANGES / 2 && taken > CHANGES / 100, "{refused} {taken}");
}

fn mutated(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    const PIECES: [&str; 12] =
        ["{", "}", "\"", "&&", "!", "-", "== 1e999", "rule \"x\" {", "\u{0}", "...\n", "7", " "];
    let mut text = text.to_vec();
    for _ in 0..dice.between(1, 3) {
        let from = dice.row(text.len() + 1);
        let to = (from + *dice.pick(&[1, 1, 2, 5, 50])).min(text.len());
        match dice.below(5) {
            0 => drop(text.drain(from..to)),
            1 => drop(text.splice(from..from, dice.pick(&PIECES).bytes())),
            2 => drop(text.splice(from..to, dice.pick(&PIECES).bytes())),
            3 => drop(text.splice(from..from, text[from..to].to_vec())),
            _ => text[from..to].fill(dice.below(256) as u8),
        }
    }
    text
}
