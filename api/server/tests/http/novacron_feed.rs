//! Inventories and events over HTTP: lost, late, repeated, out of order, and a core that restarts.

use crate::novacron_nodes::{error, node};
use crate::novacron_schedule::{config, schedule};
use crate::world::{Answer, World};
use serde_json::{Value, json};

fn at(second: u32) -> String {
    format!("2026-03-01T12:00:{second:02}.5Z")
}

struct Core {
    world: World,
    generation: u64,
}

impl Core {
    async fn new() -> Self {
        let mut core = Self { world: World::start().await, generation: 0 };
        core.full(0, 2, 0).await;
        core
    }

    /// The whole inventory: `n1` and `n2` have ten cores each.
    async fn full(&mut self, taken: u32, n1: u64, n2: u64) -> Value {
        self.generation += 1;
        let body = json!({
            "generation": self.generation, "taken_at": at(taken),
            "nodes": [node("n1", 10, n1), node("n2", 10, n2)],
        });
        let answer = self.world.send("PUT /scheduler/inventory", &body.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    async fn change(&self, base: u64, taken: u32, upsert: Value, remove: Value) -> Answer {
        let body = json!({
            "base_generation": base, "taken_at": at(taken), "upsert": upsert, "remove": remove,
        });
        self.world.send("PATCH /scheduler/inventory", &body.to_string()).await
    }

    async fn schedule(&self, vm_id: &str, cores: u64) -> Option<String> {
        let among = json!({"candidate_node_ids": ["n1"]});
        let answer = schedule(&self.world, vm_id, config(cores, json!({})), among).await;
        (answer.status == 200).then(|| answer.json()["node_id"].as_str().unwrap_or("").to_owned())
    }

    async fn event(
        &self,
        kind: &str,
        vm_id: &str,
        node_id: &str,
        second: u32,
        cores: u64,
    ) -> String {
        let event = event(kind, vm_id, node_id, second, cores);
        let answer = self.world.send("POST /scheduler/events", &event.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["results"][0]["outcome"].as_str().expect("an outcome").to_owned()
    }

    /// Cores in use on a node, ours and those of others.
    async fn used(&self, id: &str) -> u64 {
        let node = self.world.get(&format!("/scheduler/nodes/{id}")).await.json();
        node["used_cpu"].as_u64().expect("a number")
    }
}

fn event(kind: &str, vm_id: &str, node_id: &str, second: u32, cores: u64) -> Value {
    json!({
        "type": kind, "vm_id": vm_id, "node_id": node_id, "timestamp": at(second),
        "config": config(cores, json!({})),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_is_counted_once_from_its_schedule_to_its_end() {
    let mut core = Core::new().await;
    assert_eq!(core.schedule("vm-1", 3).await.as_deref(), Some("n1"));
    assert_eq!(core.used("n1").await, 5);
    assert_eq!(core.event("created", "vm-1", "n1", 10, 3).await, "confirmed");
    assert_eq!(core.used("n1").await, 5);
    core.full(11, 5, 0).await;
    assert_eq!(core.used("n1").await, 5, "the inventory includes it");
    assert_eq!(core.schedule("vm-2", 6).await, None);
    assert_eq!(core.schedule("vm-2", 5).await.as_deref(), Some("n1"));
    assert_eq!(core.event("deleted", "vm-2", "n1", 12, 5).await, "released");
    assert_eq!(core.event("deleted", "vm-1", "n1", 13, 3).await, "released");
    assert_eq!(core.used("n1").await, 5, "until the inventory says otherwise");
    core.full(14, 2, 0).await;
    assert_eq!(core.used("n1").await, 2);
    core.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_and_repeated_events_and_inventories_change_nothing() {
    let mut core = Core::new().await;
    core.schedule("vm-1", 3).await.expect("room");
    core.full(11, 5, 0).await;
    assert_eq!(core.used("n1").await, 8, "twice, until the event is there");
    assert_eq!(core.event("started", "vm-1", "n1", 10, 3).await, "confirmed");
    assert_eq!(core.used("n1").await, 5);
    assert_eq!(core.event("started", "vm-1", "n1", 10, 3).await, "known");
    assert_eq!(core.event("created", "vm-1", "n1", 9, 3).await, "late");
    core.full(9, 2, 0).await;
    assert_eq!(core.used("n1").await, 5, "an inventory from before it ran");
    for kind in ["stopped", "paused", "migrating", "error", "snapshot", "never heard of"] {
        assert_eq!(core.event(kind, "vm-1", "n1", 12, 3).await, "ignored", "{kind}");
    }
    assert_eq!(core.event("deleted", "vm-1", "n1", 20, 3).await, "released");
    assert_eq!(core.event("started", "vm-1", "n1", 15, 3).await, "late", "it stays gone");
    assert_eq!(core.event("deleted", "vm-1", "n1", 20, 3).await, "known");
    core.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_core_has_the_last_word_on_where_a_vm_is_and_how_large() {
    let mut core = Core::new().await;
    core.schedule("vm-1", 3).await.expect("room");
    assert_eq!(core.event("created", "vm-1", "n2", 10, 3).await, "moved");
    assert_eq!((core.used("n1").await, core.used("n2").await), (2, 3));
    assert_eq!(core.event("updated", "vm-1", "n2", 11, 4).await, "resized");
    assert_eq!(core.event("started", "other", "n2", 12, 2).await, "adopted");
    assert_eq!(core.event("resumed", "vm-1", "n2", 13, 4).await, "known");
    assert_eq!(core.used("n2").await, 6);
    core.full(14, 2, 6).await;
    assert_eq!(core.used("n2").await, 6);
    let over = event("started", "huge", "n2", 15, 7);
    let answer = core.world.send("POST /scheduler/events", &over.to_string()).await.json();
    assert_eq!(
        answer["results"][0],
        json!({"vm_id": "huge", "outcome": "adopted", "over_capacity": true})
    );
    core.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_events_are_answered_in_order_and_one_alone_is_refused_by_status() {
    let core = Core::new().await;
    let events = json!({"events": [
        event("created", "a", "n1", 10, 1), event("created", "b", "n9", 10, 1),
        event("deleted", "a", "n1", 11, 1), {"type": "created", "vm_id": "", "node_id": "n1"},
    ]});
    let answer = core.world.send("POST /scheduler/events", &events.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let results = answer.json();
    let outcomes: Vec<&str> = (0..4)
        .map(|row| results["results"][row]["outcome"].as_str().expect("an outcome"))
        .collect();
    assert_eq!(outcomes, ["adopted", "refused", "released", "refused"]);
    assert_eq!(results["results"][1]["message"], "host n9 is not known");
    let alone = event("created", "b", "n9", 10, 1);
    let alone = core.world.send("POST /scheduler/events", &alone.to_string()).await;
    assert_eq!(error(&alone).0, 404);
    let nameless = json!({"type": "created", "vm_id": " ", "node_id": "n1"});
    let nameless = core.world.send("POST /scheduler/events", &nameless.to_string()).await;
    assert!(error(&nameless).2.starts_with("vm_id:"), "{nameless:?}");
    core.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_follow_one_another_or_are_refused() {
    let core = Core::new().await;
    let one = json!([node("n1", 10, 4)]);
    let answer = core.change(1, 5, one.clone(), json!(null)).await;
    assert_eq!((answer.status, &answer.json()["generation"]), (200, &json!(2)));
    let again = core.change(1, 5, one.clone(), json!(null)).await;
    assert_eq!((again.status, &again.json()["repeated"]), (200, &json!(true)));
    let other = core.change(1, 6, json!([node("n1", 10, 5)]), json!(null)).await;
    let (status, code, message) = error(&other);
    assert_eq!((status, code.as_str()), (409, "conflict"));
    assert!(message.contains("inventory 1, but 2 is known"), "{message}");
    assert_eq!(core.change(3, 6, one, json!(null)).await.status, 409, "one is missing");
    assert_eq!(core.used("n1").await, 4, "a refused change changes nothing");
    let answer = core.change(2, 7, json!([node("n3", 4, 1)]), json!(["n2", "n9"])).await;
    let shown = answer.json();
    assert_eq!(
        (&shown["generation"], &shown["added"], &shown["removed"], &shown["nodes"]),
        (&json!(3), &json!(1), &json!(1), &json!(2))
    );
    core.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_that_starts_again_begins_with_a_whole_inventory() {
    let mut core = Core::new().await;
    core.generation = 50;
    core.full(1, 2, 0).await;
    core.schedule("vm-1", 3).await.expect("room");
    core.event("created", "vm-1", "n1", 10, 3).await;
    assert_eq!(core.change(1, 20, json!([]), json!([])).await.status, 409);
    core.generation = 0;
    let answer = core.full(30, 5, 0).await;
    assert_eq!((&answer["generation"], &answer["removed"]), (&json!(1), &json!(0)));
    assert_eq!(core.used("n1").await, 5);
    assert_eq!(core.change(1, 31, json!([]), json!([])).await.status, 200);
    core.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_inventory_removes_what_it_no_longer_names_and_nothing_else() {
    let core = Core::new().await;
    core.world.host("not-novacrons", 4).await;
    let body = json!({"generation": 2, "nodes": [node("n2", 10, 0)]});
    let answer = core.world.send("PUT /scheduler/inventory", &body.to_string()).await.json();
    assert_eq!((&answer["removed"], &answer["nodes"]), (&json!(1), &json!(2)));
    assert_eq!(core.world.get("/v1/hosts/not-novacrons").await.status, 200);
    assert_eq!(core.world.get("/v1/hosts/n1").await.status, 404);
    let twice = json!({"generation": 3, "nodes": [node("n2", 10, 0), node("n2", 10, 0)]});
    let twice = core.world.send("PUT /scheduler/inventory", &twice.to_string()).await;
    assert!(error(&twice).2.starts_with("nodes[1].node_id:"), "{twice:?}");
    core.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_vms_stands_in_for_events_that_were_lost() {
    let mut core = Core::new().await;
    for vm in ["kept", "ended", "unheard"] {
        core.schedule(vm, 1).await.expect("room");
    }
    core.event("created", "kept", "n1", 10, 1).await;
    core.event("created", "ended", "n1", 10, 1).await;
    core.generation += 1;
    let body = json!({
        "generation": core.generation, "taken_at": at(20),
        "nodes": [node("n1", 10, 4), node("n2", 10, 0)],
        "vms": [{"vm_id": "kept", "node_id": "n1"}, {"vm_id": "unheard", "node_id": "n1"}],
    });
    let answer = core.world.send("PUT /scheduler/inventory", &body.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(core.used("n1").await, 4, "two of others, `kept` and `unheard`");
    assert_eq!(core.world.get("/v1/vms/ended").await.status, 404);
    assert_eq!(core.event("started", "unheard", "n1", 21, 1).await, "known", "confirmed already");
    core.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_shrinks_below_its_vms_takes_no_more_and_is_named() {
    let mut core = Core::new().await;
    core.schedule("vm-1", 8).await.expect("room");
    core.event("created", "vm-1", "n1", 10, 8).await;
    core.generation += 1;
    let body = json!({
        "generation": core.generation, "taken_at": at(20),
        "nodes": [node("n1", 4, 8), node("n2", 10, 0)],
    });
    let answer = core.world.send("PUT /scheduler/inventory", &body.to_string()).await.json();
    assert_eq!(answer["refused"][0]["node_id"], "n1");
    let reason = answer["refused"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("8000 is committed"), "{reason}");
    assert_eq!(core.schedule("vm-2", 1).await, None);
    core.world.stop().await;
}
