package novaplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fleet is a source of nodes that tests change.
type fleet map[string]NodeResourceInfo

func (f fleet) add(nodes ...NodeResourceInfo) fleet {
	for _, node := range nodes {
		f[node.NodeID] = node
	}
	return f
}

func (f fleet) list() []NodeResourceInfo {
	var nodes []NodeResourceInfo
	for _, node := range f {
		nodes = append(nodes, node)
	}
	return nodes
}

func mustSync(t testing.TB, syncer *InventorySyncer) {
	t.Helper()
	if err := syncer.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// holds fails unless the service has exactly the fleet, at the generation that the syncer names.
func (s *stub) holds(t *testing.T, fleet fleet, syncer *InventorySyncer) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !reflect.DeepEqual(map[string]NodeResourceInfo(fleet), s.nodes) || s.generation != syncer.Generation() {
		t.Errorf("at %d: %v\nat %d: %v", syncer.Generation(), fleet, s.generation, s.nodes)
	}
}

func TestOnlyChangesAreSent(t *testing.T) {
	stub := newStub(t)
	fleet := fleet{}.add(node("a"), node("b"), node("c"))
	syncer := NewInventorySyncer(stub.client(Options{}), fleet.list, InventorySyncerOptions{})
	mustSync(t, syncer)
	stub.holds(t, fleet, syncer)
	mustSync(t, syncer)
	first := syncer.Generation()

	delete(fleet, "b")
	fleet.add(with(node("c"), func(n *NodeResourceInfo) { n.UsedCPU = 1 }), node("d"))
	mustSync(t, syncer)
	stub.holds(t, fleet, syncer)
	all := stub.seen()
	if len(all) != 2 || all[1].method != http.MethodPatch {
		t.Fatalf("%d calls; an unchanged fleet needs none", len(all))
	}
	var delta struct {
		InventoryDelta
		Upsert []struct {
			NodeID string `json:"node_id"`
		} `json:"upsert"`
	}
	json.Unmarshal(all[1].body, &delta)
	if delta.BaseGeneration != first || fmt.Sprint(delta.Upsert, delta.Remove) != "[{c} {d}] [b]" {
		t.Errorf("sent %s", all[1].body)
	}
	if stats := syncer.Stats(); stats != (SyncStats{Full: 1, Deltas: 1, Unchanged: 1}) {
		t.Errorf("%+v", stats)
	}
}

func TestEveryFieldOfANodeCountsAsAChange(t *testing.T) {
	original := node("a")
	original.Labels = map[string]string{"k": "v"}
	kind := reflect.TypeOf(original)
	for i := 0; i < kind.NumField(); i++ {
		changed := original
		switch field := reflect.ValueOf(&changed).Elem().Field(i); field.Kind() {
		case reflect.String:
			field.SetString("other")
		case reflect.Int:
			field.SetInt(7)
		case reflect.Float64:
			field.SetFloat(0.5)
		case reflect.Map:
			field.Set(reflect.ValueOf(map[string]string{"k": "w"}))
		default:
			t.Fatalf("%s is of a kind that this test does not know", kind.Field(i).Name)
		}
		if same(original, changed) {
			t.Errorf("%s can change unnoticed", kind.Field(i).Name)
		}
	}
	original.Labels, original.Status = nil, StatusAvailable
	copied := original
	copied.Labels = map[string]string{}
	if !same(original, copied) {
		t.Error("no labels and no labels are different")
	}
}

func TestLabelsThatChangeInPlaceAreNoticed(t *testing.T) {
	stub := newStub(t)
	labelled := with(node("a"), func(n *NodeResourceInfo) { n.Labels = map[string]string{"k": "v"} })
	fleet := fleet{}.add(labelled)
	syncer := NewInventorySyncer(stub.client(Options{}), fleet.list, InventorySyncerOptions{})
	mustSync(t, syncer)
	labelled.Labels["k"] = "w"
	mustSync(t, syncer)
	stub.holds(t, fleet, syncer)
}

func TestAGapLeadsToAWholeInventory(t *testing.T) {
	stub := newStub(t)
	fleet := fleet{}.add(node("a"), node("b"))
	syncer := NewInventorySyncer(stub.client(Options{}), fleet.list, InventorySyncerOptions{})
	mustSync(t, syncer)
	// Somebody else has written meanwhile.
	stub.mu.Lock()
	stub.generation += 1000
	delete(stub.nodes, "b")
	stub.mu.Unlock()
	fleet.add(node("c"))
	mustSync(t, syncer)
	stub.holds(t, fleet, syncer)
	if stats := syncer.Stats(); stats != (SyncStats{Full: 2, Gaps: 1}) {
		t.Errorf("%+v", stats)
	}
}

// A delta that arrived and whose answer was lost leaves the service ahead of what the syncer knows.
func TestALostAnswerIsRepaired(t *testing.T) {
	stub := newStub(t)
	fleet := fleet{}.add(node("a"))
	syncer := NewInventorySyncer(stub.client(Options{}), fleet.list, InventorySyncerOptions{})
	mustSync(t, syncer)
	stub.answering(func(_ http.ResponseWriter, r *http.Request) {
		stub.mu.Lock()
		stub.generation++
		stub.mu.Unlock()
		panic(http.ErrAbortHandler)
	})
	fleet.add(node("b"))
	if err := syncer.Sync(context.Background()); err == nil {
		t.Fatal("the answer was lost, and nobody noticed")
	}
	stub.answering(nil)
	mustSync(t, syncer)
	stub.holds(t, fleet, syncer)
	if stats := syncer.Stats(); stats != (SyncStats{Full: 2, Gaps: 1, Failed: 1}) {
		t.Errorf("%+v", stats)
	}
}

func TestANewProcessStartsAboveAnOldOne(t *testing.T) {
	stub := newStub(t)
	fleet := fleet{}.add(node("a"))
	old := NewInventorySyncer(stub.client(Options{}), fleet.list, InventorySyncerOptions{})
	mustSync(t, old)
	time.Sleep(3 * time.Millisecond)
	young := NewInventorySyncer(stub.client(Options{}), fleet.list, InventorySyncerOptions{})
	mustSync(t, young)
	if young.Generation() <= old.Generation() {
		t.Errorf("%d, then %d", old.Generation(), young.Generation())
	}
}

func TestAnEmptyFleetIsAnEmptyList(t *testing.T) {
	stub := newStub(t)
	fleet := fleet{}
	syncer := NewInventorySyncer(stub.client(Options{}), fleet.list, InventorySyncerOptions{})
	mustSync(t, syncer)
	if body := string(stub.seen()[0].body); !strings.HasPrefix(body, fmt.Sprintf(`{"generation":%d,"nodes":[],"taken_at":"`, syncer.Generation())) {
		t.Errorf("sent %s", body)
	}
}

func TestTheServiceSeesNodesWithinTheLimits(t *testing.T) {
	stub := newStub(t)
	fleet := fleet{}.add(
		with(node("busy"), func(n *NodeResourceInfo) { n.VMCount = 10 }),
		with(node("down"), func(n *NodeResourceInfo) { n.VMCount, n.Status = 10, "offline" }),
		node("idle"),
	)
	limits := Limits{MaxVMsPerNode: 10, MaxCPUOvercommit: 1.5, MaxMemoryOvercommit: 0.5}
	syncer := NewInventorySyncer(stub.client(Options{}), fleet.list, InventorySyncerOptions{Limits: limits})
	mustSync(t, syncer)
	for id, want := range map[string]string{"busy": "full", "down": "offline", "idle": StatusAvailable} {
		if got := stub.nodes[id]; got.Status != want || got.TotalCPU != 24 || got.TotalMemoryMB != 32768 {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

// An event that the sender knew of before it looked must not seem to come after.
func TestAnInventoryIsAsOldAsItsNodes(t *testing.T) {
	stub := newStub(t)
	var looked time.Time
	source := func() []NodeResourceInfo {
		looked = time.Now()
		return []NodeResourceInfo{node("a")}
	}
	mustSync(t, NewInventorySyncer(stub.client(Options{}), source, InventorySyncerOptions{}))
	var sent Inventory
	json.Unmarshal(stub.seen()[0].body, &sent)
	if sent.TakenAt == nil || sent.TakenAt.After(looked) {
		t.Errorf("taken at %v, looked at %v", sent.TakenAt, looked)
	}
}

func TestNodesThatAreRefusedAreTold(t *testing.T) {
	stub := newStub(t)
	stub.answering(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, InventoryState{Generation: 7, Refused: []RefusedNode{{"a", "too small"}}})
	})
	var refused []RefusedNode
	syncer := NewInventorySyncer(stub.client(Options{}), fleet{}.add(node("a")).list, InventorySyncerOptions{
		OnRefused: func(node RefusedNode) { refused = append(refused, node) },
	})
	mustSync(t, syncer)
	if len(refused) != 1 || refused[0].Reason != "too small" || syncer.Generation() != 7 {
		t.Errorf("%v at %d", refused, syncer.Generation())
	}
}

// Whatever happens to the fleet, to the service and on the way, a sync that succeeds leaves both equal.
func TestTheServiceEndsUpWithTheFleet(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	stub := newStub(t)
	fleet := fleet{}
	client := stub.client(Options{Retry: RetryOptions{Attempts: 1}, Breaker: BreakerOptions{Disabled: true}})
	syncer := NewInventorySyncer(client, fleet.list, InventorySyncerOptions{})
	for step := 0; step < 400; step++ {
		id := fmt.Sprint("n", random.Intn(20))
		switch random.Intn(10) {
		case 0:
			delete(fleet, id)
		case 1:
			stub.failingFirst(1, 503)
		case 2:
			stub.mu.Lock()
			stub.generation, stub.nodes = uint64(random.Intn(5)), map[string]NodeResourceInfo{}
			stub.mu.Unlock()
			syncer.Resync()
		default:
			fleet.add(with(node(id), func(n *NodeResourceInfo) { n.UsedCPU = random.Intn(16) }))
		}
		if err := syncer.Sync(context.Background()); err == nil {
			stub.holds(t, fleet, syncer)
		}
	}
	if stats := syncer.Stats(); stats.Full < 10 || stats.Deltas < 10 || stats.Failed < 10 {
		t.Errorf("%+v", stats)
	}
}

func TestRunSyncsUntilItIsStopped(t *testing.T) {
	noLeaks(t)
	stub := newStub(t)
	stub.failingFirst(2, 500)
	var used, failures atomic.Int64
	source := func() []NodeResourceInfo {
		return []NodeResourceInfo{with(node("a"), func(n *NodeResourceInfo) { n.UsedCPU = int(used.Add(1)) })}
	}
	syncer := NewInventorySyncer(stub.client(Options{Retry: RetryOptions{Attempts: 1}}), source, InventorySyncerOptions{
		Interval: 2 * time.Millisecond, MaxInterval: 4 * time.Millisecond,
		OnError: func(error) { failures.Add(1) },
	})
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error)
	go func() { ended <- syncer.Run(ctx) }()
	eventually(t, "five deltas", func() bool { return syncer.Stats().Deltas >= 5 })
	enough := errors.New("enough")
	cancel(enough)
	if err := <-ended; err != enough {
		t.Errorf("ended with %v", err)
	}
	if failures.Load() != 2 {
		t.Errorf("told of %d failures", failures.Load())
	}
}

func TestResyncWakesRun(t *testing.T) {
	noLeaks(t)
	stub := newStub(t)
	syncer := NewInventorySyncer(stub.client(Options{}), fleet{}.add(node("a")).list, InventorySyncerOptions{Interval: time.Hour})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- syncer.Run(ctx) }()
	eventually(t, "the first", func() bool { return syncer.Stats().Full == 1 })
	syncer.Resync()
	eventually(t, "the second", func() bool { return syncer.Stats().Full == 2 })
	cancel()
	<-ended
}

func TestPausesAreJitteredAndGrow(t *testing.T) {
	stub := newStub(t)
	syncer := NewInventorySyncer(stub.client(Options{}), fleet{}.list, InventorySyncerOptions{Interval: time.Second, MaxInterval: 5 * time.Second})
	for failures, base := range []time.Duration{1, 2, 4, 5, 5} {
		base *= time.Second
		lowest, highest := time.Hour, time.Duration(0)
		for i := 0; i < 500; i++ {
			pause := syncer.pause(failures)
			lowest, highest = min(lowest, pause), max(highest, pause)
		}
		if lowest < base*9/10 || highest > base*11/10 || highest-lowest < base/10 {
			t.Errorf("after %d failures: %v to %v, want about %v", failures, lowest, highest, base)
		}
	}
}
