//! Data directories of another version.

use crate::process::{Process, novaplace};
use redb::{Database, ReadableDatabase, TableDefinition};
use std::path::Path;

/// The table and key where the log keeps its format number.
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");

#[test]
fn a_log_of_another_format_is_refused_with_what_to_do_and_left_as_it_is() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = Process::start(dir.path(), &[]);
    let mut client = server.wait_until_ready();
    let host = r#"{"id":"h1","capacity":{"cpu_millis":1000}}"#;
    assert_eq!(client.ask("POST /v1/hosts", None, host).expect("an answer").status, 201);
    server.terminate();
    assert!(server.ended().0.success());
    for other in [store::LOG_FORMAT - 1, store::LOG_FORMAT + 1] {
        set_format(dir.path(), other);
        let verbs: [&[&str]; 2] = [
            &["serve", "--listen", "127.0.0.1:0", "--log-level", "off"],
            &["decision", "show", "d1"],
        ];
        for verb in verbs {
            let mut command = novaplace();
            let refused = command.args(verb).arg("--data-dir").arg(dir.path()).output();
            let refused = refused.expect("the binary runs");
            let said = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(255), "{said}");
            let expected = format!("the log has format {other}, written by novaplace ");
            assert!(said.contains(&expected), "{said}");
            assert!(said.contains("start the version that wrote it, or export there"), "{said}");
        }
        assert_eq!(format(dir.path()), other, "a refused log is not touched");
    }
    set_format(dir.path(), store::LOG_FORMAT);
    let server = Process::start(dir.path(), &[]);
    assert_eq!(server.wait_until_ready().get("/v1/hosts/h1")["id"], "h1");
}

fn set_format(dir: &Path, format: u32) {
    let database = Database::open(dir.join(store::LOG_FILE)).expect("a database");
    let change = database.begin_write().expect("a transaction");
    {
        let mut meta = change.open_table(META).expect("the table");
        let was = meta.insert("format", format.to_le_bytes().as_slice()).expect("written");
        assert!(was.is_some(), "the format is kept elsewhere");
    }
    change.commit().expect("committed");
}

fn format(dir: &Path) -> u32 {
    let database = Database::open(dir.join(store::LOG_FILE)).expect("a database");
    let look = database.begin_read().expect("a transaction");
    let meta = look.open_table(META).expect("the table");
    let bytes = meta.get("format").expect("read").expect("there").value().to_vec();
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}
