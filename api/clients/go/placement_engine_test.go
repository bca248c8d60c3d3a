package novaplace

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
)

type algorithm string

// orchestration is the interface of NovaCron's orchestration/placement, over this package's types.
type orchestration interface {
	PlaceVM(ctx context.Context, request *PlacementRequest) (*PlacementDecision, error)
	EvaluateNodes(ctx context.Context, request *PlacementRequest, nodes []*Node) ([]*NodeScore, error)
	GetAlgorithm() algorithm
	SetAlgorithm(algorithm algorithm)
	ValidateConstraints(ctx context.Context, request *PlacementRequest) error
}

func engineOn(stub *stub) orchestration {
	return NewPlacementEngine[PlacementRequest, PlacementDecision, Node, NodeScore](stub.client(Options{}), algorithm("bin_packing"))
}

func TestADecisionComesBackAsItIs(t *testing.T) {
	stub := newStub(t)
	stub.answering(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"request_id":"r1","vm_id":"v1","selected_node":"n2","score":0.75,"confidence":0.5,
			"explanation":"most room","alternatives":[{"node_id":"n3","score":0.5,"explanation":"less room"}],
			"timestamp":"2025-06-01T10:00:00.000000007Z","metadata":{"algorithm":"x"},"later":"keys are ignored"}`))
	})
	request := &PlacementRequest{VMID: "v1", VMSpec: VMSpec{CPU: 2, Memory: 2048, Storage: 20}, Strategy: "performance", ExcludeNodes: []string{"n1"}}
	got, err := engineOn(stub).PlaceVM(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	if got.SelectedNode != "n2" || got.Score != 0.75 || got.Confidence != 0.5 || got.Alternatives[0].NodeID != "n3" || got.Timestamp.Nanosecond() != 7 {
		t.Errorf("got %+v", got)
	}
	sent := stub.seen()[0]
	want := `{"vm_id":"v1","vm_spec":{"cpu_cores":2,"memory_mb":2048,"storage_gb":20,"network":{}},"constraints":null,"preferences":null,"strategy":"performance","exclude_nodes":["n1"]}`
	if sent.path != "/api/orchestration/placement" || string(sent.body) != want {
		t.Errorf("sent %s %s", sent.path, sent.body)
	}
}

func TestTheAlgorithmDecidesWhereTheRequestDoesNot(t *testing.T) {
	cases := []struct {
		algorithm algorithm
		strategy  string
		want      string
	}{
		{"bin_packing", "", "consolidated"},
		{"load_balancing", "", "balanced"},
		{"heuristic", "", ""},
		{"constraint_solver", "", ""},
		{"bin_packing", "efficiency", "efficiency"},
	}
	for _, c := range cases {
		stub := newStub(t)
		stub.answering(func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, PlacementDecision{}) })
		engine := engineOn(stub)
		engine.SetAlgorithm(c.algorithm)
		if engine.GetAlgorithm() != c.algorithm {
			t.Errorf("set %s, got %s", c.algorithm, engine.GetAlgorithm())
		}
		if _, err := engine.PlaceVM(context.Background(), &PlacementRequest{VMID: "v", Strategy: c.strategy}); err != nil {
			t.Fatal(err)
		}
		var sent PlacementRequest
		json.Unmarshal(stub.seen()[0].body, &sent)
		if sent.Strategy != c.want || sent.VMID != "v" {
			t.Errorf("%+v: sent %s", c, stub.seen()[0].body)
		}
	}
}

func TestEvaluatingKeepsTheCallersNodes(t *testing.T) {
	stub := newStub(t)
	stub.answering(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`[{"node":{"id":"n1"},"score":0.9,"breakdown":{"resource_score":0.8},"feasible":true},
			{"node":{"id":"n2"},"score":0,"breakdown":{},"feasible":false,"reason":"no GPU"}]`))
	})
	scores, err := engineOn(stub).EvaluateNodes(context.Background(), &PlacementRequest{}, []*Node{{ID: "n1"}, {ID: "n2"}})
	if err != nil || len(scores) != 2 || scores[0].Node.ID != "n1" || scores[0].Breakdown.ResourceScore != 0.8 || scores[1].Reason != "no GPU" {
		t.Errorf("got %v, %v", scores, err)
	}
	if sent := stub.seen()[0]; sent.path != "/api/orchestration/placement/evaluate" || !strings.Contains(string(sent.body), `"nodes":[{"id":"n1"`) {
		t.Errorf("sent %s %s", sent.path, sent.body)
	}
}

func TestConstraintsAreCheckedWithoutTheService(t *testing.T) {
	cases := map[string]struct {
		constraints []Constraint
		want        string
	}{
		"none":                    {},
		"with parameters":         {constraints: []Constraint{{Type: "affinity", Parameters: map[string]any{}}}},
		"cost needs none":         {constraints: []Constraint{{Type: "cost"}}},
		"resource limit without":  {constraints: []Constraint{{Type: "resource_limit"}}, want: "invalid constraint resource_limit: resource limit constraint missing parameters"},
		"affinity without":        {constraints: []Constraint{{Type: "affinity"}}, want: "invalid constraint affinity: affinity constraint missing parameters"},
		"anti-affinity, the last": {constraints: []Constraint{{Type: "cost"}, {Type: "anti_affinity"}}, want: "invalid constraint anti_affinity: anti-affinity constraint missing parameters"},
	}
	for name, c := range cases {
		stub := newStub(t)
		engine := engineOn(stub)
		request := &PlacementRequest{Constraints: c.constraints}
		err := engine.ValidateConstraints(context.Background(), request)
		if (err == nil) != (c.want == "") || (err != nil && err.Error() != c.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if c.want == "" {
			continue
		}
		if _, err := engine.PlaceVM(context.Background(), request); err == nil || err.Error() != "constraint validation failed: "+c.want {
			t.Errorf("%s: placing: %v", name, err)
		}
		if len(stub.seen()) != 0 {
			t.Errorf("%s: the service was asked", name)
		}
	}
}

func TestErrorsReadAsNovaCronWritesThem(t *testing.T) {
	cases := []struct {
		status int
		code   string
		want   string
		is     error
	}{
		{409, CodeInsufficientCapacity, "no feasible nodes found for VM placement", ErrNoCapacity},
		{409, CodePlacementUnavailable, "no available nodes found", ErrNoCapacity},
		{401, "unauthorized", "POST /api/orchestration/placement: novaplace: 401 unauthorized: because", ErrUnauthorized},
	}
	for _, c := range cases {
		stub := newStub(t)
		stub.answering(func(w http.ResponseWriter, _ *http.Request) { refuse(w, c.status, c.code, "because") })
		_, err := engineOn(stub).PlaceVM(context.Background(), &PlacementRequest{})
		var failure *APIError
		if err == nil || err.Error() != c.want || !errors.Is(err, c.is) || !errors.As(err, &failure) || failure.Message != "because" {
			t.Errorf("%d %s: %v", c.status, c.code, err)
		}
	}
	engine := engineOn(newStub(t))
	_, placing := engine.PlaceVM(context.Background(), nil)
	_, evaluating := engine.EvaluateNodes(context.Background(), nil, nil)
	for _, err := range []error{placing, evaluating, engine.ValidateConstraints(context.Background(), nil)} {
		if err == nil || err.Error() != "placement request is nil" {
			t.Errorf("no request: %v", err)
		}
	}
}
