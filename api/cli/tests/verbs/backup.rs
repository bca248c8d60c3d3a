//! `backup`, `restore`, and `decision` without a service.

use crate::service::{Service, run};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn what_a_killed_service_acknowledged_comes_back_from_its_backup() {
    let (data_dir, service) = Service::with_two_hosts();
    let aside = TempDir::new().expect("a directory");
    let (file, restored) = (aside.path().join("backup"), aside.path().join("new/data"));
    let (data, to, into) = (text(data_dir.path()), text(&file), text(&restored));
    for n in 0..30 {
        let id = format!("vm-{n}");
        let rc = service.run(&["vm", "place", &id, "--cpu-millis", "1000"]).code;
        assert_eq!(rc, i32::from(n >= 24), "{id}");
    }
    service.run(&["vm", "release", "vm-3"]).ends(0);
    let hash = service.run(&["state", "hash", "-o", "json"]).ends(0).json();
    let decision = service.run(&["decision", "show", "d9", "-o", "json"]).ends(0).json();

    let backup = ["backup", "--data-dir", data, "--to", to];
    run(&backup).ends(255).says(&["a service runs on", "stop it first"]);
    assert!(!file.exists());
    service.kill();
    let told = hash["hash"].as_str().expect("a hash").to_owned();
    run(&backup).ends(0).says(&["2 hosts, 23 VMs", &told]);
    run(&backup).ends(255).says(&["exists"]);
    let restore = ["restore", "--from", to, "--data-dir", into];
    run(&restore).ends(0).says(&["2 hosts, 23 VMs", &told]);
    run(&restore).ends(255).says(&["not empty"]);
    let left: Vec<_> = fs::read_dir(aside.path()).expect("there").collect();
    assert_eq!(left.len(), 2, "{left:?}");

    run(&["decision", "replay", "d9", "--data-dir", into]).ends(0).says(&["d9: the same"]);
    let shown = run(&["decision", "show", "d9", "--data-dir", into, "-o", "json"]).ends(0).json();
    assert_eq!(shown, decision);
    run(&["decision", "replay", "d1", "--data-dir", into]).ends(255).says(&["no decision d1"]);
    let service = Service::start(&restored);
    assert_eq!(service.run(&["state", "hash", "-o", "json"]).ends(0).json(), hash);
    service.run(&["vm", "place", "vm-1", "--cpu-millis", "1000"]).ends(0);
    service.run(&["vm", "place", "new", "--cpu-millis", "1000"]).ends(0);
}

#[test]
fn a_log_whose_beginning_was_cut_comes_back_too() {
    let dir = TempDir::new().expect("a directory");
    let (data, file, restored) =
        (dir.path().join("data"), dir.path().join("backup"), dir.path().join("restored"));
    let service = Service::start_with(&data, &["--snapshot-every", "5", "--retain", "0"]);
    service.fed(&["host", "import", "-"], crate::service::TWO_HOSTS).ends(0);
    // Snapshots are taken on the side, so it is not known which placement lets d4 be cut.
    let cut = (0..500).any(|n| {
        service.run(&["vm", "place", &format!("vm-{n}"), "--cpu-millis", "1"]).ends(0);
        service.run(&["decision", "show", "d4"]).code == 255
    });
    assert!(cut, "nothing was cut");
    let hash = service.run(&["state", "hash", "-o", "json"]).ends(0).json();
    service.kill();
    run(&["backup", "--data-dir", text(&data), "--to", text(&file)]).ends(0);
    run(&["restore", "--from", text(&file), "--data-dir", text(&restored)]).ends(0);
    let last = format!("d{}", hash["revision"]);
    run(&["decision", "replay", &last, "--data-dir", text(&restored)]).ends(0);
    let service = Service::start(&restored);
    assert_eq!(service.run(&["state", "hash", "-o", "json"]).ends(0).json(), hash);
}

#[test]
fn a_damaged_or_foreign_backup_leaves_the_directory_empty() {
    let (data_dir, service) = Service::with_two_hosts();
    service.kill();
    let aside = TempDir::new().expect("a directory");
    let (file, restored) = (aside.path().join("backup"), aside.path().join("data"));
    run(&["backup", "--data-dir", text(data_dir.path()), "--to", text(&file)]).ends(0);
    let whole = fs::read(&file).expect("readable");
    let refused = |bytes: &[u8], because: &str| {
        fs::write(&file, bytes).expect("written");
        let restore = ["restore", "--from", text(&file), "--data-dir", text(&restored)];
        run(&restore).ends(255).says(&[because]);
        let files = fs::read_dir(&restored).map_or(0, Iterator::count);
        assert_eq!(files, 0, "after {because:?}");
    };
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    refused(&flipped, "content hash does not match");
    refused(&whole[..whole.len() - 40], "ends early");
    refused(b"not a backup at all\n", "not a backup");
    let newer = [b"novaplace backup 2", &whole[18..]].concat();
    refused(&newer, "reads format 1 only");
    fs::write(&file, &whole).expect("written");
    run(&["restore", "--from", text(&file), "--data-dir", text(&restored)]).ends(0);
}

#[test]
fn there_must_be_something_to_back_up() {
    let empty = TempDir::new().expect("a directory");
    let to = empty.path().join("b");
    run(&["backup", "--data-dir", text(empty.path()), "--to", text(&to)])
        .ends(255)
        .says(&["there is no log in"]);
    assert_eq!(fs::read_dir(empty.path()).expect("there").count(), 0);
}
