package novaplace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	novaplace "novaplace/api/clients/go"
)

// VM, VMEvent and NodeInfo stand for NovaCron's vm.VM, vm.VMEvent and vm.NodeResourceInfo.
type VM struct{ config novaplace.VMConfig }

func (vm *VM) ID() string                 { return vm.config.ID }
func (vm *VM) Config() novaplace.VMConfig { return vm.config }

type NodeInfo novaplace.NodeResourceInfo

type VMEvent struct {
	Type      string
	VM        VM
	NodeID    string
	Timestamp time.Time
}

// serviceThatAnswers is a service for an example: one answer for everything.
func serviceThatAnswers(status int, body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
}

func ExampleClient_Schedule() {
	service := serviceThatAnswers(200, `{"vm_id":"vm-1","node_id":"node-7","score":0.93,"explanation":"most room left"}`)
	defer service.Close()
	client, err := novaplace.New(service.URL, novaplace.Options{})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := client.Schedule(ctx, "vm-1", novaplace.ScheduleRequest{
		VM: novaplace.VMConfig{Name: "web", CPUShares: 2048, MemoryMB: 4096},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.NodeID, answer.Explanation)
	// Output: node-7 most room left
}

func ExampleAPIError() {
	service := serviceThatAnswers(409, `{"error":{"code":"INSUFFICIENT_CAPACITY","message":"no node has enough resources for the VM"}}`)
	defer service.Close()
	client, _ := novaplace.New(service.URL, novaplace.Options{})
	defer client.Close()

	_, err := client.Schedule(context.Background(), "vm-1", novaplace.ScheduleRequest{VM: novaplace.VMConfig{CPUShares: 64}})
	var failure *novaplace.APIError
	if errors.As(err, &failure) {
		fmt.Println(failure.Status, failure.Code)
	}
	fmt.Println(errors.Is(err, novaplace.ErrNoCapacity))
	// Output:
	// 409 INSUFFICIENT_CAPACITY
	// true
}

func ExampleNewCustomScheduler() {
	service := serviceThatAnswers(503, ``)
	defer service.Close()
	client, _ := novaplace.New(service.URL, novaplace.Options{})
	defer client.Close()

	counters := new(novaplace.SchedulerCounters)
	schedule := novaplace.NewCustomScheduler(client, novaplace.CustomSchedulerOptions[*VM, *NodeInfo]{
		VM: func(v *VM) novaplace.VMView {
			c := v.Config()
			return novaplace.VMView{
				ID: v.ID(), Config: c, CPUShares: c.CPUShares, MemoryMB: c.MemoryMB,
				DiskSizeGB: c.DiskSizeGB, Tags: c.Tags,
			}
		},
		Node:     func(n *NodeInfo) novaplace.NodeResourceInfo { return novaplace.NodeResourceInfo(*n) },
		Counters: counters,
	})

	// The service is down; the VM gets the least loaded node all the same.
	node, err := schedule(&VM{novaplace.VMConfig{ID: "vm-1", CPUShares: 1024, MemoryMB: 512}}, []*NodeInfo{
		{NodeID: "busy", TotalCPU: 8, UsedCPU: 6, TotalMemoryMB: 8192, Status: "available"},
		{NodeID: "idle", TotalCPU: 8, UsedCPU: 1, TotalMemoryMB: 8192, Status: "available"},
	})
	fmt.Println(node, err, counters.Fallback.Load())
	// Output: idle <nil> 1
}

func ExamplePlacementEngine() {
	service := serviceThatAnswers(200, `{"vm_id":"vm-1","selected_node":"node-2","score":0.8,"confidence":0.6}`)
	defer service.Close()
	client, _ := novaplace.New(service.URL, novaplace.Options{})
	defer client.Close()

	// With NovaCron's types in the brackets this is a placement.PlacementEngine.
	engine := novaplace.NewPlacementEngine[
		novaplace.PlacementRequest, novaplace.PlacementDecision, novaplace.Node, novaplace.NodeScore,
	](client, "load_balancing")
	decision, err := engine.PlaceVM(context.Background(), &novaplace.PlacementRequest{
		VMID: "vm-1", VMSpec: novaplace.VMSpec{CPU: 4, Memory: 8192}, ExcludeNodes: []string{"node-1"},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(decision.SelectedNode, engine.GetAlgorithm())
	// Output: node-2 load_balancing
}

func ExampleEventBridge() {
	service := serviceThatAnswers(202, ``)
	defer service.Close()
	client, _ := novaplace.New(service.URL, novaplace.Options{})
	defer client.Close()

	bridge := novaplace.NewEventBridge(client, func(e VMEvent) (novaplace.Event, bool) {
		return novaplace.Event{
			Type: e.Type, VMID: e.VM.ID(), NodeID: e.NodeID, Timestamp: e.Timestamp, Config: e.VM.Config(),
		}, true
	}, novaplace.EventBridgeOptions{})
	for _, kind := range []string{"created", "started"} {
		bridge.OnVMEvent(VMEvent{Type: kind, VM: VM{novaplace.VMConfig{ID: "vm-1"}}, NodeID: "node-2", Timestamp: time.Now()})
	}

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(bridge.Close(ctx), bridge.Stats().Sent)
	// Output: <nil> 2
}

func ExampleInventorySyncer() {
	service := serviceThatAnswers(200, ``)
	defer service.Close()
	client, _ := novaplace.New(service.URL, novaplace.Options{})
	defer client.Close()

	used := 0
	nodes := func() []novaplace.NodeResourceInfo {
		return []novaplace.NodeResourceInfo{{NodeID: "node-1", TotalCPU: 8, UsedCPU: used, Status: "available"}}
	}
	// A program runs it until the end: go syncer.Run(ctx). Here it is stepped by hand.
	syncer := novaplace.NewInventorySyncer(client, nodes, novaplace.InventorySyncerOptions{})
	for _, used = range []int{0, 0, 3} {
		if err := syncer.Sync(context.Background()); err != nil {
			panic(err)
		}
	}
	fmt.Printf("%+v\n", syncer.Stats())
	// Output: {Full:1 Deltas:1 Unchanged:1 Gaps:0 Failed:0}
}
