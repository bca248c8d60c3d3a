package novaplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// myVM and myNode stand for types of the caller's.
type myVM struct {
	id     string
	config VMConfig
}

type myNode = *NodeResourceInfo

func viewOf(vm *myVM) VMView {
	return VMView{
		ID: vm.id, Config: vm.config, CPUShares: vm.config.CPUShares, MemoryMB: vm.config.MemoryMB,
		DiskSizeGB: vm.config.DiskSizeGB, Tags: vm.config.Tags,
	}
}

func infoOf(node myNode) NodeResourceInfo { return *node }

func schedulerOptions() CustomSchedulerOptions[*myVM, myNode] {
	return CustomSchedulerOptions[*myVM, myNode]{
		VM: viewOf, Node: infoOf, Counters: new(SchedulerCounters),
		// Long enough for a busy machine; tests of the deadline set their own.
		Deadline: 10 * time.Second,
	}
}

func pointers(nodes ...NodeResourceInfo) []myNode {
	list := make([]myNode, len(nodes))
	for i := range nodes {
		list[i] = &nodes[i]
	}
	return list
}

func vmOf(shares, memory int) *myVM {
	return &myVM{"vm-1", VMConfig{Name: "one", CPUShares: shares, MemoryMB: memory}}
}

func counted(t *testing.T, counters *SchedulerCounters, served, fallback, refused, mismatch uint64) {
	t.Helper()
	got := [4]uint64{counters.Served.Load(), counters.Fallback.Load(), counters.Refused.Load(), counters.Mismatch.Load()}
	if want := [4]uint64{served, fallback, refused, mismatch}; got != want {
		t.Errorf("served, fallback, refused, mismatch: %v, want %v", got, want)
	}
}

func TestTheServiceDecidesByIDs(t *testing.T) {
	stub := newStub(t)
	client := stub.client(Options{})
	nodes := []NodeResourceInfo{node("a"), with(node("b"), func(n *NodeResourceInfo) { n.UsedCPU = 4 })}
	syncer := NewInventorySyncer(client, func() []NodeResourceInfo { return nodes }, InventorySyncerOptions{})
	if err := syncer.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	options := schedulerOptions()
	options.Inventory = syncer
	got, err := NewCustomScheduler(client, options)(vmOf(2048, 512), pointers(nodes...))
	if got != "a" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	counted(t, options.Counters, 1, 0, 0, 0)
	all := stub.seen()
	request := all[len(all)-1]
	if request.path != "/scheduler/vms/vm-1/schedule" || request.header.Get(headerTimeout) == "" {
		t.Errorf("%s with %s %q", request.path, headerTimeout, request.header.Get(headerTimeout))
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(request.body, &body); err != nil {
		t.Fatal(err)
	}
	if string(body["candidate_node_ids"]) != `["a","b"]` || body["nodes"] != nil {
		t.Errorf("sent %s", request.body)
	}
	var generation uint64
	if json.Unmarshal(body["generation"], &generation); generation != syncer.Generation() || generation == 0 {
		t.Errorf("generation %d, the syncer has %d", generation, syncer.Generation())
	}
	var config map[string]json.RawMessage
	json.Unmarshal(body["vm"], &config)
	if config["placement"] != nil || string(config["tags"]) != "null" || string(config["args"]) != "null" {
		t.Errorf("a VM without a placement block and with nil maps became %s", body["vm"])
	}
}

// TestWhateverTheServiceDoes takes the least loaded node when there is no good answer, and keeps to
// the service's word when there is one.
func TestWhateverTheServiceDoes(t *testing.T) {
	status := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { refuse(w, status, code, "because") }
	}
	names := func(id string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, ScheduleResponse{NodeID: id}) }
	}
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	cases := map[string]struct {
		answer   http.HandlerFunc
		deadline time.Duration
		override bool
		want     string
		is       error
		counters [4]uint64
	}{
		"a candidate":           {answer: names("b"), want: "b", counters: [4]uint64{1, 0, 0, 0}},
		"an unknown node":       {answer: names("zz"), want: "c", counters: [4]uint64{0, 1, 0, 1}},
		"a node that is full":   {answer: names("full"), want: "c", counters: [4]uint64{0, 1, 0, 1}},
		"no node":               {answer: names(""), want: "c", counters: [4]uint64{0, 1, 0, 1}},
		"too late":              {answer: hangs, deadline: 20 * time.Millisecond, want: "c", counters: [4]uint64{0, 1, 0, 0}},
		"an internal error":     {answer: status(500, "internal"), want: "c", counters: [4]uint64{0, 1, 0, 0}},
		"overloaded":            {answer: status(503, "overloaded"), want: "c", counters: [4]uint64{0, 1, 0, 0}},
		"too many requests":     {answer: status(429, "slow_down"), want: "c", counters: [4]uint64{0, 1, 0, 0}},
		"another generation":    {answer: status(409, "conflict"), want: "c", counters: [4]uint64{0, 1, 0, 0}},
		"not allowed":           {answer: status(401, "unauthorized"), want: "c", counters: [4]uint64{0, 1, 0, 0}},
		"no capacity":           {answer: status(409, CodeInsufficientCapacity), is: ErrNoCapacity, counters: [4]uint64{0, 0, 1, 0}},
		"nothing suitable":      {answer: status(409, CodePlacementUnavailable), is: ErrNoCapacity, counters: [4]uint64{0, 0, 1, 0}},
		"no capacity, they say": {answer: status(409, CodeInsufficientCapacity), override: true, want: "c", counters: [4]uint64{0, 1, 0, 0}},
	}
	nodes := pointers(
		with(node("full"), func(n *NodeResourceInfo) { n.TotalCPU = 1 }),
		with(node("b"), func(n *NodeResourceInfo) { n.UsedCPU = 2 }),
		node("c"),
	)
	for name, c := range cases {
		c := c
		t.Run(name, func(t *testing.T) {
			stub := newStub(t)
			stub.answering(c.answer)
			options := schedulerOptions()
			options.OverrideNoCapacity = c.override
			options.Deadline = orDefault(c.deadline, options.Deadline)
			var reason error
			options.OnFallback = func(why error) { reason = why }
			got, err := NewCustomScheduler(stub.client(Options{}), options)(vmOf(4, 512), nodes)
			if got != c.want || (err == nil) != (c.is == nil) || (c.is != nil && !errors.Is(err, c.is)) {
				t.Errorf("got %q, %v", got, err)
			}
			counted(t, options.Counters, c.counters[0], c.counters[1], c.counters[2], c.counters[3])
			if (reason != nil) != (c.counters[1] > 0) {
				t.Errorf("the reason of the fallback: %v", reason)
			}
		})
	}
}

func TestAnOpenCircuitDoesNotCostTheDeadline(t *testing.T) {
	stub := newStub(t)
	stub.failingFirst(1<<30, 500)
	client := stub.client(Options{Breaker: BreakerOptions{Failures: 2, OpenFor: time.Hour, MaxOpenFor: time.Hour}})
	options := schedulerOptions()
	schedule := NewCustomScheduler(client, options)
	for i := 0; i < 10; i++ {
		if got, err := schedule(vmOf(1, 1), pointers(node("a"))); got != "a" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	counted(t, options.Counters, 0, 10, 0, 0)
	if calls := len(stub.seen()); calls != 2 {
		t.Errorf("%d calls reached the service", calls)
	}
}

func TestAServiceThatIsNotThereIsNoObstacle(t *testing.T) {
	stub := newStub(t)
	client := stub.client(Options{})
	stub.Server.Close()
	options := schedulerOptions()
	got, err := NewCustomScheduler(client, options)(vmOf(1, 1), pointers(node("a")))
	if got != "a" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAGapAsksForTheWholeInventory(t *testing.T) {
	stub := newStub(t)
	client := stub.client(Options{})
	syncer := NewInventorySyncer(client, func() []NodeResourceInfo { return []NodeResourceInfo{node("a")} }, InventorySyncerOptions{})
	ctx := context.Background()
	if err := syncer.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	// The service has lost its memory.
	stub.mu.Lock()
	stub.generation, stub.nodes = 0, nil
	stub.mu.Unlock()
	options := schedulerOptions()
	options.Inventory = syncer
	schedule := NewCustomScheduler(client, options)
	schedule(vmOf(1, 1), pointers(node("a")))
	counted(t, options.Counters, 0, 1, 0, 0)
	if err := syncer.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	schedule(vmOf(1, 1), pointers(node("a")))
	counted(t, options.Counters, 1, 1, 0, 0)
	if stats := syncer.Stats(); stats.Full != 2 {
		t.Errorf("%+v", stats)
	}
}

func TestNodesAreCheckedHere(t *testing.T) {
	tagged := func(vm *myVM, tags map[string]string) *myVM { vm.config.Tags = tags; return vm }
	sized := func(vm *myVM, disk int) *myVM { vm.config.DiskSizeGB = disk; return vm }
	cases := map[string]struct {
		vm     *myVM
		limits Limits
		change func(*NodeResourceInfo)
		fits   bool
	}{
		"empty node":                    {vm: vmOf(1, 1), fits: true},
		"status":                        {vm: vmOf(1, 1), change: func(n *NodeResourceInfo) { n.Status = "maintenance" }},
		"all its cores":                 {vm: vmOf(16, 1), fits: true},
		"a core too many":               {vm: vmOf(17, 1)},
		"shares are cores by 1024":      {vm: vmOf(16*1024, 1), fits: true},
		"shares round up":               {vm: vmOf(16*1024+1, 1)},
		"128 are cores":                 {vm: vmOf(128, 1)},
		"129 are shares":                {vm: vmOf(129, 1), fits: true},
		"no shares":                     {vm: vmOf(-5, 1), change: func(n *NodeResourceInfo) { n.UsedCPU = 16 }, fits: true},
		"all its memory":                {vm: vmOf(1, 32768), fits: true},
		"too much memory":               {vm: vmOf(1, 32769)},
		"overcommitted CPU":             {vm: vmOf(24, 1), limits: Limits{MaxCPUOvercommit: 1.5}, fits: true},
		"beyond overcommitted CPU":      {vm: vmOf(25, 1), limits: Limits{MaxCPUOvercommit: 1.5}},
		"overcommit stretches totals":   {vm: vmOf(9, 1), limits: Limits{MaxCPUOvercommit: 1.5}, change: func(n *NodeResourceInfo) { n.UsedCPU = 16 }},
		"factors below one are none":    {vm: vmOf(16, 32768), limits: Limits{MaxCPUOvercommit: 0.5, MaxMemoryOvercommit: 0.5}, fits: true},
		"overcommitted memory":          {vm: vmOf(1, 40960), limits: Limits{MaxMemoryOvercommit: 1.25}, fits: true},
		"beyond overcommitted memory":   {vm: vmOf(1, 40961), limits: Limits{MaxMemoryOvercommit: 1.25}},
		"disk":                          {vm: sized(vmOf(1, 1), 1000), fits: true},
		"too much disk":                 {vm: sized(vmOf(1, 1), 1001)},
		"too much disk, if anyone asks": {vm: sized(vmOf(1, 1), 1001), limits: Limits{IgnoreDisk: true}, fits: true},
		"below the most VMs":            {vm: vmOf(1, 1), limits: Limits{MaxVMsPerNode: 3}, change: func(n *NodeResourceInfo) { n.VMCount = 2 }, fits: true},
		"the most VMs":                  {vm: vmOf(1, 1), limits: Limits{MaxVMsPerNode: 3}, change: func(n *NodeResourceInfo) { n.VMCount = 3 }},
		"no most":                       {vm: vmOf(1, 1), change: func(n *NodeResourceInfo) { n.VMCount = 3000 }, fits: true},
		"labels":                        {vm: tagged(vmOf(1, 1), map[string]string{"gpu": "yes"}), limits: Limits{EnableNodeLabels: true}, change: func(n *NodeResourceInfo) { n.Labels = map[string]string{"gpu": "yes", "x": "y"} }, fits: true},
		"another label":                 {vm: tagged(vmOf(1, 1), map[string]string{"gpu": "yes"}), limits: Limits{EnableNodeLabels: true}, change: func(n *NodeResourceInfo) { n.Labels = map[string]string{"gpu": "no"} }},
		"a nil map of labels":           {vm: tagged(vmOf(1, 1), map[string]string{"gpu": "yes"}), limits: Limits{EnableNodeLabels: true}},
		"an empty tag is not no label":  {vm: tagged(vmOf(1, 1), map[string]string{"gpu": ""}), limits: Limits{EnableNodeLabels: true}},
		"a nil map of tags":             {vm: vmOf(1, 1), limits: Limits{EnableNodeLabels: true}, fits: true},
		"labels, if nobody asks":        {vm: tagged(vmOf(1, 1), map[string]string{"gpu": "yes"}), fits: true},
	}
	for name, c := range cases {
		c := c
		t.Run(name, func(t *testing.T) {
			candidate := node("a")
			if c.change != nil {
				c.change(&candidate)
			}
			stub := newStub(t)
			stub.answering(func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, ScheduleResponse{NodeID: "a"}) })
			options := schedulerOptions()
			options.Limits = c.limits
			got, err := NewCustomScheduler(stub.client(Options{}), options)(c.vm, pointers(candidate))
			if c.fits && (got != "a" || err != nil) {
				t.Errorf("got %q, %v", got, err)
			}
			if !c.fits && !errors.Is(err, ErrNoNodeFits) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestTiesGoToTheLowestIDInAnyOrder(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	stub := newStub(t)
	stub.failingFirst(1<<30, 500)
	schedule := NewCustomScheduler(stub.client(Options{}), schedulerOptions())
	for i := 0; i < 50; i++ {
		nodes := pointers(node("n3"), node("n1"), node("n2"), with(node("n0"), func(n *NodeResourceInfo) { n.UsedMemoryMB = 1 }))
		random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		if got, err := schedule(vmOf(1, 1), nodes); got != "n1" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestALargeFleetIsNotNamedWhenTheServiceKnowsIt(t *testing.T) {
	const size = longList + 10
	large := func(int, *NodeResourceInfo) {}
	tagged := vmOf(1, 1)
	tagged.config.Tags = map[string]string{"disk": "ssd"}
	cases := map[string]struct {
		vm     *myVM
		limits Limits
		// change makes the scheduler's nodes differ from those that were synced.
		change func(int, *NodeResourceInfo)
		count  int
		named  int
	}{
		"all of it":             {vmOf(1, 1), Limits{}, large, size, 0},
		"some are full":         {vmOf(1, 1), Limits{}, func(i int, n *NodeResourceInfo) { n.UsedCPU = 16 * (1 - min(i, 1)) }, size, 0},
		"a small fleet":         {vmOf(1, 1), Limits{}, large, longList, longList},
		"one is gone":           {vmOf(1, 1), Limits{}, func(i int, n *NodeResourceInfo) { n.Status = []string{"offline", StatusAvailable}[min(i, 1)] }, size, size - 1},
		"tags that are labels":  {tagged, Limits{EnableNodeLabels: true}, func(i int, n *NodeResourceInfo) { n.Labels = tagged.config.Tags }, size, size},
		"tags that are no wish": {tagged, Limits{}, large, size, 0},
		"one has its most VMs":  {vmOf(1, 1), Limits{MaxVMsPerNode: 5}, func(i int, n *NodeResourceInfo) { n.VMCount = 5 * (1 - min(i, 1)) }, size, size - 1},
	}
	for name, c := range cases {
		c := c
		t.Run(name, func(t *testing.T) {
			stub := newStub(t)
			client := stub.client(Options{})
			nodes := make([]NodeResourceInfo, c.count)
			for i := range nodes {
				nodes[i] = node(fmt.Sprintf("n%03d", i))
			}
			syncer := NewInventorySyncer(client, func() []NodeResourceInfo { return nodes }, InventorySyncerOptions{})
			mustSync(t, syncer)
			for i := range nodes {
				c.change(i, &nodes[i])
			}
			options := schedulerOptions()
			options.Inventory, options.Limits = syncer, c.limits
			got, err := NewCustomScheduler(client, options)(c.vm, pointers(nodes...))
			if err != nil || !c.limits.admit(viewOf(c.vm), nodes[slices.IndexFunc(nodes, func(n NodeResourceInfo) bool { return n.NodeID == got })]) {
				t.Errorf("got %q, %v", got, err)
			}
			var sent ScheduleRequest
			all := stub.seen()
			json.Unmarshal(all[len(all)-1].body, &sent)
			if len(sent.CandidateNodeIDs) != c.named {
				t.Errorf("%d nodes were named, want %d", len(sent.CandidateNodeIDs), c.named)
			}
		})
	}
}

func TestNoNodesIsAnErrorWithoutACall(t *testing.T) {
	stub := newStub(t)
	got, err := NewCustomScheduler(stub.client(Options{}), schedulerOptions())(vmOf(1, 1), nil)
	if got != "" || err == nil || err.Error() != "no nodes available for scheduling" || len(stub.seen()) != 0 {
		t.Errorf("got %q, %v after %d calls", got, err, len(stub.seen()))
	}
}

func TestShutdownEndsACallEarly(t *testing.T) {
	noLeaks(t)
	stub := newStub(t)
	stub.answering(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	client := stub.client(Options{})
	options := schedulerOptions()
	options.Deadline = time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	options.Context = ctx
	time.AfterFunc(10*time.Millisecond, cancel)
	if got, err := NewCustomScheduler(client, options)(vmOf(1, 1), pointers(node("a"))); got != "a" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// A service that fails in every way there is, at random, costs time and no VM.
func TestNoVMIsLostToAServiceThatFlaps(t *testing.T) {
	noLeaks(t)
	const seed = 5
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	random := rand.New(rand.NewSource(seed))
	stub := newStub(t)
	stub.answering(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		fate := random.Intn(7)
		mu.Unlock()
		switch fate {
		case 0:
			w.WriteHeader(503)
		case 1:
			<-r.Context().Done()
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			answer(w, 200, ScheduleResponse{NodeID: "elsewhere"})
		case 4:
			w.Write([]byte("{"))
		default:
			answer(w, 200, ScheduleResponse{NodeID: "b"})
		}
	})
	client := stub.client(Options{Breaker: BreakerOptions{OpenFor: time.Millisecond, MaxOpenFor: 4 * time.Millisecond}})
	options := schedulerOptions()
	options.Deadline = 20 * time.Millisecond
	schedule := NewCustomScheduler(client, options)
	nodes := pointers(node("a"), node("b"))
	var callers sync.WaitGroup
	for i := 0; i < 8; i++ {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for j := 0; j < 50; j++ {
				if got, err := schedule(vmOf(1, 1), nodes); (got != "a" && got != "b") || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			}
		}()
	}
	callers.Wait()
	served, fallback := options.Counters.Served.Load(), options.Counters.Fallback.Load()
	if served+fallback != 400 || served == 0 || fallback == 0 {
		t.Errorf("%d served, %d without the service", served, fallback)
	}
}
