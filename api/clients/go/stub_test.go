package novaplace

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// stub is a small service that keeps to the contract: an inventory by generation, a decision by
// least load with reservations, and events. A test puts a handler of its own in front where it wants
// something to go wrong.
type stub struct {
	*httptest.Server
	t testing.TB

	mu         sync.Mutex
	intercept  http.HandlerFunc
	requests   []seen
	generation uint64
	nodes      map[string]NodeResourceInfo
	held       map[string]held
	events     []Event
}

// seen is a request as it arrived.
type seen struct {
	method, path, query string
	header              http.Header
	body                []byte
}

// held is room for a VM that the reported use does not include yet. Once a VM is confirmed, the next
// report of its node does.
type held struct {
	node              string
	cores, memory, gb int
	confirmed         bool
}

// passOn makes an intercepting handler leave the request to the stub.
const passOn = "X-Stub-Pass-On"

func newStub(t testing.TB) *stub {
	s := &stub{t: t, nodes: map[string]NodeResourceInfo{}, held: map[string]held{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Server.Close)
	return s
}

func (s *stub) client(options Options) *Client {
	s.t.Helper()
	client, err := New(s.URL, options)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

// answering lets every request be answered by the handler.
func (s *stub) answering(handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = handler
}

func (s *stub) seen() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.requests...)
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, seen{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Clone(), body})
	intercept := s.intercept
	s.mu.Unlock()
	if intercept != nil {
		intercept(w, r)
		if w.Header().Get(passOn) == "" {
			return
		}
		w.Header().Del(passOn)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/ready":
		answer(w, 200, map[string]any{"status": "ok"})
	case r.URL.Path == "/scheduler/inventory" && r.Method == http.MethodPut:
		s.putInventory(w, body)
	case r.URL.Path == "/scheduler/inventory" && r.Method == http.MethodPatch:
		s.patchInventory(w, body)
	case r.URL.Path == "/scheduler/events":
		s.takeEvents(w, body)
	case len(path) == 4 && path[1] == "vms" && path[3] == "schedule":
		s.schedule(w, path[2], body)
	default:
		refuse(w, 404, "not_found", "no such route: "+r.URL.Path)
	}
}

func (s *stub) putInventory(w http.ResponseWriter, body []byte) {
	var inventory Inventory
	s.decode(body, &inventory)
	s.generation, s.nodes = inventory.Generation, byID(inventory.Nodes)
	s.reported(inventory.Nodes)
	answer(w, 200, InventoryState{Generation: s.generation})
}

func (s *stub) patchInventory(w http.ResponseWriter, body []byte) {
	var delta InventoryDelta
	s.decode(body, &delta)
	if delta.BaseGeneration != s.generation {
		refuse(w, 409, "conflict", fmt.Sprintf("the inventory is at generation %d", s.generation))
		return
	}
	for _, node := range delta.Upsert {
		s.nodes[node.NodeID] = node
	}
	for _, id := range delta.Remove {
		delete(s.nodes, id)
	}
	s.reported(delta.Upsert)
	s.generation = max(delta.Generation, s.generation+1)
	answer(w, 200, InventoryState{Generation: s.generation})
}

func (s *stub) reported(nodes []NodeResourceInfo) {
	for _, node := range nodes {
		for vm, room := range s.held {
			if room.node == node.NodeID && room.confirmed {
				delete(s.held, vm)
			}
		}
	}
}

func (s *stub) takeEvents(w http.ResponseWriter, body []byte) {
	var batch struct {
		Events []Event `json:"events"`
	}
	s.decode(body, &batch)
	results := make([]EventResult, len(batch.Events))
	for i, event := range batch.Events {
		results[i] = EventResult{VMID: event.VMID, Outcome: "known"}
		switch room, known := s.held[event.VMID]; {
		case event.VMID == "":
			results[i].Outcome, results[i].Message = OutcomeRefused, "vm_id is empty"
			continue
		case event.VMID == "poison":
			refuse(w, 400, "invalid_argument", "not to be read")
			return
		case event.Type == "deleted":
			delete(s.held, event.VMID)
		case known && event.Type == "created":
			room.node, room.confirmed = event.NodeID, true
			s.held[event.VMID] = room
		}
	}
	for i, event := range batch.Events {
		if results[i].Outcome != OutcomeRefused {
			s.events = append(s.events, event)
		}
	}
	answer(w, 200, map[string]any{"results": results})
}

func (s *stub) schedule(w http.ResponseWriter, vmID string, body []byte) {
	var request struct {
		VM         VMConfig `json:"vm"`
		Candidates []string `json:"candidate_node_ids"`
		Generation uint64   `json:"generation"`
	}
	s.decode(body, &request)
	if request.Generation > s.generation {
		refuse(w, 409, "conflict", fmt.Sprintf("the inventory is at generation %d", s.generation))
		return
	}
	wanted := map[string]bool{}
	for _, id := range request.Candidates {
		wanted[id] = true
	}
	vm := VMView{ID: vmID, CPUShares: request.VM.CPUShares, MemoryMB: request.VM.MemoryMB, DiskSizeGB: request.VM.DiskSizeGB}
	var candidates []candidate
	for id, node := range s.nodes {
		for other, held := range s.held {
			if held.node == id && other != vmID {
				node.UsedCPU += held.cores
				node.UsedMemoryMB += held.memory
				node.UsedDiskGB += held.gb
			}
		}
		if (len(wanted) == 0 || wanted[id]) && (Limits{}).admit(vm, node) {
			candidates = append(candidates, candidate{id, loadOf(node)})
		}
	}
	if len(candidates) == 0 {
		refuse(w, 409, CodeInsufficientCapacity, "no node has enough resources for the VM")
		return
	}
	chosen := leastLoaded(candidates)
	s.held[vmID] = held{chosen, CPUCores(vm.CPUShares), vm.MemoryMB, vm.DiskSizeGB, false}
	answer(w, 200, ScheduleResponse{VMID: vmID, NodeID: chosen, Score: 1, Confidence: 1, Generation: s.generation, ReservationID: "r-" + vmID})
}

func (s *stub) decode(body []byte, into any) {
	if err := json.Unmarshal(body, into); err != nil {
		s.t.Errorf("the stub got %q: %v", body, err)
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

// eventually waits for a condition, for at most five seconds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for i := 0; i < 5000; i++ {
		if condition() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("not within five seconds: %s", what)
}

// noLeaks fails the test if goroutines that it started are still there when it has ended.
func noLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for i := 0; i < 1000; i++ {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
	})
}

func withTimeout(t testing.TB, timeout time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// node is a node with room: 16 cores, 32 GiB, 1 TB.
func node(id string) NodeResourceInfo {
	return NodeResourceInfo{NodeID: id, TotalCPU: 16, TotalMemoryMB: 32768, TotalDiskGB: 1000, Status: StatusAvailable}
}

// with changes a node.
func with(node NodeResourceInfo, change func(*NodeResourceInfo)) NodeResourceInfo {
	change(&node)
	return node
}
