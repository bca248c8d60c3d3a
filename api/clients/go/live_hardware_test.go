package novaplace

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

// host puts a host with these GPUs into the service, for as long as the test runs.
func host(t *testing.T, client *Client, zone string, gpus ...map[string]any) string {
	t.Helper()
	ctx, id := context.Background(), unique("hw")
	body := map[string]any{
		"id": id, "zone": zone,
		"capacity": map[string]any{"cpu_millis": 32_000, "memory_mib": 65_536, "disk_gib": 500},
		"hardware": map[string]any{
			"numa_nodes": []any{map[string]any{"cores": 32, "memory_mib": 65_536}},
			"gpus":       gpus,
		},
	}
	if err := client.do(ctx, call{method: http.MethodPost, path: "/v1/hosts", body: body}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		path := "/v1/hosts/" + id
		if err := client.do(ctx, call{method: http.MethodDelete, path: path, query: map[string][]string{"evict": {"true"}}}, nil); err != nil {
			t.Error(err)
		}
	})
	return id
}

func gpu(model string, memoryMiB int) map[string]any {
	return map[string]any{"model": model, "memory_mib": memoryMiB}
}

func TestLiveGPUs(t *testing.T) {
	client, ctx := live(t, "/api/orchestration/placement", "/v1/hosts"), context.Background()
	large, small := unique("large"), unique("small")
	fast := host(t, client, "gz1", gpu(large, 81_920), gpu(large, 81_920))
	slow := host(t, client, "gz1", gpu(small, 24_576))
	host(t, client, "gz1")
	engine := NewPlacementEngine[PlacementRequest, PlacementDecision, Node, NodeScore](client, algorithm("bin_packing"))
	ask := func(wanted GPURequirements, reserve bool) (*PlacementDecision, error) {
		request := &PlacementRequest{VMID: unique("vm"), VMSpec: VMSpec{CPU: 2, Memory: 2048, GPU: &wanted}}
		if reserve {
			request.Context = map[string]any{"reserve": true}
		}
		return engine.PlaceVM(ctx, request)
	}
	for name, it := range map[string]struct {
		wanted GPURequirements
		node   string
	}{
		"two of a model":       {GPURequirements{Count: 2, Model: large}, fast},
		"the other model":      {GPURequirements{Count: 1, Model: small}, slow},
		"more memory":          {GPURequirements{Count: 1, Model: large, MemoryMB: 80_000}, fast},
		"more than there are":  {GPURequirements{Count: 3, Model: large}, ""},
		"more memory than any": {GPURequirements{Count: 1, Model: small, MemoryMB: 80_000}, ""},
		"a model of nobody":    {GPURequirements{Count: 1, Model: unique("none")}, ""},
	} {
		decision, err := ask(it.wanted, false)
		switch {
		case it.node == "" && !errors.Is(err, ErrNoCapacity):
			t.Errorf("%s: %+v, %v", name, decision, err)
		case it.node != "" && (err != nil || decision.SelectedNode != it.node):
			t.Errorf("%s: %+v, %v", name, decision, err)
		}
	}
	if held, err := ask(GPURequirements{Count: 1, Model: small}, true); err != nil || held.SelectedNode != slow {
		t.Fatalf("%+v, %v", held, err)
	}
	if decision, err := ask(GPURequirements{Count: 1, Model: small}, false); !errors.Is(err, ErrNoCapacity) {
		t.Errorf("a GPU that is held was given away: %+v, %v", decision, err)
	}
}

// A VM that talks to another is best where that one is, then near it.
func TestLiveNetworkLocality(t *testing.T) {
	client, ctx := live(t, "/api/orchestration/placement", "/v1/hosts", "/v1/placements"), context.Background()
	zones := []string{unique("z"), unique("z"), unique("z")}
	var hosts []string
	for _, zone := range zones {
		hosts = append(hosts, host(t, client, zone))
	}
	engine := NewPlacementEngine[PlacementRequest, PlacementDecision, Node, NodeScore](client, algorithm("load_balancing"))
	for row, peer := range hosts {
		id := unique("peer")
		vm := map[string]any{"id": id, "host_id": peer, "demand": map[string]any{"cpu_millis": 8000, "memory_mib": 8192}}
		if err := client.do(ctx, call{method: http.MethodPost, path: "/v1/vms", body: vm}, nil); err != nil {
			t.Fatal(err)
		}
		asked := &PlacementRequest{
			VMID: unique("vm"), VMSpec: VMSpec{CPU: 1, Memory: 1024},
			Constraints: []Constraint{{Type: "affinity", Enforcement: "soft", Weight: 1, Parameters: map[string]any{"vms": []string{id}}}},
		}
		if decision, err := engine.PlaceVM(ctx, asked); err != nil || decision.SelectedNode != peer {
			t.Errorf("beside its peer: %+v, %v", decision, err)
		}
		asked.VMID = unique("vm")
		asked.Constraints = []Constraint{{Type: "affinity", Enforcement: "hard", Parameters: map[string]any{"zone": zones[row]}}}
		if decision, err := engine.PlaceVM(ctx, asked); err != nil || decision.SelectedNode != peer {
			t.Errorf("in its zone: %+v, %v", decision, err)
		}
	}
}
