//! `host list|get|import|cordon|uncordon`.

use crate::service::Service;

#[test]
fn hosts_are_imported_listed_and_shown() {
    let (_dir, service) = Service::with_two_hosts();
    let listed = service.run(&["host", "list"]).ends(0).says(&["HOST", "h1", "h2", "16,000"]);
    assert_eq!(listed.out.lines().count(), 3, "{}", listed.out);
    assert!(!listed.out.contains('\x1b'), "no colours in a pipe");
    let in_a = service.run(&["host", "list", "--zone", "a", "-o", "json"]).ends(0).json();
    assert_eq!(in_a["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(in_a["items"][0]["id"], "h1");
    service.run(&["host", "list", "--state", "down"]).ends(0).says(&["no hosts"]);
    service.run(&["host", "get", "h2"]).ends(0).says(&["h2", "zone b", "gpu_slots", "65,536"]);
    let view = service.run(&["host", "get", "h2", "-o", "json"]).ends(0).json();
    assert_eq!(view["free"]["gpu_slots"], 4);
}

#[test]
fn lists_longer_than_a_page_are_joined() {
    let (_dir, service) = Service::with_two_hosts();
    let host = |n: usize| format!("{{\"id\":\"x{n:04}\",\"capacity\":{{\"cpu_millis\":1000}}}}");
    let hosts: Vec<String> = (0..2_300).map(host).collect();
    let array = format!("[{}]", hosts.join(",\n "));
    service.fed(&["host", "import", "-"], &array).ends(0).says(&["2300 hosts accepted"]);
    let all = service.run(&["host", "list", "-o", "json"]).ends(0).json();
    assert_eq!(all["items"].as_array().map(Vec::len), Some(2_302));
    let some = service.run(&["host", "list", "--limit", "1001", "-o", "json"]).ends(0).json();
    assert_eq!(some["items"][1_000]["id"], "x0998");
    assert_eq!(some["items"].as_array().map(Vec::len), Some(1_001));
}

#[test]
fn a_file_with_a_wrong_host_changes_nothing_and_says_where_it_is_wrong() {
    let (_dir, service) = Service::with_two_hosts();
    let good = "{\"id\":\"h3\",\"capacity\":{\"cpu_millis\":1}}\n";
    let bad = format!("{good}{{\"id\":\"h 4\",\"capacity\":{{\"cpu_milis\":-1}}}}");
    service.fed(&["host", "import", "-"], &bad).ends(255).says(&[
        "nothing was sent",
        "[1] id:",
        "[1] capacity.cpu_milis",
        "invalid_name",
        "unknown_dimension",
    ]);
    service.run(&["host", "get", "h3"]).ends(255).says(&["host_not_found"]);
    service.fed(&["host", "import", "-"], "").ends(255).says(&["nothing in -"]);
    service.fed(&["host", "import", "-"], "{]").ends(255);
    service.run(&["host", "import", "no-such-file"]).ends(255).says(&["no-such-file"]);
}

#[test]
fn hosts_that_cannot_be_replaced_are_listed_and_the_answer_is_no() {
    let (_dir, service) = Service::with_two_hosts();
    service.run(&["vm", "place", "a", "--cpu-millis", "7000", "--group", "g"]).ends(0);
    let on = service.run(&["vm", "get", "a", "-o", "json"]).json()["host_id"].clone();
    let smaller = format!("{{\"id\":{on},\"capacity\":{{\"cpu_millis\":10}}}}");
    service.fed(&["host", "import", "-"], &smaller).ends(1).says(&["1 hosts refused", "[0] h"]);
    service.fed(&["host", "import", "-", "--dry-run"], &smaller).ends(1).says(&["would be"]);
}

#[test]
fn a_cordoned_host_takes_no_vms_until_it_is_uncordoned() {
    let (_dir, service) = Service::with_two_hosts();
    service.run(&["host", "cordon", "h1", "--dry-run"]).ends(0).says(&["h1 would be cordoned"]);
    service.run(&["host", "cordon", "h1"]).ends(0).says(&["h1 is cordoned"]);
    let pinned = ["vm", "place", "a", "--cpu-millis", "100", "--pool", "p"];
    service.run(&pinned).ends(1).says(&["no host can take default/a", "host_state", "pool"]);
    service.run(&["host", "uncordon", "h1"]).ends(0).says(&["h1 is available"]);
    service.run(&pinned).ends(0).says(&["default/a is placed on h1"]);
}
