//! A directory of policies under a running service: every way in which files change, and requests
//! that go on meanwhile.

use crate::world::World;
use fixture::Dice;
use policy::{Syntax, load};
use server::{PolicyDirectory, Watching};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Bounds every wait; nothing is expected to take this long.
const PATIENCE: Duration = Duration::from_secs(30);

struct Followed {
    world: World,
    dir: TempDir,
    _watching: Watching,
}

impl Followed {
    async fn start(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            fs::write(dir.path().join(name), text).expect("written");
        }
        let world = World::start().await;
        let service = world.service().clone();
        let path = dir.path().to_owned();
        let watch = move || PolicyDirectory { path, keep_removed: false }.watch(&service);
        let watching = tokio::task::spawn_blocking(watch).await.expect("no panic");
        Self { world, dir, _watching: watching.expect("a directory that is there") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Texts in force by policy.
    fn active(&self) -> BTreeMap<String, String> {
        self.world.service().writer().read(|state| {
            let active = state.library().iter().filter(|it| it.activation.is_some());
            let text =
                |it: &policy::Installed| it.newest().expect("a text").source.text().to_owned();
            active.map(|it| (it.id.to_string(), text(it))).collect()
        })
    }

    fn rejected(&self) -> Vec<(String, &'static str)> {
        let rejected = self.world.service().policy_files().rejected();
        rejected.iter().map(|it| (it.file.clone(), it.diagnostics[0].code)).collect()
    }

    /// Returns when `done` is true.
    async fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !done(self) {
            let (active, rejected) = (self.active(), self.rejected());
            assert!(started.elapsed() < PATIENCE, "{what}: {active:#?} {rejected:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn until_text(&self, id: &str, text: &str) {
        self.until(text, |it| it.active().get(id).map(String::as_str) == Some(text)).await;
    }

    async fn until_rejected(&self, file: &str, code: &str) {
        self.until(code, |it| it.rejected() == [(file.to_owned(), code)]).await;
    }
}

fn text(id: &str, limit: usize) -> String {
    let rule = format!("when {{ node.vm_count > {limit} }} then {{ filter \"full\" }}");
    format!(
        "policy \"Crowded hosts\" {{\n  id = \"{id}\"\n  rules {{ rule \"full\" {{ {rule} }} }}\n}}\n"
    )
}

/// Puts a file in place as a whole.
fn replace(path: &Path, text: impl AsRef<[u8]>) {
    let beside = path.with_extension("tmp");
    fs::write(&beside, text).expect("written");
    fs::rename(&beside, path).expect("renamed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_in_force_before_the_service_is_ready() {
    let (one, two) = (text("a", 1), text("b", 2));
    let followed =
        Followed::start(&[("a.policy", &one), ("b.policy", &two), ("c.policy", "")]).await;
    assert_eq!(followed.active(), [("a".into(), one), ("b".into(), two)].into());
    assert_eq!(followed.rejected(), [("c.policy".into(), "empty-file")]);
    let metrics = followed.world.get("/metrics").await.text;
    assert!(metrics.contains("policy_files_total{outcome=\"accepted\"} 2"), "{metrics}");
    assert!(metrics.contains("policy_files_total{outcome=\"rejected\"} 1"), "{metrics}");
    followed.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_not_there_is_refused_at_once() {
    let world = World::start().await;
    let path = std::env::temp_dir().join("novaplace-has-no-such-directory");
    let refused = PolicyDirectory { path, keep_removed: false }.watch(world.service());
    assert_eq!(refused.expect_err("not there").kind(), std::io::ErrorKind::NotFound);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_followed_however_they_are_written() {
    let texts: Vec<String> = (0..10).map(|limit| text("a", limit)).collect();
    let followed = Followed::start(&[("a.policy", &texts[0])]).await;
    let path = followed.path("a.policy");
    // Renamed over.
    replace(&path, &texts[1]);
    followed.until_text("a", &texts[1]).await;
    // Truncated and written.
    fs::write(&path, &texts[2]).expect("written");
    followed.until_text("a", &texts[2]).await;
    // Written over in place, without being truncated.
    let mut file = fs::OpenOptions::new().write(true).open(&path).expect("opened");
    file.write_all(texts[3].as_bytes()).expect("written");
    drop(file);
    followed.until_text("a", &texts[3]).await;
    // Removed and created again.
    fs::remove_file(&path).expect("removed");
    fs::write(&path, &texts[4]).expect("written");
    followed.until_text("a", &texts[4]).await;
    // Emptied, broken, huge, a link: each leaves the last good one in force.
    let before = followed.active();
    fs::write(&path, "").expect("written");
    followed.until_rejected("a.policy", "empty-file").await;
    fs::write(&path, vec![b' '; policy::MAX_TEXT_BYTES + 1]).expect("written");
    followed.until_rejected("a.policy", "too-large").await;
    replace(&path, b"\xff\xfe");
    followed.until_rejected("a.policy", "not-text").await;
    fs::remove_file(&path).expect("removed");
    let outside = tempfile::NamedTempFile::new().expect("a file");
    fs::write(outside.path(), &texts[5]).expect("written");
    std::os::unix::fs::symlink(outside.path(), &path).expect("linked");
    followed.until_rejected("a.policy", "link").await;
    assert_eq!(followed.active(), before);
    // Mended.
    replace(&path, &texts[6]);
    followed.until_text("a", &texts[6]).await;
    assert_eq!(followed.rejected(), []);
    // Renamed: stays. Removed: ends.
    fs::rename(&path, followed.path("b.policy")).expect("renamed");
    let named = |it: &Followed| it.world.service().policy_files().file_of("a");
    followed.until("renamed", |it| named(it).as_deref() == Some("b.policy")).await;
    assert_eq!(followed.active()["a"], texts[6]);
    fs::remove_file(followed.path("b.policy")).expect("removed");
    followed.until("removed", |it| it.active().is_empty()).await;
    followed.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_grows_slowly_counts_when_it_is_whole() {
    let (one, two) = (text("a", 1), text("a", 2));
    let followed = Followed::start(&[("a.policy", &one)]).await;
    let mut file = fs::File::create(followed.path("a.policy")).expect("created");
    for piece in two.as_bytes().chunks(16) {
        file.write_all(piece).expect("written");
        file.flush().expect("flushed");
        tokio::time::sleep(Duration::from_millis(30)).await;
        let active = followed.active();
        assert!(active["a"] == one || active["a"] == two, "{active:?}");
    }
    drop(file);
    followed.until_text("a", &two).await;
    followed.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_exchanged_is_followed_and_one_that_vanishes_ends_nothing() {
    let base = tempfile::tempdir().expect("a directory");
    let (one, two) = (text("a", 1), text("a", 2));
    for (name, text) in [("v1", &one), ("v2", &two)] {
        fs::create_dir(base.path().join(name)).expect("made");
        fs::write(base.path().join(name).join("a.policy"), text).expect("written");
    }
    let link = base.path().join("now");
    std::os::unix::fs::symlink("v1", &link).expect("linked");
    let world = World::start().await;
    let (service, path) = (world.service().clone(), link.clone());
    let watch = move || PolicyDirectory { path, keep_removed: false }.watch(&service);
    let watching = tokio::task::spawn_blocking(watch).await.expect("no panic").expect("there");
    let followed = Followed { world, dir: base, _watching: watching };
    followed.until_text("a", &one).await;
    std::os::unix::fs::symlink("v2", followed.path("next")).expect("linked");
    fs::rename(followed.path("next"), &link).expect("exchanged");
    followed.until_text("a", &two).await;
    fs::remove_file(&link).expect("removed");
    followed.until_rejected(".", "unreadable-directory").await;
    assert_eq!(followed.active()["a"], two);
    std::os::unix::fs::symlink("v1", &link).expect("linked");
    followed.until_text("a", &one).await;
    assert_eq!(followed.rejected(), []);
    followed.world.stop().await;
}

const ROUNDS: u64 = 25;
const FILES: u64 = 16;

#[tokio::test(flavor = "multi_thread")]
async fn four_hundred_broken_files_on_disk_never_come_into_force() {
    let good: Vec<String> = (0..FILES).map(|file| text(&format!("p{file:02}"), 3)).collect();
    let names: Vec<String> = (0..FILES).map(|file| format!("p{file:02}.policy")).collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(&good).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let followed = Followed::start(&files).await;
    for round in 0..ROUNDS {
        let dice = &mut Dice::stream(0x5eed_f11e, round);
        for (name, text) in names.iter().zip(&good) {
            let path = followed.path(name);
            let cut = text.as_bytes()[..dice.row(text.trim_end().len())].to_vec();
            match dice.below(4) {
                0 => fs::write(&path, cut).expect("written"),
                1 => replace(&path, cut),
                2 => {
                    fs::remove_file(&path).expect("there");
                    fs::write(&path, cut).expect("written");
                }
                _ => {
                    let mut noise = text.clone().into_bytes();
                    let at = dice.row(noise.len());
                    noise[at] = dice.below(256) as u8;
                    replace(&path, noise);
                }
            }
        }
        // Written last; once it is in force, all the others have been seen.
        let last = text("zz", round as usize);
        replace(&followed.path("zz.policy"), &last);
        followed.until_text("zz", &last).await;
        for (id, text) in followed.active() {
            let (program, _) = load(&text, Syntax::Dsl).unwrap_or_else(|it| panic!("{it:?}"));
            assert_eq!(program.id(), id, "round {round}");
            let whole = text.trim_end().ends_with('}') && text.len() + 2 > good[0].len();
            assert!(whole, "round {round}: {text}");
        }
    }
    for (name, text) in names.iter().zip(&good) {
        replace(&followed.path(name), text);
    }
    followed.until("mended", |it| it.rejected().is_empty()).await;
    for (file, text) in good.iter().enumerate() {
        followed.until_text(&format!("p{file:02}"), text).await;
    }
    followed.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_on_while_files_are_replaced() {
    let followed = Followed::start(&[("a.policy", &text("a", 1_000))]).await;
    for host in 0..4 {
        followed.world.host(&format!("h{host}"), 64).await;
    }
    let (done, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let address = followed.world.address;
    let callers: Vec<_> = (0..4)
        .map(|caller| {
            let (done, answered) = (Arc::clone(&done), Arc::clone(&answered));
            tokio::spawn(async move {
                for number in 0.. {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    let id = format!("vm-{caller}-{number}");
                    let body = format!(r#"{{"vm":{{"id":"{id}","demand":{{"cpu_millis":1}}}}}}"#);
                    let answer = crate::world::post(address, "/v1/placements", &body).await;
                    assert_eq!(answer.status, 201, "{answer:?}");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for limit in 0..10 {
        let next = text("a", 10_000 + limit);
        replace(&followed.path("a.policy"), &next);
        followed.until_text("a", &next).await;
    }
    done.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.expect("every request was answered");
    }
    assert!(answered.load(Ordering::Relaxed) > 0);
    followed.world.stop().await;
}
