package novaplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// live is a client of the service that NOVAPLACE_URL names, for tests of these routes.
func live(t testing.TB, routes ...string) *Client {
	t.Helper()
	address := os.Getenv("NOVAPLACE_URL")
	if address == "" {
		t.Skip("NOVAPLACE_URL names no service; tests/go/run starts one")
	}
	client, err := New(address, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	eventually(t, "the service is ready", func() bool { return client.Ready(context.Background()) == nil })
	var document struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := client.do(context.Background(), call{method: http.MethodGet, path: "/openapi.json", idempotent: true}, &document); err != nil {
		t.Fatal(err)
	}
	for _, route := range routes {
		if document.Paths[route] == nil {
			t.Skipf("this service has no %s", route)
		}
	}
	return client
}

// unique makes a name that no earlier run has used.
func unique(name string) string {
	return fmt.Sprintf("%s-%x-%d", name, rand.Uint32(), worlds.Add(1))
}

func TestLiveWeights(t *testing.T) {
	client, ctx := live(t, "/v1/weights"), context.Background()
	before, err := client.Weights(ctx)
	if err != nil || len(before.Values) == 0 || before.Tag == "" {
		t.Fatalf("got %+v, %v", before, err)
	}
	set, err := client.SetWeights(ctx, Weights{Values: map[string]int{"fit": 7}, Tag: before.Tag})
	if err != nil || set.Values["fit"] != 7 || set.Tag == before.Tag {
		t.Errorf("got %+v, %v", set, err)
	}
	if _, err := client.SetWeights(ctx, *before); !errors.Is(err, ErrConflict) {
		t.Errorf("weights that were read before: %v", err)
	}
	if back, err := client.SetWeights(ctx, Weights{Values: before.Values}); err != nil || back.Values["fit"] != before.Values["fit"] {
		t.Errorf("back: %+v, %v", back, err)
	}
}

func TestLiveNodes(t *testing.T) {
	client, ctx := live(t, "/scheduler/nodes", "/scheduler/nodes/{id}"), context.Background()
	one := node(unique("node"))
	one.UsedCPU, one.Labels = 3, map[string]string{"zone": "z1"}
	if err := client.RegisterNode(ctx, one); err != nil {
		t.Fatal(err)
	}
	var failure *APIError
	if err := client.RegisterNode(ctx, one); !errors.As(err, &failure) || failure.Status/100 != 4 {
		t.Errorf("twice: %v", err)
	}
	got, err := client.Node(ctx, one.NodeID)
	if err != nil || got.UsedCPU != 3 || got.TotalMemoryMB != one.TotalMemoryMB || got.Labels["zone"] != "z1" || got.Status != StatusAvailable {
		t.Errorf("got %+v, %v", got, err)
	}
	one.UsedCPU, one.Status = 5, "maintenance"
	if err := client.UpdateNode(ctx, one); err != nil {
		t.Error(err)
	}
	all, err := client.Nodes(ctx)
	at := slices.IndexFunc(all, func(n NodeResourceInfo) bool { return n.NodeID == one.NodeID })
	if err != nil || at < 0 || all[at].UsedCPU != 5 || all[at].Status == StatusAvailable {
		t.Errorf("%d nodes, %v", len(all), err)
	}
	if err := client.DeleteNode(ctx, one.NodeID); err != nil {
		t.Error(err)
	}
	if _, err := client.Node(ctx, one.NodeID); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
	if err := client.UpdateNode(ctx, one); !errors.Is(err, ErrNotFound) {
		t.Errorf("updating what is not there: %v", err)
	}
}

func TestLiveInventory(t *testing.T) {
	client, ctx := live(t, "/scheduler/inventory", "/scheduler/nodes"), context.Background()
	prefix := unique("inv")
	fleet := fleet{}.add(node(prefix+"-a"), node(prefix+"-b"))
	syncer := NewInventorySyncer(client, fleet.list, InventorySyncerOptions{})
	check := func(what string) {
		t.Helper()
		mustSync(t, syncer)
		nodes, err := client.Nodes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, node := range nodes {
			if strings.HasPrefix(node.NodeID, prefix) {
				got[node.NodeID] = node.UsedCPU
			}
		}
		want := map[string]int{}
		for id, node := range fleet {
			want[id] = node.UsedCPU
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the service has %v, want %v", what, got, want)
		}
	}
	check("everything")
	delete(fleet, prefix+"-a")
	fleet.add(with(node(prefix+"-b"), func(n *NodeResourceInfo) { n.UsedCPU = 2 }), node(prefix+"-c"))
	check("a delta")
	_, err := client.PatchInventory(ctx, InventoryDelta{BaseGeneration: syncer.Generation() - 1, Upsert: []NodeResourceInfo{node(prefix + "-x")}})
	if !errors.Is(err, ErrConflict) {
		t.Errorf("a delta on an old generation: %v", err)
	}
	// Another writer, ahead of the syncer.
	if _, err := client.PatchInventory(ctx, InventoryDelta{BaseGeneration: syncer.Generation(), Upsert: []NodeResourceInfo{node(prefix + "-y")}}); err != nil {
		t.Fatal(err)
	}
	fleet.add(node(prefix + "-d"))
	check("after a gap")
	if stats := syncer.Stats(); stats != (SyncStats{Full: 2, Deltas: 1, Gaps: 1}) {
		t.Errorf("%+v", stats)
	}
}

func TestLiveEvents(t *testing.T) {
	client := live(t, "/scheduler/events", "/scheduler/inventory", "/scheduler/vms/{vm_id}/schedule")
	w := newWorld(t, client, Limits{}, with(node("a"), func(n *NodeResourceInfo) { n.TotalCPU = 2 }))
	vm := w.vm(VMConfig{CPUShares: 2, MemoryMB: 1})
	if _, err := w.schedule(vm); err != nil {
		t.Fatal(err)
	}
	next := w.vm(VMConfig{CPUShares: 1, MemoryMB: 1})
	full := func() bool {
		_, err := client.Schedule(context.Background(), next.id, ScheduleRequest{VM: next.config, CandidateNodeIDs: []string{w.prefix + "a"}})
		if err != nil && !errors.Is(err, ErrNoCapacity) {
			t.Fatal(err)
		}
		return err != nil
	}
	if !full() {
		t.Fatal("a reservation holds nothing")
	}
	at := time.Now()
	created := Event{Type: "created", VMID: vm.id, NodeID: w.prefix + "a", Timestamp: at, Config: vm.config}
	deleted := Event{Type: "deleted", VMID: vm.id, NodeID: w.prefix + "a", Timestamp: at.Add(time.Second), Config: vm.config}
	// In a batch, doubled, and in the wrong order: what happened last is what counts.
	if _, err := client.ReportEvents(context.Background(), created, created); err != nil {
		t.Fatal(err)
	}
	if !full() {
		t.Error("a confirmed VM takes no room")
	}
	if _, err := client.ReportEvents(context.Background(), deleted, created, deleted); err != nil {
		t.Fatal(err)
	}
	if full() {
		t.Error("a VM that is gone takes room")
	}
}

func TestLivePlacementEngine(t *testing.T) {
	client, ctx := live(t, "/api/orchestration/placement", "/api/orchestration/placement/evaluate", "/scheduler/inventory"), context.Background()
	w := newWorld(t, client, Limits{}, node("a"), node("b"), node("c"), node("d"), node("e"))
	engine := NewPlacementEngine[PlacementRequest, PlacementDecision, Node, NodeScore](client, algorithm("bin_packing"))
	request := func() *PlacementRequest {
		return &PlacementRequest{VMID: unique("vm"), VMSpec: VMSpec{CPU: 2, Memory: 2048, Storage: 10}}
	}
	for _, algorithm := range []algorithm{"bin_packing", "load_balancing", "heuristic", "constraint_solver"} {
		engine.SetAlgorithm(algorithm)
		asked := request()
		decision, err := engine.PlaceVM(ctx, asked)
		if err != nil {
			t.Errorf("%s: %v", algorithm, err)
			continue
		}
		if decision.VMID != asked.VMID || decision.SelectedNode == "" || decision.Score <= 0 || decision.Confidence <= 0 ||
			decision.Explanation == "" || len(decision.Alternatives) > 3 || decision.Timestamp.IsZero() {
			t.Errorf("%s: %+v", algorithm, decision)
		}
	}
	excluding := request()
	excluding.ExcludeNodes = w.ids([]string{"a", "b", "c", "d"})
	if decision, err := engine.PlaceVM(ctx, excluding); err != nil || slices.Contains(excluding.ExcludeNodes, decision.SelectedNode) {
		t.Errorf("exclusions: %+v, %v", decision, err)
	}
	// As the evacuation adapter asks: without any size.
	if _, err := engine.PlaceVM(ctx, &PlacementRequest{VMID: unique("vm"), Strategy: "balanced"}); err != nil {
		t.Errorf("no size: %v", err)
	}
	large := request()
	large.VMSpec.CPU = 100_000
	if decision, err := engine.PlaceVM(ctx, large); !errors.Is(err, ErrNoCapacity) {
		t.Errorf("too large: %+v, %v", decision, err)
	}
	capacity := NodeCapacity{CPU: 16, Memory: 32768, Storage: 1000, NetworkMbps: 10000}
	nodes := []*Node{
		{ID: "big", Capacity: capacity, Available: capacity, State: "ready", Health: 1},
		{ID: "small", Capacity: capacity, Available: NodeCapacity{CPU: 1, Memory: 512}, State: "ready", Health: 1},
		{ID: "off", Capacity: capacity, Available: capacity, State: "maintenance", Health: 1},
	}
	scores, err := engine.EvaluateNodes(ctx, request(), nodes)
	if err != nil || len(scores) != 3 {
		t.Fatalf("%d scores, %v", len(scores), err)
	}
	for _, score := range scores {
		if score.Feasible != (score.Node.ID == "big") || (!score.Feasible && score.Reason == "") {
			t.Errorf("%s: %+v", score.Node.ID, score)
		}
	}
}

func TestLivePolicies(t *testing.T) {
	client, ctx := live(t, "/scheduler/policies", "/scheduler/policies/{id}/activate", "/scheduler/policies/evaluate/placement"), context.Background()
	id := unique("spare")
	text := func(limit int) string {
		return fmt.Sprintf(`policy "Spare room %s" {
  id = "%s"
  type = "placement"
  description = "Keeps away from nodes that are nearly full."
  parameters {
    param "limit" { type = "float" default = %d min = 0 max = 1000 }
  }
  rules {
    rule "nearly full" {
      id = "nearly-full"
      priority = 100
      hard_constraint = true
      when { node.available_cpu < param.limit }
      then { filter "too little CPU left" }
    }
    rule "room" {
      id = "room"
      when { node.available_cpu > 0 }
      then { score node.available_cpu "free cores" }
    }
  }
}`, id, id, limit)
	}
	if verdict, err := client.ValidatePolicy(ctx, text(4)); err != nil || !verdict.Valid {
		t.Errorf("a good document: %+v, %v", verdict, err)
	}
	if verdict, err := client.ValidatePolicy(ctx, "policy \"x\" {"); err != nil || verdict.Valid || len(verdict.Errors) == 0 || verdict.Errors[0].Line == 0 {
		t.Errorf("a bad document: %+v, %v", verdict, err)
	}
	registered, err := client.RegisterPolicy(ctx, PolicyDraft{DSL: text(4), Author: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.DeletePolicy(ctx, id) })
	if _, err := client.RegisterPolicy(ctx, PolicyDraft{DSL: text(4)}); !errors.Is(err, ErrConflict) {
		t.Errorf("twice: %v", err)
	}
	if registered.ID != id || registered.Type != "placement" {
		t.Errorf("registered as %+v", registered)
	}
	if err := client.ActivatePolicy(ctx, id, PolicyConfiguration{Priority: 5}); err != nil {
		t.Fatal(err)
	}
	nodes := []any{map[string]any{"id": "n1", "available_cpu": 3}, map[string]any{"id": "n2", "available_cpu": 8}, map[string]any{"id": "n3", "available_cpu": 6}}
	vm := map[string]any{"id": "v1", "cpu_cores": 1}
	left := func() string {
		t.Helper()
		evaluation, err := client.EvaluatePlacement(ctx, EvaluationRequest{VM: vm, CandidateNodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, node := range evaluation.Nodes {
			order = append(order, fmt.Sprint(node.Node["id"]))
		}
		for _, node := range evaluation.Filtered {
			if node.PolicyID == id && (node.RuleID != "nearly-full" || node.Reason != "too little CPU left") {
				t.Errorf("filtered: %+v", node)
			}
		}
		return strings.Join(order, " ")
	}
	if got := left(); got != "n2 n3" {
		t.Errorf("by the default: %s", got)
	}
	if err := client.ActivatePolicy(ctx, id, PolicyConfiguration{ParameterValues: map[string]any{"limit": 7}}); err != nil {
		t.Fatal(err)
	}
	if got := left(); got != "n2" {
		t.Errorf("by the parameter: %s", got)
	}
	if _, err := client.UpdatePolicy(ctx, id, PolicyDraft{DSL: text(1), UpdatedBy: "test", ChangeDescription: "less careful"}); err != nil {
		t.Fatal(err)
	}
	versions, err := client.PolicyVersions(ctx, id)
	if err != nil || len(versions) != 2 {
		t.Fatalf("%d versions, %v", len(versions), err)
	}
	if _, err := client.RollbackPolicy(ctx, id, RollbackRequest{versions[0].Version, "test", "too careless"}); err != nil {
		t.Error(err)
	}
	if audit, err := client.PolicyAudit(ctx, id); err != nil || len(audit) < 4 {
		t.Errorf("%d entries, %v", len(audit), err)
	}
	if _, err := client.PolicyConflicts(ctx); err != nil {
		t.Error(err)
	}
	results, err := client.FilterNodes(ctx, id, vm, nodes)
	if err != nil || len(results) != 3 || results[0].Feasible {
		t.Errorf("filter: %+v, %v", results, err)
	}
	scores, err := client.ScoreNodes(ctx, id, vm, nodes)
	if err != nil || len(scores) != 3 || scores[1].Score != 8 {
		t.Errorf("score: %+v, %v", scores, err)
	}
	if err := client.DeactivatePolicy(ctx, id); err != nil {
		t.Error(err)
	}
	if got := strings.Fields(left()); len(got) != 3 {
		t.Errorf("out of force: %v", got)
	}
	if err := client.DeletePolicy(ctx, id); err != nil {
		t.Error(err)
	}
	if _, err := client.Policy(ctx, id); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
}
