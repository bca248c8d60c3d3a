package novaplace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestContractWithTheStub keeps the cases honest where there is no service.
func TestContractWithTheStub(t *testing.T) {
	stub := newStub(t)
	contract(t, stub.URL, stub.client(Options{}))
}

func TestContractWithALiveService(t *testing.T) {
	client := live(t, "/scheduler/vms/{vm_id}/schedule", "/scheduler/inventory", "/scheduler/events")
	contract(t, os.Getenv("NOVAPLACE_URL"), client)
}

// contract is NovaCron's own cases for a scheduler, each with every VM going through the service,
// and the cases that those leave out.
func contract(t *testing.T, url string, client *Client) {
	one := VMConfig{CPUShares: 1024, MemoryMB: 512}
	small := func(id string, cores int) NodeResourceInfo {
		return with(node(id), func(n *NodeResourceInfo) { n.TotalCPU = cores })
	}
	used := func(id string, cores int) NodeResourceInfo {
		return with(node(id), func(n *NodeResourceInfo) { n.UsedCPU, n.VMCount = cores, 1 })
	}
	asks := func(config VMConfig, placement VMPlacementSpec) VMConfig {
		config.Placement = &placement
		return config
	}
	cases := []struct {
		name   string
		limits Limits
		nodes  []NodeResourceInfo
		run    func(*testing.T, *world)
		// served is how many VMs the service must have decided about.
		served uint64
	}{
		{"what is reserved is given back", Limits{}, []NodeResourceInfo{node("a")}, func(t *testing.T, w *world) {
			vm := w.on("a", one)
			if got := *w.nodes[w.prefix+"a"]; got.UsedCPU != 1 || got.UsedMemoryMB != 512 || got.VMCount != 1 {
				t.Errorf("1024 shares are one core: %+v", got)
			}
			w.end(vm)
			if got := *w.nodes[w.prefix+"a"]; got.UsedCPU != 0 || got.UsedMemoryMB != 0 || got.VMCount != 0 {
				t.Errorf("after: %+v", got)
			}
		}, 1},
		{"a full node is skipped", Limits{}, []NodeResourceInfo{used("a", 16), node("b")}, func(t *testing.T, w *world) {
			w.on("b", one)
		}, 1},
		{"the second reservation of the last core fails", Limits{}, []NodeResourceInfo{small("a", 1)}, func(t *testing.T, w *world) {
			w.on("a", one)
			if err := w.reserve(w.vm(one), w.prefix+"a"); err == nil || !strings.Contains(err.Error(), "no longer has enough resources") {
				t.Errorf("got %v", err)
			}
			if len(w.allocations) != 1 {
				t.Errorf("%d allocations", len(w.allocations))
			}
		}, 1},
		{"a preferred node is taken", Limits{}, []NodeResourceInfo{node("a"), used("b", 12), node("c")}, func(t *testing.T, w *world) {
			w.on("b", asks(one, VMPlacementSpec{PreferredNodes: []string{"b"}}))
		}, 1},
		{"a preferred node that is missing is no obstacle", Limits{}, []NodeResourceInfo{node("a")}, func(t *testing.T, w *world) {
			w.on("a", asks(one, VMPlacementSpec{PreferredNodes: []string{"gone"}}))
		}, 1},
		{"excluding every node is an error", Limits{}, []NodeResourceInfo{node("a")}, func(t *testing.T, w *world) {
			_, err := w.schedule(w.vm(asks(one, VMPlacementSpec{ExcludedNodes: []string{"a"}})))
			if err == nil || err.Error() != "no available nodes remain after applying placement exclusions" {
				t.Errorf("got %v", err)
			}
		}, 0},
		{"the manager rejects more CPU than there is", Limits{}, []NodeResourceInfo{small("a", 2), small("b", 2)}, func(t *testing.T, w *world) {
			if _, err := w.create(w.vm(VMConfig{CPUShares: 5, MemoryMB: 1})); codeOf(err) != CodeInsufficientCapacity {
				t.Errorf("got %v", err)
			}
			// Together there is room, on no node is there enough.
			if _, err := w.create(w.vm(VMConfig{CPUShares: 3, MemoryMB: 1})); codeOf(err) != CodePlacementUnavailable || !errors.Is(err, ErrNoNodeFits) {
				t.Errorf("got %v", err)
			}
		}, 0},
		{"the manager rejects exclusions", Limits{}, []NodeResourceInfo{node("a")}, func(t *testing.T, w *world) {
			if _, err := w.create(w.vm(asks(one, VMPlacementSpec{ExcludedNodes: []string{"a"}}))); codeOf(err) != CodePlacementUnavailable {
				t.Errorf("got %v", err)
			}
		}, 0},
		{"performance takes the emptier node", Limits{}, []NodeResourceInfo{used("a", 12), used("b", 2)}, func(t *testing.T, w *world) {
			w.on("b", asks(one, VMPlacementSpec{Policy: "performance"}))
		}, 1},
		{"a second VM is over the tenant's quota", Limits{}, []NodeResourceInfo{node("a")}, func(t *testing.T, w *world) {
			w.quota = 1
			tenant := one
			tenant.TenantID = "t1"
			w.on("a", tenant)
			if _, err := w.create(w.vm(tenant)); codeOf(err) != "QUOTA_EXCEEDED" {
				t.Errorf("got %v", err)
			}
		}, 1},

		{"no placement block", Limits{}, []NodeResourceInfo{used("a", 16), node("b")}, func(t *testing.T, w *world) {
			vm := w.on("b", one)
			if vm.config.Placement != nil {
				t.Error("there is one")
			}
		}, 1},
		{"custom with lists", Limits{}, []NodeResourceInfo{node("a"), node("b"), node("c")}, func(t *testing.T, w *world) {
			w.on("b", asks(one, VMPlacementSpec{Policy: "custom", PreferredNodes: []string{"a", "b"}, ExcludedNodes: []string{"a"}}))
		}, 1},
		{"a node that is not available", Limits{}, []NodeResourceInfo{with(node("a"), func(n *NodeResourceInfo) { n.Status = "draining" }), used("b", 4)}, func(t *testing.T, w *world) {
			w.on("b", one)
		}, 1},
		{"null maps and lists", Limits{EnableNodeLabels: true}, []NodeResourceInfo{node("a")}, func(t *testing.T, w *world) {
			vm := w.on("a", one)
			encoded, _ := json.Marshal(vm.config)
			for _, null := range []string{`"args":null`, `"mounts":null`, `"env":null`, `"tags":null`} {
				if !bytes.Contains(encoded, []byte(null)) {
					t.Errorf("no %s in %s", null, encoded)
				}
			}
		}, 1},
		{"labels", Limits{EnableNodeLabels: true}, []NodeResourceInfo{node("a"), with(used("b", 8), func(n *NodeResourceInfo) { n.Labels = map[string]string{"disk": "ssd", "zone": "z1"} })}, func(t *testing.T, w *world) {
			tagged := one
			tagged.Tags = map[string]string{"disk": "ssd"}
			w.on("b", tagged)
			tagged.Tags = map[string]string{"disk": "tape"}
			if _, err := w.create(w.vm(tagged)); !errors.Is(err, ErrNoNodeFits) {
				t.Errorf("got %v", err)
			}
		}, 1},
		{"the most VMs of a node", Limits{MaxVMsPerNode: 2}, []NodeResourceInfo{with(node("a"), func(n *NodeResourceInfo) { n.VMCount = 2 }), used("b", 1)}, func(t *testing.T, w *world) {
			w.on("b", one)
			if _, err := w.create(w.vm(one)); !errors.Is(err, ErrNoNodeFits) {
				t.Errorf("got %v", err)
			}
		}, 1},
		{"overcommit", Limits{MaxCPUOvercommit: 1.5, MaxMemoryOvercommit: 1}, []NodeResourceInfo{small("a", 2)}, func(t *testing.T, w *world) {
			for i := 0; i < 3; i++ {
				w.on("a", one)
			}
			if _, err := w.schedule(w.vm(one)); !errors.Is(err, ErrNoNodeFits) {
				t.Errorf("got %v", err)
			}
		}, 3},
		{"disk", Limits{}, []NodeResourceInfo{with(node("a"), func(n *NodeResourceInfo) { n.TotalDiskGB = 10 }), used("b", 12)}, func(t *testing.T, w *world) {
			large := one
			large.DiskSizeGB = 11
			w.on("b", large)
		}, 1},
		{"ties are decided the same every time", Limits{}, []NodeResourceInfo{node("c"), node("a"), node("d"), node("b")}, func(t *testing.T, w *world) {
			first := ""
			for i := 0; i < 10; i++ {
				// The core's nodes are in a map, so they come in another order each time.
				vm := w.vm(one)
				got, err := w.start(vm)
				if err != nil || (first != "" && got != first) {
					t.Fatalf("%q, then %q, %v", first, got, err)
				}
				first = got
				w.end(vm)
			}
		}, 10},
		{"who comes at once does not get the same room", Limits{}, []NodeResourceInfo{small("a", 10), small("b", 10), small("c", 10), small("d", 10)}, func(t *testing.T, w *world) {
			// The core has no retry between choosing and reserving: without reservations in the
			// service, VMs that come together would be sent to the same node.
			var callers sync.WaitGroup
			for i := 0; i < 40; i++ {
				vm := w.vm(one)
				callers.Add(1)
				go func() {
					defer callers.Done()
					if _, err := w.create(vm); err != nil {
						t.Errorf("%s: %v", vm.id, err)
					}
				}()
			}
			callers.Wait()
			for id, node := range w.nodes {
				if node.UsedCPU != 10 {
					t.Errorf("%s has %d of 10 cores used", id, node.UsedCPU)
				}
			}
		}, 40},
		{"an unknown node in the answer", Limits{}, []NodeResourceInfo{used("a", 1), node("b")}, func(t *testing.T, w *world) {
			w.wire(behind(t, url, func(body []byte) []byte {
				return bytes.ReplaceAll(body, []byte(w.prefix), []byte("elsewhere-"))
			}, 0), func(*CustomSchedulerOptions[*myVM, myNode]) {})
			w.on("b", one)
			counted(t, w.counters, 0, 1, 0, 1)
		}, 0},
		{"an answer that is late", Limits{}, []NodeResourceInfo{used("a", 1), node("b")}, func(t *testing.T, w *world) {
			w.wire(behind(t, url, nil, time.Hour), func(options *CustomSchedulerOptions[*myVM, myNode]) { options.Deadline = 20 * time.Millisecond })
			w.on("b", one)
			counted(t, w.counters, 0, 1, 0, 0)
		}, 0},
	}
	for _, c := range cases {
		c := c
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, client, c.limits, c.nodes...)
			counters := w.counters
			c.run(t, w)
			if counters.Served.Load() != c.served || counters.Refused.Load() != 0 || (w.counters == counters && counters.Fallback.Load() != 0) {
				t.Errorf("the service decided %d times, want %d; %d fallbacks, %d refusals", counters.Served.Load(), c.served, counters.Fallback.Load(), counters.Refused.Load())
			}
		})
	}
}

// behind is a client whose answers are changed on their way, or held up.
func behind(t *testing.T, url string, change func([]byte) []byte, delay time.Duration) *Client {
	transport := newTransport()
	t.Cleanup(transport.CloseIdleConnections)
	client, err := New(url, Options{HTTPClient: &http.Client{Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := transport.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		if delay > 0 {
			defer response.Body.Close()
			select {
			case <-time.After(delay):
			case <-request.Context().Done():
			}
			return nil, request.Context().Err()
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(change(body)))
		return response, err
	})}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
